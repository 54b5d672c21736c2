# SPDX-License-Identifier: Apache-2.0
"""Physically feasible parameters: those of positive density that fit the measurements best.

The ten parameters of a body are those of some distribution of positive mass where its pseudo-inertia matrix

    [[ tr(I)/2 E - I,  h ],
     [ h^T,            m ]]

is positive semidefinite (Wensing, Kim and Slotine, "Linear matrix inequalities for physically consistent inertial
parameter identification", IEEE RA-L 2018). With non-negative friction and rotor inertia the fit is a convex programme.
Prior values, the description's, fill what the motion does not tell. Needs Clarabel (`pip install clarabel`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from pkm_description.mechanism import Array, symmetric_of
from pkm_dynamics.identification.least_squares import Estimate
from pkm_dynamics.linear_form.regressor import ParameterSet
from pkm_runtime.errors import PkmError

PRIOR = 1e-3  # weight of one prior scale against one standard deviation of the measurements


class SolverMissingError(PkmError):
    """Clarabel is not installed."""


class FeasibilityError(PkmError):
    """The convex solver gave no answer."""


@dataclass(frozen=True, eq=False)
class Feasible:
    """Feasible parameters (n,), their base parameters (r,), and weighted residuals, also that of least squares."""

    values: Array
    base_values: Array
    residual: float  # root mean square of the weighted equations, in standard deviations
    least_squares_residual: float


def pseudo_inertia(ten: Array) -> Array:
    """Pseudo-inertia matrix (4, 4) of the parameters (10,) of a body."""
    inertia = symmetric_of(ten[4:10])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    P[:3, 3] = P[3, :3] = ten[1:4]
    P[3, 3] = ten[0]
    return P


def feasible_estimate(found: Estimate, parameters: ParameterSet) -> Feasible:
    """Parameters (n,) of positive mass distributions that fit the weighted equations of an estimate best.

    The description's pull with the weight PRIOR where the equations leave parameters open.
    """
    try:
        import clarabel
    except ImportError as error:
        raise SolverMissingError("feasible estimates need the convex solver Clarabel: pip install clarabel") from error
    prior = parameters.values
    scale = _scales(parameters)
    # in units of `scale`; the equations only through their triangular factor
    R: Array = np.linalg.qr(np.column_stack([found.W, found.y]), mode="r")  # type: ignore[assignment]
    r = found.W.shape[1]
    A = R[:r, :r] @ found.base.grouping * scale
    target = R[:r, r]
    P = scipy.sparse.csc_matrix(np.triu(A.T @ A + PRIOR**2 * np.eye(len(prior))))
    q = -(A.T @ target) - PRIOR**2 * prior / scale
    rows, offsets, cones = _cones(parameters, clarabel)
    G = scipy.sparse.csc_matrix(rows * scale)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solution = clarabel.DefaultSolver(P, q, G, offsets, cones, settings).solve()
    if str(solution.status) not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        raise FeasibilityError(f"the convex solver ended with {solution.status}")
    values = np.asarray(solution.x) * scale
    base_values = found.base.values(values)

    def residual(at: Array) -> float:
        return float(np.sqrt(np.mean((found.W @ at - found.y) ** 2)))

    return Feasible(values, base_values, residual(base_values), residual(found.values))


def _scales(parameters: ParameterSet) -> Array:
    """Size of every parameter: from a body's mass and radius of gyration; of a joint, its prior or one."""
    prior = parameters.values
    scale = np.maximum(np.abs(prior), 1e-3)
    for at in parameters.bodies.values():
        mass = max(prior[at], 0.1)
        radius = max(float(np.sqrt(max(np.trace(symmetric_of(prior[at + 4 : at + 10])), 0.0) / mass)), 0.02)
        scale[at] = mass
        scale[at + 1 : at + 4] = mass * radius
        scale[at + 4 : at + 10] = mass * radius**2
    return scale


def _cones(parameters: ParameterSet, clarabel: object) -> tuple[Array, Array, list[object]]:
    """Rows, offsets and cones with `rows p + s = offsets`, s in the cones: the joints' p >= 0, the bodies' matrices."""
    n = len(parameters)
    inertial = np.zeros(n, dtype=bool)
    for at in parameters.bodies.values():
        inertial[at : at + 10] = True
    joints = np.flatnonzero(~inertial)
    rows = [-np.eye(n)[joints]]
    cones: list[object] = []
    if len(joints):
        cones.append(clarabel.NonnegativeConeT(len(joints)))  # type: ignore[attr-defined]
    # the upper triangle column by column, entries off the diagonal times sqrt(2), is the solver's form of a matrix
    upper = [(i, j) for j in range(4) for i in range(j + 1)]
    unit = np.array([pseudo_inertia(e) for e in np.eye(10)])
    block = np.array([[unit[k, i, j] * (1.0 if i == j else np.sqrt(2.0)) for k in range(10)] for i, j in upper])
    for at in parameters.bodies.values():
        wide = np.zeros((10, n))
        wide[:, at : at + 10] = -block
        rows.append(wide)
        cones.append(clarabel.PSDTriangleConeT(4))  # type: ignore[attr-defined]
    stacked = np.vstack(rows)
    return stacked, np.zeros(len(stacked)), cones
