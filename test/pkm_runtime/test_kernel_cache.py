# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels are kept from one process to the next wherever that is possible, and load without a compiler."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_runtime import progress
from pkm_runtime.kernels import PURPOSES, kernel_cache
from pkm_runtime.kernels.kernel_cache import COMPILING, CompileLock, Compiling, making

KERNELS = ("analysis.kernels", "analysis.proof.kernels", "control.kernels", "dynamics.kernels", "kinematics.kernels")
for room in (*KERNELS, "hardware.platform_kernels"):
    importlib.import_module(f"pkm_{room}")  # they say what their kernels are for

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
from pkm_runtime.kernels.compiled import compiled
@compiled
def twice(x):
    return 2 * x
"""
CALL = """
import pkm_runtime.kernels.kernel_cache as kept
kept.COMPILING._next = float("inf")  # else a busy computer has a line more
{before}
from kernel import twice
assert twice(1.5) == 3.0
assert twice({second}) == 2
print(sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values()), twice.stats.cache_path)
"""


def call(folder: Path, before: str = "", second: str = "1", **environment: str) -> tuple[int, int, Path, list[str]]:
    """Call a kernel in another process: how often it was found and missed, where it is kept, and what was said."""
    if not (folder / "kernel.py").exists():  # older numbas look at its time
        (folder / "kernel.py").write_text(KERNEL)
    clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    path = os.pathsep.join([str(ROOT), str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(before=before, second=second)],
        env={**clean, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    hits, misses, where = done.stdout.split()
    return int(hits), int(misses), Path(where), done.stderr.splitlines()


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernel, compiled by one process and loaded by the next."""
    folder = tmp_path_factory.mktemp("compiled")
    assert call(folder) == (0, 2, folder / "__pycache__", [])
    assert call(folder) == (2, 0, folder / "__pycache__", [])
    return folder


@pytest.fixture
def kept(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of that folder."""
    return Path(shutil.copytree(compiled_once, tmp_path / "kept"))


@pytest.fixture
def closed(tmp_path: Path) -> dict[str, str]:
    """A package's folder and a home that cannot be written, also by root: files stand in the way."""
    for name in ("__pycache__", "home"):
        (tmp_path / name).touch()
    (tmp_path / "temporary").mkdir()
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "temporary")}


def test_kernels_are_kept_beside_their_sources(kept: Path) -> None:
    assert call(kept) == (2, 0, kept / "__pycache__", [])


@pytest.mark.slow
def test_an_index_that_names_a_type_of_an_older_version_is_made_anew(kept: Path) -> None:
    old = kept / "old_version.py"
    old.write_text("class Type:\n    pass\n")
    (index,) = (kept / "__pycache__").glob("*.nbi")
    mark = f"""
import pickle
from pathlib import Path
import old_version
import numba
with Path({str(index)!r}).open("wb") as file:
    pickle.dump(numba.__version__, file, protocol=-1)
    file.write(pickle.dumps(("stamp", {{"key": old_version.Type}}), protocol=-1))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(kept)])}
    subprocess.run([sys.executable, "-c", mark], env=environment, check=True)
    old.unlink()
    assert call(kept) == (0, 2, kept / "__pycache__", [])
    assert call(kept) == (2, 0, kept / "__pycache__", [])


def test_of_two_processes_one_compiles(tmp_path: Path) -> None:
    slow = """
import time
keep = kept.KernelCache.save_overload
kept.KernelCache.save_overload = lambda *what: (time.sleep(1.0), keep(*what))
"""
    with ThreadPoolExecutor() as pool:
        (first, second) = [pool.submit(call, tmp_path, slow) for _ in range(2)]
    loaded, compiled = zip(*(process.result()[:2] for process in (first, second)), strict=True)
    assert (sum(loaded), sum(compiled)) == (2, 2)  # on a busy computer one each


def test_who_waits_in_vain_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process lives on, but could not compile the kernel."""
    monkeypatch.setattr(kernel_cache, "_PATIENCE", 0.2)
    holding = (
        "import sys; from pkm_runtime.kernels.kernel_cache import CompileLock; "
        "CompileLock(sys.argv[1], 'a').take(); print(); input()"
    )
    command = [sys.executable, "-c", holding, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert not CompileLock(str(tmp_path), "b").take()
        started = time.monotonic()
        assert CompileLock(str(tmp_path), "a").take()
        assert time.monotonic() - started > 0.2
        other.kill()
    assert not CompileLock(str(tmp_path), "a").take()  # whatever its end, nothing is left locked


@pytest.mark.slow
def test_a_kernel_is_compiled_after_another_was_loaded(kept: Path) -> None:
    assert call(kept, second="1 + 0j")[:2] == (1, 1)


IMPORTING = """
from pkm_runtime.kernels.compiled import compiled
from pkm_factor import (
    factor,
)
@compiled
def twice(x):
    return factor(x) * x
"""
FACTOR = """
from pkm_runtime.kernels.compiled import compiled
from pkm_number import TWO
@compiled
def factor(x):
    return TWO
"""


def test_a_kernel_is_compiled_anew_when_what_it_is_made_of_changes(tmp_path: Path) -> None:
    """A function or a number of another file is part of what is compiled; numba looks at the kernel's own alone."""
    (tmp_path / "kernel.py").write_text(IMPORTING)
    (tmp_path / "pkm_factor.py").write_text(FACTOR)
    (tmp_path / "pkm_number.py").write_text("TWO = 2\n")
    assert call(tmp_path)[:2] == (0, 2)
    assert call(tmp_path)[:2] == (2, 0)
    (tmp_path / "pkm_factor.py").write_text(FACTOR.replace("return TWO", "return 1 * TWO"))
    assert call(tmp_path)[:2] == (0, 2)
    (tmp_path / "pkm_number.py").write_text("TWO = 2  # of them\n")
    assert call(tmp_path)[:2] == (0, 2)
    assert call(tmp_path)[:2] == (2, 0)


@pytest.mark.slow
def test_what_is_edited_while_a_process_runs_is_compiled_for_that_process_alone(kept: Path) -> None:
    edit = (
        "import pathlib, kernel, time; time.sleep(0.02); f = pathlib.Path(kernel.__file__); f.write_text(f.read_text())"
    )
    assert call(kept, before=edit)[:2] == (0, 2)
    assert call(kept)[:2] == (0, 2)  # which of the two was compiled, nobody knows
    assert call(kept)[:2] == (2, 0)


def test_a_clock_that_is_set_after_the_start_compiles_nothing_anew(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a small computer that begins in 1970 and is told the time a little later."""
    monkeypatch.setitem(globals(), "CALL", "import time\ntrue, time.time = time.time, lambda: 1e6\n" + CALL)
    assert call(kept, before="time.time = true")[:2] == (2, 0)


LINKED = """
from pkm_runtime.kernels.kernel_cache import COMPILING
COMPILING.quiet = True  # else a busy computer has a line more
from kernel import twice
from pkm_runtime.kernels.compiled import allocating, compiled
import numpy as np
@compiled
def four_times(x):
    return twice(twice(x))
@allocating
def filled(x):
    return np.full(3, twice(x))
assert twice(1.5) == 3.0
assert four_times(1.5) == 6.0
assert filled(1.5).tolist() == [3.0, 3.0, 3.0]
print(*(sum(kernel.stats.cache_hits.values()) for kernel in (twice, four_times, filled)))
"""


@pytest.mark.slow
def test_a_loaded_kernel_is_linked_into_others_and_loads_beside_those_that_count_references(kept: Path) -> None:
    (kept / "linked.py").write_text(LINKED)
    clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = {**clean, "PYTHONPATH": os.pathsep.join([str(ROOT), str(kept)])}
    for hits in ("1 0 0", "1 1 1"):
        command = [sys.executable, "-c", "import linked"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (done.stdout.strip(), done.stderr) == (hits, "")


LONG = """
from math import sqrt
from pkm_runtime.kernels.compiled import compiled
@compiled
def long(x):
{steps}
    return x
"""
CALLER = """
import sys
from pkm_runtime.kernels.kernel_cache import COMPILING
COMPILING.quiet = True  # else a busy computer has a line more
from pkm_runtime.kernels.compiled import compiled
from long_kernel import long
@compiled
def caller(x):
    return long(x) + 1.0
print(caller(2.0) == long.py_func(2.0) + 1.0, *(sum(kernel.stats.cache_hits.values()) for kernel in (long, caller)))
"""


@pytest.mark.slow
def test_a_long_kernel_is_not_compiled_again_into_those_that_call_it(tmp_path: Path) -> None:
    """It comes with them from the cache; where it was compiled anew, under another name, they are, too."""
    steps = "\n".join(f"    x = sqrt(x + {k}.0)" for k in range(200))
    (tmp_path / "long_kernel.py").write_text(LONG.format(steps=steps))
    (tmp_path / "linked.py").write_text(CALLER)
    clean = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment = {**clean, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(before: str = "") -> tuple[str, str]:
        command = [sys.executable, "-c", f"{before}import linked"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.stderr

    assert run() == ("True 0 0", "")
    cache = tmp_path / "__pycache__"
    (of_long,), (of_caller,) = cache.glob("long_kernel.*.nbc"), cache.glob("linked.*.nbc")
    assert of_caller.stat().st_size < 0.7 * of_long.stat().st_size
    assert run() == ("True 1 1", "")
    for file in cache.glob("long_kernel.*.nb?"):
        file.unlink()
    another = (
        "import numba; numba.njit(lambda x: x)(1); numba.njit(lambda x: -x)(1); "  # numba counts kernels in their names
    )
    assert run(another) == ("True 0 0", "")
    assert run() == ("True 1 1", "")


@pytest.mark.slow
def test_where_nothing_can_be_written_a_temporary_folder_keeps_them_and_a_line_says_so(tmp_path, closed) -> None:
    place = tmp_path / "temporary" / f"pkm_kernels_{os.getuid()}"
    for hits in (0, 2):
        found, _, where, (said,) = call(tmp_path, **closed)
        assert found == hits
        assert where.parent == place
        assert said.startswith(f"pkm: compiled kernels are kept in {place}, until the machine clears it: ")
        assert "NUMBA_CACHE_DIR" in said
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path: Path, closed: dict[str, str]) -> None:
    place = tmp_path / "temporary" / f"pkm_kernels_{os.getuid()}"
    place.mkdir()
    place.chmod(0o777)
    _, _, where, (said,) = call(tmp_path, **closed)
    assert where.parent != place
    assert "until this process ends" in said
    assert [*(tmp_path / "temporary").iterdir()] == [place]


@pytest.mark.slow
def test_a_place_that_the_user_names_is_used(tmp_path: Path, closed: dict[str, str]) -> None:
    assert call(tmp_path, **closed, NUMBA_CACHE_DIR=str(tmp_path / "named"))[2].parent == tmp_path / "named"


@pytest.mark.slow
def test_kernels_of_an_installation_are_read_by_those_who_cannot_write_there(kept: Path) -> None:
    home = kept / "home"
    barred = f"old = kept._can_write; kept._can_write = lambda f: not f.startswith({str(kept / '__pycache__')!r})"
    hits, _, where, said = call(kept, barred, HOME=str(home))
    assert (hits, said) == (2, [])
    assert home in where.parents


def test_kernels_that_others_may_have_kept_are_not_run(kept: Path) -> None:
    (kept / "__pycache__").chmod(0o777)
    home = kept / "home"
    for hits in (0, 2):  # kept in the user's own folder from now on
        found, _, where, _ = call(kept, HOME=str(home))
        assert found == hits
        assert home in where.parents


def test_a_full_disk_ends_nothing(tmp_path: Path) -> None:
    full = "def fail(*_): raise OSError(28, 'No space left on device')\nkept.caching.IndexDataCacheFile.save = fail"
    hits, misses, _, (said,) = call(tmp_path, full)
    assert (hits, misses) == (0, 2)
    assert said.startswith("pkm: compiled kernels cannot be kept")


FIRST = """
import sys
import pkm_dynamics
import pkm_kinematics
imported = set(sys.modules)
from pkm_description import load_mechanism
kinematics = pkm_kinematics.Kinematics(load_mechanism("delta"))
assert kinematics.inverse(kinematics.home).ok
for modules in (imported, set(sys.modules)):
    print(*sorted(modules))
"""


def test_compiling_that_takes_long_is_told(tmp_path: Path) -> None:
    """Two kernels, each of which takes a second and a half on a clock that is made up; loaded, they take nothing."""
    slow = (
        "kept.COMPILING.{0} = (lambda f: lambda *a: (clock.__setitem__(0, clock[0] + {1}), f(*a)))(kept.COMPILING.{0})"
    )
    lines = (
        "kept.COMPILING._next, clock = 2.0, [0.0]",
        "still = {'time': lambda: 0.0, 'process_time': lambda: 0.0}",
        "kept.time = type('clock', (), {'monotonic': staticmethod(lambda: clock[0]), **still})",
        slow.format("begins", 100.0),
        slow.format("ends", 1.5),
    )
    before = "\n".join(lines)
    *_, said = call(tmp_path, before=before)
    assert said == ["pkm: compiling kernels, once on this computer: 3 s so far"]  # and not the time between them
    *_, said = call(tmp_path, before=before)
    assert said == []


def test_what_a_first_inverse_does_without() -> None:
    """The imports that made `import pkm_kinematics` and a first answer slow: SciPy's parts and numba's compiler."""
    kinematics = Kinematics(load_mechanism("delta"))
    kinematics.inverse(kinematics.home)  # compiled, if it was not
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True, cwd=ROOT)
    imported, used = (set(line.split()) for line in done.stdout.splitlines())
    assert "pkm_kinematics.kernels.position.solve_poses" in imported
    late = {"scipy.linalg", "scipy.spatial", "scipy.special", "scipy.sparse", "matplotlib", "xacro"}
    late |= {"pkm_kinematics.assembly", "pkm_description.formats.mjcf_importer"}
    late |= {"numba.np.arrayobj", "numba.np.linalg", "numba.typed.typeddict"}
    assert not late & used


def test_what_is_compiled_is_told_with_what_it_is_for_and_how_much_is_done() -> None:
    """By the outermost kernel: those that it calls are compiled for its sake."""
    compiling = Compiling()
    assert compiling.in_words() == ""
    compiling.begins("pkm_kinematics.assembly.quadrics")
    compiling.begins("pkm_kinematics.kernels.vectors")
    assert "for all assembly modes of hexapods and their like, about 0% done" in compiling.in_words()
    compiling._began -= 1.5  # of processor time, of six in all
    assert re.search(r"about 2[5-9]% done", compiling.in_words())
    compiling.ends()
    compiling.ends()
    assert compiling.in_words() == ""
    compiling.begins("pkm_kinematics.assembly.roots")
    assert re.search(r"about 2[5-9]% done", compiling.in_words())  # what was done before counts
    compiling._began -= 100.0
    assert "about 95% done" in compiling.in_words()
    compiling.ends()
    compiling.begins("kernel")
    assert compiling.in_words() == "compiling kernels, once on this computer"


def test_that_kernels_are_compiled_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SILENT_FOR", 0.01)
    for what, said in (("compiling kernels", ""), ("planning", r"planning \(")):
        COMPILING.begins("pkm_dynamics.kernels.wrenches")
        try:
            with making(what):
                time.sleep(0.2)
        finally:
            COMPILING.ends()
        err = capsys.readouterr().err
        words = rf"pkm: {said}compiling kernels, once on this computer: for the dyn[^()]+\)?"
        assert re.fullmatch(words + r": 0 s(, about \d+ s left)? \.\.\.\n", err)


def test_the_rooms_of_kernels_that_are_told_are_there() -> None:
    assert {module.partition(".")[0] for module in PURPOSES} >= {
        "pkm_kinematics",
        "pkm_dynamics",
        "pkm_analysis",
        "pkm_control",
    }
    for module in PURPOSES:
        assert (ROOT / module.replace(".", "/")).is_dir() or (ROOT / f"{module.replace('.', '/')}.py").is_file()
