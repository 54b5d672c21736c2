# SPDX-License-Identifier: Apache-2.0
"""How far a robot's platform gives way, and a robot led so that its platform is nevertheless where it was asked.

`pkm analyse ROBOT stiffness` writes a file (JSON) with the platform's displacement under the robot's own weight and its
compliance at a few hundred poses, with rigid drives, and the stiffness of the drives. Between the poses each number is
interpolated by cubic radial basis functions with a linear part (Wendland, "Scattered Data Approximation", 2005), over
position and rotation vector from home. Away from all poses it fades to zero: what is not known is not compensated.

Links and bearings: the rigid robot that a law knows is led to the pose from which the platform gives way to the asked
one. Drives: a drive of stiffness k that transmits tau is at q + tau / k on its motor's side, where it is measured and
commanded, for a joint at q; tau are the efforts of the reference without those that accelerate the rotor (Spong,
"Modeling and control of elastic joint robots", 1987). Ahead of its joint, the rotor of inertia J takes the effort
J d^2(tau / k)/dt^2 more: the acceleration of a critically damped filter that follows tau / k, `QUICKER` than rotor and
transmission swing, sqrt(k / J), but no quicker than `FASTEST`. So it comes later by two over that pace, and stays
finite where tau jumps.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.weight import payload_wrench
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.errors import ConfigurationError

REMEDY = "write it with pkm analyse ROBOT stiffness --table FILE"


def compliance_values(path: str) -> dict[str, Any]:
    """What a file holds, for whatever robot; nothing for an empty path. Raises `ConfigurationError` as below."""
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except OSError as error:
        raise ConfigurationError(path, "", str(error.strerror or error), "name a file that can be read") from error
    except ValueError as error:
        raise ConfigurationError(path, "", f"it is no JSON: {error}", REMEDY) from error
    if not isinstance(values, dict):
        raise ConfigurationError(path, "", "it is no table of compliance", REMEDY)
    return values


FADES = (2.0, 4.0)  # distances to the nearest pose, of the widest gap between neighbours: from there to there
LARGEST = 0.02  # of the robot's size: displacements beyond are no small ones
_MOST_SAG = 10.0  # of what a force as large as the robot's weight moves the platform by; usual is a tenth to a third


class ComplianceTable:
    """The compliance of one robot at poses (n, 7), base frame, home's working mode.

    `sag` (n, 6) is the platform's displacement under the robot's weight [m, rad], `compliance` (n, 6, 6) in base axes
    [m, rad per N, N m], `load` (6,) a wrench that is always there [N, N m], all at the platform's origin; `drives` has
    stiffness by joint [N m/rad or N/m], missing ones are rigid. ValueError: the motion space turns with the pose, and
    drives are redundant.
    """

    def __init__(
        self,
        kinematics: Kinematics,
        poses: Array,
        sag: Array,
        compliance: Array,
        load: Array,
        drives: Mapping[str, float],
    ) -> None:
        if not kinematics.constant_space and len(kinematics.actuated_names) > kinematics.mobility:
            problem = "the directions in which its platform moves change with the pose, and its drives are redundant"
            raise ValueError(f"{problem}: it is not compensated")
        self.load = load
        self._kinematics = kinematics
        self.drives = dict(drives)
        self._length = kinematics.characteristic_length
        self._home = np.array(kinematics.home, dtype=np.float64)
        places = self._places(poses)
        self._size = float(np.linalg.norm(np.ptp(places, axis=0))) or 1.0
        self._at = places / self._size
        apart = np.linalg.norm(self._at[:, None] - self._at, axis=2)
        linear = np.column_stack([np.ones(len(poses)), self._at])
        system = np.block([[apart**3, linear], [linear.T, np.zeros((7, 7))]])
        possible = self.possible(poses)
        values = np.column_stack([(possible @ sag[:, :, None])[:, :, 0], (possible @ compliance).reshape(-1, 36)])
        self._weights = np.linalg.lstsq(system, np.concatenate([values, np.zeros((7, 42))]), rcond=1e-12)[0]
        np.fill_diagonal(apart, np.inf)
        gap = float(apart.min(axis=1).max()) if len(poses) > 1 else 1.0
        self._fades = np.array(FADES) * gap

    def _places(self, poses: Array) -> Array:
        """Position and rotation vector (n, 6) from home [m], rotations at the robot's length."""
        ways = np.array([displacement_between(self._home, pose) for pose in poses]).reshape(-1, 6)
        return ways * scaling(self._length)

    def possible(self, poses: Array) -> Array:
        """Projections (n, 6, 6) of displacements at poses (n, 7) onto those that the platform can make."""
        space = self._kinematics.at(poses).subspace
        weight = scaling(self._length)[:, None]  # turns at the robot's length
        return np.asarray(space @ np.linalg.pinv(weight * space) * weight.T)

    def displacement(self, poses: Array, wrench: Array) -> Array:
        """Displacements (n, 6) [m, rad] at poses (n, 7) under weight, `load` and the `possible` part of wrenches."""
        at = self._places(poses) / self._size
        apart = np.sqrt(((at[:, None] - self._at) ** 2).sum(axis=2))
        values = np.column_stack([apart**3, np.ones(len(at)), at]) @ self._weights
        found = values[:, :6] + np.einsum("nij,nj->ni", values[:, 6:].reshape(-1, 6, 6), self.load + 0.0 * at + wrench)
        near, far = self._fades
        share = np.clip((far - apart.min(axis=1)) / (far - near), 0.0, 1.0)
        return np.asarray(found * (share * share * (3.0 - 2.0 * share))[:, None])

    def unbent(self, poses: Array, wrench: Array) -> Array:
        """Poses (n, 7) of the rigid robot for which the platform of the elastic one is at `poses` (n, 7)."""
        moves = -self.displacement(poses, wrench)
        moved = np.array([displace(pose, move) for pose, move in zip(poses, moves, strict=True)]).reshape(-1, 7)
        if self._kinematics.constant_space or not len(poses):
            return moved
        at = self._kinematics.at(poses)  # its drives move it, so that it stays among its poses
        ways = np.asarray((at.inverse_jacobian @ moves[:, :, None])[:, :, 0])
        there = np.flatnonzero(closes(at.status) & np.isfinite(ways).all(axis=1))
        if there.size:
            found = self._kinematics.forward(at.actuated[there] + ways[there], poses[there], at.joints[there])
            moved[there] = np.where(closes(found.status)[:, None], found.pose, moved[there])
        return moved


def read_compliance(path: str, kinematics: Kinematics) -> ComplianceTable | None:
    """Read a file; None for an empty path. Raises `ConfigurationError` where it cannot be used for this robot."""
    if not path:
        return None
    refuse_redundant(kinematics.redundant_names, "compensation of elastic robots")
    values = compliance_values(path)
    name = kinematics.mechanism.name
    if values.get("robot") != name:
        problem = f"the file is for {values.get('robot')!r}, the robot is {name!r}"
        raise ConfigurationError(path, "robot", problem, "give the file that was made for this robot")
    poses = _numbers(path, values, "poses", (-1, 7))
    n, size = len(poses), kinematics.engine.size
    if not n or (np.abs(np.linalg.norm(poses[:, 3:], axis=1) - 1.0) > 1e-6).any():
        raise ConfigurationError(path, "poses", "they are missing, or their quaternions have no unit length", REMEDY)
    sag, compliance = _numbers(path, values, "sag", (n, 6)), _numbers(path, values, "compliance", (n, 6, 6))
    load = _numbers(path, values, "load", (6,))
    drives = values.get("drives", {})
    if not isinstance(drives, dict) or not all(_is_stiffness(k) for k in drives.values()):
        raise ConfigurationError(path, "drives", "stiffness is greater than zero, by joint", REMEDY)
    if unknown := set(drives) - set(kinematics.actuated_names):
        raise ConfigurationError(path, "drives", f"the robot has no drive {min(unknown)!r}", REMEDY)
    moved = np.abs(sag[:, :3] + (compliance @ load)[:, :3]).max()
    if moved > LARGEST * size:
        problem = f"the platform moves by {1e3 * moved:.3g} mm, which is no small displacement of this robot"
        raise ConfigurationError(path, "sag", problem, "give m, rad, N and N m")
    at = kinematics.at(poses)
    if (bad := np.flatnonzero(at.status)).size:
        problem = f"pose {bad[0] + 1} is not possible for the robot: {at.reason(int(bad[0]))}"
        raise ConfigurationError(path, "poses", problem, REMEDY)
    weight = np.linalg.norm(kinematics.mechanism.gravity) * sum(
        link.inertial.mass for link in kinematics.mechanism.links
    )
    most = weight * np.linalg.norm(compliance[:, :3, :3], 2, axis=(1, 2))
    if most.max() > _MOST_SAG * LARGEST * size:
        problem = f"a force as large as the robot's weight moves the platform by {most.max():.3g} m"
        raise ConfigurationError(path, "compliance", problem, "give m, rad, N and N m")
    sags = np.linalg.norm(sag[:, :3], axis=1)
    if (bad := np.flatnonzero(sags > _MOST_SAG * most + 1e-12)).size:
        k = bad[0]
        problem = f"at pose {k + 1} it is {1e3 * sags[k]:.3g} mm, and the whole weight moves it {1e3 * most[k]:.3g} mm"
        raise ConfigurationError(path, "sag", problem, "give m, rad, N and N m")
    try:
        return ComplianceTable(kinematics, poses, sag, compliance, load, drives)
    except ValueError as error:
        raise ConfigurationError(path, "robot", str(error), "do without this file") from error


def _numbers(path: str, values: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> Array:
    try:
        found = np.array(values[key], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(path, key, "it is missing, or has no equal rows of numbers", REMEDY) from error
    fits = found.ndim == len(shape) and all(want in (-1, got) for want, got in zip(shape, found.shape, strict=True))
    if not fits or not np.isfinite(found).all():
        raise ConfigurationError(path, key, f"it is not {shape} finite numbers", REMEDY)
    return found


def _is_stiffness(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < np.inf


STEP = 1e-3  # s: over which the rate of a displacement along the motion is taken
QUICKER, FASTEST = 4.0, 400.0  # of the filters of the motors' lead: times, rad/s
SETTLES = 0.05  # s: in which a payload that is gripped or let go is compensated, as by a first-order lag


class Compensation:
    """Between a follower, whose poses are of the elastic platform, and a law, which knows a rigid robot. `windup`
    (n_actuated,) [rad or m] is by how much the motors are ahead of their joints.
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
        if payload is None:
            return np.zeros(6)
        rows = (part[None] for part in (reference.pose, reference.twist, reference.acceleration))
        return payload_wrench(payload, self._gravity, *rows)[0]
