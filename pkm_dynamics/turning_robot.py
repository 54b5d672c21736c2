# SPDX-License-Identifier: Apache-2.0
"""Tables for the kernels of configuration-dependent motion spaces: the limbs, and the whole graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import transform_from_pose
from pkm_dynamics.kernels.turning_dynamics import LimbsInGraph, TurningRobot
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics.forward.graph_tracker import GraphTracker, graph_motion, graph_places
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.records import PLATFORM
from pkm_runtime.errors import PkmError


def graph_model(robot: RobotModel, payload: Inertial | None = None) -> Model:
    """The whole graph, actuators held, the platform's mass in its branch's last body; a column per actuator."""
    k = robot.kinematics
    graph = k.engine.whole_graph
    tables = graph.holding(k.actuated_names)
    bodies = tables.bodies.copy()
    _carry(bodies[graph.platform_carrier], robot.model(payload).bodies[PLATFORM], graph.tail)
    return tables.model.replace(bodies=robot.with_friction(bodies), subspace=np.zeros((6, robot.n_actuated)))


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
    data = graph.holding(engine.actuated_names).data()
    return TurningRobot(
        robot.model(), limb_data, graph_model(robot), data, joins, graph_places(engine), graph_motion(engine)
    )


def _carry(row: Any, platform: Any, frame: Array) -> None:
    """Add the platform's mass, in its own frame, to the body of its branch that holds `frame` (4, 4)."""
    R, p = frame[:3, :3], frame[:3, 3]
    mass, h = float(platform["mass"]), R @ platform["moment"]
    inertia = R @ _matrix(platform["inertia"]) @ R.T
    hp = float(h @ p)
    inertia += (2.0 * hp + mass * float(p @ p)) * np.eye(3) - np.outer(h, p) - np.outer(p, h) - mass * np.outer(p, p)
    row["mass"] += mass
    row["moment"] += h + mass * p
    row["inertia"] += inertia[np.triu_indices(3)]
    row["massless"] = row["mass"] == 0.0 and not row["inertia"].any()


def _matrix(six: NDArray[np.float64]) -> Array:
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
