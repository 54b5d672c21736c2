# SPDX-License-Identifier: Apache-2.0
"""A position-controlled machine behind a driver: the part that all drivers share."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from threading import RLock

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.device_readings import DeviceReadings
from pkm_hardware.drivers.driver import DeviceError, GivenUpError, Reading, disable_anew
from pkm_hardware.homing import Homing, HomingError
from pkm_hardware.machine import (
    EMERGENCY_STOP,
    NO_COMMAND,
    CommandMode,
    Lifecycle,
    LifecycleError,
    Machine,
    MachineState,
    drives_may_be_on,
    saying_unconfirmed,
)
from pkm_hardware.machine_file import Drives
from pkm_hardware.position_limiter import PositionLimiter
from pkm_runtime.child_processes import end_with_program, hear_end

_AGAIN = 1.0  # s between two attempts to disable drives that did not obey
_MOST_OF_IT = 0.5  # of a silence: a period that lasts longer is why there was no command
_LAST_WORD = 3.0  # s that the end waits for the loop to release the device


class DrivenMachine(Machine):
    """Follows position commands within the limits of the actuators, through a driver.

    Any exception of the driver becomes a fault: the drives are disabled and the reason is kept, with a warning where
    that failed. Without a `write` for longer than `command_timeout` [s] the drives are disabled as well (how depends on
    the device). That is a fault of a `real` machine, for which time passes by itself; any other resumes with the next
    command. `activate` homes the axes that need it; until then the machine is not readable and takes no command.

    A reading has the time at which it was taken. An implausible reading, which no actuator could have reached, is
    dropped, so `time` stands still. One thread at a time talks to the device.
    """

    modes = (CommandMode.POSITION,)

    def __init__(self, limits: ActuatorLimits, drives: Drives, command_timeout: float = 0.5, real: bool = True) -> None:
        super().__init__(limits)
        self.real = real
        self.command_timeout = command_timeout
        self._driver = drives.driver
        self._driver.unwanted = lambda: bool(self._leaving) or self.unwanted()
        self._leaving: list[None] = []  # one for each thread that is disabling the drives, or waits to
        self._described = self._scale = drives.scale
        self._home = drives.home
        self._axes = drives.homing
        self._limiter = PositionLimiter(limits)
        self._homing: Homing | None = None
        self._homed = not drives.homing
        self._readings = DeviceReadings(limits, drives.home, real)
        self._began = -math.inf  # s, `time.monotonic`: the period; what is asked for in it has its time
        self._command: Array | None = None
        self._command_time = -math.inf
        self._blocked = 0.0  # s of calls that blocked the commander: they are no silence of its
        self._released = True
        self._power = _Power(self._disable)
        self._ended: str | None = None  # the result of `shut_down`
        self._lock = RLock()
        if real:
            self.telling = partial(saying_unconfirmed, limits.names)

    # Life cycle

    def configure(self) -> None:
        """Open the line to the device and read it: inactive with drives off, or a fault. LifecycleError if active."""

        def make_contact() -> None:
            self._driver.close()
            self._driver.open(self._scale.to_device(self._home))
            self._power.confirmed_off()
            self._began = self._readings.confirm(self._driver, self._scale, self.time)

        hear_end()  # here, since drives may be enabled in another thread
        with self._lock, self._blocking():
            if self.lifecycle is Lifecycle.ACTIVE:
                raise LifecycleError("configure", "active", "deactivate first")
            self.fault = ""
            self._ended = None
            self._homed, self._homing, self._scale = not self._axes, None, self._described
            self._released = True
            self._readings.restart(self.time)
            if self._attempt(make_contact):
                self.lifecycle = Lifecycle.INACTIVE

    def activate(self) -> None:
        """Enable the drives, open the brakes where the machine was read, home; LifecycleError unless inactive."""
        with self._lock, self._blocking():
            if self.lifecycle is not Lifecycle.INACTIVE:
                raise LifecycleError("activate", self.lifecycle.value, "configure first")
            self._command = None
            self.lifecycle = Lifecycle.ACTIVE
            if self._attempt(self._engage) and not self._homed:
                self._homing = Homing(self._axes)

    def deactivate(self) -> None:
        """Disable the drives and close the brakes, also of servos that hold after a fault; a fault where that fails."""
        with self._turning_off(), self._lock, self._blocking():
            if self.lifecycle is not Lifecycle.ACTIVE:
                if (before := self._power.warning or self._driver.resting) and self._power.may_be_on:
                    self._turn_off_late(before, "drives are off")
                return
            self._let_go()
            warning = self._power.turn_off()
            self.fault = warning
            self.lifecycle = Lifecycle.FAULT if warning else Lifecycle.INACTIVE

    def cleanup(self) -> None:
        """Close the line. LifecycleError if active."""
        with self._lock:
            super().cleanup()
            self.fault = _with(self.fault, self._power.turn_off())
            with contextlib.suppress(Exception):
                self._driver.close()

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> None:
        """Disable the drives and close the brakes at once, until `reset`; the fault warns where that fails."""
        with self._turning_off(), self._lock, self._blocking():
            self._fail(reason, always=True)

    def shut_down(self) -> str:
        """Disable the drives, check it and close the line; the warning if that failed, else empty."""
        with self._turning_off():
            acquired = self._lock.acquire(timeout=_LAST_WORD)  # drives are disabled without it, too
            try:
                if self._ended is None:
                    self._let_go()
                    self._ended = self._power.turn_off()
                    self.fault = _with(self.fault, self._ended)
                    if self._ended:
                        self.lifecycle = Lifecycle.FAULT
                    elif self.lifecycle is not Lifecycle.FAULT:
                        self.lifecycle = Lifecycle.UNCONFIGURED
                    with contextlib.suppress(Exception, SystemExit):
                        self._driver.close()
                return self._ended
            finally:
                if acquired:
                    self._lock.release()

    @contextlib.contextmanager
    def _blocking(self) -> Iterator[None]:
        """Measure how long a call blocks, during which its caller cannot send commands."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._blocked += time.monotonic() - began

    @contextlib.contextmanager
    def _turning_off(self) -> Iterator[None]:
        """Make a thread that is enabling the drives, and holds the device, abandon that."""
        self._leaving.append(None)
        try:
            yield
        finally:
            self._leaving.pop()

    # One period

    @property
    def readable(self) -> bool:
        """Whether positions are known: the device answers and every axis that needs homing is homed."""
        return super().readable and self._homed

    @property
    def notice(self) -> str:
        """What is worth a warning now."""
        if self._homing is not None:
            return f"homing: {self._homing.doing}"
        if not self._homed and self.lifecycle is Lifecycle.INACTIVE:
            return "positions are unknown: activate, and the axes are homed"
        seen = self._readings
        dropped = f"{seen.dropped} readings were dropped: {seen.why_dropped}" if seen.dropped else ""
        return "; ".join(words for words in (self._driver.notice, dropped) if words)

    @property
    def misread(self) -> str:
        """Which actuator is far outside its range."""
        return self._readings.far_outside(self._axes) if self._homed else ""

    @property
    def drives_may_be_on(self) -> str:
        """The warning that drives may be on."""
        return self._power.warning

    @property
    def missing(self) -> str:
        """Which drives do not answer now."""
        return self._driver.missing if self.lifecycle in (Lifecycle.INACTIVE, Lifecycle.ACTIVE) else ""

    @property
    def silent_for(self) -> float:
        """Time without a command [s] while drives are off for that reason and would resume; else 0."""
        silent = self.lifecycle is Lifecycle.ACTIVE and self._released
        return self.time - self._command_time if silent else 0.0

    def read(self) -> MachineState:
        """The last reading, with the time at which it was taken; efforts are not measured and are zero."""
        taken, positions, velocities = self._readings.last
        efforts = np.zeros_like(positions)
        return MachineState(taken, positions.copy(), velocities.copy(), efforts, self.lifecycle, self.fault)

    def write(self, command: Array, answers: float | None = None) -> None:
        """Set target positions (n_actuated,) [rad or m]; `answers` is unused, since devices interpolate or do not."""
        self._command = self._checked(command)
        self._command_time = self.time

    def step(self, dt: float) -> None:
        """Exchange command and reading with the device; dt [s], greater than zero."""
        if not (math.isfinite(dt) and dt > 0.0):
            raise ValueError(f"step is {dt} s; give a time greater than zero")
        with self._lock:
            self.time += dt
            self._command_time += min(dt, self._blocked)
            self._blocked -= min(dt, self._blocked)
            self._began = time.monotonic()
            if self.readable or self._homing is not None or self.lifecycle is Lifecycle.INACTIVE:
                self._attempt(lambda: self._exchange(dt))
            elif self._ended is None and self._power.due:
                self._turn_off_late(self._power.warning, "the drives are off by now")  # where a line came back to life

    def output_problem(self, name: str) -> str:
        """Why the device cannot set an output; empty where it can."""
        return self._driver.output_problem(name)

    def set_output(self, name: str, value: float) -> None:
        """Set an output of the device, one without `output_problem`."""
        super().set_output(name, value)
        self._driver.set_output(name, value)

    # Inside

    def _trade(self, targets: Array | None) -> Reading:
        reading = self._driver.exchange(targets)
        self._readings.take(reading, self._scale, self.time, self._began)
        return reading

    def _exchange(self, dt: float) -> None:
        if self.lifecycle is not Lifecycle.ACTIVE:
            self._trade(None)
            return
        if self._homing is not None:
            self._home_axes(self._homing, dt)
            return
        silent = self.time - self._command_time > self.command_timeout
        if silent and not self._released:
            self._rest(dt)
        if not silent and self._released:
            self._engage()
        if self._released:
            if self.lifecycle is Lifecycle.ACTIVE:
                self._trade(None)
            return
        if self._command is None:  # none yet: it stays where it was measured
            self._command = self._readings.last[1].copy()
        self._trade(self._scale.to_device(self._limiter.follow(self._command, dt)))
        self.saturated = self._limiter.limited.copy()

    def _rest(self, dt: float) -> None:
        """Disable the drives: no command for too long, `dt` [s] of it in this period."""
        resting, longest = self._driver.resting, self.command_timeout
        if dt > _MOST_OF_IT * (self.time - self._command_time):
            why = f"this computer was late by {dt:.2g} s"
        elif self.time - self._readings.last[0] > longest:  # there was no reading to answer
            why = f"{self._driver.missing or 'no answer of the drives'} for {longest:g} s"
        else:
            why = f"{NO_COMMAND} {longest:g} s{f' ({self.withheld})' if self.withheld else ''}"
        reason = f"{why}: {resting or 'drives are off'} until they are enabled again"
        if not self.real:
            self._let_go()
            self._driver.disable()
        elif resting:
            self._let_go()
            self.fault, self.lifecycle = reason, Lifecycle.FAULT
        else:
            self._fail(reason)

    def _home_axes(self, homing: Homing, dt: float) -> None:
        """One period of homing, which waits while no reading comes; at its end the scale gets its zeros."""
        places, fresh = self._scale.to_device(self._readings.last[1]), self._readings.fresh
        reading = self._trade(homing.targets(places, self._scale.units, dt if fresh else 0.0))
        if not self._readings.fresh:
            return
        homing.observe(reading, self._scale.units)
        if not homing.done:
            return
        zero, offset = self._scale.zero.copy(), self._scale.offset.copy()
        for axis, found in homing.found.items():
            zero[axis.actuator], offset[axis.actuator] = found, axis.at
        self._scale = replace(self._scale, zero=zero, offset=offset)
        self._homing, self._homed = None, True
        positions = self._scale.to_joints(reading.positions)
        self._readings.place(positions)
        self._command, self._command_time = None, self.time
        self._limiter.start(positions)

    def _engage(self) -> None:
        self._began = self._readings.confirm(self._driver, self._scale, self.time)
        positions = self._readings.last[1]
        if problem := self.misread:
            raise DeviceError(problem)
        self._power.turns_on(lambda: self.shut_down() if self._ended is None else "")
        self._driver.enable(self._scale.to_device(positions))
        if self._driver.unwanted():
            raise GivenUpError
        self._command_time = self.time
        self._limiter.start(positions)
        self._released = False

    def _let_go(self) -> None:
        self._released = True
        self._homing = None
        self._readings.rest()

    def _disable(self) -> None:
        with self.telling():
            try:
                self._driver.disable()
            except Exception:
                if not (self._power.may_be_on and self._driver.closed):
                    raise
                with contextlib.suppress(Exception):  # the first error names the drives
                    disable_anew(self._driver, self._scale.to_device(self._home))
                    return
                raise

    def _turn_off_late(self, before: str, after: str) -> None:  # words of the fault, which is then no longer true
        warning = self._power.turn_off()
        self.fault = self.fault.replace(before, warning or after)

    def _attempt(self, act: Callable[[], None]) -> bool:
        """Run `act`; any exception becomes a fault, after which the drives are disabled."""
        try:
            act()
        except GivenUpError as error:
            if self.lifecycle is Lifecycle.ACTIVE:  # enabling was abandoned: no fault, where drives can be disabled
                self.deactivate()
            else:
                self._fail(str(error))
            return False
        except (DeviceError, HomingError) as error:
            self._fail(str(error))
            return False
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
            return False
        return True

    def _fail(self, reason: str, always: bool = False) -> None:
        self._let_go()
        warning = self._power.turn_off(always)
        self.fault = _with(reason, warning)
        self.lifecycle = Lifecycle.FAULT


class _Power:
    """Whether drives may be on, from `turns_on` until `disable` confirms that they are off."""

    def __init__(self, disable: Callable[[], None]) -> None:
        self.may_be_on = False
        self.warning = ""  # that they could not be disabled
        self._disable = disable
        self._tried = -math.inf  # s, `time.monotonic`
        self._withdraw_end: Callable[[], None] = lambda: None  # withdraws that the drives go off with the program

    def turns_on(self, at_end: Callable[[], str]) -> None:
        self.may_be_on = True
        self._withdraw_end()
        self._withdraw_end = end_with_program(at_end)

    def turn_off(self, always: bool = False) -> str:
        if not (self.may_be_on or always):
            return ""
        try:
            self._disable()
        except (Exception, SystemExit) as error:
            self.warning, self._tried = drives_may_be_on(error) if self.may_be_on else "", time.monotonic()
            return self.warning
        self.confirmed_off()
        self._withdraw_end()
        return ""

    def confirmed_off(self) -> None:
        self.may_be_on, self.warning = False, ""

    @property
    def due(self) -> bool:  # to be turned off again
        return bool(self.warning) and time.monotonic() - self._tried > _AGAIN


def _with(fault: str, warning: str) -> str:
    # a fault with a warning that it does not tell yet
    return "; ".join(filter(None, (fault, "" if warning in fault else warning)))
