# SPDX-License-Identifier: Apache-2.0
"""Lean calls of the dynamics: kernels bound to the robot, straight-line code before them, several times as fast.

Straight-line code is recorded from the kernels for one robot, at home, and takes motions (25,) as they do; where a
motion takes another branch than home (limb out of reach, singularity) it has no result, calls return ANOTHER_BRANCH,
and the kernel is called. Where limbs are iterated, it takes a fixed number of steps from where they were
(`carried_...`). Constants of the motion space, such as a Delta's orientation, are constants of the code; a
configuration-dependent one is found on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_dynamics.kernels.graph_dynamics import (
    LimbsInGraph,
    TurningRobot,
    turning_direct,
    turning_inverse,
    turning_step,
)
from pkm_dynamics.kernels.platform_dynamics import (
    carried_direct_dynamics,
    carried_inverse_dynamics,
    carried_step,
    carried_straight_direct,
    carried_straight_inverse,
    carried_straight_step,
    conditioned_inverse_dynamics,
    direct_dynamics,
    inverse_dynamics,
    semi_implicit_step,
    straight_direct,
    straight_inverse,
    straight_step,
)
from pkm_dynamics.robot_model import MANY, Record, RobotModel, graph_model
from pkm_kinematics import Kinematics
from pkm_kinematics.forward.graph_tracker import GraphTracker, coordinates_of, graph_motion
from pkm_kinematics.kernels.model_and_data import Data
from pkm_kinematics.kernels.position.positions import CONVERGED
from pkm_kinematics.kernels.rates.motion import solve_motion
from pkm_kinematics.kernels.records import CLOSED_FORM, PLATFORM
from pkm_kinematics.lean_kinematics import fixed_step_code, pose_near_home
from pkm_kinematics.recordings_at_home import (
    Instead,
    free_inputs,
    in_fixed_steps,
    joint_inputs,
    joint_results,
    motion_in_turning_space,
    pose_inputs,
    rate_inputs,
)
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.status import closes
from pkm_runtime.codegen import AVAILABLE, Recording, Tape, loose, trace
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind, with_fallback

POSE, TWIST, ACCELERATION, WRENCH = 0, 7, 13, 19  # where they begin in a motion (25,)


def _recordable(kinematics: Kinematics, start: Data | None) -> bool:
    """Whether limbs are in closed form, or start somewhere, and the motion space is constant or limbs alone make it."""
    if kinematics.constant_space:
        return kinematics.straight or start is not None
    closed_form = bool((kinematics.tables.blocks["solver"] == CLOSED_FORM).all())
    return AVAILABLE and (closed_form or start is not None) and kinematics.task.subspace.shape[1] == 6


def _instead(kinematics: Kinematics) -> Instead:
    steps = in_fixed_steps(kinematics.tables, kinematics.home)
    if kinematics.constant_space:
        return steps
    return (*steps, (solve_motion, motion_in_turning_space(kinematics.mobility, steps)))


def record_inverse(robot: RobotModel, mode: int, start: Data | None = None) -> Recording | None:
    """Efforts (n_actuated,) and reciprocal condition of the drives from a motion (25,); None without code.

    With `start`, of robots with iterated limbs: from where these are as well, near home as there, to where they get.
    """
    return _record(robot, mode, start, conditioned_inverse_dynamics)


def record_direct(robot: RobotModel, mode: int, start: Data | None = None) -> Recording | None:
    """Platform acceleration (6,) from a motion (25,) and efforts (n_actuated,); None without code. `start` as above."""
    return _record(robot, mode, start, direct_dynamics)


def _record(robot: RobotModel, mode: int, start: Data | None, kernel: Any) -> Recording | None:
    kinematics, direct = robot.kinematics, kernel is direct_dynamics
    if not _recordable(kinematics, start):
        return None
    tape, S, model, m = Tape(), kinematics.task.subspace, robot.model(), robot.n_actuated
    motion = [pose_inputs(tape, 0, pose_near_home(kinematics.engine, kinematics.modes.start(mode)), S)]
    motion += [rate_inputs(tape, 0, TWIST, S), np.zeros(6) if direct else rate_inputs(tape, 0, ACCELERATION, S)]
    motion.append(free_inputs(tape, 0, WRENCH, 6))
    given = [free_inputs(tape, 1, 0, m)] if direct else []
    out = np.zeros(6 if direct else m, dtype=object)
    data = loose(start or kinematics.engine.data())
    limbs = joint_inputs(tape, 1 + len(given), model, data)
    branch = kinematics.modes.branch(mode)
    found = trace(kernel, _instead(kinematics))(loose(model), data, branch, np.concatenate(motion), *given, out)
    status, *condition = (found,) if direct else found
    results = (*out, *condition, *joint_results(model, limbs))
    return Recording(tape, 1 + len(given) + bool(limbs), results) if status == CONVERGED else None


def turning_robot(robot: RobotModel, limb_data: Data) -> TurningRobot:
    """The robot for lean calls, configurations solved in `limb_data`; `PkmError` for redundant actuators."""
    engine = robot.kinematics.engine
    if not GraphTracker.serves(engine):
        raise PkmError("lean calls need an actuator per degree of freedom where the motion space depends on the pose")
    graph = engine.whole_graph
    limb = {name: i for i, name in enumerate(engine.tables.names)}
    both = [(i, limb[name]) for i, name in enumerate(graph.names) if name in limb and i > PLATFORM]
    joins = LimbsInGraph(
        np.array([i for i, _ in both]),
        np.array([j for _, j in both]),
        graph.platform_branch[0],
        transform_from_pose(engine.home),
    )
    coordinates = coordinates_of(engine)
    data = coordinates.tables.data()
    return TurningRobot(robot.model(), limb_data, graph_model(robot), data, joins, coordinates.at, graph_motion(engine))


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
    made = fixed_step_code(robot.kinematics.engine, robot.carried, (record, mode), lambda: record(robot, mode, data))
    if made is None:
        return general
    code, start, results = made
    arguments = (code.address, robot.model(), data, start, results, *more)
    return with_fallback(bind(kernel, arguments, example), general, code)


def _turning(robot: RobotModel, mode: int, data: Data, rest: Callable[..., int]) -> Callable[..., int]:
    """A call of `turning_dynamics` behind inverse kinematics of the limbs in `data`."""
    positions, q = robot.kinematics.lean_positions(data, mode), np.zeros(robot.n_actuated)

    def call(motion: Array, *others: Array) -> int:
        status = positions(motion[:7], q)
        return rest(motion, *others) if status == CONVERGED else status

    return call


def _at_home(robot: RobotModel) -> Array:
    motion = np.zeros(25)
    motion[:7] = robot.kinematics.home
    return motion
