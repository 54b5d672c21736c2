# SPDX-License-Identifier: Apache-2.0
"""What a motion requires of every joint, against the limits in the description.

The motion is given by samples and taken as linear between them: integrals follow the trapezoidal rule, and peaks are
those of the samples.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.plottable import Plottable
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.distribution import Distribution
from pkm_kinematics import Kinematics, Motion
from pkm_kinematics.status import Status
from pkm_runtime.describable import measure


@dataclass(frozen=True)
class Exceeded:
    """A limit that a motion exceeds."""

    joint: str
    what: str  # "position", "velocity" or "effort"
    value: float
    limit: float
    time: float  # s, of the peak


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(Plottable):
    """What a motion requires of the actuators (m) at its samples (n), and of all joints."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "torque torques": "effort has what the actuators exert",
        "ok success limits": "exceeded lists the limits that the motion exceeds",
    }

    _picture: ClassVar[str] = "performance_pictures.prediction_picture"

    robot: str  # its name
    times: Array  # (n,) s
    names: tuple[str, ...]  # of the actuators
    units: tuple[str, ...]  # "rad" or "m", of their positions
    velocity: Array  # (n, m) rad/s, m/s
    acceleration: Array  # (n, m)
    effort: Array  # (n, m) N m, N: what the actuators exert on their joints, rotors accelerated
    load: Array  # (n, m) the same without the rotors of the description
    holding: Array  # (m,) N m, N: what holds the last pose, at rest there
    effort_limits: Array  # (m,)
    velocity_limits: Array  # (m,)
    exceeded: tuple[Exceeded, ...]  # of all joints, the passive ones' positions too
    joint_names: tuple[str, ...]  # all limb joints, then loops
    force: Array  # (j,) N: largest force that each transmits
    moment: Array  # (j,) N m
    base: Array  # (2,) N and N m: largest force and moment on the ground

    @property
    def duration(self) -> float:
        """Duration [s] of the motion."""
        return float(self.times[-1] - self.times[0])

    @property
    def power(self) -> Array:
        """Mechanical power (n, m) [W] of each actuator; negative where it brakes."""
        return np.asarray(self.effort * self.velocity)

    @property
    def peak_effort(self) -> Array:
        """Largest absolute effort (m,) [N m, N]."""
        return np.asarray(np.abs(self.effort).max(axis=0))

    @property
    def rms_effort(self) -> Array:
        """Root mean square effort (m,) [N m, N], which heats a motor."""
        return self.rms(self.effort)

    @property
    def peak_velocity(self) -> Array:
        """Largest absolute velocity (m,) [rad/s, m/s]."""
        return np.asarray(np.abs(self.velocity).max(axis=0))

    @property
    def rms_velocity(self) -> Array:
        """Root mean square velocity (m,) [rad/s, m/s]."""
        return self.rms(self.velocity)

    @property
    def peak_power(self) -> Array:
        """Largest power (m,) [W] that each actuator delivers."""
        return np.asarray(self.power.max(axis=0))

    @property
    def peak_total_power(self) -> float:
        """Largest power [W] of all actuators together: what the supply must deliver, without losses."""
        return float(self.power.sum(axis=1).max())

    @cached_property
    def work_given(self) -> Array:
        """Energy (m,) [J] that each actuator delivers over the motion, without what it takes back."""
        return self.integral(np.maximum(self.power, 0.0))

    @cached_property
    def work_taken(self) -> Array:
        """Energy (m,) [J] that each actuator takes back, to be dissipated or fed back."""
        return self.integral(np.maximum(-self.power, 0.0))

    @property
    def energy(self) -> float:
        """Energy [J] that the actuators deliver over the motion less what they take back."""
        return float((self.work_given - self.work_taken).sum())

    @property
    def effort_use(self) -> Array:
        """Peak effort relative to its limit (m,)."""
        return np.asarray(self.peak_effort / self.effort_limits)

    @property
    def velocity_use(self) -> Array:
        """Peak speed relative to its limit (m,)."""
        return np.asarray(self.peak_velocity / self.velocity_limits)

    def duty(self, continuous: ArrayLike, rest: float = 0.0) -> Array:
        """Thermal duty (m,): mean square of the effort by that of the continuous one; above 1 a motor overheats.

        Args:
            continuous: effort that each actuator can exert permanently (m,), or one for all [N m, N].
            rest: time [s] after each run of the motion, in which the actuators hold the last pose.
        """
        squares = self.rms_effort**2 * self.duration + self.holding**2 * rest
        return np.asarray(squares / (self.duration + rest) / np.asarray(continuous, dtype=float) ** 2)

    def integral(self, values: Array) -> Array:
        """Integral over the motion of values (n, ...)."""
        return np.asarray(np.trapezoid(values, self.times, axis=0))

    def rms(self, values: Array) -> Array:
        """Root mean square over the motion of values (n, ...) that are linear between samples."""
        a, b = values[:-1], values[1:]
        squares = (a * a + a * b + b * b) / 3.0
        steps = np.diff(self.times)
        return np.asarray(np.sqrt(np.einsum("n,n...->...", steps, squares) / steps.sum()))

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        drives = {
            name: {
                "unit": self.units[k],
                "peak_effort": float(self.peak_effort[k]),
                "rms_effort": float(self.rms_effort[k]),
                "holding_effort": float(self.holding[k]),
                "effort_limit": float(self.effort_limits[k]),
                "peak_speed": float(self.peak_velocity[k]),
                "rms_speed": float(self.rms_velocity[k]),
                "speed_limit": float(self.velocity_limits[k]),
                "peak_power": float(self.peak_power[k]),
                "work_given": float(self.work_given[k]),
                "work_taken_back": float(self.work_taken[k]),
            }
            for k, name in enumerate(self.names)
        }
        loads = zip(self.joint_names, self.force.tolist(), self.moment.tolist(), strict=True)
        return {
            "robot": self.robot,
            "duration": self.duration,
            "energy": self.energy,
            "peak_total_power": self.peak_total_power,
            "drives": drives,
            "joints": {name: {"force": force, "moment": moment} for name, force, moment in loads},
            "base": {"force": float(self.base[0]), "moment": float(self.base[1])},
            "exceeded": [asdict(one) for one in self.exceeded],
        }

    def _summary(self) -> str:
        use = int(np.nanargmax(np.maximum(self.effort_use, self.velocity_use)))
        limits = f"{len(self.exceeded)} limits exceeded" if self.exceeded else "within all limits of the description"
        return f"{self.duration:.4g} s, {limits}, {self.names[use]} is loaded most"

    def _details(self) -> list[str]:
        lines = []
        for k, name in enumerate(self.names):
            effort, speed = ("N", "m/s") if self.units[k] == "m" else ("N m", "rad/s")
            lines.append(
                f"{name}: effort peak {measure(self.peak_effort[k])} {effort}, RMS {measure(self.rms_effort[k])}; "
                f"speed peak {measure(self.peak_velocity[k])} {speed}; power peak {measure(self.peak_power[k])} W; "
                f"work given {measure(self.work_given[k])} J, taken back {measure(self.work_taken[k])} J"
            )
        lines.append(f"all together: peak {measure(self.peak_total_power)} W, energy {measure(self.energy)} J")
        lines += [f"{e.joint}: {e.what} {e.value:.6g} beyond {e.limit:.6g} at {e.time:.4g} s" for e in self.exceeded]
        return lines


def predict(
    dynamics: Dynamics,
    times: ArrayLike,
    poses: ArrayLike,
    twists: ArrayLike,
    accelerations: ArrayLike,
    *,
    payload: Inertial | None = None,
    wrench: ArrayLike | None = None,
    distribution: Distribution | None = None,
    mode: int | None = None,
) -> Prediction:
    """What a motion requires of a robot.

    Args:
        dynamics: of the robot, with its friction.
        times: of the samples (n,) [s], increasing.
        poses: (n, 7), or task coordinates (n, c).
        twists: of the platform (n, 6) [m/s, rad/s].
        accelerations: of the platform (n, 6) [m/s^2, rad/s^2].
        payload: carried by the platform.
        wrench: additional external wrench on it (n, 6), about its origin, base axes [N, N m].
        distribution: of efforts among redundant actuators.
        mode: number of a working mode, home's by default.

    Raises:
        AnalysisError: fewer than two samples, times that do not increase, or a sample out of reach.
        ShapeError: an array of the wrong shape.
        ModeError: no such working mode.
    """
    k = dynamics.kinematics
    at, found = _followed(k, times, poses, twists, accelerations, mode)
    # efforts that are beyond joint limits are efforts as well: the seeds are the joints themselves
    solved = k.at(poses, seed=found.joints)
    carried = (twists, accelerations, wrench)
    loads = dynamics.reactions(solved, *carried, payload=payload, distribution=distribution)
    effort = dynamics.inverse(solved, *carried, payload=payload, distribution=distribution).effort
    # the last sample may still move or decelerate; in a rest after it nothing does
    still, pressed = np.zeros(6), None if wrench is None else np.broadcast_to(wrench, (len(at), 6))[-1]
    holding = dynamics.inverse(
        k.at(np.asarray(poses)[-1], seed=found.joints[-1]),
        still,
        still,
        pressed,
        payload=payload,
        distribution=distribution,
    ).effort
    mechanism = k.mechanism
    joints = [mechanism.joint_named[name] for name in k.actuated_names]
    armature = np.array([0.0 if joint.drive is None else joint.drive.armature for joint in joints])
    velocity, acceleration = found.actuated_velocities, found.actuated_accelerations
    force, moment = (np.linalg.norm(loads.wrench[..., part], axis=-1) for part in (slice(0, 3), slice(3, 6)))
    base = [np.linalg.norm(loads.base[:, part], axis=-1).max() for part in (slice(0, 3), slice(3, 6))]
    effort_limits = np.array([joint.limits.effort for joint in joints])
    velocity_limits = np.array([joint.limits.velocity for joint in joints])
    lower, upper = k.engine.ranges.limits
    beyond = [
        *_beyond(k.joint_names, "position", found.joints, lower, upper, at),
        *_beyond(k.actuated_names, "velocity", velocity, -velocity_limits, velocity_limits, at),
        *_beyond(k.actuated_names, "effort", effort, -effort_limits, effort_limits, at),
    ]
    return Prediction(
        robot=mechanism.name,
        times=at,
        names=k.actuated_names,
        units=tuple(k.engine.names.units[name] for name in k.actuated_names),
        velocity=velocity,
        acceleration=acceleration,
        effort=effort,
        load=effort - armature * acceleration,
        holding=holding,
        effort_limits=effort_limits,
        velocity_limits=velocity_limits,
        exceeded=tuple(beyond),
        joint_names=loads.names,
        force=force.max(axis=0),
        moment=moment.max(axis=0),
        base=np.array(base),
    )


def _followed(
    kinematics: Kinematics,
    times: ArrayLike,
    poses: ArrayLike,
    twists: ArrayLike,
    accelerations: ArrayLike,
    mode: int | None,
) -> tuple[Array, Motion]:
    """Times (n,) and the joints' motion at these; raises `AnalysisError` where there is none."""
    at = np.asarray(times, dtype=float)
    if at.ndim != 1 or len(at) < 2 or not np.isfinite(at).all() or (np.diff(at) <= 0.0).any():
        raise AnalysisError("times of the motion", "they are not two or more that increase", "give one for each sample")
    found = kinematics.motion(poses, twists, accelerations, mode=mode)
    reached = np.isin(found.status, (Status.CONVERGED, Status.JOINT_LIMIT))
    if np.shape(found.status) != at.shape:
        raise AnalysisError(
            "motion", f"{np.size(found.status)} samples go with {len(at)} times", "give as many of both"
        )
    if not reached.all():
        first = int(np.argmin(reached))
        raise AnalysisError("motion", f"at {at[first]:.4g} s: {found.reason(first)}", "keep it inside the workspace")
    return at, found


def _beyond(names: tuple[str, ...], what: str, values: Array, lower: Array, upper: Array, at: Array) -> list[Exceeded]:
    """Limits that are exceeded, each at its worst sample."""
    found = []
    for k, name in enumerate(names):
        over = np.maximum(values[:, k] - upper[k], lower[k] - values[:, k])
        worst = int(np.argmax(over))
        if over[worst] > 0.0:
            value = float(values[worst, k])
            limit = upper[k] if value > upper[k] else lower[k]
            found.append(Exceeded(name, what, value, float(limit), float(at[worst])))
    return found
