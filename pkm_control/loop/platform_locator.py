# SPDX-License-Identifier: Apache-2.0
"""Where the platform is by the actuators' readings, which of them are believed, and in which assembly mode it is."""

from __future__ import annotations

import math

import numpy as np

from pkm_control.controllers.controller import Controller, Measured, found_at
from pkm_description.mechanism import Array
from pkm_hardware.device_readings import ReadingWatch
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.tracker import Tracker
from pkm_kinematics.kernels.dense import magnitude
from pkm_kinematics.status import Status, closes

# rad, and of the characteristic length: more than errors make; between actuators of two modes, and redundant ones
FAR = 0.05
CONTRADICT = "the drives contradict each other by {:.3g} {}: one slips, or its reading is wrong"


class PlatformObserver:
    """The measured motion of a machine that stays in its working and assembly mode, from a pose (7,), home by default.

    `reason` is empty while readings make sense, and otherwise says why the last one was refused; the next is taken as
    one that goes on from the last that was not. A joint beyond its limit, by what an end stop gives, is no reason.
    """

    def __init__(self, kinematics: Kinematics, pose: Array | None = None) -> None:
        self._kinematics = kinematics
        self._tracker = Tracker(kinematics, pose)
        slides = not kinematics.engine.actuated_turning.any()
        self._unit, self._most = "m" if slides else "rad", FAR
        if slides:
            self._most *= kinematics.characteristic_length
        self.contradiction = ""  # of redundant drives, too large for a machine that yields a little
        self.reason = ""
        self.singular = False  # a singularity of type 2 lies before the last reading

    def forget(self, mode: int = 0) -> None:
        """Take the next reading as of a platform from home in a mode; where home has none, the last joints are kept."""
        home = np.array(self._kinematics.home)
        solution = self._kinematics.inverse(home, mode=mode)
        if closes(solution.status):
            self.start(home, np.array(solution.joints))

    def start(self, pose: Array, joints: Array) -> None:
        """Take the next reading as one that goes on from a pose (7,), base frame, with joint positions (n_joints,)."""
        self._tracker = Tracker(self._kinematics, pose, joints)

    @property
    def configuration(self) -> tuple[Array, Array]:
        """The last known pose (7,) and joints (n_joints,)."""
        return self._tracker.last.pose, self._tracker.last.joints

    @property
    def pose(self) -> Array:
        """The last known pose (7 + r,), with the positions of redundant joints behind it."""
        last = self._tracker.last
        return np.append(last.pose, last.joints[self._kinematics.engine.redundant_column])

    def observe(self, positions: Array, velocities: Array) -> Measured | None:
        """Motion of platform and joints for positions, velocities (n_actuated,) [rad or m, per s]; None: a `reason`."""
        found = self._tracker.observe(positions, velocities)
        self.reason = "" if closes(found.status) else found.reason
        self.singular = found.status is Status.SINGULAR
        if not closes(found.status):
            return None
        off = found.residual
        self.contradiction = CONTRADICT.format(off, self._unit) if off > self._most else ""
        return Measured(positions, velocities, found.pose, found.twist, found.joints, found.jacobian)


OTHER_MODE = (
    "the robot is not in the working mode of the controller, as where a limb was stretched through a singularity of "
    "type 1: its drives do not lead it back from there, it must be led back by hand and then recovered"
)
_CLOCK_SLACK = 0.05  # s, by which the clock of the readings may differ from that of their arrival, in one period
_RACING = 1.3  # times the limit of its velocity: a drive that moves so fast does not follow any more
_NEAR = 0.2  # rad, and of the characteristic length: so near to home a platform is that was led there by hand
_PERIODS = 3  # as the platform comes nearer to a singularity now, it is there within so many: it may be behind it
_BESIDE = 0.2  # rad, and of the characteristic length: further than that from the last reading, one says little
_MANY = 10  # readings of that kind are no slip of an encoder
_CALM = 1.0  # s, for which the law holds the platform at rest: behind a singularity its efforts would push it away
CROSSED = (
    "the limbs may have lost hold of the platform on its way (type 2 singularity), "
    "so that it may be in another assembly mode"
)
NOT_HOME = "near home alone its mode is known again, and it is not there: it must be led home by hand"


class AssemblyWatch:
    """Whether readings still tell where the platform is: `pose_unknown` says why not, and is empty where they do.

    Two assembly modes meet in a singularity of type 2, and their readings are alike on both sides: a platform that
    falls through it looks as one that turned back. There the platform moves infinitely far per motion of the actuators,
    and the reciprocal of that goes to zero with its distance. It is compared from reading to reading, so that neither
    the robot's size nor its speed matters. Behind a singularity of type 1 it falls from infinity, less and less.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.pose_unknown = ""
        self._length = kinematics.characteristic_length
        self._beside = _BESIDE * np.where(kinematics.engine.actuated_turning, 1.0, self._length)
        self._hold = 0.0  # speed of the actuators per speed of the platform, at the last reading
        self._drop = 0.0  # of that, since the one before
        self._at: Array | None = None  # actuators (n_actuated,) there
        self._lost = 0  # readings since then that nothing continued
        self._calm = 0.0  # s

    def judge(self, measured: Measured, leapt: bool) -> None:
        """Take note of a reading that goes on from the last one, or that `leapt`: nobody looked for a while, in which
        a platform that came nearer to a singularity by more than is left may have gone through it.
        """
        hold = 1.0 / magnitude(measured.jacobian, self._length)
        drop, ahead = self._hold - hold, 0.0
        if leapt:
            ahead = drop
        elif drop > 0.0 and self._drop > 0.0:
            less = min(drop / self._drop, 1.0)
            ahead = drop * sum(less**k for k in range(1, _PERIODS + 1))
        if not ahead < hold:
            self.cross()
        self._hold, self._drop, self._at, self._lost = hold, drop, measured.positions, 0

    def lose(self, positions: Array) -> None:
        """Take note of actuators (n_actuated,) [rad or m] before which a singularity of type 2 lies."""
        self._lost += 1
        if self._at is not None and ((np.abs(positions - self._at) < self._beside).all() or self._lost >= _MANY):
            self.cross()

    def settle(self, passed: float, held: bool) -> None:
        """Believe again in the mode in which a law has `held` the platform at rest for a while; `passed`: time [s]."""
        if self.pose_unknown:
            self._calm = self._calm + passed if held else 0.0
            if self._calm > _CALM:
                self.pose_unknown = ""

    def forget(self) -> None:
        """Begin anew with a platform whose assembly mode is known."""
        self.pose_unknown = ""
        self.restart()

    def restart(self) -> None:
        """Compare the next reading with none before it; an unknown pose remains unknown."""
        self._hold, self._drop, self._at, self._lost = 0.0, 0.0, None, 0

    def cross(self) -> None:
        """Doubt from now on."""
        self.pose_unknown, self._calm = CROSSED, 0.0


class PlatformLocator:
    """Finds the platform of a machine by its readings, and tells for how long it has not been known.

    `heard` [s] is when the last usable reading came; `out_of_touch`: nothing was asked for so long that the platform
    may be anywhere. `rejected` says why readings were not believed for so long that nothing goes on.
    """

    def __init__(self, controller: Controller, max_age: float) -> None:
        self.heard = -math.inf
        self.out_of_touch = False
        self.rejected = ""
        self.observer = PlatformObserver(controller.kinematics)
        self.assembly = AssemblyWatch(controller.kinematics)
        self._controller = controller
        self._max_age = max_age
        self._plausible = ReadingWatch(controller.limits)
        self._asked = -math.inf  # s: when anything was last asked
        self._from_home = False  # the assembly mode is known again where the platform is near home
        self._before: tuple[Array, Array] | None = None  # pose and joints that were known when it began anew

    def ask(self, now: float) -> None:
        """Note that the platform is asked for."""
        self.out_of_touch |= now - self._asked > self._max_age
        self._asked = now

    def implausible(self, positions: Array, elapsed: float) -> str:
        """Why the actuators (n_actuated,) cannot have come there in some time [s]; empty where they can."""
        return self._plausible.check(positions, elapsed)

    def accept(self, positions: Array) -> None:
        """Go on from these actuators (n_actuated,)."""
        self._plausible.accept(positions)

    def locate(self, positions: Array, velocities: Array, mode: int) -> Measured | None:
        """The motion by actuators (n_actuated,) and their velocities, in a working mode; None: see the `observer`."""
        if self._from_home and not self.far_off(self._controller.kinematics.home, positions, _NEAR):
            self._from_home = False
            self.observer.forget(mode)
            self.assembly.forget()
        if self._before is not None:
            self._set_out(self.observer, positions)
            self._before = None
        measured = self.observer.observe(positions, velocities)
        if measured is not None:
            self.assembly.judge(measured, self.out_of_touch or self._asked - self.heard > self._max_age)
        elif self.observer.singular:
            self.assembly.lose(positions)
        return measured

    @property
    def pose_unknown(self) -> str:
        """Why the assembly mode is not known, and where it would be; empty where it is."""
        unknown = self.assembly.pose_unknown
        return f"{unknown}; {NOT_HOME}" if unknown and self._from_home else unknown

    def far_off(self, pose: Array, positions: Array, far: float) -> bool:
        """Whether actuators are further [rad, characteristic lengths] from those of the mode at a pose (7 + r,)."""
        k = self._controller.kinematics
        off = self._controller.model.positions(pose) - positions
        turning = k.engine.actuated_turning
        off = np.where(turning, np.remainder(off + np.pi, 2.0 * np.pi) - np.pi, off / k.characteristic_length)
        return not (np.abs(off) <= far).all()

    def astray(self, measured: Measured, yields: bool) -> str:
        """What is wrong with the drives, where a platform `yields` also their working mode; empty: nothing."""
        limits, speeds = self._controller.limits, np.abs(measured.velocities)
        racing = speeds > _RACING * limits.velocity
        if self.observer.contradiction:
            return self.observer.contradiction
        if racing.any():
            i = int(np.argmax(speeds / limits.velocity))
            unit = f"{limits.length_units[i]}/s"
            return f"{limits.names[i]} moves at {speeds[i]:.3g} {unit}, its limit is {limits.velocity[i]:.3g} {unit}"
        if yields and self.far_off(found_at(self._controller.kinematics, measured), measured.positions, FAR):
            return OTHER_MODE
        return ""

    def problem_at(self, positions: Array, mode: int) -> str:
        """Why the platform cannot be held at actuators (n_actuated,); empty: it can. At first it comes from home."""
        observer = self.observer
        if self.heard == -math.inf:
            observer = PlatformObserver(self._controller.kinematics)
            observer.forget(mode)
            self._set_out(observer, positions)
            observer.observe(positions, np.zeros(len(positions)))
        if observer.reason:
            return observer.reason
        return OTHER_MODE if self.far_off(observer.pose, positions, FAR) else ""

    def _set_out(self, observer: PlatformObserver, positions: Array) -> None:
        # on from where the platform was, if its drives are still there
        if self._before is None:
            return
        engine = self._controller.kinematics.engine
        off = np.abs(self._before[1][engine.actuated_column] - positions)
        if (off <= np.where(engine.actuated_turning, FAR, FAR * engine.characteristic_length)).all():
            observer.start(*self._before)

    def passed(self, stamps: float, silence: float) -> float:
        """Time since the last usable reading, as far as anything may move for it [s]: by the `stamps` of the two, or by
        the `silence` between their arrivals where the clock of the readings jumped.
        """
        if not math.isfinite(silence):
            return 0.0
        if not 0.0 <= stamps <= silence + _CLOCK_SLACK:
            stamps = max(silence, 0.0)
        return min(stamps, max(self._max_age, _CLOCK_SLACK))

    def search_from_home(self, mode: int) -> None:
        """Look for a platform whose configuration was lost: near home it is known again."""
        self.observer.forget(mode)
        self.assembly.pose_unknown, self._from_home = CROSSED, True

    def place(self, pose: Array, joints: Array) -> None:
        """Take the next reading as one that goes on from a pose (7,) and joints (n_joints,), which are certain."""
        self.observer.start(pose, joints)
        self.assembly.forget()

    def restart(self, mode: int) -> None:
        """Begin anew where the platform was, if its drives are still there, else at home, or near it."""
        if self.assembly.pose_unknown:
            self._before = None
        elif self.heard > -math.inf:
            self._before = self.observer.configuration
        self.observer.forget(mode)
        self._from_home = bool(self.assembly.pose_unknown)
        self.assembly.restart()
        self._plausible = ReadingWatch(self._controller.limits)
        self.heard = self._asked = -math.inf
        self.rejected, self.out_of_touch = "", False
