# SPDX-License-Identifier: Apache-2.0
"""From the joints that a simulator or planner knows to the motors that move them through a linkage, and back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_description.graph import path_from_base
from pkm_description.mechanism import Array, Inertial, Joint, JointType
from pkm_description.tree_model import TreeModel
from pkm_kinematics.batch import ShapeError, as_rows
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.linkage.linkage import Linkage, Solved, lean_outputs
from pkm_kinematics.linkage.loop_system import LinkageError
from pkm_kinematics.status import Status
from pkm_runtime.codegen.machine_code import VectorCode
from pkm_runtime.describable import Describable, listed
from pkm_runtime.errors import UsageError
from pkm_runtime.kernels.binding import shareable

FLAT = 1e-12  # of the widest extent of a polygon: rounding


@dataclass(frozen=True)
class MotorLine:
    """Limits at the actuated joint, behind its gear: `effort` [N m or N] at most, none that drives beyond `speed`.

    Between, an electric motor's line falls from its `stall` effort at rest, infinite where it is not known, to none at
    `speed` [rad/s or m/s]. Braking has `effort` at every speed.
    """

    effort: float
    speed: float = np.inf
    stall: float = np.inf

    def __post_init__(self) -> None:
        if not (self.effort >= 0.0 and self.speed >= 0.0 and self.stall >= 0.0):
            about = f"limits {self.effort:g}, {self.speed:g}, {self.stall:g} of a motor"
            raise UsageError(about, "a limit is negative or no number", "give what holds both ways")

    @classmethod
    def of(cls, joint: Joint) -> MotorLine:
        """What a description says: a box of effort and speed."""
        return cls(joint.limits.effort, joint.limits.velocity)

    def bounds(self, speed: Array) -> tuple[Array, Array]:
        """Least and largest effort (n,) at speeds (n,)."""
        return -self._pushing(-speed), self._pushing(speed)

    def _pushing(self, speed: Array) -> Array:
        if np.isinf(self.stall):
            return np.where(speed < self.speed, self.effort, 0.0)
        return np.clip(self.stall * (1.0 - speed / self.speed), 0.0, self.effort)


class Motion(NamedTuple):
    """Positions, velocities and accelerations, each (..., k); the last two None where they were not given."""

    position: Array
    velocity: Array | None
    acceleration: Array | None


class Friction(NamedTuple):
    """Friction felt at the joints: `viscous` (..., n, n) [N m s] and `coulomb` (..., n) [N m]."""

    viscous: Array
    coulomb: Array


class Transmission(Describable):
    """Joints and actuators of one linkage, without names the independent joints and the actuators of all clusters.

    Positions (..., n) of the joints [rad or m] may be a batch. All is on the branch of the file's home: where a linkage
    would have to fold on the way from home, answers are NaN, and `at(q).status` says so. A velocity or speed and an
    acceleration are one number for each of them, and so are joint efforts (..., n) and actuator efforts (..., m) [N m
    or N], those at the actuated joints, behind gears. Arrays (..., k) of answers share their memory with torch and JAX
    by DLPack. `ShapeError`: numbers of another shape. `LinkageError`: names or motors do not suffice for what is asked.
    """

    def __init__(
        self,
        tree: TreeModel,
        joints: Sequence[str] = (),
        actuators: Sequence[str] = (),
        motors: Mapping[str, MotorLine] | None = None,
    ) -> None:
        self.tree = tree
        clusters = tree.clusters
        self.joints = tuple(joints) or tuple(name for one in clusters for name in one.independent)
        if loose := [name for name in self.joints if not joints and name not in tree.joint_named]:
            problem = f"{listed(loose)}: the loops leave this free, which a joint of several degrees of freedom allows"
            raise LinkageError(f"{problem}; make joint '{loose[0].partition('/')[0]}' one of fewer")
        tied = set().union(*(members for members, _ in tree.tied_to(self.joints)))
        self.actuators = tuple(actuators) or tuple(n for one in clusters for n in one.actuators if n in tied)
        if not self.joints or not self.actuators:
            raise LinkageError(f"{tree.name} {self._what_lacks(tied)}")
        tree.tied_to(self.actuators)  # refuses what is no joint
        if stray := [name for name in self.actuators if name not in tied]:
            raise LinkageError(f"{', '.join(stray)}: no loop connects it to {', '.join(self.joints)}")
        if unknown := [name for name in motors or () if name not in self.actuators]:
            raise LinkageError(f"motors: {', '.join(unknown)} is none of {', '.join(self.actuators)}")
        self.linkage = Linkage(tree, self.joints, self.actuators)
        self._rows = [self.linkage.names.index(name) for name in self.actuators]
        self.motors = {name: MotorLine.of(tree.joint_named[name]) for name in self.actuators} | dict(motors or {})
        self.home = self.linkage.home[: len(self.joints)]

    def _what_lacks(self, tied: Collection[str]) -> str:
        """Why there are no joints or no actuators, and which to name; `tied` are all joints of the loops."""
        if not self.joints:
            what = "has no loop that moves" if self.tree.clusters else "closes no loop"
            return f"{what}: name joints and actuators of {listed(self.tree.joint_named)}"
        moving = [name for one in self.tree.clusters for name in one.joints if name in tied and name not in one.idle]
        others = [name for name in moving if name not in self.joints]
        sliders = [name for name in others if self.tree.joint_named[name].type == JointType.PRISMATIC]
        what = "names no actuator there: name the joints with motors"
        if len(sliders) == len(self.joints):
            return f"{what}; as many of them slide as there are outputs: --actuators {','.join(sliders)}"
        return f"{what}, of {listed(others)}"

    def _summary(self) -> str:
        return f"{self.tree.name}: {listed(self.joints)} by {listed(self.actuators)}"

    # -- positions, speeds ----------------------------------------------------------------------------------------

    def at(self, q: Array, speed: Array | None = None, *, near: Array | None = None) -> SolvedTransmission:
        """The linkage at positions (k, n), solved once, from home or `near`, positions of all joints in `linkage`."""
        s = self.linkage.at(self._of_joints(q), None if speed is None else self._of_joints(speed), near=near)
        at, changes = self._rows, None if s.changes is None else s.changes[:, self._rows]
        return SolvedTransmission(self, s, s.q[:, at], s.K[:, at], changes)

    def _of_joints(self, values: Array) -> Array:
        return as_rows(values, len(self.joints), f"joints {', '.join(self.joints)}")[0]

    def _of_actuators(self, values: Array) -> Array:
        return as_rows(values, len(self.actuators), f"actuators {', '.join(self.actuators)}")[0]

    @cached_property
    def home_jacobian(self) -> Array:
        """The Jacobian (m, n) at home."""
        return self.jacobian(self.home)

    def jacobian(self, q: Array) -> Array:
        """Rates of the actuators per rate of each joint (..., m, n)."""
        return _like(q, self.at(q).jacobian)

    def jacobian_rate(self, q: Array, speed: Array) -> Array:
        """How the Jacobian changes (..., m, n) while the joints move at a speed (..., n)."""
        return _like(q, self.at(q, speed).changes)

    def to_actuators(self, q: Array) -> Array:
        """Positions of the actuators (..., m) [rad or m], turns within half a turn of home."""
        return _like(q, self.at(q).actuators)

    def to_actuator_motion(self, q: Array, velocity: Array, acceleration: Array | None = None) -> Motion:
        """Positions, velocities and accelerations of the actuators, from those of the joints."""
        v = self._of_joints(velocity)
        s = self.at(q, v)
        a = None
        if acceleration is not None:
            a = _like(q, _times(s.jacobian, self._of_joints(acceleration)) + _times(s.changes, v))
        return Motion(_like(q, s.actuators), _like(q, _times(s.jacobian, v)), a)

    def to_joints(self, actuators: Array, *, near: Array | None = None) -> Array:
        """Positions of the joints (..., n), from those of one actuator per joint, by a way from home or `near` (n,)."""
        back, start = self._back, None
        if near is not None:
            joints = dict(zip(self.linkage.names, self.at(near).linkage.q[0], strict=True))
            start = np.array([joints[name] for name in back.names])
        s = back.at(self._of_actuators(actuators), near=start)
        return _like(actuators, s.q[:, [back.names.index(name) for name in self.joints]])

    def to_joint_motion(self, actuators: Array, velocity: Array, acceleration: Array | None = None) -> Motion:
        """Positions, velocities and accelerations of the joints, from those of the actuators."""
        q = self.to_joints(actuators)
        back = self.at(q).inverse
        v = _times(back, self._of_actuators(velocity))
        a = None
        if acceleration is not None:
            a = _like(q, _times(back, self._of_actuators(acceleration) - _times(self.at(q, v).changes, v)))
        return Motion(q, _like(q, v), a)

    @cached_property
    def _back(self) -> Linkage:
        return Linkage(self.tree, self.actuators, self.joints)

    # -- efforts --------------------------------------------------------------------------------------------------

    def to_joint_efforts(self, q: Array, actuator_efforts: Array) -> Array:
        """Efforts at the joints (..., n) that efforts of the actuators (..., m) make, friction and inertia aside."""
        return _like(q, _times(np.swapaxes(self.at(q).jacobian, 1, 2), self._of_actuators(actuator_efforts)))

    def to_actuator_efforts(self, q: Array, joint_efforts: Array) -> Array:
        """Efforts of the actuators (..., m) that make efforts at the joints (..., n), the least; NaN at dead points."""
        turned = np.swapaxes(self.at(q).inverse, 1, 2)
        return _like(q, _times(turned, self._of_joints(joint_efforts)))

    def effort_limits(self, q: Array, speed: Array | None = None) -> tuple[Array, Array]:
        """Least and largest effort of each actuator (k, m) at positions (k, n) and speeds of the joints."""
        if speed is None:
            v = np.zeros((len(self._of_joints(q)), len(self.actuators)))
        else:
            v = _times(self.at(q).jacobian, self._of_joints(speed))
        pairs = [self.motors[name].bounds(v[:, k]) for k, name in enumerate(self.actuators)]
        return np.stack([low for low, _ in pairs], axis=1), np.stack([high for _, high in pairs], axis=1)

    def effort_polygon(self, q: Array, speed: Array | None = None) -> Array:
        """What the joints can exert at one position (n,) and speed: vertices (k, n), anticlockwise where n is 2.

        The box of the motors' torque-speed lines seen through the linkage; with fewer motors than joints its corners.
        """
        q = self._of_joints(q)
        if len(q) != 1:
            raise ShapeError(f"a polygon is at one position ({len(self.joints)},), got {len(q)}: ask at each")
        low, high = self.effort_limits(q, speed)
        sizes = zip(self.actuators, high[0] - low[0], strict=True)
        if endless := [name for name, size in sizes if not np.isfinite(size)]:
            raise LinkageError(
                f"the effort limit of {', '.join(endless)} is unknown: give motors={{name: MotorLine(...)}}"
            )
        corners = np.stack(np.meshgrid(*zip(low[0], high[0], strict=True), indexing="ij"), axis=-1)
        efforts = corners.reshape(-1, len(self.actuators)) @ self.jacobian(q[0])
        return hull(efforts) if len(self.actuators) >= len(self.joints) else efforts

    def effort_alone(self, q: Array) -> Array:
        """Largest effort (..., n) of each joint alone, the same both ways; NaN with fewer motors than joints."""
        if len(self.actuators) < len(self.joints):
            return np.full(np.shape(q), np.nan)
        limit = np.array([min(self.motors[name].effort, self.motors[name].stall) for name in self.actuators])
        # of redundant actuators as they share with least effort
        share = np.abs(np.swapaxes(self.at(q).inverse, 1, 2))
        return _like(q, (limit[:, None] / np.maximum(share, 1e-300)).min(axis=1))

    def lean(self, q: Array | None = None) -> Callable[[Array, Array, Array, Array], tuple[int, float]]:
        """For control loops: `call(q, joint_efforts, actuators, actuator_efforts)`, the last two written.

        Float arrays (n,), (n,), (m,), (m,), not checked. Each call goes on from where the one before ended, the first
        from home or `q` (n,), and returns a `Status` as a number and the margin to a fold. NOT_CONNECTED: it is too far
        from the one before, and the next call goes on from that. With any status but CONVERGED, NaN is written.
        """
        start = None if q is None else self.at(q).linkage.q[0]
        return lean_outputs(self.linkage, self.actuators, start)

    # -- inertia, friction, gains -----------------------------------------------------------------------------------

    def armature(self, q: Array, *, linkage: bool = True) -> Array:
        """Inertia (..., n, n) [kg m^2] that rotors, and on request the masses of the linkage, add at the joints.

        The rotors' is the `armature` of a simulator that has the joints without the linkage. Of the linkage counts what
        is beside the way to the joints themselves.
        """
        s = self.at(q)
        J = s.jacobian
        M = np.swapaxes(J, 1, 2) @ (self._armatures[:, None] * J)
        if linkage:
            M = M + self.linkage.inertia(s.linkage.q, self._inertia_code)
        return _like(q, M)

    @cached_property
    def _armatures(self) -> Array:
        drives = [self.tree.joint_named[name].drive for name in self.actuators]
        return np.array([0.0 if drive is None else drive.armature for drive in drives])

    @cached_property
    def _inertia_code(self) -> VectorCode:
        return self.linkage.inertia_code(self._bodies())

    def _bodies(self) -> dict[str, Inertial]:
        model = self.linkage.system.model
        ways = [path_from_base(model.joints, self.tree.joint_named[name].child) for name in self.joints]
        others = {joint.child for way in ways for joint in way} | {next(iter(model.link_index))}
        for joint in self.tree.joints:  # what is fixed to the joints' links moves without the linkage, too
            if joint.parent in others and joint.type is JointType.FIXED:
                others.add(joint.child)
        own = set(model.link_index) - others
        ten = {link.name: link.inertial.ten for link in model.links if link.name in own}
        frames = {name: (name, np.eye(4)) for name in own}
        for joint in self.tree.joints:
            if joint.parent in frames and joint.type is JointType.FIXED and joint.child not in model.link_index:
                root, frame = frames[joint.parent]
                frames[joint.child] = root, frame @ joint.origin
                link = next(one for one in self.tree.links if one.name == joint.child)
                ten[root] = ten[root] + link.inertial.in_frame(frame @ joint.origin).ten
        return {name: Inertial.of_ten(values) for name, values in ten.items() if values.any()}

    def friction(self, q: Array, speed: Array | None = None) -> Friction:
        """Friction of motors and passive joints at the joints, Coulomb's against a speed (..., n), else at its most."""
        n, names = len(self.joints), self.linkage.names
        K = self.at(q).linkage.K
        geared = [j for j in self.tree.joints if j.mimic is not None and j.mimic.joint in names]
        rows = [j.mimic.multiplier * K[:, [names.index(j.mimic.joint)]] for j in geared if j.mimic is not None]
        parts = [*(self.tree.joint_named.get(name) for name in names[n:]), *geared]
        K = np.concatenate([K[:, n:], *rows], axis=1)
        d, f = (
            np.array([getattr(one, what, 0.0) for one in parts]) for what in ("viscous_friction", "coulomb_friction")
        )
        turned = np.swapaxes(K, 1, 2)
        if speed is None:
            coulomb = _times(np.abs(turned), np.tile(f, (len(K), 1)))
        else:
            coulomb = _times(turned, f * np.sign(_times(K, self._of_joints(speed))))
        return Friction(_like(q, turned @ (d[:, None] * K)), _like(q, coulomb))

    def gains(self, q: Array, kp_motor: Array, kd_motor: Array) -> tuple[Array, Array]:
        """Stiffness and damping (..., n, n) at the joints by kp_motor and kd_motor, without the geometric stiffness."""
        J = self.at(q).jacobian
        return _through(q, kp_motor, J), _through(q, kd_motor, J)

    def motor_gains(self, q: Array, kp_joint: Array, kd_joint: Array) -> tuple[Array, Array]:
        """Gains of the motors (..., m, m) that make kp_joint and kd_joint (n,) or (n, n) at the joints.

        Off the diagonal they couple the motors; drives that know only their own position have the diagonal alone.
        """
        back = self.at(q).inverse
        return _through(q, kp_joint, back), _through(q, kd_joint, back)


@dataclass(frozen=True, eq=False)
class SolvedTransmission:
    """A transmission at k positions of its joints, solved once; `linkage` has all joints there."""

    transmission: Transmission
    linkage: Solved
    actuators: Array  # (k, m) positions
    jacobian: Array  # (k, m, n) rates of the actuators per rate of each joint
    changes: Any  # (k, m, n) the Jacobian's rate, where speeds were given, else None

    @cached_property
    def margin(self) -> Array:
        """How far (k,) from a fold: 1 at best, through zero where something folds.

        The least of the loops', where a motor loses the joints, and, with enough motors, of the Jacobian's, where the
        motors lose the joints: negative beyond that, and in proportion to the ratios where these are below home's.
        """
        J = self.jacobian
        m, n = J.shape[1:]
        if m < n:
            return self.linkage.margin
        at_home = self.transmission.home_jacobian
        good = np.isfinite(J).all(axis=(1, 2))
        scaled = J[good] / np.linalg.norm(at_home, axis=1)[:, None]
        sizes = np.maximum(np.linalg.svd(scaled, compute_uv=False), 1e-150)
        # a single ratio is always as regular as can be: it is small beside home's where the motor loses the joint
        size = np.maximum(np.linalg.norm(sizes, axis=1), np.sqrt(n))
        side = np.linalg.slogdet(scaled)[0] * np.linalg.slogdet(at_home)[0] if m == n else 1.0  # no overflow
        found = np.full(len(J), np.nan)
        found[good] = np.minimum(self.linkage.margin[good], side * n / (size * np.linalg.norm(1.0 / sizes, axis=1)))
        return found

    @cached_property
    def status(self) -> NDArray[np.int64]:
        """Statuses (k,): those of the linkage, and SINGULAR where its loops close and the motors lose the joints."""
        status = self.linkage.status
        lost = (status == Status.CONVERGED) & ~is_regular.py_func(np.abs(self.margin))
        return np.where(lost, int(Status.SINGULAR), status)

    @cached_property
    def inverse(self) -> Array:
        """Rates of the joints per rate of each actuator (k, n, m), of redundant ones the least; NaN as `status`."""
        J, good = self.jacobian, self.status == Status.CONVERGED
        found = np.full((len(J), J.shape[2], J.shape[1]), np.nan)
        found[good] = np.linalg.pinv(J[good])
        return found


def hull(points: Array) -> Array:
    """Vertices (k, n) of the convex hull of points (p, n), anticlockwise in the plane; both ends if on a line."""
    n = points.shape[1]
    if n == 1:
        return np.array([points.min(axis=0), points.max(axis=0)])
    from scipy.spatial import ConvexHull  # late: 40 ms

    _, sizes, ways = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    rank = int((sizes > FLAT * sizes[0]).sum())
    if rank <= 1:  # motors without effort, or a single one
        along = points @ ways[0]
        return np.asarray(points[[along.argmin(), along.argmax()]])
    return np.asarray(points[ConvexHull(points if rank == n else points @ ways[:rank].T).vertices])


def _like(q: Array, found: Array) -> Array:
    """Results (k, ...) with the leading axes of q (..., n), in memory that others share."""
    return shareable(found).reshape(*np.shape(q)[:-1], *found.shape[1:])


def _times(matrices: Array, vectors: Array) -> Array:
    if len(vectors) not in (1, len(matrices)):
        raise ShapeError(f"expected 1 or {len(matrices)} rows, as positions have, got {len(vectors)}")
    return np.einsum("kij,kj->ki", matrices, vectors)


def _through(q: Array, gains: Array, rates: Array) -> Array:
    """Gains (n,) or (n, n) of coordinates as those of others, of which they move at `rates` (k, n, m)."""
    given, n = np.asarray(gains, dtype=np.float64), rates.shape[1]
    if given.shape not in ((), (1,), (n,), (n, n)):
        raise ShapeError(f"gains: expected ({n},) or ({n}, {n}), got an array of shape {given.shape}")
    square = given if given.ndim == 2 else np.diag(np.broadcast_to(given, n))
    return _like(q, np.swapaxes(rates, 1, 2) @ square @ rates)
