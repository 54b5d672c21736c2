# SPDX-License-Identifier: Apache-2.0
"""Maps: values are those of the kinematics and dynamics, and loci lie where singularities are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError, user_quantity
from pkm_analysis.layers.layer_file import read_layer
from pkm_description import load_mechanism


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


def test_values_are_those_of_single_poses() -> None:
    a = analysis("five_bar")
    found = a.map("condition", resolution=60)
    k = a.robot.kinematics
    rng = np.random.default_rng(0)
    inside = np.argwhere(found.inside)
    for i, j in inside[rng.choice(len(inside), 20)]:
        margins = k.singularity(np.array([found.axes[0][i], found.axes[1][j]]))
        assert found.values[i, j] == pytest.approx(float(margins.type1 * margins.type2), rel=1e-4)
    assert np.isnan(found.values[~found.inside]).all()
    least, at = found.least
    assert float(k.singularity(at).type2 * k.singularity(at).type1) == pytest.approx(least, rel=1e-3)
    assert found.least[0] <= found.mean <= found.most[0]


def test_type_2_of_a_two_rpr_is_the_line_of_its_base_joints() -> None:
    a = analysis("two_rpr")
    found = a.map("type2", {"x": (-0.5, 1.2), "y": (-0.7, 0.9)}, resolution=81)
    locus = found.loci["type 2: the drives lose hold"]
    signs = np.sign(locus)
    assert (signs[:, found.axes[1] > 1e-9][np.isfinite(signs[:, found.axes[1] > 1e-9])] == 1.0).all()
    assert (signs[:, found.axes[1] < -1e-9][np.isfinite(signs[:, found.axes[1] < -1e-9])] == -1.0).all()


def test_type_1_of_a_five_bar_is_where_an_arm_is_stretched() -> None:
    found = analysis("five_bar").map("type1", {"x": (-0.8, 0.8), "y": (-0.8, 0.8)}, resolution=161)
    reach = next(iter(found.loci.values()))
    x, y = np.meshgrid(*found.axes, indexing="ij")
    stretched = np.maximum(np.hypot(x + 0.125, y), np.hypot(x - 0.125, y)) <= 0.7
    folded = np.minimum(np.hypot(x + 0.125, y), np.hypot(x - 0.125, y)) >= 0.1
    assert ((reach >= 0.0) == (stretched & folded)).mean() > 0.9999  # but for nodes on the circles themselves


def test_efforts_frequencies_and_own_functions() -> None:
    held = Analysis(load_mechanism("two_rpr"), stiffness=1e5)
    rest = held.map("effort_at_rest", resolution=9)
    assert rest.quantity.unit == "N"
    frequency = held.map("natural_frequency", resolution=7)
    assert frequency.quantity.unit == "Hz"
    assert frequency.least[0] >= 0.0
    own = held.map(user_quantity("x", "m", lambda poses: poses[:, 0]), resolution=9)
    np.testing.assert_allclose(own.values[own.inside], np.meshgrid(*own.axes, indexing="ij")[0][own.inside])
    with pytest.raises(AnalysisError, match="has no unit"):
        user_quantity("x", "", lambda poses: poses[:, 0])
    with pytest.raises(AnalysisError, match="shape"):
        held.map(user_quantity("x", "m", lambda poses: poses), resolution=9)


def test_redundant_drives_have_no_locus_of_type_2(tmp_path: Path) -> None:
    found = analysis("planar_redundant").map("type2", resolution=25)
    assert list(found.loci) == ["type 1: a limb stretched or folded"]
    assert "more drives than freedoms" in found.notes[0]
    found.plot(tmp_path / "map.png")
    found.plot(tmp_path / "map.svg")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    assert found.to_dict()["least"]["value"] == found.least[0]


def test_a_robot_singular_everywhere_is_told() -> None:
    found = analysis("griffis_duffy").map("type2", vary="xy", resolution=15)
    assert any("singular of type 2 everywhere" in note for note in found.notes)
    assert not any("everywhere" in note for note in analysis("five_bar").map("type2", resolution=15).notes)


def test_a_volume_is_mapped_and_shown_in_slices(tmp_path: Path) -> None:
    a = analysis("tripteron")
    found = a.map("condition", vary="xyz", resolution=13)
    assert found.values.ndim == 3
    k = a.robot.kinematics
    rng = np.random.default_rng(0)
    inside = np.argwhere(found.inside)
    for index in inside[rng.choice(len(inside), 10)]:
        margins = k.singularity(np.array([axis[i] for axis, i in zip(found.axes, index, strict=True)]))
        assert found.values[tuple(index)] == pytest.approx(float(margins.type1 * margins.type2), rel=1e-6)
    assert np.isnan(found.values[~found.inside]).all()
    assert found.to_dict()["coordinates"] == ["x", "y", "z"]
    assert len(found.plot().axes) == 10  # nine slices and the key to their colours
    layer = read_layer(found.save(tmp_path / "volume.glb"))
    assert layer.frame == a.robot.mechanism.base_link
    home = np.array([c.home for c in found.domain.coordinates])
    for sheet, cut in zip(layer.sheets, range(3), strict=True):
        node = found.axes[cut][np.abs(found.axes[cut] - home[cut]).argmin()]
        np.testing.assert_allclose(sheet.corners[:, cut] - k.engine.home[cut], node - home[cut], atol=1e-6)
        assert len(sheet.triangles) > 20
    with pytest.raises(AnalysisError, match="more than three"):
        analysis("gough_stewart").map("type2", vary=["x", "y", "z", "yaw"])
