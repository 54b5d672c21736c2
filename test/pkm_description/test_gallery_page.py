# SPDX-License-Identifier: Apache-2.0
"""The gallery page is generated and cannot drift from the descriptions."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

from pkm_description import load_mechanism, robot_names
from pkm_description.picture import View, draw, held, link_poses

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_page_fits_the_descriptions() -> None:
    spec = importlib.util.spec_from_file_location("make_gallery", DOCS / "make_gallery.py")
    assert spec is not None
    assert spec.loader is not None
    make_gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_gallery)
    assert make_gallery.check() == [], "run python docs/make_gallery.py"
    assert all((DOCS / "pictures" / f"{name}.png").is_file() for name in robot_names())


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "delta.png"
    mechanism = load_mechanism("delta")
    draw(mechanism, path, size=120)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert link_poses(mechanism)["platform"][:3, 3].tolist() == mechanism.home[:3, 3].tolist()


def test_pictures_are_large_and_the_repository_small() -> None:
    sizes = {name: Image.open(DOCS / "pictures" / f"{name}.png").size for name in robot_names()}
    assert {name: size for name, size in sizes.items() if min(size) < 800} == {}
    assert sum(file.stat().st_size for file in (DOCS / "pictures").iterdir()) < 12e6


def test_moving_pictures_of_the_readme_move_and_are_small() -> None:
    shown = re.findall(r"docs/pictures/(\w+)\.gif", (DOCS.parent / "README.md").read_text(encoding="utf-8"))
    assert len(set(shown)) == 6
    assert set(shown) <= set(robot_names())
    for name in shown:
        path = DOCS / "pictures" / f"{name}.gif"
        assert path.stat().st_size < 400e3, name
        frames = [np.asarray(frame.convert("L"), dtype=int) for frame in ImageSequence.Iterator(Image.open(path))]
        assert len(frames) >= 24, name
        elsewhere = [frame for frame in frames if (np.abs(frame - frames[0]) > 30).sum() > 100]
        assert len(elsewhere) > len(frames) // 2, name


def test_a_view_keeps_lengths_across_its_rays_and_holds_the_robot() -> None:
    points = held(load_mechanism("delta"))
    view = View(points)
    axes = np.array([view.right, view.up, view.back])
    assert np.allclose(axes @ axes.T, np.eye(3))
    assert np.linalg.det(axes) > 0.0
    seen = view.seen(points)[:, :2]
    assert np.all(np.abs(seen - view.middle) <= 0.5 * view.size)
    assert np.isclose(np.diff(view.seen(np.array([[0.0, 0.0, 0.0], 0.2 * view.right])), axis=0)[0, 0], 0.2)
