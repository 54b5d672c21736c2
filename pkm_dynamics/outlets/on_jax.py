# SPDX-License-Identifier: Apache-2.0
"""A robot as functions of JAX, to be compiled (`jit`), vectorised (`vmap`) and differentiated (`grad`, to any order).

What has a closed form is computed by recordings, whose derivatives are recordings too. Through Newton's method goes the
rule of implicit functions: joints of iterated limbs move by `joint_rates`, the platform by the inverse of the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.outlets.recorded_functions import Outlet, RecordedFunctions
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.codegen import AVAILABLE
from pkm_runtime.codegen.xla_call import XlaCall
from pkm_runtime.optional import optional_library

TAU = 2.0 * np.pi
SAME = 1e-6  # rad or m: farther from what was asked, drives are of another working mode


def on_jax(dynamics: Dynamics, mode: int = 0) -> JaxRobot:
    """A robot's functions for JAX on processors, in a working mode.

    Raises `ExportError` without recorded functions, in single precision or with too old a numba, `ModeError`, and
    `UsageError` without JAX.
    """
    return JaxRobot(dynamics, mode)


class JaxRobot:
    """Poses (..., 7), twists and accelerations (..., 6) as in `Dynamics`; leading axes broadcast.

    Results are NaN where Python has none. Joint limits are not judged.
    """

    def __init__(self, dynamics: Dynamics, mode: int) -> None:
        self._jax = optional_library("jax", "jax", "functions of JAX")
        self._functions = RecordedFunctions(dynamics, mode)
        self._kinematics, self._mode = dynamics.kinematics, mode
        if not AVAILABLE:
            raise self._functions.refusal("machine code needs numba 0.62 or newer")
        if not self._jax.config.jax_enable_x64:
            raise self._functions.refusal('JAX is set to single precision; jax.config.update("jax_enable_x64", True)')
        self._calls: dict[str, XlaCall] = {}

    def inverse(self, pose: Any) -> Any:
        """Positions of the drives (..., n_actuated)."""
        return self._call(self._functions.inverse, pose)

    def joints(self, pose: Any) -> Any:
        """Positions of all joints (..., n_joints)."""
        return self._call(self._functions.joints, pose)

    def jacobian(self, pose: Any) -> Any:
        """Rates of the drives per twist (..., n_actuated, 6)."""
        return self._call(self._functions.jacobian, pose)

    def inverse_dynamics(self, pose: Any, twist: Any, acceleration: Any) -> Any:
        """Efforts of the drives (..., n_actuated)."""
        return self._call(self._functions.inverse_dynamics, pose, twist, acceleration)

    def direct_dynamics(self, pose: Any, twist: Any, effort: Any) -> Any:
        """Acceleration of the platform (..., 6) under efforts of the drives (..., n_actuated)."""
        return self._call(self._functions.direct_dynamics, pose, twist, effort)

    def gravity(self, pose: Any) -> Any:
        """Efforts that hold the robot at rest (..., n_actuated)."""
        return self._call(self._functions.gravity, pose)

    def margins(self, pose: Any) -> Any:
        """Regularity of the worst limb, reciprocal condition of the drives (..., 2)."""
        return self._call(self._functions.margins, pose)

    def motion_space(self, pose: Any) -> Any:
        """A basis of the possible twists (..., 6, degrees of freedom)."""
        return self._call(self._functions.motion_space, pose)

    def forward(self, actuated: Any, near: Any) -> Any:
        """The pose (..., 7) that continues `near` (..., 7), as `Kinematics.forward` finds it.

        Derivatives are by `actuated` (..., n_actuated) alone, and NaN at a pose that another working mode reaches.
        """
        widths = (("actuated", len(self._kinematics.actuated_names)), ("near", 7))
        return self._forward(*self._alike("forward", widths, (actuated, near)))

    # -- calls --------------------------------------------------------------------------------------------------------

    def _call(self, outlet: Outlet, *given: Any) -> Any:
        rows = self._alike(outlet.name, outlet.arguments, given)
        if self._functions.robot.turning:
            rows[0] = self._along_space(rows[0])
        if self._functions.robot.iterated:
            rows[0] = self._recorded(self._functions.platform, rows[0])
            rows.append(self._solve(rows[0]))
        return self._recorded(outlet, *rows)

    def _recorded(self, outlet: Outlet, *rows: Any) -> Any:
        if outlet.name not in self._calls:
            self._calls[outlet.name] = XlaCall(outlet.recording, outlet.width)
        found = self._calls[outlet.name](self._jax.numpy.concatenate(rows, axis=-1))
        return found.reshape(*found.shape[:-1], *outlet.shape)

    def _alike(self, function: str, widths: Iterable[tuple[str, int]], given: Sequence[Any]) -> list[Any]:
        """Arguments as arrays in double, leading axes broadcast; `ShapeError` where they do not fit."""
        jnp, about = self._jax.numpy, f"{self._functions.dynamics.mechanism.name}: {function}"
        rows = []
        for (name, n), values in zip(widths, given, strict=False):
            expected = f"{about}: {name} is (..., {n}), not"
            try:
                row = jnp.asarray(values)
                if jnp.iscomplexobj(row):
                    raise TypeError("its numbers are complex")
                rows.append(row.astype(float))
            except (TypeError, ValueError) as error:
                raise ShapeError(f"{expected} an object of type {type(values).__name__}: {error!s:.200}") from error
            if row.shape[-1:] != (n,):
                raise ShapeError(f"{expected} {row.shape}")
        shapes = [row.shape[:-1] for row in rows]
        try:
            shape = jnp.broadcast_shapes(*shapes)
        except ValueError as error:
            raise ShapeError(f"{about}: leading axes {', '.join(map(str, shapes))} do not broadcast") from error
        return [jnp.broadcast_to(row, (*shape, row.shape[-1])) for row in rows]

    def _by_python(self, solve: Callable[..., Array], n: int, *rows: Any) -> Any:
        result = self._jax.ShapeDtypeStruct((*rows[0].shape[:-1], n), float)
        return self._jax.pure_callback(
            lambda *x: solve(*map(np.asarray, x)), result, *rows, vmap_method="broadcast_all"
        )

    # -- through the solves -------------------------------------------------------------------------------------------

    @cached_property
    def _solve(self) -> Any:
        """Positions of all joints where limbs are iterated, at a checked pose."""

        def joints(pose: Array) -> Array:
            found = self._kinematics.inverse(pose, mode=self._mode)
            return np.where(closes(found.status)[..., None], found.joints, np.nan)

        solve = self._jax.custom_jvp(lambda pose: self._by_python(joints, len(self._kinematics.joint_names), pose))

        @solve.defjvp
        def _rule(at: Any, rates: Any) -> tuple[Any, Any]:
            (pose,), q = at, solve(*at)
            twist = self._twist(pose, *rates)

            def of_joints(twist: Any) -> Any:
                return self._recorded(self._functions.joint_rates, pose, twist, q)

            return q, self._jax.jvp(of_joints, (self._jax.numpy.zeros_like(twist),), (twist,))[1]

        return solve

    @cached_property
    def _forward(self) -> Any:
        jnp, turning = self._jax.numpy, self._kinematics.engine.joint_turning[self._kinematics.engine.actuated_column]

        def pose_of(actuated: Array, near: Array) -> Array:
            found = self._kinematics.forward(
                actuated, near, seed=self._kinematics.inverse(near, mode=self._mode).joints
            )
            return np.where(closes(found.status)[..., None], found.pose, np.nan)

        forward = self._jax.custom_jvp(lambda actuated, near: self._by_python(pose_of, 7, actuated, near))

        @forward.defjvp
        def _rule(at: Any, rates: Any) -> tuple[Any, Any]:
            pose = forward(*at)
            off = self.inverse(pose) - at[0]
            off = jnp.where(np.array(turning), off - TAU * jnp.round(off / TAU), off)
            same = jnp.all(jnp.abs(off) < SAME, axis=-1, keepdims=True)
            S = self.motion_space(pose) if self._functions.robot.turning else self._functions.robot.subspace
            Q, R = jnp.linalg.qr(self.jacobian(pose) @ S)
            free = jnp.linalg.solve(R, jnp.swapaxes(Q, -1, -2) @ rates[0][..., None])
            return pose, jnp.where(same, self._pose_rate(pose, (S @ free)[..., 0]), jnp.nan)

        return forward

    @cached_property
    def _along_space(self) -> Any:
        """A pose as it is, whose steps out of a motion space that turns count for nothing."""
        along, units = self._jax.custom_jvp(lambda pose: pose), scaling(self._kinematics.characteristic_length) ** 2

        @along.defjvp
        def _rule(at: Any, rates: Any) -> tuple[Any, Any]:
            (pose,) = at
            S = self.motion_space(pose)
            free = self._jax.numpy.einsum("...kc,...k->...c", S, units * self._twist(pose, *rates))
            return pose, self._pose_rate(pose, (S @ free[..., None])[..., 0])

        return along

    def _twist(self, pose: Any, rate: Any) -> Any:
        jnp = self._jax.numpy
        v, w = pose[..., 3:6], pose[..., 6:]
        dv, dw = rate[..., 3:6], rate[..., 6:]
        return jnp.concatenate([rate[..., :3], 2.0 * (w * dv - dw * v + jnp.cross(v, dv))], axis=-1)

    def _pose_rate(self, pose: Any, twist: Any) -> Any:
        jnp = self._jax.numpy
        v, w, turn = pose[..., 3:6], pose[..., 6:], twist[..., 3:]
        vector = 0.5 * (w * turn + jnp.cross(turn, v))
        scalar = -0.5 * jnp.sum(turn * v, axis=-1, keepdims=True)
        return jnp.concatenate([twist[..., :3], vector, scalar], axis=-1)
