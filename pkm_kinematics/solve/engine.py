# SPDX-License-Identifier: Apache-2.0
"""The solves behind `Kinematics` and `Dynamics`, on rows in plain arrays; an `Engine` holds a robot's constants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike, NDArray

from pkm_description.introduction import listed
from pkm_description.joint_geometry import home_positions
from pkm_description.loops.mobility import beside_home, check_gears
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import (
    pose_distance,
    pose_from_transform,
    rotation_from_quaternion,
    transform_from_pose,
    with_unit_quaternions,
)
from pkm_kinematics.batch import (
    BATCH,
    ShapeError,
    in_rows,
    nans,
    numbers,
    over_cores,
    ready,
    rows_for,
    wrong_shape,
)
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.binding import Prepared, WithScratch
from pkm_kinematics.kernels.model_and_data import (
    NEAREST,
    SEEDED,
    VECTORS,
    Choice,
    Data,
    Model,
    Solved,
    near,
    writeable,
)
from pkm_kinematics.kernels.path.carry_on import JUMP, LAST, set_out
from pkm_kinematics.kernels.position.chain import place_chains, read_chain
from pkm_kinematics.kernels.position.closed_form import bend
from pkm_kinematics.kernels.position.closures import block_residual, closed
from pkm_kinematics.kernels.position.kept_seeds import keep_seeds
from pkm_kinematics.kernels.position.solve_poses import (
    FARTHEST,
    INSIDE,
    LIMIT_SLACK,
    solve_many,
    solve_pose,
    take_seed,
)
from pkm_kinematics.kernels.position.whole_turns import bring_in
from pkm_kinematics.kernels.rates.jacobians import inverse_jacobians
from pkm_kinematics.kernels.rates.motion_space import (
    allowed_twists,
    limb_margins,
    motion_space,
    motion_spaces,
    off_space,
)
from pkm_kinematics.model.blocks import build_tables, build_undivided
from pkm_kinematics.model.tables import Tables
from pkm_kinematics.model.task import Task, build_task, chain_state
from pkm_kinematics.solutions import JointNames
from pkm_kinematics.solve.constraints import per_unit_speed, scaling
from pkm_kinematics.solve.continuation import Continuation
from pkm_kinematics.solve.coupler_curve import CouplerCurve, trace
from pkm_kinematics.solve.singularity import margins
from pkm_kinematics.solve.whole_graph import FREE, WholeGraph
from pkm_kinematics.status import Status, closes

NO_RATES = np.empty((0, 6))
EXACT = 1e-14  # of the robot's size: limbs that are closed less exactly are closed again as a whole
FOLDED = 0.02  # of the robot's size: limbs that are open by less are tried again as a whole
ASTRAY = 0.05  # of an acceleration: what feedback and trajectories may miss of a motion space that turns
ROUNDED = 1e-5  # of the robot's size: a loop open by less may be so by rounding; INSIDE decides, of the pose
TORN = 1e-6  # rad, and of the robot's size: a mimic joint farther than this from what its leader says is torn off it
POINT = 1e-9  # of the robot's longest part: joints nearer to each other than this are in one point
PASSAGES = 4  # of a curve by one pose that are tried
OPEN = (Status.UNREACHABLE, Status.DIVERGED, Status.NOT_CONNECTED)  # statuses of a pose at which a loop stays open


@dataclass(frozen=True, eq=False)
class Placed:
    """The robot with every body in place at one pose."""

    model: Model
    data: Data
    status: int

    @property
    def closed(self) -> bool:
        """True where there is a configuration."""
        return closes(self.status)

    @property
    def state(self) -> NDArray[Any]:
        """State of the bodies, `records.STATE`."""
        return self.data.state

    @property
    def rows(self) -> NDArray[Any]:
        """The closures' equations, `records.ROW`."""
        return self.data.rows


class Engine:
    """Constant data of one robot, and solves over rows. Calls may run in several threads at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.home_by_name = home_positions(mechanism)
        self.task: Task = build_task(mechanism, self.home_by_name)
        self.home: Array = pose_from_transform(mechanism.home)
        check_gears(mechanism)
        generic = None
        if mechanism.mobility.singular_home:
            beside = beside_home(mechanism)
            generic = pose_from_transform(beside.home), home_positions(beside)
        self.tables = build_tables(mechanism, self.home, self.home_by_name, generic)
        self.joint_names: tuple[str, ...] = tuple(self.home_by_name)
        self.actuated_names: tuple[str, ...] = mechanism.actuated_joints
        column = {name: k for k, name in enumerate(self.joint_names)}
        self.body_column = self.tables.bodies["column"]
        self.actuated_column = np.array([column[name] for name in self.actuated_names])
        self.home_joints: Array = np.array([self.home_by_name[name] for name in self.joint_names])
        self.home_joints[self.body_column[2:]] = self.tables.bodies["home"][2:]
        slides = dict(zip(self.tables.names, self.tables.bodies["prismatic"] == 1, strict=True))
        slides.update(zip(self.task.names, self.task.chain["prismatic"][1:] == 1, strict=True))
        self.joint_turning = np.array([not slides[name] for name in self.joint_names])
        self.actuated_turning = self.joint_turning[self.actuated_column]
        self.names = JointNames(
            self.joint_names,
            self.actuated_names,
            {name: "rad" if turns else "m" for name, turns in zip(self.joint_names, self.joint_turning, strict=True)},
        )
        for array in (self.home, self.home_joints):
            array.setflags(write=False)
        self._generic = generic
        self._near_home: dict[int, Choice] = {}  # for one pose, by branch
        self._curves: dict[bytes, CouplerCurve | None] = {}  # by where they begin
        self.model: Model = self._model()
        self.size = self._size()
        self.model = self.model.replace(task=_with(self.model.task, size=self.size), blocks=self._bent())

    def _bent(self) -> NDArray[Any]:
        """The blocks, with where their turning drivers stand at home relative to the directions of their targets."""
        blocks, at = self.model.blocks.copy(), self.placed(self.home, self.home_joints)
        blocks["bend"] = np.nan
        for block in blocks:
            driver = block["driver"]
            if block["solver"] == records.CLOSED_FORM and driver >= 0 and not self.tables.bodies["prismatic"][driver]:
                block["bend"] = bend(at.model.bodies, at.model.closures, block, at.state)
        blocks.setflags(write=False)
        return blocks

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the mechanism: all else follows from it, and compiled calls cannot leave their process."""
        return type(self), (self.mechanism,)

    def _model(self) -> Model:
        m = len(self.actuated_names)
        task = _with(
            self.task.record,
            actuators=m,
            square=self.constant_space and m == self.mobility,
            mixed=len(set(self.actuated_turning)) > 1,
            iterated=self.iterated,
            divided=self.divided,
            length=self.characteristic_length,
            size=float(self.tables.blocks["size"].max(initial=0.0)) or 1.0,  # until that at home is known
        )
        return self.tables.model.replace(chain=self.task.chain, task=task, subspace=self.task.subspace)

    def usable(self, joints: Array, turning: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which joint positions (n, k) are numbers fine enough to close loops with; `turning` (k,) tells which turn."""
        return np.asarray(np.abs(joints) < self.farthest(turning))

    def farthest(self, turning: NDArray[np.bool_]) -> Array:
        """Joint positions (k,) from which on numbers are too coarse to close loops with; `turning` as in `usable`."""
        return np.where(turning, FARTHEST, FARTHEST * self.size)

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper ends (n_joints,) of the joints' ranges, rounding allowed for."""
        lower, upper = np.full(len(self.joint_names), -np.inf), np.full(len(self.joint_names), np.inf)
        for table in (self.tables.bodies[2:], self.task.chain[1:]):
            slack = LIMIT_SLACK * np.where(table["prismatic"] == 1, self.size, 1.0)
            lower[table["column"]], upper[table["column"]] = table["lower"] - slack, table["upper"] + slack
        return lower, upper

    def beyond_limits(self, joints: Array) -> NDArray[np.bool_]:
        """Which joints (..., n_joints) are outside their ranges."""
        lower, upper = self.limits
        return np.asarray((joints < lower) | (joints > upper))

    def range_shares(self, joints: Array) -> Array:
        """Distances of joints (..., n_joints) from the nearer ends of their ranges, as shares of half the range.

        1 in the middle, 0 at the end, negative beyond; infinite for joints without a range, NaN for unknown positions.
        """
        lower, upper = self.limits
        half = 0.5 * (upper - lower)
        bounded = np.isfinite(half) & (half > 0.0)
        left = np.minimum(joints - lower, upper - joints)
        return np.where(bounded, left / np.where(bounded, half, 1.0), np.inf)

    def bring_in(self, solved: Solved, turned: NDArray[np.bool_] | None = None) -> None:
        """Turn joints of rows with status JOINT_LIMIT into their ranges, in configurations that nobody followed there.

        Not for what continues a seed or home: between two positions a turn apart a joint passes its stops. `turned`
        says which joints (n_joints,) may be turned, `turned_freely` by default.
        """
        if np.count_nonzero(solved.status):
            freely = self.turned_freely if turned is None else turned
            self._bring_in.call(*self.limits, freely, solved.status, solved.q)

    @cached_property
    def _bring_in(self) -> Prepared:
        solved = self._unsolved(1, False)
        return Prepared(bring_in, *self.limits, self.turned_freely, solved.status, solved.q)

    @cached_property
    def turned_freely(self) -> NDArray[np.bool_]:
        """Which joints (n_joints,) turn, except those that one more turn would tear from their gear."""
        freely = self.joint_turning.copy()
        freely[[column for gear in self._gears for column in gear[:2]]] = False
        return freely

    @cached_property
    def passive_turned_freely(self) -> NDArray[np.bool_]:
        """Of `turned_freely` those that are not actuated."""
        freely = self.turned_freely.copy()
        freely[self.actuated_column] = False
        return freely

    def data(self, joints: Array | None = None) -> Data:
        """Scratch for the kernels in one thread, with the robot at home, in the mode of joint positions (n_joints,)."""
        data = self.tables.data(chain_state(self.task))
        if joints is not None:
            take_seed(self.model, data, writeable(joints))
            data.system[VECTORS, LAST, :7] = self.home
            if self.iterated:
                set_out(self.model, data, writeable(self.home), NEAREST)
                take_seed(self.model, data, writeable(joints))
        return data

    @cached_property
    def home_row(self) -> Array:
        """The home pose (1, 7) as kernels take it, read-only."""
        return writeable(self.home)[None]

    @property
    def mobility(self) -> int:
        """Number of degrees of freedom of the platform."""
        return self.mechanism.mobility.platform

    @cached_property
    def constant_space(self) -> bool:
        """True where the platform's possible twists are the same at every pose."""
        return self.task.constant and self.task.subspace.shape[1] == self.mobility

    @cached_property
    def direct_inverse(self) -> bool:
        """True where each actuated joint follows from one scalar equation, whatever the passive joints do."""
        blocks = self.tables.blocks
        return bool((blocks["direct"][blocks["actuators"] > 0] == 1).all())

    @cached_property
    def whole_graph(self) -> WholeGraph:
        """All joints as one set of unknowns, for what cannot be solved limb by limb."""
        return WholeGraph(self.mechanism, self.task, self.home_by_name, self.home)

    @cached_property
    def characteristic_length(self) -> float:
        """Length [m] that makes rotations comparable with translations: mean distance of the platform's joints.

        Where these are all at the platform's origin, the robot's longest part.
        """
        c = self.tables.closures
        points = np.vstack(
            [
                c["successor_point"][c["successor"] == records.PLATFORM],
                c["predecessor_point"][c["predecessor"] == records.PLATFORM],
            ]
        )
        if not len(points):  # limbs that the tree leads to from the platform
            points = self.tables.bodies["translation"][self.tables.bodies["parent"] == records.PLATFORM]
        length = float(np.linalg.norm(points, axis=1).mean()) if len(points) else 0.0
        longest = float(self.tables.blocks["size"].max(initial=0.0)) or 1.0
        return length if length > POINT * longest else longest

    def _size(self) -> float:
        """Size of the robot [m]: greatest distance of a limb's joint from the platform at home."""
        at = self.placed(self.home, self.home_joints)
        return float(np.linalg.norm(at.state["p"][2:] - self.home[:3], axis=1).max(initial=0.0)) or 1.0

    # -- input ------------------------------------------------------------------------------------------------------

    def poses(self, pose: ArrayLike) -> tuple[Array, tuple[int, ...]]:
        """Poses (..., 7) or task coordinates (..., k) as rows (n, 7), normalised, and leading axes. Or `ShapeError`."""
        array = pose if ready(pose) else numbers(pose, self._pose_in_words, "pose", "; home is spelled `k.home`")
        shape = array.shape
        if shape[-1] == 7:
            return with_unit_quaternions(in_rows(array)), shape[:-1]
        if array.shape[-1] == len(self.task.names) > 0:
            coordinates = array.reshape(-1, array.shape[-1])
            return self.poses_at(coordinates), array.shape[:-1]
        raise wrong_shape(pose, self._pose_in_words, "pose")

    def one_pose(self, pose: ArrayLike) -> Array:
        """The pose (7,) of a call that takes a single one, (7,) or task coordinates (k,). Raises `ShapeError`."""
        poses, _ = self.poses(pose)
        if len(poses) != 1:
            raise ShapeError(f"pose: expected a single pose, got {len(poses)}")
        return poses[0]

    @cached_property
    def _pose_in_words(self) -> str:
        names = self.task.names
        coordinates = f", or (..., {len(names)}) for {listed(names)}" if names else ""
        return f"an array of shape (..., 7) for x y z qx qy qz qw{coordinates}"

    def poses_at(self, coordinates: Array) -> Array:
        """Poses (n, 7) at task coordinates (n, k); NaN where they are not finite."""
        n = len(coordinates)
        poses = np.full((n, 7), np.nan)
        usable = np.asarray(np.isfinite(coordinates).all(axis=1))
        R, p = np.empty((n, 3, 3)), np.empty((n, 3))
        known = np.where(usable[:, None], coordinates, 0.0)
        place_chains(self.model, self.data(), known, R, p)
        if n:
            poses[usable, :3] = p[usable]
            poses[usable, 3:] = scipy.spatial.transform.Rotation.from_matrix(R).as_quat(canonical=True)[usable]
        return poses

    def branch_at(self, pose: Array) -> dict[str, float]:
        """Positions of the platform's branch at a pose (7,), or of the six joints that stand for it, by name."""
        if self.task.names:
            return dict(zip(self.task.names, (float(q) for q in self._read_chain(pose)["q"][1:]), strict=True))
        return {name: float(values[0]) for name, values in self.stand_in(pose[None]).items()}

    def stand_in(self, poses: Array) -> dict[str, Array]:
        """Positions (n,) by name, at poses (n, 7), of the six joints that stand for a branch where there is none."""
        if self.task.names or not len(poses):
            return {}
        Rotation = scipy.spatial.transform.Rotation
        home = Rotation.from_quat(self.home[3:])
        away = home.inv().apply(poses[:, :3] - self.home[:3])
        angles = (home.inv() * Rotation.from_quat(poses[:, 3:])).as_euler("ZYX")
        return {freedom.name: values for freedom, values in zip(FREE, np.hstack([away, angles]).T, strict=True)}

    def _read_chain(self, pose: Array) -> NDArray[Any]:
        """State of the platform's branch at a pose (7,)."""
        data = self.data()
        read_chain(self.model, data, np.ascontiguousarray(transform_from_pose(pose)[:3, :3]), pose[:3])
        return data.chain

    def rates(self, twist: ArrayLike, acceleration: ArrayLike | None, n: int) -> tuple[Array, Array]:
        """Twists and accelerations as (n, 6) rows. Raises `ShapeError`."""
        twists = rows_for(twist, 6, n, "twist")
        accelerations = np.zeros((n, 6)) if acceleration is None else rows_for(acceleration, 6, n, "acceleration")
        if len(twists) != n:
            twists = writeable(np.broadcast_to(twists, (n, 6)))
        if len(accelerations) != n:
            accelerations = writeable(np.broadcast_to(accelerations, (n, 6)))
        return twists, accelerations

    @cached_property
    def iterated(self) -> bool:
        """True where a limb's positions are found by iteration, so that they depend on where it starts."""
        return bool((self.tables.blocks["solver"] == records.NEWTON).any())

    @cached_property
    def iterated_turns(self) -> NDArray[np.int64]:
        """Bodies whose joints turn and are found by iteration."""
        t = self.tables
        blocks = t.blocks[t.blocks["solver"] == records.NEWTON]
        bodies = np.concatenate([np.arange(b["start"], b["start"] + b["count"]) for b in blocks])
        return np.asarray(bodies[t.bodies["prismatic"][bodies] == 0], dtype=np.int64)

    @property
    def continues(self) -> bool:
        """True where limbs are iterated, and a straight way of the platform from home exists to track them along."""
        return self.iterated and self.constant_space

    def continued(self, poses: Array, joints: Array, branch: int = NEAREST) -> Choice:
        """The configurations at poses (n, 7) that continue `joints` (n_joints,) or (n, n_joints) at home, `branch`."""
        if self.continues and len(poses):
            return Choice(branch, *self._continuation.carried(poses, joints, branch))
        if len(poses) == 1 and joints is self.home_joints:  # most calls: made once
            if branch not in self._near_home:
                self._near_home[branch] = near(joints, 1, branch)._replace(from_home=branch >= 0)
            start = self._near_home[branch]
        else:
            start = near(joints, len(poses), branch)._replace(from_home=branch >= 0)
        if not self.iterated or not len(poses):
            return start
        curve = self._curve(joints) if joints.ndim == 1 else None
        return self._from_home(poses, start, branch) if curve is None else self._on_curve(poses, curve, start, branch)

    def _from_home(self, poses: Array, start: Choice, branch: int) -> Choice:
        """`continued` in a configuration-dependent motion space: iterated from home, else tracked from there."""
        solved = self.solve(poses, start)
        found = closes(solved.status)
        seeds = np.where(found[:, None], solved.q, start.seeds)
        if not found.all():
            seeds[~found] = self._continuation.led(poses[~found], seeds[~found], branch)
        return start._replace(seeds=seeds)

    def _on_curve(self, poses: Array, curve: CouplerCurve, start: Choice, branch: int) -> Choice:
        """`continued` of a mechanism of one degree of freedom: what is on its curve, in the order reached from home.

        Cranks pass dead points on the way: closed forms take the branch nearest by. Off a closed curve: NOT_CONNECTED.
        """
        seeds, arrived = np.array(start.seeds_for(np.arange(len(poses)))), np.zeros(len(poses), dtype=bool)
        turning = self.body_column[self.iterated_turns]
        waiting = np.flatnonzero(np.isfinite(poses).all(axis=1))
        for rank in range(PASSAGES):
            positions, passes = curve.passages(poses[waiting], rank)
            waiting, joints = waiting[passes], positions[passes][:, self._in_whole]
            if not len(waiting):
                break
            beside = near(joints, len(waiting))
            solved = self.solve(self.into_space(poses[waiting], beside), beside)
            with np.errstate(invalid="ignore"):
                moved = np.abs(solved.q - joints)[:, turning].max(axis=1, initial=0.0)
            there = closes(solved.status) & (moved < JUMP)
            seeds[waiting[there]], arrived[waiting[there]] = solved.q[there], True
            waiting = waiting[~there]
        if not (curve.complete or arrived.all()):
            lost = np.flatnonzero(~arrived)
            seeds[lost] = self._from_home(poses[lost], start.rows(lost), branch).seeds
            arrived[lost] = True
        return Choice(NEAREST, seeds, arrived)

    def _curve(self, joints: Array) -> CouplerCurve | None:
        """The curve through a configuration (n_joints,) at home, of a mechanism of one degree of freedom; else None."""
        if self.mechanism.mobility.total != 1:
            return None
        key = joints.tobytes()
        if key not in self._curves:
            whole = self.whole_graph
            start = whole.tables.bodies["home"].copy()
            limits = np.full(len(start), -np.inf), np.full(len(start), np.inf)
            for values, here in zip((start, *limits), (joints, *self.limits), strict=True):
                values[self._in_whole] = here
            drives = self._in_whole[self.actuated_column]
            self._curves[key] = trace(whole, start, drives, limits, self.size)
        return self._curves[key]

    @cached_property
    def _in_whole(self) -> NDArray[np.int64]:
        """Number of each joint among those of the whole graph."""
        names = self.whole_graph.names
        return np.array([names.index(name) for name in self.joint_names], dtype=np.int64)

    @cached_property
    def _continuation(self) -> Continuation:
        return Continuation(self.model, self.data, self.solve, self.home, self.iterated_turns, self.size)

    # -- solves -----------------------------------------------------------------------------------------------------

    def beside_closed_forms(self, poses: Array, choice: Choice) -> NDArray[np.int64]:
        """Rows whose seeds are configurations on a side that no closed form takes; to be solved by `iterating`."""
        if choice.branch != SEEDED or not len(poses):
            return np.empty(0, dtype=np.int64)
        solved = self._solve(poses, choice, NO_RATES, NO_RATES)
        solved.iterations.fill(-1)
        self._keep(poses, choice, NO_RATES, NO_RATES, solved)
        return np.flatnonzero(solved.iterations == 0)

    def _keep(self, poses: Array, choice: Choice, twists: Array, accelerations: Array, solved: Solved) -> None:
        """Put seeds that close the loops in the place of other solutions: they are nearer to what the caller has.

        Closed forms have sides of which only home's are taken (of a leg turned over, of a guide pushed through its
        joint), and where the pose does not determine a limb's joints they take any.
        """
        poses, moving = np.ascontiguousarray(poses), twists is not NO_RATES

        def part(at: slice) -> None:
            rates = (twists[at], accelerations[at]) if moving else (NO_RATES, NO_RATES)
            self._keep_seeds(self.model, choice.rows(at), poses[at], *rates, solved.rows(at))

        if len(poses) < BATCH:
            self._keep_seeds(self.model, choice, poses, twists, accelerations, solved)
        else:
            over_cores(part, len(poses))

    def iterating(self, model: Model) -> Model:
        """A model of this robot whose limbs are all solved by iteration, and so stay on the sides of their seeds."""
        blocks = self.tables.blocks.copy()
        blocks["solver"] = records.NEWTON
        return model.replace(blocks=blocks)

    @cached_property
    def _keep_seeds(self) -> WithScratch:
        poses, rates, solved = np.empty((1, 7)), np.empty((1, 6)), self._unsolved(1, True)
        return WithScratch(keep_seeds, self.data, self.model, self.any_choice, poses, rates, rates, solved)

    def solve(self, poses: Array, choice: Choice, twists: Array = NO_RATES, accelerations: Array = NO_RATES) -> Solved:
        """Positions of all joints at poses (n, 7), and their rates for twists and accelerations (n, 6).

        INVALID_INPUT also where the joint positions to start from are not usable, and SINGULAR at seeds that a limb
        could leave on its own. Without twists, rates have no columns. Runs on all cores if it pays.
        """
        solved = self._solve(poses, choice, twists, accelerations)
        if choice.branch == SEEDED:
            self._keep(poses, choice, twists, accelerations, solved)
        if self._gears:  # seeds, too
            self._keep_ratios(solved)
        return solved

    def _solve(self, poses: Array, choice: Choice, twists: Array, accelerations: Array) -> Solved:
        solved = self._solve_blocks(poses, choice, twists, accelerations)
        if self.divided and (np.count_nonzero(solved.status) or (solved.residual > EXACT * self.size).any()):
            # Where nothing carries limbs from home to the pose, a branch may have been left far from its crossing.
            near = np.flatnonzero(
                np.isin(solved.status, OPEN) & ((solved.residual < FOLDED * self.size) | (not self.continues))
            )
            lost = [k for k in near if self._folded(poses[k], choice.rows([k]))]
            blunt = np.flatnonzero(closes(solved.status) & (solved.residual > EXACT * self.size))
            if lost or len(blunt):
                starts = np.vstack([choice.seeds_for(lost), solved.q[blunt]])
                lost += list(blunt)
                v, a = (x[lost] if len(x) else x for x in (twists, accelerations))
                at = choice._replace(seeds=self._undivided_joints(poses[lost], starts), certain=choice.certain[lost])
                again = self._solve_blocks(poses[lost], at, v, a)
                found = closes(again.status) & (again.residual < solved.residual[lost])
                for rows, better in zip(solved, again, strict=True):
                    rows[np.array(lost)[found]] = better[found]
        return solved

    @cached_property
    def _gears(self) -> list[tuple[int, int, float, float]]:
        """Columns of each mimic joint and of its leader, multiplier and offset."""
        column = {name: k for k, name in enumerate(self.joint_names)}
        return [
            (column[joint.name], column[joint.mimic.joint], joint.mimic.multiplier, joint.mimic.offset)
            for joint in self.mechanism.joints
            if joint.mimic is not None
        ]

    def _keep_ratios(self, solved: Solved) -> None:
        """Drop configurations that tear a gear: loops imply its ratio near home, not in every working mode."""
        torn = np.zeros(len(solved.status), dtype=bool)
        for follower, leader, multiplier, offset in self._gears:
            unit = 1.0 if self.joint_turning[follower] else self.size
            torn |= np.abs(solved.q[:, follower] - multiplier * solved.q[:, leader] - offset) > TORN * unit
        torn &= closes(solved.status)
        if torn.any():
            solved.status[torn], solved.residual[torn] = Status.UNREACHABLE, np.inf
            solved.q[torn], solved.qd[torn], solved.qdd[torn] = np.nan, np.nan, np.nan

    @cached_property
    def divided(self) -> bool:
        """True where a limb has blocks solved by iteration, and after them one with more equations than joints.

        In a singularity of the first block, which the robot as a whole need not notice, its branches cross: a rod pair
        that hangs in a plane with the axis of its plate folds over. Then the later equations stay open.
        """
        blocks = self.tables.blocks
        return any(
            bool((blocks["solver"][a:b] == records.NEWTON).any() & (blocks["rows"] > blocks["count"])[a + 1 : b].any())
            for a, b in self.tables.limbs
        )

    def _folded(self, pose: Array, choice: Choice) -> bool:
        """True where only blocks with more equations than joints stay open."""
        at, blocks = self.placed(pose, choice.seeds[0], choice.branch), self.tables.blocks
        residuals = [block_residual(self.tables.model.closures, block, at.rows) for block in blocks]
        still_open = np.array([not closed(*pair) for pair in zip(blocks, residuals, strict=True)], dtype=bool)
        return bool(still_open.any()) and not (still_open & (blocks["rows"] <= blocks["count"])).any()

    @cached_property
    def _undivided(self) -> Tables:
        """The robot with each limb as one block."""
        at_home = dict(zip(self.joint_names, map(float, self.home_joints), strict=True))
        return build_undivided(self.mechanism, at_home, *(self._generic or (self.home, at_home)))

    def _undivided_joints(self, poses: Array, seeds: Array) -> Array:
        """Joint positions (n, n_joints) at poses (n, 7) near `seeds` (n, n_joints), limbs solved as a whole."""
        found = self._solve_blocks(poses, near(seeds, len(poses)), by=self._undivided)
        return np.where(closes(found.status)[:, None], found.q, seeds)

    def _solve_blocks(
        self,
        poses: Array,
        choice: Choice,
        twists: Array = NO_RATES,
        accelerations: Array = NO_RATES,
        by: Tables | None = None,
    ) -> Solved:
        """`solve`, block after block; `by` other tables of the same robot."""
        n = len(poses)
        poses = np.ascontiguousarray(poses)
        moving = twists is not NO_RATES
        solved = self._unsolved(n, moving)
        if by is not None:
            model, data = self.model.replace(**by.model.of_graph()), by.data(chain_state(self.task))
            solve_many(model, data, choice, poses, twists, accelerations, solved)
            return solved

        def part(at: slice) -> None:
            rates = (twists[at], accelerations[at]) if moving else (NO_RATES, NO_RATES)
            self._solve_many(self.model, choice.rows(at), poses[at], *rates, solved.rows(at))

        if n < BATCH:
            self._solve_many(self.model, choice, poses, twists, accelerations, solved)
        else:
            over_cores(part, n)
        return solved

    @cached_property
    def _solve_many(self) -> WithScratch:
        poses, rates, solved = np.empty((1, 7)), np.empty((1, 6)), self._unsolved(1, True)
        return WithScratch(solve_many, self.data, self.model, self.any_choice, poses, rates, rates, solved)

    def _unsolved(self, n: int, moving: bool) -> Solved:
        """Empty arrays for n solutions, and for their rates if `moving`."""
        if n == 1 and not moving:
            q, none, status, number, count = self._one_unsolved
            return Solved(q.copy(), none, none, status.copy(), number.copy(), count.copy(), number.copy())
        width = len(self.joint_names)
        rates = width if moving else 0
        status, iterations = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        return Solved(nans(n, width), nans(n, rates), nans(n, rates), status, np.zeros(n), iterations, np.zeros(n))

    @cached_property
    def _one_unsolved(self) -> tuple[NDArray[Any], ...]:  # copies are made sooner than arrays
        codes = np.zeros(1, dtype=np.int64)
        return nans(1, len(self.joint_names)), np.empty((1, 0)), codes, np.zeros(1), codes

    @property
    def any_choice(self) -> Choice:
        """A choice for one pose, an example of the type for compiling."""
        return near(np.array(self.home_joints), 1)

    def placed(self, pose: Array, seed: Array, branch: int = NEAREST) -> Placed:
        """All bodies in place at one pose (7,), from joint positions `seed` (n_joints,), or in a branch."""
        return self._placed(self.model, pose, seed, branch)

    def placed_as(self, pose: Array, choice: Choice) -> Placed:
        """All bodies in place at one pose (7,) in the configuration chosen, on whichever side that is."""
        beside = len(self.beside_closed_forms(pose[None], choice)) > 0
        return self._placed(self.iterating(self.model) if beside else self.model, pose, choice.seeds[0], choice.branch)

    def _placed(self, model: Model, pose: Array, seed: Array, branch: int) -> Placed:
        data = self.data()
        take_seed(model, data, writeable(seed))
        status, _, _ = solve_pose(model, data, writeable(pose), branch)
        return Placed(model, data, int(status))

    def inverse_jacobians(self, poses: Array, choice: Choice) -> Array:
        """Actuated joint rates per platform twist (n, n_actuated, 6) at poses (n, 7); NaN where there are none."""
        out = np.full((len(poses), len(self.actuated_names), 6), np.nan)

        def part(at: slice) -> None:
            inverse_jacobians(self.model, self.data(), choice.rows(at), poses[at], out[at])

        over_cores(part, len(poses))
        for k in self.beside_closed_forms(poses, choice):
            at = slice(int(k), int(k) + 1)
            inverse_jacobians(self.iterating(self.model), self.data(), choice.rows(at), poses[at], out[at])
        return out

    def uniform_jacobians(self, poses: Array, choice: Choice) -> Array:
        """Actuated joint rates per unit speed in the motion space (n, n_actuated, mobility); NaN without one."""
        spaces = self.spaces_at(poses, choice)[0]
        return per_unit_speed(self.inverse_jacobians(poses, choice) @ spaces, spaces, self.characteristic_length)

    @cached_property
    def drive_units(self) -> Array:
        """Units [m/s] of the drives' rates (n_actuated,) that make their Jacobian uniform, see `weigh_drives`.

        One for all, unless some drives slide, some turn, and none is redundant.
        """
        mixed = len(set(self.actuated_turning)) > 1 and len(self.actuated_names) == self.mobility
        return np.where(self.actuated_turning & mixed, self.characteristic_length, 1.0)

    def limb_margins(self, poses: Array, choice: Choice) -> tuple[Array, Array]:
        """Margins (n,) from constraint singularities, and from singularities inside a limb: see `Singularity`."""
        blocked = 6 - self.mobility - self.mechanism.mobility.left_out
        poses, hold, regularity = np.ascontiguousarray(poses), np.empty(len(poses)), np.empty(len(poses))

        def part(at: slice) -> None:
            limb_margins(self.model, self.data(), choice.rows(at), poses[at], blocked, hold[at], regularity[at])

        over_cores(part, len(poses))
        for k in self.beside_closed_forms(poses, choice):
            at = slice(int(k), int(k) + 1)
            model, rows = self.iterating(self.model), choice.rows(at)
            limb_margins(model, self.data(), rows, poses[at], blocked, hold[at], regularity[at])
        return hold, regularity

    def limb_conditions(self, poses: Array, choice: Choice, status: NDArray[np.int64]) -> Array:
        """Reciprocal conditions (n,) of the worst limb, as in solves that divide by it; 0 without configuration."""
        found = np.zeros(len(poses))
        rows = np.flatnonzero(closes(status))
        if rows.size:
            found[rows] = np.nan_to_num(self.limb_margins(poses[rows], choice.rows(rows))[1])
        return found

    def drive_conditions(self, poses: Array, joints: Array, status: NDArray[np.int64]) -> Array:
        """Reciprocal conditions (n,) of the drives' Jacobian, as in solves that divide by it; 0 without solution."""
        found = np.zeros(len(poses))
        rows = np.flatnonzero(closes(status))
        if rows.size:
            K = self.uniform_jacobians(poses[rows], near(joints[rows], len(rows)))
            none = np.zeros(len(rows))
            found[rows] = np.nan_to_num(margins(K, none, none, self.characteristic_length, self.drive_units).condition)
        return found

    # -- motion space -----------------------------------------------------------------------------------------------

    def space_at(self, pose: Array, joints: Array, twist: Array | None = None) -> tuple[Array, Array]:
        """`spaces_at` one pose (7,), near joint positions (n_joints,): S (6, mobility), and the acceleration (6,)."""
        spaces, biases = self.spaces_at(pose[None], near(joints, 1, SEEDED), None if twist is None else twist[None])
        return spaces[0], biases[0]

    def spaces_at(self, poses: Array, choice: Choice, twists: Array | None = None) -> tuple[Array, Array]:
        """Bases S (n, 6, mobility) of the motion spaces at poses (n, 7), and accelerations (n, 6) imposed by twists.

        Twists are (n, 6), at rest where None; NaN where a pose has no regular configuration.
        """
        n, task = len(poses), self.task
        if self.constant_space:
            return np.broadcast_to(task.subspace, (n, *task.subspace.shape)), np.zeros((n, 6))
        spaces, biases = np.empty((n, 6, self.mobility)), np.empty((n, 6))
        at = np.zeros((n, 6)) if twists is None else np.ascontiguousarray(twists)
        poses = np.ascontiguousarray(poses)
        motion_spaces(self.model, self.data(), choice, poses, at, spaces, biases)
        for k in self.beside_closed_forms(poses, choice):
            row, data = slice(int(k), int(k) + 1), self.data()
            model = self.iterating(self.model)
            motion_spaces(model, data, choice.rows(row), poses[row], at[row], spaces[row], biases[row])
        return spaces, biases

    def space_in(self, model: Model, data: Data, pose: Array, twist: Array) -> tuple[Array, Array]:
        """As `spaces_at`, at the one pose (7,) whose positions are in the data, its blocks inverted."""
        space, bias = np.empty((6, self.mobility)), np.empty(6)
        if not self.task.constant:  # the branch moves along, and with it what it blocks
            read_chain(model, data, np.ascontiguousarray(transform_from_pose(pose)[:3, :3]), pose[:3])
        motion_space(model, data, np.ascontiguousarray(self.allowed_at(pose)), twist, space, bias)
        return space, bias

    def into_space(self, poses: Array, choice: Choice) -> Array:
        """Poses (n, 7), those moved into a configuration-dependent motion space that miss it by rounding only.

        For poses in single precision. Kernels do so where the platform's branch alone is the motion space; here limbs
        hold the platform too, and the nearest configuration says where. Poses farther away stay; the same array where
        nothing had to be done.
        """
        if self.constant_space:
            return poses
        solved = self._solve_blocks(poses, choice)
        near = np.flatnonzero(np.isin(solved.status, OPEN) & (solved.residual < ROUNDED * self.size))
        if not len(near):
            return poses
        moved = poses.copy()
        for k, seed in zip(near, choice.seeds_for(near), strict=True):
            joints = np.array(seed)
            joints[self.body_column[2:]] = self.placed(poses[k], seed, choice.branch).state["q"][2:]
            start = dict(zip(self.joint_names, joints, strict=True)) | self.branch_at(poses[k])
            found = self.whole_graph.nearest(start, self.characteristic_length).pose
            if found is not None and pose_distance(poses[k], found[None], self.size)[0] < INSIDE * self.size:
                moved[k] = found
        return moved

    def allowed_at(self, pose: Array) -> Array:
        """Twists (6, c) that the platform's own branch allows at a pose."""
        return self.task.subspace if self.task.constant else self.branch_twists(pose[None])[0]

    def branch_twists(self, poses: Array) -> Array:
        """Twists (n, 6, k) of the platform per rate of each joint of its branch, at poses (n, 7); NaN if unusable."""
        found = np.full((len(poses), 6, len(self.task.names)), np.nan)
        usable = np.flatnonzero(np.isfinite(poses).all(axis=1))
        if not len(usable):
            return found
        data = self.data()
        home = data.chain.copy()  # where each row begins: near a degenerate angle no row shall depend on others
        for k in usable:
            data.chain[:] = home
            read_chain(self.model, data, rotation_from_quaternion(poses[k, 3:]), poses[k, :3])
            found[k] = allowed_twists(self.model, data, poses[k])
        return found

    def outside(self, poses: Array, rates: Array, choice: Choice) -> NDArray[np.bool_]:
        """Which twists or accelerations (n, 6) the platform cannot have at poses (n, 7), or are too large to square."""
        scale = self.rate_scale
        if self.constant_space:
            off: NDArray[np.bool_] = np.empty(len(rates), dtype=np.bool_)
            self._off_space(np.ascontiguousarray(rates), scale, self.onto_space, INSIDE, off)
            return off
        spaces = self.spaces_at(poses, choice)[0]
        Q = np.linalg.qr(np.nan_to_num(spaces) * scale[:, None])[0]
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = rates * scale
            size = np.linalg.norm(scaled, axis=1)
            left = scaled - np.einsum("nik,njk,nj->ni", Q, Q, scaled)
            off = np.linalg.norm(left, axis=1) > INSIDE * (1.0 + size)
        return np.asarray((off & np.isfinite(spaces).all(axis=(1, 2))) | ~(size < np.inf))

    def nearest_accelerations(
        self, accelerations: Array, spaces: Array, biases: Array
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The possible accelerations (n, 6) nearest to given ones, and which of those given are ASTRAY from them.

        For configuration-dependent motion spaces, with `spaces` (n, 6, k) and `biases` (n, 6) from `spaces_at`; NaN
        where there is no space. A moving platform has `biases` even at constant velocity in the space, and callers
        rarely know them exactly: feedback and interpolated trajectories miss them by up to a percent.
        """
        scale = self.rate_scale
        Q = np.linalg.qr(np.nan_to_num(spaces) * scale[:, None])[0]
        with np.errstate(invalid="ignore", over="ignore"):
            free = (accelerations - biases) * scale
            kept = np.einsum("nik,njk,nj->ni", Q, Q, free)
            size = 1.0 + np.linalg.norm(accelerations * scale, axis=1) + np.linalg.norm(biases * scale, axis=1)
            astray = np.asarray((np.linalg.norm(free - kept, axis=1) > ASTRAY * size) | ~(size < np.inf))
            nearest = biases + kept / scale
        known = np.asarray(np.isfinite(spaces).all(axis=(1, 2), keepdims=True))[:, :, 0]
        return np.where(known, nearest, np.nan), astray & known[:, 0]

    @cached_property
    def _off_space(self) -> Callable[..., None]:
        example = np.empty((1, 6)), self.rate_scale, self.onto_space, INSIDE, np.empty(1, dtype=np.bool_)
        return Prepared(off_space, *example).call

    @cached_property
    def rate_scale(self) -> Array:
        """Factors (6,) that make twists speeds [m/s]: rotations at the characteristic length."""
        return scaling(self.characteristic_length)

    @cached_property
    def onto_space(self) -> Array:
        """Orthogonal projector (6, 6) onto the constant motion space, of rates at `rate_scale`.

        Empty (0, 6) where the space is not constant, or all six dimensions.
        """
        if not self.constant_space or self.mobility == 6:
            return np.empty((0, 6))
        Q = np.linalg.qr(self.task.subspace * scaling(self.characteristic_length)[:, None])[0]
        projector: Array = Q @ Q.T
        return projector


def _with(record: NDArray[Any], **values: float) -> NDArray[Any]:
    """A read-only copy of a record array with some fields changed."""
    changed = record.copy()
    for name, value in values.items():
        changed[name] = value
    changed.setflags(write=False)
    return changed
