# SPDX-License-Identifier: Apache-2.0
"""Dynamics of any parallel robot: actuator efforts for a motion, and motion for efforts.

Poses, twists and accelerations as in `pkm_kinematics`. Wrenches (..., 6) are force [N], then moment [N m] about the
platform's origin, in base axes, applied to the platform by its surroundings. Efforts are [N m] or [N], in the order of
`Kinematics.actuated_names`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.errors import PkmError
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.derivatives import InverseDerivatives, inverse_derivatives
from pkm_dynamics.distribution import Distribution, distribute
from pkm_dynamics.kernels.direct import direct_dynamics
from pkm_dynamics.kernels.inverse import inverse_dynamics
from pkm_dynamics.kernels.many import check_motions, direct_dynamics_many, inverse_dynamics_many
from pkm_dynamics.kernels.step import semi_implicit_step
from pkm_dynamics.kernels.straight_line import (
    SOLVED,
    straight_direct,
    straight_direct_many,
    straight_inverse,
    straight_inverse_many,
    straight_step,
)
from pkm_dynamics.reactions import Reactions, reactions
from pkm_dynamics.regressor import ParameterSet, parameters_of, regressor
from pkm_dynamics.straight_line import record_direct, record_inverse
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.batch import as_rows, over_cores, rows_for
from pkm_kinematics.kernels import records
from pkm_kinematics.lean import bind, or_else
from pkm_kinematics.straight_line import MachineCode, Recording

REST = np.zeros(6)
MANY = 100_000  # states from which on it pays to make straight-line code for them, which takes up to a second

Record = Callable[["Dynamics", int], Recording | None]


@dataclass(frozen=True, eq=False)
class Efforts:
    """Answer of the inverse dynamics: NaN where the status is not CONVERGED."""

    effort: Array  # (..., n_actuated) N m or N
    status: NDArray[np.int64]  # (...,)

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Answer of the direct dynamics: NaN where the status is not CONVERGED."""

    acceleration: Array  # (..., 6) linear m/s^2, angular rad/s^2
    status: NDArray[np.int64]

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Where the solve converged."""
        return self.status == Status.CONVERGED


class _Same:
    """A sequence of unknown length whose every element is the same."""

    def __init__(self, value: tuple[Array, Array]) -> None:
        self.value = value

    def __getitem__(self, index: Any) -> Any:
        return () if isinstance(index, slice) else self.value


class Dynamics:
    """Dynamics of one mechanism, with the inertia of every body, friction, gears and rotors.

    `friction=False` leaves out joint friction everywhere, for comparison with models that have none.
    """

    def __init__(self, robot: Mechanism | Kinematics, *, friction: bool = True) -> None:
        self.kinematics = robot if isinstance(robot, Kinematics) else Kinematics(robot)
        self.mechanism = self.kinematics.mechanism
        self.friction = friction
        self._subspace = np.ascontiguousarray(self.kinematics.task.subspace)
        self._codes: dict[tuple[Record, int], MachineCode | None] = {}

    def inverse(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
        distribution: Distribution | None = None,
    ) -> Efforts:
        """Actuator efforts (..., n_actuated) that drive a platform motion.

        pose (..., 7), twist and acceleration (..., 6), at rest where not given.

        `wrench` acts on the platform from outside; `payload` is carried by it (frame: the platform's). Redundant
        actuators share by minimum norm, or as `distribution` says, which also keeps efforts within bounds: where none
        do, the status is EFFORT_LIMIT. Raises `pkm_kinematics.ShapeError` and `DistributionError`.
        """
        motions, shape, status = self._motions(pose, twist, acceleration, wrench)
        seeds = self._seeds(seed, motions)
        bodies = self._bodies(payload)
        efforts = np.full((len(motions), len(self.kinematics.actuated_names)), np.nan)

        spaces = self._spaces(motions, seed, status)
        index = -1 if mode is None else mode

        def part(at: slice) -> None:
            t = self.kinematics.tables
            inverse_dynamics_many(
                bodies, t.closures, t.blocks, *t.workspace(), self._system(), spaces[at.start][0], index,
                self.friction, motions[at], seeds[at] if len(seeds) > 1 else seeds, efforts[at], status[at],
            )  # fmt: skip

        def straight(code: int, at: slice) -> None:
            straight_inverse_many(code, motions[at], efforts[at], status[at])

        plain = seed is None and payload is None
        self._run_straight(straight, self._code(record_inverse, index, len(motions)) if plain else None, part, status)
        if distribution is not None:
            joints = np.reshape(self.kinematics.inverse(motions[:, :7], seed, mode).joints, (len(motions), -1))
            distribute(self, distribution, motions[:, :7], joints, efforts, status)
        return Efforts(efforts.reshape(*shape, efforts.shape[1]), status.reshape(shape))

    def direct(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        effort: ArrayLike,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> Accelerations:
        """Platform acceleration (..., 6) for actuator efforts (..., n_actuated) at a pose and twist."""
        motions, shape, status = self._motions(pose, twist, None, wrench)
        efforts, _ = as_rows(effort, len(self.kinematics.actuated_names), "effort")
        efforts = np.ascontiguousarray(np.broadcast_to(efforts, (len(motions), efforts.shape[1])))
        status[~np.isfinite(efforts).all(axis=1)] = Status.INVALID_INPUT
        seeds = self._seeds(seed, motions)
        bodies = self._bodies(payload)
        out = np.full((len(motions), 6), np.nan)

        spaces = self._spaces(motions, seed, status)
        for k, (_, bias) in enumerate(spaces[: len(motions)]):
            motions[k, 13:19] = bias
        index = -1 if mode is None else mode

        def part(at: slice) -> None:
            t = self.kinematics.tables
            direct_dynamics_many(
                bodies, t.closures, t.blocks, *t.workspace(), self._system(), spaces[at.start][0], index,
                self.friction, motions[at], seeds[at] if len(seeds) > 1 else seeds, efforts[at], out[at], status[at],
            )  # fmt: skip

        def straight(code: int, at: slice) -> None:
            straight_direct_many(code, motions[at], efforts[at], out[at], status[at])

        plain = seed is None and payload is None
        self._run_straight(straight, self._code(record_direct, index, len(motions)) if plain else None, part, status)
        return Accelerations(out.reshape(*shape, 6), status.reshape(shape))

    def inverse_derivatives(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> InverseDerivatives:
        """Derivatives of `inverse` by pose, twist and acceleration, exact to rounding; arguments as there.

        In the basis of `Kinematics.subspace`; see `InverseDerivatives` for what stays the same while each is varied.
        Redundant actuators share by minimum norm. Raises `pkm_kinematics.ShapeError`, and `PkmError` for robots
        whose platform is carried by a branch that turns with the pose.
        """
        return inverse_derivatives(self, pose, twist, acceleration, wrench, payload, seed, mode)

    def reactions(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        payload: Inertial | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
        distribution: Distribution | None = None,
    ) -> Reactions:
        """Wrenches that every joint and loop transmits, and that of the robot on the ground, for a platform motion.

        Arguments as in `inverse`; see `Reactions` for what comes back. Where the robot is overconstrained, the wrenches
        of least sum of squares, and which of them balance alone determines. SINGULAR where the joints cannot carry
        the load. Raises `pkm_kinematics.ShapeError` and `DistributionError`.
        """
        return reactions(self, pose, twist, acceleration, wrench, payload, seed, mode, distribution)

    def gravity(self, pose: ArrayLike, payload: Inertial | None = None, seed: ArrayLike | None = None) -> Efforts:
        """Efforts (..., n_actuated) that hold the robot still against gravity."""
        return self.inverse(pose, payload=payload, seed=seed)

    def mass_matrix(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Mass matrix (mobility, mobility) of the whole robot in the motion space at one pose, `K^T M K`.

        In the basis of `Kinematics.subspace`, rotors included; NaN where the pose has no regular configuration.
        """
        K, S = self.kinematics.task_jacobian(pose, seed), self.kinematics.subspace(pose, seed)
        still = self._frictionless.inverse(pose, seed=seed).effort
        columns = [self._frictionless.inverse(pose, None, axis, seed=seed).effort - still for axis in S.T]
        return np.asarray(K.T @ np.array(columns).T)

    def coriolis(self, pose: ArrayLike, twist: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Coriolis and centrifugal forces (mobility,) in the motion space at one pose and twist (6,).

        What the actuators give, `K_a^T tau`, to keep the velocity in the motion space, gravity and friction apart.
        """
        k = self.kinematics
        K = k.task_jacobian(pose, seed)
        poses, _ = k.engine.poses(pose)
        bias = k.engine.space_at(poses[0], k.engine.seeds(seed, poses[:1])[0], np.asarray(twist, dtype=np.float64))[1]
        moving = self._frictionless.inverse(pose, twist, bias, seed=seed).effort
        return np.asarray(K.T @ (moving - self._frictionless.inverse(pose, seed=seed).effort))

    @cached_property
    def _frictionless(self) -> Dynamics:
        return Dynamics(self.kinematics, friction=False) if self.friction else self

    def regressor(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> tuple[Array, tuple[str, ...]]:
        """Psi (..., n_actuated, n_parameters) and the parameters' names: `effort = Psi @ dynamics.parameters.values`.

        NaN where `inverse` has no answer. See `pkm_dynamics.regressor` for the parameters.
        """
        return regressor(self, pose, twist, acceleration, seed, mode)[0], self.parameters.names

    @cached_property
    def parameters(self) -> ParameterSet:
        """The parameters that `regressor` multiplies, with the description's values; without a payload."""
        return parameters_of(self.kinematics, friction=self.friction)

    def lean_inverse(self, mode: int = 0) -> Callable[[Array, Array], int]:
        """`call(motion, effort) -> status`: inverse dynamics with arrays in and arrays out, for loops that count time.

        `motion` (25,) is pose (7), twist (6), acceleration (6) and external wrench (6); `effort` (n_actuated,) is
        written. Both must be contiguous float64 arrays of these sizes, the pose finite with a unit quaternion, and
        everything inside the motion space: nothing is checked. One call at a time per object returned.
        """
        example = self._at_home(), np.zeros(len(self.kinematics.actuated_names))
        return self._lean(inverse_dynamics, (), example, straight_inverse, record_inverse, mode)

    def lean_direct(self, mode: int = 0) -> Callable[[Array, Array, Array], int]:
        """`call(motion, effort, acceleration) -> status`: direct dynamics as lean as `lean_inverse`.

        `acceleration` (6,) is written; the acceleration inside `motion` must be zero.
        """
        example = self._at_home(), np.zeros(len(self.kinematics.actuated_names)), np.zeros(6)
        return self._lean(direct_dynamics, (), example, straight_direct, record_direct, mode)

    def lean_step(self, dt: float, mode: int = 0) -> Callable[[Array, Array, Array], int]:
        """`call(motion, effort, acceleration) -> status`: advance pose and twist in `motion` (25,) by `dt` seconds.

        Semi-implicit Euler in platform coordinates, as lean as `lean_direct`; the loops stay closed. For robots whose
        motion space does not turn with the pose (`Kinematics.constant_space`); raises `PkmError` for others, as all
        lean calls of this class do.
        """
        example = self._at_home(), np.zeros(len(self.kinematics.actuated_names)), np.zeros(6)
        return self._lean(semi_implicit_step, (dt,), example, straight_step, record_direct, mode)

    def _lean(
        self,
        kernel: Any,
        more: tuple[Any, ...],
        example: tuple[Any, ...],
        straight: Any,
        record: Record,
        mode: int,
    ) -> Callable[..., int]:
        """A kernel with all but the `example` arguments fixed, `more` the last; before it, code of the same work."""
        t = self.kinematics.tables
        fixed = (t.bodies, t.closures, t.blocks, *t.workspace(), self._system(), self._subspace, mode, self.friction)
        general = bind(kernel, (*fixed, *more), example)
        code = self._code(record, mode) if mode >= 0 else None  # the nearest to the last one is for kernels
        return general if code is None else or_else(bind(straight, (code.address, *more), example), general, code)

    def _at_home(self) -> Array:
        """A motion (25,) at rest at home, from which limbs solved by iteration set out."""
        if not self.kinematics.constant_space:
            raise PkmError("lean calls need a motion space that is the same at every pose")
        motion = np.zeros(25)
        motion[:7] = self.kinematics.home
        return motion

    def _spaces(self, motions: Array, seed: ArrayLike | None, status: NDArray[np.int64]) -> Any:
        """Motion space and bias acceleration at every motion; where the space is constant, the same for any index."""
        k = self.kinematics
        if k.constant_space:
            return _Same((self._subspace, np.zeros(6)))
        seeds = k.engine.seeds(seed, motions[:, :7])
        spaces, biases = k.engine.spaces_at(motions[:, :7], seeds, motions[:, 7:13])
        for i in np.flatnonzero(~np.isfinite(spaces).all(axis=(1, 2)) & (status == Status.CONVERGED)):
            status[i] = k.inverse(motions[i, :7], seeds[i if len(seeds) > 1 else 0]).status or Status.SINGULAR
        return list(zip(spaces, biases, strict=True))

    def _code(self, record: Record, mode: int, n: int = MANY) -> MachineCode | None:
        """Straight-line code for `n` states; None where there is none, or where making it would take longer than they.

        Code that was made is kept.
        """
        if (record, mode) not in self._codes and n >= MANY:
            recording = record(self, mode)
            self._codes[record, mode] = None if recording is None else MachineCode(recording)
        return self._codes.get((record, mode))

    def _run(self, part: Callable[[slice], None], n: int) -> None:
        if self.kinematics.constant_space:
            over_cores(part, n)
        else:
            for k in range(n):
                part(slice(k, k + 1))

    def _run_straight(
        self,
        straight: Callable[[int, slice], None],
        code: MachineCode | None,
        part: Callable[[slice], None],
        status: NDArray[np.int64],
    ) -> None:
        """Solve the states whose status (k,) is CONVERGED: by straight-line code, if any, else by `part`."""
        if code is not None:
            address = code.address
            over_cores(lambda at: straight(address, at), len(status))
        if (status == Status.CONVERGED).any():
            self._run(part, len(status))
        status[status == SOLVED] = Status.CONVERGED

    def kernel_arguments(self, payload: Inertial | None = None) -> tuple[Any, ...]:
        """What the kernels of the dynamics take first, with a fresh workspace: bodies, closures, blocks, state, rows,
        work, system, motion space, friction. For those who build kernels of their own on them; a constant motion space
        is taken for granted."""
        t = self.kinematics.tables
        return (
            *(self._bodies(payload), t.closures, t.blocks, *t.workspace(), self._system()),
            *(self._subspace, self.friction),
        )

    def _system(self) -> Array:
        width = max(len(self.kinematics.actuated_names), 6)
        return np.zeros((4, width, width))

    def _motions(
        self, pose: ArrayLike, twist: ArrayLike | None, acceleration: ArrayLike | None, wrench: ArrayLike | None
    ) -> tuple[Array, tuple[int, ...], NDArray[np.int64]]:
        """Motions (k, 25) as the kernels take them, leading axes, and the status of the input."""
        k = self.kinematics
        poses, shape = k.engine.poses(pose)
        n = len(poses)
        parts = [poses]
        for what, values in (("twist", twist), ("acceleration", acceleration), ("wrench", wrench)):
            parts.append(np.broadcast_to(rows_for(REST if values is None else values, 6, n, what), (n, 6)))
        motions = np.concatenate(parts, axis=1)
        status = np.empty(n, dtype=np.int64)
        check_motions(motions, status)
        good = slice(None) if not status.any() else np.flatnonzero(status == Status.CONVERGED)
        rows, seeds = np.arange(n)[good], k.home_joints[None]
        for part in (motions[good, 7:13],) + ((motions[good, 13:19],) if k.constant_space else ()):
            status[rows[k.engine.outside(motions[good, :7], part, seeds)]] = Status.INVALID_INPUT
        return motions, shape, status

    def _seeds(self, seed: ArrayLike | None, motions: Array) -> Array:
        k = self.kinematics
        seeds = k.engine.seeds(seed, motions[:, :7])
        return np.ascontiguousarray(seeds[:, np.maximum(k.engine.body_column, 0)])

    def _bodies(self, payload: Inertial | None) -> NDArray[Any]:
        bodies = self.kinematics.tables.bodies
        if payload is None:
            return bodies
        bodies = bodies.copy()
        row = bodies[records.PLATFORM]
        com = payload.com
        about_origin = payload.inertia + payload.mass * (com @ com * np.eye(3) - np.outer(com, com))
        row["mass"] += payload.mass
        row["moment"] += payload.mass * com
        row["inertia"] += about_origin[np.triu_indices(3)]
        row["massless"] = 0
        bodies.setflags(write=False)
        return bodies
