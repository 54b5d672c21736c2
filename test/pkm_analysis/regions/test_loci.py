# SPDX-License-Identifier: Apache-2.0
"""Surfaces of singularities lie where others say they are, and layers are what the page and RViz show."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.layer_file import read_layer
from pkm_analysis.regions.loci import TYPE_1
from pkm_description import load_mechanism


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


@pytest.mark.slow
def test_type_2_of_six_legs_is_a_cubic_surface_where_lines_depend() -> None:
    # At a constant orientation the determinant of the legs' lines, times the lengths, is a cubic in the position
    # (Mayer St-Onge and Gosselin, "Singularity analysis and representation of the general Gough-Stewart platform",
    # 2000).
    found = analysis("gough_stewart").loci({"x": (-1, 1), "y": (-1, 1), "z": (0.3, 1.3)}, resolution=13)
    surface = {one.name: one for one in found.loci}["type 2"]
    x, y, z = surface.corners.T
    powers = [(i, j, k) for i in range(4) for j in range(4 - i) for k in range(4 - i - j)]
    terms = np.column_stack([x**i * y**j * z**k for i, j, k in powers])
    values = np.linalg.svd(terms, compute_uv=False)
    assert len(x) > 200
    assert values[-1] < 1e-4 * values[-2]  # one cubic, and one alone, goes through all of them


def test_type_1_of_a_linear_delta_is_where_rods_lie_across_their_rails() -> None:
    a = analysis("linear_delta")
    found = a.loci(resolution=15)
    surface = {one.name: one for one in found.loci}[TYPE_1]
    poses = found.domain.poses(surface.corners)[0]
    k = a.robot.kinematics
    inner = poses.copy()
    inner[:, :2] *= 0.995
    solved = k.inverse(inner)
    reached = solved.status == 0
    assert reached.mean() > 0.8
    margins = k.singularity(inner[reached]).type1
    home = float(k.singularity(k.home).type1)
    assert float(np.median(margins)) < 0.2 * home


def test_layers_hold_names_units_and_places(tmp_path: Path) -> None:
    ranges = {"x": (-1.0, 1.0), "y": (-1.0, 1.0), "z": (0.3, 1.3)}
    layer = read_layer(analysis("gough_stewart").loci(ranges, resolution=9).save(tmp_path / "loci.glb"))
    assert (layer.title, layer.unit, layer.frame) == ("singularities of gough_stewart", "1", "base_link")
    (sheet,) = layer.sheets
    assert sheet.name == "type 2"
    assert (np.abs(sheet.corners[:, :2]) <= 1.0 + 1e-6).all()
    # eight bits of light tell dark colours apart less well than eight bits of what eyes see
    assert np.abs(sheet.colours.astype(int) - (214, 39, 40, 150)).max() <= 4
    found = analysis("gough_stewart").workspace(ranges, resolution=9, tolerance=0.05)
    found.save(tmp_path / "border.glb")
    border = read_layer(tmp_path / "border.glb").sheets[0]
    np.testing.assert_allclose(np.sort(border.corners, axis=0), np.sort(found.corners, axis=0), atol=1e-6)


def test_what_has_no_surfaces_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["five_bar", "loci"]) == 2
    assert "surfaces need three coordinates" in capsys.readouterr().err
    with pytest.raises(AnalysisError, match="not three lengths"):
        analysis("planar_3rpr").loci(resolution=9).save(tmp_path / "x.glb")
    (tmp_path / "x.glb").write_text("nothing")
    with pytest.raises(AnalysisError, match=r"layer x\.glb"):
        read_layer(tmp_path / "x.glb")


@pytest.mark.slow
def test_where_there_is_none_the_reason_is_told() -> None:
    ranges = {"x": (-0.2, 0.2), "y": (-0.2, 0.2), "z": (1.1, 1.3)}
    found = Analysis(load_mechanism("griffis_duffy")).loci(ranges, resolution=5)
    assert found.loci == ()
    assert [note.partition(":")[0] for note in found.notes][:2] == [
        "no surface of singularities is met here",
        "singular of type 2 everywhere",
    ]
    assert any("no surface" in text.get_text() for text in found.plot().texts)
