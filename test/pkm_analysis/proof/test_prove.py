# SPDX-License-Identifier: Apache-2.0
"""Proofs beside random poses of what was proved, refutations at their points, and published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, TaskCoordinates
from pkm_analysis.proof.enclosures import Encloser, least_joint_room
from pkm_analysis.proof.halving import Proof, prove
from pkm_analysis.requirements.quantities import Assumed, requirement
from pkm_analysis.requirements.quantity import Batch
from pkm_control.control_errors import MotionFileError
from pkm_control.motion.files.default_motion import rounded_motion
from pkm_control.motion.rounded_path import RoundedPath
from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import Status

CUBE = (-0.1267949192, 0.0732050808)  # m: of the Orthoglide's design, with bars of 0.310583 m
START = np.array([0.4, 1.4, 1.2, 0.0, 0.2, 0.1])  # x y z [m], yaw pitch roll [rad]: Dasgupta's path
END = np.array([0.8, 1.8, 1.8, 0.0, 0.4, 0.3])


def box(kinematics: Kinematics, bounds: Any) -> Domain:
    return Domain.of_box(TaskCoordinates(kinematics), bounds)


def asked(kinematics: Kinematics, domain: Domain, *that: str, mode: int | None = None, **settings: Any) -> Proof:
    robot = AnalysedRobot(kinematics, mode)
    return prove(robot, domain, [requirement(robot, one, Assumed(None, (1e-4,))) for one in that], **settings)


def slack(kinematics: Kinematics, that: str, coordinates: Any, mode: int | None = None) -> np.ndarray:
    """How far a requirement is from its bound at task coordinates (n, c)."""
    robot = AnalysedRobot(kinematics, mode)
    wanted = requirement(robot, that, Assumed(None, (1e-4,)))
    return wanted.at(
        Batch(robot, robot.coordinates.poses(np.asarray(coordinates))[0], wanted.quantity.needs, exact=True)
    )[0]


@pytest.fixture(scope="module")
def delta() -> Kinematics:
    return Kinematics(load_mechanism("delta"))


@pytest.fixture(scope="module")
def orthoglide() -> Kinematics:
    return Kinematics(load_mechanism("orthoglide"))


def _random(domain: Domain, n: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return domain.values(rng.uniform(domain.lower, domain.upper, (n, domain.dimension)))


def test_the_orthoglide_keeps_its_transmission_factors_in_its_cube(orthoglide):
    domain = box(orthoglide, [CUBE] * 3)
    found = asked(orthoglide, domain, "psi > 0.499999", "psi < 2.000001")
    assert found.ok, found
    assert found.share == pytest.approx(1.0)
    # ... and not by more than that
    found = asked(orthoglide, domain, "psi > 0.501")
    assert found.verdict == "refuted"
    np.testing.assert_allclose(found.point, [CUBE[0]] * 3)
    factors = 1.0 / np.linalg.svd(orthoglide.at(found.point).inverse_jacobian[:, :3], compute_uv=False)
    assert factors.min() < 0.5 + 1e-3
    assert asked(orthoglide, domain, "psi < 1.999").verdict == "refuted"
    assert asked(orthoglide, domain, "inside", "no singularity").ok


def test_six_legs_cross_a_singularity_on_a_published_path_and_seven_do_not():
    six = Kinematics(load_mechanism("gough_stewart"))
    domain = Domain.of_path(TaskCoordinates(six), START, END)
    found = asked(six, domain, "no singularity")
    assert found.verdict == "refuted"
    along = (found.point - START)[0] / (END - START)[0]
    assert along == pytest.approx(0.7005, abs=1e-3)
    np.testing.assert_allclose(found.point, START + along * (END - START), atol=1e-12)
    assert six.singularity(found.point).type2 < 1e-9
    assert asked(six, domain, "inside").ok
    seven = Kinematics(load_mechanism("gough_stewart_7"))
    domain = Domain.of_path(TaskCoordinates(seven), START, END)
    assert asked(seven, domain, "no singularity").ok
    least = seven.singularity(domain.values(np.linspace(0.0, 1.0, 300)[:, None])).type2.min()
    assert asked(seven, domain, f"type2 > {0.98 * least}").ok
    assert asked(seven, domain, f"type2 > {1.02 * least}").verdict == "refuted"


INSIDE = {  # half widths around home, in metres and radians
    "delta": 0.1,
    "orthoglide": 0.05,
    "five_bar": 0.05,
    "planar_3rrr": 0.03,
    "gough_stewart": 0.01,
    "hexaglide": 0.005,
    "agile_eye": 0.1,
    "tripteron": 0.05,
    "linear_delta": 0.05,
    "delta_rr": 0.03,
    "quattro": 0.005,
    "irsbot2": 0.02,
}


@pytest.mark.parametrize("name", INSIDE)
def test_no_random_pose_of_a_box_that_was_proved_inside_is_outside(name):
    kinematics = Kinematics(load_mechanism(name))
    home = kinematics.engine.task.chain["home"][1:]
    half = INSIDE[name]
    domain = box(kinematics, np.array([home - half, home + half]).T)
    found = asked(kinematics, domain, "inside")
    assert found.ok, found
    poses = _random(domain, 100_000 if not kinematics.engine.iterated else 5_000)
    assert (kinematics.inverse(poses).status == Status.CONVERGED).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", robot_names())
def test_no_pose_of_a_million_is_outside_of_what_was_proved(name):
    """Of every robot: a box about home, halved until it is proved, which takes three halvings at most."""
    kinematics = Kinematics(load_mechanism(name))
    coordinates = AnalysedRobot(kinematics).coordinates.all
    home = np.array([one.home for one in coordinates])
    scale = [kinematics.characteristic_length if one.unit == "m" else 1.0 for one in coordinates]
    boxes = [np.array([home - half, home + half]).T for half in np.outer(0.1 * 0.5 ** np.arange(4.0), scale)]
    if not kinematics.constant_space or not kinematics.task.names:
        with pytest.raises(AnalysisError, match=r"depends on the pose|branch of its own"):
            asked(kinematics, box(kinematics, boxes[0]), "inside")
        return
    proved = (one for one in boxes if asked(kinematics, box(kinematics, one), "inside", most_boxes=4000).ok)
    sides = next(proved)
    for seed in range(20):
        poses = np.random.default_rng(seed).uniform(*sides.T, (50_000, len(home)))
        assert (kinematics.inverse(poses).status == Status.CONVERGED).all()


@pytest.mark.parametrize(
    ("weaker", "stricter"),
    [
        ("type1 > 0.2 m/rad", "type1 > 0.23 m/rad"),
        ("type2 > 1.5 rad/m", "type2 > 1.7 rad/m"),
        ("margin > 0.2", "margin > 0.3"),
        ("isotropy > 0.35", "isotropy > 0.5"),
        ("position_error < 0.12 mm", "position_error < 0.08 mm"),
    ],
)
def test_what_is_proved_holds_at_random_poses_and_what_is_refuted_fails_at_its_point(delta, weaker, stricter):
    domain = box(delta, [[-0.2, 0.2], [-0.2, 0.2], [-1.0, -0.8]])
    found = asked(delta, domain, weaker)
    assert found.ok, found
    assert (slack(delta, weaker, _random(domain, 20_000)) > 0.0).all()
    refuted = asked(delta, domain, stricter)
    assert refuted.verdict == "refuted"
    assert refuted.refuted.violated == stricter
    assert slack(delta, stricter, refuted.point[None])[0] == pytest.approx(refuted.refuted.slack)
    assert refuted.refuted.slack < 0.0


@pytest.mark.parametrize(
    ("name", "half"),
    [("delta", 0.05), ("orthoglide", 0.05), ("quattro", 2e-4), ("gough_stewart", 2e-4), ("gough_stewart_7", 2e-4)],
)
def test_efforts_at_rest_are_bounded_by_those_of_the_dynamics(name, half):
    dynamics = Dynamics(load_mechanism(name))
    kinematics = dynamics.kinematics
    home = kinematics.engine.task.chain["home"][1:]
    domain = box(kinematics, np.array([home - half, home + half]).T)
    poses, rest = _random(domain, 2000), np.zeros((2000, 6))
    most = np.abs(dynamics.inverse(poses, rest, rest).effort).max()
    unit = "N" if name in ("orthoglide", "gough_stewart", "gough_stewart_7") else "N m"
    assert asked(kinematics, domain, f"effort_at_rest < {1.05 * most} {unit}").ok
    assert asked(kinematics, domain, f"effort_at_rest < {0.97 * most} {unit}").verdict == "refuted"


def test_cables_hold_their_platform_where_it_is_proved_and_do_not_where_it_is_refuted():
    dynamics = Dynamics(load_mechanism("cable_8"))
    kinematics = dynamics.kinematics
    half = np.array([0.3, 0.3, 0.3, 0.05, 0.0, 0.0])
    inner = box(kinematics, np.array([-half, half]).T)
    assert asked(kinematics, inner, "effort_at_rest < limits").ok
    drives = [kinematics.mechanism.joint_named[name].drive for name in kinematics.actuated_names]
    ranges = [drive.effort_range for drive in drives if drive is not None]

    def carried(coordinates):
        K = kinematics.at(coordinates).inverse_jacobian @ np.asarray(kinematics.subspace(coordinates))
        still = np.zeros(6)
        work = K.T @ dynamics.inverse(coordinates, still, still, distribution=Distribution()).effort
        return linprog(np.zeros(len(K)), A_eq=K.T, b_eq=work, bounds=ranges).status == 0

    assert all(carried(pose) for pose in _random(inner, 60))
    half[:3] = 0.9
    refuted = asked(kinematics, box(kinematics, np.array([-half, half]).T), "effort_at_rest < limits")
    assert not carried(refuted.point)
    with pytest.raises(AnalysisError, match="nothing is proved of 'effort_at_rest' of this robot"):
        asked(kinematics, inner, "effort_at_rest < 500 N")


def test_the_share_that_is_proved_and_the_boxes_that_are_not(delta):
    # the corner of this box is farther than the limbs reach
    domain = box(delta, [[0.0, 0.8], [0.0, 0.2], [-1.2, -1.0]])
    found = asked(delta, domain, "inside")
    assert found.verdict == "refuted"
    assert delta.inverse(found.point).status != Status.CONVERGED
    # a bound that is met exactly somewhere is not decided there
    least = slack(delta, "type1 > 0.25 m/rad", [[0.2, 0.2, -0.8]])
    corner = box(delta, [[0.1, 0.2], [0.1, 0.2], [-0.9, -0.8]])
    found = asked(delta, corner, f"type1 > {0.25 + float(least[0])!r} m/rad", resolution=2.0**-6)
    if found.verdict == "undecided":
        assert 0.5 < found.share < 1.0
        assert (found.undecided[:, :, 1] - found.undecided[:, :, 0]).max() < 0.1 * 2.0**-6 * 1.001


def test_questions_that_mean_nothing_are_refused(delta):
    sides = [[-0.1, 0.1], [-0.1, 0.1], [-0.9, -0.8]]
    with pytest.raises(AnalysisError, match="nothing to prove"):
        asked(delta, box(delta, sides))
    with pytest.raises(AnalysisError, match="give the lower end first"):
        asked(delta, box(delta, [[1.0, 0.0], *sides[1:]]), "inside")
    with pytest.raises(AnalysisError, match=r"-inf to 0\.1 is empty"):
        asked(delta, box(delta, [[-np.inf, 0.1], *sides[1:]]), "inside")
    with pytest.raises(AnalysisError, match="not positive"):
        asked(delta, box(delta, sides), "type2 > 0 rad/m")


@pytest.mark.slow
def test_a_certified_box_of_the_delta_is_nearly_the_sampled_one(delta):
    centre, half = np.array([0.0, 0.0, -0.85]), np.array([1.0, 1.0, 0.5])
    unit = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 21)] * 3), axis=-1).reshape(-1, 3)
    below, above = 0.0, 0.6
    while above - below > 1e-3:
        scale = 0.5 * (below + above)
        inside = (delta.inverse(centre + scale * half * unit).status == Status.CONVERGED).all()
        below, above = (scale, above) if inside else (below, scale)
    sampled = np.stack([centre - above * half, centre + above * half], axis=1)
    sides, proof = Analysis(delta).certified_box("inside", sampled)
    assert proof.ok
    assert np.ptp(sides, axis=1).prod() >= 0.95 * np.ptp(sampled, axis=1).prod()
    assert (delta.inverse(_random(box(delta, sides), 20_000)).status == Status.CONVERGED).all()


def test_a_box_without_anything_inside_has_no_certified_part(delta):
    with pytest.raises(AnalysisError, match="not even its centre"):
        Analysis(delta).certified_box("inside", [[2.0, 2.1], [0.0, 0.1], [-0.9, -0.8]])


def test_paths_through_several_points(delta):
    corners = np.array([[-0.2, -0.2, -0.9], [0.2, -0.2, -0.9], [0.2, 0.2, -0.8], [-0.2, 0.2, -0.8], [-0.2, -0.2, -0.9]])
    analysis = Analysis(delta)
    found = analysis.prove_path(["inside", "no singularity"], corners)
    assert found.ok, found
    assert found.share == pytest.approx(1.0)
    out = np.vstack([corners, [[1.6, 0.0, -0.9]]])
    found = analysis.prove_path("inside", out)
    assert found.verdict == "refuted"
    # between two points that are inside, there is one that is not
    found = analysis.prove_path("type1 > 0.243 m/rad", [[-0.2, 0.0, -0.85], [0.2, 0.0, -0.85]])
    assert found.verdict == "refuted"
    assert abs(found.point[0]) < 0.15
    with pytest.raises(AnalysisError, match="not a path"):
        analysis.prove_path("inside", corners[:1])


def test_robots_that_are_not_covered_are_told_why():
    tripod = Kinematics(load_mechanism("tripod_3prs"))
    with pytest.raises(AnalysisError, match="depends on the pose"):
        asked(tripod, box(tripod, [[0.0, 0.0]] * 5 + [[0.5, 0.6]]), "inside")


def test_a_constraint_singularity_at_home_is_refuted():
    h4 = Kinematics(load_mechanism("h4"))  # its rods hang in one plane
    home = h4.engine.task.chain["home"][1:]
    found = asked(h4, box(h4, np.array([home - 0.01, home + 0.01]).T), "no singularity")
    assert found.verdict == "refuted"
    assert h4.singularity(found.point).constraint_hold < 1e-9


def test_a_platform_that_is_singular_everywhere_is_refuted():
    griffis = Kinematics(load_mechanism("griffis_duffy"))
    home = griffis.engine.task.chain["home"][1:]
    assert (
        asked(griffis, Domain.of_path(TaskCoordinates(griffis), home, home + 0.01), "no singularity").verdict
        == "refuted"
    )


@pytest.mark.parametrize(
    ("name", "half"),
    [
        ("five_bar", 0.05),
        ("planar_3rrr", 0.02),
        ("agile_eye", 0.1),
        ("linear_delta", 0.05),
        ("wrist_3ups_s", 0.05),
        ("quattro", 0.002),
    ],
)
def test_regular_boxes_of_many_kinds_of_robots(name, half):
    kinematics = Kinematics(load_mechanism(name))
    home = kinematics.engine.task.chain["home"][1:]
    domain = box(kinematics, np.array([home - half, home + half]).T)
    assert asked(kinematics, domain, "no singularity").ok
    found = kinematics.singularity(_random(domain, 200))
    assert (found.type2 > 1e-6).all()
    assert (found.limb_regularity > 1e-6).all()


@pytest.mark.parametrize("mode", [1, 6])
def test_other_working_modes(delta, mode):
    domain = box(delta, [[-0.05, 0.05], [-0.05, 0.05], [-0.9, -0.8]])
    proof = asked(delta, domain, "margin > 0.01", mode=mode)
    poses = _random(domain, 2000)
    known = delta.inverse(poses, mode=mode)
    assert proof.ok == bool((slack(delta, "margin > 0.01", poses, mode) > 0.0).all())
    inside = asked(delta, domain, "inside", mode=mode)
    assert inside.ok == bool((known.status == Status.CONVERGED).all())


@pytest.mark.parametrize("name", ["five_bar", "planar_3rrr", "agile_eye", "gough_stewart"])
def test_boxes_all_over_the_range_of_a_robot(name):
    # joints turn by more than half a turn there, and angles of the platform have two readings
    kinematics = Kinematics(load_mechanism(name))
    chain = kinematics.engine.task.chain[1:]
    home, rng = chain["home"], np.random.default_rng(2)
    lower, upper = np.maximum(chain["lower"], home - 2.0), np.minimum(chain["upper"], home + 2.0)
    centres = home + (rng.uniform(lower, upper, (400, len(home))) - home) * rng.uniform(0.0, 1.0, (400, 1))
    half = 10.0 ** rng.uniform(-3.0, -1.0, (400, 1))
    boxes = np.stack([centres - half, centres + half], axis=-1)
    encloser = Encloser(box(kinematics, np.tile([0.0, 1.0], (len(home), 1))))
    inside = boxes[least_joint_room(encloser(boxes)) > 0.0]
    proved = len(inside)
    assert proved > 100
    poses = rng.uniform(inside[:, None, :, 0], inside[:, None, :, 1], (proved, 50, len(home))).reshape(-1, len(home))
    assert (kinematics.inverse(poses).status == Status.CONVERGED).all()


def test_a_motion_file_with_rounded_corners() -> None:
    """Lines and corners are proved; corners hold what the planner's own path is at any speed."""
    k = Kinematics(load_mechanism("delta"))
    path = rounded_motion(k, "pick_and_place", closed=True)
    analysis = Analysis(k)
    found = analysis.prove_motion(["inside", "no singularity"], path.poses, path.radii)
    assert found.ok
    corners = [part.domain for part in found.parts if len(part.domain.box) == 2]
    rounded = np.flatnonzero(path.radii)
    assert len(corners) == len(rounded) == 4
    planned = RoundedPath(path.poses, path.radii[1:-1])
    for corner, at in zip(corners, rounded, strict=True):
        near = planned.corners[at] + path.radii[at] * np.linspace(-1.0, 1.0, 101)
        points = planned.sample(near).pose[:, :3] - corner.origin
        shares = np.linalg.lstsq(corner.directions, points.T, rcond=None)[0]
        np.testing.assert_allclose(corner.directions @ shares, points.T, atol=1e-12)  # nowhere beside its plane
        assert shares.min() > -1e-9
        assert shares.max() < 1.0 + 1e-9
    low = analysis.prove_motion("inside", path.poses - np.array([0, 0, 0.6, 0, 0, 0, 0]), path.radii)
    assert low.verdict == "refuted"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"turn": True}, "turns about an axis of no task coordinate"),
        ({"points": 1}, "it has no length"),
    ],
)
def test_motions_that_cannot_be_asked_about(change: dict[str, Any], words: str) -> None:
    k = Kinematics(load_mechanism("gough_stewart"))
    poses = np.tile(np.array(k.home), (2, 1))
    poses[1, 3:] = (0.1, 0.2, 0.3, np.sqrt(1.0 - 0.14)) if change.get("turn") else poses[0, 3:]
    poses[1, 0] += 0.01
    with pytest.raises(AnalysisError, match=words):
        Analysis(k).prove_motion("inside", poses[: change.get("points", 2)], np.zeros(change.get("points", 2)))


def test_a_smooth_curve_is_no_path_of_lines(tmp_path: Path) -> None:
    file = tmp_path / "swing.csv"
    file.write_text("# frame: home\nx [mm], y [mm], z [mm], time [s]\n0, 0, 0, 0\n10, 0, 0, 1\n")
    with pytest.raises(MotionFileError, match="one smooth curve"):
        rounded_motion(Kinematics(load_mechanism("delta")), str(file))
