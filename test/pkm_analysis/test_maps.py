# SPDX-License-Identifier: Apache-2.0
"""Maps: values are those of the kinematics and dynamics, and loci lie where singularities are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError, user_quantity
from pkm_analysis.drawing.map_pictures import border_of, round_levels
from pkm_analysis.layer_file import read_layer
from pkm_description import load_mechanism


@cache
def analysis(name: str) -> Analysis:
    return Analysis(load_mechanism(name))


def test_values_are_those_of_single_poses() -> None:
    a = analysis("five_bar")
    found = a.map("isotropy", resolution=60)
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
    found = analysis("planar_redundant").map("type2", resolution=15)
    assert list(found.loci) == ["type 1: a limb stretched or folded"]
    assert "more drives than degrees of freedom" in found.notes[0]
    found.plot(tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 10_000
    assert found.to_dict()["least"]["value"] == found.least[0]


def test_a_robot_singular_everywhere_is_told() -> None:
    found = analysis("griffis_duffy").map("type2", vary="xy", resolution=15)
    assert any("singular of type 2 everywhere" in note for note in found.notes)
    assert not any("everywhere" in note for note in analysis("five_bar").map("type2", resolution=15).notes)


def test_a_volume_is_mapped_and_shown_in_slices(tmp_path: Path) -> None:
    a = analysis("tripteron")
    found = a.map("isotropy", vary="xyz", resolution=13)
    assert found.values.ndim == 3
    k = a.robot.kinematics
    rng = np.random.default_rng(0)
    inside = np.argwhere(found.inside)
    for index in inside[rng.choice(len(inside), 10)]:
        margins = k.singularity(np.array([axis[i] for axis, i in zip(found.axes, index, strict=True)]))
        assert found.values[tuple(index)] == pytest.approx(float(margins.type1 * margins.type2), rel=1e-6)
    assert np.isnan(found.values[~found.inside]).all()
    assert found.to_dict()["coordinates"] == ["x", "y", "z"]
    assert len(found.plot().axes) == 7  # five slices, surfaces of one value, and the key to colours
    assert found.surfaces == ()  # it is the same everywhere
    layer = read_layer(found.save(tmp_path / "volume.glb"))
    assert layer.frame == a.robot.mechanism.base_link
    home = np.array([c.home for c in found.domain.coordinates])
    for sheet, cut in zip(layer.sheets, range(3), strict=True):
        node = found.axes[cut][np.abs(found.axes[cut] - home[cut]).argmin()]
        np.testing.assert_allclose(sheet.corners[:, cut] - k.engine.home[cut], node - home[cut], atol=1e-6)
        assert len(sheet.triangles) > 20
    with pytest.raises(AnalysisError, match="more than three"):
        analysis("gough_stewart").map("type2", vary=["x", "y", "z", "yaw"])


@pytest.mark.slow
def test_surfaces_of_one_value_lie_where_the_quantity_has_it(tmp_path: Path) -> None:
    a = analysis("delta")
    middle = np.array([0.003, -0.002, -0.949])
    distance = user_quantity("distance", "m", lambda poses: np.linalg.norm(poses[:, :3] - middle, axis=1))
    ranges = {"x": (-0.1, 0.1), "y": (-0.1, 0.1), "z": (-1.05, -0.85)}
    found = a.map(distance, ranges, resolution=31)
    values = [one.value for one in found.surfaces]
    assert len(values) == 3
    assert values == sorted(values)
    for one in found.surfaces:
        radius = np.linalg.norm(one.corners - middle, axis=1)
        step = 0.2 / 30
        # linear between two nodes of a distance, whose second derivative is at most 1 / radius
        np.testing.assert_allclose(radius, one.value, atol=step**2 / (8.0 * (one.value - step)))
        share = (found.values < one.value).mean()
        assert 0.2 < share < 0.9
    whole = found.surfaces[0]
    sides = np.sort(np.concatenate([whole.triangles[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))]), axis=1)
    assert (np.unique(sides, axis=0, return_counts=True)[1] == 2).all()  # closed: it lies inside
    layer = read_layer(found.save(tmp_path / "map.glb"))
    assert [sheet.name for sheet in layer.sheets[3:]] == [f"distance = {value:g} m" for value in values]
    np.testing.assert_allclose(layer.sheets[3].corners, whole.corners, atol=1e-6)
    assert (layer.sheets[3].colours[:, 3] < 255).all()
    assert "surfaces of" in found.plot(tmp_path / "map.svg").axes[5].get_title()


@pytest.mark.slow
def test_surfaces_of_one_value_of_coordinates_that_turn_have_no_layer(tmp_path: Path) -> None:
    found = analysis("planar_3rrr").map("isotropy", vary=["x", "y", "yaw"], resolution=13)
    assert found.surfaces
    assert len(found.plot().axes) == 7
    with pytest.raises(AnalysisError, match="not three lengths"):
        found.save(tmp_path / "map.glb")


def test_notes_are_of_the_poses_where_all_conditions_hold() -> None:
    """Beyond the cranks' stops the limbs come nearer to a singularity, where the ankle never is."""
    ankle = Path(__file__).parents[2] / "docs" / "examples" / "ankle_cranks.urdf.xacro"
    found = Analysis(load_mechanism(str(ankle))).map(
        "limb_regularity", {"pitch": (-0.69, 0.69), "roll": (-0.34, 0.34)}, requirements=["limb_regularity > 0.12"]
    )
    assert found.least[0] > 0.12
    (margin,) = (note for note in found.notes if note.startswith("limb_regularity is"))
    assert float(margin.split()[2]) == pytest.approx(found.least[0], rel=1e-3)
    (share,) = (note for note in found.notes if note.endswith("the figures are of these"))
    assert 0.0 < float(share.split()[4]) < 100.0
    assert float(share.split()[4]) == pytest.approx(100.0 * found.inside.mean(), rel=1e-2)


def test_contours_are_at_round_values() -> None:
    np.testing.assert_allclose(round_levels(-2.716, 4.804), np.arange(-2.0, 5.0), atol=1e-12)
    np.testing.assert_allclose(round_levels(551.0, 880.0), np.arange(600.0, 900.0, 50.0))


@pytest.mark.slow
def test_the_picture_of_a_coarse_map_ends_at_the_border(tmp_path: Path) -> None:
    """Not in steps of its grid: the area within is nearly the workspace's."""
    a = analysis("delta")
    found = a.map("type2", resolution=25)
    border = border_of(found, [slice(None)] * 2, [0, 1])
    area = 0.0
    for polygon in border.to_polygons():
        (x, y), (u, v) = polygon[:-1].T, polygon[1:].T
        area += 0.5 * float((x * v - u * y).sum())
    size = a.workspace(vary=found.domain.labels).size
    step = float(np.prod([axis[1] - axis[0] for axis in found.axes]))
    assert abs(area) == pytest.approx(size, rel=2e-3)
    assert step * found.inside.sum() != pytest.approx(size, rel=2e-3)
    found.plot(tmp_path / "map.png")
