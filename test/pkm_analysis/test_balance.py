# SPDX-License-Identifier: Apache-2.0
"""Springs and counterweights that balance a robot: exact cases, published figures, and what descriptions then say."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.balance import spring_mass
from pkm_analysis.command_line.analyse import main
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_runtime.errors import ConfigurationError
from test.oracles.sprung_robots import sprung

ARM, ARM_MASS, FOREARM_MASS, TIP = 0.3, 0.8, 0.5, 0.3  # of the five-bar, m and kg
# The bars are parallel in pairs, so that every height is that of a point of the one arm plus that of one of the other.
MOMENT = 9.81 * ARM * (0.5 * ARM_MASS + 1.5 * FOREARM_MASS + TIP)  # N m, of the weight that each arm carries
RHOMBUS = {"half_base": "0.0", "arm_length": str(ARM), "forearm_length": str(ARM)}
RANGES = {"x": (-0.2, 0.2), "y": (0.2, 0.45)}
ABOVE, ALONG = 0.2, 0.1  # m: an end of a spring above the pivot, and along the arm


def upright(text):
    """The five-bar in a vertical plane."""
    return re.sub(r"<pkm ", '<pkm gravity="0 -9.81 0" ', text, count=1)


@pytest.fixture(scope="module")
def rhombus():
    return upright(load_mechanism("five_bar", RHOMBUS).urdf)


def file_of(tmp_path, text):
    file = tmp_path / "springs.yaml"
    file.write_text(text)
    return file


def springs_of_arms(above=ABOVE, aside=0.0, more=""):
    return "springs:\n" + "".join(
        f"  {side}: {{from: base_link, from_xyz: [{aside}, {above}, 0], to: {side}_arm, to_xyz: [{ALONG}, {aside}, 0]"
        f"{more}}}\n"
        for side in ("left", "right")
    )


def described(mechanism_text, found):
    """The description with the elements that a balance found, as a person pastes them."""
    elements = "".join(one.element for one in found.sized)
    return load_mechanism(mechanism_text.replace("</robot>", elements + "</robot>"))


def test_a_rhombus_is_balanced_at_every_pose(rhombus, tmp_path):
    """k a b = m g r: two zero-free-length springs above the pivots take all weight, bars' included, off the drives."""
    found = Analysis(load_mechanism(rhombus)).balance(RANGES, springs=file_of(tmp_path, springs_of_arms()))
    assert found.worst("without springs").max() > 3.0
    assert found.worst("balanced").max() < 1e-12
    assert [one.size for one in found.sized] == pytest.approx([MOMENT / (ABOVE * ALONG)] * 2, rel=1e-12)
    assert [one.rest for one in found.sized] == [0.0, 0.0]
    assert ABOVE - ALONG < found.sized[0].lengths[0] < found.sized[0].lengths[1] < ABOVE + ALONG
    assert "0 N m rms" in str(found)


def test_the_elements_that_it_prints_balance_the_robot(rhombus, tmp_path):
    """In the description they do so in dynamics and analyses: no effort at rest, and none to move slowly."""
    found = Analysis(load_mechanism(rhombus)).balance(RANGES, springs=file_of(tmp_path, springs_of_arms()))
    mechanism = described(rhombus, found)
    assert len(mechanism.springs) == 2
    analysis = Analysis(mechanism)
    assert analysis.map("effort_at_rest", RANGES, resolution=25).most[0] < 1e-8
    again = analysis.balance(RANGES)
    assert again.worst("as described").max() < 1e-8
    assert [one.size for one in again.sized] == pytest.approx([one.size for one in found.sized])


def test_counterweights_balance_it_as_well(rhombus, tmp_path):
    text = "counterweights:\n" + "".join(
        f"  {side}_weight: {{link: {side}_arm, xyz: [-0.15, 0, 0]}}\n" for side in ("left", "right")
    )
    found = Analysis(load_mechanism(rhombus)).balance(RANGES, springs=file_of(tmp_path, text))
    assert [one.size for one in found.sized] == pytest.approx([MOMENT / (9.81 * 0.15)] * 2, rel=1e-12)
    assert found.worst("balanced").max() < 1e-12
    heavier = described(rhombus, found)
    points = np.array([[0.1, 0.3, 0.0, 0.0, 0.0, 0.0, 1.0], [-0.15, 0.4, 0.0, 0.0, 0.0, 0.0, 1.0]])
    assert np.abs(Dynamics(heavier).gravity(points).effort).max() < 1e-8
    assert any("add 5." in note for note in found.notes)


def test_ends_that_may_move_find_the_balance(rhombus, tmp_path):
    """From ends beside the axes, where no stiffness balances it, the search finds places where one does."""
    analysis = Analysis(load_mechanism(rhombus))
    file = file_of(tmp_path, springs_of_arms(above=0.15, aside=0.03))
    fixed, moved = (analysis.balance(RANGES, springs=file, move=move, resolution=9) for move in (0.0, 0.05))
    before = fixed.worst("without springs").max()
    assert fixed.worst("balanced").max() > 0.05 * before
    assert moved.worst("balanced").max() < 1e-5 * before
    assert re.fullmatch(r"places of ends: \d+ tried of \d+ at most, .+ left at most", analysis.robot.sweeps.note)
    for one in moved.sized:
        spring = one.what.spring
        assert np.abs(spring.from_point - [0.03, 0.15, 0.0]).max() <= 0.05
        assert np.abs(spring.to_point - [0.1, 0.03, 0.0]).max() <= 0.05


def test_springs_with_a_rest_length_are_the_best_of_their_bounds(rhombus, tmp_path):
    """Where the rest length has bounds, no other stiffness or rest length within them leaves less."""
    file = file_of(tmp_path, springs_of_arms(more=", rest_length: [0.02, 0.08]"))
    analysis = Analysis(load_mechanism(rhombus))
    found = analysis.balance(RANGES, springs=file, resolution=9)
    assert all(0.02 <= one.rest <= 0.08 for one in found.sized)

    def left(stiffness, rest):
        springs = "".join(
            f'<spring name="{one.what.name}" stiffness="{stiffness * one.size}" rest_length="{rest * one.rest}">'
            + one.element.split(">", 1)[1]
            for one in found.sized
        )
        other = Analysis(load_mechanism(rhombus.replace("</robot>", springs + "</robot>")))
        return float(np.linalg.norm(other.balance(RANGES, resolution=9).efforts["as described"]))

    best = left(1.0, 1.0)
    assert best == pytest.approx(np.linalg.norm(found.efforts["balanced"]), rel=1e-9)
    assert best < min(left(1.02, 1.0), left(0.98, 1.0), left(1.0, 1.05))
    assert found.sized[0].rest == pytest.approx(0.02)  # the least, as without any it would be exact


def test_springs_of_the_description_are_sized(tmp_path):
    """A Delta's arms: part of its weight, which the same springs of other stiffness leave more of."""
    plain = load_mechanism("delta").urdf

    def sprung_arms(stiffness):
        springs = ""
        for k in range(3):
            angle = 2.0 * np.pi * k / 3.0
            at = f"{0.15 * np.cos(angle)} {0.15 * np.sin(angle)} 0.25"
            springs += f'<spring name="s{k}" stiffness="{stiffness}"><from link="base_link" xyz="{at}"/>'
            springs += f'<to link="limb{k + 1}_arm" xyz="0.12 0 0"/></spring>'
        return load_mechanism(plain.replace("</robot>", springs + "</robot>"))

    ranges = {"x": (-0.2, 0.2), "y": (-0.2, 0.2), "z": (-1.0, -0.8)}
    found = Analysis(sprung_arms(300.0)).balance(ranges, resolution=5)
    assert list(found.efforts) == ["without springs", "as described", "balanced"]
    rms = {which: float(np.linalg.norm(found.rms(which))) for which in found.efforts}
    assert rms["balanced"] < rms["as described"] < rms["without springs"]
    assert rms["balanced"] < 0.4 * rms["without springs"]
    sizes = np.array([one.size for one in found.sized])
    assert sizes == pytest.approx(np.full(3, sizes.mean()), rel=0.05)  # it is symmetric, the box nearly
    best = float(sizes.mean())
    near = Analysis(sprung_arms(best)).balance(ranges, resolution=5).rms("as described")
    assert np.linalg.norm(near) == pytest.approx(rms["balanced"], rel=1e-2)
    for other in (0.9 * best, 1.1 * best):
        worse = Analysis(sprung_arms(other)).balance(ranges, resolution=5).rms("as described")
        assert np.linalg.norm(worse) > np.linalg.norm(near)


def test_joints_have_springs_too(tmp_path):
    """A spring of each arm's joint: what the description then says leaves as much as was told."""
    text = load_mechanism("delta").urdf
    file = file_of(tmp_path, "springs:\n" + "".join(f"  s{k}: {{joint: limb{k}_arm}}\n" for k in (1, 2, 3)))
    ranges = {"x": (-0.2, 0.2), "y": (-0.2, 0.2), "z": (-1.0, -0.8)}
    found = Analysis(load_mechanism("delta")).balance(ranges, springs=file, resolution=5)
    assert len(found.sized) == 3
    for one in found.sized:
        dynamics = re.search(r"<dynamics (.*)/>", one.element).group(1)
        start = text.index(f'<joint name="{one.what.name}"')
        at = text.index("<dynamics ", start) + len("<dynamics ")
        text = text[:at] + dynamics + " " + text[at:]
    again = Analysis(load_mechanism(text)).balance(ranges, resolution=5)
    assert again.efforts["as described"] == pytest.approx(found.efforts["balanced"], abs=1e-6)
    assert np.linalg.norm(found.rms("balanced")) < 0.5 * np.linalg.norm(found.rms("without springs"))


def test_published_masses_of_springs():
    """Herder: 100 kg over 2 m, so 1962 J, take 9 kg of helical springs, and a counterweight of 200 kg 22 times that."""
    assert spring_mass(1962.0) == pytest.approx(8.93, abs=0.005)
    assert spring_mass(1962.0) / 7800.0 == pytest.approx(1.1445e-3, rel=1e-4)
    assert 200.0 / spring_mass(1962.0) == pytest.approx(22.4, abs=0.05)


@pytest.mark.by_day("cable_8")
@pytest.mark.parametrize(
    "name",
    [
        "tricept",
        "cable_8",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("quattro", "gough_stewart", "tripod_3prs")),
    ],
)
def test_robots_of_other_kinds(name):
    """Redundant, turning, with drives that slide: sized springs leave no more than those described, or none."""
    mechanism = sprung(name, preload=False)
    found = Analysis(mechanism).balance(resolution=3)
    squares = {
        which: sum(  # as minimised: each unit in its own size without springs
            np.sum(efforts[:, of] ** 2) / np.mean(found.efforts["without springs"][:, of] ** 2)
            for unit in set(found.units)
            for of in [np.array([one == unit for one in found.units])]
        )
        for which, efforts in found.efforts.items()
    }
    assert squares["balanced"] <= min(squares.values()) * (1.0 + 1e-9)
    json.dumps(found.to_dict(), allow_nan=False)
    assert str(found)


def test_redundant_drives_are_relieved(tmp_path):
    """Of three drives for two translations, the efforts of least norm; judged by the dynamics of what was printed."""
    text = upright(load_mechanism("planar_redundant").urdf)
    ends = "to: platform, to_xyz: [0, 0, 0]}\n"
    file = file_of(tmp_path, f"springs:\n  hung: {{from: base_link, from_xyz: [0, 0.3, 0], {ends}")
    ranges = {"x": (-0.06, 0.0), "y": (-0.03, 0.02)}
    found = Analysis(load_mechanism(text)).balance(ranges, springs=file, resolution=5)
    (one,) = found.sized
    assert found.rms("balanced").max() < 0.9 * found.rms("without springs").max()
    points = np.array(np.meshgrid(*found.axes, indexing="ij")).reshape(2, -1).T[found.mask]

    def at_rest(factor):
        element = one.element.replace(f"{one.size:.10g}", f"{factor * one.size:.10g}")
        dynamics = Dynamics(load_mechanism(text.replace("</robot>", element + "</robot>")))
        at = dynamics.kinematics.at(points)
        return at, dynamics.inverse(at).effort

    at, efforts = at_rest(1.0)
    np.testing.assert_allclose(efforts, found.efforts["balanced"], rtol=1e-6, atol=1e-8)
    K = at.inverse_jacobian @ at.subspace
    assert K.shape[1:] == (3, 2)
    held = np.einsum("nij,njk,nk->ni", K, np.linalg.pinv(K), efforts)
    np.testing.assert_allclose(held, efforts, atol=1e-9)
    assert all((at_rest(factor)[1] ** 2).sum() > (efforts**2).sum() for factor in (0.95, 1.05))


def test_a_robot_in_a_horizontal_plane_needs_no_springs():
    found = Analysis(sprung("planar_redundant", preload=False)).balance(resolution=3)
    assert found.worst("as described").max() > 0.1
    assert found.worst("balanced").max() < 1e-9
    assert not found.sized
    assert any("of no use" in note for note in found.notes)


def test_a_payload_is_balanced_with_the_rest(rhombus, tmp_path):
    analysis, file = Analysis(load_mechanism(rhombus)), file_of(tmp_path, springs_of_arms())
    found = analysis.balance(RANGES, springs=file, payload=2.0)
    more = 9.81 * ARM * 2.0
    assert [one.size for one in found.sized] == pytest.approx([(MOMENT + more) / (ABOVE * ALONG)] * 2, rel=1e-12)


def test_the_command(rhombus, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rhombus.urdf").write_text(rhombus)
    file = file_of(tmp_path, springs_of_arms())
    asked = ["rhombus.urdf", "balance", "--springs", str(file), "--range", "x=-200:200mm", "y=200:450mm"]
    assert main([*asked, "--json"]) == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["springs"][0]["stiffness"] == pytest.approx(MOMENT / (ABOVE * ALONG))
    assert main([*asked, "--picture", "balance.png", "--rest", "0:50mm", "--move", "10mm", "--resolution", "5"]) == 0
    said = capsys.readouterr().out
    assert "N/mm" in said
    assert '<spring name="left"' in said
    assert (tmp_path / "balance.png").stat().st_size > 10_000
    assert (tmp_path / "reports").exists()
    without = ["rhombus.urdf", "balance", "--range", "x=-200:200mm", "y=200:450mm", "--resolution", "5"]
    assert main(without) == 0
    assert "--springs FILE" in capsys.readouterr().out
    for move, said in (("", "is no number"), ("10mm", "no spring whose ends could move")):
        assert main([*without, "--move", move]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("from: base_link", "from: nobody", "'nobody' is unknown"),
        ("from: base_link", "from: platform_x_slide", "'platform_x_slide' is unknown"),
        ("to: left_arm", "to: base_link", "both ends"),
        ("to_xyz: [0.1, 0.0, 0]", "to_xyz: [0.1, 0.0]", "3 numbers"),
        ("to_xyz", "to_xzy", "missing|to_xyz"),
        ("from: base_link", "rest_length: [0.1, 0.05], from: base_link", "not lengths"),
        ("from: base_link", "move: -1, from: base_link", "outside its range"),
        ("springs:", "spring:", "neither springs nor"),
        ("left: {", "left: {joint: left_knee, ", "'left_knee' is unknown"),
    ],
)
def test_files_that_cannot_be_used_are_named(rhombus, tmp_path, old, new, words):
    text = springs_of_arms()
    assert old in text
    with pytest.raises(ConfigurationError, match=words):
        Analysis(load_mechanism(rhombus)).balance(RANGES, springs=file_of(tmp_path, text.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rest", "50:20mm"], "not lengths"),
        (["--rest", "wide"], "no number"),
        (["--move", "10kg"], "no unit"),
        (["--move=-1mm"], "not a length"),
        (["--springs", "nowhere.yaml"], "nowhere.yaml"),
        (["--range", "x=5:6"], "nowhere"),
    ],
)
def test_options_that_cannot_be_used_are_named(options, words, capsys):
    assert main(["five_bar", "balance", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_domain_without_poses():
    with pytest.raises(AnalysisError, match="cannot be anywhere"):
        Analysis(load_mechanism("five_bar")).balance({"x": (5.0, 6.0), "y": (5.0, 6.0)})
