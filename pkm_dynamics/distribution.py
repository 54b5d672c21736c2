# SPDX-License-Identifier: Apache-2.0
"""Distribution of redundant actuator efforts: least norm within bounds, among all that do the same work.

With m actuators for n < m degrees of freedom, `K_a^T tau = b` leaves m - n efforts free: tau = tau_0 + N z, N the null
space of K_a^T. Dasgupta ("Force redundancy in parallel manipulators: theoretical and practical issues", 2002) compares
pseudo-inverse, minimax and the norms between them. In z they are small convex programmes:

* norm 2: least distance to a polyhedron, by the compiled method of the control loop (`kernels/sharing.py`); `Sharing`
  offers it to loops, in some microseconds;
* norms 1 and inf: linear programmes, by `scipy.optimize.linprog` (HiGHS);
* other norms: `scipy.optimize.minimize` (SLSQP) with the exact gradient, from the answer for norm 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Mechanism
from pkm_dynamics.kernels.sharing import (
    NO_END,
    NONE_WITHIN,
    SHARED,
    UNDETERMINED,
    nearest_within,
    room,
    share_rows,
    share_within,
)
from pkm_kinematics import Status
from pkm_kinematics.kernels.dense import all_finite, limit
from pkm_runtime.errors import PkmError

WITHIN = 1e-9  # of the size of the efforts: what rounding may leave outside the bounds
LEEWAY = 1e-10  # by which the second of two programmes may miss the optimum of the first
CONVERGED, NO_DESCENT = 0, 8  # SLSQP: done, and done because rounding hides any further descent
_FREE = 1e-3  # price of efforts without work beside that of missed work, where nothing within the bounds does all


_WHY = {NONE_WITHIN: Status.EFFORT_LIMIT, UNDETERMINED: Status.SINGULAR, NO_END: Status.DIVERGED}
_INFEASIBLE = 2  # status of `linprog`


class DistributionError(PkmError):
    """A distribution that does not fit the robot."""


class _NoConvergenceError(Exception):
    """The method cycles or gives up, so that it is not known whether efforts within the bounds exist."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Choice among all efforts that do the same work: those of least `‖weights * tau‖` within the bounds.

    The default is least squares without bounds, also for actuators that cannot give them.

    Args:
        norm: p >= 1 of the p-norm: 2 for least squares, `numpy.inf` for the least peak. Of several efforts with the
            same peak those of least squares are taken, so that the answer is unique; with norm 1 it may not be.
        weights: (n_actuated,), positive; ones where None. "limits" is one over each effort limit, so that strong
            actuators take more.
        bounds: lower and upper efforts (n_actuated,) [N m or N], infinite where there is none. "limits" takes the
            description's, of one sign where an actuator only pulls or pushes. Equal bounds prescribe an effort: zero
            for a failed actuator. A positive lower bound keeps cables taut that a positive effort shortens, a negative
            upper bound those that it pays out.
    """

    norm: float = 2.0
    weights: ArrayLike | Literal["limits"] | None = None
    bounds: tuple[ArrayLike, ArrayLike] | Literal["limits"] | None = None


def meant(distribution: Distribution | None, mechanism: Mechanism) -> Distribution | None:
    """The distribution of a call, None for plain least squares; by default one-sided actuators keep their ranges."""
    if distribution is None:
        return Distribution(bounds="limits") if mechanism.one_way_actuators.any() else None
    plain = distribution.norm == 2.0 and distribution.weights is None and distribution.bounds is None
    return None if plain else distribution


def distribute(
    distribution: Distribution,
    names: Sequence[str],
    limits: tuple[Array, Array],
    jacobians: Array,
    efforts: Array,
    status: NDArray[np.int64],
) -> None:
    """Replace efforts (k, n_actuated) by those of a distribution, in place, where status (k,) is CONVERGED.

    `jacobians` (k, n_actuated, n), of uniform units, are actuated joint rates per velocity in the motion space. Without
    efforts: EFFORT_LIMIT none are within bounds, SINGULAR the Jacobian leaves them open, DIVERGED the method does not
    end.
    """
    weights, lower, upper = _numbers(distribution, names, limits)
    m, n = jacobians.shape[1:]
    if distribution.norm == 2.0 and m > n:
        _share_squares(weights, (lower, upper), jacobians, efforts, status)
        return
    if m == n:  # there is no choice
        slack = WITHIN * np.abs(efforts).max(axis=1, keepdims=True)
        beyond = ((efforts < lower - slack) | (efforts > upper + slack)).any(axis=1) & (status == Status.CONVERGED)
        efforts[beyond], status[beyond] = np.nan, Status.EFFORT_LIMIT
        return
    for k in np.flatnonzero(status == Status.CONVERGED):
        try:
            found = least(jacobians[k], efforts[k], distribution.norm, weights, lower, upper)
        except _NoConvergenceError:
            efforts[k], status[k] = np.nan, Status.DIVERGED
            continue
        if found is None:
            efforts[k], status[k] = np.nan, Status.EFFORT_LIMIT
        else:
            efforts[k] = found


def _share_squares(
    weights: Array, bounds: tuple[Array, Array], jacobians: Array, efforts: Array, status: NDArray[np.int64]
) -> None:
    _, m, n = jacobians.shape
    # what is to be small is weights * tau: its bounds are weighted, too, and the work of one effort is less
    rows = np.ascontiguousarray(np.swapaxes(jacobians / weights[:, None], 1, 2))
    scaled = efforts * weights
    found = np.where(status == Status.CONVERGED, SHARED, NONE_WITHIN).astype(np.int64)
    lower, upper = bounds[0] * weights, bounds[1] * weights
    share_rows(rows, n, lower, upper, scaled, found, np.zeros(room(m, n)))
    done = found == SHARED
    efforts[done] = scaled[done] / weights
    for code, why in _WHY.items():
        short = (found == code) & (status == Status.CONVERGED)
        efforts[short], status[short] = np.nan, why


def _numbers(
    distribution: Distribution, names: Sequence[str], limits: tuple[Array, Array]
) -> tuple[Array, Array, Array]:
    """Weights and bounds (n_actuated,) of a distribution. Raises `DistributionError`."""
    m = len(names)
    strength = np.maximum(-limits[0], limits[1])
    if not distribution.norm >= 1.0:
        raise DistributionError(f"norm: expected a number of at least 1, got {distribution.norm}")
    if isinstance(distribution.weights, str):
        for name, limit in zip(names, strength, strict=True):
            if not 0.0 < limit < np.inf:
                raise DistributionError(f"weights: joint '{name}' has no positive effort limit in the description")
        weights = 1.0 / strength
    else:
        weights = _vector(1.0 if distribution.weights is None else distribution.weights, m, "weights")
    if not ((weights > 0.0) & np.isfinite(weights)).all():
        raise DistributionError(f"weights: expected positive numbers, got {weights.tolist()}")
    if distribution.bounds is None:
        return weights, np.full(m, -np.inf), np.full(m, np.inf)
    pair = limits if isinstance(distribution.bounds, str) else distribution.bounds
    lower, upper = _vector(pair[0], m, "lower bound"), _vector(pair[1], m, "upper bound")
    for name, a, b in zip(names, lower, upper, strict=True):
        if not a <= b:
            raise DistributionError(f"bounds: the bounds of joint '{name}' are {a} and {b}")
    return weights, lower, upper


def _vector(values: ArrayLike, m: int, what: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (m,)):
        raise DistributionError(f"{what}: expected one number or {m}, got shape {array.shape}")
    return np.array(np.broadcast_to(array, m))


def least(K: Array, effort: Array, norm: float, weights: Array, lower: Array, upper: Array) -> Array | None:
    """Efforts (m,) of least p-norm within bounds at the work K^T effort, K (m, n) of rank n; None where none."""
    size = float(np.abs(effort).max())
    if size == 0.0:
        size = 1.0
    N = np.linalg.svd(K.T)[2][K.shape[1] :].T
    start, lower, upper = effort / size, lower / size, upper / size
    if N.shape[1] == 0:
        within = (start >= lower - WITHIN).all() and (start <= upper + WITHIN).all()
        return effort.copy() if within else None
    weights = weights / weights.max()
    if norm == 2.0:
        z = least_squares(N, start, weights, lower, upper)
    elif norm in (1.0, np.inf):
        z = _linear_programme(N, start, weights, lower, upper, peak=norm == np.inf)
    else:
        z = _between(N, start, weights, lower, upper, norm)
    if z is None or not _held(N, start, z, lower, upper):
        return None
    return size * np.asarray(start + N @ z)


def _held(N: Array, start: Array, z: Array, lower: Array, upper: Array) -> bool:
    x = start + N @ z
    slack = WITHIN * max(1.0, float(np.abs(x).max()))
    return bool((x >= lower - slack).all() and (x <= upper + slack).all())


def least_squares(N: Array, start: Array, weights: Array, lower: Array, upper: Array) -> Array | None:
    """z (r,) of least |weights * (start + N z)| with start + N z within bounds; None where there is none."""
    Q, R = np.linalg.qr(weights[:, None] * N)
    c = Q.T @ (weights * start)
    z = -np.linalg.solve(R, c)
    if _held(N, start, z, lower, upper):
        return z
    # x = R z + c turns it into: least |x| with lower <= rest + rows x <= upper
    rows = np.linalg.solve(R.T, N.T).T
    x, r = np.zeros(len(z)), len(z)
    status = nearest_within(np.ascontiguousarray(rows), start - rows @ c, lower, upper, x, np.zeros((r + 6, r + 1)))
    if status == NO_END:
        raise _NoConvergenceError
    return np.asarray(np.linalg.solve(R, x - c)) if status == SHARED else None


def _linear_programme(
    N: Array, start: Array, weights: Array, lower: Array, upper: Array, *, peak: bool
) -> Array | None:
    """z (r,) of least peak (ties by least squares), else least sum, of |weights * (start + N z)|; None where none."""
    m, r = N.shape
    cover = np.ones((m, 1)) if peak else np.eye(m)  # |weights * (start + N z)| <= cover @ s
    A, b = weights[:, None] * N, weights * start
    below, above = np.isfinite(lower), np.isfinite(upper)
    free = np.zeros((m, cover.shape[1]))
    found = scipy.optimize.linprog(
        np.concatenate([np.zeros(r), np.ones(cover.shape[1])]),
        np.block([[A, -cover], [-A, -cover], [N[above], free[above]], [-N[below], free[below]]]),
        np.concatenate([-b, b, (upper - start)[above], (start - lower)[below]]),
        bounds=(None, None),
        method="highs",
    )
    if not found.success:
        if found.status == _INFEASIBLE:
            return None
        raise _NoConvergenceError
    if not peak:
        return np.asarray(found.x[:r])
    least_peak = found.x[r] * (1.0 + LEEWAY) / weights
    best = least_squares(N, start, weights, np.maximum(lower, -least_peak), np.minimum(upper, least_peak))
    return np.asarray(found.x[:r]) if best is None else best


def _between(N: Array, start: Array, weights: Array, lower: Array, upper: Array, p: float) -> Array | None:
    """z (r,) of least p-norm of weights * (start + N z), 1 < p < inf; None where none, or `DistributionError`."""
    begin = least_squares(N, start, weights, lower, upper)
    if begin is None or not _held(N, start, begin, lower, upper):
        return None
    A, b = weights[:, None] * N, weights * start
    size = float(np.abs(b + A @ begin).max())
    if size == 0.0:
        return begin

    def norm(z: Array) -> tuple[float, Array]:
        x = (b + A @ z) / size
        total = float(np.linalg.norm(x, p))
        return total, A.T @ (np.sign(x) * (np.abs(x) / total) ** (p - 1.0)) / size

    below, above = np.isfinite(lower), np.isfinite(upper)
    inside = np.vstack([N[below], -N[above]])
    room = np.concatenate([(start - lower)[below], (upper - start)[above]])
    constraint = {"type": "ineq", "fun": lambda z: inside @ z + room, "jac": lambda z: inside}
    found = scipy.optimize.minimize(
        norm,
        begin,
        jac=True,
        method="SLSQP",
        constraints=[constraint] if len(room) else [],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    if found.status not in (CONVERGED, NO_DESCENT):
        raise DistributionError(f"norm {p}: {found.message}")
    return np.asarray(found.x)


_LEAST = 0.1  # of a correction, as in pkm_ros2_control/src/computed_torque.cpp


class Sharing:
    """`Distribution` with norm 2 for loops, continuous in efforts and pose as long as the bounds leave room.

    Bounds (n_actuated,) [N m or N] are infinite where there is none. `short` says after a call that they left no room,
    and the answer does less work than asked for; `length` [m] then makes moments comparable with forces.
    """

    def __init__(self, lower: Array, upper: Array, freedoms: int, length: float) -> None:
        self.lower = np.array(lower, dtype=np.float64)
        self.upper = np.array(upper, dtype=np.float64)
        self.short = False
        self._freedoms = freedoms
        m = len(self.lower)
        self._scratch = np.zeros(room(m, 6))
        self._scale = np.repeat((1.0, length), 3)[:, None]
        self.redundant = m > freedoms

    def at_bound(self, efforts: Array) -> NDArray[np.bool_]:
        """Mask (n_actuated,) of the efforts (n_actuated,) at their bounds or beyond."""
        return (efforts <= self.lower) | (efforts >= self.upper)

    def outside(self, efforts: Array) -> NDArray[np.bool_]:
        """Mask (n_actuated,) of the efforts (n_actuated,) beyond their bounds."""
        return (efforts < self.lower) | (efforts > self.upper)

    def towards(self, start: Array, end: Array) -> Array:
        """Efforts (n_actuated,) on the way from `start` to `end`, as far as the bounds permit, and at least `_LEAST` of
        it: where `start` itself leaves no room, something of the way is kept.
        """
        start = np.clip(start, self.lower, self.upper)
        way = end - start
        room = np.where(way > 0.0, self.upper - start, start - self.lower)
        passed = np.abs(way) > room
        return start + way * max(_LEAST, float(np.min(room[passed] / np.abs(way[passed]), initial=1.0)))

    def share(self, jacobian: Array, efforts: Array) -> Array:
        """Efforts (n_actuated,) within the bounds that do the work of the given ones; NaN where the pose is singular.

        `jacobian` (6, n_actuated) is the platform's twist per actuator velocities, base axes; it may not be finite.
        """
        self.short = False
        if not (all_finite(efforts) and all_finite(jacobian.ravel())):
            return np.full(len(efforts), np.nan)
        if not self.redundant:
            within = np.empty(len(efforts))
            self.short = limit(efforts, self.lower, self.upper, within)
            return within
        shared = np.array(efforts, dtype=np.float64)
        scaled = np.ascontiguousarray(jacobian * self._scale)
        status = share_within(scaled, self._freedoms, self.lower, self.upper, shared, self._scratch)
        if status != SHARED:
            self.short = True
            return self._nearest(scaled, shared)
        return shared

    def _nearest(self, jacobian: Array, efforts: Array) -> Array:
        """Efforts within the bounds whose work is nearest: each clipped alone, they would work against each other."""
        directions, m = np.linalg.svd(jacobian)[2], len(efforts)
        directions[self._freedoms :] /= _FREE
        rows, changes = np.ascontiguousarray(directions.T), np.zeros(m)
        nearest_within(rows, efforts, self.lower, self.upper, changes, np.zeros((m + 6, m + 1)))
        return np.clip(efforts + rows @ changes, self.lower, self.upper)
