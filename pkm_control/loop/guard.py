# SPDX-License-Identifier: Apache-2.0
"""The last station before the drives: refuses unusable commands, and applies a fallback instead.

Position drives get the last command again, after half a second nothing. For effort drives, when an input goes silent
or the efforts are not finite, the guard answers within one period with its fallback: "zero" (no effort; for machines
with brakes or that cannot fall) or "gravity" (efforts that carry the weight at the last known pose). Gravity
compensation does not stop a moving robot, and the last known pose ages, so after `hold_time` seconds of silence, or of
unusable efforts, "gravity" becomes zero as well. Then nothing is sent at all: without commands, brakes close.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.dense import all_finite, limit

_HOLDING, _SILENT = "; holding the last positions", "; nothing is sent"
_GRAVITY, _ZERO = "; holding gravity", "; efforts zero"


def cause_of(reason: str) -> str:
    """The reason of a verdict without what is done about it, for when that is over."""
    for done in (_HOLDING, _SILENT, _GRAVITY, _ZERO):
        reason = reason.removesuffix(done)
    return reason


@dataclass(frozen=True, eq=False)
class Verdict:
    """The `command` to apply, with a `reason` if it is another; `withhold_command`: none, drives close their brakes."""

    command: Array
    reason: str
    saturated: NDArray[np.bool_]
    withhold_command: bool = False


class Guard(ABC):
    """Watches the age of inputs, stale after `max_age` [s] (a few control periods), and the commands (n,)."""

    def __init__(self, n: int, max_age: float, what: str) -> None:
        if not max_age > 0.0:
            raise ValueError(f"max_age is {max_age} s; give a time greater than zero")
        self.max_age = max_age
        self.gravity: Callable[[Array], Array] | None = None
        self._n = n
        self._what = what
        self._failing: float | None = None  # since when commands cannot be used, s
        self._began: Array | None = None

    def check(
        self, now: float, stamps: dict[str, float | None], command: Array | None, pose: Array | None = None
    ) -> Verdict:
        """The command (n_actuated,) to apply at `now` [s], within the limits, with a reason where it is not the
        requested one. `stamps`: when each input came last, None: never. `pose` (7,) is the last known, for a fallback
        that needs it.
        """
        silence, reason = 0.0, ""
        for name, stamp in stamps.items():
            if stamp is None:
                return self._instead(f"{name} has never come", np.inf, None)
            age = now - stamp
            if not age <= self.max_age:
                silence = max(silence, age) if age == age else np.inf
                reason = f"{name} is {age * 1e3:.1f} ms old, more than {self.max_age * 1e3:.1f} ms"
        if reason:
            return self._instead(reason, silence, pose)
        problem = ""
        if command is None:
            problem = f"the controller has no {self._what}"
        elif np.shape(command) != (self._n,):
            many = f"{np.size(command)} {self._what}" if np.ndim(command) == 1 else f"an array {np.shape(command)}"
            problem = f"the controller gives {many} for {self._n} actuators"
        elif not all_finite(command):
            problem = f"the controller's {self._what} are not finite"
        if command is None or problem:
            self._failing = now if self._failing is None else self._failing
            return self._instead(problem, now - self._failing, pose)
        self._failing = None
        return self._limited(command)

    def begin(self, positions: Array) -> None:
        """Begin with actuators at positions (n_actuated,) [rad or m]."""
        self._began = positions

    def within(self, command: Array) -> Array:
        """A command (n_actuated,) limited, for callers that need no fallback without an input."""
        return self._limited(command).command

    @abstractmethod
    def _limited(self, command: Array) -> Verdict:
        """A usable command within the limits."""

    @abstractmethod
    def _instead(self, reason: str, silence: float, pose: Array | None) -> Verdict:
        """What is applied for a reason that has lasted for `silence` [s]."""


class PositionGuard(Guard):
    """For position drives: clips to the actuators' ranges `lower` to `upper` (n_actuated,) [rad or m]; one that begins
    outside is led no farther out. Without new positions it repeats the last ones for `hold_time` [s]; then none are
    sent, and the machine's watchdog acts.
    """

    def __init__(self, lower: Array, upper: Array, max_age: float, hold_time: float = 0.5) -> None:
        super().__init__(len(lower), max_age, "positions")
        self.hold_time = hold_time
        self._lower, self._upper = lower, upper
        self._last: Array | None = None

    def _limited(self, command: Array) -> Verdict:
        if self._began is None:
            self._last = np.clip(command, self._lower, self._upper)
        else:
            lower, upper = np.minimum(self._lower, self._began), np.maximum(self._upper, self._began)
            self._began = self._last = np.clip(command, lower, upper)
        return Verdict(self._last, "", self._last != command)

    def _instead(self, reason: str, silence: float, pose: Array | None) -> Verdict:
        none = np.zeros(self._n, dtype=bool)
        if self._last is not None and silence <= self.hold_time:
            return Verdict(self._last, reason + _HOLDING, none)
        return Verdict(np.zeros(self._n), reason + _SILENT, none, withhold_command=True)


class EffortGuard(Guard):
    """For effort drives, with largest efforts (n_actuated,) [N m or N], or the least and the most.

    `fallback` is applied while an input is silent or the efforts cannot be used; "gravity" is held for `hold_time` [s]
    from the last good input and efforts on. `gravity` takes a pose (7,) to efforts (n_actuated,) that carry the weight
    there; it differs between working modes.
    """

    def __init__(
        self,
        limits: Array | tuple[Array, Array],
        max_age: float,
        fallback: Literal["zero", "gravity"] = "zero",
        gravity: Callable[[Array], Array] | None = None,
        hold_time: float = 0.03,
    ) -> None:
        if fallback not in ("zero", "gravity"):
            raise ValueError(f"fallback is '{fallback}', not 'zero' or 'gravity'")
        if fallback == "gravity" and gravity is None:
            raise ValueError("fallback 'gravity' needs the function 'gravity'")
        least, most = limits if isinstance(limits, tuple) else (-np.asarray(limits), np.asarray(limits))
        super().__init__(np.size(most), max_age, "efforts")
        self.least, self.most = np.asarray(least, dtype=np.float64), np.asarray(most, dtype=np.float64)
        self._unsaturated = np.zeros(self._n, dtype=bool)
        self.fallback = fallback
        self.hold_time = hold_time
        self.gravity = gravity

    def _limited(self, command: Array) -> Verdict:
        within = np.empty(self._n)
        if not limit(command, self.least, self.most, within):
            return Verdict(within, "", self._unsaturated)
        return Verdict(within, "", within != command)

    def _instead(self, reason: str, silence: float, pose: Array | None) -> Verdict:
        none = np.zeros(self.most.shape, dtype=bool)
        if self.fallback == "gravity" and self.gravity is not None and pose is not None and silence <= self.hold_time:
            weight = np.asarray(self.gravity(pose), dtype=np.float64)
            if np.all(np.isfinite(weight)):
                return Verdict(np.clip(weight, self.least, self.most), reason + _GRAVITY, none)
        return Verdict(np.zeros(self.most.shape), reason + _ZERO, none, withhold_command=True)


def guard_of(
    commands: str,
    limits: ActuatorLimits,
    max_age: float,
    gravity: Callable[[Array], Array],
    fallback: Literal["zero", "gravity"] = "gravity",
    hold_time: float = 0.03,
) -> Guard:
    """The guard for a law's commands ("effort" or "position"); arguments as in `EffortGuard` and `PositionGuard`."""
    if commands == "position":
        return PositionGuard(limits.lower, limits.upper, max_age)
    return EffortGuard(limits.bounds(), max_age, fallback, gravity, hold_time)
