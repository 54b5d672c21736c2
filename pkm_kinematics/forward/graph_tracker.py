# SPDX-License-Identifier: Apache-2.0
"""Motions on the whole graph: readings in configuration-dependent motion spaces, redundant joints as coordinates.

It asks for no motion space and no working mode, and passes where a limb is stretched or folded.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.batch import nans
from pkm_kinematics.kernels.path.follow_graph import track_graph
from pkm_kinematics.kernels.rates.graph_motion import Coordinates, GraphMotion, GraphPlaces, coordinate_motions
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.status import Status, closes
from pkm_runtime.kernels.binding import Prepared, WithScratch


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
        """Status, largest gap [m], iterations and motion for readings (n_actuated,), kept where the loops close."""
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


class GraphCoordinates:
    """Rates x (6 + r,) of one robot: the platform's twist, then those of `redundant_names`; see `kernels/rates`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        graph, length = engine.whole_graph, engine.characteristic_length
        self.tables = graph.holding(engine.actuated_names)
        self.model = self.tables.model.replace(subspace=np.zeros((6, len(engine.actuated_names))))
        turning = engine.joint_turning[engine.redundant_column]
        self.redundant_units = np.where(turning, length, 1.0)  # m/s per unit rate
        self.at = Coordinates(
            engine.in_whole[engine.redundant_column],
            np.concatenate([engine.spaces.rate_scale, self.redundant_units]),
            engine.drive_units,
            graph_places(engine),
        )

    @property
    def width(self) -> int:
        """6 + r."""
        return len(self.at.units)

    def rows(self, values: ArrayLike | None, n: int, what: str) -> Array:
        """Rates or accelerations (..., 6) or (..., 6 + r) as rows (n, 6 + r), what is not given zero; `ShapeError`."""
        return self.engine.inputs.coordinate_rates(values, n, what)

    def astray(self, *rows: Array) -> NDArray[np.bool_]:
        """Which rates (n, 6 + r) are not finite, or the platform's outside its motion space."""
        spaces = self.engine.spaces
        off = [spaces.outside(values[:, :6]) | ~np.isfinite(values).all(axis=1) for values in rows]
        return np.asarray(np.logical_or.reduce(off))

    def led(self, poses: Array, redundant: Array, start: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Joints (n, n_joints) at poses (n, 7) and redundant positions (n, r), and which were reached from home.

        From joints `start` (n_joints,) at home, all go straight there in the coordinates of the platform's branch.
        """
        e = self.engine
        good = np.isfinite(poses).all(axis=1) & np.isfinite(redundant).all(axis=1)
        q, reached = np.tile(start, (len(poses), 1)), np.zeros(len(poses), dtype=np.bool_)
        rows = np.flatnonzero(good)
        if len(rows):
            branches = [e.inputs.branch_at(pose) for pose in poses[rows]]
            names = (*branches[0], *e.redundant_names)
            goal = np.hstack([[list(branch.values()) for branch in branches], redundant[rows]])
            begin = np.repeat(e.inputs.in_whole_graph(start[None], e.home_row), len(rows), axis=0)
            end = e.whole_graph.follow_many(begin, names, goal, e.characteristic_length)
            reached[rows] = end.status == Status.CONVERGED
            q[reached] = end.joints[end.status == Status.CONVERGED][:, e.in_whole]
        return q, reached

    def motions(
        self, q: Array, poses: Array, status: NDArray[np.int64], rates: Array, accelerations: Array
    ) -> tuple[Array, Array, Array, NDArray[np.int64]]:
        """Velocities of the actuators (n, n_actuated), velocities and accelerations of all joints, and a status each.

        At closed joints q (n, n_joints) and poses (n, 7); rates and accelerations (n, 6 + r). NaN where there is none.
        """
        n = len(q)
        codes = np.where(closes(status), int(Status.CONVERGED), status)
        u, qd, qdd = nans(n, len(self.engine.actuated_names)), nans(*q.shape), nans(*q.shape)
        positions = self.positions(q, poses, codes)
        given = np.ascontiguousarray(np.hstack([rates, accelerations]))
        self._motions(self.model, self.at, graph_motion(self.engine), positions, given, u, qd, qdd, codes)
        for values in (u, qd, qdd):
            values[codes != Status.CONVERGED] = np.nan
        return u, qd, qdd, np.where(codes == Status.CONVERGED, status, codes)

    def positions(self, q: Array, poses: Array, status: NDArray[np.int64]) -> Array:
        """Joints of the graph (n, n_bodies) at solved joints and poses; home where the status is not CONVERGED."""
        found = np.tile(self.tables.bodies["home"], (len(q), 1))
        rows = status == Status.CONVERGED
        if rows.any():
            found[rows] = self.engine.inputs.in_whole_graph(q[rows], poses[rows])
        return found

    def redundant_jacobian(self, q: Array, poses: Array, status: NDArray[np.int64]) -> Array:
        """Actuator rates (n, n_actuated, r) per rate of each redundant joint, the platform at rest; NaN where none."""
        n, r = len(q), self.width - 6
        unit = np.tile(np.hstack([np.zeros((r, 6)), np.eye(r)]), (n, 1))
        every = np.repeat(np.arange(n), r)
        u = self.motions(q[every], poses[every], status[every], unit, np.zeros_like(unit))[0]
        return u.reshape(n, r, -1).transpose(0, 2, 1)

    @cached_property
    def _motions(self) -> WithScratch:
        e, one = self.engine, np.empty((1, 1))
        codes = np.empty(1, dtype=np.int64)
        example = self.at, graph_motion(e), one, one, one, one, one, codes
        return WithScratch(coordinate_motions, self.tables.data, self.model, *example)


@lru_cache(maxsize=4)
def coordinates_of(engine: Engine) -> GraphCoordinates:
    """The coordinates of a robot, made once."""
    return GraphCoordinates(engine)
