# SPDX-License-Identifier: Apache-2.0
"""colcon's builds compile the kernels; pip's do not, and no build fails because of them."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import setuptools

from pkm_bringup import warm_kernels
from pkm_description import robot_names

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What setup.py defines."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.delenv("PKM_KERNELS", raising=False)
    return runpy.run_path("setup.py")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with a package and a kernel that was compiled from what stood there before."""
    kernels = tmp_path / "pkm_kinematics" / "kernels"
    (kernels / "__pycache__").mkdir(parents=True)
    (kernels / "one.py").write_text("ONE = 1\n")
    (kernels / "__pycache__" / "one.py311.1.nbc").touch()
    return tmp_path


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """The environments of programs that are started, which end well."""
    environments: list[dict[str, str]] = []

    def run(program: list[str], env: dict[str, str], **_: Any) -> None:
        assert program[1:] == ["-m", "pkm_bringup.warm_kernels", "--kinds"]
        environments.append(env)

    monkeypatch.setattr(subprocess, "run", run)
    return environments


def test_colcon_compiles_what_it_installed_once(script, installed, runs, monkeypatch) -> None:
    monkeypatch.setenv("COLCON", "1")
    monkeypatch.setenv("PYTHONPATH", "/build/prefix_override:/x/colcon_distutils_commands:/opt/ros/python")
    for _ in range(2):
        script["compile_kernels"](installed, forget=True)
    (environment,) = runs
    assert environment["PYTHONPATH"] == f"{installed}:/opt/ros/python"
    assert not [*installed.glob("**/*.nbc")]
    (installed / "pkm_kinematics" / "kernels" / "one.py").write_text("ONE = 2\n")
    script["compile_kernels"](installed, forget=True)
    assert len(runs) == 2


def test_kernels_beside_linked_sources_are_left_to_who_edits_them(script, installed, runs, monkeypatch) -> None:
    monkeypatch.setenv("COLCON", "1")
    script["compile_kernels"](installed, forget=False)
    assert len(runs) == 1
    assert [*installed.glob("**/*.nbc")]


@pytest.mark.parametrize("environment", [{}, {"COLCON": "1", "PKM_KERNELS": "0"}])
def test_others_compile_nothing(script, installed, runs, monkeypatch, environment: dict[str, str]) -> None:
    monkeypatch.delenv("COLCON", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    script["compile_kernels"](installed, forget=True)
    assert not runs
    assert [*installed.glob("**/*.nbc")]


@pytest.mark.parametrize("python", ["/bin/false", "/nowhere/python"])
def test_a_failure_is_said_and_fails_nothing(script, installed, monkeypatch, capfd, python: str) -> None:
    monkeypatch.setenv("COLCON", "1")
    monkeypatch.setattr(sys, "executable", python)
    script["compile_kernels"](installed, forget=True)
    assert "kernels are not compiled, so that the first launch takes minutes" in capfd.readouterr().err


def test_a_link_to_the_script_serves_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`colcon build --symlink-install` runs one, in a folder of its own."""
    given: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(setuptools, "setup", lambda **keywords: given.update(keywords))
    (tmp_path / "setup.py").symlink_to(ROOT / "setup.py")
    runpy.run_path("setup.py")
    assert given["long_description"].startswith("# ")


def test_kinds_are_warmed_after_the_robot_and_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[str] = []
    monkeypatch.setattr(warm_kernels, "warm_kernels", lambda mechanism: warmed.append(mechanism.name) or 0.0)
    monkeypatch.setattr(warm_kernels, "warm_kind", lambda name: warmed.append(name) or 0.0)
    monkeypatch.setattr(warm_kernels, "note_compiled", lambda *_: None)
    assert warm_kernels.main(["five_bar"]) == 0
    assert warmed == ["five_bar"]
    assert warm_kernels.main(["five_bar", "--kinds"]) == 0
    assert warmed == ["five_bar", "five_bar", *warm_kernels.KINDS]
    assert set(warm_kernels.KINDS) <= set(robot_names())
