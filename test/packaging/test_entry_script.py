# SPDX-License-Identifier: Apache-2.0
"""The script at the root: what it says, and how it explains what goes wrong. Its running shows that it sets up."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """It holds Ctrl-C back for the program that it becomes; here, every process started later would inherit that."""
    handler, mask = signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    loader = importlib.machinery.SourceFileLoader("pkm_script", str(ROOT / "pkm"))
    spec = importlib.util.spec_from_loader("pkm_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    yield module
    signal.signal(signal.SIGINT, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def test_help_needs_no_set_up() -> None:
    done = subprocess.run([sys.executable, ROOT / "pkm", "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "./pkm run ROBOT" in done.stdout
    assert subprocess.run([sys.executable, ROOT / "pkm", "dance"], capture_output=True, check=False).returncode == 2


def test_failures_are_explained(script: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "step.log"
    for content, word in (
        ("NameResolutionError: pypi.org", "network"),
        ("ERROR: No matching distribution found for x", "lacks a wheel"),
        ("OSError: [Errno 28] No space left on device", "disk"),
        ("something else", str(log)),
    ):
        log.write_text(content)
        text = script.explain("step", log)
        assert content in text
        assert word in text


def test_an_unsupported_python_is_told(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.sys, "version_info", (3, 8, 0))
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    with pytest.raises(script.SetupError, match=r"Python 3\.8"):
        script.use_supported_python()


def test_a_missing_compiler_is_told(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    with pytest.raises(script.SetupError, match="compiler"):
        script.check_compiler()


def test_a_sourced_installation_does_not_leak(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/opt/ros/jazzy/lib/python3.12/site-packages")
    monkeypatch.setenv("AMENT_PREFIX_PATH", "/opt/ros/jazzy")
    environment = script.clean_environment()
    assert "PYTHONPATH" not in environment
    assert "AMENT_PREFIX_PATH" not in environment


def test_a_change_of_a_source_is_seen(script: ModuleType) -> None:
    messages = ROOT / "pkm_interfaces"
    assert script.digest(messages) == script.digest(messages)
    assert script.digest(messages) != script.digest(messages / "msg")


def test_both_builds_name_the_same_interfaces() -> None:
    requirements = (ROOT / "requirements" / "bare.txt").read_text()
    project = (ROOT / "pkm_interfaces" / "pyproject.toml").read_text()
    line = next(one for one in requirements.splitlines() if one.startswith("ros-rclpy"))
    assert line in project


@pytest.mark.parametrize("words", [["setup", "--help"], ["docs", "-h"], ["nightly", "--help"], ["--version"]])
def test_questions_start_no_set_up(words: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "PKM_VENV": str(tmp_path / "none")}
    asked = subprocess.run([str(ROOT / "pkm"), *words], capture_output=True, text=True, env=environment, timeout=60.0)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout.startswith("pkm 0.1.0" if words == ["--version"] else "Run or test the suite")
    assert not (tmp_path / "none").exists()


def test_a_stop_waits_for_no_set_up(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamps = tmp_path / "stamps.json"
    stamps.write_text('{"libraries": "old", "interfaces": "old", "package": "old"}')
    monkeypatch.setattr(script, "STAMPS", stamps)
    monkeypatch.setattr(script, "set_up", lambda extra: pytest.fail("sets up"))
    run: list[list[str]] = []
    monkeypatch.setattr(script.os, "execve", lambda program, words, environment: run.append(words[1:]))
    for word in script.AT_ONCE:
        monkeypatch.setattr(sys, "argv", ["pkm", word])
        script.main()
    assert run == [["-m", "pkm_bringup.cli", word] for word in script.AT_ONCE]


def test_lines_of_code_and_warnings_are_no_progress(script: ModuleType, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("drawing\n/x/a.py:3: UserWarning: no handles\n  axes.legend()\n")
    assert script.last_line(log) == "drawing"


def test_progress_does_not_repeat_itself(
    script: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(script.time, "monotonic", lambda: now[0])
    log = tmp_path / "log"
    log.write_text("Building wheel\n\npkm: compiling kernels: 12 s ...\n")
    ticker = script.Ticker(now[0] - 20.0, every=0.0, silent=0.2)
    ticker.tick(script.last_line(log))
    ticker.tick("compiling kernels")
    ticker.tick("drawing")
    assert capfd.readouterr().err == "    20 s: compiling kernels\n    20 s: drawing\n"
    log.write_text("pkm: compiling kernels, once on this computer: for proofs, about 12% done: 12 s ...\n")
    assert script.last_line(log) == "compiling kernels: for proofs, about 12% done"
    log.write_text("pkm: compiling kernels, once on this computer: about 12% done: 12 s, about 88 s left ...\n")
    assert script.last_line(log) == "compiling kernels: about 12% done, about 88 s left"
    now[0] += 0.3
    ticker.tick("drawing")
    ticker.tick("drawing")
    assert capfd.readouterr().err == "    20 s\n"  # it still lives
    ticker.at_terminal = True
    ticker.tick("x" * 500)
    ticker.end()
    said = capfd.readouterr().err
    assert "\n" not in said
    assert len(said) < 200


def test_kernels_that_were_cut_off_are_removed_and_whole_ones_kept(script: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "pkm_things" / "kernels" / "__pycache__"
    folder.mkdir(parents=True)
    whole = pickle.dumps({"key": list(range(100))})
    for name, content in {"a.nbi": whole, "b.nbc": whole[:200], "c.nbi": b"", "d.nbc": whole, "e.pyc": b"x"}.items():
        (folder / name).write_bytes(content)
    script.mend_caches(tmp_path)
    assert sorted(file.name for file in folder.iterdir()) == ["a.nbi", "d.nbc", "e.pyc"]


def test_a_clone_that_cannot_be_written_is_told(script: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(script.SetupError, match=r"cannot be written .*\n.*your own"):
        script.open_lock(tmp_path / "nowhere" / ".pkm.lock")


def test_an_environment_that_another_user_keeps_closed_is_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def closed(extra: dict[str, Path]) -> None:
        raise PermissionError(13, "Permission denied", "/root/python")

    monkeypatch.setattr(script, "set_up", closed)
    monkeypatch.setattr(sys, "argv", ["pkm", "setup"])
    assert script.main() == 1
    assert capfd.readouterr().err.strip() == "pkm: [Errno 13] Permission denied: '/root/python'"


def test_a_killed_set_up_takes_its_jobs_along() -> None:
    program = (
        "import importlib.machinery, importlib.util, sys, time; from pathlib import Path;"
        f"loader = importlib.machinery.SourceFileLoader('pkm_script', {str(ROOT / 'pkm')!r});"
        "module = importlib.util.module_from_spec(importlib.util.spec_from_loader('pkm_script', loader));"
        "loader.exec_module(module); module.LOGS = Path(sys.argv[1]);"
        "print(module.Job('sleep', ['sleep', '60']).process.pid, flush=True); time.sleep(60)"
    )
    with tempfile.TemporaryDirectory() as logs:
        command = [sys.executable, "-c", program, logs]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            child = int(parent.stdout.readline())
            parent.kill()
        deadline = time.monotonic() + 5.0
        while Path(f"/proc/{child}").exists() and "\nState:\tZ" not in Path(f"/proc/{child}/status").read_text():
            assert time.monotonic() < deadline, "the job outlived the set-up"
            time.sleep(0.02)


def test_uv_looks_where_pip_is_told_to_look(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = "global.index-url='https://here/simple'\n:env:.cert='/etc/ca.pem'\nglobal.extra-index-url='file:///x http://y/z'"
    answer = subprocess.CompletedProcess([], 0, stdout=listed)
    monkeypatch.setattr(script.subprocess, "run", lambda *words, **options: answer)
    script.index_for_uv.cache_clear()
    assert script.index_for_uv() == {
        "UV_DEFAULT_INDEX": "https://here/simple",
        "UV_INDEX": "http://y/z",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


@pytest.fixture
def set_up_clone(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that is up to date, in which no job may be started."""
    place = tmp_path / "venv"
    (place / "bin").mkdir(parents=True)
    monkeypatch.setattr(script, "VENV", place)
    monkeypatch.setattr(script, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(script, "STAMPS", place / "stamps.json")
    monkeypatch.setattr(script, "mend_caches", lambda root: None)
    (place / "stamps.json").write_text(json.dumps(script.wanted_stamps(script.extra_libraries("test"))))

    def no_job(*words: object, **options: object) -> None:
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(script, "Job", no_job)
    monkeypatch.setattr(script.subprocess, "check_call", no_job)
    return place


def test_a_second_start_needs_no_network_and_writes_nothing(
    script: ModuleType, set_up_clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "open_lock", lambda path: pytest.fail("wants to write into the clone"))
    before = {file: file.stat().st_mtime_ns for file in set_up_clone.rglob("*")}
    script.set_up(script.extra_libraries("test"))
    script.set_up(script.extra_libraries("docs"))
    script.set_up(script.extra_libraries("run"))
    assert {file: file.stat().st_mtime_ns for file in set_up_clone.rglob("*")} == before


def test_a_clone_of_another_owner_that_is_not_set_up_is_told(
    script: ModuleType, set_up_clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (set_up_clone / "stamps.json").write_text("{")  # cut off while it was written: nothing counts as done
    opened = script.open_lock
    monkeypatch.setattr(script, "open_lock", lambda path: opened(tmp_path / "of_another" / path.name))
    with pytest.raises(script.SetupError, match="cannot be written"):
        script.set_up({})


def test_the_site_needs_its_own_libraries_and_tests_need_them_too(script: ModuleType) -> None:
    assert script.extra_libraries("run") == {}
    assert set(script.extra_libraries("docs")) == {"documentation libraries"}
    assert set(script.extra_libraries("docs")) < set(script.extra_libraries("test"))
    assert all(file.is_file() for file in script.extra_libraries("test").values())


def test_a_moved_clone_is_installed_again_at_its_place(
    script: ModuleType, set_up_clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = script.wanted_stamps(script.extra_libraries("test"))
    monkeypatch.setattr(script, "VENV", set_up_clone.with_name("moved"))
    changed = {
        step for step, value in script.wanted_stamps(script.extra_libraries("test")).items() if value != there[step]
    }
    assert changed == {"package", "kernels"}  # libraries and interfaces stay, so no network is needed


def test_programs_of_a_moved_environment_start_its_own_python(script: ModuleType, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    venv.create(old)
    program = old / "bin" / "where"
    program.write_text(f"#!{old}/bin/python3\nimport sys; print(sys.prefix)\n")
    (old / "bin" / "shell").write_text("#!/bin/sh\n")
    program.chmod(0o755)
    shutil.copytree(old, new, symlinks=True)
    assert subprocess.check_output([new / "bin" / "where"], text=True).strip() == str(old)  # the trap
    script.mend_moved(new)
    assert subprocess.check_output([new / "bin" / "where"], text=True).strip() == str(new)
    assert (new / "bin" / "shell").read_text() == "#!/bin/sh\n"
    shutil.rmtree(old)
    assert subprocess.call([new / "bin" / "where"], stdout=subprocess.DEVNULL) == 0


def test_two_first_starts_at_once_wait_for_each_other(script: ModuleType, tmp_path: Path) -> None:
    program = (
        "import importlib.machinery, importlib.util, sys;"
        f"loader = importlib.machinery.SourceFileLoader('pkm_script', {str(ROOT / 'pkm')!r});"
        "module = importlib.util.module_from_spec(importlib.util.spec_from_loader('pkm_script', loader));"
        "loader.exec_module(module);"
        "module.wait_for_turn(open(sys.argv[1], 'w')); print('mine', flush=True)"
    )
    with (tmp_path / "lock").open("w") as lock:
        script.wait_for_turn(lock)
        command = [sys.executable, "-c", program, str(tmp_path / "lock")]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert other.stderr is not None
        assert "waiting" in other.stderr.readline()
        time.sleep(0.1)
        assert other.poll() is None
    said, _ = other.communicate(timeout=20)  # closing the file is the end of its turn
    assert said.strip() == "mine"


@pytest.mark.parametrize("clones", ["", "/some/clones"])
def test_nightly_writes_the_page_of_the_zoo(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clones: str
) -> None:
    """Missing files are said on the page; a page that is not written is a failure."""
    called: list[list[str]] = []
    page = tmp_path / "reports" / "zoo.md"
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setenv("PKM_ZOO", clones)

    def write(words: list[str], **_: object) -> int:
        called.append(words)
        page.write_text("a page")
        return 1

    monkeypatch.setattr(script.subprocess, "call", write)
    assert script.run_zoo() == 0
    (words,) = called
    assert words[words.index("--report") + 1] == str(page)
    assert ("--from" in words) == bool(clones)
    monkeypatch.setattr(script.subprocess, "call", lambda *_, **__: 1)
    assert script.run_zoo() == 1
    assert not page.exists()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always imports from the current folder first")
def test_files_in_the_folder_of_the_user_are_not_imported(tmp_path: Path) -> None:
    for name in ("html", "numba"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    words = [sys.executable, str(ROOT / "pkm"), "check", "five_bar", "--no-modes"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "usable, 0 warnings" in done.stdout) == (0, True), done.stderr
