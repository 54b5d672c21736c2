# SPDX-License-Identifier: Apache-2.0
"""Every robot of the gallery through every format and back: the same bodies, home, kinematics and efforts."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats import USD_HEAD
from pkm_description.formats.convert import WRITERS
from pkm_description.formats.read import assembly_of
from pkm_description.formats.sdf import to_sdf
from pkm_description.formats.usd import to_usd
from pkm_description.joint_geometry import home_positions
from pkm_dynamics import Dynamics

EXACT = 1e-10  # of the largest effort; m and rad
FORMATS = ("mjcf", "sdf", "urdf+constraint", "usd")


def written(kind, mechanism, split=()):
    """A robot in a format, read back."""
    if kind == "usd":
        pytest.importorskip("pxr")
    writer = {"sdf": to_sdf, "usd": to_usd}[kind] if split else WRITERS[kind]
    return load_mechanism(writer(mechanism, split)[0] if split else writer(mechanism)[0])


def check_same(robot, back):
    mechanism = robot.kinematics.mechanism
    named = {link.name for link in mechanism.links if not link.inertial.massless}  # MuJoCo passes over the others
    assert named <= {link.name for link in back.links}
    assert back.mobility.total == mechanism.mobility.total
    assert back.actuated_joints == mechanism.actuated_joints
    np.testing.assert_allclose(back.home, mechanism.home, atol=EXACT)
    mine, theirs = home_positions(mechanism), home_positions(back)
    np.testing.assert_allclose(
        [theirs[n] for n in mechanism.actuated_joints], [mine[n] for n in mechanism.actuated_joints], atol=EXACT
    )
    dynamics, states = Dynamics(back, friction=False), robot.states
    ours, others = (one.inverse(states.pose) for one in (robot.kinematics, dynamics.kinematics))
    np.testing.assert_array_equal(others.status, ours.status)
    np.testing.assert_allclose(others.actuated, ours.actuated, rtol=0.0, atol=EXACT)
    expected, found = (
        one.inverse(states.pose, states.twist, states.acceleration).effort for one in (robot.dynamics, dynamics)
    )
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=EXACT * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize("kind", FORMATS)
def test_there_and_back(kind, robot):
    check_same(robot, written(kind, robot.kinematics.mechanism))


@pytest.mark.parametrize("kind", ["sdf", "usd"])
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "wrist_3ups_s"])
def test_balls_as_hinges(kind, name, of_gallery):
    robot = of_gallery[name]
    split = ("spherical",)
    assert "spherical" in {loop.type.value for loop in robot.kinematics.mechanism.loops}
    text = {"sdf": to_sdf, "usd": to_usd}[kind](robot.kinematics.mechanism, split)[0]
    assert ("ball" if kind == "sdf" else "Spherical") not in text.replace("_ball", "")
    check_same(robot, written(kind, robot.kinematics.mechanism, split))


@pytest.mark.parametrize("kind", FORMATS)
def test_friction_limits_and_rotors_come_back(kind, delta):
    """What a simulator takes of a joint, though the remark has some of it as well."""
    mechanism = delta.kinematics.mechanism
    back = written(kind, mechanism)
    for name in mechanism.actuated_joints:
        mine, theirs = mechanism.joint_named[name], back.joint_named[name]
        assert theirs.viscous_friction == pytest.approx(mine.viscous_friction, rel=1e-12)
        assert theirs.coulomb_friction == pytest.approx(mine.coulomb_friction, rel=1e-12)
        assert theirs.drive.armature == pytest.approx(mine.drive.armature, rel=1e-12)
        keys = ("lower", "upper", "effort") + (() if kind == "mjcf" else ("velocity",))
        for key in keys:
            assert getattr(theirs.limits, key) == pytest.approx(getattr(mine.limits, key), rel=1e-9)


def test_usd_is_physics_to_its_own_library(delta):
    """OpenUSD's loader of physics takes every prim for valid, and finds the loops out of the articulation."""
    pytest.importorskip("pxr")
    from pxr import Sdf, Usd, UsdPhysics

    mechanism = delta.kinematics.mechanism
    layer = Sdf.Layer.CreateAnonymous(".usda")
    assert layer.ImportFromString(to_usd(mechanism)[0])
    stage = Usd.Stage.Open(layer)
    found = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    assert all(one.isValid for _, descriptions in found.values() for one in descriptions)
    number = {kind.name: len(paths) for kind, (paths, _) in found.items()}
    assert number["Articulation"] == 1
    assert number["RevoluteJoint"] + number["SphericalJoint"] + number["FixedJoint"] == sum(
        prim.IsA(UsdPhysics.Joint) for prim in stage.Traverse()
    )
    joints = [UsdPhysics.Joint(prim) for prim in stage.Traverse() if prim.IsA(UsdPhysics.Joint)]
    out = [one for one in joints if one.GetExcludeFromArticulationAttr().Get()]
    bodies = sum(prim.HasAPI(UsdPhysics.RigidBodyAPI) for prim in stage.Traverse())
    assert len(joints) - len(out) == bodies  # a tree, with the base on the world
    assert {str(one.GetPrim().GetTypeName()) for one in out} <= {"PhysicsSphericalJoint", "PhysicsRevoluteJoint"}
    driven = {one.GetPrim().GetName() for one in joints if one.GetPrim().HasAPI(UsdPhysics.DriveAPI)}
    assert driven == set(mechanism.actuated_joints)


@pytest.mark.parametrize("name", ["quattro", "delta"])
def test_usd_has_the_side_of_the_base_first(name, of_gallery):
    """Newton refuses joints of the tree the other way round: a Quattro's half plates are hinged to its platform."""
    mechanism = of_gallery[name].kinematics.mechanism
    joints = re.findall(r'def Physics\w+Joint "[^{]*\{(.*?)\n\s*\}', to_usd(mechanism)[0], re.DOTALL)
    tree = [re.findall(r"rel physics:body\d = <(.*)>", one) for one in joints if "excludeFromArticulation" not in one]
    reached = {tree[0][0]}  # the base, which is fixed to the world
    for _ in tree:
        reached |= {ends[1] for ends in tree[1:] if ends[0] in reached}
    assert len(tree) == len(reached) == len({ends[-1] for ends in tree})


def test_usd_says_where_joints_are_drawn(of_gallery):
    """Newton and PhysX begin there: from zero, this robot's loops are 0.8 m open."""
    kinematics = of_gallery["five_bar"].kinematics
    home = dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True))
    lines = to_usd(kinematics.mechanism)[0].splitlines()
    for name, kind, unit in (("left_arm", "angular", 180.0 / np.pi), ("platform_y", "linear", 1.0)):
        first = next(k for k, line in enumerate(lines) if f'Joint "{name}"' in line)
        assert f"PhysicsJointStateAPI:{kind}" in lines[first]
        said = dict(line.strip().split(" = ") for line in lines[first : first + 20] if " = " in line)
        for key in (f"state:{kind}:physics:position", f"newton:{kind}:position"):
            assert float(said[f"float {key}"]) == pytest.approx(unit * home[name], rel=1e-9)


def test_usd_without_our_numbers_is_the_robot_in_single_precision(of_gallery):
    pytest.importorskip("pxr")
    five_bar = of_gallery["five_bar"]
    mechanism = five_bar.kinematics.mechanism
    lines = [line for line in to_usd(mechanism)[0].splitlines() if " pkm:" not in line or "pkm:name" in line]
    text = "\n".join(line for line in lines if "customLayerData" not in line)
    assert text.startswith(USD_HEAD)
    given = {"platform": mechanism.platform_link, "base": mechanism.base_link}
    back = load_mechanism(text, given | {"actuated": ",".join(mechanism.actuated_joints)})
    without = load_mechanism(mechanism.urdf.replace("rotor_inertia", "unread"))
    states = five_bar.states
    expected, found = (
        Dynamics(one, friction=False).inverse(states.pose, states.twist, states.acceleration).effort
        for one in (without, back)
    )
    # single precision is 6e-8, and some of these poses are near singular ones
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-4 * np.abs(expected).max())


def test_numbers_of_ours_that_disagree_are_not_believed(of_gallery):
    pytest.importorskip("pxr")
    text = to_usd(of_gallery["five_bar"].kinematics.mechanism)[0]
    before = assembly_of(text).bodies["left_arm"].inertial
    at = text.index('def Xform "left_arm"')
    changed = text[:at] + text[at:].replace(f"physics:mass = {before.mass!r}", "physics:mass = 7.5", 1)
    assert changed != text
    assert assembly_of(changed).bodies["left_arm"].inertial.mass == 7.5


STACKED = """#usda 1.0
(
    defaultPrim = "table"
    metersPerUnit = 0.01
)
def Xform "table" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])
{
    bool newton:jointsAddMobility = 1
    def Xform "plate" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        float3 physics:diagonalInertia = (100, 100, 200)
        double3 xformOp:translate = (0, 0, 50)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def PhysicsPrismaticJoint "x"
    {
        rel physics:body1 = </table/plate>
        point3f physics:localPos0 = (0, 0, 50)
        uniform token physics:axis = "X"
        float physics:lowerLimit = -20
        float physics:upperLimit = 20
    }
    def PhysicsRevoluteJoint "turn" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
    {
        rel physics:body1 = </table/plate>
        point3f physics:localPos0 = (0, 0, 50)
        uniform token physics:axis = "Z"
        float drive:angular:physics:stiffness = 10
    }
}
"""


@pytest.mark.parametrize(
    ("text", "words"), [("#usda 9.0\n", "layer version '9.0'"), ("", "empty"), ("#usda 1.0\n(", "line 2 .*truncated")]
)
def test_usd_that_cannot_be_opened_is_one_plain_line(text, words, tmp_path):
    pytest.importorskip("pxr")
    file = tmp_path / "robot.usda"
    file.write_text(text)
    with pytest.raises(DescriptionError, match=words) as raised:
        load_mechanism(file)
    assert str(raised.value).count("robot.usda") == 1
    assert "pxr" not in str(raised.value)


def test_usd_text_of_a_hundred_megabytes_is_refused(tmp_path):
    pytest.importorskip("pxr")
    file = tmp_path / "robot.usd"
    with file.open("w") as text:
        text.write("#usda 1.0\n")
        text.truncate(100_000_000)  # a hole: takes no room on the disk
    with pytest.raises(DescriptionError, match=r"robot\.usd: text of 100000000 bytes, more than"):
        load_mechanism(file)


@pytest.mark.parametrize("ending", [".usd", ".xml", ".yaml"])
def test_pointers_of_git_lfs_are_told(ending, tmp_path):
    if ending == ".usd":
        pytest.importorskip("pxr")
    file = tmp_path / f"robot{ending}"
    file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")
    with pytest.raises(DescriptionError, match=r"robot\..*: it is a pointer of Git LFS"):
        load_mechanism(file)


@pytest.mark.parametrize(
    ("up", "scene", "gravity"),
    [
        ("Y", "", (0, -9.81, 0)),
        ("Z", 'def PhysicsScene "s" {}', (0, 0, -9.81)),
        ("Y", 'def PhysicsScene "s" {\nfloat physics:gravityMagnitude = 100\n}', (0, -1, 0)),
        ("Y", 'def PhysicsScene "s" {\nvector3f physics:gravityDirection = (2, 0, 0)\n}', (9.81, 0, 0)),
        ("Z", 'def PhysicsScene "s" {\nfloat physics:gravityMagnitude = 0\n}', (0, 0, 0)),
    ],
)
def test_usd_that_says_no_direction_of_gravity_means_down(up, scene, gravity):
    pytest.importorskip("pxr")
    text = STACKED.replace("    metersPerUnit = 0.01\n)", f'    metersPerUnit = 0.01\n    upAxis = "{up}"\n)\n{scene}')
    assert text != STACKED
    np.testing.assert_allclose(assembly_of(text).gravity, gravity)


def test_usd_that_names_what_is_not_there_is_told():
    pytest.importorskip("pxr")
    with pytest.raises(DescriptionError, match="x: there is no prim /table/plte, its physics:body1"):
        load_mechanism(STACKED.replace("body1 = </table/plate>", "body1 = </table/plte>"))
    eye = STACKED.replace('def Xform "plate"', 'def Camera "eye" {}\ndef Xform "plate"', 1)
    assert eye != STACKED
    assert "not read: cameras eye" in assembly_of(eye).notes
    missing = STACKED.replace('"table" (prepend', '"table" (references = @gone.usda@\n prepend')
    assert any("not read: Could not open asset @gone.usda@" in note for note in assembly_of(missing).notes)


@pytest.mark.parametrize("unit", ["0", "-1", "1e-300", "nan"])
def test_usd_of_no_unit_is_refused(unit):
    pytest.importorskip("pxr")
    with pytest.raises(DescriptionError, match="metersPerUnit is"):
        load_mechanism(STACKED.replace("metersPerUnit = 0.01", f"metersPerUnit = {unit}"))


def test_usd_of_others():
    """Centimetres, joints one after the other between two bodies, a drive that holds a position."""
    pytest.importorskip("pxr")
    assembly = assembly_of(STACKED)
    plate, (x, turn) = assembly.bodies["plate"], assembly.joints
    np.testing.assert_allclose(plate.pose[:3, 3], [0.0, 0.0, 0.5])
    np.testing.assert_allclose(plate.inertial.inertia, np.diag([0.01, 0.01, 0.02]), rtol=1e-6)
    assert (x.parent, x.child, turn.parent, turn.child) == ("world", "plate/x", "plate/x", "plate")
    assert (x.kind, turn.kind, x.closes, turn.closes) == ("prismatic", "continuous", False, False)
    np.testing.assert_allclose([x.limits.lower, x.limits.upper], [-0.2, 0.2], rtol=1e-6)
    assert assembly.drives == {"turn": "position"}


def test_table_of_the_docs_is_of_these_formats():
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    for kind in FORMATS:
        assert f"`{kind}`" in page
