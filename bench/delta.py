# SPDX-License-Identifier: Apache-2.0
"""The Delta: inverse kinematics and dynamics in one call, direct dynamics, forward kinematics, batches."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

from bench import hand_written
from bench.peers import pinocchio_direct_dynamics, pinocchio_inverse_dynamics
from bench.sample import Sample, difference
from bench.states import random_states
from bench.straight_line import StraightLineC
from bench.tables import Row
from bench.timing import interleaved
from pkm_description.mechanism import Array
from pkm_dynamics.kernels.over_rows import BY_CODE, inverse_dynamics_many, straight_inverse_many
from pkm_dynamics.lean_calls import record_inverse
from pkm_kinematics.kernels.model_and_data import near
from pkm_kinematics.kernels.position.solve_poses import inverse_direct
from pkm_runtime.codegen import MachineCode
from pkm_runtime.kernels.binding import bind
from pkm_runtime.kernels.compiled import compiled

BATCH = 1_000_000
POINTS = 64  # states that a timed loop goes through, so that nothing can be computed once for all
SIZES = (0.330, 0.125, 0.420, 1.055)  # base radius, platform radius, arm, rod


def dynamics_rows(sample: Sample) -> list[Row]:
    """Inverse and direct dynamics against Pinocchio."""
    lean_inverse, lean_direct = sample.dynamics.lean_inverse(), sample.dynamics.lean_direct()
    moving, coasting = sample.motion(True), sample.motion(False)
    effort, acceleration = np.empty(3), np.empty(6)
    peer = pinocchio_inverse_dynamics(sample.pinocchio, sample.q, sample.v, sample.vdot)
    exact, settings = pinocchio_direct_dynamics(sample.pinocchio, sample.q, sample.v, sample.effort, 1e-8, 100)
    quick, _ = pinocchio_direct_dynamics(sample.pinocchio, sample.q, sample.v, sample.effort, 1e-8, 1)

    def inverse() -> None:
        lean_inverse(moving, effort)

    def direct() -> None:
        lean_direct(coasting, sample.effort, acceleration)

    def convenient() -> None:
        sample.dynamics.inverse(sample.pose, sample.twist, sample.acceleration)

    inverse()
    direct()
    same_effort = difference(effort, peer())
    same_exact, same_quick = difference(exact(), sample.vdot), difference(quick(), sample.vdot)
    steps = settings.iter
    ours_alone = difference(acceleration, sample.acceleration)
    t = interleaved(peer, inverse, exact, quick, direct, convenient)
    work = "inverse dynamics (ours: inverse kinematics included)"
    return [
        Row(work, "Pinocchio RNEA + constraint Jacobian + LAPACK", t[0], "lean call", t[1], 1 / 3, same_effort),
        Row("the same", "", None, "lean call, beside 2.74 µs printed by Müller (2021)", t[1], 2.74),
        Row(work, "", None, "convenient call", t[5]),
        Row(
            "direct dynamics (ours: inverse kinematics included)",
            "Pinocchio constraintDynamics, one proximal step",
            t[3],
            "lean call",
            t[4],
            1.0,
            f"peer {same_quick}, ours {ours_alone}",
        ),
        Row("the same", f"the same, to 1e-8 or {steps} steps", t[2], "lean call", t[4], 1.0, f"peer {same_exact}"),
    ]


def forward_rows(sample: Sample) -> list[Row]:
    """Forward kinematics against visual-kinematics, which gives one of the two modes."""
    kinematics, q = sample.kinematics, sample.actuated
    lean = kinematics.lean_forward()
    points = np.empty((2, 3))
    seeds = sample.pose

    def both() -> None:
        lean(q, points)

    def convenient() -> None:
        kinematics.forward(q, near=seeds)

    def all_modes() -> None:
        kinematics.forward_all(q)

    both()
    peer_name, calls, same = "", [], f"{np.abs(points - sample.pose[:3]).max(axis=1).min():.0e} m off the pose"
    try:
        from visual_kinematics.RobotDelta import RobotDelta

        robot = RobotDelta(np.array(SIZES))
        frame = robot.forward(q)
        same = f"to {np.linalg.norm(points - frame.t_3_1.ravel(), axis=1).min():.0e} m"
        peer_name = "visual-kinematics, one mode"
        calls = [lambda: robot.forward(q)]
    except ImportError:
        pass
    t = interleaved(both, convenient, all_modes, *calls)
    peer = t[3] if calls else None
    rows = [
        Row("forward kinematics, both modes", peer_name, peer, "lean call", t[0], None, same),
        Row("the same", "", None, "lean call", t[0], 2.0),
        Row("forward kinematics, the mode near a pose", "", None, "convenient call", t[1]),
        Row("forward kinematics, all modes", "", None, "convenient call", t[2]),
    ]
    return rows


def inverse_rows(sample: Sample) -> list[Row]:
    """Inverse kinematics of one pose, beside a function written for the Delta alone."""
    lean, q, again = sample.kinematics.lean_inverse(), np.empty(3), np.empty(3)
    alone = bind(hand_written.delta, (*SIZES, hand_written.DIRECTIONS), (sample.pose, again))

    def general() -> None:
        lean(sample.pose, q)

    def special() -> None:
        alone(sample.pose, again)

    def convenient() -> None:
        sample.kinematics.inverse(sample.pose)

    general()
    special()
    t = interleaved(special, general, convenient)
    return [
        Row("inverse kinematics", "closed form written for it", t[0], "lean call", t[1], 2.0, difference(q, again)),
        Row("inverse kinematics, all passive joints", "", None, "convenient call", t[2]),
    ]


def distance_to_straight_line(sample: Sample) -> list[list[str]]:
    """Inverse kinematics and dynamics as C without loops, tables and checks, and ours: names, times, ratios."""
    recording = record_inverse(sample.dynamics.robot, 0)
    assert recording is not None
    line, code = StraightLineC(recording), MachineCode(recording)
    special = line.compile()
    motions = _motions(sample, POINTS)
    efforts, again, condition = np.empty((POINTS, 3)), np.empty((POINTS, len(recording.results))), np.empty(POINTS)
    status = np.zeros(POINTS, dtype=np.int64)

    def straight() -> None:
        status[:] = 0
        straight_inverse_many(code.address, motions, condition, efforts, status)

    general, lean = _general(sample, motions, efforts), sample.dynamics.lean_inverse()
    single, out = np.ascontiguousarray(motions[0]), np.empty(3)
    general()
    kernel = efforts.copy()
    special(motions, again)
    straight()
    same = [np.abs(x - kernel).max() / np.abs(kernel).max() for x in (efforts, again[:, :3])]
    t = interleaved(lambda: special(motions, again), straight, lambda: lean(single, out), general)
    each = [t[0].median / POINTS, t[1].median / POINTS, t[2].median, t[3].median / POINTS]
    counts = ", ".join(f"{line.counts[sign]} {sign}" for sign in line.counts)
    names = [
        f"C made from the same equations ({counts}), without checks; agrees with the kernel to {same[1]:.0e}",
        f"ours in a batch, with all checks; agrees with the kernel to {same[0]:.0e}",
        "ours as a lean call from Python",
        "the kernel that both are recorded from, in a batch",
    ]
    return [[name, f"{1e6 * x:.2f} µs", f"{x / each[0]:.1f}"] for name, x in zip(names, each, strict=True)]


def _motions(sample: Sample, n: int) -> Array:
    """Motions (n, 25) of random states."""
    few = random_states(sample.kinematics, sample.pinocchio, min(n, 1000), seed=3)
    motions = np.hstack([few.pose, few.twist, few.acceleration, np.zeros((len(few.pose), 6))])
    return np.ascontiguousarray(np.tile(motions, (n // len(motions), 1)))


def _general(sample: Sample, motions: Array, efforts: Array) -> Callable[[], None]:
    """Inverse kinematics and dynamics of motions (n, 25) in one call of the kernel for any robot."""
    model, data = sample.dynamics.model(), sample.kinematics.engine.data()
    choice = near(sample.kinematics.home_joints, len(motions), 0)
    condition, status = np.empty(len(motions)), np.zeros(len(motions), dtype=np.int64)

    def call() -> None:
        inverse_dynamics_many(model, data, choice, motions, condition, efforts, status)

    return call


@compiled
def inverse_direct_many(model, data, mode, poses, out, status):
    """`inverse_direct` for poses (n, 7) into out (n, n_actuated) and status (n,)."""
    for k in range(poses.shape[0]):
        status[k] = inverse_direct(model, data, mode, poses[k], out[k])


def batch_rates(sample: Sample) -> list[list[str]]:
    """Poses per second and core: inverse kinematics, and inverse dynamics with it."""
    few = random_states(sample.kinematics, sample.pinocchio, 1000, seed=3)
    poses = np.tile(few.pose, (BATCH // 1000, 1))
    engine = sample.kinematics.engine
    q, status = np.empty((BATCH, 3)), np.empty(BATCH, dtype=np.int64)
    rates = []

    def positions() -> Array:
        inverse_direct_many(engine.model, engine.data(), 0, poses, q, status)
        return status

    motions = _motions(sample, BATCH // 10)
    efforts, done = np.empty((len(motions), 3)), np.zeros(len(motions), dtype=np.int64)
    condition = np.empty(len(motions))
    parts = motions[:, :7], motions[:, 7:13], motions[:, 13:19], motions[:, 19:]
    recording = record_inverse(sample.dynamics.robot, 0)
    assert recording is not None
    code = MachineCode(recording)

    def dynamics() -> Array:
        done[:] = 0
        straight_inverse_many(code.address, motions, condition, efforts, done)
        return done

    def public() -> Array:
        return sample.dynamics.inverse(sample.kinematics.at(parts[0], mode=0), *parts[1:]).status

    work = f"inverse kinematics and dynamics, {len(motions):,} states"
    for name, call, n, wanted in (
        ("inverse kinematics, one million poses", positions, BATCH, 3e6),
        (work, dynamics, len(motions), 5e5),
        (f"{work}, by `Dynamics.inverse`, which checks the input first", public, len(motions), 5e5),
    ):
        solved = np.isin(call(), (0, BY_CODE)).mean()
        times = []
        for _ in range(11):
            start = process_time()
            call()
            times.append(process_time() - start)
        rate = n / float(np.median(times))
        verdict = "met" if rate >= wanted else "**missed**"
        wish = f"≥ {wanted / 1e6:g} million / s {verdict}"
        rates.append([name, f"{rate / 1e6:.2f} million / s", wish, f"{solved:.0%} solved"])
    return rates
