# SPDX-License-Identifier: Apache-2.0
"""The script at the root: what it says, and how it explains what goes wrong. Its running shows that it sets up."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("pkm_script", str(ROOT / "pkm"))
    spec = importlib.util.spec_from_loader("pkm_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


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
