# SPDX-License-Identifier: Apache-2.0
"""From a `Mechanism` to the record tables that the kernels read, and the coordinates of the platform's pose.

Every mechanism is brought to one form: the platform is a free body whose pose is given, and each limb is a set of
bodies that closures tie to it. If the description has the platform on a branch of its own, that branch is the motion
space, and its joint positions are the robot's task coordinates; if the platform hangs on a limb, the limb's last joint
carries a massless body that a fixed closure welds to the platform.

With three turning joints on the branch every orientation is allowed, and velocities are then the angular velocity
itself, free of the singularities of the angles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import Freedom, frame_along, freedoms, transform_along
from pkm_description.loops.closure import ROUNDED
from pkm_description.mechanism import Array, Joint, Loop, LoopType, Mechanism
from pkm_description.rotations import transform
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import MATRICES, SLOWEST, Data, Model, Records, copy_records
from pkm_kinematics.kernels.position.closures import start_rows
from pkm_kinematics.kernels.records import BASE, JOINT_SPRING, PLATFORM

_KINDS = {
    LoopType.SPHERICAL: (records.SPHERICAL, 3),
    LoopType.UNIVERSAL: (records.UNIVERSAL, 4),
    LoopType.REVOLUTE: (records.REVOLUTE, 5),
    LoopType.CYLINDRICAL: (records.CYLINDRICAL, 4),
    LoopType.PRISMATIC: (records.PRISMATIC, 5),
    LoopType.PLANAR: (records.PLANAR, 3),
    LoopType.FIXED: (records.FIXED, 6),
}


@dataclass
class Body:
    """A body while the tables are being built; frames as in `kernels/records.py`."""

    name: str  # of the joint that carries it
    parent: int
    prismatic: bool = False
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))
    ten: Array = field(default_factory=lambda: np.zeros(10))  # `Inertial.ten`
    joint: Joint | None = None
    given: bool = False  # its position is a redundant coordinate


@dataclass
class Closure:
    """A closure while the tables are being built: loop frames in the body frames, z along the joint's axis."""

    name: str
    kind: int
    rows: int
    predecessor: int
    successor: int
    predecessor_frame: Array
    successor_frame: Array


@dataclass(frozen=True)
class Graph:
    """Bodies and closures in the canonical form, in the order of the description, and where each link lies."""

    bodies: list[Body]
    closures: list[Closure]
    link_body: dict[str, int]
    link_frame: dict[str, Array]  # link frame in its body frame


def body_behind(freedom: Freedom, parent: int, at: Array, joint: Joint | None = None) -> tuple[Body, Array]:
    """The body that a degree of freedom at `at` (4, 4) of the parent moves, z its axis, and that frame in it."""
    align = frame_along(freedom.axis)
    body = Body(freedom.name, parent, freedom.slides, at[:3, :3] @ align, at[:3, 3].copy(), joint=joint)
    return body, transform(np.zeros(3), align.T)


def build_graph(mechanism: Mechanism) -> Graph:
    """Bring a mechanism to the canonical form: merge fixed links, make the platform free, split joints."""
    bodies = [Body("base", -1), Body("platform", -1)]
    closures: list[Closure] = []
    link_body = {mechanism.base_link: BASE}
    link_frame: dict[str, Array] = {mechanism.base_link: np.eye(4)}
    chain = set(mechanism.virtual_chain)

    for joint in mechanism.joints:
        if joint.name in chain:
            if joint.child == mechanism.platform_link:
                link_body[joint.child], link_frame[joint.child] = PLATFORM, np.eye(4)
            continue
        at = link_frame[joint.parent] @ joint.origin
        carrier = link_body[joint.parent]
        for freedom in freedoms(joint):
            body, at = body_behind(freedom, carrier, at, joint)
            body.given = body.name in mechanism.redundant_joints
            bodies.append(body)
            carrier = len(bodies) - 1
        if joint.child == mechanism.platform_link:
            closures.append(Closure(joint.name, records.FIXED, 6, carrier, PLATFORM, at, np.eye(4)))
            carrier, at = PLATFORM, np.eye(4)
        link_body[joint.child], link_frame[joint.child] = carrier, at

    for link in mechanism.links:
        if link.name in link_body and not link.inertial.massless:
            body = bodies[link_body[link.name]]
            body.ten = body.ten + link.inertial.in_frame(link_frame[link.name]).ten
    for loop in mechanism.loops:
        closures.append(_closure(loop, link_body, link_frame))
    return Graph(bodies, closures, link_body, link_frame)


def add_mass(row: Any, ten: Array) -> None:
    """Add `Inertial.ten` (10,), in the body's frame, to a record of `records.BODY`."""
    row["mass"] += ten[0]
    row["moment"] += ten[1:4]
    row["inertia"] += ten[4:]
    row["massless"] = row["mass"] == 0.0 and not row["inertia"].any()


def _closure(loop: Loop, link_body: dict[str, int], link_frame: dict[str, Array]) -> Closure:
    """A loop with its frames turned so that z is the joint's axis (the second axis, on a universal's successor)."""
    kind, rows = _KINDS[loop.type]
    turn = turn_successor = transform_along(loop.axis)
    if loop.type is LoopType.UNIVERSAL or not np.allclose(loop.axis, loop.axis2, atol=1e-12):
        turn_successor = transform_along(loop.axis2)
    return Closure(
        loop.name,
        kind,
        rows,
        link_body[loop.predecessor],
        link_body[loop.successor],
        link_frame[loop.predecessor] @ loop.predecessor_frame @ turn,
        link_frame[loop.successor] @ loop.successor_frame @ turn_successor,
    )


def columns_of(mechanism: Mechanism) -> dict[str, int]:
    """Column of each joint of one degree of freedom in arrays of all joints, by name: the order of the description."""
    joints = (mechanism.joint_named[name] for name in mechanism.moving_joints)
    names = [freedom.name for joint in joints for freedom in freedoms(joint)]
    return {name: k for k, name in enumerate(names)}


def body_table(
    bodies: list[Body], actuated: tuple[str, ...], home: dict[str, float], column: dict[str, int]
) -> Records:
    """The bodies as a record array; `home` holds positions, `column` the columns of joints by name."""
    table = np.zeros(len(bodies), dtype=records.BODY)
    index = {name: k for k, name in enumerate(actuated)}
    for row, body in zip(table, bodies, strict=True):
        row["parent"] = body.parent
        row["prismatic"] = body.prismatic
        row["rotation"] = body.rotation
        row["translation"] = body.translation
        add_mass(row, body.ten)
        row["actuator"] = index.get(body.name, -1)
        row["lower"], row["upper"] = -np.inf, np.inf
        row["velocity"], row["effort"] = np.inf, np.inf
        row["home"] = home.get(body.name, 0.0)
        row["column"] = column.get(body.name, -1)
        joint = body.joint
        if joint is None:
            continue
        row["viscous"], row["coulomb"] = joint.viscous_friction, joint.coulomb_friction
        if body.name == joint.name:
            limits = joint.limits
            row["lower"], row["upper"] = limits.lower, limits.upper
            row["velocity"], row["effort"] = limits.velocity, limits.effort
        if joint.drive is not None:
            row["armature"] = joint.drive.armature
    return table


def closure_table(closures: list[Closure]) -> Records:
    """The closures as a record array; anchors are filled when the blocks are known."""
    table = np.zeros(len(closures), dtype=records.CLOSURE)
    at = 0
    for row, closure in zip(table, closures, strict=True):
        row["kind"], row["rows"], row["rows_at"] = closure.kind, closure.rows, at
        row["predecessor"], row["successor"] = closure.predecessor, closure.successor
        row["predecessor_rotation"] = closure.predecessor_frame[:3, :3]
        row["predecessor_point"] = closure.predecessor_frame[:3, 3]
        row["successor_rotation"] = closure.successor_frame[:3, :3]
        row["successor_point"] = closure.successor_frame[:3, 3]
        at += closure.rows
    return table


def spring_table(mechanism: Mechanism, graph: Graph, new: dict[int, int], home: dict[str, float]) -> Records:
    """The springs as records, those of joints last; `new` has places of the graph's bodies, `home` joints by name."""
    sprung = [k for k, body in enumerate(graph.bodies) if body.joint is not None and body.joint.spring_stiffness > 0.0]
    table = np.zeros(len(mechanism.springs) + len(sprung), dtype=records.SPRING)
    for row, spring in zip(table, mechanism.springs, strict=False):
        ends = (spring.from_link, spring.from_point), (spring.to_link, spring.to_point)
        for side, (link, point) in zip(("first", "second"), ends, strict=True):
            row[side] = new[graph.link_body[link]]
            row[f"{side}_point"] = (graph.link_frame[link] @ np.append(point, 1.0))[:3]
        row["stiffness"], row["rest"], row["preload"] = spring.stiffness, spring.rest_length, spring.preload
    for row, k in zip(table[len(mechanism.springs) :], sprung, strict=True):
        joint: Any = graph.bodies[k].joint
        row["kind"], row["first"], row["second"] = JOINT_SPRING, new[graph.bodies[k].parent], new[k]
        row["stiffness"], row["rest"] = joint.spring_stiffness, joint.spring_reference
        row["home"] = home.get(joint.name, 0.0)
    return table


@dataclass(frozen=True, eq=False)
class Tables:
    """The constant tables of one mechanism, in solving order."""

    bodies: Records  # records.BODY
    closures: Records  # records.CLOSURE
    blocks: Records  # records.BLOCK
    gravity: Array  # (3,)
    names: tuple[str, ...]  # joint that carries each body
    closure_names: tuple[str, ...]  # loop of each closure, or the joint that it welds to the platform
    n_rows: int
    n_work: int
    limbs: tuple[tuple[int, int], ...]  # first and last + 1 block of each limb
    springs: Records = field(default_factory=lambda: np.zeros(0, dtype=records.SPRING))
    redundant: int = 0  # number of redundant coordinates

    @cached_property
    def model(self) -> Model:
        """The robot for kernels, without the platform's branch, which `Engine.model` adds; views of the tables."""
        tables = self.bodies, self.closures, self.blocks, self.limb_blocks, *NO_BRANCH, self.springs
        return Model(*tables)

    @property
    def limb_blocks(self) -> NDArray[np.int64]:
        """First block of each limb, and the one after its last (k, 2)."""
        return np.array(self.limbs, dtype=np.int64).reshape(-1, 2)

    def data(self, chain: Records | None = None) -> Data:
        """Scratch of one thread, at home; `chain` is the state of the platform's branch, if there is one."""
        data = self._fresh() if self.closures.flags.writeable else self._blank.copy()  # writeable: still being made
        return data if chain is None else data.replace(chain=chain)

    @cached_property
    def _blank(self) -> Data:
        return self._fresh()

    def _fresh(self) -> Data:
        state = np.zeros(len(self.bodies), dtype=records.STATE)
        state["q"] = self.bodies["home"]
        state["c"], state["s"] = np.cos(self.bodies["home"]), np.sin(self.bodies["home"])
        state["R"][BASE] = np.eye(3)
        state["dv"][BASE] = -self.gravity
        rows = np.zeros(self.n_rows, dtype=records.ROW)
        start_rows(self.model.closures, rows)
        width = max(int(self.bodies["actuator"].max(initial=-1)) + 1, SLOWEST + 1, 6 + self.redundant)
        branch = np.zeros(1, dtype=records.STATE)
        return Data(state, rows, np.zeros(self.n_work), branch, np.zeros((MATRICES, width, width)))


NO_BRANCH = np.zeros(1, dtype=records.BODY), np.zeros(1, dtype=records.TASK), np.eye(6)


@dataclass(frozen=True, eq=False)
class Task:
    """The platform's branch: `chain` (records.BODY, base first), and the motion space `subspace` (6, n).

    Its columns are twists (linear, angular; base frame, at the platform origin), `constant` if the same at every pose.
    """

    names: tuple[str, ...]  # joints of the branch
    chain: Records
    record: Records  # (1,) records.TASK, without what is not the branch's
    subspace: Array
    constant: bool

    @cached_property
    def state_at_home(self) -> Records:
        """State of the branch (records.STATE) with its joints at home, not placed; to be copied."""
        state = np.zeros(len(self.chain), dtype=records.STATE)
        state["q"] = self.chain["home"]
        state["R"][0] = np.eye(3)
        return state


def build_task(mechanism: Mechanism, home: dict[str, float]) -> Task:
    """The task of a mechanism. Raises `DescriptionError` for joints of its branch, or an order, not supported."""
    bodies = [Body("base", -1)]
    at = np.eye(4)
    names = []
    for name in mechanism.platform_chain:
        joint = mechanism.joint_named[name]
        at = at @ joint.origin
        if joint.type.dof == 0:
            continue
        if joint.type.dof > 1:
            remedy = "use a chain of prismatic and revolute joints, whose positions are the task coordinates"
            raise DescriptionError(f"joint '{name}'", f"a {joint.type.value} joint cannot carry the platform", remedy)
        (freedom,) = freedoms(joint)
        body, at = body_behind(freedom, len(bodies) - 1, at, joint)
        bodies.append(body)
        names.append(name)
    chain = body_table(bodies, (), home, columns_of(mechanism))
    slides_first = [bool(row["prismatic"]) for row in chain[1:]]
    sliding = sum(slides_first)
    turning = len(names) - sliding
    if slides_first != [True] * sliding + [False] * turning or turning > 3 or sliding > 3:
        remedy = "put up to three prismatic joints first and up to three revolute joints after them"
        raise DescriptionError(f"platform branch {', '.join(names)}", "its order of joints is not supported", remedy)
    directions = []
    R = np.eye(3)
    for row in chain[1:]:
        R = R @ row["rotation"]
        directions.append(R[:, 2])
    slide = np.array(directions[:sliding]).reshape(sliding, 3).T
    subspace = np.zeros((6, len(names)))
    subspace[:3, :sliding] = slide
    if turning == 3:
        subspace[3:, sliding:] = np.eye(3)
    elif turning:
        subspace[3:, sliding:] = np.array(directions[sliding:]).T
    if not names:
        subspace = np.eye(6)
    spread = np.zeros((3, 3))
    if sliding:
        spread[:sliding] = np.linalg.pinv(slide)
    # a turning platform whose origin is off the axes would carry its origin along
    offset = np.abs([*chain["translation"][2 + sliding :], at[:3, 3]]).max() > ROUNDED
    constant = turning == 0 or (turning in (1, 3) and not offset) or len(names) == 6
    record = np.zeros(1, dtype=records.TASK)
    record["sliding"], record["spread"], record["constant"] = sliding, spread, constant
    record["tail"], record["tail_point"] = at[:3, :3], at[:3, 3]
    for array in (chain, record, subspace):
        array.setflags(write=False)
    return Task(tuple(names), chain, record, subspace, constant)


def chain_state(task: Task) -> Records:
    """Scratch state of the branch, at home."""
    return copy_records(task.state_at_home)
