# SPDX-License-Identifier: Apache-2.0
"""The gallery page is generated and cannot drift from the descriptions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pkm_description import load_mechanism, robot_names
from pkm_description.picture import draw, link_poses

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
