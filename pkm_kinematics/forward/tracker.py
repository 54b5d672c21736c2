# SPDX-License-Identifier: Apache-2.0
"""From actuator readings to the motion of the whole robot, and in which working and assembly mode it is.

One tracker serves nodes, controllers and observers: its answer continues the last one, in the same working and assembly
mode, or is a status. A reading takes one compiled call: in a constant motion space of the path on the pose alone, else
of the whole graph.

A working mode ends where a limb is stretched or folded, in a singularity of type 1; an assembly mode where the limbs
lose hold of the platform, in one of type 2. Both show as changes of sign: of the derivative of a limb's distance
equation by its driver, of the determinant of a limb's Jacobian, of that of the direct Jacobian (Gosselin and Angeles
1990). A sign says that a singularity was passed, not always where that led: limbs that are solved by iteration, and
assembly modes on the same side, are then searched among all modes, once per change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_kinematics.assembly.method import REDUNDANT
from pkm_kinematics.forward.along_path import ForwardSolution
from pkm_kinematics.forward.graph_tracker import GraphTracker
from pkm_kinematics.kernels.dense import all_finite
from pkm_kinematics.kernels.model_and_data import SEEDED, near
from pkm_kinematics.kernels.path.assembled import read_modes
from pkm_kinematics.kernels.path.track_reading import track_reading
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import Status, closes
from pkm_runtime.kernels.binding import bind

SAME_WAY = 0.05  # of the way to a reading before which a singularity lies: it also lies before those so near to it


class ModeReader:
    """On which sides of its singularities a configuration is; see `kernels.path.assembled`. Not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        e = engine
        self.sides = np.ones(len(e.tables.blocks))
        blocks = e.tables.blocks
        self._weights = np.where(blocks["branches"] > 1, blocks["stride"], 0)
        work = e.tables.n_work
        fixed = (e.model, e.data(), np.zeros(work), np.zeros(work), self.sides)
        self._read: Callable[..., Any] = bind(read_modes, fixed, (np.array(e.home), np.array(e.home_joints)))

    def read(self, pose: Array, joints: Array) -> tuple[int, float]:
        """Status, and the platform's side (1.0, -1.0, 0.0 where singular); writes sides of blocks to `sides`."""
        status, side = self._read(pose, joints)
        return status, side

    @property
    def branch(self) -> int:
        """Number of the working mode read last, as far as closed forms tell it."""
        return int(self._weights @ (self.sides < 0.0))


@dataclass(frozen=True)
class Modes:
    """Labels as `Kinematics.inverse_all` and `forward_all` give them, or empty; `change` says where one changed."""

    working: str
    assembly: str
    change: str = ""


class ModeTracker:
    """Labels the configurations of one motion, each a short way from the one before. Not thread-safe.

    The first configuration is taken to be in home's assembly mode if it is on home's side, where `forward` stays that
    starts at home; also where the side cannot be told from a configuration alone (`AssemblyMethod.unsigned` is `?`),
    and changes are tracked from there. Modes of robots with redundant actuators or joints are called `redundant`.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self._reader = ModeReader(kinematics.engine)
        blocks = kinematics.tables.blocks
        self._iterated = blocks["solver"] == NEWTON
        self._actuated = blocks["actuators"] > 0
        self._unsigned = REDUNDANT if kinematics.redundant_names else kinematics.assembly.unsigned
        self._reader.read(np.array(kinematics.home), np.array(kinematics.home_joints))
        self._before = self._reader.sides.copy()
        self._read = 0.0  # by the reader, in the last configuration with labels
        self._side = 0.0  # of home's 1.0
        self._space: Array | None = None
        self._lost = True
        self._modes = Modes("", "")

    def observe(self, pose: Array, joints: Array) -> Modes:
        """The modes at a pose (7,), near joints (n_joints,); empty labels, and a new beginning, if singular or open."""
        pose, joints = np.ascontiguousarray(pose, dtype=np.float64), np.ascontiguousarray(joints, dtype=np.float64)
        status, read = self._reader.read(pose, joints)
        k, sides, last = self.kinematics, self._reader.sides, self._modes
        if closes(status) and not k.constant_space and self._unsigned != REDUNDANT:
            read = self._read_turning(pose, joints)
        if not closes(status) or read == 0.0:
            self._lost = True
            return Modes("", "")
        same = read == self._read and np.array_equal(sides, self._before) and not self._turned()
        if same and not self._lost:
            return last
        side = self._side
        if not self._unsigned:
            side = k.assembly.side(pose, joints)
        elif self._side == 0.0 or self._unsigned == REDUNDANT:
            side = 1.0
        elif read * self._read * float(np.prod(self._passed()[self._actuated])) < 0.0:
            side = -self._side
        working = last.working if same and last.working else self._working_label(pose, joints)
        assembly = last.assembly if side == self._side else self._assembly_label(side, pose, joints)
        self._before[:], self._read, self._side, self._lost = sides, read, side, False
        self._modes = Modes(working, assembly)
        return Modes(working, assembly, _sentence(last, self._modes))

    def _read_turning(self, pose: Array, joints: Array) -> float:
        """What the reader does not tell in a configuration-dependent motion space, whose basis is tracked here."""
        k = self.kinematics
        at = k.at(pose, seed=joints)
        K, S = at.inverse_jacobian, at.subspace
        if not (np.isfinite(K).all() and np.isfinite(S).all()):
            return 0.0
        scaled = S * scaling(k.characteristic_length)[:, None]
        turned = 1.0 if self._space is None else float(np.sign(np.linalg.det(self._space.T @ scaled)))
        scaled[:, 0] *= turned
        self._space = scaled
        return turned * float(np.sign(np.linalg.det(K @ S)))

    def _passed(self) -> Array:
        """Per block -1.0 if its singularity was passed since the last configuration with labels; of its drivers not.
        Closed forms are compared with that configuration, iterated limbs by the reader with the one that it read last.
        """
        passed = np.where(self._iterated, self._reader.sides, 1.0)
        if not self.kinematics.constant_space:
            passed = passed * np.where(self._iterated, 1.0, self._reader.sides * self._before)
        return passed

    def _turned(self) -> bool:
        """Whether a limb solved by iteration has passed a singularity since the configuration before."""
        return bool((self._reader.sides[self._iterated] < 0.0).any())

    def _working_label(self, pose: Array, joints: Array) -> str:
        mode = self._reader.branch
        modes = self.kinematics.modes
        return modes.label_of(mode, modes.numbers_at(pose, joints, mode))

    def _assembly_label(self, side: float, pose: Array, joints: Array) -> str:
        """Sign and number of the mode on the side of the singularities now reached."""
        k = self.kinematics
        if self._unsigned == REDUNDANT:
            return REDUNDANT.strip()
        sign = "+" if side >= 0.0 else "-"
        if self._side == 0.0 and sign == "+":
            return "+1"
        if k.assembly_method == "search":
            return sign
        listed = k.forward_all(joints[k.engine.actuated_column])
        if not listed:
            return sign
        gaps = pose_distance(pose, np.array([one.pose for one in listed]), k.characteristic_length)
        return listed[int(np.argmin(gaps))].label


def _sentence(before: Modes, now: Modes) -> str:
    """What changed, for a person; empty without a change, or if nothing was known before."""
    changes = []
    if before.working not in ("", now.working):
        changes.append(f"working mode {before.working} left for {now.working}: a limb passed a type 1 singularity")
    if before.assembly not in ("", now.assembly):
        changes.append(f"assembly mode {before.assembly} left for {now.assembly}: a type 2 singularity was passed")
    return "; ".join(changes)


UNKNOWN = Modes("", "")


@dataclass(frozen=True, eq=False)
class TrackedMotion:
    """The robot's motion from actuator readings; where `reason` says why there is none, the last good one."""

    status: Status
    reason: str
    pose: Array  # (7,)
    twist: Array  # (6,) linear, angular; base frame, at the platform's origin
    joints: Array  # (n_joints,)
    velocities: Array  # (n_joints,)
    residual: float  # largest error of an actuated joint, rad or m
    jacobian: Array  # (6, n_actuated) platform twist per actuated joint rates


class Tracker:
    """Tracks one machine from a pose (7,) and joints (n_joints,), by default home in its mode. Not thread-safe."""

    def __init__(self, kinematics: Kinematics, pose: Array | None = None, joints: Array | None = None) -> None:
        self.kinematics = kinematics
        start = np.array(kinematics.home if pose is None else pose, dtype=np.float64)
        if joints is None:
            joints = kinematics.home_joints if pose is None else kinematics.inverse(start, mode=0).joints
        self._beside = self._is_beside(start, joints)
        self._refused: tuple[TrackedMotion, TrackedMotion, Array, float] | None = None
        self._placed: TrackedMotion | None = None  # where the graph stands
        rest, unknown = np.zeros(len(joints)), np.full((6, len(kinematics.actuated_names)), np.nan)
        self.last = TrackedMotion(
            Status.DIVERGED, "no reading yet", start, np.zeros(6), np.array(joints), rest, 0.0, unknown
        )

    def _is_beside(self, pose: Array, joints: Array) -> bool:
        """Whether the path on the pose alone would leave a configuration: varying space, or beside closed forms."""
        if not self.kinematics.constant_space or self.kinematics.redundant_names:
            return True
        seeds = near(np.array(joints), 1, SEEDED)
        return len(self.kinematics.engine.positions.rows_off_closed_form_branches(np.array(pose)[None], seeds)) > 0

    def observe(self, positions: Array, velocities: Array) -> TrackedMotion:
        """The motion for actuator positions [rad, m] and velocities [rad/s, m/s] (n_actuated,)."""
        q, qd = np.array(positions, dtype=np.float64), np.array(velocities, dtype=np.float64)
        if not (all_finite(q) and all_finite(qd)):
            return self._lost(Status.INVALID_INPUT, "an actuator reading is not finite", np.nan)
        if self._refused is not None:
            last, answer, at, room = self._refused
            if last is self.last and (np.abs(q - at) <= room).all():
                return answer
        found = self._on_the_graph(q, qd) if self._beside else self._straight_on(q, qd)
        return found or self._from_last(q, qd)

    def _from_last(self, q: Array, qd: Array) -> TrackedMotion:
        """The motion on the whole graph. What ends its path ends that to readings beside it, too: a search takes ms."""
        k, last = self.kinematics, self.last
        if last.status is Status.DIVERGED:  # the first reading, which may be far away
            found = self.from_pose(q, qd, last.pose, last.joints)
        else:
            found = self._reached(k.continued(q, last.pose, last.joints), q, qd)
        if found.status is Status.SINGULAR:
            way = q - last.joints[k.engine.actuated_column]
            way = np.where(k.engine.actuated_turning, np.angle(np.exp(1j * way)), way)
            self._refused = last, found, q, SAME_WAY * float(np.abs(way).max())
        return found

    def _on_the_graph(self, q: Array, qd: Array) -> TrackedMotion | None:
        """The motion by the whole graph, in one compiled call; None where actuators are redundant, or the path ends."""
        if self._graph is None:
            return None
        if self._placed is not self.last:
            self._graph.place(self.last.pose, self.last.joints)
        status, gap, _, to = self._graph.observe(q, qd)
        if not closes(status):
            return None
        self._placed = self._found(status, to.pose, to.twist, to.joints, to.velocities, gap, to.jacobian)
        return self._placed

    @cached_property
    def _graph(self) -> GraphTracker | None:
        return GraphTracker(self.kinematics.engine) if GraphTracker.serves(self.kinematics.engine) else None

    def _straight_on(self, q: Array, qd: Array) -> TrackedMotion | None:
        """The motion where the platform's path alone leads on from the last one, in one compiled call; else None."""
        pose, joints = np.array(self.last.pose), np.array(self.last.joints)
        twist, rates, jacobian = np.empty(6), np.zeros(len(joints)), np.empty((6, len(q)))
        status, error = self._track(q, qd, pose, joints, twist, rates, jacobian)
        if not closes(status):
            return None
        return self._found(Status(status), pose, twist, joints, rates, error, jacobian)

    @cached_property
    def _track(self) -> Callable[..., Any]:
        k, e = self.kinematics, self.kinematics.engine
        joints, data = np.array(k.home_joints), e.data()
        q, rest = joints[e.actuated_column], np.zeros(len(joints))
        example = q, np.zeros(len(q)), np.array(k.home), joints, np.zeros(6), rest, np.empty((6, len(q)))
        return bind(track_reading, (e.model, data), example)

    def from_pose(self, q: Array, qd: Array, pose: Array, joints: Array) -> TrackedMotion:
        """The motion that continues a configuration, even through type 1 singularities or in a varying motion space."""
        return self._reached(self.kinematics.forward(q, near=pose, seed=joints), q, qd)

    def _reached(self, solution: ForwardSolution, q: Array, qd: Array) -> TrackedMotion:
        k = self.kinematics
        status = Status(int(solution.status))
        if not closes(status):
            return self._lost(status, f"forward kinematics: {solution.reason(0)}", float(solution.residual))
        jacobian = np.asarray(solution.configuration.forward_jacobian)
        if not np.isfinite(jacobian).all():
            reason = "the platform's twist is not determined by the actuators (type 2 singularity)"
            return self._lost(Status.SINGULAR, reason, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):  # the rates of what overflows are refused below
            twist = jacobian @ qd
        if not np.isfinite(twist).all():
            return self._lost(Status.INVALID_INPUT, "an actuator velocity is too large", 0.0)
        at = solution.configuration
        motion = at.motion(at.coordinate_rates(qd) if k.redundant_names else twist)
        if not (np.isfinite(motion.joints).all() and np.isfinite(motion.velocities).all()):
            return self._lost(Status(int(motion.status)), "the passive joints have no solution there", 0.0)
        self._beside = self._is_beside(solution.pose, motion.joints)
        status, error = Status(int(motion.status)), float(solution.residual)  # forward kinematics asks no limits
        return self._found(status, solution.pose, twist, motion.joints, motion.velocities, error, jacobian)

    def _found(
        self, status: Status, pose: Array, twist: Array, joints: Array, rates: Array, error: float, jacobian: Array
    ) -> TrackedMotion:
        reason = "" if status is Status.CONVERGED else "; ".join(self.kinematics.limit_violations(joints))
        self.last = TrackedMotion(status, reason, pose, twist, joints, rates, error, jacobian)
        return self.last

    def _lost(self, status: Status, reason: str, error: float) -> TrackedMotion:
        last = self.last
        return TrackedMotion(status, reason, last.pose, last.twist, last.joints, last.velocities, error, last.jacobian)


class AssemblyModeTracker:
    """A tracker that labels modes, and tries from home what does not continue: a machine moved by hand."""

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self.tracking = False
        self.modes = UNKNOWN
        self._tracker = Tracker(kinematics)
        self._names = ModeTracker(kinematics)
        self._failed: TrackedMotion | None = None

    @property
    def last(self) -> TrackedMotion:
        """The last known motion."""
        return self._tracker.last

    def observe(self, positions: Array, velocities: Array) -> TrackedMotion:
        """The motion for actuator positions [rad, m] and velocities [rad/s, m/s] (n_actuated,)."""
        k, found = self.kinematics, self._tracker.observe(positions, velocities)
        known = closes(found.status) or found is self._failed  # also from home, a moment ago
        if not known and np.isfinite(positions).all() and np.isfinite(velocities).all():
            again = self._tracker.from_pose(np.array(positions), np.array(velocities), k.home, k.home_joints)
            self._failed = None if again.status is Status.CONVERGED else found
            found = self._failed or again
        self.tracking = closes(found.status)
        self.modes = self._names.observe(found.pose, found.joints) if self.tracking else UNKNOWN
        return found
