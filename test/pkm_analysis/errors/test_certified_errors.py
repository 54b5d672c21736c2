# SPDX-License-Identifier: Apache-2.0
"""Proofs of pose errors: enclosures hold what they say, bounds hold for machines at random, and what fails is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from pkm_analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.domain import corners
from pkm_analysis.errors.certified_errors import (
    COVERED,
    DIRECTIONS,
    ProvedErrors,
    _Enclosure,
    _Motion,
    _platform,
    prove_pose_error,
)
from pkm_analysis.errors.enclosed_graph import EnclosedGraph, EnclosedRods, rods_of, turned
from pkm_analysis.errors.error_budget import ErrorModel, grown
from pkm_analysis.errors.tolerances import Tolerances
from pkm_analysis.proof.halving import Settings
from pkm_analysis.proof.matrices import Form
from pkm_description import load_mechanism
from pkm_description.mechanism import JointType
from pkm_description.rotations import rotation_from_vector
from pkm_kinematics.geometric_parameters import GeometricParameter
from pkm_kinematics.graph_model import GraphModel

FINE = Tolerances(lengths=1e-5, angles=1e-5)
SEARCH: Settings = {"resolution": 0.01, "most_boxes": 3000}
COARSE: Settings = {"resolution": 0.5, "most_boxes": 50}


def box_of(analysis: Analysis, half: float) -> dict[str, tuple[float, float]]:
    return {c.name: (c.home - half, c.home + half) for c in analysis.robot.coordinates.all if c.unit == "m"}


def proved(name: str, half: float, bound: float) -> tuple[Analysis, ProvedErrors]:
    analysis = Analysis(load_mechanism(name))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, half)), FINE, bound, **SEARCH)
    return analysis, found


def test_turns_are_within_their_forms() -> None:
    rng, axis = np.random.default_rng(5), np.array([0.0, 0.0, 1.0])
    middle, radius, slopes = np.append(0.0, rng.uniform(-3.0, 3.0, 20)), np.full(21, 0.01), np.full((2, 21), 0.2)
    form = turned(axis, Form(middle, radius, slopes))
    assert form.slopes is not None
    for x in (*np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]), *rng.uniform(-1.0, 1.0, (50, 2))):
        for beside in (-1.0, 1.0):
            turns = rotation_from_vector(axis * (middle + x @ slopes + beside * radius)[:, None])
            assert (np.abs(turns - form.middle - np.tensordot(x, form.slopes, 1)) <= form.radius).all()


def test_every_direction_is_near_one_of_those_that_are_asked() -> None:
    random = np.random.default_rng(0).standard_normal((20_000, 3))
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    assert np.abs(random @ DIRECTIONS.T).max(axis=1).min() >= COVERED


@pytest.mark.by_day("delta", "tripod_3prs", "par2")
@pytest.mark.parametrize(
    "name",
    [
        "delta",
        pytest.param("linear_delta", marks=pytest.mark.slow),
        pytest.param("hexa", marks=pytest.mark.slow),
        pytest.param("hexaglide", marks=pytest.mark.slow),
        "gough_stewart",
        "tripod_3prs",
        pytest.param("orthoglide", marks=pytest.mark.slow),
        "five_bar",
        "agile_eye",
        "three_rpc",
        "par2",
        pytest.param("quattro", marks=pytest.mark.slow),
        "carpal_wrist",
    ],
)
def test_derivatives_at_random_points_of_a_box_are_within_their_enclosures(name: str) -> None:
    """Of loops and of rods, joints and places displaced: each within its interval, elementwise."""
    enclosure = _Enclosure(Analysis(load_mechanism(name)).robot, Tolerances(lengths=1e-3, angles=1e-3, ratios=0.01))
    model, random = enclosure.model, np.random.default_rng(0)
    home, n = model.home(), 15
    slopes = 0.005 * random.uniform(-1.0, 1.0, (2, 1, 6))
    q_slopes = 0.005 * random.uniform(-1.0, 1.0, (2, 1, model.size))
    motion = _Motion(slopes, np.full((1, 3), 1e-3), np.linalg.norm(slopes[..., 3:], axis=2).sum(axis=0))
    wide = Form(home.q, np.full((1, model.size), 0.002), q_slopes)
    platform = _platform(home.platform, motion, np.full((1, 6), 1e-3))
    rods = rods_of(model)
    assert (rods is None) == (name not in ("delta", "linear_delta", "hexa", "hexaglide", "gough_stewart"))
    for make in (EnclosedGraph, *([] if rods is None else [lambda m, *box: EnclosedRods(m, rods, *box)])):
        J, by_place = make(model, wide, *platform, enclosure.shifts).derivatives()
        for _ in range(n):
            still = np.zeros_like(enclosure.shifts)
            moved = GraphModel(model.mechanism, _within(enclosure.shifts, random))
            s = random.uniform(-1.0, 1.0, 2)
            q = home.q + s @ q_slopes[:, 0] + 0.002 * random.uniform(-1.0, 1.0, home.q.shape)
            turn = rotation_from_vector(1e-3 * random.uniform(-1.0, 1.0, (1, 3)))
            for k in range(2):
                turn = turn @ rotation_from_vector(s[k] * slopes[k, :, 3:])
            position = home.platform[:, :3, 3] + s @ slopes[:, 0, :3] + 2e-3 * random.uniform(-1.0, 1.0, (1, 3))
            exact, places = make(
                moved, Form.exactly(q), Form.exactly(position), Form.exactly(turn @ home.platform[:, :3, :3]), still
            ).derivatives()
            for one, point in zip((J, *by_place), (exact, *places), strict=True):
                off = point.middle - one.middle - np.tensordot(s, one.slopes, axes=1)
                assert (np.abs(off) <= one.radius + point.radius).all()


def _within(shifts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Displacements whose translation and rotation are no longer than the radii."""
    directions = random.standard_normal((len(shifts), 2, 3))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    return (directions * (shifts * random.uniform(0.0, 1.0, shifts.shape))[:, :, None]).reshape(-1, 6)


@pytest.mark.by_day("delta", "planar_mixed")
@pytest.mark.parametrize(
    ("name", "half", "bound"),
    [
        ("delta", 0.004, 6e-4),
        pytest.param("hexa", 0.003, 4e-4, marks=pytest.mark.slow),
        pytest.param("linear_delta", 0.001, 8e-4, marks=pytest.mark.slow),
        ("orthoglide", 0.003, 3e-4),  # its loops repeat each other
        pytest.param("planar_3rrr", 0.001, 2e-4, marks=pytest.mark.slow),
        pytest.param("tripteron", 0.005, 3e-4, marks=pytest.mark.slow),
        ("five_bar", 0.002, 2e-4),  # its platform hangs on a limb
        ("three_rpc", 0.001, 5e-4),  # cylindrical loops
        ("par2", 0.001, 1e-3),  # geared joints
        ("planar_mixed", 0.001, 1e-3),  # bodies on its platform
    ],
)
def test_no_machine_misses_a_proved_box_by_more_than_the_bound(name: str, half: float, bound: float) -> None:
    analysis, found = proved(name, half, bound)
    assert found.verdict == "proved"
    assert found.share == pytest.approx(1.0)
    assert found.largest <= bound
    random = np.random.default_rng(1)
    task, ends = analysis.robot.coordinates, box_of(analysis, half)
    points = np.array([[random.choice(ends[c.name]) if c.name in ends else c.home for c in task.all] for _ in range(4)])
    model = ErrorModel(analysis.robot, FINE, task.poses(points)[0])
    drives = model.parameters.model.columns_of(model.mechanism.actuated_joints)
    off = []
    for k, worst in enumerate(model.worst_machines()):
        for sign in (1.0, -1.0):
            for share in (1.0, 0.0):  # the worst machine, and others at random
                drawn = {
                    name: sign * value if share else value * random.uniform(-1.0, 1.0)
                    for name, value in worst.parameters.items()
                }
                built = GraphModel(model.mechanism, model.parameters.displacements(drawn))
                start = model.states.rows(slice(k, k + 1))
                end, gap = built.closed(start, drives)
                assert gap[0] < (1e-10 if built.regular else 1e-8)  # loops that repeat others: open to second order
                off.append(float(np.linalg.norm(end.platform[0, :3, 3] - start.platform[0, :3, 3])))
    assert max(off) <= found.largest
    assert max(off) > 0.5 * found.largest  # the bound is not idle


@pytest.mark.by_day("planar_3rpr")
@pytest.mark.parametrize(("name", "half", "share"), [("two_rpr", 0.01, 0.8), ("planar_3rpr", 0.002, 0.9)])
def test_planar_robots_of_legs_are_bounded_as_their_distance_equations_say(
    name: str, half: float, share: float
) -> None:
    """The kinds of robot in Goldsztejn, Caro and Chabert (2015): RPRPR, and 3-RPR at one orientation.

    Joint centres on base and platform, and legs, may be off. Independently of the graph: the distances between the
    joint centres, solved by another method, at the corners and with the signs of the errors that are worst there.
    """
    analysis, size = Analysis(load_mechanism(name)), 1e-4
    patterns = ("*turn on the base, x", "*turn on the base, y", "*pin on the platform, x", "*pin on the platform, y")
    tolerances = Tolerances(lengths=0.0, angles=0.0, sensors=size, parameters=dict.fromkeys(patterns, (0.1, "mm")))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, half)), tolerances, 2e-3, **SEARCH)
    assert found.verdict == "proved"
    mechanism = analysis.robot.mechanism
    home = mechanism.home
    base = np.array([joint.origin[:2, 3] for joint in mechanism.joints if joint.name.endswith("_turn")])
    pins = np.array([loop.successor_frame[:2, 3] for loop in mechanism.loops])
    angle, turns = float(np.arctan2(home[1, 0], home[0, 0])), len(base) == 3

    def placed(off: np.ndarray, lengths: np.ndarray, start: np.ndarray) -> np.ndarray:
        errors = off[: 4 * len(base)].reshape(2, -1, 2)

        def miss(x: np.ndarray) -> np.ndarray:
            phi = x[2] if turns else angle
            R = np.array([[np.cos(phi), -np.sin(phi)], [np.sin(phi), np.cos(phi)]])
            ends = x[:2] + (pins + errors[1]) @ R.T
            return np.linalg.norm(ends - base - errors[0], axis=1) - lengths - off[4 * len(base) :]

        return optimize.root(miss, start, tol=1e-13).x

    largest = 0.0
    for corner in np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]]) * half:
        at = np.array([*(home[:2, 3] + corner), angle])[: 3 if turns else 2]
        count = 5 * len(base)
        lengths = np.linalg.norm(at[:2] + pins @ home[:2, :2].T - base, axis=1)
        steps = np.array([placed(1e-6 * one, lengths, at)[:2] - at[:2] for one in np.eye(count)]) / 1e-6
        for direction in np.linspace(0.0, np.pi, 32):
            off = size * np.sign(steps @ [np.cos(direction), np.sin(direction)])
            largest = float(np.maximum(largest, np.linalg.norm(placed(off, lengths, at)[:2] - at[:2])))
    assert share * found.largest < largest <= found.largest
    random, n = (
        np.random.default_rng(0),
        20_000,
    )  # machines and poses at random, half of them with errors as large as may be
    off = size * random.uniform(-1.0, 1.0, (n, len(base), 5))
    off[: n // 2] = size * np.sign(off[: n // 2])
    at = np.column_stack((home[:2, 3] + random.uniform(-half, half, (n, 2)), np.full(n, angle)))
    lengths = _planar_gaps(base, pins, at)[0]
    end = at.copy()
    for _ in range(6):
        found_lengths, J = _planar_gaps(base + off[:, :, :2], pins + off[:, :, 2:4], end)
        gap = found_lengths - lengths - off[:, :, 4]
        free = slice(0, 3 if turns else 2)
        end[:, free] -= np.linalg.solve(J[:, :, free], gap[:, :, None])[:, :, 0]
    assert np.abs(gap).max() < 1e-14
    missed = np.linalg.norm(end[:, :2] - at[:, :2], axis=1)
    assert 0.6 * found.largest < missed.max() <= found.largest


def _planar_gaps(base: np.ndarray, pins: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Leg lengths (n, k) at poses x, y, angle (n, 3), and their derivatives (n, k, 3)."""
    c, s = np.cos(at[:, 2]), np.sin(at[:, 2])
    R = np.stack((np.stack((c, -s), axis=1), np.stack((s, c), axis=1)), axis=1)
    arms = np.broadcast_to(pins, (len(at), *pins.shape[-2:])) @ np.swapaxes(R, 1, 2)
    legs = at[:, None, :2] + arms - base
    lengths = np.linalg.norm(legs, axis=2)
    along = legs / lengths[:, :, None]
    turned = along[:, :, 1] * arms[:, :, 0] - along[:, :, 0] * arms[:, :, 1]
    return lengths, np.concatenate((along, turned[:, :, None]), axis=2)


@pytest.mark.by_day("delta")
@pytest.mark.parametrize(("name", "half"), [("delta", 1e-3), ("tripod_3prs", 2e-4), ("hexa", 1e-3)])
def test_play_and_warmth_are_in_the_proof(name: str, half: float) -> None:
    """Joints off by their clearance in the worst direction to first order, parts and sensors too, all of it warmer."""
    analysis = Analysis(load_mechanism(name))
    loose = Tolerances(lengths=1e-5, angles=1e-5, ratios=1e-4, sensors=1e-5, clearance=2e-5, change=5.0)
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, half)), loose, 2e-3, **SEARCH)
    assert found.verdict == "proved"
    task = analysis.robot.coordinates
    home = np.array([[c.home for c in task.all]])
    model = ErrorModel(analysis.robot, loose, task.poses(home)[0])
    graph, start = model.parameters.model, model.states
    worst = model.worst_machines()[0]
    values, read = worst.parameters, worst.read
    drives = graph.columns_of(model.mechanism.actuated_joints)
    passive = [j for j in graph.joints if not j.actuated and j.type is not JointType.FIXED]
    places = [graph.place_at[one.name, "origin"] for one in passive]
    places += [graph.place_at[loop.name, "successor"] for loop in graph.loops]
    moves = [
        GeometricParameter("", "offset", "m", w)
        for w in np.eye(6 * len(graph.places)).reshape(-1, len(graph.places), 6)
    ]
    twists = model.parameters.sensitivity(start, moves)[1][0, :3].reshape(3, len(graph.places), 6)
    off = []
    for sign in (1.0, -1.0):
        drawn = sign * model.parameters.displacements(values) + 5.0 * grown(graph, loose).weights
        toward = np.einsum("ipk,pk->i", twists, drawn)
        for place in places:
            push = twists[:, place, :3].T @ toward
            axis = getattr(graph.joints[place], "axis", None) if place < len(graph.joints) else None
            push -= 0.0 if axis is None else axis * float(axis @ push)
            drawn[place, :3] += 2e-5 * push / max(float(np.linalg.norm(push)), 1e-12)
        moved = start.rows(slice(0, 1))
        moved.q[:, drives] += sign * read
        end, gap = GraphModel(model.mechanism, drawn).closed(moved, drives)
        moved.q[:, drives] -= sign * read
        assert gap[0] < 1e-10
        off.append(float(np.linalg.norm(end.platform[0, :3, 3] - start.platform[0, :3, 3])))
    assert max(off) <= found.largest
    assert max(off) > 0.6 * found.largest
    still = Tolerances(lengths=1e-5, angles=1e-5)
    assert max(off) > prove_pose_error(analysis.robot, analysis.box(box_of(analysis, half)), still, 2e-3).largest


@pytest.mark.by_day("tripod_3prs")
@pytest.mark.parametrize("name", ["orthoglide", "delta", "tripod_3prs"])
def test_a_coordinate_that_is_held_is_no_obstacle(name: str) -> None:
    """The bound over a flat box is at most that over the whole one."""
    analysis = Analysis(load_mechanism(name))
    task, enclosure = analysis.robot.coordinates, _Enclosure(analysis.robot, FINE)
    home = np.array([[c.home for c in task.all]])
    whole = enclosure.errors(task, home, np.full(home.shape, 5e-4))[0]
    for held in range(home.shape[1]):
        flat = np.where(np.arange(home.shape[1]) == held, 0.0, 5e-4)[None]
        assert 0.0 < enclosure.errors(task, home, flat)[0] <= whole * (1.0 + 1e-6)


def test_what_holds_with_little_to_spare_is_proved_over_a_box_that_people_ask_for() -> None:
    """A tenth more than the worst machine misses anywhere in a cube of 50 mm: intervals without slopes did not end."""
    analysis = Analysis(load_mechanism("delta"))
    tight = Tolerances(lengths=1e-5, angles=np.radians(0.001))
    box = analysis.box(box_of(analysis, 0.025))
    poses = analysis.robot.coordinates.poses(corners(np.stack((box.lower, box.upper), axis=1)[None])[0])[0]
    worst = float(ErrorModel(analysis.robot, tight, poses).budget().worst[:, 0].max())
    found = prove_pose_error(analysis.robot, box, tight, 1.1 * worst, resolution=0.1, most_boxes=30)
    assert found.verdict == "proved"
    assert worst < found.largest < 1.1 * worst


def test_what_does_not_hold_is_refuted_by_a_machine_and_a_pose() -> None:
    _, found = proved("delta", 0.004, 1e-4)
    assert found.verdict == "refuted"
    assert found.point is not None
    assert found.missed > 1e-4


@pytest.mark.parametrize("name", ["five_bar", "par2"])
def test_loops_of_the_machine_that_refutes_close(name: str) -> None:
    """In an overconstrained robot, all that is wrong with the worst machine locks them together."""
    loose = Tolerances(lengths=1e-4, angles=1e-4)
    analysis = Analysis(load_mechanism(name))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 0.004)), loose, 2e-4, **SEARCH)
    assert found.verdict == "refuted"
    assert found.machine is not None
    assert found.point is not None
    model = ErrorModel(analysis.robot, loose, analysis.robot.coordinates.poses(found.point[None])[0])
    drives = model.parameters.model.columns_of(analysis.robot.mechanism.actuated_joints)
    displaced = GraphModel(analysis.robot.mechanism, model.displacements(found.machine))
    end, gap = displaced.closed(model.states, drives)
    assert gap[0] < 1e-9 * displaced.length
    assert np.linalg.norm((end.platform - model.states.platform)[0, :3, 3]) == pytest.approx(found.missed)
    assert found.missed > 2e-4


def test_no_machine_refutes_what_holds_where_sensors_err_and_joints_have_play() -> None:
    """The machine without play had the errors of its sensors twice."""
    robot = Analysis(load_mechanism("delta")).robot
    loose = Tolerances(lengths=0.0, angles=0.0, sensors=1e-4, clearance=1e-9)
    home = np.array([[c.home for c in robot.coordinates.all]])
    worst = ErrorModel(robot, loose, robot.coordinates.poses(home)[0]).budget().worst[0, 0]
    enclosure = _Enclosure(robot, loose)
    assert enclosure.counterexample(robot.coordinates, home, 1.2 * worst)[0] is None
    assert enclosure.counterexample(robot.coordinates, home, 0.9 * worst)[0] == 0


@pytest.mark.parametrize(
    ("name", "loose"),
    [
        ("delta", Tolerances(lengths=1e-5, angles=1e-5, clearance=5e-5)),
        ("delta", Tolerances(lengths=1e-5, angles=1e-5, change=40.0)),
        ("tripod_3prs", Tolerances(lengths=1e-5, angles=1e-5, clearance=5e-5)),
    ],
)
def test_play_and_warmth_refute(name: str, loose: Tolerances) -> None:
    """Between what tight machines reach and the bound that is proved: the one that is named closes, and is off."""
    analysis = Analysis(load_mechanism(name))
    robot, box = analysis.robot, analysis.box({})
    task = robot.coordinates
    home = ErrorModel(robot, loose, task.poses(np.array([[c.home for c in task.all]]))[0])
    tight = ErrorModel(robot, Tolerances(lengths=1e-5, angles=1e-5), home.poses).budget().worst[0, 0]
    proof = prove_pose_error(robot, box, loose, 1.0)
    asked = 0.5 * (1.02 * tight + proof.largest)
    found = prove_pose_error(robot, box, loose, 0.75 * asked + 0.25 * 1.02 * tight)
    assert found.verdict == "refuted"
    assert found.machine is not None
    assert any(np.linalg.norm(apart) > 0.0 for apart in found.machine.play.values()) or found.machine.change
    assert all(np.linalg.norm(apart) <= 5e-5 * (1.0 + 1e-9) for apart in found.machine.play.values())
    start = home.states.rows(slice(0, 1))
    drives = home.parameters.model.columns_of(robot.mechanism.actuated_joints)
    end, gap = GraphModel(robot.mechanism, home.displacements(found.machine)).closed(start, drives)
    assert gap[0] < 1e-10
    assert np.linalg.norm(end.platform[0, :3, 3] - start.platform[0, :3, 3]) == pytest.approx(found.missed)
    assert tight < found.bound < found.missed <= proof.largest
    assert json.dumps(found.to_dict())


def test_what_no_box_can_prove_is_undecided_soon() -> None:
    """Between what the worst machine misses at a pose and what is proved there, no halving helps."""
    analysis = Analysis(load_mechanism("delta"))
    tight, box = Tolerances(lengths=1e-5, angles=np.radians(0.001)), {"x": (-1e-6, 1e-6)}
    home = analysis.robot.coordinates.poses(np.array([[c.home for c in analysis.robot.coordinates.all]]))[0]
    bound = 1.005 * ErrorModel(analysis.robot, tight, home).budget().worst[0, 0]
    found = prove_pose_error(analysis.robot, analysis.box(box), tight, bound, resolution=1e-4, most_boxes=60)
    assert found.verdict == "undecided"
    assert found.boxes < 20


def test_too_large_a_box_is_undecided_rather_than_wrong() -> None:
    analysis = Analysis(load_mechanism("delta"))
    found = prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 0.3)), FINE, 6e-4, **COARSE)
    assert found.verdict == "undecided"
    assert 0.0 <= found.share < 1.0
    assert len(found.undecided) > 0


def test_warmth_of_a_robot_whose_axes_meet_moves_nothing() -> None:
    """Agile Eye: all places are in its centre."""
    analysis = Analysis(load_mechanism("agile_eye"))
    cold, warm = (
        prove_pose_error(analysis.robot, analysis.box({}), Tolerances(lengths=1e-5, angles=1e-5, change=change), 1e-3)
        for change in (0.0, 20.0)
    )
    assert cold.verdict == warm.verdict == "proved"
    assert warm.largest == pytest.approx(cold.largest, rel=1e-9)


@pytest.mark.parametrize("name", ["cable_8", "planar_redundant", "gough_stewart_7"])
def test_redundant_drives_are_refused_with_what_else_can_be_asked(name: str) -> None:
    analysis = Analysis(load_mechanism(name))
    with pytest.raises(AnalysisError, match=r"no pose fits all their readings.*position_error"):
        prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 0.001)), FINE, 1e-3)


def test_of_redundant_drives_those_that_hold_positions_are_proved() -> None:
    text = load_mechanism("gough_stewart_7").urdf
    holding = re.sub(r'(<joint name="limb7_leg">\s*)<command_interface name="effort"/>', r"\1", text)
    analysis = Analysis(load_mechanism(holding))
    assert prove_pose_error(analysis.robot, analysis.box(box_of(analysis, 1e-5)), FINE, 1e-2).ok


def test_the_command_proves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tolerances.yaml"
    file.write_text("lengths: 0.01 mm\nangles: 0.01 mrad\n")
    words = ["hexa", "prove", "--that", "pose_error < 0.4 mm", "--box", "x=-3mm:3mm"]
    assert main([*words, "--tolerances", str(file), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "proved"
    assert answer["largest"] < 4e-4
    assert main(words) == 2
    assert "give --tolerances FILE" in capsys.readouterr().err
    file.write_text('parameters: {"*: lenght of *": 1 mm}\n')
    assert main([*words, "--tolerances", str(file)]) == 2
    assert "no parameter of the robot has such a name" in capsys.readouterr().err
