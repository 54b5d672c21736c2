# SPDX-License-Identifier: Apache-2.0
"""A robot as functions of CasADi: expressions of single numbers, with exact derivatives and sparsity."""

from __future__ import annotations

from functools import cached_property, reduce
from typing import Any

from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.outlets.recorded_functions import Outlet, RecordedFunctions
from pkm_runtime.codegen.derivatives import again
from pkm_runtime.codegen.tape import COMPARISONS, FUNCTIONS, SIGNS, Term
from pkm_runtime.optional import optional_library


def on_casadi(dynamics: Dynamics, mode: int = 0) -> CasadiRobot:
    """A robot's functions for CasADi, in a working mode.

    Raises `ExportError` without recorded functions or with iterated limbs, `ModeError`, `UsageError` without CasADi.
    """
    return CasadiRobot(dynamics, mode)


class CasadiRobot:
    """Each function a `casadi.Function` with named arguments and results, made when it is first asked for.

    Poses (7,), twists and accelerations (6,) as in `Dynamics`. The last result, `valid`, is 1 where Python answers, and
    0 where the others mean nothing: out of reach, singular, outside the motion space. Joint limits are not judged.
    Where the motion space turns with the pose, derivatives by the pose are along `motion_space` alone.
    """

    def __init__(self, dynamics: Dynamics, mode: int) -> None:
        self._casadi = optional_library("casadi", "casadi", "functions of CasADi")
        self._functions = RecordedFunctions(dynamics, mode)
        if self._functions.robot.iterated:
            raise self._functions.refusal("no CasADi functions of it: a limb is solved by iteration; use on_jax")

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
