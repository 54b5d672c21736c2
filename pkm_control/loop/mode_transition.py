# SPDX-License-Identifier: Apache-2.0
"""A way into another working mode: the actuators go straight from corner to corner, and the robot follows them.

A limb changes its branch where it is stretched or folded (type 1). The platform's coordinates are singular there, the
actuators' are not: so the way is one in them, and every joint along it is known before anything moves. Where both ends,
at the same pose, cannot be joined by one straight leg, limbs change one after the other, or at another pose of a
handful that the platform first goes to.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from pkm_control.loop.jogging import ANGULAR, LENGTHS, LINEAR
from pkm_control.motion.curve_check import BRAKING, SHARE, CurveCheck
from pkm_control.motion.path_clock import CHANGE
from pkm_control.motion.time_law import smooth_step
from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_dynamics.actuator_dynamics import ActuatorDynamics
from pkm_kinematics import Status
from pkm_kinematics.forward.tracker import ModeReader
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.errors import PkmError

Node = tuple[int, int]  # number of a pose and of a working mode

STEP = 0.03  # rad, or of the characteristic length: the longest way of an actuator between two samples
FEWEST = 24  # samples of a leg
SPEED = 0.3  # of the actuators' velocity limits
EFFORT = 0.8  # of their efforts
SLOWER = 1.5  # times as long a leg takes where efforts do not suffice, tried again and again
SLOWEST = 60.0  # s, of one leg
OFFSETS = 0.2, 0.4  # of the robot's size: how far other poses are from home
MOST_LEGS = 200  # looked at
_PEAK_SPEED = 15.0 / 8.0  # of `smooth_step`, for one unit in one second
_SAME = 1e-6  # of the characteristic length


class ModeTransitionError(PkmError):
    """There is no way; the message says why."""


@dataclass(frozen=True, eq=False)
class Leg:
    """A straight line of the actuators, from rest to rest: `start` and `end` (n_actuated,), `duration` [s]."""

    start: Array
    end: Array
    duration: float

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """Actuator positions, velocities and accelerations (n_actuated,) at a time from its beginning [s]."""
        s, rate, change = smooth_step(min(max(time / self.duration, 0.0), 1.0))
        span = self.end - self.start
        return self.start + s * span, rate / self.duration * span, change / self.duration**2 * span


@dataclass(frozen=True, eq=False)
class ModeTransition:
    """The legs of a way into working mode `mode`, from the configuration `joints` (n_joints,) at `pose` (7,), which the
    platform leaves by up to `farthest` [m] and `turned` [rad] meanwhile.
    """

    mode: int
    pose: Array
    joints: Array
    legs: tuple[Leg, ...]
    farthest: float
    turned: float

    def back(self, mode: int) -> ModeTransition:
        """The same way reversed, into the mode that it comes from; pose and joints stay those of its beginning."""
        legs = tuple(Leg(leg.end, leg.start, leg.duration) for leg in reversed(self.legs))
        return replace(self, mode=mode, legs=legs)

    @property
    def duration(self) -> float:
        """Of all legs [s]."""
        return sum(leg.duration for leg in self.legs)

    def at(self, time: float) -> tuple[Array, Array, Array]:
        """Actuator positions, velocities and accelerations (n_actuated,) at a time from the beginning [s]."""
        for leg in self.legs[:-1]:
            if time < leg.duration:
                return leg.at(time)
            time -= leg.duration
        return self.legs[-1].at(time)


class ModeTransitions:
    """Looks for ways between the working modes of one machine, from that of `check`. Not thread-safe.
    ModeTransitionError: the robot cannot change its mode on ways like these. PkmError: it has redundant actuators.
    """

    def __init__(self, check: CurveCheck) -> None:
        self._check = check
        self._kinematics = k = check.kinematics
        if not k.constant_space:
            raise ModeTransitionError(
                "its motion space depends on the pose: there are no control laws and paths for other modes"
            )
        if k.engine.iterated:
            raise ModeTransitionError(
                "its limbs are solved by iteration, which does not show the mode after a singularity"
            )
        refuse_redundant(k.redundant_names, "changes of the working mode")
        self._at = ActuatorDynamics(check.dynamics)
        self._reader = ModeReader(k.engine)
        self._length = k.characteristic_length
        self._units = np.where(k.engine.actuated_turning, 1.0, self._length)
        self._floor = SHARE * self._margin()  # the robot is at home
        self._side = 0.0

    def find(self, pose: Array, mode: int) -> ModeTransition:
        """The way with the fewest legs from a pose (7,) to it in another mode; ModeTransitionError: what blocks it."""
        k, present = self._kinematics, self._check.mode
        for m in (present, mode):
            end = k.inverse(pose, mode=m)
            if end.status != Status.CONVERGED:
                raise ModeTransitionError(
                    f"in working mode {k.mode_label(m)} the platform cannot be here: {end.reason(0)}"
                )
        self._side = self._side_of(pose, present)
        if self._side_of(pose, mode) != self._side:
            raise ModeTransitionError(
                f"in working mode {k.mode_label(mode)} this pose is on the other side of the type 2 singularities: "
                "every path there crosses one. Another pose may be on this side"
            )
        why = replace(self._check, mode=mode, compliance=None).standing(pose)
        if why:
            raise ModeTransitionError(f"in working mode {k.mode_label(mode)} the platform cannot be held here: {why}")
        poses = [np.array(pose), *self._other_poses(pose)]
        nodes = self._search(poses, present, mode)
        legs = [self._timed(*self._ends(poses, a, b)) for a, b in pairwise(nodes)]
        farthest = turned = 0.0
        for a, b in pairwise(nodes):
            for here in self._swept(*self._ends(poses, a, b)):
                by = displacement_between(pose, here)
                farthest = max(farthest, float(np.linalg.norm(by[:3])))
                turned = max(turned, float(np.linalg.norm(by[3:])))
        joints = np.array(k.inverse(pose, mode=present).joints)
        return ModeTransition(mode, np.array(pose), joints, tuple(legs), farthest, turned)

    # -- search -----------------------------------------------------------------------------------------------------

    def _search(self, poses: list[Array], present: int, mode: int) -> list[Node]:
        modes = self._between(present, mode)
        start, goal = (0, present), (0, mode)
        before: dict[Node, Node] = {start: start}
        waiting = deque([start])
        first, looked = "", 0
        while waiting:
            node = waiting.popleft()
            for other in self._neighbours(node, len(poses), modes, goal):
                if other in before or looked >= MOST_LEGS:
                    continue
                if self._side_of(poses[other[0]], other[1]) != self._side:
                    continue
                looked += 1
                problem = self._problem(*self._ends(poses, node, other), poses[other[0]], other[1])
                first = first or problem
                if problem:
                    continue
                before[other] = node
                if other == goal:
                    return self._back(before, goal)
                waiting.append(other)
        raise ModeTransitionError(
            f"{first}; {looked - 1} other legs, limb by limb and by way of {len(poses) - 1} poses, lead no further"
        )

    def _side_of(self, pose: Array, mode: int) -> float:
        end = self._kinematics.inverse(pose, mode=mode)
        if end.status != Status.CONVERGED:
            return 0.0
        status, side = self._reader.read(np.array(pose), np.array(end.joints))
        return side if status == Status.CONVERGED else 0.0

    @staticmethod
    def _back(before: dict[Node, Node], node: Node) -> list[Node]:
        nodes = [node]
        while before[nodes[-1]] != nodes[-1]:
            nodes.append(before[nodes[-1]])
        return nodes[::-1]

    @staticmethod
    def _neighbours(node: Node, n_poses: int, modes: list[int], goal: Node) -> Iterator[Node]:
        """Nodes that a leg may lead to, the goal first: another mode here, or another pose in this mode."""
        pose, mode = node
        if pose == 0:
            yield goal
        yield from ((pose, other) for other in modes if other != mode)
        yield from ((other, mode) for other in (range(1, n_poses) if pose == 0 else (0,)))

    def _between(self, present: int, mode: int) -> list[int]:
        """Modes in which limbs are in the branch of one of two modes, those first that differ least from the last."""
        blocks = self._kinematics.tables.blocks
        stride, count = blocks["stride"][blocks["branches"] > 1], blocks["branches"][blocks["branches"] > 1]
        digits = [sorted({int(m // s % n) for m in (present, mode)}) for s, n in zip(stride, count, strict=True)]
        found = [int(np.dot(d, stride)) for d in product(*digits)]
        wanted = mode // stride % count
        return sorted(found, key=lambda m: int(np.count_nonzero(m // stride % count != wanted)))

    def _other_poses(self, pose: Array) -> Iterator[Array]:
        k = self._kinematics
        home, size = np.array(k.home), k.engine.size
        if pose_distance(pose, home, size) > 1e-3 * size:
            yield home
        space = np.asarray(k.subspace(home)) * scaling(self._length)[:, None]
        n = space.shape[1]
        most = 2 if n <= 3 else 1  # degrees of freedom at once
        ways = [np.array(d) for d in product((-1.0, 0.0, 1.0), repeat=n) if 1 <= np.count_nonzero(d) <= most]
        for share in OFFSETS:
            for way in sorted(ways, key=np.count_nonzero):
                by = space @ (share * size / np.linalg.norm(way) * way) / scaling(self._length)
                by[3:] *= min(1.0, 1.0 / max(float(np.linalg.norm(by[3:])), 1e-9))
                yield displace(home, by)

    # -- one leg ----------------------------------------------------------------------------------------------------

    def _ends(self, poses: list[Array], a: Node, b: Node) -> tuple[Array, Array, Array]:
        k = self._kinematics
        joints = np.array(k.inverse(poses[a[0]], mode=a[1]).joints)
        return poses[a[0]], joints, np.array(k.inverse(poses[b[0]], mode=b[1]).actuated)

    def _shares(self, q: Array, end: Array) -> Array:
        longest = float(np.max(np.abs(end - q) / self._units))
        return np.linspace(0.0, 1.0, max(FEWEST, math.ceil(longest / STEP)) + 1)[1:]

    def _problem(self, pose: Array, joints: Array, end: Array, arrives: Array, mode: int) -> str:
        k, at = self._kinematics, self._at
        if at.place(pose, joints) is not Status.CONVERGED:
            return "the robot is singular at the start of the path"
        q = at.actuated
        for share in self._shares(q, end):
            if at.follow(q + share * (end - q)) is not Status.CONVERGED:
                return f"the way crosses a type 2 singularity, at {share:.0%} of it"
            if k.engine.ranges.beyond(at.joints).any():
                return (
                    f"the way leaves a joint's range, at {share:.0%} of it: {'; '.join(k.limit_violations(at.joints))}"
                )
            if not self._margin() >= self._floor:
                return f"the way comes too near a type 2 singularity, at {share:.0%} of it"
            near = self._too_near(at.pose)
            if near:
                return f"{near}, at {share:.0%} of the way"
            short = self._short_of_effort(at.weight())
            if short:
                return f"the weight is too much on the way, at {share:.0%} of it: {short}"
        missed = displacement_between(arrives, at.pose) * scaling(self._length)
        status, _ = self._reader.read(at.pose, at.joints)
        if np.abs(missed).max() > _SAME * self._length or self._reader.branch != mode or status != Status.CONVERGED:
            return "the way ends in another assembly or working mode"
        return ""

    def _too_near(self, pose: Array) -> str:
        space = self._check.space
        return space.reason(pose) if space is not None and space.lacks(pose[None], space.margin)[0] > 0.0 else ""

    def _margin(self) -> float:
        """Slowest actuation, as in `Kinematics.singularity`, also in singularities of type 1."""
        twists = self._at.forward_jacobian() * scaling(self._length)[:, None]
        return 1.0 / float(np.linalg.norm(twists, 2)) if np.isfinite(twists).all() else 0.0

    def _short_of_effort(self, efforts: Array, share: float = EFFORT) -> str:
        limits = self._check.limits
        least, most = limits.bounds(1.0 - share)
        over = np.maximum(efforts - most, least - efforts)
        if (over <= 0.0).all():
            return ""
        worst = int(np.argmax(over))
        return f"{limits.names[worst]} would need {abs(efforts[worst]):.4g} {limits.effort_units[worst]}"

    def _swept(self, pose: Array, joints: Array, end: Array) -> Iterator[Array]:
        at = self._at
        at.place(pose, joints)
        q = at.actuated
        for share in self._shares(q, end):
            at.follow(q + share * (end - q))
            at.move(end - q)
            yield at.pose

    def _timed(self, pose: Array, joints: Array, end: Array) -> Leg:
        at, limits = self._at, self._check.limits
        linear = min(LINEAR, LENGTHS * self._length)
        angular = min(ANGULAR, linear / self._length)
        span = end - joints[self._kinematics.engine.actuated_column]
        duration = _PEAK_SPEED * float(np.max(np.abs(span) / (SPEED * limits.velocity)))
        for _ in self._swept(pose, joints, end):
            twist = at.twist
            speeds = np.linalg.norm(twist[:3]) / linear, np.linalg.norm(twist[3:]) / angular
            duration = max(duration, _PEAK_SPEED * float(max(speeds)))
        duration = max(duration, 0.2)
        while duration < SLOWEST:
            leg = Leg(end - span, end, duration)
            problem = self._short_in_time(leg, pose, joints)
            if not problem:
                return leg
            duration *= SLOWER
        raise ModeTransitionError(f"efforts are not sufficient on the path: {problem}")

    def _short_in_time(self, leg: Leg, pose: Array, joints: Array) -> str:
        at = self._at
        at.place(pose, joints)
        for share in self._shares(leg.start, leg.end):
            q, u, ud = leg.at(share * leg.duration)
            at.follow(q)
            at.move(u)
            short = self._short_of_effort(at.efforts(ud))
            for change in (-CHANGE, CHANGE):  # so that it can be halted anywhere, and go on
                short = short or self._short_of_effort(at.efforts(ud + change * u), BRAKING)
            at.move(0.0 * u)
            for change in (-CHANGE, CHANGE):
                short = short or self._short_of_effort(at.efforts(change * u), BRAKING)
            if short:
                return short
        return ""
