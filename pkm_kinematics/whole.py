# SPDX-License-Identifier: Apache-2.0
"""The whole graph as one system, the platform's branch among its unknowns: the solver of last resort.

It needs no working platform pose to start from and no limb that decomposes: with the actuators held it is forward
kinematics of any mechanism, and with nothing held it finds the configuration nearest to a given one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.blocks import Plan, assemble
from pkm_kinematics.kernels.closures import turned_over
from pkm_kinematics.kernels.positions import CLOSED, solve_newton
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.pose import pose_of, transform_of
from pkm_kinematics.tables import Body, Closure, Graph, Tables, build_graph, frame_along
from pkm_kinematics.task import Task

FREE = ("x", "y", "z", "yaw", "pitch", "roll")


class WholeGraph:
    """One Newton solve over all joints of a mechanism, passive, actuated and the platform's own."""

    def __init__(self, mechanism: Mechanism, task: Task, home: dict[str, float], home_pose: Array) -> None:
        graph, self._last = _with_platform(build_graph(mechanism), task, transform_of(home_pose))
        movable = tuple(i for i in range(2, len(graph.bodies)))
        plan = Plan(movable, tuple(range(len(graph.closures))))
        tables = assemble(mechanism, graph, [[plan]], home)
        # dependent columns are expected here: joints that nothing determines stay where they are
        self.tables: Tables = tables
        self.names = tables.names
        self._held = replace(tables, bodies=_hold(tables.bodies))
        self._tail = graph.link_frame[mechanism.platform_link]

    def solve(self, start: dict[str, float], hold_actuators: bool) -> tuple[Array | None, dict[str, float], float, int]:
        """Close all loops from joint positions by name: (platform pose or None, positions, residual, iterations)."""
        tables = self._held if hold_actuators else self.tables
        state, rows, work = tables.workspace()
        state["q"] = [start.get(name, float(q)) for name, q in zip(self.names, state["q"], strict=True)]
        residual, iterations = solve_newton(tables.bodies, tables.closures, tables.blocks[0], state, rows, work)
        if not residual < CLOSED or turned_over(tables.closures, tables.blocks[0], state):
            return None, {}, float(residual), int(iterations)
        positions = dict(zip(self.names, (float(q) for q in state["q"]), strict=True))
        return pose_of(self.platform_transform(state)), positions, float(residual), int(iterations)

    def platform_transform(self, state: NDArray[Any]) -> Array:
        """Transform (4, 4) of the platform in the base frame where the bodies of `tables` stand in a workspace."""
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = state["R"][self._last], state["p"][self._last]
        return T @ self._tail


def _hold(bodies: NDArray[Any]) -> NDArray[Any]:
    held = bodies.copy()
    held["held"] = held["actuator"] >= 0
    return held


def _platform_branch(task: Task, home: Array) -> tuple[list[Body], Array]:
    """Bodies of the platform's branch, each carried by the one before it, and the platform frame (4, 4) in the last.

    A platform without a branch gets one of six joints about its home pose, where their angles are far from singular.
    """
    tail = np.eye(4)
    if task.names:
        tail[:3, :3], tail[:3, 3] = task.tail, task.tail_point
        return [
            Body(name, 0, bool(row["prismatic"]), row["rotation"].copy(), row["translation"].copy())
            for name, row in zip(task.names, task.chain[1:], strict=True)
        ], tail
    branch = []
    at = home
    for k, name in enumerate(FREE):
        align = frame_along(np.eye(3)[(0, 1, 2, 2, 1, 0)[k]])
        branch.append(Body(f"platform/{name}", 0, k < 3, at[:3, :3] @ align, at[:3, 3].copy()))
        at = np.eye(4)
        at[:3, :3] = align.T
    tail[:3, :3] = at[:3, :3]
    return branch, tail


def _with_platform(graph: Graph, task: Task, home: Array) -> tuple[Graph, int]:
    """The graph with the platform's branch as ordinary bodies; returns it and the index of the platform's body.

    Limb bodies come first: where the closures leave joints free, the last ones rest, and those are the platform's.
    """
    branch, tail = _platform_branch(task, home)
    carried = [i for i in range(2, len(graph.bodies)) if _root(graph.bodies, i) == PLATFORM]
    grounded = [i for i in range(2, len(graph.bodies)) if i not in set(carried)]
    new = {-1: -1, 0: 0}
    new.update({old: 2 + k for k, old in enumerate(grounded)})
    first = 2 + len(grounded)
    last = first + len(branch) - 1
    new[PLATFORM] = last
    new.update({old: last + 1 + k for k, old in enumerate(carried)})

    bodies = [graph.bodies[0], Body("unused", 0)]
    bodies += [replace(graph.bodies[old], parent=new[graph.bodies[old].parent]) for old in grounded]
    bodies += [replace(body, parent=first + k - 1 if k else 0) for k, body in enumerate(branch)]
    for old in carried:
        body = replace(graph.bodies[old], parent=new[graph.bodies[old].parent])
        if body.parent == last:
            rotation, translation = tail[:3, :3] @ body.rotation, tail[:3, :3] @ body.translation + tail[:3, 3]
            body = replace(body, rotation=rotation, translation=translation)
        bodies.append(body)
    closures = [
        Closure(
            c.name,
            c.kind,
            c.rows,
            new[c.predecessor],
            new[c.successor],
            tail @ c.predecessor_frame if c.predecessor == PLATFORM else c.predecessor_frame,
            tail @ c.successor_frame if c.successor == PLATFORM else c.successor_frame,
        )
        for c in graph.closures
    ]
    frames = {link: tail if body == PLATFORM else graph.link_frame[link] for link, body in graph.link_body.items()}
    return Graph(bodies, closures, {k: new[v] for k, v in graph.link_body.items()}, frames), last


def _root(bodies: list[Body], body: int) -> int:
    """Base or platform, whichever carries a body in the end."""
    while body > PLATFORM:
        body = bodies[body].parent
    return body
