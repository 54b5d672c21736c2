# SPDX-License-Identifier: Apache-2.0
"""Kinematics of any parallel robot: positions, modes, velocities, accelerations and Jacobians.

Arrays are batched along their leading axes. Poses are (..., 7): x y z [m] and the unit quaternion qx qy qz qw of the
platform in the base frame; twists and accelerations (..., 6) are linear [m/s], then angular [rad/s], at the platform's
origin, in base axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics import lean_kinematics
from pkm_kinematics.batch import ShapeError, as_rows, is_vector, nans, rows_for, shaped
from pkm_kinematics.configuration import Configuration, Motion
from pkm_kinematics.explain import introduction
from pkm_kinematics.forward.along_path import AssemblyModes, Forward, ForwardSolution, usable_poses
from pkm_kinematics.forward.graph_tracker import coordinates_of
from pkm_kinematics.kernels.model_and_data import SOLVED, Choice, Data, near
from pkm_kinematics.kernels.path.follow import PoseRows
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import Singularity
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_kinematics.status import Status
from pkm_runtime.codegen import AVAILABLE
from pkm_runtime.describable import Describable
from pkm_runtime.errors import PkmError

if TYPE_CHECKING:
    from pkm_kinematics.assembly.method import AssemblyMethod

__all__ = ["Kinematics", "ShapeError"]


class Kinematics(Describable):
    """Kinematics of one mechanism. Immutable after construction; calls may run in several threads at once.

    Every method raises `ShapeError` for arrays of a wrong shape and `ModeError` for a working mode that the robot
    lacks, the constructor `PkmError` for anything but a `Mechanism`.

    `mobility` is the number of the platform's degrees of freedom, `constant_space` whether its possible twists are the
    same at every pose, `characteristic_length` [m] the mean distance of the platform's joints, which makes rotations
    comparable with translations; `direct_inverse` whether each actuated joint follows from one scalar equation,
    whatever the passive joints do.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"assembly", "engine", "modes", "tables"})
    _elsewhere: ClassVar[dict[str, str]] = {
        "jacobian jacobians inverse_jacobian task_jacobian forward_jacobian": "at(pose).task_jacobian has the drives' "
        "rates per rates of the task coordinates, at(pose).inverse_jacobian per twist of the platform, "
        "at(pose).forward_jacobian the twist per rates of the drives",
        "platform_twist platform_acceleration motion_jacobian task_twists": "ask at(pose)",
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
        self.engine = e = Engine(mechanism)
        self.tables, self.task = e.tables, e.task
        self.joint_names: tuple[str, ...] = e.joint_names
        self.actuated_names: tuple[str, ...] = e.actuated_names
        self.redundant_names: tuple[str, ...] = e.redundant_names
        self.home: Array = e.home
        self.home_joints: Array = e.home_joints
        self.mobility = e.mobility
        self.constant_space = e.constant_space
        self.characteristic_length = e.characteristic_length
        self.direct_inverse = e.direct_inverse
        self.modes = WorkingModes(e)
        self._forward = Forward(e, self.modes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the mechanism, from which the rest is made again in some milliseconds."""
        return type(self), (self.mechanism,)

    def _summary(self) -> str:
        return self.mechanism._summary()

    def _details(self) -> list[str]:
        return introduction(self.engine, self.modes)

    # -- what the robot is ------------------------------------------------------------------------------------------

    @property
    def n_modes(self) -> int:
        """Number of working modes: of the closed forms, times those found at home of limbs solved by iteration."""
        return self.modes.count

    def mode_label(self, mode: int) -> str:
        """Name of working mode `mode`: a sign per limb with two branches, `+` for home's. Raises `ModeError`."""
        return self.modes.label(mode)

    # -- positions --------------------------------------------------------------------------------------------------

    def at(
        self, pose: ArrayLike | Configuration, seed: ArrayLike | None = None, mode: int | str | None = None
    ) -> Configuration:
        """The configuration at platform poses, with all that follows from it: solved once, when something is asked.

        Every method that takes a pose takes it, too. `pose`, `seed` and `mode` are as in `inverse`; a configuration is
        returned itself. Raises `PkmError` for one of another robot, or one with a seed or a mode.
        """
        if isinstance(pose, Configuration):
            return self._own(pose, seed, mode)
        e, given = self.engine, None
        if e.redundant_names:
            pose, given = e.inputs.with_redundant(pose)
        poses, shape = e.inputs.poses(pose)
        mode = self.modes.number(mode) if isinstance(mode, str) else mode
        if e.redundant_names:
            choice, found = self._choose_redundant(poses, given, seed, mode), None
        else:
            choice, found = self.modes.choose_and_find(poses, seed, mode)
        label = self.mode_label(mode) if mode is not None else "home" if seed is None else "nearest"
        return Configuration(e, poses, shape, choice, mode, label, seed is not None, found, None)

    def _choose_redundant(self, poses: Array, given: Array | None, seed: ArrayLike | None, mode: int | None) -> Choice:
        """`WorkingModes.choose` with redundant joints at `given` (n, r), else at the seed's or where they follow to."""
        e = self.engine
        if given is None and seed is None:
            given = e.inputs.redundant_at(poses)
        if seed is None and given is not None and e.iterated:
            branch, start = self.modes.branch(mode or 0), self.modes.start(mode or 0)
            rows = np.broadcast_to(given, (len(poses), given.shape[1]))
            return Choice(branch, *coordinates_of(e).led(poses, rows, start))
        choice = self.modes.choose(poses, seed, mode)
        if given is None:
            return choice
        seeds = np.array(choice.seeds_for(np.arange(len(poses))))
        seeds[:, e.redundant_column] = given
        return choice._replace(seeds=seeds)

    def at_one(
        self, pose: ArrayLike | Configuration, seed: ArrayLike | None = None, mode: int | str | None = None
    ) -> Configuration:
        """As `at`, for calls that take a single pose. Raises `ShapeError` for several."""
        one = pose if isinstance(pose, Configuration) or self.redundant_names else self.engine.inputs.one_pose(pose)
        found = self.at(one, seed, mode)
        if len(found.poses) != 1:
            raise ShapeError(f"pose: expected a single pose, got {len(found.poses)}")
        return found if found.shape == () else found.rows(slice(None), ())

    def _own(self, found: Configuration, seed: ArrayLike | None, mode: int | str | None) -> Configuration:
        if seed is not None or mode is not None:
            raise PkmError("a configuration already has its mode; give a seed or a mode only with a pose")
        if found.engine.mechanism is not self.mechanism:
            raise PkmError(
                f"a configuration of another description of {found.engine.mechanism.name}; for this description use "
                "at(found.pose, seed=found.joints)"
            )
        return found

    def inverse(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | str | None = None) -> Configuration:
        """Joint positions (..., n_joints) for platform poses, a status and a reason each; NaN where there are none.

        Limbs that are solved by iteration follow the platform from home on a straight path; where they cannot, the
        status is NOT_CONNECTED: whether another way leads there is not known. UNREACHABLE: there is no configuration.

        Args:
            pose: (..., 7), or task coordinates (..., k) in the order of `task.names`. Behind either, there may be the
                positions of the joints `redundant_names` [rad, m]; by default they are the seed's, without one home's
                or where they follow the platform to.
            seed: joint positions (n_joints,) or (..., n_joints) [rad, m] near those wanted. Positions that close the
                loops at the pose are returned themselves, SINGULAR where a limb could leave them on its own.
            mode: working mode, 0 to `n_modes - 1` or its label (`mode_label`); without both, what continues home.
        """
        found = self.at(pose, seed, mode)
        found.solved()
        return found

    def inverse_all(self, pose: ArrayLike) -> list[Configuration]:
        """All working modes at one pose (7,) or (k,), labelled, those without a real configuration included.

        Limbs in closed form give all their branches; limbs solved by iteration give those that a search meets. A leg
        turned over, whose length is negative where it is drawn positive, is none of them: a seed leads there. Raises
        `PkmError` for more working modes than can be listed.
        """
        if self.redundant_names:
            return [self.at_one(pose, mode=mode) for mode in range(self.n_modes)]
        one = self.engine.inputs.one_pose(pose)
        return [
            Configuration(self.engine, one[None], (), near(solved.q, 1, SOLVED), mode, label, False, None, solved)
            for mode, label, solved in self.modes.solutions(one)
        ]

    def forward(self, q: ArrayLike, near: ArrayLike | None = None, seed: ArrayLike | None = None) -> ForwardSolution:
        """Platform poses (..., 7) for actuated joint positions: the assembly mode that continues `near`.

        The answer is where the platform gets when the actuators move straight from the configuration at `near` to q;
        NaN where there is none. SINGULAR: on the way the limbs lose hold of the platform, so that nothing continues
        `near`; `residual` says how far the actuators then still have to go. JOINT_LIMIT: the pose is known, but a joint
        is outside its range.

        Args:
            q: actuated joint positions (..., n_actuated) [rad, m].
            near: pose (7,) or (..., 7) to start from, home by default. If the limbs miss it by little, the nearest that
                they reach is tried, else the status is UNREACHABLE. Redundant joints start where q says, if driven.
            seed: the joints (n_joints,) or (..., n_joints) at `near`, which say in which working mode the path begins;
                by default home's without `near`, else the mode nearest to q, which needs a q not far from `near`. Its
                search takes time where limbs are solved by iteration: loops over such robots should pass a seed.
        """
        if near is not None and self.redundant_names:
            near = self.engine.inputs.with_redundant(near)[0]  # the drives say where redundant joints begin
        if seed is None and is_vector(q, len(self.actuated_names)) and (near is None or is_vector(near, 7)):
            one = self._forward.near_one(q, near)
            if one is not None:
                return ForwardSolution(*one, "nearest", self.engine, False)
        targets, shape = as_rows(q, len(self.actuated_names), "q")
        starts = None if near is None else self.engine.inputs.poses(near)[0]
        if starts is not None and len(starts) not in (1, len(targets)):
            starts = rows_for(starts, 7, len(targets), "near")
        seeds = None if seed is None else rows_for(seed, len(self.joint_names), len(targets), "seed")
        return self._forward_solution(self._forward.near(targets, starts, seeds), shape)

    def continued(self, q: Array, pose: Array, joints: Array) -> ForwardSolution:
        """As `forward` for one q (n_actuated,) from a pose (7,) and joints (n_joints,), where `lean_track` has ended.

        Redundant actuators that contradict each other are not followed some at a time: readings always do a little.
        """
        return self._forward_solution(self._forward.continued(q, pose, joints), ())

    def nearest(self, pose: ArrayLike, seed: ArrayLike | None = None) -> ForwardSolution:
        """The configuration nearest to a pose that need not be reachable exactly, all joints free to move.

        Distance, and angle times the characteristic length, are taken together. For robots whose platform moves
        parasitically (a 3-PRS): ask for a pose (7,) or (k,) roughly, get one that exists. Works for poses off by no
        more than a part of the limbs' lengths, DIVERGED beyond. `seed` (n_joints,) [rad, m] is its start, else home's.
        """
        e, width = self.engine, len(self.joint_names)
        wanted = e.inputs.one_pose(pose)
        joints = rows_for(self.home_joints if seed is None else seed, width, 1, "seed")[0]
        if usable_poses(wanted[None])[0] and e.inputs.usable(joints, e.joint_turning).all():
            found = self._forward.nearest(wanted, joints)
        else:
            code, none = np.array([int(Status.INVALID_INPUT)]), np.zeros(1, dtype=np.int64)
            found = PoseRows(nans(1, 7), nans(1, width), code, nans(1), none)
        return self._forward_solution(found, (), nearest=True)

    def forward_all(self, q: ArrayLike) -> AssemblyModes:
        """All assembly modes of actuated joint positions q (n_actuated,) [rad, m], those nearest to home first.

        `assembly_method` says how they are found: all but `search` find every real solution. A label is the sign of the
        direct Jacobian's determinant against home's, which changes only where assembly modes meet, and a number among
        those of one sign; `assembly.unsigned` replaces the sign of robots without sides. A mode in which several
        solutions meet, or which is part of a motion that locked actuators leave, has status SINGULAR.
        """
        targets, _ = as_rows(q, len(self.actuated_names), "q")
        if len(targets) != 1:
            raise ShapeError(f"q: expected a single set of joint positions, got {len(targets)}")
        from pkm_kinematics.assembly.all_modes import all_modes  # late, as in `assembly`

        return all_modes(self.assembly, np.array(targets[0]))  # a copy: kernels take no read-only array

    @cached_property
    def assembly(self) -> AssemblyMethod:
        """The method that finds all assembly modes, and names their sides."""
        refuse_redundant(self.redundant_names, "all assembly modes")
        # late: with SciPy, it takes as long to import as all the rest
        from pkm_kinematics.assembly.all_modes import choose_method

        return choose_method(self.engine)

    @property
    def assembly_method(self) -> str:
        """Name of the method by which `forward_all` works: an algebraic one, or `search`, which is not certified."""
        return self.assembly.name

    def _forward_solution(self, found: PoseRows, shape: tuple[int, ...], nearest: bool = False) -> ForwardSolution:
        pose, joints, status, residual, iterations = (shaped(rows, shape) for rows in found)
        return ForwardSolution(pose, joints, status, residual, iterations, "nearest", self.engine, nearest)

    def limit_violations(self, joints: ArrayLike) -> list[str]:
        """One sentence per joint of `joints` (n_joints,) [rad, m] outside its range; none for NaN."""
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
        mode: int | str | None = None,
    ) -> Motion:
        """Velocities and accelerations of all joints for a twist and an acceleration: see `Configuration.motion`."""
        return self.at(pose, seed, mode).motion(twist, acceleration)

    def subspace(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | str | None = None) -> Array:
        """Basis (..., 6, mobility) of the platform's possible twists: see `Configuration.subspace`."""
        if self.constant_space and not isinstance(pose, Configuration):  # no configuration has to be chosen for it
            inputs = self.engine.inputs
            _, shape = inputs.poses(inputs.with_redundant(pose)[0] if self.redundant_names else pose)
            return np.broadcast_to(self.task.subspace, (*shape, *self.task.subspace.shape))
        return self.at(pose, seed, mode).subspace

    def singularity(self, pose: ArrayLike, seed: ArrayLike | None = None, mode: int | str | None = None) -> Singularity:
        """Distances from the singularities of every type: see `pkm_kinematics.solve.singularity`."""
        return self.at(pose, seed, mode).singularity

    # -- lean calls -------------------------------------------------------------------------------------------------

    @cached_property
    def straight(self) -> bool:
        """True where numba's LLVM can make straight-line code: all limbs in closed form, motion space constant."""
        return AVAILABLE and self.constant_space and bool((self.tables.blocks["solver"] == CLOSED_FORM).all())

    def lean_inverse(
        self, mode: int = 0, joints: Array | None = None, pose: Array | None = None
    ) -> Callable[[Array, Array], int]:
        """`call(pose, q) -> status`: inverse kinematics with arrays in and arrays out, for time-critical loops.

        `pose` (7,) must be finite with a unit quaternion inside the motion space; q (n_actuated,) [rad, m] is written.
        Both must be contiguous float64 arrays: nothing is checked, joint limits neither. Turning joints take the turn
        nearest to that of the call before. Each object returned serves one call at a time.

        Limbs solved by iteration keep the working mode as they follow the pose from call to call; a pose too far from
        the last one for that has the status DIVERGED, and the next call sets out from where the limbs still are.
        `joints` (n_joints,) [rad, m] are those in that mode at a `pose` (7,) before the first call; home's by default.
        """
        return lean_kinematics.lean_inverse(self.modes, mode, joints, pose)

    def lean_positions(self, data: Data, mode: int = 0) -> Callable[[Array, Array], int]:
        """As `lean_inverse`, with all joints placed in `data`, the scratch of a kernel at home in the mode."""
        return lean_kinematics.lean_positions(self.modes, data, mode)

    def lean_track(self, mode: int = 0) -> Callable[[Array, Array], tuple[int, float, int]]:
        """`call(q, pose) -> (status, error, iterations)`: forward kinematics that moves `pose` (7,) along with q.

        For control loops: `pose` holds the last one on entry and the new one on return, and is left alone where the
        status is not CONVERGED; `error` is the largest of an actuated joint [rad, m]. With the promise of `forward`:
        the answer is where the platform gets as the actuators move straight on from the call before, in the same
        working and assembly mode, or a status. Contiguous float64 arrays, nothing else is checked. The first call
        starts at home, in working mode `mode`. Where the motion space is configuration-dependent, the call keeps the
        whole configuration, `pose` is only written, and `error` may be the largest gap of a closure [m] instead; more
        actuators than degrees of freedom are then a `PkmError`.
        """
        self.modes.branch(mode)  # None is a mode to `inverse`, and none to start in
        start = np.array(self.inverse(self.home, mode=mode).joints)
        return lean_kinematics.lean_track(self.engine, start, straight=AVAILABLE and not self.redundant_names)

    def lean_forward(self) -> Callable[[Array, Array], int]:
        """`call(q, points) -> status`: both assembly modes of a translational robot as platform origins (2, 3) [m].

        Raises `PkmError` where `assembly_method` is not "spheres", or there are not three actuators.
        """
        if self.assembly_method != "spheres" or len(self.actuated_names) != 3:
            raise PkmError("lean_forward needs a translational platform on three distances")
        return lean_kinematics.lean_forward(self.engine)


@lru_cache(maxsize=2)
def shared_kinematics(mechanism: Mechanism) -> Kinematics:
    """The `Kinematics` of a robot, the same object each time it is asked for; see `shared_mechanism`."""
    return Kinematics(mechanism)
