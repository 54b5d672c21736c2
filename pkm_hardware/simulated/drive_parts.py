# SPDX-License-Identifier: Apache-2.0
"""Parts of a simulated drive: its control loops, brakes, which close when no commands come, end stops, encoders."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine_kinds import LINEAR_STEP, NOISE_STEPS, SEED, STEPS_PER_TURN, VELOCITY_NOISE
from pkm_hardware.platform_kernels import stop_efforts

_LONGEST = 0.05  # s, between two commands: slower commands are no path
_GOES_ON = 2.0  # times that time without a new command after the end of a way: the drive stops there
_MEAN_OF = 50  # commands: the time between two, and their lateness
_SHORTEST = 0.5  # of the time between two commands: the least that a way takes

CAPACITY = 1.5  # of an actuator's largest effort: what its brake holds, as brakes of servo motors do

_SWEEPS = 30  # over the actuators
_STICKS = 0.02  # rad/s and m/s: actuators that are no faster stick


class DriveLoop:
    """Cascade of a position and a velocity loop, as in well-tuned servo drives that know their load.

    The mass matrix (n, n) [kg m^2, kg m, kg] scales the gains, so that the bandwidth [rad/s] is that of the velocity
    loop in every direction; the position loop has a quarter of it, which makes the pair critically damped. As drives do
    that receive positions at a fixed rate, it interpolates from one to the next in the time between them, so that it
    arrives when the next one comes (taken as steps, positions of 100 Hz would saturate the drives). A command's time
    follows from the reading that it answers: one that comes later than others after its reading has less time left, so
    that jitter on the way causes no motion. The rate of the interpolation, low-passed at the bandwidth, is fed forward.
    """

    def __init__(self, mass: Array, bandwidth: float = 300.0) -> None:
        self.mass = np.asarray(mass, dtype=np.float64)
        self.bandwidth = bandwidth
        self.reset()

    def reset(self) -> None:
        """Forget past commands."""
        self._way: _Way | None = None
        self._of: float | None = None  # s, of the reading that the last command answered
        self._between = 0.0  # s, between two commands, on average
        self._late = 0.0  # s, of commands after their readings, on average
        self._count = 0  # of commands
        self._feedforward = np.zeros(len(self.mass))

    def take(self, command: Array, of: float, time: float) -> None:
        """Go to a position (n,) [rad or m] in the time between two commands; `of` [s]: its reading, `time` [s]: now."""
        late = time - of
        if not 0.0 <= late <= _LONGEST:  # the sender has another clock
            of, late = time, 0.0
        if self._of is None or self._way is None:
            self._way, self._of, self._late = _Way.rest(command), of, late
        elif of > self._of:
            gap, self._of = min(of - self._of, _LONGEST), of
            self._count += 1
            share = 1.0 / min(self._count, _MEAN_OF)
            self._between += share * (gap - self._between)
            self._late += share * (late - self._late)
            self._way = self._way.on(np.array(command), gap, self._between, self._late - late)
        elif self._way.before is None:
            self._way = _Way.rest(command)
        else:  # the same reading: the newer command takes the place of the last
            way = self._way.before
            self._way = way.on(np.array(command), self._way.gap, self._between, self._late - late)

    @property
    def setpoint(self) -> Array | None:
        """The interpolated command (n,) [rad or m]; None before the first command."""
        return None if self._way is None else self._way.at()

    def velocity(self, command: Array, velocities: Array, gravity: Array) -> Array:
        """Efforts (n,) that follow velocity commands, from measured `velocities`; `gravity` (n,) carries the load."""
        return gravity + self.bandwidth * self.mass @ (command - velocities)

    def position(self, positions: Array, velocities: Array, gravity: Array, dt: float) -> Array:
        """Efforts (n,) [N m or N] for the next dt [s] that follow position commands, or hold before the first.
        `positions` (n,) [rad or m] and `velocities` (n,) are measured; the efforts `gravity` (n,) carry the load.
        """
        if self._way is None:
            self._way = _Way.rest(positions)
        before = self._way.at()
        self._way.passed += dt
        setpoint = self._way.at()
        self._feedforward += min(1.0, self.bandwidth * dt) * ((setpoint - before) / dt - self._feedforward)
        wanted = self._feedforward + 0.25 * self.bandwidth * (setpoint - positions)
        return self.velocity(wanted, velocities, gravity)


@dataclass
class _Way:
    """Cubic from one commanded position to the next, which begins with the present rate.

    It ends with the rate that the last chord and its bend predict, as far as the chord before was bent that way, too: a
    stop does not lead back. It goes on with that rate for a while where the next command is late. Positions (n,) [rad
    or m], rates `rate`, `last` and `chord` (n,) a second, `bend` (n,) a second squared; times [s].
    """

    start: Array
    rate: Array
    end: Array
    last: Array
    chord: Array
    bend: Array
    duration: float
    goal: Array  # that was commanded: the end, or passed already by then
    goes_on: float = 0.0  # after the end
    gap: float = 0.0  # between the readings that its command and the one before answer
    before: _Way | None = None
    passed: float = 0.0

    @classmethod
    def rest(cls, place: Array) -> _Way:
        still = np.zeros(len(place))
        return cls(np.array(place), still, np.array(place), still, still, still, 1.0, np.array(place))

    def on(self, goal: Array, gap: float, between: float, early: float) -> _Way:
        """The way from here to a goal (n,) [rad or m]. `gap` [s] between the readings that it and the last one answer,
        `between` [s] two commands, usually; `early` [s]: how much sooner after its reading it came than others do.
        """
        chord = (goal - self.goal) / gap
        bend = 2.0 * (chord - self.chord) / (gap + (self.gap or gap))
        most = np.where(bend * self.bend > 0.0, 2.0 * np.abs(self.bend), 0.0)
        last = chord + 0.5 * gap * np.clip(bend, -most, most)
        left = between + early
        duration = max(left, _SHORTEST * between)
        end, before = goal + (duration - left) * last, replace(self, before=None)
        return _Way(self.at(), self._rate(), end, last, chord, bend, duration, goal, _GOES_ON * between, gap, before)

    def at(self) -> Array:
        s = self.passed / self.duration
        if s > 1.0:
            return self.end + min(self.passed - self.duration, self.goes_on) * self.last
        bend = (1.0 - s) * (self.rate * self.duration) - s * (self.last * self.duration)
        return self.start + s * s * (3.0 - 2.0 * s) * (self.end - self.start) + s * (1.0 - s) * bend

    def _rate(self) -> Array:
        s = self.passed / self.duration
        if s >= 1.0:
            return self.last if self.passed - self.duration < self.goes_on else np.zeros_like(self.last)
        chord = (self.end - self.start) / self.duration
        rise = (1.0 - s) * (1.0 - 3.0 * s) * self.rate - s * (2.0 - 3.0 * s) * self.last
        return np.asarray(6.0 * s * (1.0 - s) * chord + rise)


class Brakes:
    """Dry friction that stops the actuators, each with at most the effort of its brake, and then holds them.

    Of all efforts within the brakes' capacity, friction has those that leave the least kinetic energy after the step
    (Moreau's principle of maximal dissipation). So an actuator that slips is slowed down, also where its mass is
    coupled with those of others. `mass` is the mass matrix in the actuators (n, n) [kg m^2, kg m, kg], `effort` the
    largest efforts of the actuators (n,) [N m or N], infinite where there is no limit.
    """

    def __init__(self, mass: Array, effort: Array) -> None:
        self.set_mass(mass)
        self.capacity = CAPACITY * np.asarray(effort, dtype=np.float64)
        self.closed = False
        self.holding = False  # closed, and nothing moves any more

    def open(self) -> None:
        """Release the actuators."""
        self.closed = self.holding = False

    def efforts(self, velocities: Array, h: float) -> Array:
        """Close, and return the brakes' efforts (n,) [N m or N] in the next step of length h [s].
        Where they suffice to stop the `velocities` (n,) [rad/s or m/s] within the step, `holding` is set.
        """
        self.closed = True
        wanted = -self._mass @ velocities / h
        if np.all(np.abs(wanted) <= self.capacity) or np.all(np.abs(velocities) <= _STICKS):
            self.holding = True
        if self.holding:
            return np.clip(wanted, -self.capacity, self.capacity)
        given = np.zeros(len(velocities))
        mobility = self._mobility * h
        for _ in range(_SWEEPS):  # projected Gauss-Seidel
            for i in range(len(given)):
                slip = velocities[i] + mobility[i] @ given
                given[i] = min(max(given[i] - slip / mobility[i, i], -self.capacity[i]), self.capacity[i])
        return given

    def set_mass(self, mass: Array) -> None:
        """Set the mass matrix in the actuators (n, n), which changes with the pose."""
        self._mass = np.asarray(mass, dtype=np.float64)
        self._mobility = np.linalg.pinv(self._mass)


class EndStops:
    """Critically damped springs beyond the range of each joint; they push, and never pull back.

    They are as hard as the integration step [s] allows. Range ends `lower`, `upper` (n,) [rad or m], `inertia` at each
    joint (n,) [kg m^2 or kg].
    """

    def __init__(self, lower: Array, upper: Array, inertia: Array, step: float) -> None:
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        frequency = 0.2 / step
        self._stiffness = np.asarray(inertia) * frequency**2
        self._damping = 2.0 * np.asarray(inertia) * frequency

    def efforts(self, positions: Array, velocities: Array) -> Array:
        """Efforts (n,) [N m or N] of the stops at the joints' positions and velocities (n,); zero inside the range."""
        out = np.empty(len(positions))
        stop_efforts(positions, velocities, self.lower, self.upper, self._stiffness, self._damping, out)
        return out


class Encoder:
    """Rounds positions to steps and adds Gaussian noise, reproducibly by `seed`; ValueError: a number is negative.

    `resolution` is the size of one step [rad or m at the joint], 0 for none; `position_noise` [rad or m] and
    `velocity_noise` [rad/s or m/s] are standard deviations. Each is a number for all actuators or (n,).
    """

    def __init__(
        self,
        resolution: float | Array = 0.0,
        position_noise: float | Array = 0.0,
        velocity_noise: float | Array = 0.0,
        seed: int = 0,
    ) -> None:
        if min(np.min(resolution), np.min(position_noise), np.min(velocity_noise)) < 0.0:
            raise ValueError("resolution and noise of an encoder are zero or more")
        self.resolution = resolution
        self.position_noise = position_noise
        self.velocity_noise = velocity_noise
        self._random = np.random.default_rng(seed)
        self._perfect = not (np.any(resolution) or np.any(position_noise) or np.any(velocity_noise))

    def read(self, positions: Array, velocities: Array) -> tuple[Array, Array]:
        """Measured positions and velocities for the true ones, each (n,) [rad or m, rad/s or m/s]."""
        if self._perfect:
            return positions, velocities
        measured = positions + self.position_noise * self._random.standard_normal(positions.shape)
        stepped = np.asarray(self.resolution) > 0.0
        if stepped.any():
            step = np.where(stepped, self.resolution, 1.0)
            measured = np.where(stepped, np.round(measured / step) * step, measured)
        return measured, velocities + self.velocity_noise * self._random.standard_normal(velocities.shape)


def realistic_encoder(limits: ActuatorLimits) -> Encoder:
    """Encoders with the steps and the noise of `pkm_hardware.machine_kinds`, for rotary or linear drives."""
    slides = np.array([unit == "m" for unit in limits.length_units])
    resolution = np.where(slides, LINEAR_STEP, 2.0 * math.pi / STEPS_PER_TURN)
    turning, sliding = VELOCITY_NOISE
    return Encoder(resolution, NOISE_STEPS * resolution, np.where(slides, sliding, turning), SEED)
