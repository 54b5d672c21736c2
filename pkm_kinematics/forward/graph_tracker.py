# SPDX-License-Identifier: Apache-2.0
"""Readings tracked on the whole graph, in one compiled call: for configuration-dependent motion spaces.

It asks for no motion space and no working mode, and passes where a limb is stretched or folded.
"""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.path.graph_reading import GraphMotion, GraphPlaces, track_graph
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.status import Status
from pkm_runtime.kernels.binding import Prepared


class GraphTracker:
    """Tracks one robot with as many actuators as degrees of freedom. Not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        graph, actuated = engine.whole_graph, engine.actuated_names
        tables = graph.holding(actuated)
        self._model = tables.model.replace(subspace=np.zeros((6, len(actuated))))
        self._data = tables.data()
        self._places = graph_places(engine)
        self._positions = np.array(tables.bodies["home"])
        self._size = engine.characteristic_length
        example = np.zeros(len(actuated)), np.zeros(len(actuated)), self._positions, graph_motion(engine)
        self._track = Prepared(track_graph, self._model, self._data, self._size, self._places, *example).call

    @staticmethod
    def serves(engine: Engine) -> bool:
        """Whether a robot has as many actuators as degrees of freedom, so that they are coordinates of it."""
        return len(engine.actuated_names) == engine.freedoms

    def place(self, pose: Array, joints: Array) -> None:
        """Start from a configuration: pose (7,), base frame, and joints (n_joints,) that close the loops there."""
        self._positions[:] = self.engine.inputs.in_whole_graph_at(joints, pose)

    def observe(self, q: Array, velocities: Array) -> tuple[Status, float, int, GraphMotion]:
        """Status, largest gap of a closure [m], iterations and motion for a reading q, velocities (n_actuated,).

        The motion counts where the status is CONVERGED or JOINT_LIMIT; else the configuration stays the one before.
        """
        motion = graph_motion(self.engine)
        status, gap, iterations = self._track(
            self._model, self._data, self._size, self._places, q, velocities, self._positions, motion
        )
        return Status(status), gap, iterations, motion


def graph_places(engine: Engine) -> GraphPlaces:
    """Where in a robot's whole graph its actuators, joints and platform are."""
    graph = engine.whole_graph
    return GraphPlaces(
        np.array([graph.names.index(name) for name in engine.actuated_names]),
        engine.inputs.farthest(engine.actuated_turning),
        engine.in_whole,
        *engine.ranges.limits,
        graph.platform_carrier,
        np.array(graph.tail),
    )


def graph_motion(engine: Engine) -> GraphMotion:
    """Arrays for a robot's motion."""
    n, m = len(engine.joint_names), len(engine.actuated_names)
    return GraphMotion(np.empty(7), np.empty(6), np.zeros(n), np.zeros(n), np.empty((6, m)))
