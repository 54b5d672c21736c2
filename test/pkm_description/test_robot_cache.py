# SPDX-License-Identifier: Apache-2.0
"""Robots are built once: what is kept is what a description gives, and serves nothing else."""

import dataclasses
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, Mechanism, load, load_mechanism
from pkm_description.from_urdf import mechanism_from_urdf
from pkm_description.gallery import robot_path
from pkm_description.urdf import robot_cache
from pkm_description.urdf.xacro_expansion import expand_file


@pytest.fixture
def built(tmp_path, monkeypatch) -> list[str]:
    """Files from which robots are built from now on, with nothing kept before."""
    done: list[str] = []

    def build_and_count(text: str, source: str = "") -> Mechanism:
        done.append(source)
        return mechanism_from_urdf(text, source)

    monkeypatch.setattr(load, "mechanism_from_urdf", build_and_count)
    monkeypatch.setattr(robot_cache, "folders", lambda: (tmp_path / "beside", tmp_path / "own"))
    return done


@pytest.fixture
def file(tmp_path) -> Path:
    found = tmp_path / "robot.urdf"
    found.write_text(expand_file(robot_path("five_bar")))
    return found


def same(one: object, other: object) -> bool:
    """Whether two parts of robots hold the same, arrays read-only in both or in neither."""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return one.flags.writeable == other.flags.writeable and np.array_equal(one, other, equal_nan=True)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return type(one) is type(other) and all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("name", ["agile_eye", "capaman", "delta", "gough_stewart", "h4", "planar_redundant"])
def test_what_is_kept_is_what_a_description_gives(name: str, built: list[str]) -> None:
    first, second = load_mechanism(name), load_mechanism(name)
    assert len(built) == 1
    assert same(first, second)
    assert not second.home.flags.writeable


def test_what_changes_is_built_again(built: list[str], file: Path) -> None:
    load_mechanism(file)
    file.write_text(file.read_text().replace('name="five_bar"', 'name="another"'))
    assert load_mechanism(file).name == "another"
    assert len(built) == 2


def test_other_sources_build_again(built: list[str], file: Path, monkeypatch) -> None:
    load_mechanism(file)
    monkeypatch.setattr(robot_cache, "_code_state", lambda: "other sources")
    load_mechanism(file)
    assert len(built) == 2


def test_what_was_cut_off_or_written_over_is_built_again(built: list[str], file: Path, tmp_path) -> None:
    load_mechanism(file)
    (kept,) = (tmp_path / "beside").iterdir()
    whole = kept.read_bytes()
    for content in (whole[:-10], b"", whole[:32] + pickle.dumps(os.getcwd)):
        kept.write_bytes(content)
        assert load_mechanism(file).name == "five_bar"
        assert kept.read_bytes() == whole
    assert len(built) == 4


def test_texts_and_errors_are_not_kept(built: list[str], file: Path, tmp_path) -> None:
    load_mechanism(file.read_text())
    file.write_text("<robot name='none'/>")
    with pytest.raises(DescriptionError):
        load_mechanism(file)
    assert not (tmp_path / "beside").exists()


def test_no_more_than_some_are_kept(built: list[str], file: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(robot_cache, "MOST", 2)
    text = file.read_text()
    for k in range(4):
        file.write_text(text.replace('name="five_bar"', f'name="robot_{k}"'))
        load_mechanism(file)
    assert len([*(tmp_path / "beside").iterdir()]) == 2
    assert load_mechanism(file).name == "robot_3"
    assert len(built) == 4


def test_where_nothing_can_be_written_robots_are_built_each_time(built: list[str], file: Path, tmp_path) -> None:
    (tmp_path / "beside").touch()
    (tmp_path / "own").touch()
    for _ in range(2):
        load_mechanism(file)
    assert len(built) == 2
