# SPDX-License-Identifier: Apache-2.0
"""Curves are judged as a whole, on robots of many kinds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics
from test.conftest import VARIED

ROBOTS = (
    *VARIED,
    "planar_redundant",
    "capaman",
)


@pytest.fixture(params=ROBOTS)
def check(request: pytest.FixtureRequest, of_gallery) -> CurveCheck:
    robot = of_gallery[request.param]
    return CurveCheck(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism))


@pytest.fixture(scope="module")
def delta_check(of_gallery) -> CurveCheck:
    robot = of_gallery["delta"]
    return CurveCheck(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism))


def curve(times, poses, twists=None) -> PointTrajectory:
    still = np.zeros((len(times), 6))
    return PointTrajectory(np.array(times), np.array(poses), still if twists is None else np.array(twists), still)


def beside(kinematics: Kinematics, *offset: float) -> Array:
    pose = np.array(kinematics.home)
    pose[: len(offset)] += offset
    return pose


def test_standing_still_at_home_is_well(check: CurveCheck) -> None:
    home = np.array(check.kinematics.home)
    assert check.refusal(curve((0.0, 1.0), (home, home))) == ""


def test_a_twist_between_good_points_that_throws_the_platform_is_refused(check: CurveCheck) -> None:
    home = np.array(check.kinematics.home)
    space = np.asarray(check.kinematics.subspace(home))
    twists = np.zeros((3, 6))
    twists[1] = -30.0 * space @ np.ones(space.shape[1])
    reason = check.refusal(curve((0.0, 0.6, 1.2), (home, home, home), twists))
    assert reason.startswith("at 0.")
    assert float(reason.split()[1]) < 0.6


def test_the_first_broken_condition_is_named_with_its_time(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    twists = np.zeros((3, 6))
    twists[1, 0] = -30.0
    points = (beside(k), beside(k, 0.05), beside(k))
    assert "effort of limb" in delta_check.refusal(curve((0.0, 0.6, 1.2), points, twists))
    far = delta_check.refusal(curve((0.0, 20.0), (beside(k), beside(k, 0.0, 0.0, -2.0))))
    assert "no configuration" in far or "singularity" in far or "outside" in far
    quick = delta_check.refusal(curve((0.0, 0.03), (beside(k), beside(k, 0.3))))
    assert "effort" in quick or "velocity" in quick
    turned = np.zeros((3, 6))
    turned[1, 5] = 1.0
    assert "motion space" in delta_check.refusal(curve((0.0, 1.0, 2.0), (beside(k),) * 3, turned))


@pytest.mark.parametrize("which", [0, -1])
def test_a_curve_that_does_not_begin_or_end_at_rest_is_refused(delta_check: CurveCheck, which: int) -> None:
    k = delta_check.kinematics
    twists = np.zeros((2, 6))
    twists[which, 0] = 0.1
    reason = delta_check.refusal(curve((0.0, 1.0), (beside(k), beside(k, 0.05)), twists))
    assert "not at rest" in reason


def test_a_spike_between_points_that_lie_close_together_is_seen(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    times = np.linspace(0.0, 1.0, 2001)
    twists = np.zeros((len(times), 6))
    twists[1000, 0] = -30.0  # half a millisecond from its neighbours: a look every 5 ms would miss it
    assert delta_check.refusal(curve(times, [beside(k)] * len(times), twists)) != ""


def test_a_type_2_singularity_between_two_good_poses_is_seen(of_gallery) -> None:
    """The platform of a planar 3-RRR turned by half a turn: joints have no limits, and the actuators lose hold."""
    robot = of_gallery["planar_3rrr"]
    check = CurveCheck(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism))
    home = np.array(check.kinematics.home)
    poses = []
    for angle in np.linspace(0.0, 2.4, 13):
        pose = home.copy()
        pose[3:] = 0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)
        poses.append(pose)
    reason = check.refusal(curve(np.linspace(0.0, 30.0, 13), poses))
    assert reason != ""
    reachable = check.kinematics.inverse(np.array(poses), mode=0).status == 0
    stop = float(reason.split()[1])
    assert stop > 0.0
    if reachable.all():
        assert "type 2" in reason


@pytest.mark.parametrize("name", ["planar_3rrr", "five_bar"])
def test_no_motion_ends_where_a_tracking_error_stretches_a_limb(of_gallery, name: str) -> None:
    """A tenth of a millimetre from there, a velocity of 2 mm/s asked a planar 3-RRR for 1000 N m, and it fell."""
    robot = of_gallery[name]
    k, check = robot.kinematics, CurveCheck(robot.dynamics, ActuatorLimits.of(robot.kinematics.mechanism))
    inside, outside = 0.0, 2.0
    while outside - inside > 1e-6:
        middle = 0.5 * (inside + outside)
        reached = k.inverse(beside(k, 0.0, middle), mode=0).ok
        inside, outside = (middle, outside) if reached else (inside, middle)
    assert inside > 0.1
    near, apart = check.deficits(np.array([beside(k, 0.0, inside - gap) for gap in (1e-4, 5e-3)]))
    assert near[1] > 0.0
    assert apart[1] == 0.0


def test_from_outside_a_limit_the_way_in_is_open_and_the_way_out_is_not(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    heights = np.linspace(0.2, 0.3, 201)
    line = np.array([beside(k, 0.0, 0.0, h) for h in heights])
    lacks = delta_check.deficits(line)
    outside = np.flatnonzero((lacks[:, 0] > 0.0) & (lacks[:, 1:] == 0.0).all(axis=1))
    assert outside.size > 2, "the Delta's arms have limits above home"
    first, second = heights[outside[0]], heights[outside[2]]
    inside, just, more = (beside(k, 0.0, 0.0, h) for h in (first - 0.05, first, second))
    assert delta_check.refusal(curve((0.0, 2.0), (more, inside))) == ""
    assert delta_check.refusal(curve((0.0, 2.0), (more, just))) == ""
    assert "outside" in delta_check.refusal(curve((0.0, 2.0), (just, more)))
    assert "as far outside" in delta_check.refusal(curve((0.0, 2.0), (more, more)))


def test_a_long_curve_is_judged_in_seconds_and_finely(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    poses = [beside(k, 0.02 * (i % 2)) for i in range(300)]
    trajectory = curve(np.arange(300.0) * 0.5, poses)
    times = delta_check.times(trajectory)
    assert np.diff(times).max() < 5.1e-3
    assert set(trajectory.times) <= set(times)
    assert len(times) < 100_000


def test_braking_is_gentler_where_efforts_leave_less(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    slow = curve((0.0, 2.0), (beside(k), beside(k, 0.2)))
    fast = curve((0.0, 0.15), (beside(k, -0.1), beside(k, 0.1)))
    assert delta_check.refusal(fast) == ""
    assert delta_check.braking(fast).least <= delta_check.braking(slow).least


def test_a_joint_that_comes_round_would_have_to_pass_its_stops() -> None:
    mechanism = load_mechanism("tripteron")
    wide: dict[str, tuple[float, float]] = {}
    for axis in "xyz":
        wide[f"limb_{axis}_slider"] = wide[f"platform_{axis}"] = (-1.0, 1.0)
        wide[f"limb_{axis}_shoulder"] = (-2.0, 5.0)  # rad: more than a turn
    joints = tuple(
        replace(joint, limits=replace(joint.limits, lower=wide[joint.name][0], upper=wide[joint.name][1]))
        if joint.name in wide
        else joint
        for joint in mechanism.joints
    )
    k = Kinematics(replace(mechanism, joints=joints))
    check = CurveCheck(Dynamics(k), ActuatorLimits.of(k.mechanism))
    angle = np.linspace(0.25 * np.pi, 1.4 * np.pi, 104)
    circle = np.tile(k.home, (len(angle), 1))
    circle[:, 1], circle[:, 2] = 0.42 * np.cos(angle), 0.42 * np.sin(angle)
    assert k.inverse(circle, mode=0).ok.all()  # each place by itself is reached
    twists = np.zeros((len(angle), 6))
    twists[1:-1, :3] = (circle[2:, :3] - circle[:-2, :3]) / 0.2
    reason = check.refusal(curve(0.1 * np.arange(len(angle)), circle, twists))
    assert "limb_x_shoulder would have to jump" in reason
    fault = check.first_fault(circle)  # without times: a jog is looked at so
    assert fault is not None
    assert "limb_x_shoulder would have to jump by a turn" in fault.reason
    first = angle < 3.7  # rad: before its elbow's offset brings the shoulder to half a turn from home
    twists[np.flatnonzero(first)[-1]] = 0.0
    assert check.refusal(curve(0.1 * np.arange(first.sum()), circle[first], twists[first])) == ""


def test_redundant_drives_are_judged_as_they_share(of_gallery) -> None:
    robot = of_gallery["planar_redundant"]
    dynamics = Dynamics(robot.kinematics)
    limits = ActuatorLimits.of(robot.kinematics.mechanism)
    check = CurveCheck(dynamics, limits)
    pose, still = np.array([robot.kinematics.home]), np.zeros((1, 6))
    way = np.asarray(robot.kinematics.subspace(robot.kinematics.home)) @ np.random.default_rng(0).normal(size=(2, 40))
    seen = {True: 0, False: 0}
    for direction in way.T:
        least = np.abs(dynamics.inverse(pose, still, direction[None]).effort / limits.effort).max()
        for share in (1.02, 3.0):  # more than the least squares allow; what no sharing does
            wanted = direction[None] * share / least
            shared = dynamics.inverse(pose, still, wanted, distribution=Distribution(bounds=limits.bounds()))
            possible = bool(np.isfinite(shared.effort).all())
            assert (check.first_fault(pose, still, wanted) is None) == possible
            seen[possible] += 1
    assert min(seen.values()) > 0


def weak_down(check: CurveCheck, most: float) -> CurveCheck:
    """The same Delta with arms that are weaker [N m] downwards than upwards."""
    limits = ActuatorLimits.of(check.kinematics.mechanism)
    return CurveCheck(check.dynamics, replace(limits, effort_range=(-limits.effort, np.full(3, most))))


@pytest.mark.parametrize(("share", "well"), [(0.78, True), (0.9, False)])
def test_jogs_leave_the_weaker_side_of_a_drive_its_reserve(delta_check: CurveCheck, share: float, well: bool) -> None:
    """They left none there: with a payload that nobody had told of, a hexapod fell."""
    dynamics, still = delta_check.dynamics, np.zeros((2, 6))
    home, down = np.tile(beside(delta_check.kinematics), (2, 1)), np.array([[0.0, 0.0, -20.0, 0.0, 0.0, 0.0]])
    efforts = np.asarray(dynamics.inverse(home[:1], still[:1], down).effort)
    assert efforts.min() > 0.0
    check = weak_down(delta_check, efforts.max() / share)
    room, ways = check.room_at(home[0]), np.concatenate([down, still[:1]])
    assert room.shared is not None
    np.testing.assert_allclose(room.shared.bounds[1], 0.8 * efforts.max() / share)
    assert check.first_fault(home, still, ways) is None
    *_, fault = _all_of(check.step_by_step(home, still, ways, room))
    assert (fault is None) == well


def _all_of(steps):
    while True:
        try:
            yield next(steps)
        except StopIteration as done:
            yield done.value
            return


def test_braking_leaves_the_weaker_side_of_a_drive_its_reserve(delta_check: CurveCheck) -> None:
    k = delta_check.kinematics
    down = curve((0.0, 0.35), (beside(k), beside(k, 0.0, 0.0, -0.2)))
    times = np.linspace(0.0, 0.35, 200)
    pose, twist, acceleration = down.sample(times)
    pushed = (np.asarray(delta_check.dynamics.inverse(pose, twist, acceleration + 4.0 * twist).effort)).max(axis=1)
    assert pushed.max() > 0.0
    easy, hard = (weak_down(delta_check, pushed.max() / share) for share in (0.85, 0.95))
    at = float(times[int(pushed.argmax())])
    assert easy.braking(down).at(at, 1.0) == 4.0
    assert hard.braking(down).at(at, 1.0) < 4.0


def test_a_range_that_a_machines_file_narrows_is_kept(delta_check: CurveCheck) -> None:
    kinematics = delta_check.kinematics
    limits = ActuatorLimits.of(kinematics.mechanism)
    at_home = np.array(kinematics.inverse(kinematics.home).actuated)
    narrow = replace(limits, lower=at_home - 0.05, upper=at_home + 0.05)
    check = CurveCheck(delta_check.dynamics, narrow)
    still, down = np.array(kinematics.home), beside(kinematics, 0.0, 0.0, -0.1)
    moved = np.array(kinematics.inverse(down).actuated) - at_home
    assert np.abs(moved).max() > 0.05
    assert not check.standing(still)
    assert check.standing(down)
    assert not delta_check.standing(down)
    there = curve([0.0, 2.0], [still, down])
    assert not delta_check.refusal(there)
    assert "its range is" in check.refusal(there)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_what_is_beyond_a_range_is_a_matter_of_the_robots_size(size: float) -> None:
    ends = np.array((1.0, size))
    one = np.ones(2)
    limits = ActuatorLimits(("turns", "slides"), ("rad", "m"), -ends, ends, one, one, one)
    assert limits.first_beyond(ends[None] + 1e-10 * ends, size) is None
    for k, name in enumerate(limits.names):
        out = ends.copy()
        out[k] *= 1.0 + 1e-8
        row, words = limits.first_beyond(np.array((ends, out)), size)
        assert row == 1
        assert name in words
