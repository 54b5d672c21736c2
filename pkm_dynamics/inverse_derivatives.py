# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics by pose, twist and acceleration of the platform: exact, by complex steps.

f(x + i h d) has h times the derivative along d as its imaginary part if h^2 is negligible: without a difference nothing
cancels (Squire and Trapp, "Using complex variables to estimate derivatives of real functions", SIAM Review 1998). All
directions pass at once through the suite's equation, as dense matrices over the whole robot:

    J qd + G V = 0,   J qdd + G A + drift = 0,   K_a^T tau = K^T f(q, qd, qdd)

A pose step moves each body by its velocity for that step. No step passes through a pseudo-inverse: the equations and
joints that determine the motion are chosen at the real pose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.complex_motion import Complex, Dense
from pkm_dynamics.efforts import efforts_of
from pkm_dynamics.problem import ACCELERATION, TWIST, WRENCH, Problem
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Status
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import Solution
from pkm_runtime.errors import PkmError

STEP = 1e-40
DEPENDENT = 1e-9  # of the longest column: what remains of a joint whose closures leave it free


@dataclass(frozen=True, eq=False, repr=False)
class InverseDerivatives(Solution):
    """Efforts and their derivatives: NaN where the status is not CONVERGED.

    Columns go with those of the motion space S = `Kinematics.subspace` (6, n) at the pose:

    `pose`: per displacement S dx, linear [m] and then a rotation vector [rad] in base axes about the platform's origin:
    R becomes exp(S_angular dx) R. `twist`: per velocity S u. `acceleration`: per acceleration S ud, the mass matrix as
    the actuators feel it: `motion_jacobian.T @ acceleration` is `Dynamics.mass_matrix`.

    Quantities not varied keep their components in base axes. In a configuration-dependent motion space
    (`Kinematics.constant_space` is False) twist and acceleration cannot: they follow to the possible ones with the same
    components in S, the change being orthogonal to S, rotations times `Engine.characteristic_length`.

    Derivatives by the parameters are the regressor, `Dynamics.regressor`.
    """

    effort: Array  # (..., n_actuated) N m or N
    pose: Array  # (..., n_actuated, n) per m or rad
    twist: Array  # (..., n_actuated, n) per m/s or rad/s
    acceleration: Array  # (..., n_actuated, n) kg, kg m, kg m^2
    status: NDArray[np.int64]  # (...,)

    def _values(self) -> list[str]:
        return [f"pose, twist and acceleration: derivatives of shape {self.pose.shape}, actuators by freedoms"]


def inverse_derivatives(problem: Problem) -> InverseDerivatives:
    """See `Dynamics.inverse_derivatives`."""
    k = problem.robot.kinematics
    if not k.constant_space and k.mechanism.mobility.left_out:
        raise PkmError(f"{k.mechanism.name}: no derivatives if the platform's branch rotates and carries load")
    (efforts, _), status = efforts_of(problem), problem.status
    m, n = len(k.actuated_names), k.mobility
    out = np.full((len(problem), m, 3 * n), np.nan)
    for i in np.flatnonzero(status == Status.CONVERGED):
        try:
            out[i] = _at(problem, int(i))
        except np.linalg.LinAlgError:
            status[i] = Status.SINGULAR
    problem.refuse_overflow(out)
    efforts[status != Status.CONVERGED] = np.nan
    parts = [problem.shaped(x) for x in np.split(out, 3, axis=2)]
    return InverseDerivatives(problem.shaped(efforts), parts[0], parts[1], parts[2], problem.shaped(problem.status))


def _at(problem: Problem, i: int) -> Array:
    """Derivatives (m, 3 n) of the efforts at row i along the motion space (6, n) of pose, twist and acceleration."""
    motion, S, bodies = problem.motions[i], problem.spaces[i], problem.model.bodies
    t, n = problem.robot.kinematics.tables, S.shape[1]
    swept = np.zeros((3 * n, len(bodies), 6))
    for c in range(n):
        step = motion.copy()
        step[TWIST], step[13:] = S[:, c], 0.0
        state = problem.moved(i, step).state
        swept[c, :, :3], swept[c, :, 3:] = state["v"], state["w"]
    dense = Dense(bodies, t.closures, t.gravity, state["R"], state["p"], swept, STEP, problem.model.springs)
    V, A = (np.tile(motion[at], (3 * n, 1)).astype(complex) for at in (TWIST, ACCELERATION))
    V[n : 2 * n] += 1j * STEP * S.T
    A[2 * n :] += 1j * STEP * S.T
    joints = _determined(dense, t.blocks, bodies)
    effort = _efforts(problem.robot, dense, joints, V, A, motion[WRENCH], S)
    return np.asarray(effort.imag / STEP).T


def _determined(dense: Dense, blocks: NDArray[Any], bodies: NDArray[Any]) -> NDArray[np.int64]:
    """Joints (by body) that the closures of their block determine at the real pose: neither held nor left free."""
    J = dense.J[0].real
    found: list[int] = []
    for block in blocks:
        rows = slice(block["rows_at"], block["rows_at"] + block["rows"])
        free = [j for j in range(block["start"], block["start"] + block["count"]) if not bodies[j]["held"]]
        kept = np.zeros((block["rows"], 0))
        longest = max((float(np.linalg.norm(J[rows, j - 2])) for j in free), default=0.0)
        for j in free:
            rest = J[rows, j - 2]
            for _ in range(2):
                rest = rest - kept @ (kept.T @ rest)
            if np.linalg.norm(rest) > DEPENDENT * longest:
                kept = np.column_stack([kept, rest / np.linalg.norm(rest)])
                found.append(j)
    return np.array(found, dtype=np.int64)


def _efforts(
    robot: RobotModel, dense: Dense, joints: NDArray[np.int64], V: Complex, A: Complex, external: Array, S: Array
) -> Complex:
    """Efforts (d, m) at the complex motions; `joints` are the determined ones."""
    k = robot.kinematics
    d, width = len(V), len(joints)
    J, G = dense.J[:, :, joints - 2], dense.G
    turning = not k.constant_space
    if turning:  # the platform's twist and acceleration follow: six unknowns more
        square = (S * scaling(k.engine.characteristic_length)[:, None] ** 2).T  # (n, 6)
        below = np.concatenate([np.zeros((len(square), width)), square], axis=1)
        J = np.concatenate([np.concatenate([J, G], axis=2), np.broadcast_to(below, (d, *below.shape))], axis=1)
    chosen = np.sort(scipy.linalg.qr(J[0].real.T, mode="r", pivoting=True)[1][: J.shape[2]])
    square_J = J[:, chosen]

    def close(opening: Complex, kept: Complex | Array | None = None) -> tuple[Complex, Complex]:
        """Rates of all joints (d, n_bodies, c) and of the platform (d, 6, c) that close an opening (d, n_rows, c)."""
        c = opening.shape[2]
        right = -opening
        if turning:
            right = np.concatenate([right, np.zeros((d, len(square), c)) if kept is None else kept], axis=1)
        solved = np.linalg.solve(square_J, right[:, chosen])
        rates: Complex = np.zeros((d, len(dense.bodies), c), dtype=np.complex128)
        rates[:, joints] = solved[:, :width]
        platform: Complex = np.zeros((d, 6, c), dtype=np.complex128)
        return rates, np.asarray(solved[:, width:]) if turning else platform

    if turning:
        unit = np.broadcast_to(square @ S, (d, S.shape[1], S.shape[1]))
        K, space = close(np.zeros((d, G.shape[1], S.shape[1]), dtype=complex), unit)
        qd, twist = close(np.zeros((d, G.shape[1], 1), dtype=complex), (V @ square.T)[:, :, None])
        V = twist[:, :, 0]
    else:
        space = np.broadcast_to(S, (d, *S.shape)).astype(complex)
        K, _ = close(G @ space)
        qd, _ = close(G @ V[:, :, None])
    dense.move(V, qd[:, :, 0])
    qdd, more = close(dense.accelerate(A, np.zeros_like(qd[:, :, 0]))[:, :, None])
    dense.accelerate(A + more[:, :, 0], qdd[:, :, 0])
    force, wrench = dense.forces(qd[:, :, 0], qdd[:, :, 0], external, robot.friction)
    b = np.einsum("djc,dj->dc", K, force) + np.einsum("drc,dr->dc", space, wrench)
    order = [int(np.flatnonzero(dense.bodies["actuator"] == a)[0]) for a in range(len(k.actuated_names))]
    Ka = K[:, order]
    if Ka.shape[1] == Ka.shape[2]:
        return np.asarray(np.linalg.solve(np.swapaxes(Ka, 1, 2), b[:, :, None])[:, :, 0])
    least = np.linalg.solve(np.swapaxes(Ka, 1, 2) @ Ka, b[:, :, None])
    return np.asarray((Ka @ least)[:, :, 0])
