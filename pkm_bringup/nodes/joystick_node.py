# SPDX-License-Identifier: Apache-2.0
"""Jogs the platform with a joystick: `joy` in, as ROS 2's `joy` package publishes it, `jog_twist` out.

Nothing moves unless a button is held. While it is, the twist is renewed at a fixed rate; once it is released a twist of
zero is sent, once, and others may jog. A joystick that falls silent counts as released. The controller keeps every jog
within the speeds and accelerations of the machine.
"""

from __future__ import annotations

import time

import numpy as np
from geometry_msgs.msg import TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import Joy

from pkm_bringup.nodes.joystick_hand import Hand
from pkm_description.mechanism import Array
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.process import run_node

_RENEW = 0.05  # s
_REST = np.zeros(6)


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
        """Publish the requested twist, or its end."""
        if time.monotonic() - self._heard > self._silence:
            self._asked = None
        if self._asked is None and not self._moving:
            return
        twist = _REST if self._asked is None else self._asked
        self._moving = self._asked is not None
        message = TwistStamped(twist=messages.to_twist(twist))
        message.header.stamp = self.get_clock().now().to_msg()
        self._out.publish(message)

    def _report(self) -> diagnostics.Report:
        silent = time.monotonic() - self._heard
        if silent > self._silence:
            for_how_long = f" for {silent:.3g} s" if np.isfinite(silent) else ": does the node of the package joy run?"
            return diagnostics.WARN, f"no joystick is heard on {self._in.topic_name}{for_how_long}", {}
        if self._lacking:
            return diagnostics.WARN, self._lacking, {}
        return diagnostics.OK, "jogs" if self._moving else "its button is not held", {}


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(JoystickNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
