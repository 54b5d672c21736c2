# SPDX-License-Identifier: Apache-2.0
"""Lean calls of the dynamics: kernels bound to the robot, straight-line machine code before them where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_dynamics.kernels.carried_dynamics import carried_direct_dynamics, carried_inverse_dynamics, carried_step
from pkm_dynamics.kernels.direct_dynamics import direct_dynamics, semi_implicit_step
from pkm_dynamics.kernels.inverse_dynamics import inverse_dynamics
from pkm_dynamics.kernels.turning_dynamics import turning_direct, turning_inverse, turning_step
from pkm_dynamics.robot_model import MANY, Record, RobotModel
from pkm_dynamics.straight_code import record_direct, record_inverse, straight_direct, straight_inverse, straight_step
from pkm_dynamics.turning_robot import turning_robot
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_runtime.kernels.binding import bind, with_fallback


def lean_inverse(robot: RobotModel, mode: int) -> Callable[[Array, Array], int]:
    """See `Dynamics.lean_inverse`."""
    if not robot.kinematics.constant_space:
        return _turning(robot, mode, turning_inverse, (), (np.zeros(robot.n_actuated),))
    kernel = carried_inverse_dynamics if robot.kinematics.engine.iterated else inverse_dynamics
    example = _at_home(robot), np.zeros(robot.n_actuated)
    results = (np.zeros(robot.n_actuated + 1),)
    return _lean(robot, kernel, (), example, (straight_inverse, record_inverse), mode, results)


def lean_direct(robot: RobotModel, mode: int) -> Callable[[Array, Array, Array], int]:
    """See `Dynamics.lean_direct`."""
    if not robot.kinematics.constant_space:
        return _turning(robot, mode, turning_direct, (), (np.zeros(robot.n_actuated), np.zeros(6)))
    kernel = carried_direct_dynamics if robot.kinematics.engine.iterated else direct_dynamics
    example = _at_home(robot), np.zeros(robot.n_actuated), np.zeros(6)
    return _lean(robot, kernel, (), example, (straight_direct, record_direct), mode)


def lean_step(robot: RobotModel, dt: float, mode: int) -> Callable[[Array, Array, Array], int]:
    """See `Dynamics.lean_step`."""
    if not robot.kinematics.constant_space:
        return _turning(robot, mode, turning_step, (dt,), (np.zeros(robot.n_actuated), np.zeros(6)))
    kernel = carried_step if robot.kinematics.engine.iterated else semi_implicit_step
    example = _at_home(robot), np.zeros(robot.n_actuated), np.zeros(6)
    return _lean(robot, kernel, (dt,), example, (straight_step, record_direct), mode)


def _lean(
    robot: RobotModel,
    kernel: Any,
    more: tuple[Any, ...],
    example: tuple[Any, ...],
    straight: tuple[Any, Record],
    mode: int,
    scratch: tuple[Array, ...] = (),
) -> Callable[..., int]:
    """Bind all but the `example` arguments of a kernel, `more` last; before it, straight-line code with `scratch`."""
    modes, engine = robot.kinematics.modes, robot.kinematics.engine
    branch = modes.branch(mode)
    fixed = robot.model(), engine.data(modes.start(mode)), branch
    general = bind(kernel, (*fixed, *more), example)
    call, record = straight
    code = robot.code(record, branch, MANY)
    return (
        general if code is None else with_fallback(bind(call, (code.address, *more, *scratch), example), general, code)
    )


def _turning(
    robot: RobotModel, mode: int, kernel: Any, more: tuple[Any, ...], example: tuple[Any, ...]
) -> Callable[..., int]:
    """Bind a kernel of `turning_dynamics` behind inverse kinematics of the limbs; `more` precedes the motion."""
    k = robot.kinematics
    k.modes.branch(mode)  # a number of a mode, or an error
    data = k.engine.data(k.modes.start(mode))
    positions, q = k.lean_positions(data, mode), np.zeros(robot.n_actuated)
    rest = bind(kernel, (turning_robot(robot, data), *more), (_at_home(robot), *example))

    def call(motion: Array, *others: Array) -> int:
        status = positions(motion[:7], q)
        return rest(motion, *others) if status == CONVERGED else status

    return call


def _at_home(robot: RobotModel) -> Array:
    """A motion (25,) at rest at home, where the iteration of the limbs starts."""
    motion = np.zeros(25)
    motion[:7] = robot.kinematics.home
    return motion
