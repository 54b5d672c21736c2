# SPDX-License-Identifier: Apache-2.0
"""A machine behind a driver, commanded by position: the part of every driver that is the same."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pkm_control.control_errors import LifecycleError
from pkm_control.controllers.position_limiter import PositionLimiter
from pkm_control.hardware.drivers.driver import DeviceError, Reading
from pkm_control.hardware.drives import Drives
from pkm_control.hardware.homing import Homing, HomingError
from pkm_control.hardware.machine import EMERGENCY_STOP, Machine
from pkm_control.hardware.machine_state import CommandMode, Lifecycle, MachineState
from pkm_control.motion.limits import ActuatorLimits

Array = NDArray[np.float64]


class DrivenMachine(Machine):
    """Follows commanded positions within the limits of the actuators, through a driver.

    Whatever the driver raises becomes a fault: the drives are told to let go, the reason is kept. Without a `write` for
    longer than `command_timeout` the drives let go as well (what that means is the device's part), and take up again
    from where they are read, with the next one. Axes that need it are homed by `activate`; until that is done the
    machine cannot be read, and takes no command.

    Args:
        limits: of the actuators.
        drives: what there is.
        command_timeout: s.
        real: whether time passes by itself.
    """

    modes = (CommandMode.POSITION,)

    def __init__(self, limits: ActuatorLimits, drives: Drives, command_timeout: float = 0.5, real: bool = True) -> None:
        super().__init__(limits)
        self.real = real
        self.command_timeout = command_timeout
        self._driver = drives.driver
        self._described = self._scale = drives.scale
        self._home = drives.home
        self._axes = drives.homing
        self._limiter = PositionLimiter(limits)
        self._homing: Homing | None = None
        self._homed = not drives.homing
        self._positions = drives.home.copy()
        self._velocities = np.zeros_like(self._positions)
        self._command: Array | None = None
        self._command_time = -math.inf
        self._released = True

    # Life cycle

    def configure(self) -> None:
        """Open the line to the device and read it: inactive, drives off; or a fault.

        Raises:
            LifecycleError: the machine is active.
        """
        if self.lifecycle is Lifecycle.ACTIVE:
            raise LifecycleError("configure", "active", "deactivate first")
        self.fault = ""
        self._homed, self._homing, self._scale = not self._axes, None, self._described
        self._released = True
        self._positions = self._home.copy()

        def contact() -> None:
            self._driver.close()
            self._driver.open(self._scale.to_device(self._home))
            self._take(self._driver.exchange(None), 0.0)

        if self._attempt(contact):
            self.lifecycle = Lifecycle.INACTIVE

    def activate(self) -> None:
        """Drives on, brakes open, where the machine is read; axes that need it begin to home.

        Raises:
            LifecycleError: the machine is not inactive.
        """
        if self.lifecycle is not Lifecycle.INACTIVE:
            raise LifecycleError("activate", self.lifecycle.value, "configure first")
        self._command = None
        self._command_time = self.time
        self.lifecycle = Lifecycle.ACTIVE
        if self._attempt(self._engage) and not self._homed:
            self._homing = Homing(self._axes)

    def deactivate(self) -> None:
        """Drives off, brakes closed."""
        if self.lifecycle is Lifecycle.ACTIVE:
            self.lifecycle = Lifecycle.INACTIVE
            self._attempt(self._release)

    def cleanup(self) -> None:
        """Give the line free.

        Raises:
            LifecycleError: the machine is active.
        """
        super().cleanup()
        with contextlib.suppress(DeviceError, OSError):
            self._driver.close()

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> None:
        """Drives off, brakes closed, at once, and so until `reset`; the fault warns where the device cannot be told.

        Args:
            reason: why, in words.
        """
        warning = ""
        try:
            self._driver.disable()
        except Exception as error:
            warning = f"; THE DRIVES COULD NOT BE TOLD ({error}): cut their power"
        self._let_go()
        self.lifecycle = Lifecycle.FAULT
        self.fault = reason + warning

    # One period

    @property
    def readable(self) -> bool:
        """Whether positions are known: there is contact, and every axis that needs it has been homed."""
        return super().readable and self._homed

    @property
    def notice(self) -> str:
        """What is worth a warning."""
        if self._homing is not None:
            return f"homing: {self._homing.doing}"
        if not self._homed and self.lifecycle is Lifecycle.INACTIVE:
            return "positions are unknown: activate, and the axes are homed"
        return self._driver.notice

    @property
    def silent_for(self) -> float:
        """How long no command has come while drives are off for that [s]; 0 where they are on."""
        silent = self.lifecycle is Lifecycle.ACTIVE and self._released
        return self.time - self._command_time if silent else 0.0

    @property
    def command_mode(self) -> CommandMode:
        """Commands are positions."""
        return CommandMode.POSITION

    def set_command_mode(self, mode: CommandMode) -> None:
        """Refuse all but positions.

        Args:
            mode: of the commands to come.

        Raises:
            ValueError: they are not positions.
        """
        if mode is not CommandMode.POSITION:
            raise ValueError(f"this machine takes positions, not commands by {mode.value}")

    def read(self) -> MachineState:
        """Return the reading of the last exchange; efforts are not measured and are zero."""
        efforts = np.zeros_like(self._positions)
        return MachineState(
            self.time, self._positions.copy(), self._velocities.copy(), efforts, self.lifecycle, self.fault
        )

    def write(self, command: Array, answers: float | None = None) -> None:
        """Set the positions to take.

        Args:
            command: (n_actuated,) [rad or m].
            answers: not needed: the devices interpolate, or do not.

        Raises:
            ValueError: it has another shape or is not finite; the command before stays.
        """
        self._command = self._checked(command)
        self._command_time = self.time

    def step(self, dt: float) -> None:
        """Exchange command and reading with the device.

        Args:
            dt: how much time passes [s].

        Raises:
            ValueError: it is not a time greater than zero.
        """
        if not (math.isfinite(dt) and dt > 0.0):
            raise ValueError(f"step is {dt} s; give a time greater than zero")
        self.time += dt
        if self.readable or self._homing is not None or self.lifecycle is Lifecycle.INACTIVE:
            self._attempt(lambda: self._exchange(dt))

    def output_problem(self, name: str) -> str:
        """Why the device does not set an output.

        Args:
            name: of the output.

        Returns:
            The reason; empty where it sets it.
        """
        return self._driver.output_problem(name)

    def set_output(self, name: str, value: float) -> None:
        """Have an output of the device take a value.

        Args:
            name: of the output, one without `output_problem`.
            value: what it takes.
        """
        super().set_output(name, value)
        self._driver.set_output(name, value)

    # Inside

    def _exchange(self, dt: float) -> None:
        if self.lifecycle is not Lifecycle.ACTIVE:
            self._take(self._driver.exchange(None), dt)
            return
        if self._homing is not None:
            self._home_axes(self._homing, dt)
            return
        silent = self.time - self._command_time > self.command_timeout
        if silent and not self._released:
            self._let_go()
            self._driver.rest()
        if not silent and self._released:
            self._engage()
        if self._released:
            self._take(self._driver.exchange(None), dt)
            return
        wanted = self._home_or_command()
        self._take(self._driver.exchange(self._scale.to_device(self._limiter.follow(wanted, dt))), dt)
        self.saturated = self._limiter.limited.copy()

    def _home_or_command(self) -> Array:
        """Return where to be: as commanded, or as found, before there is a command."""
        if self._command is None:
            self._command = self._positions.copy()
        return self._command

    def _home_axes(self, homing: Homing, dt: float) -> None:
        """Do one period of homing, and give the scale its zeros in the end."""
        reading = self._driver.exchange(homing.targets(self._scale.to_device(self._positions), self._scale.units, dt))
        homing.observe(reading, self._scale.units)
        self._take(reading, dt)
        if not homing.done:
            return
        zero, offset = self._scale.zero.copy(), self._scale.offset.copy()
        for axis, found in homing.found.items():
            zero[axis.actuator], offset[axis.actuator] = found, axis.at
        self._scale = replace(self._scale, zero=zero, offset=offset)
        self._homing, self._homed = None, True
        self._positions = self._scale.to_joints(reading.positions)
        self._command, self._command_time = None, self.time
        self._limiter.start(self._positions)

    def _engage(self) -> None:
        self._driver.enable(self._scale.to_device(self._positions))
        self._limiter.start(self._positions)
        self._released = False

    def _release(self) -> None:
        self._let_go()
        self._driver.disable()

    def _let_go(self) -> None:
        self._released = True
        self._homing = None
        self._velocities = np.zeros_like(self._positions)

    def _take(self, reading: Reading, dt: float) -> None:
        positions = self._scale.to_joints(reading.positions)
        if positions.shape != self._positions.shape or not np.isfinite(positions).all():
            raise DeviceError(f"positions that cannot be: {reading.positions}")
        if reading.velocities is not None:
            self._velocities = reading.velocities / self._scale.units
        else:
            self._velocities = (positions - self._positions) / dt if dt > 0.0 else np.zeros_like(positions)
        self._positions = positions

    def _attempt(self, act: Callable[[], None]) -> bool:
        """Do what may fail; a failure is a fault, after which the drives are told to let go. Whatever is raised."""
        try:
            act()
        except (DeviceError, HomingError) as error:
            self._fail(str(error))
            return False
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
            return False
        return True

    def _fail(self, reason: str) -> None:
        with contextlib.suppress(Exception):  # what cannot be told let go is what failed
            self._driver.disable()
        self._let_go()
        self.fault = reason
        self.lifecycle = Lifecycle.FAULT
