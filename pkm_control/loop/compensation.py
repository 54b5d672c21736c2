# SPDX-License-Identifier: Apache-2.0
"""Leads an elastic robot so that its platform is where it was asked: the reference is moved against what gives way.

Links and bearings: the rigid robot that a law knows is led to the pose from which the platform gives way to the asked
one. Drives: a drive of stiffness k that transmits tau is at q + tau / k on its motor's side, where it is measured and
commanded, for a joint at q; tau are the efforts of the reference without those that accelerate the rotor, which are not
transmitted (Spong, "Modeling and control of elastic joint robots", 1987). Ahead of its joint, the rotor of inertia J
takes the effort J d^2(tau / k)/dt^2 more: the acceleration of a critically damped filter that follows tau / k,
`QUICKER` than rotor and transmission swing, sqrt(k / J), but no quicker than `FASTEST`. So it comes later by two over
that pace, and stays finite where tau jumps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.motion.compliance_table import ComplianceTable
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.weight import payload_wrench
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes

STEP = 1e-3  # s: over which the rate of a displacement along the motion is taken
QUICKER, FASTEST = 4.0, 400.0  # of the filters of the motors' lead: times, rad/s
SETTLES = 0.05  # s: in which a payload that is gripped or let go is compensated, as by a first-order lag


class Compensation:
    """Between a follower, whose poses are of the elastic platform, and a law, which knows a rigid robot.

    `windup` (n_actuated,) [rad or m] is by how much the motors are ahead of their joints.
    """

    def __init__(self, table: ComplianceTable, controller: Controller) -> None:
        kinematics = controller.kinematics
        names, joints = kinematics.actuated_names, kinematics.mechanism.joint_named
        self._track = None if kinematics.constant_space else kinematics.lean_track()
        self._weights = scaling(kinematics.characteristic_length)
        self._table = table
        self._controller = controller
        self._gravity = kinematics.mechanism.gravity
        self._flexibility = np.array([1.0 / table.drives.get(name, math.inf) for name in names])
        self._armature = np.array([0.0 if (d := joints[name].drive) is None else d.armature for name in names])
        self._pace = QUICKER / np.sqrt(np.maximum(self._flexibility * self._armature, (QUICKER / FASTEST) ** 2))
        self.restart()

    def restart(self) -> None:
        """Begin anew with the next reading, of a robot at rest."""
        self.windup = np.zeros(len(self._flexibility))
        self._followed, self._winding = self.windup, self.windup  # the filter of the windup, and its rate
        self._bent = np.zeros(6)  # displacement of the platform
        self._rate = np.zeros(6)
        self._late = np.zeros(6)  # wrench of a payload that is compensated still, less of one that is not yet
        self._payload: Inertial | None = None
        self._rigid: Array | None = None  # pose of the rigid robot by the last reading

    def joint_side(self, positions: Array) -> Array:
        """Positions (n_actuated,) of the joints where the motors are at `positions`."""
        return positions - self.windup

    def seen(self, measured: Measured) -> Measured:
        """The state with the pose of the elastic platform, for a state of the rigid robot at the joints."""
        if self._rigid is None:
            self._payload = self._controller.payload
            self._take(Reference.at_rest(measured.pose), measured)
            self._followed = self.windup
            pose = self._moved(measured.pose, -measured.jacobian @ self.windup, measured)
            measured = replace(measured, positions=measured.positions - self.windup, pose=pose)
        self._rigid = measured.pose
        return replace(measured, pose=self._moved(measured.pose, self._bent, measured))

    def command(
        self, law: Callable[[Reference, Measured], Array], reference: Reference, measured: Measured, passed: float
    ) -> Array:
        """What a law commands (n_actuated,) for a reference of the elastic platform; `passed`: time since last [s]."""
        rigid = measured if self._rigid is None else replace(measured, pose=self._rigid)
        self._late *= math.exp(-passed / SETTLES)
        self._take(reference, rigid)
        soon = reference.update_soon
        if soon is not None:
            soon = self._moved(soon, -self._bent - self._controller.ahead * self._rate, rigid)
        pose, twist = self._moved(reference.pose, -self._bent, rigid), reference.twist - self._rate
        command = law(Reference(pose, twist, reference.acceleration, soon), rigid)
        ahead = self._armature * self._accelerated(passed)
        return command + (self.windup if self._controller.commands == "position" else ahead)

    def _moved(self, pose: Array, displacement: Array, measured: Measured) -> Array:
        """A pose (7,) displaced; by its drives, where the platform cannot move straight."""
        if self._track is None:
            return np.asarray(displace(pose, displacement))
        jacobian = self._weights[:, None] * measured.jacobian
        way = np.linalg.lstsq(jacobian, self._weights * displacement, rcond=None)[0]
        moved = np.array(pose)
        status, _, _ = self._track(self._controller.model.positions(pose) + way, moved)
        return moved if closes(status) else np.asarray(displace(pose, displacement))

    def _accelerated(self, passed: float) -> Array:
        """Mean acceleration (n_actuated,) of the filter of the windup in the time [s] that passed."""
        before, off = self._winding, self._followed - self.windup
        slope, fade = before + self._pace * off, np.exp(-self._pace * passed)
        self._followed = self.windup + (off + slope * passed) * fade
        self._winding = (before - self._pace * slope * passed) * fade
        return (self._winding - before) / passed if passed > 0.0 else np.zeros(len(before))

    def _take(self, reference: Reference, measured: Measured) -> None:
        """Find what gives way at a reference."""
        payload = self._controller.payload
        if payload is not self._payload:
            self._late += self._wrench(self._payload, reference) - self._wrench(payload, reference)
            self._payload = payload
        wrench = self._late + self._wrench(payload, reference)
        poses = np.stack([reference.pose, displace(reference.pose, STEP * reference.twist)])
        now, soon = self._table.displacement(poses, wrench)
        self._bent, self._rate = now, (soon - now) / STEP
        if not self._flexibility.any():
            return
        efforts = self._controller.model.efforts(
            reference.pose, reference.twist, reference.acceleration, measured.joints, self._late + self._table.load
        )
        if self._armature.any() and (reference.twist.any() or reference.acceleration.any()):
            motion = self._controller.kinematics.motion(
                reference.pose, reference.twist, reference.acceleration, seed=measured.joints
            )
            efforts = efforts - self._armature * motion.actuated_accelerations
        if np.isfinite(efforts).all():
            self.windup = efforts * self._flexibility

    def _wrench(self, payload: Inertial | None, reference: Reference) -> Array:
        """Wrench (6,) of a payload on the platform."""
        if payload is None:
            return np.zeros(6)
        rows = (part[None] for part in (reference.pose, reference.twist, reference.acceleration))
        return payload_wrench(payload, self._gravity, *rows)[0]
