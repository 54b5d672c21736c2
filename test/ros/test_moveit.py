# SPDX-License-Identifier: Apache-2.0
"""Our kinematics plugin in MoveIt's own robot model, state and trajectory, loaded as MoveIt loads it.

Needs a sourced ROS 2 installation with moveit_core, in which pkm_ros2_control is built with its tests.
"""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from ament_index_python.packages import get_package_prefix

from pkm_description import load_mechanism
from pkm_description.load import expand
from pkm_description.rotations import rotation_from_quaternion
from pkm_dynamics import Dynamics
from test.pkm_ros2_control.native import pose_near_home, robot_library

from .installed import MOVEIT, not_installed

MISSING = not_installed(MOVEIT)
PROGRAM = Path() if MISSING else Path(get_package_prefix("pkm_ros2_control")) / "lib/pkm_ros2_control/moveit_test"
if not MISSING and not PROGRAM.exists():
    MISSING = ["moveit_test of pkm_ros2_control"]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

NO_SOLUTION, IN_COLLISION = -31, -12  # of moveit_msgs/MoveItErrorCodes


class InMoveIt:
    """A robot with two groups: `drives`, and `all` with its passive joints."""

    def __init__(self, name: str, folder: Path) -> None:
        dynamics = Dynamics(load_mechanism(name))
        self.kinematics, self.text = dynamics.kinematics, expand(name)[0]
        self.library = robot_library(dynamics, folder, ["-O1"])
        self.files = folder / "robot.urdf", folder / "robot.srdf"
        root = ET.Element("robot", name=load_mechanism(name).name)
        for group, joints in (("drives", self.kinematics.actuated_names), ("all", self.kinematics.joint_names)):
            element = ET.SubElement(root, "group", name=group)
            for joint in joints:
                ET.SubElement(element, "joint", name=joint)
        for joint in set(self.kinematics.joint_names) - set(self.kinematics.actuated_names):
            ET.SubElement(root, "passive_joint", name=joint)
        self.files[0].write_text(self.text)
        self.files[1].write_text(ET.tostring(root, encoding="unicode"))

    def ask(self, group: str, *questions: str) -> list[list[str]]:
        """Words of each answer, those of the solver's joints first."""
        links = self.kinematics.mechanism.base_link, self.kinematics.mechanism.platform_link
        command = [str(PROGRAM), *map(str, self.files), str(self.library), group, *links]
        text = "\n".join(questions)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60.0, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines()]

    def poses(self, count: int) -> np.ndarray:
        """Poses near home, in the motion space."""
        rng = np.random.default_rng(3)
        return np.array([pose_near_home(self.kinematics, rng, 0.05) for _ in range(count)])


@pytest.fixture(scope="module", params=["delta", "gough_stewart"])
def robot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> InMoveIt:
    return InMoveIt(request.param, tmp_path_factory.mktemp(request.param))


def told(pose: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in pose)


def numbers(words: list[str]) -> np.ndarray:
    return np.array([float(word) for word in words])


def test_inverse_kinematics_is_ours_and_refuses_what_it_must(robot: InMoveIt) -> None:
    k = robot.kinematics
    poses = robot.poses(20)
    names, *found = robot.ask("drives", *(f"ik {told(pose)}" for pose in poses))
    order = [k.actuated_names.index(name) for name in names]
    for pose, (ok, code, *solution) in zip(poses, found, strict=True):
        assert (ok, code) == ("1", "1")
        np.testing.assert_allclose(numbers(solution), np.asarray(k.inverse(pose).actuated)[order], atol=1e-10)
    away, home = np.array(k.home), told(np.asarray(k.home))
    away[2] += 10.0
    answers = robot.ask(
        "drives", f"ik {told(away)}", f"near 1e-6 {told(poses[0])}", f"near 100 {told(poses[0])}", f"refuse {home}"
    )[1:]
    assert [(ok, int(code)) for ok, code, *_ in answers] == [
        ("0", NO_SOLUTION), ("0", NO_SOLUTION), ("1", 1), ("0", IN_COLLISION),
    ]  # fmt: skip


def test_joints_without_limits_turn_to_the_seed(tmp_path: Path) -> None:
    robot = InMoveIt("docs/examples/biglide.urdf.xacro", tmp_path)
    k, pose = robot.kinematics, robot.poses(1)[0]
    names, (ok, _, *solution) = robot.ask("all", f"turned {told(pose)}")
    assert ok == "1"
    joints = np.asarray(k.inverse(pose).joints)[[k.joint_names.index(name) for name in names]]
    free = np.array([f'name="{name}" type="continuous"' in robot.text for name in names])
    assert free.any()
    np.testing.assert_allclose(numbers(solution), joints + 4.0 * np.pi * free, atol=1e-9)


def test_forward_kinematics_places_every_link(robot: InMoveIt) -> None:
    """The platform where the drives lead it, and the links of the limbs so that each loop closes."""
    k, pose = robot.kinematics, robot.poses(1)[0]
    names = robot.ask("drives")[0]
    q = np.asarray(k.inverse(pose).actuated)[[k.actuated_names.index(name) for name in names]]
    loops = ET.fromstring(robot.text).findall("loop")
    ends = [(one.find(side)) for one in loops for side in ("predecessor", "successor")]
    questions = [f"fk {end.get('link')} {told(q)}" for end in ends]
    platform, *found = robot.ask("drives", f"fk platform {told(q)}", *questions)[1:]
    np.testing.assert_allclose(numbers(platform[1:]), pose, atol=1e-9)
    points = []
    for end, (ok, *words) in zip(ends, found, strict=True):
        assert ok == "1"
        at, offset = numbers(words), numbers(end.find("origin").get("xyz").split())
        points.append(at[:3] + rotation_from_quaternion(at[3:]) @ offset)
    assert len(loops) > 0
    gaps = np.linalg.norm(np.array(points[::2]) - points[1::2], axis=1)
    assert gaps.max() < 1e-9


def test_trajectories_have_the_drives_and_states_all_joints(robot: InMoveIt) -> None:
    k, pose = robot.kinematics, robot.poses(1)[0]
    _, trajectory, state = robot.ask("drives", f"trajectory {told(pose)}", f"state platform {told(pose)}")
    assert trajectory[0] == "1"
    assert sorted(trajectory[1:]) == sorted(k.actuated_names)
    assert state[0] == "1"
    names, state = robot.ask("all", f"state platform {told(pose)}")
    at = k.inverse(pose)
    assert set(names) == set(k.joint_names)
    assert state[0] == "1"
    np.testing.assert_allclose(numbers(state[-7:]), pose, atol=1e-9)  # by the passive joints of the platform's branch
    expected = np.asarray(at.joints)[[k.joint_names.index(name) for name in names]]
    np.testing.assert_allclose(numbers(state[1:-7]), expected, atol=1e-9)
