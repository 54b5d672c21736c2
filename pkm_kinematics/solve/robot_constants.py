# SPDX-License-Identifier: Apache-2.0
"""What is constant of one robot: its tables, the platform's task, names and their columns, ranges, the kernel model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import home_positions
from pkm_description.loops.mobility import beside_home, check_gears
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import pose_from_transform
from pkm_kinematics.batch import nans
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import NEAREST, VECTORS, Choice, Data, Model, Solved, near, writeable
from pkm_kinematics.kernels.path.carry_on import LAST, set_out
from pkm_kinematics.kernels.position.closed_form import bend
from pkm_kinematics.kernels.position.solve_poses import LIMIT_SLACK, solve_pose, take_seed, wrap_into_limits
from pkm_kinematics.model.blocks import build_tables
from pkm_kinematics.model.tables import Task, build_task, chain_state
from pkm_kinematics.solve.whole_graph import WholeGraph
from pkm_kinematics.status import JointNames, closes
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import Prepared

POINT = 0.01  # of the longest part: joints nearer to one point are in it, but for the errors of a calibrated machine


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


def place(model: Model, data: Data, pose: Array, seed: Array, branch: int) -> Placed:
    """All bodies of a model in place at one pose (7,), from joint positions `seed` (n_joints,), or in a branch."""
    take_seed(model, data, writeable(seed))
    status, _, _ = solve_pose(model, data, writeable(pose), branch)
    return Placed(model, data, int(status))


class RobotConstants:
    """Constant data of one robot, and scratch for its kernels."""

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
        self.generic = generic
        self.redundant_names: tuple[str, ...] = mechanism.redundant_joints
        self.redundant_column = np.array([column[name] for name in self.redundant_names], dtype=np.int64)
        # rates of redundant joints per twist, and their change per displacement of the platform from home
        self.redundant_follow: Array = np.pad(mechanism.redundant_follow, ((0, 0), (0, 3)))
        if self.redundant_names:
            self._check_redundancy()
        self.model: Model = self._model()
        self.size = self._size()
        self.model = self.model.replace(task=_with(self.model.task, size=self.size), blocks=self._bent())

    def _check_redundancy(self) -> None:
        problem = ""
        if not self.constant_space:
            problem = "the platform's motion space depends on the pose"
        elif self.freedoms > records.WIDEST:
            problem = f"the robot has {self.freedoms} degrees of freedom, more than {records.WIDEST}"
        if problem:
            names = ", ".join(self.redundant_names)
            remedy = (
                f"give the platform virtual joints for its own degrees of freedom, the first of them on the fixed link "
                f"{self.mechanism.base_link!r}, or fix joints that are too many"
            )
            raise DescriptionError("<robot>", f"kinematic redundancy ({names}): {problem}: not supported", remedy)

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
            turning=not self.constant_space,
            divided=self.divided,
            length=self.characteristic_length,
            size=float(self.tables.blocks["size"].max(initial=0.0)) or 1.0,  # until that at home is known
        )
        return self.tables.model.replace(chain=self.task.chain, task=task, subspace=self.task.subspace)

    def data(self, joints: Array | None = None, pose: Array | None = None) -> Data:
        """Scratch for the kernels in one thread, the robot at joints (n_joints,) and their pose (7,), or home."""
        data = self.tables.data(chain_state(self.task))
        if joints is not None:
            take_seed(self.model, data, writeable(joints))
            data.system[VECTORS, LAST, :7] = pose = writeable(self.home if pose is None else pose)
            if self.iterated:
                set_out(self.model, data, pose, NEAREST)
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

    @property
    def freedoms(self) -> int:
        """Number of degrees of freedom of platform and redundant joints together."""
        return self.mobility + len(self.redundant_names)

    @cached_property
    def constant_space(self) -> bool:
        """True where the platform's possible twists are the same at every pose."""
        return self.task.constant and self.task.subspace.shape[1] == self.mobility

    @cached_property
    def direct_inverse(self) -> bool:
        """True where each actuated joint follows from one scalar equation, whatever the passive joints do."""
        blocks = self.tables.blocks
        return not self.redundant_names and bool((blocks["direct"][blocks["actuators"] > 0] == 1).all())

    @cached_property
    def whole_graph(self) -> WholeGraph:
        """All joints as one set of unknowns, for what cannot be solved limb by limb."""
        return WholeGraph(self.mechanism, self.task, self.home_by_name, self.home)

    @cached_property
    def in_whole(self) -> NDArray[np.int64]:
        """Number of each joint among those of the whole graph."""
        names = self.whole_graph.names
        return np.array([names.index(name) for name in self.joint_names], dtype=np.int64)

    @cached_property
    def characteristic_length(self) -> float:
        """Mean distance [m] of the platform's joints, else the longest part: makes rotations translations."""
        c = self.tables.closures
        if self.mechanism.platform_chain and not self.mechanism.virtual_chain:  # which is no limb beside the task
            c = c[(c["kind"] != records.FIXED) | (c["successor"] != records.PLATFORM)]
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

    @cached_property
    def iterated(self) -> bool:
        """True where a limb's positions are found by iteration, so that they depend on where it starts."""
        return bool((self.tables.blocks["solver"] == records.NEWTON).any())

    @property
    def continues(self) -> bool:
        """True where limbs are iterated, and a straight way of the platform from home exists to track them along."""
        return self.iterated and self.constant_space

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

    @cached_property
    def gears(self) -> list[tuple[int, int, float, float]]:
        """Columns of each mimic joint and of its leader, multiplier and offset."""
        column = {name: k for k, name in enumerate(self.joint_names)}
        return [
            (column[joint.name], column[joint.mimic.joint], joint.mimic.multiplier, joint.mimic.offset)
            for joint in self.mechanism.joints
            if joint.mimic is not None
        ]

    @cached_property
    def drive_units(self) -> Array:
        """Units [m/s] of the drives' rates (n_actuated,) that make their Jacobian uniform, see `weigh_drives`."""
        mixed = len(set(self.actuated_turning)) > 1 and len(self.actuated_names) == self.freedoms
        return np.where(self.actuated_turning & mixed, self.characteristic_length, 1.0)

    @property
    def any_choice(self) -> Choice:
        """A choice for one pose, an example of the type for compiling."""
        return near(np.array(self.home_joints), 1)

    def placed(self, pose: Array, seed: Array, branch: int = NEAREST) -> Placed:
        """All bodies in place at one pose (7,), from joint positions `seed` (n_joints,), or in a branch."""
        return place(self.model, self.data(), pose, seed, branch)


def refuse_redundant(names: tuple[str, ...], what: str) -> None:
    """Raise `PkmError` where a robot has redundant joints of these names: `what` is not known for it."""
    if names:
        raise PkmError(
            f"{what}: not supported for kinematically redundant robots (redundant joints: {', '.join(names)})"
        )


def _with(record: NDArray[Any], **values: float) -> NDArray[Any]:
    changed = record.copy()
    for name, value in values.items():
        changed[name] = value
    changed.setflags(write=False)
    return changed


class JointRanges:
    """Ranges of all joints of one robot."""

    def __init__(self, robot: RobotConstants) -> None:
        self.robot = robot

    @cached_property
    def limits(self) -> tuple[Array, Array]:
        """Lower and upper ends (n_joints,) of the joints' ranges, rounding allowed for."""
        lower, upper = np.full(len(self.robot.joint_names), -np.inf), np.full(len(self.robot.joint_names), np.inf)
        for table in (self.robot.tables.bodies[2:], self.robot.task.chain[1:]):
            slack = LIMIT_SLACK * np.where(table["prismatic"] == 1, self.robot.size, 1.0)
            lower[table["column"]], upper[table["column"]] = table["lower"] - slack, table["upper"] + slack
        return lower, upper

    def beyond(self, joints: Array) -> NDArray[np.bool_]:
        """Which joints (..., n_joints) are outside their ranges."""
        lower, upper = self.limits
        return np.asarray((joints < lower) | (joints > upper))

    def violations(self, joints: Array) -> list[str]:
        """One sentence per joint of `joints` (n_joints,) outside its range, in the order of the description."""
        sentences = []
        for column in np.flatnonzero(self.beyond(joints)):
            name = self.robot.joint_names[column]
            q, unit = joints[column], self.robot.names.units[name]
            lower, upper = (float(ends[column]) for ends in self.limits)
            end = lower if q < lower else upper
            digits = next((n for n in range(4, 17) if f"{q:.{n}g}" != f"{end:.{n}g}"), 17)
            back = q - np.sign(q - end) * 2.0 * np.pi
            turned = f" ({back:.{digits}g} rad, a turn back, is inside)" if lower <= back <= upper else ""
            turned = turned if unit == "rad" else ""
            sentences.append(f"joint '{name}' at {q:.{digits}g} {unit} is outside [{lower:.4g}, {upper:.4g}]{turned}")
        return sentences

    def shares(self, joints: Array) -> Array:
        """Distances of joints (..., n_joints) from nearer ends of their ranges, in half ranges; inf without one."""
        lower, upper = self.limits
        half = 0.5 * (upper - lower)
        bounded = np.isfinite(half) & (half > 0.0)
        left = np.minimum(joints - lower, upper - joints)
        return np.where(bounded, left / np.where(bounded, half, 1.0), np.inf)

    def wrap_into_limits(self, solved: Solved, turned: NDArray[np.bool_] | None = None) -> None:
        """Turn joints of rows with status JOINT_LIMIT into their ranges, in configurations that nobody followed there.

        Not for what continues a seed or home: between two positions a turn apart a joint passes its stops.
        """
        if np.count_nonzero(solved.status):
            freely = self.turned_freely if turned is None else turned
            self._wrap_into_limits.call(*self.limits, freely, solved.status, solved.q)

    @cached_property
    def _wrap_into_limits(self) -> Prepared:
        status, joints = np.zeros(1, dtype=np.int64), nans(1, len(self.robot.joint_names))
        return Prepared(wrap_into_limits, *self.limits, self.turned_freely, status, joints)

    @cached_property
    def turned_freely(self) -> NDArray[np.bool_]:
        """Which joints (n_joints,) turn, except those that one more turn would tear from their gear."""
        freely = self.robot.joint_turning.copy()
        freely[[column for gear in self.robot.gears for column in gear[:2]]] = False
        return freely

    @cached_property
    def passive_turned_freely(self) -> NDArray[np.bool_]:
        """Of `turned_freely` those that are not actuated."""
        freely = self.turned_freely.copy()
        freely[self.robot.actuated_column] = False
        return freely
