# SPDX-License-Identifier: Apache-2.0
"""Travel and speed of a belt, by readings of its encoder whose stamps have errors.

An estimator of position and speed takes the readings: least squares while there are few, then with weights that fade
over the `smoothing` time (a critically damped g-h filter; Brookner, "Tracking and Kalman filtering made easy", 1998). A
belt that keeps its speed is estimated without lag; where a second estimate of a fifth of that time departs from the
first by the `drift`, the belt changes its speed, and the first continues from the second.

The control loop follows the estimate by a filter of third order, so that position, speed and acceleration are
continuous, however readings come.
"""

from __future__ import annotations

import math

import numpy as np

from pkm_control.conveyor.conveyor import BeltState, Conveyor

_BANDWIDTH = 60.0  # rad/s, of what follows the estimate
_STEP = 2e-3  # s: longest of its steps
_SETTLED = 10  # readings
_SHORTEST = 0.05  # s, of readings
_FEWEST = 3  # readings after which one that is far off is a jump
_QUICK = 0.2  # of the smoothing time: that of a second estimate, which follows a belt that changes its speed
_BEYOND = 1e9  # m, of travel
_RESTS = 0.05  # m/s, beyond the largest speed: what an estimate may err by


class _Estimate:
    """Position [m] and rate [m/s] by readings, of which those further back than `smoothing` [s] count little."""

    def __init__(self, smoothing: float) -> None:
        self.position = self.rate = 0.0
        self._smoothing = smoothing
        self._count = 0  # that the weights are for

    def begin(self, position: float, rate: float = 0.0, count: int = 1) -> None:
        self.position, self.rate, self._count = position, rate, count

    def correct(self, error: float, interval: float) -> None:
        """Correct by a reading's error [m], with the weights for the mean interval, whatever the errors of stamps."""
        n = self._count
        theta = math.exp(-interval / self._smoothing)
        g, h = 1.0 - theta * theta, (1.0 - theta) ** 2
        few = 2.0 * (2 * n + 1) / ((n + 1) * (n + 2))
        if few > g:  # least squares on a line through all there are
            g, h = few, 6.0 / ((n + 1) * (n + 2))
        self.position += g * error
        self.rate += h / interval * error
        self._count += 1


class Belt:
    """One belt; readings and the control loop may be of two threads that share a lock. `travel` [m], `speed` [m/s] and
    `acceleration` [m/s^2] are those of the last `advance`. Times are on the clock of the machine's readings [s].
    """

    def __init__(self, conveyor: Conveyor) -> None:
        self.conveyor = conveyor
        self.travel = self.speed = self.acceleration = 0.0
        self.jumps = 0  # since the beginning
        self.jumped = 0.0  # m, the last time
        self._count = 0  # readings since the beginning, or since the last jump
        self._old = 0  # readings in a row that are much too old
        self._first = 0.0  # s: the stamp of the first of them
        self._at = -math.inf  # s: the instant of the estimates, on the clock of the readings
        self._smooth = _Estimate(conveyor.smoothing)
        self._quick = _Estimate(_QUICK * conveyor.smoothing)
        self._unusable = ""
        self._now: float | None = None

    def hear(self, stamp: float, reading: float) -> None:
        """Take a reading in the encoder's unit. Stamps may come out of order; one that is much too old is left out.

        Several that are as much too old, one after the other, say that the clock stepped, or that the stamp before them
        was wrong: then the belt is found anew.
        """
        conveyor, smooth, quick = self.conveyor, self._smooth, self._quick
        travel, time = conveyor.metres_per_unit * (reading - conveyor.offset), stamp - conveyor.latency
        if not (math.isfinite(travel) and math.isfinite(time) and abs(travel) < _BEYOND):
            self._unusable = "its readings are not finite, or beyond all belts"
            return
        self._unusable = ""
        passed = time - self._at
        if passed == 0.0:  # a stamp that stands says nothing new, and a belt that moved in no time is none
            return
        self._old = self._old + 1 if passed < -conveyor.silence else 0
        if self._old >= _FEWEST:
            self._count = self._old = 0
        if self._count and passed <= (0.0 if self._count < _SETTLED else -conveyor.smoothing):
            return
        if self._count and passed > conveyor.silence:
            self._count = 0
        error = travel - (quick.position + quick.rate * passed) if self._count else 0.0
        if self._count >= _FEWEST and abs(error) > conveyor.jump:
            self.jumps, self.jumped, self._count = self.jumps + 1, error, 0
        if self._count == 0:
            self._first = self._at = time
            smooth.begin(travel)
            quick.begin(travel)
        else:
            self._take(travel, time, passed)
        self._count += 1

    def _take(self, travel: float, time: float, passed: float) -> None:
        """Correct both estimates; where they part, the belt changes its speed, and the quick one is right."""
        late = min(passed, 0.0)
        self._at = max(self._at, time)
        interval = max((self._at - self._first) / self._count, _SHORTEST / 1e3)
        for one in (self._smooth, self._quick):
            one.position += one.rate * max(passed, 0.0)
            one.correct(travel - (one.position + one.rate * late), interval)
        if abs(self._smooth.position - self._quick.position) > self.conveyor.drift:
            readings = max(1, round(2.0 * _QUICK * self.conveyor.smoothing / interval))
            self._smooth.begin(self._quick.position, self._quick.rate, min(self._count, readings))

    def problem(self, time: float) -> str:
        """Why the belt's travel is not known; empty where it is."""
        conveyor = self.conveyor
        who = f"conveyor '{conveyor.name}'"
        if not math.isfinite(self._at):
            return f"no reading of {who} has come (joint '{conveyor.joint}' on topic '{conveyor.topic}')" + (
                f": {self._unusable}" if self._unusable else ""
            )
        age = time - self._at - conveyor.latency
        if abs(age) > conveyor.silence:
            why = self._unusable or f"its encoder is silent for {age:.3g} s"
            ahead = f"its stamps are {-age:.3g} s ahead of the machine's"
            return f"{who} is lost: {ahead if age < 0.0 and not self._unusable else why}"
        if self._count < _SETTLED or self._at - self._first < _SHORTEST:
            jumped = f", since it jumped by {1e3 * self.jumped:.3g} mm" if self.jumps else ""
            return f"{who} is not known well enough yet{jumped}: {self._count} readings"
        if abs(self._smooth.rate) > conveyor.max_speed + _RESTS:
            return f"{who} runs at {self._smooth.rate:.3g} m/s, more than {conveyor.max_speed:g} m/s"
        return ""

    def advance(self, time: float) -> None:
        """Advance to a time."""
        if not self._count:
            return
        before, self._now = self._now, time
        position = self._smooth.position + self._smooth.rate * (time - self._at)
        passed = 0.0 if before is None else time - before
        far = abs(position - self.travel) > self.conveyor.jump + self.conveyor.deviation
        if before is None or not 0.0 <= passed <= self.conveyor.silence or far:
            self.travel, self.speed, self.acceleration = position, self._smooth.rate, 0.0
            return
        steps = max(1, math.ceil(passed / _STEP))
        h = passed / steps
        for k in range(steps):
            self._step(position - self._smooth.rate * h * (steps - 1 - k), h)

    def _step(self, position: float, h: float) -> None:
        w, most = _BANDWIDTH, self.conveyor.max_acceleration
        ahead = self.travel + self.speed * h
        jerk = w**3 * (position - ahead) + 3.0 * w * w * (self._smooth.rate - self.speed) - 3.0 * w * self.acceleration
        self.acceleration = min(max(self.acceleration + jerk * h, -most), most)
        self.speed += self.acceleration * h
        self.travel += self.speed * h

    def state(self, time: float) -> BeltState:
        """The estimate at a time."""
        problem = self.problem(time)
        if not math.isfinite(self._at):
            return BeltState(math.nan, math.nan, problem)
        return BeltState(self._smooth.position + self._smooth.rate * (time - self._at), self._smooth.rate, problem)


class SimulatedBelt:
    """Runs, and passes its encoder's readings to a `Belt`. Its `speed` [m/s] may be changed, and is reached at the
    conveyor's largest acceleration; while `silent` no readings come; `slip` [m] makes the reading jump, not the belt.
    """

    def __init__(self, conveyor: Conveyor) -> None:
        self.conveyor = conveyor
        self.speed = conveyor.simulated.speed
        self.travel = 0.0
        self.silent = False
        self.slip = 0.0
        self.running = self.speed  # m/s, now
        self._random = np.random.default_rng(1)  # for the errors of the stamps
        self._time = 0.0
        self._next = 0.0

    def step(self, time: float, belt: Belt) -> None:
        """Advance to a time [s] on the clock of the readings, and pass each reading that is due to `belt`."""
        drive = self.conveyor.simulated
        while self._next <= time:
            self._run(self._next)
            self._next += 1.0 / drive.rate
            if not self.silent:
                stamp = self._time + drive.jitter * self._random.uniform(-1.0, 1.0)
                read = (self.travel + self.slip) / self.conveyor.metres_per_unit + self.conveyor.offset
                belt.hear(stamp + self.conveyor.latency, read)
        self._run(time)

    def _run(self, until: float) -> None:
        passed, self._time = until - self._time, until
        most = self.conveyor.max_acceleration * passed
        before = self.running
        self.running += min(max(self.speed - before, -most), most)
        self.travel += 0.5 * (before + self.running) * passed
