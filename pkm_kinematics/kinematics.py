# SPDX-License-Identifier: Apache-2.0
"""Kinematics of any parallel robot: positions, modes, velocities, accelerations and Jacobians.

Arrays are batched along their leading axes. Poses are (..., 7): x y z [m] and the unit quaternion qx qy qz qw of the
platform in the base frame; twists and accelerations (..., 6) are linear [m/s], then angular [rad/s], at the platform's
origin, in base axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.batch import ShapeError, all_finite, as_rows, is_vector, nans, rows_for, shaped
from pkm_kinematics.codegen.newton_recording import record_newton_step
from pkm_kinematics.codegen.track_code import straight_track
from pkm_kinematics.explain import (
    explain_forward,
    explain_inverse,
    explain_motion,
    explain_nearest,
)
from pkm_kinematics.forward.along_path import Forward, usable_poses
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.model_and_data import Choice, Data, Solved, near
from pkm_kinematics.kernels.path.carry_on import inverse_carried
from pkm_kinematics.kernels.path.distances import forward_translation
from pkm_kinematics.kernels.path.follow import PoseRows
from pkm_kinematics.kernels.path.newton import RESULTS
from pkm_kinematics.kernels.path.track_reading import track_usable
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.solve_poses import inverse_direct, inverse_whole
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW
from pkm_kinematics.robot_summary import introduction
from pkm_kinematics.solutions import AssemblyModes, ForwardSolution, InverseSolution, Motion
from pkm_kinematics.solve.constraints import per_unit_speed
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.singularity import Singularity, joined, margins
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_kinematics.status import Status, closes
from pkm_runtime.codegen import AVAILABLE, MachineCode
from pkm_runtime.errors import PkmError
from pkm_runtime.introduction import Introduced
from pkm_runtime.kernels.binding import bind, or_else

if TYPE_CHECKING:
    from pkm_kinematics.assembly.method import AssemblyMethod

__all__ = ["Kinematics", "ShapeError"]

Explanation = Callable[[int, Array, float], str]  # of a status, joints and a residual


_AT_ONCE = 1 << 15  # poses whose Jacobians are looked at together: more only fill the memory


class Kinematics(Introduced):
    """Kinematics of one mechanism. Immutable after construction; calls may run in several threads at once.

    Every method raises `ShapeError` for arrays of a wrong shape and `ModeError` for a working mode that the robot
    lacks, the constructor `PkmError` for anything but a `Mechanism`.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"assembly", "engine", "modes", "tables"})
    _elsewhere: ClassVar[dict[str, str]] = {
        "jacobian jacobians": "task_jacobian(pose) has the drives' rates per rates of the task coordinates, "
        "inverse_jacobian(pose) per twist of the platform, forward_jacobian(pose) the twist per rates of the drives",
        "ik inverse_kinematics solve": "inverse(pose) has the joints, inverse_all(pose) those in every working mode",
        "fk forward_kinematics": "forward(actuated, near=pose) has the pose for positions of the drives, "
        "forward_all(actuated) every one",
        "dof n_dof freedoms": "mobility is their number, mechanism.mobility says more",
        "joints limits joint_limits": "joint_names, home_joints, and mechanism.joint_named[name].limits",
        "working_modes": "n_modes is their number, inverse_all(pose) has the joints in each",
        "assembly_modes": "forward_all(actuated) finds them",
        "velocity velocities acceleration accelerations": "motion(pose, twist, acceleration) has those of every joint",
        "manipulability": "singularity(pose) has the distances from singularities",
        "name": "mechanism.name",
    }

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            came = (
                f"the text {mechanism[:60]!r}"
                if isinstance(mechanism, str)
                else f"an object of type {type(mechanism).__name__}"
            )
            raise PkmError(f"mechanism: expected what load_mechanism returns, got {came}")
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the mechanism, from which the rest is made again in some milliseconds."""
        return type(self), (self.mechanism,)

    def _summary(self) -> str:
        return self.mechanism._summary()

    def _details(self) -> list[str]:
        return introduction(self.engine, self.modes)

    # -- what the robot is ------------------------------------------------------------------------------------------

    @property
    def mobility(self) -> int:
        """Number of degrees of freedom of the platform."""
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
        """Name of working mode `mode`: a sign per limb with two branches, `+` for home's. Raises `ModeError`."""
        return self.modes.label(mode)

    # -- positions --------------------------------------------------------------------------------------------------

    def inverse(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> InverseSolution:
        """Joint positions for platform poses.

        Limbs that are solved by iteration follow the platform from home on a straight path; where they cannot, the
        status is NOT_CONNECTED: whether another way leads there is not known. UNREACHABLE: there is no configuration.

        Args:
            pose: (..., 7), or task coordinates (..., k) in the order of `task.names`.
            seed: joint positions (n_joints,) or (..., n_joints) [rad, m] near those wanted. Positions that close the
                loops at the pose are returned themselves, SINGULAR where a limb could leave them on its own.
            mode: working mode, 0 to `n_modes - 1`; without seed and mode, what continues home.

        Returns:
            Joints (..., n_joints) with a status, a residual and a reason each; NaN where there is no configuration.

        Raises:
            ShapeError: an array of the wrong shape.
            ModeError: no such working mode.
        """
        e = self.engine
        poses, shape = e.inputs.poses(pose)
        choice = self.modes.choose(poses, seed, mode)
        poses = e.spaces.into_space(poses, choice)
        solved = e.positions.solve(poses, choice)
        if mode is not None and seed is None:
            e.ranges.bring_in(solved)
        if e.iterated:
            drop_uncertain(choice, solved)
        return self._inverse_solution(poses, solved, shape, mode, seeded=seed is not None)

    def inverse_all(self, pose: ArrayLike) -> list[InverseSolution]:
        """All working modes at one pose, labelled, those without a real configuration included.

        Limbs in closed form give all their branches; limbs solved by iteration give those that a search meets.

        Args:
            pose: (7,), or task coordinates (k,).

        Raises:
            PkmError: more working modes than can be listed.
        """
        one = self.engine.inputs.one_pose(pose)
        found = self.modes.solutions(one)
        return [self._inverse_solution(one[None], solved, (), mode, label) for mode, label, solved in found]

    def _inverse_solution(
        self,
        poses: Array,
        solved: Solved,
        shape: tuple[int, ...],
        mode: int | None,
        label: str | None = None,
        *,
        seeded: bool = False,
    ) -> InverseSolution:
        if label is None:
            label = self.mode_label(mode) if mode is not None else "nearest" if seeded else "home"
        return InverseSolution(
            shaped(solved.q, shape),
            shaped(solved.status, shape),
            shaped(solved.residual, shape),
            shaped(solved.iterations, shape),
            mode,
            label,
            self.engine.names,
            self._explain_inverse[seeded],
            partial(self._limb_conditions, poses, solved.q, solved.status),
        )

    def _limb_conditions(self, poses: Array, joints: Array, status: NDArray[np.int64]) -> Array:
        return self.engine.jacobians.limb_conditions(poses, near(joints, len(poses)), status)

    @cached_property
    def _explain_inverse(self) -> tuple[Explanation, Explanation]:  # without a seed, and with one
        return partial(explain_inverse, self.engine), partial(explain_inverse, self.engine, seeded=True)

    @cached_property
    def _explain_motion(self) -> tuple[Explanation, Explanation]:  # without a seed, and with one
        return partial(explain_motion, self.engine), partial(explain_motion, self.engine, seeded=True)

    @cached_property
    def _explain_forward(self) -> Explanation:
        return partial(explain_forward, self.engine)

    def forward(self, q: ArrayLike, near: ArrayLike | None = None, seed: ArrayLike | None = None) -> ForwardSolution:
        """Platform poses (..., 7) for actuated joint positions: the assembly mode that continues `near`.

        The answer is where the platform gets when the actuators move straight from the configuration at `near` to q;
        NaN where there is none. SINGULAR: on the way the limbs lose hold of the platform, so that nothing continues
        `near`; `residual` says how far the actuators then still have to go. JOINT_LIMIT: the pose is known, but a joint
        is outside its range.

        Args:
            q: actuated joint positions (..., n_actuated) [rad, m].
            near: pose (7,) or (..., 7) to start from, home by default. If the limbs miss it by little, the nearest that
                they reach is tried, else the status is UNREACHABLE.
            seed: the joints (n_joints,) or (..., n_joints) at `near`, which say in which working mode the path begins;
                by default the mode nearest to q. Its search takes time where limbs are solved by iteration: loops over
                such robots should pass a seed.
        """
        if seed is None and is_vector(q, len(self.actuated_names)) and (near is None or is_vector(near, 7)):
            one = self._forward.near_one(q, near)
            if one is not None:
                return ForwardSolution(
                    *one, "nearest", self.engine.names, self._explain_forward, self.engine.jacobians.drive_conditions
                )
        targets, shape = as_rows(q, len(self.actuated_names), "q")
        starts = self.engine.home_row if near is None else self.engine.inputs.poses(near)[0]
        if len(starts) not in (1, len(targets)):
            starts = rows_for(starts, 7, len(targets), "near")
        seeds = None if seed is None else rows_for(seed, len(self.joint_names), len(targets), "seed")
        return self._forward_solution(self._forward.near(targets, starts, seeds), shape)

    def nearest(self, pose: ArrayLike, seed: ArrayLike | None = None) -> ForwardSolution:
        """The configuration nearest to a pose that need not be reachable exactly, all joints free to move.

        Distance, and angle times the characteristic length, are taken together. For robots whose platform moves
        parasitically (a 3-PRS): ask for a pose roughly, get one that exists. Works for poses off by no more than a part
        of the limbs' lengths, DIVERGED beyond; INVALID_INPUT for what is no pose to `inverse` either, and for a seed
        that is not finite or too large to close loops with.

        Args:
            pose: (7,), or task coordinates (k,).
            seed: joint positions (n_joints,) [rad, m] to start from, home's by default.
        """
        e, width = self.engine, len(self.joint_names)
        wanted = e.inputs.one_pose(pose)
        joints = rows_for(self.home_joints if seed is None else seed, width, 1, "seed")[0]
        if usable_poses(wanted[None])[0] and e.inputs.usable(joints, e.joint_turning).all():
            found = self._forward.nearest(wanted, joints)
        else:
            code, none = np.array([int(Status.INVALID_INPUT)]), np.zeros(1, dtype=np.int64)
            found = PoseRows(nans(1, 7), nans(1, width), code, np.zeros(1), none)
        return self._forward_solution(found, (), explain=self._explain_nearest)

    def forward_all(self, q: ArrayLike) -> AssemblyModes:
        """All assembly modes of a single set of actuated joint positions, in the order of their distances from home.

        `assembly_method` says how they are found: all but `search` find every real solution. A label is the sign of the
        direct Jacobian's determinant against home's, which changes only where assembly modes meet, and a number among
        those of one sign; `assembly.unsigned` replaces the sign of robots without sides. A mode in which several
        solutions meet, or which is part of a motion that locked actuators leave, has status SINGULAR. The list says
        whether it is `certified`, and its `caution` why not.

        Args:
            q: actuated joint positions (n_actuated,) [rad, m].
        """
        targets, _ = as_rows(q, len(self.actuated_names), "q")
        if len(targets) != 1:
            raise ShapeError(f"q: expected a single set of joint positions, got {len(targets)}")
        from pkm_kinematics.assembly.all_modes import all_modes  # late, as in `assembly`

        return all_modes(self.assembly, np.array(targets[0]))  # a copy: kernels take no read-only array

    @cached_property
    def assembly(self) -> AssemblyMethod:
        """The method that finds all assembly modes, and names their sides."""
        # late: with SciPy, it takes as long to import as all the rest
        from pkm_kinematics.assembly.choose import choose_method

        return choose_method(self.engine)

    @property
    def assembly_method(self) -> str:
        """Name of the method by which `forward_all` works: an algebraic one, or `search`, which is not certified."""
        return self.assembly.name

    @cached_property
    def _explain_nearest(self) -> Explanation:
        return partial(explain_nearest, self.engine)

    def _forward_solution(
        self, found: PoseRows, shape: tuple[int, ...], label: str = "nearest", explain: Explanation | None = None
    ) -> ForwardSolution:
        return ForwardSolution(
            shaped(found.pose, shape),
            shaped(found.joints, shape),
            shaped(found.status, shape),
            shaped(found.residual, shape),
            shaped(found.iterations, shape),
            label,
            self.engine.names,
            explain or self._explain_forward,
            self.engine.jacobians.drive_conditions,
        )

    def limit_violations(self, joints: ArrayLike) -> list[str]:
        """One sentence per joint outside its range; none for NaN, whose status says that there is no configuration.

        Args:
            joints: positions (n_joints,) [rad, m].
        """
        rows, _ = as_rows(joints, len(self.joint_names), "joints")
        if len(rows) != 1:
            raise ShapeError(f"joints: expected a single set of joint positions, got {len(rows)}")
        return self.engine.ranges.violations(rows[0])

    # -- motion -----------------------------------------------------------------------------------------------------

    def motion(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        acceleration: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> Motion:
        """Positions, velocities and accelerations of all joints for platform motions, with a status each.

        Args:
            pose: as in `inverse`, like `seed` and `mode`.
            twist: (..., 6) linear [m/s], then angular [rad/s]; INVALID_INPUT outside the motion space, or so large that
                numbers overflow.
            acceleration: (..., 6) [m/s^2, rad/s^2], the twist's time derivative; by default that of a constant velocity
                in the motion space. In a configuration-dependent motion space the nearest possible one is taken, and
                INVALID_INPUT is more than 5 % away.
        """
        e = self.engine
        poses, shape = e.inputs.poses(pose)
        twists, accelerations = e.inputs.rates(twist, acceleration, len(poses))
        choice = self.modes.choose(poses, seed, mode)
        poses = e.spaces.into_space(poses, choice)
        astray = e.spaces.outside(poses, twists, choice)
        if e.constant_space:
            astray |= e.spaces.outside(poses, accelerations, choice)
        else:
            spaces, biases = e.spaces.at(poses, choice, twists)
            wanted = biases if acceleration is None else accelerations
            nearest, far = e.spaces.nearest_accelerations(wanted, spaces, biases)
            accelerations = np.where(np.isfinite(nearest), nearest, accelerations)  # the solve says why there is none
            astray |= far
        solved = e.positions.solve(poses, choice, twists, accelerations)
        if mode is not None and seed is None:
            e.ranges.bring_in(solved)
        if e.iterated:
            drop_uncertain(choice, solved)
        if astray.any() or not (all_finite(solved.qd) and all_finite(solved.qdd)):
            astray |= ~(np.isfinite(solved.qd) & np.isfinite(solved.qdd)).all(axis=1)  # where numbers overflow
            solved.status[astray & closes(solved.status)] = Status.INVALID_INPUT
            solved.qd[astray], solved.qdd[astray] = np.nan, np.nan
        parts = [x.reshape((*shape, x.shape[1])) for x in (solved.q, solved.qd, solved.qdd)]
        return Motion(
            parts[0],
            parts[1],
            parts[2],
            solved.status.reshape(shape),
            solved.residual.reshape(shape),
            solved.regularity.reshape(shape),
            e.names,
            self._explain_motion[seed is not None],
        )

    def inverse_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Array:
        """Actuated joint rates per platform twist: (..., n_actuated, 6) [rad/s, m/s] per [m/s, rad/s], base frame.

        Only its action on the motion space is defined; `motion_jacobian` is that part alone. NaN where the pose has no
        regular solution. `pose`, `seed` and `mode` are as in `inverse`.
        """
        poses, shape = self.engine.inputs.poses(pose)
        choice = self.modes.choose(poses, seed, mode)
        found = self.engine.jacobians.inverse(self.engine.spaces.into_space(poses, choice), choice)
        return found.reshape(*shape, *found.shape[1:])

    def task_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Array:
        """Actuated joint rates per rates of the task coordinates: (..., n_actuated, k), columns as in `task.names`.

        In the units of the joints; NaN where the pose has no regular solution. Without a branch for the platform, k = 6
        and the columns are those of `inverse_jacobian`. `pose`, `seed` and `mode` are as in `inverse`.

        Raises:
            PkmError: the task coordinates depend on each other, such as a 3-PRS's, so that none can move alone.
        """
        return self.inverse_jacobian(pose, seed, mode) @ self.task_twists(pose)

    def task_twists(self, pose: ArrayLike) -> Array:
        """Platform twist per rates of the task coordinates: (..., 6, k) linear, then angular, base frame.

        The geometric Jacobian of the platform's own branch, columns as in `task.names`; `pose` is as in `inverse`.
        Raises `PkmError` if the task coordinates depend on each other.
        """
        names = self.task.names
        if len(names) not in (0, self.mobility):
            raise PkmError(
                f"the task coordinates {', '.join(names)} depend on each other: the platform has {self.mobility} "
                "freedoms; motion_jacobian is in a basis of these"
            )
        poses, shape = self.engine.inputs.poses(pose)
        if not names:
            return np.broadcast_to(np.eye(6), (*shape, 6, 6))
        return self.engine.spaces.branch_twists(poses).reshape(*shape, 6, len(names))

    def motion_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Array:
        """Actuated rates per independent velocity, (..., n_actuated, mobility): `inverse_jacobian @ subspace`.

        The K_a of the equations of motion, in the basis of `subspace`, which is not that of the task coordinates. NaN
        where the pose has no regular solution. `pose`, `seed` and `mode` are as in `inverse`.
        """
        return self.inverse_jacobian(pose, seed, mode) @ self.subspace(pose, seed, mode)

    def motion_jacobian_rate(
        self, pose: ArrayLike, twist: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None
    ) -> Array:
        """Time derivative Kd (..., n_actuated, mobility) of `motion_jacobian` K along a motion, exact to rounding.

        Actuated accelerations are `K ud + Kd u`, with `twist = S u`; the rate of the forward Jacobian J, with as many
        actuators as degrees of freedom, is `-J Kd J`. NaN where the pose has no regular solution.

        Args:
            pose: as in `inverse`, like `seed` and `mode`.
            twist: (..., 6) linear [m/s], then angular [rad/s].

        Raises:
            PkmError: the motion space is configuration-dependent, so that a basis has no rate of its own; `motion`
                gives accelerations.
        """
        if not self.constant_space:
            raise PkmError("the motion space turns with the pose: no basis of it stays, and its Jacobian has no rate")
        poses, shape = self.engine.inputs.poses(pose)
        twists = np.broadcast_to(self.engine.inputs.rates(twist, np.zeros(6), len(poses))[0], (len(poses), 6))
        S, K = self.task.subspace, self.inverse_jacobian(poses, seed, mode)

        def drift(rates: Array) -> Array:  # actuated accelerations at constant twist: D_t K t along t
            return self.motion(poses, rates, np.zeros(6), seed, mode).actuated_accelerations

        found = np.empty((len(poses), K.shape[1], S.shape[1]))
        own = drift(twists)
        for c, axis in enumerate(S.T):
            # The sum of D_t K s and D_s K t by polarization; their difference is K of the fields' bracket: turns about
            # base axes do not commute.
            both = drift(twists + axis) - own - drift(np.broadcast_to(axis, twists.shape))
            bracket = np.cross(axis[3:], twists[:, 3:])
            found[:, :, c] = 0.5 * (both + np.einsum("nij,nj->ni", K[:, :, 3:], bracket))
        return found.reshape(*shape, *found.shape[1:])

    def forward_jacobian(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Array:
        """Platform twist per actuated joint rates: (..., 6, n_actuated) linear, then angular, base frame.

        NaN at a type 2 singularity. `pose`, `seed` and `mode` are as in `inverse`.
        """
        S = self.subspace(pose, seed, mode)
        K = self.inverse_jacobian(pose, seed, mode) @ S
        U, values, Vt = np.linalg.svd(np.nan_to_num(K), full_matrices=False)
        regular = self.engine.jacobians.conditions(per_unit_speed(K, S, self.characteristic_length)) > SINGULAR_BELOW
        with np.errstate(divide="ignore", invalid="ignore"):
            J = S @ (np.swapaxes(Vt, -1, -2) / values[..., None, :]) @ np.swapaxes(U, -1, -2)
        return np.where(regular[..., None, None], J, np.nan)

    def platform_twist(
        self, pose: ArrayLike, rates: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None
    ) -> Array:
        """Platform twist (..., 6), base frame, for actuated joint rates at known poses; NaN at a type 2 singularity.

        Args:
            pose: as in `inverse`, like `seed` and `mode`.
            rates: actuated joint rates (..., n_actuated) [rad/s, m/s].
        """
        F = self.forward_jacobian(pose, seed, mode)
        rows, shape = as_rows(rates, F.shape[-1], "rates")
        try:
            np.broadcast_shapes(shape, F.shape[:-2])
        except ValueError as error:
            axes = f"{shape} do not go with those of the poses, {F.shape[:-2]}"
            raise ShapeError(f"rates: leading axes {axes}") from error
        return np.einsum("...ij,...j->...i", F, rows.reshape(*shape, -1))

    def platform_acceleration(
        self,
        pose: ArrayLike,
        twist: ArrayLike,
        accelerations: ArrayLike,
        seed: ArrayLike | None = None,
        mode: int | None = None,
    ) -> Array:
        """Platform acceleration (..., 6), base frame, for actuated joint accelerations at known poses and twists.

        Linear [m/s^2], then angular [rad/s^2]; NaN at a type 2 singularity.

        Args:
            pose: as in `inverse`, like `seed` and `mode`.
            twist: (..., 6) linear [m/s], then angular [rad/s].
            accelerations: of the actuated joints (..., n_actuated) [rad/s^2, m/s^2].
        """
        e = self.engine
        poses, shape = e.inputs.poses(pose)
        twists = e.inputs.rates(twist, np.zeros(6), len(poses))[0]
        choice = self.modes.choose(poses, seed, mode)
        poses = e.spaces.into_space(poses, choice)
        bias = e.spaces.at(poses, choice, twists)[1]
        imposed = self.motion(poses, twists, bias, seed, mode).actuated_accelerations
        missing = rows_for(accelerations, imposed.shape[1], len(poses), "accelerations") - imposed
        F = self.forward_jacobian(poses, seed, mode)
        return np.asarray(bias + np.einsum("nij,nj->ni", F, missing)).reshape(*shape, 6)

    def subspace(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Array:
        """Basis (..., 6, mobility) of the platform's possible twists: linear, then angular, base frame.

        NaN where the pose has no regular solution. `pose`, `seed` and `mode` are as in `inverse`.
        """
        e = self.engine
        poses, shape = e.inputs.poses(pose)
        if e.constant_space:
            return np.broadcast_to(self.task.subspace, (*shape, *self.task.subspace.shape))
        choice = self.modes.choose(poses, seed, mode)
        return e.spaces.at(e.spaces.into_space(poses, choice), choice)[0].reshape(*shape, 6, self.mobility)

    def singularity(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | None = None) -> Singularity:
        """Distances from the singularities of every type: see `pkm_kinematics.solve.singularity`.

        NaN where the pose has no solution. `pose`, `seed` and `mode` are as in `inverse`.
        """
        e = self.engine
        poses, shape = e.inputs.poses(pose)
        choice = self.modes.choose(poses, seed, mode)
        parts = []
        for start in range(0, max(len(poses), 1), _AT_ONCE):
            at = slice(start, start + _AT_ONCE)
            some = choice.rows(at)
            inside = e.spaces.into_space(poses[at], some)
            K = e.jacobians.uniform(inside, some)
            parts.append(
                margins(K, *e.jacobians.limb_margins(inside, some), e.characteristic_length, e.jacobians.units)
            )
        found = parts[0] if len(parts) == 1 else joined(parts)
        return found.reshaped(shape)

    # -- lean calls -------------------------------------------------------------------------------------------------

    @property
    def direct_inverse(self) -> bool:
        """True where each actuated joint follows from one scalar equation, whatever the passive joints do."""
        return self.engine.direct_inverse

    @cached_property
    def straight(self) -> bool:
        """True where numba's LLVM can make straight-line code: all limbs in closed form, motion space constant."""
        return AVAILABLE and self.constant_space and bool((self.tables.blocks["solver"] == CLOSED_FORM).all())

    def lean_inverse(self, mode: int = 0, joints: Array | None = None) -> Callable[[Array, Array], int]:
        """`call(pose, q) -> status`: inverse kinematics with arrays in and arrays out, for time-critical loops.

        `pose` (7,) must be finite with a unit quaternion inside the motion space; q (n_actuated,) [rad, m] is written.
        Both must be contiguous float64 arrays: nothing is checked, joint limits neither. Turning joints take the turn
        nearest to that of the call before. Each object returned serves one call at a time.

        Limbs solved by iteration keep the working mode as they follow the pose from call to call; a pose too far from
        the last one for that has the status DIVERGED, and the next call sets out from where the limbs still are.

        Args:
            mode: working mode, 0 to `n_modes - 1`.
            joints: positions (n_joints,) [rad, m] in that mode before the first call; home's by default.
        """
        e, branch = self.engine, self.modes.branch(mode)
        data = e.data(self.modes.start(mode) if joints is None else joints)
        if not self.direct_inverse:
            return self.lean_positions(data, mode)
        fixed = e.model, data, branch
        return bind(inverse_direct, fixed, (self.home.copy(), np.zeros(len(self.actuated_names))))

    def lean_positions(self, data: Data, mode: int = 0) -> Callable[[Array, Array], int]:
        """As `lean_inverse`, with all joints placed in `data`, the scratch of a kernel at home in the mode."""
        kernel = inverse_carried if self.engine.iterated else inverse_whole
        fixed = self.engine.model, data, self.modes.branch(mode)
        return bind(kernel, fixed, (self.home.copy(), np.zeros(len(self.actuated_names))))

    def lean_track(self, mode: int = 0) -> Callable[[Array, Array], tuple[int, float, int]]:
        """`call(q, pose) -> (status, error, iterations)`: forward kinematics that moves `pose` (7,) along with q.

        For control loops: `pose` holds the last one on entry and the new one on return, and is left alone where the
        status is not CONVERGED; `error` is the largest of an actuated joint [rad, m]. With the promise of `forward`:
        the answer is where the platform gets as the actuators move straight on from the call before, in the same
        working and assembly mode, or a status: INVALID_INPUT for a reading that is not finite or too large to close
        loops with. Contiguous float64 arrays, nothing else is checked. The first call starts at home. Where the motion
        space is configuration-dependent, the call keeps the whole configuration, `pose` is only written, and `error` is
        the largest gap of a closure [m].

        Args:
            mode: working mode, 0 to `n_modes - 1`.

        Raises:
            PkmError: a configuration-dependent motion space, and more actuators than degrees of freedom.
        """
        self.modes.branch(mode)  # None is a mode to `inverse`, and none to start in
        e = self.engine
        start = np.array(self.inverse(self.home, mode=mode).joints)
        if not self.constant_space:
            return self._track_graph(start)
        home = start[e.actuated_column]
        last, example = home.copy(), (home.copy(), self.home.copy())
        general = bind(track_usable, (e.model, e.data(start), last, np.empty((len(e.model.bodies), 3))), example)
        recording = record_newton_step(e.model, e.data(start), self.home, home) if self.straight else None
        if recording is None:
            return general
        code = MachineCode(recording)
        scratch, farthest = (np.empty(7), np.empty(RESULTS)), e.inputs.farthest(e.actuated_turning)
        fixed = (code.address, self.characteristic_length, *scratch, last, farthest)
        return or_else(bind(straight_track, fixed, example), general, code)

    def _track_graph(self, start: Array) -> Callable[[Array, Array], tuple[int, float, int]]:
        if not GraphTracker.serves(self.engine):
            raise PkmError("lean_track needs as many actuators as freedoms where the motion space turns with the pose")
        tracker, rest = GraphTracker(self.engine), np.zeros(len(self.actuated_names))
        tracker.place(self.home, start)

        def call(q: Array, pose: Array) -> tuple[int, float, int]:
            status, gap, iterations, motion = tracker.observe(q, rest)
            if not closes(status):
                return int(status), gap, iterations
            pose[:] = motion.pose
            return int(Status.CONVERGED), gap, iterations

        return call

    def lean_forward(self) -> Callable[[Array, Array], int]:
        """`call(q, points) -> status`: both assembly modes of a translational robot as platform origins (2, 3) [m].

        Raises:
            PkmError: `assembly_method` is not "spheres", or there are not three actuators.
        """
        if self.assembly_method != "spheres" or len(self.actuated_names) != 3:
            raise PkmError("lean_forward needs a translational platform on three distances")
        data = self.engine.data()
        place_platform(data.state, self.home)
        return bind(
            forward_translation,
            (self.engine.model, data, np.zeros((3, 3)), np.zeros((3, 3)), np.zeros(3)),
            (self.home_joints[self.engine.actuated_column], np.zeros((2, 3))),
        )


@lru_cache(maxsize=2)
def shared_kinematics(mechanism: Mechanism) -> Kinematics:
    """The `Kinematics` of a robot, the same object each time it is asked for; see `shared_mechanism`."""
    return Kinematics(mechanism)


def drop_uncertain(choice: Choice, solved: Solved) -> None:
    """Take back solutions beyond the end of a path from home: which mode they belong to is not known."""
    if choice.certain.all():
        return
    solved.status[~choice.certain & (solved.status == Status.DIVERGED)] = Status.NOT_CONNECTED
    stray = ~choice.certain & np.isfinite(solved.q).all(axis=1)
    for values in (solved.q, solved.qd, solved.qdd):
        values[stray] = np.nan
    solved.status[stray] = Status.NOT_CONNECTED
