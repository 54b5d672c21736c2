# SPDX-License-Identifier: Apache-2.0
"""Looks at motions with none of the checks' code: joints, velocities and singularities by Pinocchio and SVD.

Joint positions alone are taken from the solver, and believed where Pinocchio's tree closes every loop with them and has
the platform where it should be. Of the velocities that the loops allow, N (an orthonormal basis of the null space of
their Jacobian), the actuators' part over the platform's part, K = N_a N_x^-1, is the inverse Jacobian whatever the
basis. The sign of its determinant changes at a singularity of type 2, where N_a loses rank, and at one of type 1,
where N_x does (Gosselin and Angeles 1990); its smallest singular value and the reciprocal of its largest are how far
both are. The smallest singular value of the loops' own Jacobian falls where the passive joints or the constraints do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares, linprog

from bench.engines.pinocchio_model import RANK_TOLERANCE, PinocchioRobot
from bench.reckless.motions import Course
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, JointType, Mechanism
from pkm_description.rotations import transform_from_pose
from pkm_kinematics import Kinematics
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes

CLOSED = 1e-6  # m, and of a direction: more is no closed loop
ROUNDED = 1e-6  # rad and m beyond a joint's range, and of a speed's bound: rounding
JUMP = 0.2  # rad and m between two samples: no motion of one configuration
SHARE = 0.02  # of home's margin, that the checks promise to keep
FALLEN = 0.1  # of home's: singular values of loops and limbs, which the checks norm otherwise
LOOKS = 16  # of each motion, for singularities: instants at random, one in each of as many equal parts of it


@dataclass(frozen=True, eq=False)
class Look:
    """One configuration: gap of the loops, velocity map, side of the determinant, margins, hold of the loops."""

    gap: float
    rates: Array  # (n_joints of the model, 6) per platform twist in the motion space
    side: float  # sign of det K, 0 where K is not square
    margins: tuple[float, float]  # types 1 and 2 [m/s per rad/s or m/s, and the other way round]
    hold: float  # smallest singular value of the loops that counts, over the largest
    limbs: float  # the same of the loops with the platform held: passive joints and drives
    basis: Array  # (6, m) of the motion space, scaled


class Judge:
    """Judges motions of one robot in its working mode at home.

    Args:
        kinematics: of the robot, for joint positions and names.
        friction: whether efforts have friction in them.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        mechanism: Mechanism = kinematics.mechanism
        self.kinematics, self.mechanism = kinematics, mechanism
        self.robot = PinocchioRobot(mechanism)
        self.names = kinematics.joint_names
        self._scale = scaling(kinematics.characteristic_length)
        self._freedoms = np.asarray(kinematics.subspace(kinematics.home)).shape[1]
        joints = [mechanism.joint_named[name] for name in self.names]
        self.lower = np.array([joint.limits.lower for joint in joints])
        self.upper = np.array([joint.limits.upper for joint in joints])
        self._turning = np.array([joint.type is not JointType.PRISMATIC for joint in joints])
        drives = [mechanism.joint_named[name] for name in mechanism.actuated_joints]
        self.fastest = np.array([joint.limits.velocity for joint in drives])
        ranges = [(joint.drive.effort_range if joint.drive else (-np.inf, np.inf)) for joint in drives]
        self.least = np.array([max(low, -j.limits.effort) for (low, _), j in zip(ranges, drives, strict=True)])
        self.most = np.array([min(high, j.limits.effort) for (_, high), j in zip(ranges, drives, strict=True)])
        self._rank = self._limb_rank = 0
        chain = {self.robot.column[name] for name in mechanism.platform_chain if name in self.robot.column}
        self._of_limbs = [k for k in range(self.robot.model.nv) if k not in chain]
        at_home = self.look(np.array(kinematics.home_joints), np.array(kinematics.home))
        self.home = at_home
        self.closure = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)

    def look(self, joints: Array, pose: Array, basis: Array | None = None) -> Look:
        """Look at a configuration.

        Args:
            joints: (n_joints,), in the order of the kinematics.
            pose: of the platform (7,), where it should be.
            basis: of the motion space beside, which this one's is turned to; home's where None.

        Returns:
            What is there.
        """
        robot, q = self.robot, self.robot.coordinates(self.names, joints)
        gap = robot.closure_gap(q)
        apart = pin.log6(robot.platform_pose(q).actInv(pin.XYZQUATToSE3(pose))).vector
        J, _ = robot.constraints(q, np.zeros(robot.model.nv))
        platform = pin.getFrameJacobian(robot.model, robot.data, robot.platform, pin.LOCAL_WORLD_ALIGNED)
        _, values, Vt = np.linalg.svd(J)
        self._rank = self._rank or int(np.sum(values > RANK_TOLERANCE * values[0]))
        hold = float(values[self._rank - 1] / values[0]) if self._rank else 1.0
        limbs = np.linalg.svd(J[:, self._of_limbs], compute_uv=False)
        self._limb_rank = self._limb_rank or int(np.sum(limbs > RANK_TOLERANCE * limbs[0]))
        N = Vt[self._rank :].T
        moved = np.vstack([self._scale[:, None] * platform, np.eye(len(q))[robot.actuated]]) @ N
        N = N @ np.linalg.svd(moved)[2][: self._freedoms].T  # rods that turn about themselves left out
        X, Na = self._scale[:, None] * platform @ N, N[robot.actuated]
        U = np.linalg.svd(X, full_matrices=False)[0]
        if basis is None:
            basis = self.home.basis if hasattr(self, "home") else U
        U = U @ _rotation(U.T @ basis)
        inverse = np.linalg.pinv(U.T @ X)
        K = Na @ inverse
        values = np.linalg.svd(K, compute_uv=False)
        square = K.shape[0] == K.shape[1]
        side = float(np.sign(np.linalg.det(Na)) * np.sign(np.linalg.det(U.T @ X))) if square else 0.0
        rates = N @ inverse @ (U.T * self._scale)
        margins = (1.0 / max(values[0], 1e-300), float(values[-1]))
        regular = float(limbs[self._limb_rank - 1] / limbs[0])
        return Look(max(gap, float(np.abs(apart).max())), rates, side, margins, hold, regular, U)

    # -- what was admitted ------------------------------------------------------------------------------------------

    def breach(self, course: Course, random: np.random.Generator) -> tuple[str, Array]:
        """What a motion breaks.

        Args:
            course: in small steps of time.
            random: where it is looked at.

        Returns:
            What, empty where nothing, and the closest it came: the least room to a range [of it], the smallest margins
            of types 1 and 2 [of home's], the largest actuator speed [of its limit].
        """
        solved = self.kinematics.inverse(course.poses)
        joints = np.asarray(solved.joints)
        if not closes(np.asarray(solved.status)).all():
            return "nowhere: no configuration", np.array((np.nan,) * 4)
        joints = self._gone_on(joints)
        beyond = np.maximum(joints - self.upper, self.lower - joints)
        whole = np.where(np.isfinite(self.upper - self.lower), self.upper - self.lower, 1.0)
        closest = [float((-beyond / whole).min()), np.inf, np.inf, 0.0]
        if beyond.max() > ROUNDED:
            name = self.names[int(np.argmax(beyond.max(axis=0)))]
            return f"limit: {name} by {beyond.max():.3g}", np.array(closest)
        jump = self._jump(course, joints)
        if jump:
            return jump, np.array(closest)
        looks = self._looks(course, joints, random)
        for look, k in looks:
            if look.gap > CLOSED:
                return f"nowhere: a loop is open by {look.gap:.3g}", np.array(closest)
            shares = np.array(look.margins) / self.home.margins
            closest[1], closest[2] = min(closest[1], shares[0]), min(closest[2], shares[1])
            speeds = np.abs(look.rates[self.robot.actuated] @ course.twists[k])
            closest[3] = max(closest[3], float((speeds / self.fastest).max()))
        sides = [look.side for look, _ in looks]
        if min(sides) != max(sides) or (self.kinematics.constant_space and sides[0] != self.home.side):
            return "singularity: the determinant changes its sign", np.array(closest)
        if min(closest[1:3]) < SHARE * (1.0 - 1e-3):
            return f"margin: {min(closest[1:3]):.3g} of home's", np.array(closest)
        if closest[3] > 1.0 + 1e-3:
            return f"speed: {closest[3]:.4g} of the limit", np.array(closest)
        return "", np.array(closest)

    def _gone_on(self, joints: Array) -> Array:
        """Angles as they go on from sample to sample: a solution of one pose counts turns from home, the short way.

        A joint whose range is more than a turn may begin in it at either of two numbers of turns.
        """
        gone = joints.copy()
        for j in np.flatnonzero(self._turning):
            gone[:, j] = np.unwrap(joints[:, j])
            for turns in (0.0, 2.0 * np.pi, -2.0 * np.pi):
                if np.all((self.lower[j] <= gone[:, j] + turns) & (gone[:, j] + turns <= self.upper[j])):
                    gone[:, j] += turns
                    break
        return gone

    def _jump(self, course: Course, joints: Array) -> str:
        """Where joints go elsewhere than their velocities take them."""
        steps = _turned(np.diff(joints, axis=0), ~np.isfinite(self.upper - self.lower))
        for k in np.flatnonzero(np.abs(steps).max(axis=1) > JUMP):
            ends = [self.look(joints[i], course.poses[i]).rates @ course.twists[i] for i in (k, k + 1)]
            known = [self.robot.column[name] for name in self.names]
            expected = 0.5 * (ends[0] + ends[1])[known] * (course.times[k + 1] - course.times[k])
            strays = np.abs(steps[k] - expected) - 0.5 * np.abs(expected)
            if strays.max() > 0.5 * JUMP:
                return f"jump: {self.names[int(np.argmax(strays))]} by {np.abs(steps[k]).max():.3g}"
        return ""

    def _looks(self, course: Course, joints: Array, random: np.random.Generator) -> list[tuple[Look, int]]:
        parts = np.linspace(0, len(joints) - 1, LOOKS)
        chosen = np.unique(np.round(parts[:-1] + random.random(LOOKS - 1) * np.diff(parts)).astype(np.int64))
        looks: list[tuple[Look, int]] = []
        for k in [0, *chosen.tolist(), len(joints) - 1]:
            looks.append((self.look(joints[k], course.poses[k], looks[-1][0].basis if looks else None), k))
        return looks

    # -- what was refused -------------------------------------------------------------------------------------------

    def confirms(self, course: Course, reason: str) -> bool:
        """Whether a refused motion breaks what it was refused for.

        Args:
            course: the part of the motion about the instant that the refusal names, in small steps.
            reason: the refusal's.

        Returns:
            Whether it does.
        """
        if "not at rest" in reason:
            return bool(np.abs(course.twists).max() > 0.01)
        solved = self.kinematics.inverse(course.poses)
        joints, there = np.asarray(solved.joints), closes(np.asarray(solved.status))
        if not there.all() and not any(word in reason for word in ("velocity of", "effort")):
            return self._out_of_reach(course, joints, there)
        if "motion space" in reason and there.all():
            return any(self._blocked(q, at, v) for q, at, v in zip(joints, course.poses, course.twists, strict=True))
        joints = joints[there]
        if not len(joints):
            return False
        part = Course(*(rows[there] for rows in (course.times, course.poses, course.twists, course.accelerations)))
        beyond = np.maximum(joints - self.upper, self.lower - joints)
        if "velocity of" in reason:
            looks = [self.look(q, pose) for q, pose in zip(joints, part.poses, strict=True)]
            speeds = [np.abs(one.rates[self.robot.actuated] @ v) for one, v in zip(looks, part.twists, strict=True)]
            return bool((np.array(speeds) > self.fastest * (1.0 - 1e-3)).any())
        if "effort" in reason:
            return any(self._too_much(part, joints, k) for k in range(len(joints)))
        if "jump" in reason or "turn" in reason:
            return bool(np.abs(np.diff(joints, axis=0)).max(initial=0.0) > JUMP or beyond.max() > ROUNDED)
        if "singular" in reason or "hold" in reason:
            looks = [self.look(q, pose) for q, pose in zip(joints, part.poses, strict=True)]
            home = self.home
            margins = min(min(np.array(one.margins) / home.margins) for one in looks)
            others = min(min(one.hold / home.hold, one.limbs / home.limbs) for one in looks)
            return len({one.side for one in looks}) > 1 or bool(margins < 1.1 * SHARE or others < FALLEN)
        return bool(beyond.max() > -1e-4)

    def _blocked(self, joints: Array, pose: Array, twist: Array) -> bool:
        """Whether the limbs block a part of a twist."""
        wanted, basis = self._scale * twist, self.look(joints, pose).basis
        return bool(np.linalg.norm(wanted - basis @ (basis.T @ wanted)) > 1e-6 * np.linalg.norm(wanted))

    def _too_much(self, part: Course, joints: Array, k: int) -> bool:
        """Whether no efforts within the bounds do a motion: a linear programme, friction counted for and against."""
        robot, q = self.robot, self.robot.coordinates(self.names, joints[k])
        v, vdot = robot.rates(q, part.twists[k], part.accelerations[k])
        force = pin.rnea(robot.model, robot.data, q, v, vdot).copy() + robot.friction(v)
        N = robot.free_directions(q)
        bounds = list(zip(0.999 * self.least, 0.999 * self.most, strict=True))
        scale = max(float(np.abs(self.most).max()), 1.0)
        wanted = N.T @ force
        B = N[robot.actuated].T
        n = B.shape[1]
        # least largest miss of B tau = wanted
        A = np.block([[B, -np.ones((len(B), 1))], [-B, -np.ones((len(B), 1))]])
        found = linprog(
            np.append(np.zeros(n), 1.0), A_ub=A, b_ub=np.concatenate([wanted, -wanted]), bounds=[*bounds, (0.0, None)]
        )
        return bool(not found.success or found.fun > 1e-6 * scale)

    def _out_of_reach(self, course: Course, joints: Array, there: Array) -> bool:
        """Whether the loops cannot be closed where the solver says so: least squares, from the last configuration."""
        first = int(np.argmin(there))
        start = joints[first - 1] if first else np.array(self.kinematics.home_joints)
        seed = np.zeros(self.closure.size)
        for name, value in zip(self.names, start, strict=True):
            if name in self.closure.slices:
                seed[self.closure.slices[name]] = value
        target = transform_from_pose(course.poses[first])

        def open_by(q: Array) -> Array:
            return np.concatenate(
                [self.closure.closure(q)[0], self.closure.pose_error(q, self.mechanism.platform_link, target)[0]]
            )

        best = least_squares(open_by, seed, xtol=1e-14, ftol=1e-14, gtol=1e-14, max_nfev=200)
        return bool(np.abs(best.fun).max() * self.closure.length > 1e-9)


def _rotation(M: Array) -> Array:
    """The orthogonal matrix nearest to one: turns a basis to another's."""
    U, _, Vt = np.linalg.svd(M)
    return np.asarray(U @ Vt)


def _turned(steps: Array, endless: Array) -> Array:
    return np.where(endless, np.remainder(steps + np.pi, 2.0 * np.pi) - np.pi, steps)
