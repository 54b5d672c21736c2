# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the check: robots of the gallery with one number changed, as people change them by mistake."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import pkm_description.loops.home
from pkm_description import DescriptionError, load_mechanism, mechanism_from_urdf, robot_names
from pkm_description.load import expand
from pkm_description.loops.home import unclosable
from pkm_description.loops.mobility import hold_advice
from pkm_description.rotations import transform_from_pose
from pkm_dynamics.dynamics import shared_dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.check import as_text, examine, main
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_kinematics.load_verdicts import weight_at_home
from pkm_kinematics.verdicts import WEAK, Verdict, hold_at, poses_around
from test.conftest import EVERYDAY
from test.oracles.redundant_robots import on_a_rail

PACKAGE = Path(pkm_description.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
BIGLIDE = str(DOCS / "examples" / "biglide.urdf.xacro")


examined = cache(lambda name: examine(name, modes=False))
by_day_and_night = pytest.mark.parametrize(
    "names", [EVERYDAY, pytest.param(robot_names(), marks=pytest.mark.slow)], ids=["everyday", "all"]
)


def changed(name: str, *changes: tuple[str, str]) -> str:
    """The expanded text of a robot with every occurrence of some strings replaced."""
    text, _ = expand(name)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def source_changed(folder: Path, name: str, *changes: tuple[str, str], file: str = "") -> str:
    """The path of a robot whose xacro source, or that of a `file` that it includes, has other numbers."""
    for room in ("robots", "limbs"):
        shutil.copytree(PACKAGE / room, folder / room)
    source = folder / "robots" / (file or f"{name}.urdf.xacro")
    text = source.read_text()
    for pattern, new in changes:
        text, count = re.subn(pattern, new, text)
        assert count > 0, pattern
    source.write_text(text)
    return str(folder / "robots" / f"{name}.urdf.xacro")


def verdicts(source: str, about: str = "") -> list[Verdict]:
    return [verdict for verdict in examine(source, modes=False).verdicts if about in verdict.about]


# -- type 2 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["delta", "five_bar", "orthoglide", "agile_eye", "quattro", "tripod_3prs", "cable_8"])
def test_good_robots_are_ok(name: str) -> None:
    report = examine(name, modes=False)
    assert {verdict.level for verdict in report.verdicts} == {"ok"}
    assert report.verdicts[0].about == "force amplification at home"
    assert report.verdicts[0].number == report.singularity["force_amplification"]
    assert f"{report.verdicts[0].meaning}" in as_text(report)


def test_efforts_for_one_newton_are_those_of_statics() -> None:
    """Two sliders on one rail hold a pin by a bar each: a triangle of forces."""
    text, _ = expand(BIGLIDE)
    kinematics = Kinematics(mechanism_from_urdf(text))
    for depth in (0.4, 0.1, 0.02):  # bars of 0.5 m: the flatter they lie, the more a load across the rail needs
        pose = kinematics.home.copy()
        pose[2] = -depth
        hold = hold_at(kinematics, pose)
        assert hold is not None
        slope = depth / np.sqrt(0.5**2 - depth**2)
        down, along = 0.5 / slope, 0.5  # of each slider, for 1 N down and 1 N along the rail
        assert hold.efforts == pytest.approx([np.hypot(down, along)] * 2, rel=1e-9)
        # both bars push along their own direction: unit wrenches at an angle whose half has this tangent
        angle = np.arctan(1.0 / slope)
        assert hold.independence == pytest.approx(np.sqrt(2.0) * min(np.sin(angle), np.cos(angle)), rel=1e-9)


def test_home_near_a_type_2_singularity_is_a_warning(tmp_path: Path) -> None:
    flat = source_changed(
        tmp_path, "five_bar", (r'<home xyz="[^"]*"', '<home xyz="0 0.125 0"')
    )  # the forearms all but in one line
    report = examine(flat, modes=False)
    assert report.usable, as_text(report)
    found = [v for v in report.verdicts if v.about == "force amplification at home"]
    assert found[0].level == "warning", found
    assert found[0].number is not None
    assert found[0].number > 1.0
    assert "1 N on the platform can need" in found[0].meaning
    assert "N m of " in found[0].meaning
    assert "away from the nearby type 2 singularity" in found[0].remedy


def test_the_published_force_redundant_platform_is_weak_with_six_legs_and_not_with_seven() -> None:
    """Dasgupta's platform got its seventh leg against singularities."""
    six = verdicts("gough_stewart", "force amplification")[0]
    seven = verdicts("gough_stewart_7", "force amplification")[0]
    assert (six.level, seven.level) == ("warning", "ok")
    assert six.number is not None
    assert f"below {WEAK:g}" in six.meaning


@pytest.mark.parametrize("name", ["gough_stewart", "gough_stewart_7", "delta", "two_rpr", "agile_eye"])
def test_errors_of_all_drives_add_up_as_far_as_they_can(name: str) -> None:
    """By the poses of drives that are off by as much as is said, each in its own sense."""
    kinematics = Kinematics(load_mechanism(name))
    drives, step = np.array(kinematics.inverse(kinematics.home).actuated), 1e-5
    M = kinematics.at(kinematics.home).motion_jacobian  # redundant drives agree on the least squares
    onto = M @ np.linalg.pinv(M)
    signs = np.array(list(itertools.product((step, -step), repeat=len(drives)))) @ onto
    poses = kinematics.forward(drives + signs, near=kinematics.home).pose
    moves = np.array([displacement_between(kinematics.home, pose) for pose in poses]) / step
    far, turned = (np.linalg.norm(part, axis=1).max() for part in (moves[:, :3], moves[:, 3:]))
    said = verdicts(name, "force amplification")[0].meaning.partition("in every drive can ")[2]
    numbers = [float(word) for word in re.findall(r"by (\S+) m", said)]
    assert numbers == pytest.approx([one for one in (far, turned) if one > 1e-3], rel=0.006)


def test_a_force_or_a_moment_alone_can_need_what_is_said() -> None:
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    efforts = np.linalg.inv(kinematics.at(kinematics.home).inverse_jacobian.T)  # by wrenches
    force = np.linalg.norm(efforts[:, :3], axis=1).max()
    moment = np.linalg.norm(efforts[:, 3:], axis=1).max() * kinematics.characteristic_length
    (verdict,) = verdicts("gough_stewart", "force amplification")
    assert f"can need {max(force, moment):.3g} N of" in verdict.meaning


def test_independence_knows_no_units() -> None:
    """Ten times smaller, and with gears: the drives are as independent as they were."""
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    text, _ = expand("gough_stewart")
    small = re.sub(
        r'xyz="([^"]*)"(?=\s*(rpy="[^"]*")?\s*/?>)',
        lambda m: f'xyz="{" ".join(repr(0.1 * float(x)) for x in m.group(1).split())}"',
        text,
    )
    small = re.sub(
        r"<axis xyz=\"([^\"]*)\"",
        lambda m: f'<axis xyz="{" ".join(repr(10 * float(x)) for x in m.group(1).split())}"',
        small,
    )
    small = re.sub(r'(lower|upper)="([^"]*)"', lambda m: f'{m.group(1)}="{0.1 * float(m.group(2))!r}"', small)
    small = re.sub(r"(initial_value\">)([^<]*)<", lambda m: f"{m.group(1)}{0.1 * float(m.group(2))!r}<", small)
    other = Kinematics(mechanism_from_urdf(small))
    first, second = hold_at(kinematics, kinematics.home), hold_at(other, other.home)
    assert first is not None
    assert second is not None
    assert other.characteristic_length == pytest.approx(0.1 * kinematics.characteristic_length)
    assert second.independence == pytest.approx(first.independence, rel=1e-9)


# -- architecture singularities ---------------------------------------------------------------------------------------

ROUND = "[[0.6 * cos(a), 0.6 * sin(a), 0.0] for a in (0.2, 1.9, 2.3, 4.0, 4.4, 6.1, 5.0)]"
UNEVEN = "[[0.6, 0.2, 0.0], [0.1, 0.5, 0.0], [-0.3, 0.3, 0.0], [-0.3, -0.4, 0.0], [0.2, -0.3, 0.0], [0.5, -0.2, 0.0]]"


def gough_stewart(folder: Path, base: str, platform: str) -> str:
    return source_changed(
        folder,
        "gough_stewart",
        (r'name="base_points" value="[^"]*"', f'name="base_points" value="${{{base}}}"'),
        (r'name="platform_points" value="[^"]*"', f'name="platform_points" value="${{{platform}}}"'),
        file="gough_stewart.xacro",
    )


def test_similar_hexagons_on_circles_are_an_architecture_singularity(tmp_path: Path) -> None:
    """The case of Ma and Angeles, "Architecture singularities of platform manipulators", 1991."""
    report = examine(gough_stewart(tmp_path, ROUND, f"[[0.5 * x for x in p] for p in {ROUND}]"), modes=False)
    assert not report.usable
    error = report.verdicts[-1]
    assert error.level == "error"
    assert "of its 6 degrees of freedom (3T3R), at all of 4 poses around home" in error.meaning
    assert "architecture singularity" in error.remedy
    assert "similar polygons" in error.remedy


def test_all_but_similar_hexagons_are_one_too(tmp_path: Path) -> None:
    """Off by what a workshop is off, so that the rank is full: the drives hold the platform in theory only."""
    nearly = f"[[0.5 * p[0] + 2e-5 * p[1], 0.5 * p[1] - 4e-5 * p[0] * p[1], p[2] + 3e-5 * p[0]] for p in {ROUND}]"
    report = examine(gough_stewart(tmp_path, ROUND, nearly), modes=False)
    found = [v for v in report.verdicts if v.about == "architecture singularity"]
    assert len(found) == 1, as_text(report)
    assert found[0].level == "error"
    assert found[0].number is not None
    assert 0.0 < found[0].number < 1e-3
    assert "do not hold the platform at home or at 12 poses nearby" in found[0].meaning
    assert "similar polygons" in found[0].remedy
    assert not report.usable
    assert "ERROR architecture singularity" in as_text(report)


ANKLE = str(DOCS / "examples" / "ankle.urdf.xacro")


def test_an_ankle_with_both_rods_in_its_middle_gets_advice_for_ankles() -> None:
    """Behind the ankle, neither to the left nor to the right: nothing holds the roll."""
    text = changed(ANKLE, ('xyz="-0.06 0.04 ', 'xyz="-0.06 0.0 '), ('xyz="-0.06 -0.04 ', 'xyz="-0.06 0.0 '))
    (complaint,) = [one for one in examine(text, modes=False).verdicts if one.level == "error"]
    assert "1 of its 2 degrees of freedom (2R)" in complaint.meaning
    assert complaint.meaning.endswith("it still moves about x")
    assert "left and right" in complaint.remedy
    assert "polygons" not in complaint.remedy


@pytest.mark.parametrize(
    ("motion", "word"),
    [
        ("3T3R", "similar polygons"),
        ("2R", "moments"),
        ("3T", "Delta"),
        ("2T1R", "triangles"),
        ("1T2R", "lines of action"),
    ],
)
def test_advice_by_the_kind_of_freedoms(motion: str, word: str) -> None:
    assert word in hold_advice(motion)


def test_an_ankle_is_told_in_moments_and_angles() -> None:
    """Two upright rods 6 cm behind the ankle and 4 cm to its sides, of 1500 N each."""
    (verdict,) = verdicts(ANKLE, "force amplification")
    worst = 0.5 * np.hypot(1.0 / 0.06, 1.0 / 0.04)  # N of a rod, for 1 N m in the worst direction
    assert verdict.meaning == (
        f"1 N m on the platform can need {worst:.3g} N of left_leg; its limit holds {1500.0 / worst:.3g} N m "
        "in the worst direction; errors of up to 1 mm in every drive can turn the platform by "
        f"{2.0 / (2.0 * 0.04):.3g} mrad"
    )


def test_the_branch_of_an_ankle_counts() -> None:
    """Two rods alone leave six degrees of freedom, and the universal joint takes four of them away."""
    report = examine(ANKLE, modes=False)
    text = as_text(report)
    assert "count 6 of the limbs, the platform free; 2 with the branch of the platform as a joint of its own" in text
    assert any("(ankle_pitch, ankle_roll) removes 4 degree(s) of freedom" in remark for remark in report.remarks)
    assert "branch" not in as_text(examine("delta", modes=False)).partition("Mobility")[2].partition("Limbs")[0]


def test_a_driven_slider_without_mass_is_told() -> None:
    text, _ = expand("linear_delta")
    bare = re.sub(r'(<link name="limb1_slider">\s*)<inertial>.*?</inertial>', r"\1", text, flags=re.DOTALL)
    assert bare != text
    (verdict,) = verdicts(bare, '<link name="limb1_slider">')
    assert verdict.level == "warning"
    assert "omit its acceleration" in verdict.meaning
    assert not [v for v in verdicts("linear_delta") if "has no mass:" in v.meaning]


def test_similar_hexagons_on_no_conic_are_singular_at_home_only(tmp_path: Path) -> None:
    """With the platform parallel to the base the legs meet in a point; turned a little, they hold it."""
    report = examine(gough_stewart(tmp_path, UNEVEN, f"[[0.5 * x for x in p] for p in {UNEVEN}]"), modes=False)
    (found,) = [v for v in report.verdicts if v.level != "ok"]
    assert (found.level, found.about) == ("warning", "force amplification at home")
    assert "home is at or near a type 2 singularity" in found.meaning
    assert "move <home>" in found.remedy
    assert report.usable


def test_one_that_the_file_accepts_is_a_warning() -> None:
    report = examine("griffis_duffy", modes=False)
    found = [v for v in report.verdicts if v.about == "architecture singularity"]
    assert [v.level for v in found] == ["warning"]
    assert "which its description accepts" in found[0].meaning
    assert report.usable


def test_poses_around_home_are_reached() -> None:
    for name in ("gough_stewart", "delta", "tripod_3prs", "capaman"):
        kinematics = Kinematics(load_mechanism(name))
        poses = poses_around(kinematics)
        assert len(poses) >= 3
        assert kinematics.inverse(poses).ok.all()
        assert np.linalg.norm(poses - kinematics.home, axis=1).min() > 1e-3


# -- units ------------------------------------------------------------------------------------------------------------


@by_day_and_night
def test_gallery_robots_are_in_metres_and_radians(names: tuple[str, ...]) -> None:
    for name in names:
        found = [v for v in examined(name).verdicts if "look" in v.meaning]
        assert found == [], name


@pytest.mark.parametrize(
    ("text", "about", "number", "meaning", "remedy"),
    [
        (
            lambda: changed("five_bar", ('lower="-3.6" upper="3.6"', 'lower="-180" upper="180"')),
            '<joint name="left_arm"> <limit>',
            180.0,
            "looks like degrees",
            "180 degrees are 3.14159",
        ),
        (
            lambda: changed("delta", ('rpy="0 0 2.0943951023931953"', 'rpy="0 0 120"')),
            'rpy of <origin> in <joint name="limb2_arm">',
            120.0,
            "looks like degrees",
            "${120 * pi / 180}",
        ),
        (
            lambda: changed("five_bar", ('name="left_elbow" position="-1.6"', 'name="left_elbow" position="-91.7"')),
            'position of <joint name="left_elbow"> at home',
            -91.7,
            "looks like degrees",
            "write angles in rad",
        ),
        (
            lambda: changed("five_bar", ('xyz="0.3 0 0"', 'xyz="300 0 0"'), ('xyz="0.4 0 0"', 'xyz="400 0 0"')),
            "<origin>",
            400.0,
            "looks like mm",
            "400 mm are 0.4",
        ),
        (
            lambda: changed("gough_stewart", ('lower="0.2" upper="4.0"', 'lower="200" upper="4000"')),
            '<joint name="limb1_leg"> <limit>',
            4000.0,
            "looks like millimetres",
            "4000 mm are 4",
        ),
    ],
    ids=["limit", "rpy", "home", "lengths", "slide"],
)
def test_wrong_units_are_warned_of_and_the_element_named(text, about, number, meaning, remedy) -> None:
    found = [v for v in verdicts(text(), about) if "look" in v.meaning]
    assert found, [v.about for v in verdicts(text())]
    assert found[0].level == "warning"
    assert number is None or found[0].number == pytest.approx(number)
    assert meaning in found[0].meaning
    assert remedy in found[0].remedy


def test_a_robot_of_half_a_kilometre_stays_usable() -> None:
    """Only a warning: there are such machines."""
    grown = re.sub(
        r'xyz="([^"]*)"',
        lambda m: f'xyz="{" ".join(str(1000 * float(x)) for x in m.group(1).split())}"',
        changed("five_bar", ('lower="-0.8" upper="0.8"', 'lower="-800" upper="800"')),
    )
    report = examine(grown, modes=False)
    assert report.usable, as_text(report)
    assert "warning" in [v.level for v in report.verdicts if "mm" in v.meaning]


# -- home -------------------------------------------------------------------------------------------------------------

# robot, what is changed, the loop, what it needs [m], and what there is [m]: by hand from the file's own numbers
SHORT = {
    "rods of a Delta": (
        ("delta", ('xyz="1.055 0 0"', 'xyz="0.09 0 0"')),
        "limb1_a_ball",
        np.linalg.norm([0.330 - 0.125, 0.05, np.sqrt(1.055**2 - (0.330 + 0.420 - 0.125) ** 2)]),
        np.hypot(0.420, 0.05) + 0.09,  # the rods sit 50 mm beside the arm's middle, at both ends
    ),
    "home of a five-bar": (
        ("five_bar", ('xyz="0 0.45 0"', 'xyz="0 4.5 0"')),
        "left_pin",
        None,
        0.7,
    ),
    "legs of a hexapod": (
        ("gough_stewart", ('upper="4.0"', 'upper="0.5"')),
        "limb4_ball",
        np.linalg.norm(np.array([0.2 - 0.2 + 0.3, 0.1 + 0.1 + 0.4, 0.8 - 0.1])),
        0.5,
    ),
}


@pytest.mark.parametrize("case", SHORT)
def test_home_out_of_reach_is_said_at_once(case: str) -> None:
    change, loop, needed, available = SHORT[case]
    text = changed(*change)
    began = time.process_time()
    report = examine(text)
    assert time.process_time() - began < 1.0
    assert not report.usable
    error = report.verdicts[-1]
    assert (error.level, error.about) == ("error", "<pkm> <home>")
    assert "is unreachable" in error.meaning
    assert f'<loop name="{loop}">' in error.meaning
    lengths = [float(x) for x in re.findall(r"at (?:least|most) ([\d.]+) m", error.meaning)]
    assert lengths[1] == pytest.approx(available, rel=1e-3)
    assert lengths[0] > lengths[1]
    if needed is not None:
        assert lengths[0] == pytest.approx(needed, rel=1e-3)


def test_the_example_of_the_document() -> None:
    text = changed(BIGLIDE, ('<origin xyz="0.5 0 0"/>', '<origin xyz="0.3 0 0"/>'))
    refused = as_text(examine(text))
    assert refused.startswith("text: NOT usable")
    refusal = refused.partition("\n\n")[2].partition("\n\n")[0]
    assert f"```\n{refusal}\n```" in (DOCS / "your_own_robot.md").read_text()


def test_bars_that_are_too_long_for_each_other() -> None:
    """A bar of nine metres between short ones: without a home pose the loop itself is at fault."""
    text = re.sub(r"<home [^>]*>", "<home>", changed("five_bar", ('xyz="0.4 0 0"', 'xyz="9 0 0"')))
    began = time.process_time()
    with pytest.raises(DescriptionError, match=r"every configuration is unreachable: .* at least 9 m") as refused:
        mechanism_from_urdf(text)
    assert time.process_time() - began < 1.0
    assert refused.value.element.startswith('<loop name="')


def test_reach_is_necessary_not_more(tmp_path: Path) -> None:
    """A home just within reach is left to the search, which finds it; just beyond, it is refused without one."""
    text, _ = expand(BIGLIDE)
    for depth, reached in ((0.499, True), (0.52, False)):
        moved = text.replace('xyz="0 0 -0.4"', f'xyz="0 0 {-depth}"').replace('lower="-0.48"', 'lower="-0.6"')
        assert moved != text
        if reached:
            assert mechanism_from_urdf(moved).home[2, 3] == pytest.approx(-depth)
        else:
            with pytest.raises(DescriptionError, match=r"left_bar spans at most 0\.5 m"):
                mechanism_from_urdf(moved)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "delta",
            'rpy="0 0 0" xyz="0 0 -0.8',
            'rpy="0.3 0 0" xyz="0 0 -0.8',
            r"platform_x, .*, deviate from it by 0 m and 0\.3 rad",
        ),
        (
            "five_bar",
            'xyz="0 0.45 0"',
            'xyz="0 0.45 0.05"',
            r"platform_x, platform_y, deviate from it by 0\.05 m "
            "and 0 rad",
        ),
        ("eclipse2", 'xyz="', 'xyz="0.6 0 0" was="', r"\[-0\.4, 0\.4\] make home unreachable: .* reaches 0\.6"),
    ],
)
def test_a_home_that_the_platforms_own_branch_cannot_take(name: str, old: str, new: str, words: str) -> None:
    """Turned though the robot does not turn, out of its plane, beyond its range: soon said, and not of a limb."""
    text, _ = expand(name)
    before, home = text.split("<home", 1)
    assert old in home
    began = time.process_time()
    report = examine(f"{before}<home{home.replace(old, new, 1)}", modes=False)
    assert time.process_time() - began < 2.0
    assert re.search(words, report.verdicts[-1].meaning), report.verdicts
    assert not report.usable


@by_day_and_night
def test_what_can_be_reached_passes(names: tuple[str, ...]) -> None:
    """Around the home of every robot, where the solvers close the loops, no loop is said to be out of reach."""
    tried = 0
    for name in names:
        kinematics = Kinematics(load_mechanism(name))
        m = kinematics.mechanism
        poses = poses_around(kinematics)
        for pose in poses[kinematics.inverse(poses).ok] if len(poses) else []:
            placed = (m.platform_link, transform_from_pose(pose))
            assert list(unclosable(m.links, m.joints, m.loops, m.base_link, placed, 1e-9)) == [], name
            tried += 1
    assert tried > 5 * len(names)


def test_a_search_in_vain_says_how_long_it_took_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms that turn across the plane: every length would do, so that it takes a search, and its time is bounded."""
    text = re.sub(
        r'(<joint name="left_elbow" type="revolute">.*?<axis xyz=)"0 0 1"',
        r'\1"0 1 0"',
        expand("five_bar")[0],
        flags=re.S,
    )
    monkeypatch.setattr(pkm_description.loops.home, "LONGEST", 0.0)
    began = time.process_time()
    with pytest.raises(DescriptionError, match=r"stays open by .* \(after \d+\.\d s and \d+ attempt\(s\)\)") as refused:
        mechanism_from_urdf(text)
    assert time.process_time() - began < 2.0
    starts = int(re.findall(r"(\d+) attempt", str(refused.value))[0])
    monkeypatch.undo()
    with pytest.raises(DescriptionError, match="attempt") as refused:
        mechanism_from_urdf(text)
    assert int(re.findall(r"(\d+) attempt", str(refused.value))[0]) > starts


def test_what_takes_long_is_said_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("pkm_runtime.progress._SILENT_FOR", 0.05)
    monkeypatch.setattr(
        "pkm_kinematics.check.mechanism_from_urdf", lambda text, origin: time.sleep(0.6) or load_mechanism("five_bar")
    )
    assert main(["five_bar", "--no-modes", "--json"]) == 0
    said = capsys.readouterr()
    assert re.search(
        r"pkm: checking the robot: closing the loops at home \(no new attempt after 10 s\): \d+ s \.\.\.", said.err
    )
    assert json.loads(said.out)["usable"] is True  # nothing of it on stdout


# -- drives -----------------------------------------------------------------------------------------------------------


def test_position_drives_are_told_what_that_means() -> None:
    text = changed("five_bar", ('<command_interface name="effort"/>', '<command_interface name="position"/>'))
    found = verdicts(text, "drives ")
    assert [v.level for v in found] == ["ok"]
    assert "left_arm, right_arm" in found[0].about
    assert "commanded by position only" in found[0].meaning
    assert "gains" in found[0].meaning
    assert verdicts("five_bar", "drives ") == []


def test_drives_of_different_kinds_are_warned_of() -> None:
    text, _ = expand("five_bar")
    mixed = text.replace('<command_interface name="effort"/>', '<command_interface name="position"/>', 1)
    assert [v.level for v in verdicts(mixed) if v.about in ("<ros2_control>",)] == ["warning"]


# -- masses, speeds, weight -------------------------------------------------------------------------------------------


@by_day_and_night
def test_the_gallery_gives_no_false_alarm(names: tuple[str, ...]) -> None:
    """Only what is known to be weak: nothing about masses, velocities or weight."""
    for name in (*names, *map(str, (DOCS / "examples").glob("*.urdf.xacro"))):
        found = [v for v in examined(name).verdicts if v.level != "ok"]
        assert {v.about for v in found} <= {"force amplification at home", "architecture singularity"}, (name, found)


@by_day_and_night
def test_the_weight_at_home_is_that_of_the_dynamics(names: tuple[str, ...]) -> None:
    """Virtual work by differences here, the recursive algorithm there; redundant drives may share it otherwise."""
    compared = 0
    for name in names:
        dynamics = shared_dynamics(load_mechanism(name))
        kinematics = dynamics.kinematics
        expected = np.asarray(dynamics.gravity(kinematics.home).effort)
        limits = np.full(len(expected), 50.0)
        found = weight_at_home(kinematics, limits)
        if found is None or not np.isfinite(expected).all():
            continue
        K = kinematics.at(kinematics.home).motion_jacobian
        scale = max(1.0, float(np.abs(K.T @ expected).max()))
        np.testing.assert_allclose(K.T @ found, K.T @ expected, atol=1e-6 * scale, err_msg=name)
        assert np.abs(found).max() <= np.abs(expected).max() + 1e-5 * scale, name
        compared += 1
    assert compared >= len(names) - 4


def test_the_weight_is_measured_at_the_side_that_carries_it() -> None:
    text, _ = expand("linear_delta")
    found = {}
    for least, most in ((-4.5, 80), (-80, 4.5)):
        range_of = f'<command_interface name="effort"><param name="min">{least}</param><param name="max">{most}</param>'
        weak = text.replace('<command_interface name="effort"/>', f"{range_of}</command_interface>")
        (verdict,) = verdicts(weak, "weight at home")
        found[verdict.level] = verdict.meaning
        (push,) = verdicts(weak, "force amplification at home")
        (strong,) = verdicts(text, "force amplification at home")
        held = [float(re.search(r"its limit holds ([\d.]+) times", one.meaning)[1]) for one in (push, strong)]
        assert held[0] == pytest.approx(held[1] * 4.5 / 80.0, rel=1e-2)
    assert set(found) == {"ok", "warning"}
    assert "of 4.5 N (90%)" in found["warning"]


def test_starts_outside_their_range_and_half_ranges_are_told() -> None:
    plain, _ = expand("five_bar")
    (start,) = verdicts(plain.replace(">2.3137<", ">-5.1<"), "position of")
    assert (start.level, start.number) == ("warning", -5.1)
    assert "outside its range -3.6 to 3.6" in start.meaning
    half, count = re.subn(r'lower="-3.6" ', "", plain, count=1)
    assert count == 1
    assert any("joint left_arm has one end of its range only" in note for note in examine(half, modes=False).remarks)
    assert not any("one end" in note for note in examined("five_bar").remarks)


def test_cables_carry_the_weight_by_pulling_or_not_at_all() -> None:
    """Between the tensions that keep cables taut, as the dynamics shares; cables to the floor alone hold nothing up."""
    text, _ = expand("cable_8")
    (pulling,) = verdicts(text, "weight at home")
    found = [float(value) for value in re.findall(r": (-?[\d.]+) of 600 N", pulling.meaning)]
    assert pulling.level == "ok"
    assert max(found) == -20.0  # the least tension
    assert min(found) == pytest.approx(-54.29, abs=0.05)  # as `Dynamics.gravity` says
    (worst,) = verdicts(text, "force amplification at home")
    assert "its limit holds" not in worst.meaning  # a cable holds nothing that pushes
    low, count = re.subn(r'xyz="(-?1\.5 -?1\.5) 1\.2"', r'xyz="\1 -1.3"', text)
    assert count == 4
    (loose,) = verdicts(low, "weight at home")
    assert loose.level == "warning"
    assert "no efforts within the ranges of the drives hold the robot" in loose.meaning
    assert "-600 to -20 N" in loose.meaning


def test_drives_that_cannot_carry_the_robot() -> None:
    """Ten times the weight of `linear_delta`, 4.05 N on each slider, is half of what they hold; thirty times is not."""
    text, _ = expand("linear_delta")
    for effort, level, words in (
        ("80", "ok", "(5%)"),
        ("4.5", "warning", "little"),
        ("2.0", "warning", "cannot carry"),
    ):
        (found,) = verdicts(re.sub(r'effort="80(\.0)?"', f'effort="{effort}"', text), "weight at home")
        assert found.level == level
        assert words in found.meaning
        assert f"limb1_slider, limb2_slider, limb3_slider: 4.05 of {float(effort):g} N" in found.meaning
        assert found.number == pytest.approx(4.0548 / float(effort), rel=1e-3)
        assert bool(found.remedy) is (level == "warning")


def test_masses_in_grams_are_warned_of() -> None:
    for name in ("agile_eye", "delta", "tripod_3prs", str(DOCS / "examples" / "hobby_hexapod.urdf.xacro")):
        text, _ = expand(name)
        heavy = re.sub(r'<mass value="([^"]*)"', lambda m: f'<mass value="{1000 * float(m.group(1))!r}"', text)
        (found,) = [v for v in verdicts(heavy, "masses") if v.level == "warning"]
        assert "looks like grams" in found.meaning
        assert "masses in kg" in found.remedy


def test_speeds_in_degrees_or_millimetres_are_warned_of() -> None:
    text, _ = expand("delta")
    assert 'velocity="10' in text
    found = verdicts(re.sub(r'velocity="10(\.0)?"', 'velocity="360"', text), '<joint name="limb1_arm"> <limit>')
    assert [v.level for v in found] == ["warning"]
    assert "3438 turns per minute" in found[0].meaning
    assert "looks like deg/s" in found[0].meaning
    assert "360 deg/s are 6.28319" in found[0].remedy
    text, _ = expand("linear_delta")
    found = verdicts(re.sub(r'velocity="1(\.0)?"', 'velocity="1000"', text), '<joint name="limb1_slider"> <limit>')
    assert "looks like mm/s" in found[0].meaning


def test_a_platform_without_mass_and_a_robot_without_any() -> None:
    text, _ = expand("gough_stewart")
    light = re.sub(r'(<link name="platform">.*?<mass value=")[^"]*"', r'\g<1>0"', text, count=1, flags=re.S)
    light = re.sub(
        r'(<link name="platform">.*?<inertia )[^>]*>',
        r'\1ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
        light,
        count=1,
        flags=re.S,
    )
    (found,) = verdicts(light, '<link name="platform">')
    assert (found.level, found.number) == ("warning", 0.0)
    assert "no mass" in found.meaning
    bare = re.sub(r"<inertial>.*?</inertial>", "", text, flags=re.S)
    found = verdicts(bare.replace("<pkm ", '<pkm kinematics_only="true" ', 1))
    assert [v.level for v in found if v.about == "masses"] == ["ok"]
    assert not [v for v in found if v.about in ("weight at home", '<link name="platform">')]


# -- how they are shown -----------------------------------------------------------------------------------------------


def test_verdicts_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gough_stewart", "--json", "--no-modes"]) == 0
    report = json.loads(capsys.readouterr().out)
    verdict = report["verdicts"][0]
    assert set(verdict) == {"level", "about", "number", "meaning", "remedy"}
    assert verdict["level"] == "warning"
    assert verdict["number"] == pytest.approx(report["singularity"]["force_amplification"])


def test_verdicts_in_words() -> None:
    report = examine("gough_stewart", modes=False)
    text = as_text(report, everything=False)
    first = "gough_stewart: usable, 1 warning\n  warning: force amplification at home 9.526: 1 N on the platform"
    assert text.startswith(first)
    assert "remedy: move <home>" in text


def test_a_load_on_the_platform_is_none_on_the_rail() -> None:
    kinematics = Kinematics(load_mechanism(on_a_rail("delta", axis="1 0 0")))
    hold = hold_at(kinematics, kinematics.home)
    assert hold is not None
    alone = hold_at(other := Kinematics(load_mechanism("delta")), other.home)
    assert alone is not None
    np.testing.assert_allclose(hold.efforts, [*alone.efforts, 1.0], rtol=1e-9)
