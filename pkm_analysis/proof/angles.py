# SPDX-License-Identifier: Apache-2.0
"""The closed forms of revolute joints written in angles, for intervals.

The kernels compute the cosine and the sine of a joint without its angle, which is fastest. Over intervals this loses
their dependence. Here each is the cosine and the sine of an angle, whose bounds are then known as well. Angles are
measured from the quarter turn nearest in the recording, so that no branch cut is near.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan2, pi
from typing import Any

from pkm_kinematics.codegen import recorded
from pkm_kinematics.codegen.tape import Number, Term, call, extreme, key, value
from pkm_kinematics.kernels.position.closed_form import aim, seen_from, turn_to
from pkm_kinematics.kernels.position.placement import joint_frame, move_joint
from pkm_kinematics.kernels.vectors import rotate_back, sub

HALF_PI = 0.5 * pi


class Angles:
    """Angles of joints solved in closed form; `instead` pairs kernels with their replacement in the recording."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, Any], Number] = {}
        self.instead: list[tuple[Any, Callable[..., Any]]] = [(turn_to, self.turn_to), (aim, self.aim)]
        self._frame, self._move = recorded(joint_frame), recorded(move_joint)
        self._back, self._seen, self._sub = recorded(rotate_back), recorded(seen_from), recorded(sub)

    def of(self, c: Number, s: Number) -> Number:
        """The angle [rad] of a joint with this cosine and sine."""
        known = self._found.get((key(c), key(s)))
        return atan2(value(s), value(c)) if known is None else known

    def _turned(self, y: Number, x: Number, more: Number = 0.0, quarters: int = 0) -> tuple[Number, Number]:
        """Cosine and sine of the angle of (x, y) plus `more`, plus quarter turns."""
        base = round(atan2(value(y), value(x)) / HALF_PI)
        for _ in range(base % 4):
            x, y = y, -x
        angle = call("atan2", y, x) + more
        c, s = call("cos", angle), call("sin", angle)
        quarters += base
        for _ in range(quarters % 4):
            c, s = -s, c
        self._found[key(c), key(s)] = angle + quarters * HALF_PI
        return c, s

    def turn_to(self, A: Number, B: Number, C: Number, sign: float) -> tuple[Number, Number, Number]:
        """`turn_to`: the angle of (A, B), plus that from there to where A cos q + B sin q = C."""
        rr = A * A + B * B
        if rr == 0.0:
            return 1.0, 0.0, -1.0
        if not isinstance(C, Term) and C == 0.0:
            c, s = self._turned(B, A, quarters=1 if sign > 0.0 else -1)
            return c, s, 1.0
        rest = rr - C * C
        h = sign * call("sqrt", extreme("max", rest, 0.0))
        c, s = self._turned(B, A, call("atan2", h, C))
        return c, s, rest / rr

    def aim(self, bodies: Any, block: Any, state: Any, target: Any, d: Any) -> None:
        """`aim`: the last joint turns by the angle from `d` to the target."""
        i = block.pointing
        self._frame(bodies, state, i)
        me = state[i]
        t = self._back(me.R, self._seen(block, me, target))
        if block.pointing_count == 2:
            T = bodies[i + 1].rotation
            A = T[0, 2] * t[0] + T[1, 2] * t[1]
            B = T[0, 2] * t[1] - T[1, 2] * t[0]
            if 1e-24 * (t[0] * t[0] + t[1] * t[1] + t[2] * t[2]) < A * A + B * B:
                me.c, me.s, _ = self.turn_to(A, B, d[2] - T[2, 2] * t[2], block.flip)
            self._move(bodies, state, i)
            i += 1
            self._frame(bodies, state, i)
            me = state[i]
            t = self._back(me.R, self._sub(target, (me.p[0], me.p[1], me.p[2])))
        if (d[0] * d[0] + d[1] * d[1]) * (t[0] * t[0] + t[1] * t[1]) > 0.0:
            me.c, me.s = self._turned(d[0] * t[1] - d[1] * t[0], d[0] * t[0] + d[1] * t[1])
        self._move(bodies, state, i)
