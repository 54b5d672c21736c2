# SPDX-License-Identifier: Apache-2.0
"""The last station before the drives: what may not be applied, and what is applied instead.

When an input goes silent, or the efforts are not finite, the guard answers within one period with its fallback: "zero"
(the drives let go; for machines with brakes or that cannot fall) or "gravity" (efforts that carry the weight of the
last known pose). Gravity compensation does not stop a moving robot, and the last known pose ages, so after `hold_time`
seconds of silence, or of efforts that cannot be used, "gravity" becomes zero as well. Where efforts are zero for that
reason nothing is to be sent at all: a machine that hears nothing closes its brakes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Verdict:
    """What to apply: `efforts` (n_actuated,), and why not what was asked; `reason` is empty when nothing is wrong.

    `gives_up`: there is nothing to apply; drives that hear nothing close their brakes.
    """

    efforts: Array
    reason: str
    saturated: NDArray[np.bool_]
    gives_up: bool = False


class EffortGuard:
    """Watches the age of inputs and the efforts themselves.

    `gravity` may be exchanged: weights are others in another working mode.

    Args:
        limits: largest efforts (n_actuated,) [N m or N].
        max_age: an input older than that is stale [s]: a few control periods.
        fallback: "zero" or "gravity": what is applied while an input is silent or the efforts cannot be used.
        gravity: from a pose (7,) to efforts (n_actuated,) that carry the weight there; needed by the fallback
            "gravity".
        hold_time: how long "gravity" is held [s], from the last good input and the last good efforts on.

    Raises:
        ValueError: no such fallback, no function `gravity` for it, or an age that is no time.
    """

    def __init__(
        self,
        limits: Array,
        max_age: float,
        fallback: Literal["zero", "gravity"] = "zero",
        gravity: Callable[[Array], Array] | None = None,
        hold_time: float = 0.5,
    ) -> None:
        if fallback not in ("zero", "gravity"):
            raise ValueError(f"fallback is '{fallback}', not 'zero' or 'gravity'")
        if fallback == "gravity" and gravity is None:
            raise ValueError("fallback 'gravity' needs the function 'gravity'")
        if not max_age > 0.0:
            raise ValueError(f"max_age is {max_age} s; give a time greater than zero")
        self.limits = np.asarray(limits, dtype=np.float64)
        self.max_age = max_age
        self.fallback = fallback
        self.hold_time = hold_time
        self.gravity = gravity
        self._failing: float | None = None  # since when efforts cannot be used, s

    def check(
        self, now: float, stamps: dict[str, float | None], efforts: Array | None, pose: Array | None = None
    ) -> Verdict:
        """What to apply now.

        Args:
            now: s, on the clock of the stamps.
            stamps: when each input came last, by name; None where it never came.
            efforts: (n_actuated,) that the controller asks for, None where it could not compute any.
            pose: the last known pose (7,), for the fallback "gravity".

        Returns:
            The efforts, within the limits, with a reason where they are not what was asked for.
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
        if efforts is None:
            problem = "the controller has no efforts"
        elif np.shape(efforts) != self.limits.shape:
            problem = f"{np.size(efforts)} efforts for {self.limits.size} actuators"
        elif not np.all(np.isfinite(efforts)):
            problem = "the controller's efforts are not finite"
        if efforts is None or problem:
            self._failing = now if self._failing is None else self._failing
            return self._instead(problem, now - self._failing, pose)
        self._failing = None
        saturated = np.abs(efforts) > self.limits
        return Verdict(np.clip(efforts, -self.limits, self.limits), "", saturated)

    def _instead(self, reason: str, silence: float, pose: Array | None) -> Verdict:
        none = np.zeros(self.limits.shape, dtype=bool)
        if self.fallback == "gravity" and self.gravity is not None and pose is not None and silence <= self.hold_time:
            weight = np.asarray(self.gravity(pose), dtype=np.float64)
            if np.all(np.isfinite(weight)):
                return Verdict(np.clip(weight, -self.limits, self.limits), reason + "; holding gravity", none)
        return Verdict(np.zeros(self.limits.shape), reason + "; efforts zero", none, gives_up=True)
