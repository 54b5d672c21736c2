# SPDX-License-Identifier: Apache-2.0
"""Kinematics of any parallel robot: positions, modes, velocities, accelerations and Jacobians.

Arrays are batched along their leading axes. Poses are (..., 7): x y z [m] and the unit quaternion qx qy qz qw of the
platform in the base frame; twists and accelerations (..., 6) are linear [m/s], then angular [rad/s], at the platform's
origin, in base axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.errors import PkmError
from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.assembly_modes import find_all, method_of, search
from pkm_kinematics.assembly_side import AssemblySide
from pkm_kinematics.batch import ShapeError, as_rows, rows_for
from pkm_kinematics.constraints import constraint_margin, constraint_wrenches, scaling
from pkm_kinematics.engine import CLOSES, Engine, Solved
from pkm_kinematics.explain import explain_forward, explain_inverse, limit_violations
from pkm_kinematics.forward import Forward, Found
from pkm_kinematics.kernels.distances import forward_translation
from pkm_kinematics.kernels.forward import forward_newton
from pkm_kinematics.kernels.motion import invert_blocks
from pkm_kinematics.kernels.placement import place_platform
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.kernels.solve import inverse_direct, inverse_whole
from pkm_kinematics.kernels.straight_track import straight_track
from pkm_kinematics.lean import bind, or_else
from pkm_kinematics.limb_constraints import LockedLimbs
from pkm_kinematics.plates import Plates
from pkm_kinematics.pose import distance
from pkm_kinematics.singularity import Singularity, margins
from pkm_kinematics.solutions import AssemblyModes, ForwardSolution, InverseSolution, Motion
from pkm_kinematics.status import Status
from pkm_kinematics.straight_line import AVAILABLE, MachineCode
from pkm_kinematics.straight_tracking import record_newton_step
from pkm_kinematics.translation_surfaces import TranslationSurfaces
from pkm_kinematics.working_modes import WorkingModes

ASSEMBLED = 1e-8  # m or rad: a pose of an assembly mode gives back the actuated joint positions this well

__all__ = ["Kinematics", "ShapeError"]


class Kinematics:
    """Kinematics of one mechanism. Immutable after construction; calls may run in several threads at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.engine = Engine(mechanism)
        self.tables = self.engine.tables
        self.task = self.engine.task
        self.joint_names: tuple[str, ...] = self.engine.joint_names
        self.actuated_names: tuple[str, ...] = self.engine.actuated_names
        self.home: Array = self.engine.home
        self.home_joints: Array = self.engine.home_joints
        self.modes = WorkingModes(self.engine)
        self._forward = Forward(self.engine, self.modes)

    # -- what the robot is ------------------------------------------------------------------------------------------

    @property
    def mobility(self) -> int:
        """Number of freedoms of the platform."""
        return self.engine.mobility

    @property
    def constant_space(self) -> bool:
        """True where the platform's possible twists are the same at every pose."""
        return self.engine.constant_space

    @property
    def characteristic_length(self) -> float:
        """Length [m] that makes rotations comparable with translations: mean distance of the platform's joints."""
        return self.engine.characteristic_length

    @property
    def n_modes(self) -> int:
        """Number of working modes: of the closed forms, times those found at home of limbs solved by iteration."""
        return self.modes.count

    def mode_label(self, mode: int) -> str:
        """Name of a working mode: a sign per limb with two branches, limb by limb, `+` for home's branch."""
        return self.modes.label(mode)

    # -- positions --------------------------------------------------------------------------------------------------

    def inverse(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> InverseSolution:
        """Joint positions for platform poses (..., 7), or for task coordinates (..., mobility).

        `mode` asks for one working mode; otherwise the one nearest to `seed` (n_joints,) or (..., n_joints) is taken,
        home if there is none. Limbs that are solved by iteration follow the platform from home on a straight way; where
        they cannot, the pose counts as UNREACHABLE. Raises `ShapeError`.
        """
        e = self.engine
        poses, shape = e.poses(pose)
        seeds, continued = self._seeds(poses, seed, mode)
        solved = e.solve(poses, seeds, self.modes.kernel_mode(mode))
        if seed is None and e.continues:  # the way from home ended where a limb does
            solved.status[solved.status == Status.DIVERGED] = Status.UNREACHABLE
        stray = ~continued & np.isfinite(solved.q).all(axis=1)
        if mode is not None and stray.any():  # a solution beyond the end of the way: of which mode, nobody knows
            solved.q[stray], solved.status[stray] = np.nan, Status.UNREACHABLE
        return self._inverse_solution(solved, shape, mode)

    def _seeds(self, poses: Array, seed: ArrayLike | None, mode: int | None) -> tuple[Array, NDArray[np.bool_]]:
        """Joint positions (1 or n, n_joints) from which the limbs of poses (n, 7) are solved in a mode.

        And for which of them (n,) it is known that the solution is of that mode.
        """
        if seed is not None or mode is None:
            return self.engine.seeds(seed, poses), np.ones(len(poses), dtype=bool)
        return self.engine.continued(poses, self.modes.seed(mode), self.modes.kernel_mode(mode))

    def inverse_all(self, pose: ArrayLike) -> list[InverseSolution]:
        """One solution per working mode of a single pose (7,), those without a real configuration included.

        Limbs in closed form give all their branches; limbs solved by iteration give those that a search meets.
        """
        poses, _ = self.engine.poses(pose)
        if len(poses) != 1:
            raise ShapeError(f"pose: expected a single pose, got {len(poses)}")
        return [
            self._inverse_solution(solved, (), mode, label) for mode, label, solved in self.modes.solutions(poses[0])
        ]

    def _inverse_solution(
        self, solved: Solved, shape: tuple[int, ...], mode: int | None, label: str | None = None
    ) -> InverseSolution:
        if label is None:
            label = "nearest" if mode is None else self.mode_label(mode)
        q = solved.q
        return InverseSolution(
            q.reshape(*shape, q.shape[1]),
            q[:, self.engine.actuated_column].reshape(*shape, len(self.actuated_names)),
            solved.status.reshape(shape),
            solved.residual.reshape(shape),
            solved.iterations.reshape(shape),
            mode,
            label,
            lambda status, joints, residual: explain_inverse(self.engine, status, joints, residual),
        )

    def forward(self, q: ArrayLike, near: ArrayLike | None = None, seed: ArrayLike | None = None) -> ForwardSolution:
        """Platform poses for actuated joint positions (..., n_actuated): the assembly mode that continues `near`.

        `near` (7,) or (..., 7) is a pose, home if there is none; for one that the limbs miss by little, the nearest
        that they reach is tried, else the status is UNREACHABLE. The answer is where the platform gets when the
        actuators move straight from there to q. SINGULAR: on the way the limbs lose hold of the platform, so that
        nothing continues `near`; `residual` says how far the actuators then still have to go.

        `seed` (n_joints,) or (..., n_joints), the joints at `near`, says in which working mode the way begins; without
        it, in the one nearest to q. Looking for that one takes time where limbs are solved by iteration: loops over
        such robots should pass it.
        """
        targets, shape = as_rows(q, len(self.actuated_names), "q")
        starts, _ = self.engine.poses(self.home if near is None else near)
        starts = rows_for(starts, 7, len(targets), "near")
        seeds = None if seed is None else rows_for(seed, len(self.joint_names), len(targets), "seed")
        return self._forward_solution(self._forward.near(targets, starts, seeds), shape)

    def nearest(self, pose: ArrayLike, seed: ArrayLike | None = None) -> ForwardSolution:
        """The configuration nearest to a pose (7,) that need not be reachable exactly, all joints free to move.

        Distance and angle, at the characteristic length, are taken together. For poses that are off by no more than a
        part of the limbs' lengths; DIVERGED beyond.

        For robots whose platform moves parasitically (a 3-PRS): ask for a pose roughly, get one that exists.
        """
        poses, _ = self.engine.poses(pose)
        joints = rows_for(self.home_joints if seed is None else seed, len(self.joint_names), 1, "seed")[0]
        return self._forward_solution(self._forward.nearest(poses[0], joints), ())

    def forward_all(self, q: ArrayLike) -> AssemblyModes:
        """One solution per assembly mode for a single set of actuated joint positions (n_actuated,).

        `assembly_method` says how they are found: all but `search` find every real solution. Labels are the sign of
        the direct Jacobian's determinant against home's, which changes only where assembly modes meet, and a number in
        the order of their distances from home; `assembly_side` says which robots have `redundant` or `?` for a sign.
        The list says whether it is `certified`, and its `caution` why not: a robot whose platform moves with locked
        actuators has no list of poses. A mode in which several solutions meet, or which is part of such a motion, has
        status SINGULAR.
        """
        target = as_rows(q, len(self.actuated_names), "q")[0][0]
        if not np.isfinite(target).all():
            return AssemblyModes([], self.assembly_method, False, "a joint position is not finite")
        e = self.engine
        method = self.assembly_method
        found = search(self._forward, target) if method == "search" else find_all(self, target, method)
        seed = self.home_joints.copy()
        seed[e.actuated_column] = target
        answers = []
        unconfirmed = 0
        counts: dict[str, int] = {}
        from_home = [distance(pose, self.home, self.characteristic_length) for pose in found.poses]
        for k in np.argsort(from_home, kind="stable"):
            pose = found.poses[k]
            solved = e.solve(pose[None], seed[None] if found.joints is None else found.joints[k : k + 1])
            joints, status = solved.q[0], Status(int(solved.status[0]))
            error = _joint_error(joints[e.actuated_column] - target, e.actuated_turning)
            if not error < ASSEMBLED:  # a limb also reaches the pose with its actuator elsewhere: insist on `target`
                insisted = self._forward.joints_at(target, pose)
                if insisted is None:
                    unconfirmed += 1
                    continue  # no configuration with these actuated positions: not a mode of theirs
                solved = e.solve(pose[None], insisted[None])
                joints, status = solved.q[0], Status(int(solved.status[0]))
                error = _joint_error(joints[e.actuated_column] - target, e.actuated_turning)
                if status not in CLOSES:  # a branch that a limb's closed form does not take, such as a leg turned over
                    status = Status.JOINT_LIMIT if self.limit_violations(insisted) else Status.CONVERGED
                    joints, error = insisted, 0.0
                elif not error < ASSEMBLED:  # the pose leaves the actuator free: a limb is in a singularity of its own
                    joints, status, error = insisted, Status.SINGULAR, 0.0
            if found.multiplicity[k] != 1 and status in (Status.CONVERGED, Status.JOINT_LIMIT):
                status = Status.SINGULAR
            sign = self.assembly_side.prefix(pose, joints)
            counts[sign] = counts.get(sign, 0) + 1
            one = Found(pose[None], joints[None], np.array([int(status)]), np.array([error]), solved.iterations)
            answers.append(self._forward_solution(one, (), f"{sign}{counts[sign]}"))
        if unconfirmed and found.certified and e.iterated:  # closed forms know; iteration only fails
            caution = f"no joint positions were found for {unconfirmed} more poses that satisfy the limbs' equations"
            return AssemblyModes(answers, found.method, False, caution)
        return AssemblyModes(answers, found.method, found.certified, found.caution)

    @cached_property
    def assembly_method(self) -> str:
        """How `forward_all` works: by an algebraic method, or by search, which is not certified."""
        return method_of(self)

    @cached_property
    def assembly_side(self) -> AssemblySide:
        """On which side of the singularities of type 2 a configuration is."""
        return AssemblySide(self)

    @cached_property
    def locked_limbs(self) -> LockedLimbs:
        """What the limbs demand of the platform when their actuators are locked, as far as it is known."""
        return LockedLimbs(self.engine.mechanism)

    @cached_property
    def surfaces(self) -> TranslationSurfaces:
        """The surfaces on which locked limbs keep a platform that only translates, as far as they are known."""
        return TranslationSurfaces(self.engine)

    @cached_property
    def plates(self) -> Plates:
        """The rods and plates that hold a platform of three translations and a turn, as far as they are known."""
        return Plates(self.engine)

    def _forward_solution(self, found: Found, shape: tuple[int, ...], label: str = "nearest") -> ForwardSolution:
        return ForwardSolution(
            found.pose.reshape(*shape, 7),
            found.joints.reshape(*shape, len(self.joint_names)),
            found.status.reshape(shape),
            found.residual.reshape(shape),
            found.iterations.reshape(shape),
            label,
            lambda status, joints, residual: explain_forward(self.engine, status, joints, residual),
        )

    def limit_violations(self, joints: ArrayLike) -> list[str]:
        """One sentence per limb joint of `joints` (n_joints,) that is outside its range."""
        return limit_violations(self.engine, np.asarray(joints, dtype=np.float64))

    # -- motion -----------------------------------------------------------------------------------------------------

    def motion(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        acceleration: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> Motion:
        """All joint positions, velocities and accelerations for platform motions.

        `twist` and `acceleration` (..., 6) must lie in the motion space; elsewhere the status is INVALID_INPUT.
        """
        e = self.engine
        poses, shape = e.poses(pose)
        twists, accelerations = e.rates(twist, acceleration, len(poses))
        seeds, _ = self._seeds(poses, seed, mode)
        solved = e.solve(poses, seeds, self.modes.kernel_mode(mode), twists, accelerations)
        astray = e.outside(poses, twists, seeds)
        if e.constant_space:
            astray |= e.outside(poses, accelerations, seeds)
        status = np.where(astray & (solved.status == Status.CONVERGED), int(Status.INVALID_INPUT), solved.status)
        solved.qd[astray], solved.qdd[astray] = np.nan, np.nan
        parts = [x.reshape(*shape, x.shape[1]) for x in (solved.q, solved.qd, solved.qdd)]
        return Motion(
            parts[0],
            parts[1],
            parts[2],
            parts[0][..., e.actuated_column],
            parts[1][..., e.actuated_column],
            parts[2][..., e.actuated_column],
            status.reshape(shape),
            solved.residual.reshape(shape),
            solved.regularity.reshape(shape),
        )

    def inverse_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Actuated joint rates per platform twist (..., n_actuated, 6), NaN where the pose has no regular solution.

        Only its action on the motion space is defined; `task_jacobian` is that part alone.
        """
        poses, shape = self.engine.poses(pose)
        found = self.engine.inverse_jacobians(poses, self.engine.seeds(seed, poses))
        return found.reshape(*shape, *found.shape[1:])

    def task_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """`inverse_jacobian @ subspace` (..., n_actuated, mobility): actuated rates per independent velocity."""
        return self.inverse_jacobian(pose, seed) @ self.subspace(pose, seed)

    def task_jacobian_rate(self, pose: ArrayLike, twist: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Time derivative Kd (..., n_actuated, mobility) of `task_jacobian` K for a platform `twist` (..., 6).

        Actuated accelerations are `K ud + Kd u`, with `twist = S u`; that of the forward Jacobian J of as many
        actuators as freedoms is `-J Kd J`. Exact to rounding. Raises `PkmError` for robots whose motion space turns
        with the pose: there `motion` gives accelerations, and a basis has no rate of its own.
        """
        if not self.constant_space:
            raise PkmError("the motion space turns with the pose: no basis of it stays, and its Jacobian has no rate")
        poses, shape = self.engine.poses(pose)
        twists = np.broadcast_to(self.engine.rates(twist, np.zeros(6), len(poses))[0], (len(poses), 6))
        S, K = self.task.subspace, self.inverse_jacobian(poses, seed)

        def drift(rates: Array) -> Array:  # actuated accelerations at constant twist: D_t K t along t
            return self.motion(poses, rates, np.zeros(6), seed).actuated_accelerations

        found = np.empty((len(poses), K.shape[1], S.shape[1]))
        own = drift(twists)
        for c, axis in enumerate(S.T):
            # The sum of D_t K s and D_s K t by polarization; their difference is K of the fields' bracket: turns about
            # base axes do not commute.
            both = drift(twists + axis) - own - drift(np.broadcast_to(axis, twists.shape))
            bracket = np.cross(axis[3:], twists[:, 3:])
            found[:, :, c] = 0.5 * (both + np.einsum("nij,nj->ni", K[:, :, 3:], bracket))
        return found.reshape(*shape, *found.shape[1:])

    def forward_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Platform twist per actuated joint rates (..., 6, n_actuated); NaN at a type 2 singularity."""
        S = self.subspace(pose, seed)
        K = self.inverse_jacobian(pose, seed) @ S
        U, values, Vt = np.linalg.svd(np.nan_to_num(K), full_matrices=False)
        regular = np.isfinite(K).all((-1, -2)) & (values[..., -1] > 1e-12 * values[..., 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            pseudo_inverse = (np.swapaxes(Vt, -1, -2) / values[..., None, :]) @ np.swapaxes(U, -1, -2)
        return np.where(regular[..., None, None], S @ pseudo_inverse, np.nan)

    def platform_twist(self, pose: ArrayLike, rates: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Platform twist (..., 6) for actuated joint rates (..., n_actuated) at known poses."""
        return np.einsum("...ij,...j->...i", self.forward_jacobian(pose, seed), np.asarray(rates, dtype=np.float64))

    def platform_acceleration(
        self, pose: ArrayLike, twist: ArrayLike, accelerations: ArrayLike, seed: ArrayLike | None = None
    ) -> Array:
        """Platform acceleration (..., 6) for actuated joint accelerations (..., n_actuated), at known poses and twists.

        NaN at a type 2 singularity. Raises `ShapeError`.
        """
        e = self.engine
        poses, shape = e.poses(pose)
        twists = e.rates(twist, np.zeros(6), len(poses))[0]
        bias = e.spaces_at(poses, e.seeds(seed, poses), twists)[1]
        imposed = self.motion(poses, twists, bias, seed).actuated_accelerations
        missing = rows_for(accelerations, imposed.shape[1], len(poses), "accelerations") - imposed
        F = self.forward_jacobian(poses, seed)
        return np.asarray(bias + np.einsum("nij,nj->ni", F, missing)).reshape(*shape, 6)

    def subspace(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Array:
        """Basis (..., 6, mobility) of the platform's possible twists; NaN where the pose has no regular solution."""
        e = self.engine
        poses, shape = e.poses(pose)
        if e.constant_space:
            return np.broadcast_to(self.task.subspace, (*shape, *self.task.subspace.shape))
        seeds = e.seeds(seed, poses)
        return e.spaces_at(poses, seeds)[0].reshape(*shape, 6, self.mobility)

    def singularity(self, pose: ArrayLike, seed: ArrayLike | None = None) -> Singularity:
        """Distances from the singularities of every type, at poses (..., 7); see `pkm_kinematics.singularity`."""
        e, t = self.engine, self.tables
        poses, shape = e.poses(pose)
        seeds = e.seeds(seed, poses)
        K, S = self.task_jacobian(poses, seed), np.nan_to_num(self.subspace(poses, seed))
        hold, regularity = np.full(len(poses), np.nan), np.full(len(poses), np.nan)
        blocked = 6 - self.mobility - self.mechanism.mobility.left_out
        for k in range(len(poses)):
            at = e.placed(poses[k], seeds[k if len(seeds) > 1 else 0])
            if at.closed:
                regularity[k] = invert_blocks(t.bodies, t.closures, t.blocks, at.state, at.rows, at.work)
                W = constraint_wrenches(t, at.state, at.rows, e.characteristic_length)
                hold[k] = constraint_margin(W, blocked)
        # columns of unit speed, the speed of a rotation being that of a point at the characteristic length
        speeds = np.linalg.norm(S * scaling(e.characteristic_length)[:, None], axis=-2)
        found = margins(K / np.where(speeds > 0.0, speeds, 1.0)[:, None, :], hold, regularity, e.characteristic_length)
        return found.reshaped(shape)

    # -- lean calls -------------------------------------------------------------------------------------------------

    @cached_property
    def direct_inverse(self) -> bool:
        """True where each actuated joint follows from one scalar equation, whatever the passive joints do."""
        blocks = self.tables.blocks
        return bool((blocks["direct"][blocks["actuators"] > 0] == 1).all())

    @cached_property
    def straight(self) -> bool:
        """True where all limbs are solved in closed form, in a motion space that does not turn with the pose.

        And where numba's LLVM is new enough to make straight-line code of such a robot.
        """
        return AVAILABLE and self.constant_space and bool((self.tables.blocks["solver"] == CLOSED_FORM).all())

    def lean_inverse(self, mode: int = 0) -> Callable[[Array, Array], int]:
        """`call(pose, q) -> status`: inverse kinematics with arrays in and arrays out, for loops that count time.

        `pose` (7,) must be finite with a unit quaternion inside the motion space; q (n_actuated,) is written. Both
        must be contiguous float64 arrays: nothing is checked, joint limits neither. Turning joints take the turn that
        is nearest to the one of the call before. One call at a time per object returned.
        """
        t = self.tables
        return bind(
            inverse_direct if self.direct_inverse else inverse_whole,
            (t.bodies, t.closures, t.blocks, *t.workspace(), mode),
            (self.home.copy(), np.zeros(len(self.actuated_names))),
        )

    def lean_track(self) -> Callable[[Array, Array], tuple[int, float, int]]:
        """`call(q, pose) -> (status, error, iterations)`: forward kinematics that moves `pose` (7,) along with q.

        For control loops: `pose` holds the last one on entry and the new one on return, and is left alone where the
        status is not CONVERGED on the first step; `error` is the largest of an actuated joint. Contiguous float64
        arrays, nothing is checked. Raises `PkmError` for robots whose motion space changes with the pose.
        """
        if not self.constant_space:
            raise PkmError("lean_track needs a motion space that is the same at every pose")
        t, m, f = self.tables, len(self.actuated_names), self.mobility
        scratch = (np.empty(7), np.empty((m, 6)), np.empty((f, f)), np.empty(max(m, f)), np.empty(6))
        home = self.home_joints[self.engine.actuated_column]
        example = home.copy(), self.home.copy()
        fixed = (t.bodies, t.closures, t.blocks, *t.workspace(), self.task.subspace, *scratch)
        general = bind(forward_newton, fixed, example)
        recording = record_newton_step(t, self.task.subspace, self.home, home) if self.straight else None
        if recording is None:
            return general
        code = MachineCode(recording)
        return or_else(bind(straight_track, (code.address, np.empty(7), np.empty(10)), example), general, code)

    def lean_forward(self) -> Callable[[Array, Array], int]:
        """`call(q, points) -> status`: both assembly modes of a translational robot as platform origins (2, 3).

        For robots whose `assembly_method` is "spheres" with three actuators; raises `PkmError` for others.
        """
        if self.assembly_method != "spheres" or len(self.actuated_names) != 3:
            raise PkmError("lean_forward needs a translational platform on three distances")
        t = self.tables
        state, _, _ = t.workspace()
        place_platform(state, self.home)
        return bind(
            forward_translation,
            (t.bodies, t.closures, t.blocks, state, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)),
            (self.home_joints[self.engine.actuated_column], np.zeros((2, 3))),
        )


def _joint_error(difference: Array, turning: NDArray[np.bool_]) -> float:
    """Largest difference of joint positions, turning joints by the shortest way."""
    return float(np.abs(np.where(turning, (difference + np.pi) % (2.0 * np.pi) - np.pi, difference)).max())
