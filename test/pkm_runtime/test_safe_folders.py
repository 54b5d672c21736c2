# SPDX-License-Identifier: Apache-2.0
"""What others may have written is neither run nor believed: folders that another user owns, or can write to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pkm_description import load, load_mechanism
from pkm_description.urdf import robot_cache
from pkm_runtime.whole_files import is_safe, read_safely, safe_folder

Spoil = Callable[[Path, pytest.MonkeyPatch], None]


def of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's files look as another user's do: root can give them away, others pretend to be somebody else."""
    if os.getuid() == 0:
        for path in (folder, *folder.iterdir()):
            os.chown(path, 4321, 4321)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4321)


def open_to_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.chmod(0o777)


def a_link(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to(folder.with_name("elsewhere"))


SPOILS = (of_another_user, open_to_all, a_link)


@pytest.mark.parametrize("spoil", SPOILS)
def test_robots_and_expansions_that_others_may_have_kept_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Spoil
) -> None:
    folder = tmp_path / "kept"
    monkeypatch.setattr(robot_cache, "folders", lambda: (folder,))
    load_mechanism("five_bar")
    kept = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {Path(name).suffix for name in kept} == {".robot", ".expanded"}
    text = load_mechanism("five_bar").urdf
    source = str(load.find_robot("five_bar"))
    assert robot_cache.find_mechanism(text, source) is not None
    spoil(folder, monkeypatch)
    assert robot_cache.find_mechanism(text, source) is None
    expanded: list[Path] = []
    expand_file = robot_cache.expand_file
    monkeypatch.setattr(
        robot_cache, "expand_file", lambda path, arguments: (expanded.append(path), expand_file(path, arguments))[1]
    )
    assert load_mechanism("five_bar").urdf == text
    assert expanded
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == kept  # nor is anything written there


def test_a_file_that_is_a_link_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    folder = safe_folder(tmp_path / "kept")
    (folder / "whole").write_bytes(b"content")
    (folder / "link").symlink_to(folder / "whole")
    os.mkfifo(folder / "pipe")
    assert read_safely(folder, "whole") == b"content"
    with pytest.raises(OSError, match="link"):
        read_safely(folder, "link")
    assert read_safely(folder, "pipe") == b""  # and does not wait for who writes


def test_folders_are_made_for_their_user_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        assert safe_folder(tmp_path / "above" / "kept").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(old)


@pytest.mark.parametrize(
    ("mode", "sources", "safe"),
    [(0o755, 0o755, True), (0o775, 0o775, True), (0o777, 0o755, False), (0o777, 0o777, True), (0o757, 0o775, False)],
)
def test_beside_the_sources_who_may_change_these_may_change_what_is_kept(
    tmp_path: Path, mode: int, sources: int, safe: bool
) -> None:
    above, folder = tmp_path / "above", tmp_path / "above" / "__pycache__"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    above.chmod(sources)
    assert is_safe(folder.stat(), above.stat()) == safe
