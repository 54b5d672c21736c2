# SPDX-License-Identifier: Apache-2.0
"""Tables for the kernels of configuration-dependent motion spaces: the limbs, and the whole graph."""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Inertial
from pkm_description.rotations import transform_from_pose
from pkm_dynamics.kernels.turning_dynamics import LimbsInGraph, TurningRobot
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics.forward.graph_tracker import GraphTracker, graph_motion, graph_places
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.model.tables import add_mass
from pkm_runtime.errors import PkmError


def graph_model(robot: RobotModel, payload: Inertial | None = None) -> Model:
    """The whole graph, actuators held, the platform's mass in its branch's last body; a column per actuator."""
    k = robot.kinematics
    graph = k.engine.whole_graph
    tables = graph.holding(k.actuated_names)
    bodies = tables.bodies.copy()
    platform = robot.model(payload).bodies[PLATFORM]
    alone = Inertial.of_ten(np.concatenate([[platform["mass"]], platform["moment"], platform["inertia"]]))
    add_mass(bodies[graph.platform_carrier], alone.in_frame(graph.tail).ten)
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
