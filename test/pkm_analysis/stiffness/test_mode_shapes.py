# SPDX-License-Identifier: Apache-2.0
"""What is drawn of a vibration is its shape: in the page's moving picture, in the layer, to one factor."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.command_line.analyse import main
from pkm_analysis.drawing.elastic_pictures import FRAMES, LARGE, POINTS, SIDES
from pkm_analysis.layer_file import read_layer
from pkm_analysis.stiffness.stiffness_files import LOWEST, ModeShapes
from pkm_description import load_mechanism
from pkm_description.picture import View


@pytest.fixture(scope="module")
def modes() -> ModeShapes:
    return ModeShapes(Analysis(load_mechanism("five_bar"), stiffness=2e5).stiffness(payload=1.0))


def ends(modes: ModeShapes, mode: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of every beam (n, 3), and how far the shape moves them, its rigid nodes taken as they are."""
    model, shape = modes.of.model, modes.shapes[:, :, mode]
    places, moved = [], []
    for beam in model.beams:
        for node, point in zip(beam.joins, (beam.piece.start, beam.piece.end), strict=True):
            places.append(point)
            moved.append(shape[node, :3] + np.cross(shape[node, 3:], point - model.origin))
    return np.array(places), np.array(moved)


def test_the_layer_swings_by_the_shape(modes: ModeShapes, tmp_path: Path) -> None:
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.load(str(modes.save(tmp_path / "modes.glb")), force="scene", process=False)
    sheets = list(scene.geometry.items())
    assert scene.metadata["moving"] == FRAMES
    assert len(sheets) == LOWEST * FRAMES
    assert [one.name for one in read_layer(tmp_path / "modes.glb").sheets] == [f"{name} #0" for name in modes.names]
    beams = len(modes.of.model.beams)
    for mode in range(LOWEST):
        places, moved = ends(modes, mode)
        factors = []
        for frame in (0, FRAMES // 2, FRAMES - 1):
            corners = np.asarray(sheets[mode * FRAMES + frame][1].vertices)[: beams * POINTS * SIDES]
            rings = corners.reshape(beams, POINTS, SIDES, 3).mean(axis=2)[:, [0, -1]].reshape(-1, 3) - places
            factor = float((rings * moved).sum() / (moved * moved).sum())
            assert rings == pytest.approx(factor * moved, abs=1e-6)  # a GLB file has single precision
            factors.append(factor)
        assert factors[1] == pytest.approx(0.0, abs=1e-6 * abs(factors[0]))
        assert factors[2] == pytest.approx(-factors[0], rel=1e-5)
        largest = np.linalg.norm(factors[0] * moved, axis=1).max()
        assert largest <= 1.001 * LARGE * np.ptp(places, axis=0).max()


def test_the_page_moves_between_the_ends_of_the_shape(modes: ModeShapes) -> None:
    """The ends of each beam on the page, from one end of its way to the other, are the shape as the view sees it."""
    panels = re.findall(r"<g .*?</g>", modes.animation, re.DOTALL)
    assert len(panels) == LOWEST
    directions = View(np.concatenate([b.piece.start[None] for b in modes.of.model.beams]))
    for mode, panel in enumerate(panels):
        _, moved = ends(modes, mode)
        seen = directions.seen(moved)[:, :2] * [1.0, -1.0]
        ways = []
        for values in re.findall(r'values="([^"]*)"', panel)[-len(modes.of.model.beams) :]:
            to, back, again = (one.replace(",", " ").split() for one in values.split(";"))
            assert to == again
            places = [np.array(one, dtype=float).reshape(-1, 2)[[0, -1]] for one in (to, back)]
            ways.append(0.5 * (places[0] - places[1]))
        drawn = np.concatenate(ways)
        factor = float((drawn * seen).sum() / (seen * seen).sum())
        assert drawn == pytest.approx(factor * seen, abs=0.051)  # places are written to a tenth of a pixel
        assert np.abs(drawn).max() > 5.0


def test_a_shape_needs_as_much_energy_to_bend_as_it_has_in_motion(modes: ModeShapes) -> None:
    """Rayleigh: the work of the inertial forces omega^2 M v on what they bend is omega^4 v M C M v = omega^2 v M v."""
    of = modes.of
    m = of.model
    for k, frequency in enumerate(modes.frequency):
        square, shape = (2.0 * np.pi * frequency) ** 2, modes.shapes[:, :, k]
        loads = np.zeros((len(m.nodes), 6, 1))
        for one in m.masses:
            arm = one.point - m.origin
            speed = shape[one.node, :3] + np.cross(shape[one.node, 3:], arm)
            force, moment = square * one.mass * speed, square * one.inertia @ shape[one.node, 3:]
            loads[one.node, :, 0] += [*force, *(moment + np.cross(arm, force))]
        loads[m.platform, :3, 0] += square * of.payload * shape[m.platform, :3]
        bent = of.system.response(loads).nodes[:, :, 0]
        assert bent == pytest.approx(shape, abs=1e-6 * np.abs(shape).max())


@pytest.mark.slow
def test_the_command_writes_picture_page_and_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    for file in ("modes.png", "modes.glb"):
        assert main(["five_bar", "stiffness", "--vibrations", str(tmp_path / file), "--report", str(page)]) == 0
        assert (tmp_path / file).stat().st_size > 10_000
    assert "mode 1" in capsys.readouterr().out
    assert "<animate " in page.read_text()
    assert main(["five_bar", "stiffness", "--vibrations", str(tmp_path / "a.txt"), "--report", str(page)]) == 2
