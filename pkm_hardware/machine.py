# SPDX-License-Identifier: Apache-2.0
"""What every machine does: the life cycle and the read/write contract of `hardware_interface::SystemInterface`."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum

import numpy as np

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.drivers.driver import GIVEN_UP
from pkm_kinematics.kernels.dense import all_finite
from pkm_runtime.errors import PkmError


class Lifecycle(Enum):
    """States of the life cycle, as `hardware_interface` names them; FAULT is where an error leaves the machine."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"  # readable, brakes closed
    ACTIVE = "active"  # brakes open, drives follow commands
    FAULT = "fault"  # brakes closed, drives off, until configured anew


class LifecycleError(PkmError):
    """A call that the machine's life cycle state does not allow."""

    def __init__(self, call: str, state: str, allowed: str) -> None:
        self.call = call
        self.state = state
        self.allowed = allowed
        super().__init__(f"{call} is not possible while the machine is {state}; allowed: {allowed}")


class CommandMode(Enum):
    """What a command means, by the name of the ros2_control command interface."""

    EFFORT = "effort"
    POSITION = "position"
    VELOCITY = "velocity"


@dataclass(frozen=True, eq=False)
class MachineState:
    """A reading: positions, velocities and efforts (n_actuated,) of the actuators.

    `time` [s] of the machine's clock at which it was taken: it stands still as long as no new reading comes. `wrench`
    (6,) is the force-torque sensor's reading of the load on the platform, in the sensor's frame [N, N m]; None without
    sensor. `fault` is empty unless the life cycle is FAULT; the readings are then the last good ones, never NaN.
    """

    time: float
    positions: Array
    velocities: Array
    efforts: Array
    lifecycle: Lifecycle
    fault: str = ""
    wrench: Array | None = None


EMERGENCY_STOP = "emergency stop: drives are off until it is reset"
NO_FAULT = "there is no fault to reset"
TOLD_WITHIN = 2.0  # s: after which drives that have not confirmed that they are off are said to be on, perhaps
NO_COMMAND = "no command for"  # how a machine begins that was left without one


def drives_may_be_on(error: BaseException) -> str:
    """The warning that drives may be on, since they could not be disabled because of `error`."""
    return f"THE DRIVES COULD NOT BE TOLD ({error}): cut their power"


def unconfirmed(names: Sequence[str]) -> str:
    """The same of actuators by name, while they are being disabled for longer than `TOLD_WITHIN`."""
    return drives_may_be_on(TimeoutError(f"{', '.join(names)}: not confirmed within {TOLD_WITHIN:g} s"))


@contextmanager
def saying_unconfirmed(names: Sequence[str]) -> Iterator[None]:
    """Enclose what disables the drives of actuators by name: it says when that takes too long, whatever hangs."""
    over = threading.Event()

    def tell() -> None:
        if not over.wait(TOLD_WITHIN):
            print(unconfirmed(names), file=sys.stderr, flush=True)

    threading.Thread(target=tell, daemon=True).start()
    try:
        yield
    finally:
        over.set()


class Machine(ABC):
    """A machine with actuators, real or simulated.

    Order of calls: `configure`, `activate`, then in each period `read`, `write` and `step` for the time that passes,
    finally `deactivate` and `cleanup`; `shut_down` is the last call of every way out. No failure of a machine is
    raised: it becomes a `fault` with a reason, drives are off, and readings stay the last good ones. `reset` leaves the
    fault. Only errors of the caller are raised: LifecycleError for a call that the life cycle forbids (`configure` and
    `cleanup` while active, `activate` unless inactive), ValueError for a command of the wrong shape.

    Drives are off until `activate`, and whatever ends that, a fault or a call, leaves them off until its next call.

    `saturated` (n_actuated,) tells which actuators are at a limit, `outputs` the last values of the machine's outputs.
    `withheld` is why its commander sends no command now, in words; empty where it does or does not say.
    `activate` asks `unwanted` between two drives: true makes it disable them again. `telling` is entered while drives
    are being disabled, which may take a second.
    """

    modes: tuple[CommandMode, ...] = tuple(CommandMode)  # that commands may have
    real = False  # whether its time passes by itself
    elsewhere = False  # whether another process powers its drives and reports their state
    repeated = False  # whether something on the way to it repeats the last command until the next one comes

    def __init__(self, limits: ActuatorLimits) -> None:
        self.limits = limits
        self.lifecycle = Lifecycle.UNCONFIGURED
        self.fault = ""
        self.time = 0.0
        self.saturated = np.zeros(len(limits.names), dtype=bool)
        self.outputs: dict[str, float] = {}
        self.withheld = ""
        self.unwanted: Callable[[], bool] = lambda: False
        self.telling: Callable[[], AbstractContextManager[object]] = nullcontext

    # Life cycle

    @abstractmethod
    def configure(self) -> None:
        """Connect: inactive, brakes closed, readable, without fault; or a fault."""

    @property
    def drives_may_be_on(self) -> str:
        """The warning that drives may be on, since disabling them failed; empty where they are known to be off."""
        return ""

    @abstractmethod
    def activate(self) -> None:
        """Open the brakes and enable the drives; they hold until the first `write`, or give no effort in effort mode.
        Where they become `unwanted` before all of them are on, they are disabled again and the machine stays inactive.
        """

    @abstractmethod
    def deactivate(self) -> None:
        """Disable the drives and close the brakes."""

    def cleanup(self) -> None:
        """Return to unconfigured."""
        if self.lifecycle is Lifecycle.ACTIVE:
            raise LifecycleError("cleanup", "active", "deactivate first")
        self.lifecycle = Lifecycle.UNCONFIGURED

    def emergency_stop(self, reason: str = EMERGENCY_STOP) -> None:
        """Disable the drives and close the brakes at once, until `reset`; `reason` becomes the fault."""
        self.deactivate()
        self.fault = reason
        self.lifecycle = Lifecycle.FAULT

    def shut_down(self) -> str:
        """Disable the drives, check it and release the device: the last call of every way out. It may be called in any
        state, from any thread and more than once, and raises nothing. Returns the warning that the drives could not be
        disabled, else empty.
        """
        try:
            self.deactivate()
            if self.lifecycle is Lifecycle.INACTIVE:
                self.cleanup()
        except Exception as error:
            return drives_may_be_on(error)
        return ""

    def reset(self) -> None:
        """Leave a fault for inactive, as after `configure`, or fault again. It moves nothing."""
        if self.lifecycle is Lifecycle.FAULT:
            self.configure()

    def enable(self) -> str:
        """Activate it, unless it is; why not, empty where it is active."""
        if self.lifecycle not in (Lifecycle.INACTIVE, Lifecycle.ACTIVE):
            return self.fault or f"the machine is {self.lifecycle.value}"
        if self.lifecycle is Lifecycle.INACTIVE:
            self.activate()
        return self.why_off

    @property
    def why_off(self) -> str:
        """Why it is not active after it was to be; empty where it is."""
        return self.fault or ("" if self.lifecycle is Lifecycle.ACTIVE else GIVEN_UP)

    def reset_off(self) -> str:
        """Reset it, drives off; why not, empty where it is inactive. It has to be in a fault, or inactive."""
        if self.lifecycle not in (Lifecycle.FAULT, Lifecycle.INACTIVE):
            return NO_FAULT
        self.reset()
        return self.fault

    def warm_up(self) -> None:
        """Warm up: do once what is slow the first time, without moving anything."""
        return

    # One period

    @property
    def readable(self) -> bool:
        """Whether `read` tells where the actuators are now."""
        return self.lifecycle in (Lifecycle.INACTIVE, Lifecycle.ACTIVE)

    @property
    def misread(self) -> str:
        """Why a reading cannot be right, in words; the drives are not enabled there."""
        return ""

    @property
    def notice(self) -> str:
        """What is worth a warning now, in words; empty where nothing is."""
        return ""

    @property
    def missing(self) -> str:
        """Which drives do not answer now, in words; empty where all do."""
        return ""

    @property
    @abstractmethod
    def silent_for(self) -> float:
        """Time without a command [s] while the drives are disabled for that reason; 0 while commands are followed."""

    @property
    def command_mode(self) -> CommandMode:
        """What commands mean."""
        return self.modes[0]

    def set_command_mode(self, mode: CommandMode) -> None:
        """Change what commands mean, to one of `modes` (else ValueError); the last command is forgotten."""
        if mode is not self.command_mode:
            raise ValueError(f"this machine takes commands by {self.command_mode.value}, not by {mode.value}")

    @abstractmethod
    def read(self) -> MachineState:
        """The reading of the actuators."""

    @abstractmethod
    def write(self, command: Array, answers: float | None = None) -> None:
        """Set the command (n_actuated,), in the units of the command mode, that the drives follow from now on.
        `answers`: machine time of the reading that it answers [s], where known; it dates commands that jitter.
        ValueError where the command has another shape or is not finite: the one before stays.
        """

    @abstractmethod
    def step(self, dt: float) -> None:
        """Let dt [s] > 0 pass under the last command; a real machine exchanges command and reading with its device."""

    # What motions do besides moving it

    def output_problem(self, name: str) -> str:
        """Why an output cannot be set; empty where it can. A machine that does not know its outputs takes any name."""
        return ""

    def set_output(self, name: str, value: float) -> None:
        """Set an output without `output_problem`: the valve of a gripper, a lamp."""
        self.outputs[name] = value

    def carry(self, payload: Inertial | None) -> None:
        """Set the payload, in the platform's frame, from now on; a real machine carries it without being told."""
        return

    def _checked(self, command: Array) -> Array:
        command = np.array(command, dtype=np.float64)
        if command.shape != (len(self.limits.names),):
            raise ValueError(f"a command has shape {command.shape} for {len(self.limits.names)} actuators")
        if not all_finite(command):
            raise ValueError(f"a command is not finite: {command}")
        return command
