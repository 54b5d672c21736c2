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
from pkm_dynamics.straight_code import (
    carried_straight_direct,
    carried_straight_inverse,
    carried_straight_step,
    record_direct,
    record_inverse,
    straight_direct,
    straight_inverse,
    straight_step,
)
from pkm_dynamics.turning_robot import turning_robot
from pkm_kinematics.kernels.model_and_data import Data
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.status import closes
from pkm_runtime.codegen import AVAILABLE, MachineCode, Recording
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind, with_fallback

# By what is asked: the kernel, the kernel warm-started where limbs are iterated, that of a motion space that turns, and
# straight-line code with its recording.
KERNELS: dict[str, tuple[Any, Any, Any, Any, Record]] = {
    "inverse": (inverse_dynamics, carried_inverse_dynamics, turning_inverse, straight_inverse, record_inverse),
    "direct": (direct_dynamics, carried_direct_dynamics, turning_direct, straight_direct, record_direct),
    "step": (semi_implicit_step, carried_step, turning_step, straight_step, record_direct),
}
CARRIED = {"inverse": carried_straight_inverse, "direct": carried_straight_direct, "step": carried_straight_step}


def lean(robot: RobotModel, what: str, mode: int, *more: float) -> Callable[..., int]:
    """The lean call of `KERNELS`, see `Dynamics.lean_inverse` and its kin; `more` is bound before the motion."""
    refuse_redundant(robot.kinematics.redundant_names, "lean calls of the dynamics")
    whole, carried, turning, straight, record = KERNELS[what]
    k, m = robot.kinematics, robot.n_actuated
    branch, data = k.modes.branch(mode), k.engine.data(k.modes.start(mode))
    if k.engine.gears and not closes(k.inverse(k.home, mode=mode).status):
        raise PkmError(f"{k.mechanism.name}: working mode {mode} tears a gear: it has no configurations")
    example = _at_home(robot), np.zeros(m), *([] if what == "inverse" else [np.zeros(6)])
    if not k.constant_space:
        general = _turning(robot, mode, data, bind(turning, (turning_robot(robot, data), *more), example))
        if what == "step":  # in the actuators
            return general
    else:
        general = bind(carried if k.engine.iterated else whole, (robot.model(), data, branch, *more), example)
    if k.engine.iterated:
        return _in_fixed_steps(robot, CARRIED[what], record, mode, data, more, example, general)
    code = robot.code(record, branch, MANY)
    if code is None:
        return general
    scratch = [np.zeros(m + 1)] if what == "inverse" else []
    return with_fallback(bind(straight, (code.address, *more, *scratch), example), general, code)


def _in_fixed_steps(
    robot: RobotModel,
    kernel: Any,
    record: Callable[..., Recording | None],
    mode: int,
    data: Data,
    more: tuple[float, ...],
    example: tuple[Array, ...],
    general: Callable[..., int],
) -> Callable[..., int]:
    """A call of straight-line code of a fixed number of Newton's steps, with `general` behind it on the same data."""
    recording = record(robot, mode, data) if AVAILABLE else None
    if recording is None:
        return general
    code, blocks = MachineCode(recording), robot.kinematics.tables.blocks
    start = np.empty(2 * int(blocks["count"][blocks["solver"] == NEWTON].sum()))
    results = np.empty(len(recording.results))
    return with_fallback(
        bind(kernel, (code.address, robot.model(), data, start, results, *more), example), general, code
    )


def _turning(robot: RobotModel, mode: int, data: Data, rest: Callable[..., int]) -> Callable[..., int]:
    """A call of `turning_dynamics` behind inverse kinematics of the limbs in `data`."""
    positions, q = robot.kinematics.lean_positions(data, mode), np.zeros(robot.n_actuated)

    def call(motion: Array, *others: Array) -> int:
        status = positions(motion[:7], q)
        return rest(motion, *others) if status == CONVERGED else status

    return call


def _at_home(robot: RobotModel) -> Array:
    """A motion (25,) at rest at home, where the iteration of the limbs starts."""
    motion = np.zeros(25)
    motion[:7] = robot.kinematics.home
    return motion
