# SPDX-License-Identifier: Apache-2.0
"""Planning for the Delta: every limit is kept at every instant, and what cannot be done is refused with a reason.

The limits are checked here from the description and the library directly, on samples that the planner does not use.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_control.control_errors import LimitError, UnreachableMotionError
from pkm_control.motion.files.motion_file import MotionFile, parse_motion, read_motion_file
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.motion.trajectory import Trajectory
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits, PlatformLimits
from pkm_kinematics import Kinematics

SLACK = 1.01  # between the samples of the planner a peak may be higher than on them


@pytest.fixture(scope="module")
def planner(kinematics, dynamics, limits):
    return MotionPlanner(dynamics, limits)


def used(planner, trajectory) -> dict[str, float]:
    """Return the largest use of each limit: value over bound."""
    times = np.linspace(0.0, trajectory.duration, 7919)
    sample = trajectory.sample(times)
    motion = planner.kinematics.motion(sample.pose, sample.twist, sample.acceleration)
    assert (motion.status == 0).all()
    effort = planner.dynamics.inverse(sample.pose, sample.twist, sample.acceleration).effort
    jerk = np.diff(sample.acceleration[:, :3], axis=0) / np.diff(times)[:, None]
    p = planner.platform
    return {
        "effort": float((np.abs(effort) / planner.actuators.effort).max()),
        "actuator velocity": float((np.abs(motion.actuated_velocities) / planner.actuators.velocity).max()),
        "velocity": float(np.linalg.norm(sample.twist[:, :3], axis=1).max() / p.linear_velocity),
        "acceleration": float(np.linalg.norm(sample.acceleration[:, :3], axis=1).max() / p.linear_acceleration),
        "jerk": float(np.linalg.norm(jerk, axis=1).max() / p.linear_jerk),
    }


def check_consistency(trajectory) -> None:
    """The samples are one motion: twist is the rate of the pose, acceleration that of the twist, both continuous."""
    h = 1e-6
    times = np.linspace(2 * h, trajectory.duration - 2 * h, 997)
    at, before, after = (trajectory.sample(times + d) for d in (0.0, -h, h))
    rate = (after.pose[:, :3] - before.pose[:, :3]) / (2 * h)
    np.testing.assert_allclose(at.twist[:, :3], rate, atol=1e-6 + 1e-6 * np.abs(at.twist).max())
    rate = (after.twist - before.twist) / (2 * h)
    jumps = 3e4 * h  # the jerk that is allowed, over the step of the difference
    np.testing.assert_allclose(at.acceleration, rate, atol=jumps + 1e-5 * np.abs(at.acceleration).max())
    ends = trajectory.sample(np.array([0.0, trajectory.duration]))
    assert np.abs(ends.twist).max() < 1e-9
    assert np.abs(ends.acceleration).max() < 1e-6


SETTINGS = {
    "as described": PlatformLimits(),
    "gentle": PlatformLimits(linear_velocity=0.5, linear_acceleration=5.0, linear_jerk=100.0),
    "slow but sudden": PlatformLimits(linear_velocity=0.2, linear_acceleration=80.0, linear_jerk=2e4),
    "left to the actuators": PlatformLimits(linear_acceleration=1e4, linear_jerk=1e7, linear_velocity=100.0),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_pick_and_place_keeps_every_limit(planner, name: str) -> None:
    planner = MotionPlanner(planner.dynamics, planner.actuators, SETTINGS[name])
    trajectory = planner.plan(read_motion_file("pick_and_place"))
    check_consistency(trajectory)
    loads = used(planner, trajectory)
    left = 1.0 - planner.reserve
    shares = {
        limit: load / (left if limit in ("effort", "actuator velocity") else 1.0) for limit, load in loads.items()
    }
    for limit, share in shares.items():
        assert share < SLACK, limit
    assert max(shares.values()) > 0.94  # and some limit is made use of, so the motion is not slower than it must be
    assert len(trajectory.notes) == 2


def test_pick_and_place_is_where_the_file_says(planner) -> None:
    trajectory = planner.plan(read_motion_file("pick_and_place"))
    home = planner.kinematics.home
    sample = trajectory.sample(np.linspace(0.0, trajectory.duration, 4001))
    offset = sample.pose[:, :3] - home[:3]
    np.testing.assert_allclose([offset[:, 0].min(), offset[:, 0].max()], [-0.1525, 0.1525], atol=1e-9)
    np.testing.assert_allclose([offset[:, 2].min(), offset[:, 2].max()], [0.0, 0.025], atol=1e-9)
    assert np.abs(offset[:, 1]).max() < 1e-12
    np.testing.assert_allclose(trajectory.start, trajectory.end, atol=1e-9)
    np.testing.assert_allclose(sample.pose[:, 3:], np.tile(home[3:], (4001, 1)), atol=1e-12)
    # rests of 20 ms at both places
    still = np.linalg.norm(sample.twist, axis=1) < 1e-12
    assert still.mean() * trajectory.duration == pytest.approx(0.04, abs=0.004)


def test_it_is_not_far_from_what_the_strongest_acceleration_allows(planner) -> None:
    """A straight move without effort limits has a known optimum: bang-bang, plus the time that the jerk limit takes."""
    limits = replace(planner.actuators, effort=np.full(3, 1e6), velocity=np.full(3, 1e6))
    platform = PlatformLimits(linear_velocity=100.0, linear_acceleration=20.0, linear_jerk=2000.0)
    free = MotionPlanner(planner.dynamics, limits, platform)
    start = planner.kinematics.home.copy()
    end = start.copy()
    end[1] += 0.2
    duration = free.between(start, end).duration
    # seven-segment profile of the jerk-limited optimum: T = ramp + sqrt(ramp^2 + 4 d / a), ramp = a / j
    ramp = 20.0 / 2000.0
    optimum = ramp + np.sqrt(ramp**2 + 4 * 0.2 / 20.0)
    assert optimum <= duration < 1.08 * optimum


def test_shipped_motions_fit_the_robots_they_are_for(planner) -> None:
    circle = planner.plan(read_motion_file("circle"))
    assert circle.duration == pytest.approx(2.0)
    sample = circle.sample(np.linspace(0.0, 2.0, 1001))
    # between the recorded points, 9 degrees apart at the most, the spline of degree five is on the circle
    radius = np.linalg.norm(sample.pose[:, :2] - planner.kinematics.home[:2], axis=1)
    np.testing.assert_allclose(radius, 0.04, atol=5e-6)
    hexapod = load_mechanism("gough_stewart")
    kinematics = Kinematics(hexapod)
    tilts = MotionPlanner(Dynamics(kinematics), ActuatorLimits.of(hexapod)).plan(read_motion_file("tilts"))
    assert np.abs(tilts.sample(np.linspace(0, tilts.duration, 99)).twist[:, 3:]).max() > 0.5


def lines_of(planner, count: int):
    """A motion that stops at `count` places at random, and turns there where the robot can."""
    k, rng = planner.kinematics, np.random.default_rng(count)
    space = np.linalg.svd(np.asarray(k.subspace(k.home)), full_matrices=False)[0]
    shifts = space @ rng.uniform(-0.08, 0.08, (space.shape[1], count)) * k.engine.size
    poses = np.tile(k.home, (count, 1))
    poses[:, :3] += shifts[:3].T
    turns = Rotation.from_rotvec(shifts[3:].T / k.engine.size)
    poses[:, 3:] = (turns * Rotation.from_quat(np.array(k.home[3:]))).as_quat()
    return MotionFile.through("", poses, ("",) * count, planner.platform)


def test_a_long_motion_says_how_far_it_is(planner, monkeypatch: pytest.MonkeyPatch) -> None:
    said, plan = [], planner._plan_lines
    monkeypatch.setattr(planner, "_plan_lines", lambda *way: said.append(planner.done) or plan(*way))
    planner.plan(lines_of(planner, 100))
    assert said == ["waypoint 1 of 100, 0 % done", "waypoint 65 of 100, 64 % done"]


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "linear_delta", "planar_redundant"])
def test_lines_are_run_as_if_each_was_planned_alone(of_gallery, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As quick, up to what they leave of the drives, within all limits, by asking 15 times less of the robot."""
    robot = of_gallery[name]
    planner = MotionPlanner(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism))
    asked: list[int] = []
    at, efforts = planner._at, planner._efforts
    monkeypatch.setattr(planner, "_at", lambda pose: asked.append(len(pose)) or at(pose))
    monkeypatch.setattr(planner, "_efforts", lambda at, *rest: asked.append(len(at.pose)) or efforts(at, *rest))
    motion = lines_of(planner, 13)
    plan = planner.plan(motion)
    together = sum(asked)
    asked.clear()
    alone = [planner._plan_free(motion, i, i + 1, planner.platform)[0] for i in range(12)]
    assert sum(asked) > 15 * together
    for line, other in zip(plan.pieces, alone, strict=True):
        assert 0.999 < line.duration / other.duration < 1.003
        loads = used(planner, Trajectory([line]))
        assert max(loads[limit] for limit in ("effort", "actuator velocity")) < (1.0 - planner.reserve) * 1.0001
        assert max(loads["acceleration"], loads["velocity"]) < SLACK
        assert loads["jerk"] < max(SLACK, 1.001 * used(planner, Trajectory([other]))["jerk"])


def test_programmed_speeds_are_kept(planner) -> None:
    text = (
        "# frame: home\nx [mm], y [mm], z [mm], speed [mm/s], blend [mm]\n0,0,0,max,0\n100,0,0,200,10\n100,100,0,50,0\n"
    )
    trajectory = planner.plan(parse_motion(text))
    sample = trajectory.sample(np.linspace(0.0, trajectory.duration, 9001))
    offset = sample.pose[:, :3] - planner.kinematics.home[:3]
    speed = np.linalg.norm(sample.twist[:, :3], axis=1)
    assert speed.max() <= 0.2 * SLACK
    assert speed[(offset[:, 0] > 0.02) & (offset[:, 0] < 0.08)].mean() == pytest.approx(0.2, rel=0.02)
    assert speed[offset[:, 1] > 0.02].max() <= 0.05 * SLACK


def test_without_blend_the_platform_stops_and_straight_on_it_does_not(planner) -> None:
    corner = "# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n50,0,0\n50,50,0\n"
    straight = "# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n50,0,0\n100,0,0\n"
    assert len(planner.plan(parse_motion(corner)).pieces) == 2
    assert len(planner.plan(parse_motion(straight)).pieces) == 1
    whole = "# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n100,0,0\n"
    assert planner.plan(parse_motion(straight)).duration == pytest.approx(
        planner.plan(parse_motion(whole)).duration, rel=0.01
    )


def timed(scale: float, path: str = "smooth") -> str:
    rows = [(0, 0, 0, 0.0), (40, 0, 10, 0.2), (80, 40, 0, 0.4), (40, 60, -10, 0.7), (0, 0, 0, 1.0)]
    table = "\n".join(f"{x}, {y}, {z}, {t * scale}" for x, y, z, t in rows)
    return f"# frame: home\n# path: {path}\nx [mm], y [mm], z [mm], time [s]\n{table}\n"


@pytest.mark.parametrize("path", ["smooth", "straight"])
def test_given_times_are_kept(planner, path: str) -> None:
    motion = parse_motion(timed(1.0, path))
    trajectory = planner.plan(motion)
    assert trajectory.duration == pytest.approx(1.0)
    assert motion.times is not None
    there = trajectory.sample(motion.times).pose
    np.testing.assert_allclose(there, motion.in_base(planner.kinematics.home).poses, atol=1e-12)
    speeds = np.linalg.norm(trajectory.sample(motion.times).twist[1:-1, :3], axis=1)
    assert (speeds < 1e-9).all() if path == "straight" else (speeds > 0.1).all()
    check_consistency(trajectory)


def test_times_that_break_a_limit_are_refused_with_its_name(planner) -> None:
    with pytest.raises(LimitError) as caught:
        planner.plan(parse_motion(timed(0.15), source="hasty.csv"))
    assert "hasty.csv, line" in str(caught.value)
    assert caught.value.value > caught.value.bound
    gentle = MotionPlanner(planner.dynamics, planner.actuators, PlatformLimits(linear_velocity=0.01))
    with pytest.raises(LimitError, match="linear velocity of the platform"):
        gentle.plan(parse_motion(timed(1.0)))


def test_what_would_last_for_hours_is_refused_and_a_slow_motion_has_few_points(planner) -> None:
    home = planner.kinematics.home
    there = home + np.array([0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(LimitError, match=r"would be 3\S+ s, the limit is 3600 s; give more speed"):
        planner.between(home, there, 1e-7)
    for speed in (1e-4, 0.05):
        plan = planner.between(home, there, speed)
        points = MotionPoints.of(plan)
        assert len(points) < 4000  # of 40,000 without a look at where it accelerates
        times = np.linspace(0.0, plan.duration, 1001)
        follower = points.trajectory(planner.kinematics, None, 0.005)
        np.testing.assert_allclose(follower.sample(times)[0], plan.sample(times).pose, atol=1e-7)


def test_a_limit_of_a_drive_is_named_whole(planner) -> None:
    weak = replace(planner.actuators, effort=planner.actuators.effort * 1e-3)
    careful = MotionPlanner(planner.dynamics, weak, reserve=0.2)
    with pytest.raises(LimitError) as caught:
        careful.between(planner.kinematics.home, planner.kinematics.home + np.eye(7)[0] * 0.03)
    assert f"{weak.effort[0]:.4g} N m, of which {0.8 * weak.effort[0]:.4g} N m are used" in str(caught.value)


def test_limits_in_the_file_lower_those_of_the_planner(planner) -> None:
    text = "# frame: home\n# limit linear_velocity: 30 mm/s\nx [mm], y [mm], z [mm]\n0,0,0\n50,0,0\n"
    trajectory = planner.plan(parse_motion(text))
    sample = trajectory.sample(np.linspace(0.0, trajectory.duration, 2001))
    assert np.linalg.norm(sample.twist[:, :3], axis=1).max() == pytest.approx(0.03, rel=0.01)


@pytest.mark.parametrize(
    ("row", "reason"),
    [("0, 0, -2000", "platform_z"), ("1500, 0, 0", "platform_x"), ("0, 0, 600", "outside")],
)
def test_waypoints_out_of_the_workspace_are_refused_with_the_reason(planner, row: str, reason: str) -> None:
    text = f"# frame: home\nx [mm], y [mm], z [mm]\n0, 0, 0\n{row}\n"
    with pytest.raises(UnreachableMotionError, match=reason) as caught:
        planner.plan(parse_motion(text, source="far.csv"))
    assert "far.csv, line 4" in str(caught.value)


def test_waypoints_that_are_meant_from_home_are_told_so(planner) -> None:
    text = "x [mm], y [mm], z [mm]\n0, 0, 0\n50, 0, 20\n"
    with pytest.raises(UnreachableMotionError, match="# frame: home") as caught:
        planner.plan(parse_motion(text, source="bare.csv"))
    assert "bare.csv, line 3" in str(caught.value)
    for far in ("# frame: home\nx [mm], y [mm], z [mm]\n0, 0, -2000", "x [mm], y [mm], z [mm]\n0, 0, 0\n0, 0, -2000"):
        with pytest.raises(UnreachableMotionError) as caught:
            planner.plan(parse_motion(f"{far}\n0, 0, 0\n"))
        assert "# frame: home" not in str(caught.value)


def test_places_in_millimetres_are_told_so(planner) -> None:
    text = "# frame: home\nx [m], y [m], z [m]\n0, 0, 0\n{x}, 0.02, 0\n"
    with pytest.raises(UnreachableMotionError, match=r"if this is mm, give x 0\.1$") as caught:
        planner.plan(parse_motion(text.format(x=100)))
    assert "places are in metres" in str(caught.value)
    with pytest.raises(UnreachableMotionError) as caught:
        planner.plan(parse_motion(text.format(x=2)))
    assert "mm" not in str(caught.value)


def test_a_turn_that_the_delta_cannot_do_is_refused(planner) -> None:
    text = "# frame: home\nx [m], y [m], z [m], roll [deg], pitch [deg], yaw [deg]\n0,0,0,0,0,0\n0,0,0,0,0,30\n"
    with pytest.raises(UnreachableMotionError, match="motion space"):
        planner.plan(parse_motion(text))


def test_actuators_that_cannot_hold_the_platform_are_named(planner) -> None:
    weak = replace(planner.actuators, effort=np.array([200.0, 10.0, 200.0]))
    with pytest.raises(LimitError, match="limb2_arm"):
        MotionPlanner(planner.dynamics, weak).plan(read_motion_file("pick_and_place"))


def test_singular_poses_are_refused(planner) -> None:
    """The Griffis-Duffy platform is singular wherever it goes."""
    kinematics = Kinematics(load_mechanism("griffis_duffy"))
    dynamics = Dynamics(kinematics)
    text = "# frame: home\nx [mm], y [mm], z [mm]\n0,0,0\n0,0,5\n"
    with pytest.raises(UnreachableMotionError, match="singular"):
        MotionPlanner(dynamics, ActuatorLimits.of(kinematics.mechanism)).plan(parse_motion(text))


def test_a_tilt_out_of_reach_is_named_with_what_was_asked() -> None:
    """On the way there, the position alone says nothing: it is home's."""
    hexapod = load_mechanism("docs/examples/hobby_hexapod.urdf.xacro")
    planner = MotionPlanner(Dynamics(hexapod), ActuatorLimits.of(hexapod))
    text = "# frame: home\nx [mm], y [mm], z [mm], roll [deg], pitch [deg], yaw [deg]\n0,0,0,0,0,0\n0,0,0,0,{},0\n"
    with pytest.raises(UnreachableMotionError, match="cannot be at") as refused:
        planner.plan(parse_motion(text.format(40)))
    found = re.search(r"m with roll, pitch, yaw \((.*), (.*), (.*)\) deg: joint", str(refused.value))
    assert found is not None
    assert 10.0 < float(found[2]) < 40.0
    assert {found[1], found[3]} == {"0.00"}
    assert str(refused.value).endswith("itself is out of reach")
    planner.plan(parse_motion(text.format(10)))


def test_joint_acceleration_limits_are_kept(planner) -> None:
    bounded = replace(planner.actuators, acceleration=np.full(3, 40.0))
    trajectory = MotionPlanner(planner.dynamics, bounded).plan(read_motion_file("pick_and_place"))
    sample = trajectory.sample(np.linspace(0.0, trajectory.duration, 7919))
    motion = planner.kinematics.motion(sample.pose, sample.twist, sample.acceleration)
    most = (1.0 - planner.reserve) * 40.0
    assert 0.85 * most < np.abs(motion.actuated_accelerations).max() < most * SLACK


def test_a_path_beside_a_singularity_is_not_said_to_be_too_heavy(of_gallery) -> None:
    """It said that 0 N m were too much for an arm that carries nothing."""
    robot = of_gallery["five_bar"]
    planner = MotionPlanner(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism), reserve=0.4)
    level = (0.0, 0.0, 0.0, 0.0, 1.0)
    a, b = (-0.10747484730902525, 0.2611589311647679, *level), (0.045154858684015295, 0.06755990368606804, *level)
    with pytest.raises(LimitError, match=r"however slowly: effort of left_arm would be .* type 2 singularity"):
        planner.between(np.array(a), np.array(b))
