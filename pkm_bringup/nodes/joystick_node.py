# SPDX-License-Identifier: Apache-2.0
"""Jogs the platform with a joystick: `joy` in, as ROS 2's `joy` package publishes it, `jog_twist` out.

Nothing moves unless a button is held. While it is, the twist is renewed at a fixed rate; once it is released a twist of
zero is sent, once, and others may jog. A joystick that falls silent counts as released. The controller keeps every jog
within the speeds and accelerations of the machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from geometry_msgs.msg import TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import Header

from pkm_description.mechanism import Array
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.process import run_node

NONE = -1  # no such axis or button
DIRECTIONS = ("x", "y", "z", "rx", "ry", "rz")

_RENEW = 0.05  # s
_REST = np.zeros(6)


@dataclass(frozen=True)
class Hand:
    """How axes and buttons of a joystick move a platform.

    `axes`: number of the axis for each of `DIRECTIONS`, -1 where none moves along or about it. `held` is the button
    that must be held for anything to move, `fast` the one with which it moves `faster` times as fast. `linear` [m/s]
    and `angular` [rad/s] are the speeds at full deflection; less than `dead_zone` of it is rest.
    """

    axes: tuple[int, ...]
    held: int
    fast: int
    linear: float
    angular: float
    faster: float
    dead_zone: float

    def __post_init__(self) -> None:
        if len(self.axes) != len(DIRECTIONS) or any(number < NONE for number in self.axes):
            raise ValueError(f"axes are {list(self.axes)}; give six numbers, for {', '.join(DIRECTIONS)}; -1: none")

    def lacks(self, axes: int, buttons: int) -> str:
        """The missing inputs of a joystick with so many axes and buttons, as a sentence; empty where none."""
        missing = [
            f"axis {number} ({name})" for name, number in zip(DIRECTIONS, self.axes, strict=True) if number >= axes
        ]
        buttons_named = ((self.held, "held to move"), (self.fast, "fast"))
        missing += [f"button {number} ({what})" for number, what in buttons_named if number >= buttons]
        if not missing:
            return ""
        return f"this joystick has {axes} axes and {buttons} buttons, and not {', '.join(missing)}"

    def twist(self, axes: Sequence[float], buttons: Sequence[int]) -> Array | None:
        """Requested twist (6,), base axes, of axes (-1 to 1) and buttons; None: none is held, or an axis is NaN."""
        if not _pressed(buttons, self.held):
            return None
        chosen = [axes[k] if 0 <= k < len(axes) else 0.0 for k in self.axes]
        if not all(math.isfinite(value) for value in chosen):
            return None
        shares = np.clip(np.array(chosen, dtype=np.float64), -1.0, 1.0)
        beyond = np.maximum(np.abs(shares) - self.dead_zone, 0.0) / (1.0 - self.dead_zone)  # begins at rest, no step
        speeds = np.repeat([self.linear, self.angular], 3) * (self.faster if _pressed(buttons, self.fast) else 1.0)
        return np.asarray(np.sign(shares) * beyond * speeds)


def _pressed(buttons: Sequence[int], number: int) -> bool:
    return 0 <= number < len(buttons) and bool(buttons[number])


class JoystickNode(Node):
    """Turns joystick messages into jogs of the platform."""

    def __init__(self) -> None:
        super().__init__("joystick")
        text = "axes of the joystick that move along x, y, z and about rx, ry, rz; -1: none"
        axes = declare(self, "axes", [1, 0, 4, 6, 7, 3], text, fixed=True)
        text = "button that must be held for anything to move"
        held = declare(self, "held_button", 4, text, (0, 100), fixed=True)
        fast = declare(self, "fast_button", 5, "button with which it moves faster; -1: none", (-1, 100), fixed=True)
        linear = declare(self, "linear", 0.1, "speed of a stick pushed all the way, m/s", (0.0, 10.0), fixed=True)
        angular = declare(self, "angular", 0.3, "the same about an axis, rad/s", (0.0, 10.0), fixed=True)
        faster = declare(self, "faster", 2.5, "times that speed with the fast button", (1.0, 100.0), fixed=True)
        dead = declare(self, "dead_zone", 0.05, "share of a stick's way that is rest", (0.0, 0.9), fixed=True)
        self._silence = declare(
            self, "silence", 0.5, "time without a message after which it counts as released, s", (0.1, 60.0), fixed=True
        )
        self._hand = Hand(tuple(axes), held, fast, linear, angular, faster, dead)
        self._asked: Array | None = None
        self._heard = -np.inf  # s, on the monotonic clock
        self._moving = False
        self._lacking = ""
        self._out = self.create_publisher(TwistStamped, topics.JOG_TWIST, topics.EVENTS)
        self._in = self.create_subscription(Joy, topics.JOY, self._hear, topics.EVENTS)
        self._timer = steady_timer(self, _RENEW, self._renew)
        self._diagnostics = diagnostics.Diagnostics(self, self._report)

    def _hear(self, message: Joy) -> None:
        lacks = self._hand.lacks(len(message.axes), len(message.buttons))
        if lacks != self._lacking:
            self._lacking = lacks
            if lacks:
                self.get_logger().warning(f"{lacks}: missing axes and buttons count as at rest")
        self._heard = time.monotonic()
        before = self._asked
        self._asked = self._hand.twist(message.axes, message.buttons)
        if (before is None) != (self._asked is None):
            self._renew()  # at once, not with the next tick

    def _renew(self) -> None:
        if time.monotonic() - self._heard > self._silence:
            self._asked = None
        if self._asked is None and not self._moving:
            return
        twist = _REST if self._asked is None else self._asked
        self._moving = self._asked is not None
        header = Header(stamp=self.get_clock().now().to_msg())
        self._out.publish(TwistStamped(header=header, twist=messages.to_twist(twist)))

    def _report(self) -> diagnostics.Report:
        silent = time.monotonic() - self._heard
        if silent > self._silence:
            for_how_long = f" for {silent:.3g} s" if np.isfinite(silent) else ": does the node of the package joy run?"
            return diagnostics.WARN, f"no joystick is heard on {self._in.topic_name}{for_how_long}", {}
        if self._lacking:
            return diagnostics.WARN, self._lacking, {}
        return diagnostics.OK, "jogs" if self._moving else "its button is not held", {}


main = partial(run_node, JoystickNode)
