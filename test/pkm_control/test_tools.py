# SPDX-License-Identifier: Apache-2.0
"""Tools on a platform: whose poses are given, whose point goes straight, and what there is no tool for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_client import RefusedError, Robot, Setup
from pkm_control.control_errors import MotionFileError, UnreachableMotionError
from pkm_control.motion.files.default_motion import motion_named, tour
from pkm_control.motion.files.motion_file import parse_motion, task_chain_of
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.trajectory import Trajectory
from pkm_control.tool import Tool, ToolError, read_tools, tool_named
from pkm_description import load_mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_runtime.errors import ConfigurationError

TOOLS = """
tools:
  gripper: {xyz: [0.0, 0.03, -0.1], rpy: [0.0, 0.0, 0.0], mass: 0.2, com: [0.0, 0.0, -0.05]}
  camera: {xyz: [0.05, 0.0, 0.02], rpy: [0.3, -0.2, 0.1]}
"""


def written(folder: Path, text: str = TOOLS) -> str:
    file = folder / "tools.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tool]:
    return dict(read_tools(written(tmp_path_factory.mktemp("tools"))))


def planner_of(name: str) -> MotionPlanner:
    dynamics = shared_dynamics(load_mechanism(name))
    return MotionPlanner(dynamics, ActuatorLimits.of(dynamics.mechanism))


def test_a_tool_and_its_platform_belong_to_each_other(tools: dict[str, Tool]) -> None:
    rng = np.random.default_rng(3)
    poses = np.hstack([rng.normal(size=(20, 3)), Rotation.random(20, random_state=rng).as_quat()])
    for tool in tools.values():
        there = tool.on_platform(poses)
        attitude = Rotation.from_quat(poses[:, 3:])
        np.testing.assert_allclose(there[:, :3], poses[:, :3] + attitude.apply(tool.pose[:3]), atol=1e-12)
        turned = (attitude * Rotation.from_quat(tool.pose[3:])).as_matrix()
        np.testing.assert_allclose(Rotation.from_quat(there[:, 3:]).as_matrix(), turned, atol=1e-12)
        np.testing.assert_allclose(tool.of_platform(there)[:, :3], poses[:, :3], atol=1e-12)
        np.testing.assert_allclose(tool.of_platform(there[0])[:3], poses[0, :3], atol=1e-12)
    load = tools["gripper"].payload(1.0)
    assert load is not None
    assert load.mass == pytest.approx(1.2)
    np.testing.assert_allclose(load.com, (np.array((0.0, 0.03, -0.1)) + 0.2 * np.array((0.0, 0.0, -0.05))) / 1.2)
    assert tools["camera"].payload(0.0) is None


def straightness(plan: Trajectory, tool: Tool) -> float:
    """How far the tool's point is from the line between the ends of a plan [m]."""
    path = tool.on_platform(plan.sampled(500.0).pose)[:, :3]
    way = path[-1] - path[0]
    along = (path - path[0]) @ way / (way @ way)
    return float(np.linalg.norm(path - path[0] - along[:, None] * way, axis=1).max())


def check_rates(plan: Trajectory) -> None:
    """Twists and accelerations are the derivatives of poses and twists."""
    h = 1e-5
    middle = np.linspace(0.2, 0.8, 7) * plan.duration
    at, before, after = (plan.sample(middle + d) for d in (0.0, -h, h))
    np.testing.assert_allclose(at.twist[:, :3], (after.pose - before.pose)[:, :3] / (2 * h), atol=1e-5)
    np.testing.assert_allclose(at.acceleration, (after.twist - before.twist) / (2 * h), atol=2e-2)


def test_the_tools_point_goes_straight_while_the_platform_turns(tools: dict[str, Tool]) -> None:
    planner, tool = planner_of("gough_stewart"), tools["gripper"]
    header = "# frame: home\n# tool: gripper\nx [mm], y [mm], z [mm], roll [deg], pitch [deg], yaw [deg]"
    motion = parse_motion(f"{header}\n0,0,0,0,0,0\n40,20,10,8,-6,10\n", tools=tools)
    plan = planner.plan(motion)
    assert straightness(plan, tool) < 1e-9
    check_rates(plan)
    home = tool.on_platform(np.array(planner.kinematics.home))
    np.testing.assert_allclose(tool.on_platform(plan.end)[:3] - home[:3], (0.04, 0.02, 0.01), atol=1e-9)
    np.testing.assert_allclose(plan.start, planner.kinematics.home, atol=1e-9)  # the tool's home is the platform's
    origin = plan.sampled(500.0).pose[:, :3]
    assert np.linalg.norm(np.cross(origin - origin[0], origin[-1] - origin[0]), axis=1).max() > 1e-6  # which swings
    assert [change.payload.mass for change in plan.events.payloads if change.payload] == [0.2]
    timed = parse_motion(f"{header}, time [s]\n0,0,0,0,0,0,0\n20,10,5,8,-6,10,1\n40,20,10,0,0,0,2\n", tools=tools)
    check_rates(planner.plan(timed))
    slow = parse_motion(f"{header}, speed [mm/s]\n0,0,0,0,0,0,20\n40,0,0,8,-6,10,20\n", tools=tools)
    swift = tool.on_platform(planner.plan(slow).sampled(200.0).pose)[:, :3]
    assert np.linalg.norm(np.diff(swift, axis=0), axis=1).max() * 200.0 == pytest.approx(0.02, rel=1e-3)


@pytest.mark.parametrize("name", ["delta", "planar_3rrr", "tripod_3prs"])
def test_robots_with_few_freedoms_keep_their_attitude(name: str, tools: dict[str, Tool]) -> None:
    """Where a file gives positions alone, the platform keeps its attitude at home; the tool's point goes there."""
    planner, tool = planner_of(name), tools["camera"]
    home = np.array(planner.kinematics.home)
    at_home = tool.on_platform(home)
    step = (0.0, 0.0, 0.01) if name == "tripod_3prs" else (0.01, 0.01, 0.0)
    there = at_home[:3] + step
    rows = "\n".join(", ".join(f"{number:.12f}" for number in point) for point in (at_home[:3], there))
    motion = parse_motion(f"# tool: camera\nx [m], y [m], z [m]\n{rows}\n", home=home, tools=tools)
    plan = planner.plan(motion)
    np.testing.assert_allclose(plan.end[:3], home[:3] + step, atol=1e-9)
    np.testing.assert_allclose(tool.on_platform(plan.end)[:3], there, atol=1e-9)
    np.testing.assert_allclose(np.abs(plan.end[3:] @ home[3:]), 1.0, atol=1e-12)


def test_a_platform_that_only_turns_leads_its_tool_round(tools: dict[str, Tool]) -> None:
    planner, tool = planner_of("agile_eye"), tools["gripper"]
    turned = tour(planner.kinematics)
    motion = replace(turned, poses=tool.on_platform(turned.poses), tool=tool, of_tool=True)
    plan = planner.plan(motion)
    np.testing.assert_allclose(plan.end[:3], turned.poses[-1, :3], atol=1e-12)
    assert np.ptp(plan.sampled(100.0).pose[:, :3], axis=0).max() < 1e-12
    aside = motion.poses.copy()
    aside[1, 2] += 0.01
    with pytest.raises(UnreachableMotionError, match=r"tour, end .*outside the platform's motion space"):
        planner.plan(replace(motion, poses=aside))


def test_columns_of_the_platforms_joints_are_no_poses_of_a_tool(tools: dict[str, Tool]) -> None:
    mechanism = load_mechanism("delta")
    text = "# tool: camera\nplatform_x [m], platform_y [m], platform_z [m]\n0,0,-0.9\n0,0.1,-0.9\n"
    with pytest.raises(MotionFileError, match="column 'platform_x': is the platform's, and the poses are of tool 'cam"):
        parse_motion(text, task_chain=task_chain_of(mechanism), tools=tools)


def test_a_tool_that_does_not_exist(tools: dict[str, Tool], tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"no tool 'griper'; did you mean 'gripper'\?"):
        tool_named("griper", tools)
    with pytest.raises(ToolError, match="no tool 'laser'; there are camera, gripper"):
        tool_named("laser", tools)
    with pytest.raises(ToolError, match="no file of tools was given"):
        tool_named("gripper", {})
    with pytest.raises(MotionFileError, match=r"line 1: there is no tool 'griper'; did you mean 'gripper'\?"):
        parse_motion("# tool: griper\nx [m], y [m], z [m]\n0,0,0\n0,0,1\n", tools=tools)
    file = tmp_path / "motion.csv"
    file.write_text("# tool: gripper\n# frame: home\nx [m], y [m], z [m]\n0,0,0\n0,0,0.01\n")
    kinematics = planner_of("delta").kinematics
    with pytest.raises(MotionFileError, match="no file of tools was given"):
        motion_named(str(file), kinematics)
    assert motion_named(str(file), kinematics, written(tmp_path)).tool is not None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tools: {}", "names no tool"),
        ("tool: {}", "tool"),
        ("tools: {a: 3}", "tools.a: '3' is not a mapping"),
        ("tools: {a: {}}", "tools.a.xyz"),
        ("tools: {a: {xyz: [0, 0]}}", "tools.a.xyz"),
        ("tools: {a: {xyz: [0, 0, .nan]}}", "tools.a.xyz"),
        ("tools: {a: {xyz: [0, 0, 2000]}}", "more than a kilometre"),
        ("tools: {a: {xyz: [0, 0, 0], mass: -1}}", "tools.a.mass"),
        ("tools: {a: {xyz: [0, 0, 0], weight: 1}}", "tools.a.weight"),
    ],
)
def test_files_that_make_no_sense(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_tools(written(tmp_path, text))
    assert message in str(caught.value)


def test_the_client_moves_tools(tools: dict[str, Tool], tmp_path: Path) -> None:
    setup = Setup(rate=250.0, natural_frequency=40.0, tool_file=written(tmp_path))
    tool = tools["gripper"]
    with Robot.simulated("delta", realtime=False, setup=setup) as robot:
        robot.move_to([0.05, 0.0, -1.0], tool="gripper")
        np.testing.assert_allclose(robot.state.reference[:3], (0.05, -0.03, -0.9), atol=1e-12)
        np.testing.assert_allclose(robot.tool_pose("gripper")[:3], (0.05, 0.0, -1.0), atol=2e-3)
        full = tool.on_platform(np.array((0.02, 0.0, -0.9, 0.0, 0.0, 0.0, 1.0)))
        robot.move_to(full, tool="gripper")
        np.testing.assert_allclose(robot.state.reference[:3], (0.02, 0.0, -0.9), atol=1e-12)
        arms = robot.solve_ik(full, tool="gripper").by_name()
        assert arms == pytest.approx(robot.solve_ik([0.02, 0.0, -0.9]).by_name())
        with pytest.raises(ToolError, match="did you mean 'gripper'"):
            robot.move_to(full, tool="griper")
        with pytest.raises(RefusedError, match="with tool 'gripper' there: "):
            robot.solve_ik([0.05, 0.0, -3.0], tool="gripper")
        turned = full.copy()
        turned[3:] = Rotation.from_rotvec((0.3, 0.0, 0.0)).as_quat()
        with pytest.raises(RefusedError, match="with tool 'gripper' there: "):
            robot.solve_ik(turned, tool="gripper")  # this platform does not turn
        assert robot.payload is None
    with pytest.raises(ConfigurationError):
        Robot.simulated("delta", setup=Setup(tool_file=str(tmp_path / "none.yaml")))
