# SPDX-License-Identifier: Apache-2.0
"""A robot as functions of CasADi: expressions of single numbers, with exact derivatives and sparsity."""

from __future__ import annotations

from functools import cached_property, reduce
from typing import Any

import numpy as np

from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.outlets.recorded_functions import Outlet, RecordedFunctions
from pkm_runtime.codegen.derivatives import again
from pkm_runtime.codegen.tape import COMPARISONS, FUNCTIONS, SIGNS, Term
from pkm_runtime.optional import optional_library

PIECES = 16  # of the way from home; a longer one than some rad or sizes of the robot may be lost


def on_casadi(dynamics: Dynamics, mode: int = 0, warm_start: bool = False) -> CasadiRobot:
    """A robot's functions for CasADi, in a working mode.

    With `warm_start`, functions of robots with iterated limbs take joints at a pose nearby, `near` (n_joints,), last.

    Raises `ExportError` without recorded functions, `ModeError`, and `UsageError` without CasADi.
    """
    return CasadiRobot(dynamics, mode, warm_start)


class CasadiRobot:
    """Each function a `casadi.Function` with named arguments and results, made when it is first asked for.

    Poses (7,), twists and accelerations (6,) as in `Dynamics`. The last result, `valid`, is 1 where Python answers, and
    0 where the others mean nothing: out of reach, singular, outside the motion space. Joint limits are not judged.
    Limbs that are iterated are led from home in a fixed number of Newton's steps; derivatives take the last few alone.
    With `warm_start` they begin from joints that are given, which were right within 0.015 of the robot's size, and rad.
    Where the motion space turns with the pose, derivatives by the pose are along `motion_space` alone.
    """

    def __init__(self, dynamics: Dynamics, mode: int, warm_start: bool = False) -> None:
        self._casadi = optional_library("casadi", "casadi", "functions of CasADi")
        self._functions = RecordedFunctions(dynamics, mode)
        self._warm = warm_start and self._functions.robot.iterated

    @cached_property
    def inverse(self) -> Any:
        """`actuated` (n_actuated,) positions of the drives for `pose`."""
        return self._function(self._functions.inverse)

    @cached_property
    def joints(self) -> Any:
        """`joints` (n_joints,) for `pose`."""
        return self._function(self._functions.joints)

    @cached_property
    def jacobian(self) -> Any:
        """`jacobian` (n_actuated, 6), rates of the drives per twist, for `pose`."""
        return self._function(self._functions.jacobian)

    @cached_property
    def inverse_dynamics(self) -> Any:
        """`effort` (n_actuated,) for `pose`, `twist`, `acceleration`."""
        return self._function(self._functions.inverse_dynamics)

    @cached_property
    def direct_dynamics(self) -> Any:
        """`acceleration` (6,) of the platform for `pose`, `twist`, `effort`."""
        return self._function(self._functions.direct_dynamics)

    @cached_property
    def gravity(self) -> Any:
        """`effort` (n_actuated,) that holds the robot at rest at `pose`."""
        return self._function(self._functions.gravity)

    @cached_property
    def margins(self) -> Any:
        """`margins` (2,) at `pose`: regularity of the worst limb, reciprocal condition of the drives."""
        return self._function(self._functions.margins)

    @cached_property
    def motion_space(self) -> Any:
        """`motions` (6, degrees of freedom), a basis of the possible twists at `pose`."""
        return self._function(self._functions.motion_space)

    def _operations(self) -> dict[str, Any]:
        casadi = self._casadi

        def worse(a: Any, b: Any) -> Any:
            return casadi.if_else(a < b, b, casadi.if_else(b <= a, a, a + b))  # NaN where one is

        return {
            **SIGNS,
            **{name: getattr(casadi, name) for name in FUNCTIONS},
            "negated": lambda a: -a,
            "max": casadi.fmax,
            "min": casadi.fmin,
            "worse": worse,
            "select": lambda a, b, larger, otherwise: casadi.if_else(a > b, larger, otherwise),
        }

    def _function(self, outlet: Outlet) -> Any:
        """A recorded function; where limbs are iterated, after they are found at its pose."""
        casadi, recorded = self._casadi, self._recorded(outlet)
        if not self._functions.robot.iterated:
            return recorded
        arguments = [casadi.MX.sym(name, n) for name, n in outlet.arguments[:-1]]
        pose, usable = self._platform(arguments[0])
        given = [casadi.MX.sym("near", len(self._functions.start))] if self._warm else []
        q, closed = self._recorded(self._functions.carried)(pose, *given) if given else self._limbs(pose)
        result, valid = recorded(pose, *arguments[1:], q)
        arguments, names = arguments + given, [name for name, _ in outlet.arguments[:-1]] + ["near"] * self._warm
        return casadi.Function(
            outlet.name, arguments, [result, valid * usable * closed], names, [outlet.result, "valid"]
        )

    @cached_property
    def _platform(self) -> Any:
        """A pose that is checked and moved into the motion space, and whether it is usable."""
        return self._recorded(self._functions.platform)

    @cached_property
    def _limbs(self) -> Any:
        """Positions of all joints where limbs are iterated, at such a pose, and whether they are there.

        They follow the platform on the straight way from home, as in Python. Two of the last steps have Jacobians of
        their own, so that what they make of joints that count as constants has exact derivatives, of second order too.
        """
        casadi, functions = self._casadi, self._functions
        under_way, carried = map(self._recorded, (functions.under_way, functions.carried))
        pose = casadi.MX.sym("pose", 7)
        home, turning = np.array(functions.dynamics.kinematics.home), functions.robot.turning
        there = casadi.if_else(casadi.dot(home[3:], pose[3:]) < 0.0, -1.0, 1.0) * pose[3:]  # the shorter way
        q, closed = casadi.DM(functions.start), 1.0
        for k in range(1, PIECES + 1):
            at = home + (1.0 if turning else k / PIECES) * (casadi.vertcat(pose[:3], there) - home)
            q, valid = under_way(casadi.vertcat(at[:3], at[3:] / casadi.norm_2(at[3:])), q)
            closed = valid if turning else closed * valid  # no straight way stays in a motion space that turns
        led = casadi.Function("led", [pose], [q, closed], {"is_diff_in": [False]})
        start, closed = led(pose)
        q, valid = carried(pose, start)
        return casadi.Function("limbs", [pose], [q, closed * valid])

    def _recorded(self, outlet: Outlet) -> Any:
        casadi, tape, results = self._casadi, outlet.recording.tape, outlet.recording.results
        arguments = [casadi.SX.sym(name, n) for name, n in outlet.arguments]
        numbers = casadi.vertsplit(casadi.vertcat(*arguments))
        found = again(tape.needed(results), lambda _, k: numbers[k], self._operations())

        def now(operand: Any) -> Any:
            return found[operand] if isinstance(operand, int) else float(operand)

        tests = [
            comparison_holds if outcome else casadi.logic_not(comparison_holds)
            for (comparison, left, right), outcome in tape.conditions.items()
            for comparison_holds in [COMPARISONS[comparison](now(left), now(right))]
        ]
        values = casadi.vertcat(*(found[x.number] if isinstance(x, Term) else float(x) for x in results))
        # a comparison that is expected to fail does so with NaN, too
        tests.append(casadi.sum1(casadi.fabs(values)) < float("inf"))
        if len(outlet.shape) > 1:
            values = casadi.reshape(values, outlet.shape[1], outlet.shape[0]).T
        valid = reduce(casadi.logic_and, tests, casadi.SX(1))
        names = [name for name, _ in outlet.arguments]
        return casadi.Function(outlet.name, arguments, [values, valid], names, [outlet.result, "valid"])
