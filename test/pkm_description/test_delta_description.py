# SPDX-License-Identifier: Apache-2.0
"""The Delta as its description states it: published numbers, graph, mobility, immutability."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.gallery import ROBOTS
from pkm_description.load import expand
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import JointType, Mechanism
from pkm_description.urdf.xacro_expansion import arguments_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def delta() -> Mechanism:
    return load_mechanism("delta")


def test_published_masses(delta: Mechanism) -> None:
    masses = sorted(link.inertial.mass for link in delta.links if not link.inertial.massless)
    assert masses == pytest.approx(sorted([3.47] * 3 + [0.226] * 3 + [0.525] * 6 + [2.916]))


def test_inertia_about_the_motor_axis_is_the_published_one(delta: Mechanism) -> None:
    arm, pin = delta.link_named["limb1_arm"].inertial, delta.link_named["limb1_pin"].inertial
    axis = delta.joint_named["limb1_arm"].axis
    offset = delta.joint_named["limb1_pin"].origin[:3, 3]
    total = 0.0
    for body, centre in ((arm, arm.com), (pin, offset + pin.com)):
        lever = np.cross(axis, centre)
        total += axis @ body.inertia @ axis + body.mass * lever @ lever
    assert total == pytest.approx(0.208218, abs=1e-12)
    assert arm.com == pytest.approx([0.17224, 0.0, 0.0])


def test_published_lengths(delta: Mechanism) -> None:
    for limb in ("limb1", "limb2", "limb3"):
        assert np.linalg.norm(delta.joint_named[f"{limb}_arm"].origin[:3, 3]) == pytest.approx(0.330)
        assert np.linalg.norm(delta.joint_named[f"{limb}_pin"].origin[:3, 3]) == pytest.approx(0.420)
        balls = [delta.loop_named[f"{limb}_{side}_ball"] for side in "ab"]
        for ball in balls:
            assert np.linalg.norm(ball.predecessor_frame[:3, 3]) == pytest.approx(1.055)
        middle = 0.5 * sum(ball.successor_frame[:3, 3] for ball in balls)
        assert np.linalg.norm(middle) == pytest.approx(0.125)


def test_drives(delta: Mechanism) -> None:
    assert delta.actuated_joints == ("limb1_arm", "limb2_arm", "limb3_arm")
    for name in delta.actuated_joints:
        drive = delta.joint_named[name].drive
        assert drive is not None
        assert drive.armature == pytest.approx(55**2 * 2.07e-4)
        assert drive.command_interfaces == ("effort",)
        assert drive.state_interfaces == ("position", "velocity", "effort")


def test_mobility_and_overconstraint(delta: Mechanism) -> None:
    assert (delta.mobility.platform, delta.mobility.motion, delta.mobility.total) == (3, "3T", 3)
    assert (delta.mobility.gruebler, delta.mobility.redundant_constraints, delta.mobility.left_out) == (3, 0, 0)


def test_limbs_and_platform_chain(delta: Mechanism) -> None:
    assert delta.platform_chain == ("platform_x", "platform_y", "platform_z")
    assert [limb.name for limb in delta.limbs] == ["limb1", "limb2", "limb3"]
    for limb in delta.limbs:
        assert limb.actuated == (f"{limb.name}_arm",)
        assert limb.loops == (f"{limb.name}_a_ball", f"{limb.name}_b_ball")
        assert len(limb.joints) == 6
        assert all(link.startswith(limb.name) for link in limb.links)


def test_topological_order(delta: Mechanism) -> None:
    reached = {delta.base_link}
    for joint in delta.joints:
        assert joint.parent in reached
        reached.add(joint.child)
    assert reached == {link.name for link in delta.links}


def test_home_closes_with_horizontal_arms(delta: Mechanism) -> None:
    model = ClosureModel(delta.links, delta.joints, delta.loops, delta.base_link)
    residual, _ = model.closure(delta.home_joints)
    assert np.abs(residual).max() < 1e-12
    home = dict(zip(delta.moving_joints, delta.home_joints, strict=True))
    assert [home[name] for name in delta.actuated_joints] == pytest.approx([0.0] * 3, abs=1e-9)
    # Elbow radius 0.33 + 0.42 over platform radius 0.125, rods of 1.055: by Pythagoras.
    assert delta.home[2, 3] == pytest.approx(-np.sqrt(1.055**2 - 0.625**2), abs=1e-12)
    assert delta.home[:3, :3] == pytest.approx(np.eye(3))


def test_mechanism_cannot_be_changed(delta: Mechanism) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        delta.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        delta.links[0].inertial.mass = 1.0  # type: ignore[misc]
    arrays = [delta.gravity, delta.home, delta.home_joints, delta.links[0].inertial.com]
    arrays += [delta.joints[0].origin, delta.joints[0].axis, delta.loops[0].axis, delta.loops[0].successor_frame]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array.flat[0] = 1.0


def test_xacro_argument_reaches_the_model() -> None:
    loaded = load_mechanism("delta", xacro_args={"payload": "6", "joint_states_topic": "machine/states"})
    assert loaded.link_named["payload"].inertial.mass == 6.0
    assert "machine/states" in loaded.urdf


def test_expanded_text_loads_to_the_same_mechanism(delta: Mechanism) -> None:
    again = load_mechanism(delta.urdf)
    assert again.joint_named.keys() == delta.joint_named.keys()
    assert np.array_equal(again.home_joints, delta.home_joints)
    assert all(joint.type is not JointType.FIXED for joint in (again.joint_named[name] for name in again.moving_joints))


@pytest.mark.parametrize(
    ("name", "words"), [("paylod", "did you mean payload?"), ("mass_of_it", "it has many: pkm check FILE --args")]
)
def test_an_argument_that_the_file_does_not_have_is_refused(name: str, words: str) -> None:
    with pytest.raises(DescriptionError, match=f"no argument '{name}'; {words}"):
        load_mechanism("delta", xacro_args={name: "0.5"})


@pytest.mark.parametrize(
    ("source", "old", "new", "problem", "remedy"),
    [
        (
            ROBOTS / "delta.urdf.xacro",
            'name="rod_length" default="1.055"',
            'name="rod_length" default="0.3"',
            r"is sqrt of -0\.3006, which has no value, with rod_length = 0\.3, base_radius = 0\.33, arm_length = 0\.42",
            "change one of rod_length, base_radius, arm_length, platform_radius",
        ),
        (
            ROOT / "docs" / "examples" / "hobby_hexapod.urdf.xacro",
            'name="rod_length" default="0.130"',
            'name="rod_length" default="0.015"',
            r"is sqrt of -[\d.e-]+, which has no value, with rod_length = 0\.015, corner_x",
            "change one of rod_length, corner_x, corner_y",
        ),
        (
            ROBOTS / "delta.urdf.xacro",
            'name="platform_mass" value="$(arg platform_mass)"',
            'name="platform_mass" value="${1 / (base_radius - 0.33)}"',
            "division by zero, with base_radius = 0.33",
            "change base_radius",
        ),
        (
            ROBOTS / "delta.urdf.xacro",
            "../limbs/rus2.xacro",
            "my_limbs/rus2.xacro",
            "No such file or directory: .*my_limbs/rus2.xacro",
            r"\$\(find pkm_control\)/pkm_description/limbs/NAME.xacro",
        ),
        (
            ROBOTS / "delta.urdf.xacro",
            "../limbs/rus2.xacro",
            "$(find pkm_contrl)/pkm_description/limbs/rus2.xacro",
            r"cannot expand it: \$\(find pkm_contrl\): no package 'pkm_contrl' is installed \(when",
            r"did you mean \$\(find pkm_control\)\?",
        ),
    ],
    ids=["rods of a Delta", "rods of a hexapod", "division by zero", "include", "package"],
)
def test_numbers_that_cannot_be_are_named(
    tmp_path: Path, source: Path, old: str, new: str, problem: str, remedy: str
) -> None:
    text = source.read_text(encoding="utf-8")
    assert old in text
    mine = tmp_path / "mine.urdf.xacro"
    mine.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DescriptionError, match=problem) as refused:
        load_mechanism(mine)
    assert re.search(remedy, refused.value.remedy)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["delta", "gough_stewart", "five_bar", "spatial_4dof_5legs"])
def test_a_file_of_the_gallery_can_be_copied_elsewhere(tmp_path: Path, name: str) -> None:
    """Its includes are relative; what is not beside the copy is found where it came from."""
    mine = tmp_path / "mine.urdf.xacro"
    shutil.copy(ROBOTS / f"{name}.urdf.xacro", mine)
    copied, shipped = (re.sub(r"<!-- .* -->", "", expand(source)[0]) for source in (mine, name))
    assert copied == shipped
    (tmp_path / "gough_stewart.xacro").write_text("<robot/>")  # beside it, a file of that name goes first
    if name == "gough_stewart":
        with pytest.raises(DescriptionError):
            expand(mine)


def test_the_hexapod_of_servos_takes_eight_numbers() -> None:
    """Half as large in every length: nothing else is to be changed, no range of the platform either."""
    path = ROOT / "docs" / "examples" / "hobby_hexapod.urdf.xacro"
    lengths = ("base_radius", "platform_radius", "arm_length", "rod_length")
    half = {one.name: str(0.5 * float(one.default)) for one in arguments_of(path) if one.name in lengths}
    assert len(half) == len(lengths)
    assert load_mechanism(path, half).home[2, 3] == pytest.approx(0.5 * 0.12862, rel=1e-3)


def test_the_words_of_printers_lead_to_the_argument() -> None:
    with pytest.raises(DescriptionError, match=r"did you mean base_radius \(m: .*delta_radius is base_radius - "):
        load_mechanism("linear_delta", {"delta_radius": "0.16"})
    with pytest.raises(DescriptionError, match=r"did you mean rod_length \(.*; pkm check ROBOT --args lists"):
        load_mechanism("linear_delta", {"arm_length": "0.3"})
