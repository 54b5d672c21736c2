# SPDX-License-Identifier: Apache-2.0
"""What a follower watches: machine, readings and their rate, straying of the platform, the force-torque sensor."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, Reference, found_at
from pkm_control.controllers.force_laws import ForceLaw
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.motion.curve_check import MOST_AT_REST, STRAINED, CurveCheck, Sliced
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displace, separation

ACTIVE = "active"
"""What a machine calls the state of its life cycle in which its drives follow commands."""
_PATIENCE = 2.0  # s, for a machine that came back to say how it is; it repeats it several times meanwhile
_UNTOLD = "the machine has not said yet whether its drives follow commands"


class MachineWatch:
    """Whether the drives follow commands, by the machine's reports; true for one that never reported anything.
    With `beside` the machine is in the same process: its last report holds, however long readings were silent.
    """

    def __init__(self, beside: bool = False) -> None:
        self._beside = beside
        self._said = ""
        self.followed = False  # once: before, no drives can go off
        self._until = 0.0  # s, on the clock of the caller: how long it is waited for

    def hear(self, state: str) -> None:
        """Note the life-cycle state that the machine reports."""
        self._said = state
        self.followed |= state == ACTIVE

    def forget(self, now: float) -> None:
        """Discard reports from before a long silence: the machine may have restarted, brakes closed; `now` [s]."""
        if self._said and not self._beside:
            self._said = ""
            self.expect(now)

    def expect(self, now: float) -> None:
        """Wait a while for a machine that is known to report, and has not yet; `now` [s]."""
        self._until = now + _PATIENCE

    def problem(self, now: float) -> str:
        """Why nothing can be moved, empty where the drives follow; `now` [s] on the same clock."""
        if self._said == ACTIVE:
            return ""
        if self._said:
            return f"the machine is {self._said}: its drives do not follow commands"
        return _UNTOLD if now < self._until else ""


_WINDOW = 0.5  # s
_FIRST = 4  # readings that give a first, coarse figure: too high a gain throws a machine in a tenth of a second
_SLACK = 0.9  # of the rate that is asked for: what is more counts as all of it, as clocks and counting differ


class ReadingRate:
    """Counts readings over half a second each; `asked`: wanted rate [Hz], `silence` [s]: a longer interval is a gap."""

    def __init__(self, asked: float, silence: float) -> None:
        self._asked, self._silence = asked, silence
        self._began = self._last = 0.0  # s
        self._readings = 0
        self.value = asked  # Hz, of the last window; not more than asked
        self.settled = False  # whether a whole window has been counted

    def note(self, stamp: float) -> None:
        """Count a reading by its stamp [s]; after a silence, or a step of the clock, counting begins anew."""
        if not 0.0 < stamp - self._last < self._silence:
            self._began, self._readings = stamp, 0
        else:
            self._readings += 1
        self._last = stamp
        whole = stamp - self._began >= _WINDOW
        if whole or (not self.settled and self._readings == _FIRST):
            rate = self._readings / (stamp - self._began)
            self.value = self._asked if rate > _SLACK * self._asked else rate
        if whole:
            self._began, self._readings, self.settled = stamp, 0, True


_LARGEST = 0.2  # of the characteristic length: how far the platform may be from its reference by default
_TURN = 2.0  # rad per characteristic length of that
_DEPARTED = 0.25  # of that
_ARRIVED = 0.1  # of that: nearer than this to its goal a motion has reached it
_THERE = 0.01  # of that: nearer is as good as there
_SETTLING = 2.0  # s, for a platform to come there
_CAUGHT = 3  # departures on one way to rest
_WORSE, _LOST = 2, 10  # a reading beyond it counts twice what one within it takes back; one that is wrong is no matter


class StrayWatch:
    """Whether the platform is near its reference; where it has not been for a while, `lost` says why, until `reset`.

    `largest` is the permitted distance [m]; 0: a fifth of the characteristic length. In radians: twice that per length.
    """

    def __init__(self, characteristic_length: float, largest: float = 0.0) -> None:
        self._position = largest or _LARGEST * characteristic_length
        self._rotation = _TURN * self._position / characteristic_length
        self._score = self._departures = 0
        self.lost = ""

    def judge(self, distance: float, angle: float, astray: str) -> None:
        """Compare, in every period, distance [m] and angle [rad] of platform and reference; `astray`: drives are."""
        if self.lost:
            return
        far = self._beyond(distance, angle)
        why = astray or (far and f"{far}: something holds or pushes it, or a drive does not follow")
        self._score = self._score + _WORSE if why else max(0, self._score - 1)
        if self._score >= _LOST:
            self.lost = f"{why}; the drives are off until it is recovered"

    def departure(self, distance: float, angle: float) -> str:
        """How far it departs, by a part of what loses it, or empty: it is brought to rest where the drives are at their
        limits. Departures count until `rest`: a platform that goes on to depart on the way to rest is lost.
        """
        return self._beyond(distance, angle, _DEPARTED) if self._departures < _CAUGHT else ""

    def note_departure(self) -> None:
        """Count one more."""
        self._departures += 1

    def goal(self, asked: Tolerances) -> Tolerances:
        """Those of a motion; where none are asked for at its goal, a part of what loses the platform, and settled."""
        if min(asked.goal_position, asked.goal_rotation) < math.inf:
            return asked
        near = {"goal_position": _ARRIVED * self._position, "goal_rotation": _ARRIVED * self._rotation}
        return replace(asked, **near, goal_time=asked.goal_time or _SETTLING, there=_THERE)

    def rest(self) -> None:
        """The platform came to rest."""
        self._departures = 0

    def _beyond(self, distance: float, angle: float, share: float = 1.0) -> str:
        if distance > share * self._position:
            most = f"{1e3 * share * self._position:.1f} mm"
            return f"the platform is {1e3 * distance:.1f} mm from where it should be, more than {most}"
        if angle > share * self._rotation:
            most = f"{share * self._rotation:.3g} rad"
            return f"the platform is turned by {angle:.3g} rad from where it should be, more than {most}"
        return ""

    def reset(self) -> None:
        """Go on."""
        self._score, self._departures, self.lost = 0, 0, ""


_LOOK = 0.01  # s, between two looks at where pushes lead
_AHEAD, _SOON = 0.1, 0.05  # s, for which a platform that is pushed takes to come to rest; and a slow one
_SMOOTHED = 0.2  # of the newest efforts and twist, at each look
_ASIDE = 0.05  # of the characteristic length: further from its reference a platform is pushed aside
PUSHED = "pushed aside, {}: the platform is held there until it is moved, or recovered"


class PushWatch:
    """Has a force law hold a platform that a push leads too far, as `beyond` says, until `release` or led back."""

    def __init__(self, controller: Controller) -> None:
        self.beyond = ""
        self._law = controller if isinstance(controller, ForceLaw) else None
        self._efforts = np.zeros(len(controller.limits.names))
        self._rate, self._wrench = np.zeros(6), np.zeros(6)
        self._looked = -math.inf  # s
        self._work: Sliced[str] | None = None
        self._at_border = False  # yields again where it was held

    def judge(self, check: CurveCheck, reference: Reference, measured: Measured, last: Array, time: float) -> bool:
        """Whether the platform has to be held from now on; by `last` efforts (n_actuated,), and the `time` [s]."""
        law = self._law
        if law is None or (self._work is None and 0.0 <= time - self._looked < _LOOK):
            return False
        if self._work is None:
            self._looked = time
            self._efforts += _SMOOTHED * (last - self._efforts)
            self._rate += _SMOOTHED * (measured.twist - self._rate)
            self._work = self._look(law, check, reference.beside(law.kinematics), measured)
        try:
            next(self._work)
        except StopIteration as found:
            self._work = None
            if found.value:
                self.beyond = PUSHED.format(found.value)
                self._wrench = law.pushed_by(reference, measured)
            return bool(found.value)
        return False

    def hold(self) -> None:
        """Hold the platform, against what pushes it."""
        if self._law is not None:
            self._law.hold_against(self._wrench)

    def release(self) -> None:
        """Yield again."""
        self.beyond, self._work, self._at_border = "", None, False
        if self._law is not None:
            self._law.rigid = False

    def _look(self, law: ForceLaw, check: CurveCheck, led: Reference, measured: Measured) -> Sliced[str]:
        found = found_at(law.kinematics, measured)
        if self.beyond:
            step = None if led.twist.any() else law.led_by(measured, _AHEAD)
            if step is not None and not self._loaded(law) and (yield from check.leads_in(found, _moved(found, step))):
                self.release()
                self._at_border = True
            return ""
        far = np.array([_ASIDE * law.kinematics.characteristic_length, _TURN * _ASIDE])
        if (np.array(separation(found[:7], led.pose[:7])) < far).all() and not self._at_border:
            return ""
        if led.twist.any():  # it lags, and is slowed down with the motion
            return (yield from check.strayed(led.pose[None], found[None]))
        slow = _SOON * np.linalg.norm(self._rate.reshape(2, 3), axis=1) < far  # to be stopped takes more
        if slow.all() and self._loaded(law):
            return STRAINED
        ahead = _moved(found, self._rate * _AHEAD)
        return (yield from check.strayed(led.pose[None], np.stack([found, ahead])))

    def _loaded(self, law: ForceLaw) -> bool:
        most = MOST_AT_REST * law.limits.effort_bound(self._efforts)
        return bool((np.abs(self._efforts) > most).any())


def _moved(pose: Array, way: Array) -> Array:
    return np.concatenate([displace(pose[:7], way), pose[7:]])


SILENT = "the force sensor is silent"


class ForceWatch:
    """Adds sensor readings to measurements, as long as they are at most `max_age` [s] old. `lost` says why forces can
    no longer be followed, until readings are back and `sensor_returned` was called, for a platform at rest.
    """

    def __init__(self, controller: Controller, max_age: float) -> None:
        self._controller = controller
        self._max_age = max_age
        self._reading: Array | None = None
        self._heard = -np.inf
        self.lost = ""

    def hear(self, reading: Array, now: float) -> None:
        """Take a wrench (6,) on the platform, in the sensor's frame [N, N m], at `now` [s]; ignored unless finite."""
        if np.isfinite(reading).all():
            self._reading, self._heard = np.array(reading, dtype=np.float64), now

    def feel(self, measured: Measured, now: float) -> Measured:
        """Add the wrench where the law needs it and it is known; the law is told which. `now` as in `hear`."""
        controller = self._controller
        if not controller.uses_wrench:
            return measured
        age = now - self._heard
        if self._reading is None:
            self.lost = f"{SILENT}: no reading has ever come"
        elif not age <= self._max_age:
            self.lost = f"{SILENT}: the last reading is {1e3 * age:.0f} ms old, more than {1e3 * self._max_age:.0f} ms"
        controller.engage(not self.lost)
        if self._reading is None or self.lost:
            return measured
        return controller.felt_by(measured, self._reading)

    def fresh(self, now: float) -> bool:
        """Whether readings come."""
        return now - self._heard <= self._max_age

    def sensor_returned(self) -> None:
        """Follow forces again."""
        self.lost = ""
