# SPDX-License-Identifier: Apache-2.0
"""The 6-UPS platform: inverse dynamics, direct dynamics and simulation, beside Pinocchio and MuJoCo."""

from __future__ import annotations

import numpy as np

from bench import hand_written
from bench.engines.pinocchio_model import PinocchioRobot
from bench.peers import (
    mujoco_forward,
    mujoco_step,
    numpy_tracking,
    pinocchio_direct_dynamics,
    pinocchio_inverse_dynamics,
)
from bench.sample import Sample, difference
from bench.tables import Row
from bench.timing import interleaved
from pkm_runtime.kernels.binding import bind

STEPS = 200  # of 1 ms


def dynamics_rows(sample: Sample) -> list[Row]:
    """Inverse and direct dynamics, leg inertia included."""
    lean_inverse, lean_direct = sample.dynamics.lean_inverse(), sample.dynamics.lean_direct()
    moving, coasting = sample.motion(True), sample.motion(False)
    effort, acceleration = np.empty(6), np.empty(6)
    peer = pinocchio_inverse_dynamics(sample.pinocchio, sample.q, sample.v, sample.vdot)
    constrained, settings = pinocchio_direct_dynamics(sample.pinocchio, sample.q, sample.v, sample.effort, 1e-8, 100)
    mujoco_call = mujoco_forward(sample.mujoco)

    def inverse() -> None:
        lean_inverse(moving, effort)

    def direct() -> None:
        lean_direct(coasting, sample.effort, acceleration)

    inverse()
    direct()
    mujoco_call()
    at = sample.mujoco.dof_at["platform"]
    soft = difference(sample.mujoco.data.qacc[at : at + 3], sample.acceleration[:3])
    same = difference(effort, peer())
    same_direct, steps = difference(constrained(), sample.vdot), settings.iter
    ours = difference(acceleration, sample.acceleration)
    t = interleaved(peer, inverse, constrained, mujoco_call, direct)
    name = "direct dynamics (ours: inverse kinematics included)"
    return [
        Row(
            "inverse dynamics (ours: inverse kinematics included)",
            "Pinocchio RNEA + constraint Jacobian + LAPACK", t[0], "lean call", t[1], 1 / 3, same,
        ),
        Row(
            name, f"Pinocchio constraintDynamics, {steps} steps", t[2], "lean call", t[4], 0.5,
            f"peer {same_direct}, ours {ours}",
        ),
        Row(name, "MuJoCo mj_forward", t[3], "lean call", t[4], 0.5, f"peer {soft} (soft loops)"),
    ]  # fmt: skip


def step_rows(sample: Sample) -> tuple[list[Row], list[list[str]]]:
    """A simulation step of 1 ms, and how far the loops are open after 0.2 s of it, by each engine's own placements."""
    step = sample.dynamics.lean_step(1e-3)
    hold = sample.dynamics.gravity(sample.kinematics.home).effort
    start = np.zeros(25)
    start[:7] = sample.kinematics.home
    motion, acceleration = start.copy(), np.empty(6)
    for _ in range(STEPS):
        assert step(motion, hold * 0.999, acceleration) == 0
    judge = PinocchioRobot(sample.mechanism)
    solved = sample.kinematics.inverse(motion[:7])
    gap = judge.closure_gap(judge.coordinates(sample.kinematics.joint_names, solved.joints))
    robot = sample.mujoco
    names = sample.kinematics.joint_names
    at_home = sample.kinematics.inverse(sample.kinematics.home).joints

    def restart() -> None:
        robot.set_state(names, at_home, np.zeros(len(names)), sample.kinematics.home, np.zeros(6))
        robot.data.qfrc_applied[robot.actuated] = hold * 0.999

    restart()
    advance = mujoco_step(robot)
    for _ in range(STEPS):
        advance()
    theirs = robot.closure_gap()
    fell = np.linalg.norm(motion[:3] - start[:3])
    count = [0, 0]

    def ours_again() -> None:
        if count[0] % STEPS == 0:
            motion[:] = start
        count[0] += 1
        step(motion, hold, acceleration)

    def theirs_again() -> None:
        if count[1] % STEPS == 0:
            restart()
        count[1] += 1
        advance()

    t = interleaved(theirs_again, ours_again)
    row = Row("simulation step, 1 ms", "MuJoCo mj_step", t[0], "lean step", t[1], 1.0)
    gaps = [
        ["MuJoCo mj_step", f"{theirs:.1e} m", ""],
        ["lean step", f"{gap:.1e} m", "≤ 1e-9 m " + ("met" if gap < 1e-9 else "**missed**")],
        ["motion of the platform", f"{fell:.1e} m", ""],
    ]
    return [row], gaps


def inverse_rows(sample: Sample) -> list[Row]:
    """Inverse kinematics of one pose, beside a function written for the 6-UPS alone; tracked forward kinematics."""
    kinematics = sample.kinematics
    tables = kinematics.tables
    lean, q, again = kinematics.lean_inverse(), np.empty(6), np.empty(6)
    blocks, closures = tables.blocks, tables.closures
    base, platform = np.empty((6, 3)), np.empty((6, 3))
    for block in blocks:
        k = tables.bodies["actuator"][block["extension"]]
        base[k] = tables.bodies["translation"][block["pointing"]]
        platform[k] = closures["successor_point"][block["closure_start"]]
    offsets = np.zeros(6)
    alone = bind(hand_written.six_ups, (base, platform, offsets), (sample.pose, again))
    alone(sample.pose, again)
    lean(sample.pose, q)
    offsets += again - q

    def general() -> None:
        lean(sample.pose, q)

    def special() -> None:
        alone(sample.pose, again)

    track, moved = kinematics.lean_track(), sample.pose.copy()
    near = sample.pose.copy()
    near[:3] += 1e-3

    def tracked() -> None:
        moved[:] = near
        track(sample.actuated, moved)

    def convenient() -> None:
        kinematics.forward(sample.actuated, near=near)

    special()
    tracked()
    peer = numpy_tracking(base, platform, sample.actuated + offsets, near)
    theirs = f"peer {np.linalg.norm(peer()[0] - sample.pose[:3]):.0e} m, "
    same = theirs + f"ours {np.linalg.norm(moved[:3] - sample.pose[:3]):.0e} m off the pose"
    t = interleaved(special, general, tracked, convenient, peer)
    name = "forward kinematics, tracked from 1 mm off"
    return [
        Row("inverse kinematics", "closed form written for it", t[0], "lean call", t[1], 2.0, difference(q, again)),
        Row(name, "Newton in NumPy, three steps", t[4], "lean call", t[2], 0.1, same),
        Row(name, "", None, "convenient call", t[3]),
    ]
