# SPDX-License-Identifier: Apache-2.0
"""The wheel holds all that a script without ROS needs, and what ROS looks for; installed on its own, it works.

Both are built as users build them, from a copy of the clone without what the build leaves behind, by way of the source
distribution, so that this is whole, too.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(file.parent.name for file in ROOT.glob("pkm_*/__init__.py"))
LEFT = shutil.ignore_patterns(".*", "__pycache__", "build", "*.egg-info", "install", "log", "reports", "test", "bench")
FIRST = """
import resource, time
started = time.process_time()
import pkm_kinematics
imported = time.process_time() - started
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
kinematics = Kinematics(load_mechanism("delta"))
answer = kinematics.inverse(kinematics.home)
used = resource.getrusage(resource.RUSAGE_SELF)
print(int(answer.status), imported, used.ru_utime + used.ru_stime, pkm_kinematics.__file__)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel made from that."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, folder / "clone", ignore=LEFT, symlinks=True)
    build = "from setuptools import build_meta; build_meta.build_sdist('..')"
    subprocess.run([sys.executable, "-c", build], cwd=folder / "clone", check=True, capture_output=True)
    (source,) = folder.glob("*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder)]  # no network is needed
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as opened:
        yield opened


def sources() -> set[str]:
    """What git would track below the packages."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    return {f.relative_to(ROOT).as_posix() for f in files if "__pycache__" not in f.parts}


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    held = set(wheel.namelist())
    assert "pkm_description/robots/delta.urdf.xacro" in held
    assert sources() - held == set()
    assert not [name for name in held if "__pycache__" in name]
    assert {name.split("/")[0] for name in held if ".d" not in name.split("/")[0]} == set(PACKAGES)


def test_wheel_holds_what_ros_looks_for(wheel: zipfile.ZipFile) -> None:
    shared = {name.partition(".data/data/")[2] for name in wheel.namelist() if ".data/data/" in name}
    assert "share/ament_index/resource_index/packages/pkm_control" in shared
    assert "share/pkm_control/package.xml" in shared
    wanted = [*(ROOT / "launch").glob("*.py"), *(ROOT / "pkm_description" / "robots").iterdir()]
    wanted += [ROOT / "rviz" / "pkm.rviz", ROOT / "config" / "controllers.yaml"]
    missing = [f.name for f in wanted if f.is_file() and f"share/pkm_control/{f.relative_to(ROOT)}" not in shared]
    assert missing == []


def test_commands_of_the_wheel_lead_to_functions(wheel: zipfile.ZipFile) -> None:
    (name,) = [one for one in wheel.namelist() if one.endswith("entry_points.txt")]
    commands = configparser.ConfigParser()
    commands.read_string(wheel.read(name).decode())
    assert "pkm" in commands["console_scripts"]
    for target in commands["console_scripts"].values():
        module, function = target.split(":")
        assert f"\ndef {function}(" in (ROOT / f"{module.replace('.', '/')}.py").read_text(), target


def test_source_distribution_leaves_tests_and_leftovers_out(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    assert {"setup.py", "setup.cfg", "pyproject.toml", "package.xml", "README.md", "LICENSE"} <= held
    assert [name for name in held if name.endswith((".nbi", ".nbc", ".pyc")) or name.startswith(".venv")] == []


def test_libraries_are_those_of_the_clone() -> None:
    """Both installations ask for the same; xacro is pinned where ROS wheels are."""
    asked = dict(re.findall(r"^([\w-]+)((?:[<>=]=?[\d.]+,?)+)", (ROOT / "requirements" / "bare.txt").read_text(), re.M))
    named = dict(re.findall(r'"([\w-]+)((?:[<>=]=?[\d.]+,?)+)"', (ROOT / "setup.py").read_text()))
    assert {"numpy", "scipy", "numba"} <= set(named)
    same = {name: asked[name] for name in named if name in asked and name != "xacro"}
    assert {name: named[name] for name in same} == same


def bare(folder: Path) -> Path:
    """Python of a virtual environment with nothing in it."""
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


def run(python: Path, *words: str, **environment: str) -> list[str]:
    """Words that a program prints, run where no clone is in sight."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(
        [python, *words], cwd=python.parent, env={**clean, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.slow
def test_first_inverse_in_a_bare_environment(built: Path, tmp_path: Path) -> None:
    python = bare(tmp_path / "bare")
    (file,) = built.glob("*.whl")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", str(file)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index to install numpy and the like from")
    assert done.returncode == 0, done.stderr[-2000:]
    status, _, used, where = run(python, "-c", FIRST)
    assert status == "0"
    assert str(tmp_path) in where
    assert float(used) < 60.0  # s of the processor, with all kernels that it needs compiled
    status, imported, used, _ = run(python, "-c", FIRST)
    assert float(imported) < 1.2  # s of the processor
    assert float(used) < 5.0
    packages = Path(where).parents[1]
    for cache in packages.glob("pkm_*/**/__pycache__"):  # as where the installation cannot be written
        shutil.rmtree(cache)
        cache.write_text("")
    home = tmp_path / "home"
    home.mkdir()
    for most in (60.0, 5.0):  # compiled into the user's cache, then found there
        status, _, used, _ = run(python, "-c", FIRST, HOME=str(home), XDG_CACHE_HOME=str(home))
        assert status == "0"
        assert float(used) < most
    assert list(home.rglob("*.nbc")) != []
    assert "usable," in run(python.with_name("pkm"), "check", "delta")
