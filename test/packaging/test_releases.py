# SPDX-License-Identifier: Apache-2.0
"""What a release states in several places is stated alike: version, licence, libraries, the commands of a container."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
# Python packages that rosdep/python.yaml of the ROS distributions has apt install on Debian and Ubuntu. A key that is
# neither here nor a ROS package has to be looked up there first: pip refuses to install beside apt since Ubuntu 24.04.
BY_APT = {"python3-hypothesis", "python3-matplotlib", "python3-numba", "python3-numpy", "python3-pytest"} | {
    "python3-scipy",
    "python3-yaml",
}


def manifest(folder: str) -> ET.Element:
    return ET.parse(ROOT / folder / "package.xml").getroot()


def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile: word and rest, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def commands_of_the_readme() -> list[str]:
    block = (ROOT / "README.md").read_text().split("```bash\n")[1].split("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def test_the_container_runs_the_commands_of_the_readme() -> None:
    words = [word for word, _ in instructions()]
    assert set(words) <= {"FROM", "RUN", "WORKDIR", "COPY", "CMD"}
    assert words[0] == "FROM"
    assert words[-1] == "CMD"
    run, test = commands_of_the_readme()
    (started,) = [rest for word, rest in instructions() if word == "CMD"]
    assert " ".join(re.findall(r'"([^"]+)"', started)) == run
    assert test in (ROOT / "Dockerfile").read_text()


def test_what_the_container_copies_is_there_and_what_was_built_here_stays_out() -> None:
    for rest in (rest for word, rest in instructions() if word == "COPY"):
        *sources, _ = rest.split()
        assert all((ROOT / source).exists() for source in sources)
    left_out = set((ROOT / ".dockerignore").read_text().split())
    assert {".venv", ".git", "build", "install", "log", "**/__pycache__"} <= left_out
    assert not left_out & {"test", "docs", "requirements", "pkm", "pkm_*"}


def test_the_container_has_a_python_for_which_ros_wheels_exist() -> None:
    (image,) = [rest for word, rest in instructions() if word == "FROM"]
    version = re.match(r"python:3\.(\d+)-slim", image)
    assert version is not None
    assert 10 <= int(version[1]) <= 13


def test_the_citation_is_complete_and_of_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)  # what the schema 1.2.0 requires
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert cited["authors"] == [{"name": manifest(".").findtext("maintainer")}]
    assert cited["license"] == manifest(".").findtext("license")
    assert cited["version"] == manifest(".").findtext("version") == manifest("pkm_interfaces").findtext("version")
    assert f'version="{cited["version"]}"' in (ROOT / "setup.py").read_text()


def test_rosdep_brings_every_dependency_without_pip() -> None:
    keys = {e.text for folder in (".", "pkm_interfaces") for e in manifest(folder) if e.tag.endswith("depend")}
    assert {key for key in keys if key and key.startswith("python")} <= BY_APT
    assert not [key for key in keys if key and key.endswith("-pip")]
