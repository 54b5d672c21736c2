# SPDX-License-Identifier: Apache-2.0
"""A solved configuration: where every joint is at given poses of the platform, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_kinematics.batch import ShapeError, all_finite, as_rows, rows_for, shaped
from pkm_kinematics.explain import explain_inverse, explain_motion
from pkm_kinematics.forward.graph_tracker import coordinates_of
from pkm_kinematics.kernels.model_and_data import SOLVED, Choice, Data, Model, Solved, near
from pkm_kinematics.kernels.rates.motion_space import limb_margins
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.position_solver import NO_RATES
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import Singularity, conditions, joined, margins, per_unit_speed
from pkm_kinematics.status import Codes, ExplainedSolution, JointNames, Status, closes, fast_init
from pkm_runtime.describable import SHOWN, number
from pkm_runtime.errors import PkmError

_AT_ONCE = 1 << 15  # poses whose margins are looked at together: more only fill the memory


@fast_init
@dataclass(frozen=True, eq=False, repr=False)
class Configuration(ExplainedSolution):
    """Where every joint is at platform poses: solved once, when something is first asked, and then known.

    Leading axes are those of the poses. Where the status is neither CONVERGED nor JOINT_LIMIT, there is no such
    configuration: the joints are NaN, and so is all that depends on them. Methods of `Kinematics` and `Dynamics` take
    it in the place of a pose.
    """

    _internal: ClassVar[frozenset[str]] = frozenset(
        {"choice", "engine", "placed", "poses", "seeded", "shape", "solved", "spaces", "uniform_jacobian"}
    )
    _elsewhere: ClassVar[dict[str, str]] = {
        "jacobian": "inverse_jacobian has the drives' rates per twist of the platform, task_jacobian per rates of the "
        "task coordinates, forward_jacobian the twist per rates of the drives",
        "margins": "singularity has the distances from singularities",
        "velocities accelerations": "motion(twist, acceleration) has those of every joint",
    }

    engine: Engine
    poses: Array  # (n, 7), brought into the motion space when solved
    shape: tuple[int, ...]  # leading axes
    choice: Choice
    mode: int | None  # working mode asked for, None for home's or the nearest to a seed
    label: str
    seeded: bool
    _found: Solved | None  # at the poses as they were given, where it had to be found to choose
    _known: Solved | None  # once it is solved

    # -- solved once ------------------------------------------------------------------------------------------------

    def solved(self, twists: Array = NO_RATES, accelerations: Array = NO_RATES, jacobian: bool = False) -> Solved:
        """Rows of the solution; with rates for twists and accelerations (n, 6), or the inverse Jacobian, if asked."""
        e, known = self.engine, self._known
        if known is None:
            known = self._found
            if known is None:
                rates = (twists, accelerations, jacobian) if e.constant_space else ()
                known = e.positions.solve(self.poses, self.choice, *rates)
            if not e.constant_space:
                moved = e.spaces.into_space(self.poses, self.choice, known)
                if moved is not self.poses:
                    self.__dict__["poses"] = moved
                    known = e.positions.solve(moved, self.choice)
            if self.mode is not None and not self.seeded:
                e.ranges.wrap_into_limits(known)
            if e.iterated:
                _invalidate_unverified_modes(self.choice, known)
            self.__dict__["_known"] = known
            if e.constant_space and self._found is None:
                return known
        if twists is not NO_RATES:
            return e.positions.more(self.poses, known, twists, accelerations, jacobian)
        if jacobian and not known.jacobian.shape[1]:
            known = self.__dict__["_known"] = e.positions.more(self.poses, known, NO_RATES, NO_RATES, jacobian)
        return known

    @property
    def is_solved(self) -> bool:
        """False until something is asked of it."""
        return self._known is not None

    @property
    def placed(self) -> Choice:
        """The choice of these very configurations: kernels that take it solve nothing."""
        return near(self.solved().q, len(self.poses), SOLVED)

    def rows(self, at: Any, shape: tuple[int, ...] | None = None) -> Configuration:
        """Some of the configurations, by a slice or numbers of flat rows, with leading axes `shape` if it is given."""
        poses = self.poses[at]
        shape = (len(poses),) if shape is None else shape
        found, known = (None if one is None else one.rows(at) for one in (self._found, self._known))
        choice = self.choice.rows(at)
        return type(self)(self.engine, poses, shape, choice, self.mode, self.label, self.seeded, found, known)

    # -- positions --------------------------------------------------------------------------------------------------

    @property
    def pose(self) -> Array:
        """Poses (..., 7): x y z qx qy qz qw of the platform in the base frame."""
        if not self.engine.constant_space:
            self.solved()
        return shaped(self.poses, self.shape)

    @property
    def joints(self) -> Array:
        """Positions (..., n_joints) [rad, m] of every joint."""
        return shaped(self.solved().q, self.shape)

    @property
    def redundant(self) -> Array:
        """Positions (..., r) [rad, m] of the joints that are coordinates beside the pose, see `redundant_names`."""
        return self.joints[..., self.engine.redundant_column]

    @property
    def status(self) -> Codes:
        """Status values (...,)."""
        return shaped(self.solved().status, self.shape)

    @property
    def residual(self) -> Array:
        """Largest gap (...,) of a loop closure [m]; of directions, 1. NaN where nothing was solved (INVALID_INPUT)."""
        return shaped(self.solved().residual, self.shape)

    @property
    def iterations(self) -> Codes:
        """Numbers of iterations (...,)."""
        return shaped(self.solved().iterations, self.shape)

    @property
    def condition(self) -> Array:
        """Reciprocal condition (...,) of the worst limb's equations (`kernels/regularity.py`); 0 where singular."""
        solved = self.solved(jacobian=True)
        return shaped(np.where(closes(solved.status), solved.regularity, 0.0), self.shape)

    @property
    def _names(self) -> JointNames:
        return self.engine.names

    def _explain(self, status: int, joints: Array, residual: float) -> str:
        return explain_inverse(self.engine, status, joints, residual, seeded=self.seeded)

    def _summary(self) -> str:
        return f"({self.label}) {super()._summary()}"

    # -- Jacobians --------------------------------------------------------------------------------------------------

    @property
    def inverse_jacobian(self) -> Array:
        """Actuated joint rates per platform twist: (..., n_actuated, 6) [rad/s, m/s] per [m/s, rad/s], base frame.

        Only its action on the motion space is defined; `motion_jacobian` is that part alone. NaN where not regular.
        """
        return shaped(self.solved(jacobian=True).jacobian, self.shape)

    @property
    def task_jacobian(self) -> Array:
        """Actuated joint rates per rates of the task coordinates: (..., n_actuated, k), columns as in `task.names`.

        Without a branch for the platform, that of `inverse_jacobian`. Raises `PkmError` where the task coordinates
        depend on each other, such as a 3-PRS's, so that none can move alone.
        """
        return self.inverse_jacobian @ self.task_twists

    @property
    def task_twists(self) -> Array:
        """Platform twist (..., 6, k) per rates of the task coordinates, base frame; `PkmError` as `task_jacobian`."""
        return shaped(self.engine.spaces.task_twists(self.poses), self.shape)

    @property
    def motion_jacobian(self) -> Array:
        """Actuated rates per independent velocity, (..., n_actuated, mobility): `inverse_jacobian @ subspace`.

        The K_a of the equations of motion, in the basis of `subspace`; behind it, columns of `redundant_jacobian`.
        """
        K = self.inverse_jacobian @ self.subspace
        return np.concatenate([K, self.redundant_jacobian], axis=-1) if self.engine.redundant_names else K

    @cached_property
    def redundant_jacobian(self) -> Array:
        """Actuated rates per rate of each redundant joint, the platform at rest: (..., n_actuated, r), r mostly 0."""
        if not self.engine.redundant_names:
            return np.empty((*self.shape, len(self.engine.actuated_names), 0))
        solved = self.solved()
        return shaped(coordinates_of(self.engine).redundant_jacobian(solved.q, self.poses, solved.status), self.shape)

    @cached_property
    def forward_jacobian(self) -> Array:
        """Platform twist per actuated joint rates: (..., 6, n_actuated), base frame; NaN at a type 2 singularity."""
        S, K = self.subspace.reshape(-1, 6, self.engine.mobility), self.uniform_jacobian
        units = self.engine.drive_units  # of their own only if none is redundant
        U, values, Vt = np.linalg.svd(np.nan_to_num(units[:, None] * K), full_matrices=False)
        regular = (conditions(values, K.shape[2]) > SINGULAR_BELOW) & np.isfinite(K).all(axis=(1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            per_unit = np.swapaxes(Vt / values[:, :, None], 1, 2) @ (np.swapaxes(U, 1, 2) * units)
            J = per_unit_speed(S, S, self.engine.characteristic_length) @ per_unit[:, : S.shape[2]]
        return shaped(np.where(regular[:, None, None], J, np.nan), self.shape)

    @cached_property
    def subspace(self) -> Array:
        """Basis (..., 6, mobility) of the platform's possible twists, base frame; NaN where there is none."""
        known = self.__dict__.get("_spaces") or (None, self.spaces())
        return known[1][0].reshape(*self.shape, 6, self.engine.mobility)

    def spaces(self, twists: Array | None = None) -> tuple[Array, Array]:
        """Bases (n, 6, mobility) of the motion spaces, and the accelerations (n, 6) that twists (n, 6) impose."""
        if self.engine.constant_space:
            return self.engine.spaces.at(self.poses, self.choice, twists)
        last = self.__dict__.get("_spaces")
        if last is not None and twists is not None and np.array_equal(last[0], twists):
            return last[1]
        choice = self.placed  # which may move poses
        found = self.engine.spaces.at(self.poses, choice, twists)
        if twists is not None and all_finite(twists):  # several questions about one motion come one after the other
            self.__dict__["_spaces"] = twists.copy(), found
        return found

    @property
    def uniform_jacobian(self) -> Array:
        """Actuated joint rates per unit speed in the motion space (n, n_actuated, mobility); then redundant joints'."""
        e, spaces = self.engine, self.subspace.reshape(-1, 6, self.engine.mobility)
        K = per_unit_speed(self.solved(jacobian=True).jacobian @ spaces, spaces, e.characteristic_length)
        if not e.redundant_names:
            return K
        beside = self.redundant_jacobian.reshape(*K.shape[:2], len(e.redundant_names))
        return np.concatenate([K, beside / coordinates_of(e).redundant_units], axis=2)

    # -- singularities ----------------------------------------------------------------------------------------------

    @property
    def singularity(self) -> Singularity:
        """Distances from the singularities of every type: see `pkm_kinematics.solve.singularity`."""
        e, n = self.engine, len(self.poses)
        if n > _AT_ONCE:
            parts = [self.rows(slice(at, at + _AT_ONCE)).singularity for at in range(0, n, _AT_ONCE)]
            return joined(parts).reshaped(self.shape)
        K, placed = self.uniform_jacobian, self.placed
        blocked = 6 - e.mobility - e.mechanism.mobility.left_out
        hold, regularity = np.empty(len(K)), np.empty(len(K))
        poses = np.ascontiguousarray(self.poses)

        def part(model: Model, data: Data, rows: Choice, at: slice) -> None:
            limb_margins(model, data, rows, poses[at], blocked, hold[at], regularity[at])

        e.positions.over_rows(poses, placed, part)
        return margins(K, hold, regularity, e.characteristic_length, e.drive_units).reshaped(self.shape)

    @property
    def drive_condition(self) -> Array:
        """Reciprocal condition (...,) of the drives' Jacobian in uniform units, 0 at singularities of types 1 and 2."""
        K = self.engine.drive_units[:, None] * self.uniform_jacobian
        known = np.asarray(np.isfinite(K).all(axis=(1, 2)))
        values = np.linalg.svd(np.where(known[:, None, None], K, 0.0), compute_uv=False)
        return shaped(np.where(known, conditions(values, K.shape[2]), np.nan), self.shape)

    # -- rates ------------------------------------------------------------------------------------------------------

    def motion(self, twist: ArrayLike, acceleration: ArrayLike | None = None) -> Motion:
        """Velocities and accelerations of all joints for platform motions, with a status each.

        Args:
            twist: (..., 6) linear [m/s], then angular [rad/s]; INVALID_INPUT outside the motion space, or so large that
                numbers overflow.
            acceleration: (..., 6) [m/s^2, rad/s^2], the twist's time derivative; by default that of a constant velocity
                in the motion space. In a configuration-dependent motion space the nearest possible one is taken, and
                INVALID_INPUT is more than 5 % away. Both may be (..., 6 + r) with the rates of the redundant joints
                behind, which else do not move, or follow the platform as the description says.
        """
        e = self.engine
        if e.redundant_names:
            return _redundant_motion(self, twist, acceleration)
        twists, accelerations = e.inputs.rates(twist, acceleration, len(self.poses))
        if e.constant_space:
            astray = e.spaces.outside(twists) | e.spaces.outside(accelerations)
        else:
            spaces, biases = self.spaces(twists)
            wanted = biases if acceleration is None else accelerations
            nearest, far = e.spaces.nearest_accelerations(wanted, spaces, biases)
            accelerations = np.where(np.isfinite(nearest), nearest, accelerations)  # the solve says why there is none
            astray = e.spaces.outside(twists, spaces) | far
        solved = self.solved(twists, accelerations)
        status, qd, qdd = solved.status, solved.qd, solved.qdd
        if astray.any() or not (all_finite(qd) and all_finite(qdd)):
            known = closes(status)
            singular = known & ~(solved.regularity > SINGULAR_BELOW)
            astray |= ~(singular | (np.isfinite(qd) & np.isfinite(qdd)).all(axis=1))  # where numbers overflow
            sized = np.isfinite(twists).all(axis=1) & np.isfinite(accelerations).all(axis=1)
            status = np.where(known & astray, Status.INVALID_INPUT, status)
            status[singular & sized] = Status.SINGULAR
            qd[astray], qdd[astray] = np.nan, np.nan
        parts = [shaped(rows, self.shape) for rows in (qd, qdd, status, solved.regularity)]
        return Motion(self, *parts)

    def coordinate_rates(self, rates: ArrayLike) -> Array:
        """Platform twist and rates of redundant joints (..., 6 + r) for actuated joint rates; NaN at a singularity."""
        flat = self.rows(slice(None))
        K, S = flat.motion_jacobian, flat.subspace
        u = np.full(K.shape[::2], np.nan)
        known = np.isfinite(flat.forward_jacobian).all(axis=(1, 2))
        given = np.broadcast_to(rows_for(rates, K.shape[1], len(K), "rates"), K.shape[:2])
        u[known] = np.linalg.solve(K[known], given[known][..., None])[..., 0]
        n = S.shape[2]
        return shaped(np.hstack([np.einsum("nij,nj->ni", S, u[:, :n]), u[:, n:]]), self.shape)

    def motion_jacobian_rate(self, twist: ArrayLike) -> Array:
        """Time derivative Kd (..., n_actuated, mobility) of `motion_jacobian` K along a motion, exact to rounding.

        Actuated accelerations are `K ud + Kd u`, with `twist = S u` (..., 6) [m/s, rad/s]; the rate of the forward
        Jacobian J, with as many actuators as degrees of freedom, is `-J Kd J`. Raises `PkmError` where the motion space
        is configuration-dependent, so that a basis has no rate of its own; `motion` gives accelerations.
        """
        refuse_redundant(self.engine.redundant_names, "the rate of the motion Jacobian")
        if not self.engine.constant_space:
            raise PkmError(
                "the motion space depends on the configuration: it has no constant basis, so its Jacobian has no rate"
            )
        flat = self.rows(slice(None))
        S, K = self.engine.task.subspace, flat.inverse_jacobian
        twists = np.broadcast_to(self.engine.inputs.rates(twist, np.zeros(6), len(K))[0], (len(K), 6))

        def drift(rates: Array) -> Array:  # actuated accelerations at constant twist: D_t K t along t
            return flat.motion(rates, np.zeros(6)).actuated_accelerations

        found = np.empty((len(K), K.shape[1], S.shape[1]))
        own = drift(twists)
        for c, axis in enumerate(S.T):
            # The sum of D_t K s and D_s K t by polarization; their difference is K of the fields' bracket: turns about
            # base axes do not commute.
            both = drift(twists + axis) - own - drift(np.broadcast_to(axis, twists.shape))
            bracket = np.cross(axis[3:], twists[:, 3:])
            found[:, :, c] = 0.5 * (both + np.einsum("nij,nj->ni", K[:, :, 3:], bracket))
        return shaped(found, self.shape)

    def platform_twist(self, rates: ArrayLike) -> Array:
        """Platform twist (..., 6), base frame, for actuated joint rates (..., n_actuated); NaN at a type 2 singularity.

        Raises `ShapeError` where the rates do not go with the poses.
        """
        F = self.forward_jacobian
        rows, shape = as_rows(rates, F.shape[-1], "rates")
        try:
            np.broadcast_shapes(shape, F.shape[:-2])
        except ValueError as error:
            axes = f"{shape} do not go with those of the poses, {F.shape[:-2]}"
            raise ShapeError(f"rates: leading axes {axes}") from error
        return np.einsum("...ij,...j->...i", F, rows.reshape(*shape, -1))

    def platform_acceleration(self, twist: ArrayLike, accelerations: ArrayLike) -> Array:
        """Platform acceleration (..., 6) [m/s^2, rad/s^2], base frame, at a known twist (..., 6); NaN at type 2.

        From the accelerations of the actuated joints (..., n_actuated) [rad/s^2, m/s^2].
        """
        refuse_redundant(self.engine.redundant_names, "platform_acceleration")
        flat = self if len(self.shape) == 1 else self.rows(slice(None))
        twists = self.engine.inputs.rates(twist, np.zeros(6), len(self.poses))[0]
        bias = flat.spaces(twists)[1]
        imposed = flat.motion(twists, bias).actuated_accelerations
        missing = rows_for(accelerations, imposed.shape[1], len(imposed), "accelerations") - imposed
        found = bias + np.einsum("nij,nj->ni", flat.forward_jacobian, missing)
        return np.asarray(found).reshape(*self.shape, 6)


@fast_init
@dataclass(frozen=True, eq=False, repr=False)
class Motion(ExplainedSolution):
    """Velocities and accelerations of all joints of a configuration along a platform motion."""

    _of_all: ClassVar[tuple[str, ...]] = ("joints", "velocities", "accelerations")
    _of_actuated: ClassVar[tuple[str, ...]] = ("actuated", "actuated_velocities", "actuated_accelerations")

    at: Configuration
    velocities: Array  # (..., n_joints) rad/s or m/s
    accelerations: Array  # per s^2
    status: Codes
    limb_regularity: Array  # (...,) 0 where a limb is singular, up to 1

    @property
    def joints(self) -> Array:
        """Positions (..., n_joints) [rad, m]."""
        return self.at.joints

    @property
    def residual(self) -> Array:
        """Largest gap (...,) of a loop closure [m]."""
        return self.at.residual

    @cached_property
    def actuated_velocities(self) -> Array:
        """Actuated joint velocities (..., n_actuated) [rad/s, m/s]."""
        return self.velocities[..., self._names.columns]

    @cached_property
    def actuated_accelerations(self) -> Array:
        """Actuated joint accelerations (..., n_actuated) [rad/s^2, m/s^2]."""
        return self.accelerations[..., self._names.columns]

    @property
    def _names(self) -> JointNames:
        return self.at._names

    def _explain(self, status: int, joints: Array, residual: float) -> str:
        return explain_motion(self.at.engine, status, joints, residual, seeded=self.at.seeded)

    def _values(self) -> list[str]:
        if np.isnan(self.actuated).all():
            return []
        rows = zip(self._names.actuated, *(self.by_name(what).values() for what in self._of_actuated), strict=True)
        lines = []
        for name, q, qd, qdd in list(rows)[:SHOWN]:
            unit = self._unit(name)
            lines.append(f"{name} {number(q)} {unit}, {number(qd)} {unit}/s, {number(qdd)} {unit}/s^2")
        return lines


def _redundant_motion(at: Configuration, twist: ArrayLike, acceleration: ArrayLike | None) -> Motion:
    solved, x = at.solved(jacobian=True), coordinates_of(at.engine)
    rates = [x.rows(y, len(at.poses), name) for y, name in ((twist, "twist"), (acceleration, "acceleration"))]
    given = np.where(closes(solved.status) & x.astray(*rates), int(Status.INVALID_INPUT), solved.status)
    _, qd, qdd, status = x.motions(solved.q, at.poses, given, *rates)
    return Motion(at, *(shaped(rows, at.shape) for rows in (qd, qdd, status, solved.regularity)))


def _invalidate_unverified_modes(choice: Choice, solved: Solved) -> None:
    """Take back solutions beyond the end of a path from home: which mode they belong to is not known."""
    if choice.certain.all():
        return
    solved.status[~choice.certain & (solved.status == Status.DIVERGED)] = Status.NOT_CONNECTED
    stray = ~choice.certain & np.isfinite(solved.q).all(axis=1)
    for values in (solved.q, solved.qd, solved.qdd, solved.jacobian):
        values[stray] = np.nan
    solved.status[stray] = Status.NOT_CONNECTED
