# SPDX-License-Identifier: Apache-2.0
"""What every machine does: the life cycle and the read/write contract of `hardware_interface::SystemInterface`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from pkm_control.control_errors import LifecycleError
from pkm_control.hardware.machine_state import CommandMode, Lifecycle, MachineState
from pkm_control.motion.limits import ActuatorLimits
from pkm_description.mechanism import Inertial
from pkm_kinematics.kernels.short_vectors import all_finite

Array = NDArray[np.float64]

EMERGENCY_STOP = "emergency stop: drives are off until it is reset"


def untold(error: Exception) -> str:
    """The warning where drives may be on, and cannot be told to let go.

    Args:
        error: why.

    Returns:
        The warning.
    """
    return f"THE DRIVES COULD NOT BE TOLD ({error}): cut their power"


class Machine(ABC):
    """A machine with actuators, real or not.

    Order of calls: `configure`, `activate`, then in each period `read`, `write` and `step` for the time that passes,
    `deactivate` in the end, and `cleanup`; whatever the way out is, `shut_down` is the last call. Nothing that happens
    to a machine is raised: it is a `fault` with a reason, drives are off, and readings stay the last good ones. `reset`
    leads out of it. What is raised are errors of who calls: a life cycle that does not allow the call, a command of the
    wrong shape.

    Drives are off until `activate`, and whatever ends that, a fault or a call, leaves them off until it is called anew.

    `saturated` (n_actuated,) tells which actuators are at a limit, `outputs` what the machine's outputs were set to.
    `unwanted` says whether drives that are just being enabled are to be off: `activate` asks it between two drives.
    `telling` is entered while drives are told to let go, which may take a second.

    Args:
        limits: of the actuators.
    """

    modes: tuple[CommandMode, ...] = tuple(CommandMode)  # that commands may have
    real = False  # whether its time passes by itself
    elsewhere = False  # whether its drives get their power from another process, which tells how it is
    repeated = False  # whether somebody on the way to it repeats the last command until the next one comes

    def __init__(self, limits: ActuatorLimits) -> None:
        self.limits = limits
        self.lifecycle = Lifecycle.UNCONFIGURED
        self.fault = ""
        self.time = 0.0
        self.saturated = np.zeros(len(limits.names), dtype=bool)
        self.outputs: dict[str, float] = {}
        self.unwanted: Callable[[], bool] = lambda: False
        self.telling: Callable[[], AbstractContextManager[object]] = nullcontext

    # Life cycle

    @abstractmethod
    def configure(self) -> None:
        """Make contact: inactive, brakes closed, readable, without fault; or a fault.

        Raises:
            LifecycleError: the machine is active.
        """

    @property
    def untold(self) -> str:
        """The warning that drives may be on, since they could not be told; empty where they are known to be off."""
        return ""

    @abstractmethod
    def activate(self) -> None:
        """Open the brakes, drives on; they hold until the first `write`, or give no effort where that is commanded.

        Where they are `unwanted` before all of them are on, they are off again and the machine stays inactive.

        Raises:
            LifecycleError: the machine is not inactive.
        """

    @abstractmethod
    def deactivate(self) -> None:
        """Drives off, brakes closed."""

    def cleanup(self) -> None:
        """Return to unconfigured.

        Raises:
            LifecycleError: the machine is active.
        """
        if self.lifecycle is Lifecycle.ACTIVE:
            raise LifecycleError("cleanup", "active", "deactivate first")
        self.lifecycle = Lifecycle.UNCONFIGURED

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> None:
        """Drives off, brakes closed, at once, and so until `reset`.

        Args:
            reason: why, in words: the fault from now on.
        """
        self.deactivate()
        self.fault = reason
        self.lifecycle = Lifecycle.FAULT

    def shut_down(self) -> str:
        """End everything: drives off, told and checked, the device given free. The last call of every way out.

        It comes from any state and any thread, more than once, and raises nothing.

        Returns:
            Empty, or the warning that the drives could not be told, for whoever can still read it.
        """
        try:
            self.deactivate()
            if self.lifecycle is Lifecycle.INACTIVE:
                self.cleanup()
        except Exception as error:
            return untold(error)
        return ""

    def reset(self) -> None:
        """Out of a fault, to inactive, as after `configure`; or it is a fault again. It moves nothing."""
        if self.lifecycle is Lifecycle.FAULT:
            self.configure()

    def rehearse(self) -> None:
        """Do once what takes time the first time, without moving anything."""
        return

    # One period

    @property
    def readable(self) -> bool:
        """Whether `read` tells where the actuators are now."""
        return self.lifecycle in (Lifecycle.INACTIVE, Lifecycle.ACTIVE)

    @property
    def notice(self) -> str:
        """What is worth a warning now, in words; empty where nothing is."""
        return ""

    @property
    @abstractmethod
    def silent_for(self) -> float:
        """How long no command has come while the machine has let go for that [s]; 0 where it follows commands."""

    @property
    @abstractmethod
    def command_mode(self) -> CommandMode:
        """What commands mean."""

    @abstractmethod
    def set_command_mode(self, mode: CommandMode) -> None:
        """Change what commands mean; the last command is forgotten.

        Args:
            mode: of the commands to come, one of `modes`.
        """

    @abstractmethod
    def read(self) -> MachineState:
        """Return the reading of the actuators."""

    @abstractmethod
    def write(self, command: Array, answers: float | None = None) -> None:
        """Set the command that drives follow from now on.

        Args:
            command: (n_actuated,) in the units of the command mode.
            answers: machine time of the reading that it answers [s], where that is known: of commands that come with
                jitter, it tells what times they are for.

        Raises:
            ValueError: it has another shape or is not finite; the command before stays.
        """

    @abstractmethod
    def step(self, dt: float) -> None:
        """Let time pass under the last command; a real machine exchanges command and reading with its device.

        Args:
            dt: how much [s].

        Raises:
            ValueError: it is not a time greater than zero.
        """

    # What motions do besides moving it

    def output_problem(self, name: str) -> str:
        """Why an output cannot be set; empty where it can.

        Args:
            name: of the output.

        Returns:
            The reason. A machine that does not know its outputs takes every name.
        """
        return ""

    def set_output(self, name: str, value: float) -> None:
        """Have an output take a value: the valve of a gripper, a lamp.

        Args:
            name: of the output, one without `output_problem`.
            value: what it takes.
        """
        self.outputs[name] = value

    def carry(self, payload: Inertial | None) -> None:
        """Be told what the platform carries from now on; a real machine carries it without being told.

        Args:
            payload: in the platform's frame; nothing where None.
        """
        return

    def _checked(self, command: Array) -> Array:
        """Return a copy of a command that can be followed."""
        command = np.array(command, dtype=np.float64)
        if command.shape != (len(self.limits.names),):
            raise ValueError(f"a command has shape {command.shape} for {len(self.limits.names)} actuators")
        if not all_finite(command):
            raise ValueError(f"a command is not finite: {command}")
        return command
