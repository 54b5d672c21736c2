# SPDX-License-Identifier: Apache-2.0
"""Robots of the gallery are expanded once: what is kept is what an expansion gives, and serves nothing else."""

import re

import pytest

from pkm_description import load
from pkm_description.gallery import LIMBS, ROBOTS, robot_path
from pkm_description.load import expand
from pkm_description.urdf import robot_cache
from pkm_description.urdf.robot_cache import expand_robot
from pkm_description.urdf.xacro_expansion import expand_file

INCLUDED = re.compile(r'<xacro:include\s+filename="(?:\.\./limbs/)?\w+\.xacro"\s*/>')


@pytest.fixture
def expansions(tmp_path, monkeypatch) -> list[str]:
    """Names of the files that xacro expands from now on, with nothing kept before."""
    done: list[str] = []

    def expand_and_count(path, arguments=None):
        done.append(path.name)
        return expand_file(path, arguments)

    monkeypatch.setattr(robot_cache, "expand_file", expand_and_count)
    monkeypatch.setattr(robot_cache, "folders", lambda: (tmp_path / "beside", tmp_path / "own"))
    return done


@pytest.mark.parametrize("name", ["delta", "hexa", "planar_3rrr"])
def test_what_is_kept_is_what_xacro_gives(name: str, expansions: list[str]) -> None:
    path = robot_path(name)
    found = [expand_robot(path) for _ in range(2)]
    assert len(expansions) == 1
    assert found == [expand_file(path)] * 2


def test_arguments_are_told_apart(expansions: list[str]) -> None:
    path = robot_path("delta")
    plain, other = expand_robot(path), expand_robot(path, {"payload": "1"})
    assert len(expansions) == 2
    assert plain != other
    assert (plain, other) == (expand_robot(path), expand_robot(path, {"payload": "1"}))
    assert len(expansions) == 2


def test_what_changes_is_expanded_again(expansions: list[str], tmp_path, monkeypatch) -> None:
    expand_robot(robot_path("five_bar"))
    (tmp_path / "new.xacro").write_text("<robot/>")
    monkeypatch.setattr(robot_cache, "LIMBS", tmp_path)
    expand_robot(robot_path("five_bar"))
    assert len(expansions) == 2


def test_half_a_file_is_expanded_again(expansions: list[str], tmp_path) -> None:
    whole = expand_robot(robot_path("five_bar"))
    (file,) = (tmp_path / "beside").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    assert expand_robot(robot_path("five_bar")) == whole
    assert len(expansions) == 2


def test_where_the_sources_cannot_be_written_the_users_cache_keeps_it(expansions: list[str], tmp_path) -> None:
    (tmp_path / "beside").touch()
    for _ in range(2):
        expand_robot(robot_path("five_bar"))
    assert len(expansions) == 1
    assert len([*(tmp_path / "own").iterdir()]) == 1


def test_where_nothing_can_be_written_robots_are_expanded_each_time(expansions: list[str], tmp_path) -> None:
    (tmp_path / "beside").touch()
    (tmp_path / "own").touch()
    for _ in range(2):
        expand_robot(robot_path("five_bar"))
    assert len(expansions) == 2


def test_other_peoples_files_are_expanded_each_time(expansions: list[str], tmp_path, monkeypatch) -> None:
    own = tmp_path / "five_bar.urdf.xacro"
    text = robot_path("five_bar").read_text()
    own.write_text(text.replace("../limbs/", f"{LIMBS}/"))
    monkeypatch.setattr(load, "expand_robot", None)
    assert 'name="five_bar"' in expand(str(own))[0]


@pytest.mark.parametrize("file", sorted([*ROBOTS.glob("*"), *LIMBS.glob("*.xacro")]), ids=lambda file: file.name)
def test_the_gallery_depends_on_its_files_and_arguments_alone(file) -> None:
    text = file.read_text()
    assert file.suffix == ".xacro"
    assert not re.search(r"\$\((env|optenv|find|dirname|cwd)|load_yaml|xacro\.\w+\(", text)
    assert text.count("<xacro:include") == len(INCLUDED.findall(text))
