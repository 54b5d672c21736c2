# SPDX-License-Identifier: Apache-2.0
"""The command without ROS, as a user types it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pkm_bringup.command_line.one_process import Interruption, run_in_one_process
from pkm_bringup.simulate_command import main, parser
from pkm_description.mechanism import Mechanism
from pkm_runtime import progress

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pkm_bringup.simulate_command", *arguments]


def running(group: int) -> list[str]:
    """Return the processes of a group that are more than an entry waiting to be collected."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, fields = stat.read_text().rpartition(")")
        except OSError:
            continue
        state, _, process_group = fields.split()[:3]
        if int(process_group) == group and state != "Z":
            found.append(name)
    return found


def test_help_tells_every_option_and_its_default() -> None:
    text = " ".join(parser().format_help().split())  # however wide the terminal is
    for action in parser()._actions:
        assert action.help, action.dest
    for word in ("--motion", "pick_and_place", "--cycles", "(default: 20)", "delta"):
        assert word in text


def test_it_runs_reports_and_writes_its_files(tmp_path, capfd) -> None:
    assert main(["delta", "--cycles", "2", "--no-page", "--report", str(tmp_path)]) == 0
    text = capfd.readouterr().out
    for words in ("cycles per minute", "position error", "effort of limb3_arm", "speed of limb1", "deadlines missed"):
        assert words in text
    assert (tmp_path / "delta_pick_and_place.png").stat().st_size > 10000
    assert "limb3_arm" in (tmp_path / "delta_pick_and_place.html").read_text(encoding="utf-8")
    assert (tmp_path / "delta_pick_and_place.csv").stat().st_size > 10000


def test_a_bad_motion_file_is_one_clear_line(tmp_path, capfd) -> None:
    file = tmp_path / "holes.csv"
    file.write_text("x [m], y [m], z [m]\n0, 0, -0.8\n0.1, , -0.8\n")
    assert main(["delta", "--motion", str(file), "--no-page"]) == 2
    error = capfd.readouterr().err
    assert error == "pkm simulate: holes.csv, line 3, column 'y': is empty; fill every cell of a waypoint\n"


def test_a_law_that_lacks_its_task_is_one_clear_line(capfd) -> None:
    assert main(["delta", "--controller", "hybrid", "--no-page"]) == 2
    (line,) = (one for one in capfd.readouterr().err.splitlines() if not one.startswith("pkm: "))
    assert line.startswith("pkm simulate: law 'hybrid': it needs an axis along which force is controlled; select")


def test_a_robot_that_is_not_there_is_one_clear_line(capfd) -> None:
    assert main(["no_such_robot", "--no-page"]) == 2  # before anything is loaded
    error = capfd.readouterr().err
    assert error.startswith("pkm simulate: ")
    assert "no_such_robot" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cycles", "0"],
        ["--rate", "nan"],
        ["--rate", "-1"],
        ["--port", "99999"],
        ["--controller", "magic"],
        ["--damping", "x"],
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], capfd) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["delta", *arguments])
    assert caught.value.code == 2
    assert arguments[0] in capfd.readouterr().err


def test_interrupt_ends_it_and_leaves_nothing_running(tmp_path) -> None:
    process = subprocess.Popen(
        command("delta", "--cycles", "100000", "--port", "8931", "--report", str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "running" in line:
                break
        assert lines, "it ended before it ran"
        assert "running" in lines[-1], "".join(lines)
        time.sleep(1.0)
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does on Ctrl-C: the whole group gets it
        rest, _ = process.communicate(timeout=120)  # its report has pictures, which take half a minute beside others
        assert process.returncode == 130, "".join(lines) + rest
        assert "what the run measured" in rest  # what was done until then is reported
        deadline = time.monotonic() + 5.0
        while running(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert running(process.pid) == []
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_who_ends_it_before_anything_moves_is_told_so(monkeypatch, capfd, number: signal.Signals) -> None:
    def interrupted(*arguments) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10.0)

    monkeypatch.setattr("pkm_bringup.simulated_job.plan_cycle", interrupted)
    streams = [os.dup(place) for place in (1, 2)]
    try:
        assert main(["delta", "--no-page"]) == 130
    finally:
        for place, stream in zip((1, 2), streams, strict=True):
            os.dup2(stream, place)  # a terminal that hung up is let go
            os.close(stream)
    if number == signal.SIGINT:
        assert "nothing was run, and there is no report" in capfd.readouterr().err


def test_an_end_that_was_asked_for_too_early_is_not_forgotten() -> None:
    interruption = Interruption()
    with pytest.raises(KeyboardInterrupt):
        interruption.hear(signal.SIGINT, None)  # somewhere where it is caught
    with pytest.raises(KeyboardInterrupt):
        interruption.motion_begins()
    moving = Interruption()
    moving.motion_begins()
    moving.hear(signal.SIGINT, None)
    assert moving.is_set()


def test_what_takes_long_says_so(monkeypatch, capfd) -> None:
    monkeypatch.setattr(progress, "_SILENT_FOR", 0.1)
    with progress.progress("waiting"):
        time.sleep(0.3)
    with progress.progress("hurrying"):
        pass
    said = capfd.readouterr().err
    assert said == "pkm: waiting: 0 s ...\n"
    with progress.progress("waiting", lambda: "for kernels"):
        time.sleep(0.3)
    assert capfd.readouterr().err == "pkm: waiting (for kernels): 0 s ...\n"
    left = progress.TimeLeft(0.0)
    assert left.in_words("for kernels, about 25% done", 10.0) == ", about 30 s left"
    assert left.in_words("for kernels, about 1% done", 10.0) == left.in_words("for kernels", 10.0) == ""
    # the next part has a clock of its own, from where it was first seen
    assert left.in_words("for others, about 10% done", 100.0) == ""
    assert left.in_words("for others, about 40% done", 106.0) == ", about 12 s left"
    assert left.in_words("for others, about 40% done", 126.0) == ""  # it stands longer than was foretold


def test_a_compiler_that_fails_of_the_interruption_is_no_failure_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Where C calls back, an interruption is swallowed, and what follows from it comes as another error."""

    def job(mechanism: Mechanism, interruption: Interruption) -> tuple[str, ...]:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        raise RuntimeError("no compiled object yet")

    assert run_in_one_process("simulate", "five_bar", "", job) == 130
    assert "nothing was run" in capsys.readouterr().err

    def broken(mechanism: Mechanism, interruption: Interruption) -> tuple[str, ...]:
        raise RuntimeError("a fault of ours")

    with pytest.raises(RuntimeError, match="ours"):
        run_in_one_process("simulate", "five_bar", "", broken)


def test_an_end_that_is_asked_for_after_a_fault_does_not_hide_it(capsys: pytest.CaptureFixture[str]) -> None:
    """While the page is drawn, it gives up the page, however often."""

    def job(mechanism: Mechanism, interruption: Interruption) -> tuple[str, ...]:
        interruption.motion_begins()
        given_up = interruption.motion_ended()
        assert not given_up()
        for _ in range(5):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        assert given_up()
        return ("the drives were lost",)

    assert run_in_one_process("simulate", "five_bar", "", job) == 1
    assert capsys.readouterr().err.endswith("pkm simulate: the drives were lost\n")
