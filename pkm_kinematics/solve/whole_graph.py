# SPDX-License-Identifier: Apache-2.0
"""The whole graph as one system, the platform's branch among its unknowns: the solver of last resort.

It needs no limb that decomposes and is regular in singularities of type 1: with the actuators held it is forward
kinematics of any mechanism, and with nothing held it finds the configuration nearest to a given one.

That is a least-distance problem with the loop closures as its constraints: each iteration takes the point nearest to
what is wanted on the linearised constraints (sequential quadratic programming with the metric as its Hessian). The
platform's pose counts, limb joints only decide what the pose leaves open.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.joint_geometry import floating_freedoms
from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import pose_from_transform, transform, transform_from_pose
from pkm_kinematics.batch import nans, over_cores
from pkm_kinematics.kernels.path.follow import PoseRows
from pkm_kinematics.kernels.path.follow_graph import follow_graphs
from pkm_kinematics.kernels.position.closures import block_jacobian, block_residual, closed, turned_over
from pkm_kinematics.kernels.position.positions import place_block, write_block_rows
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.model.blocks import Plan, assemble
from pkm_kinematics.model.tables import Body, Closure, Graph, Tables, Task, body_behind, build_graph
from pkm_kinematics.status import Status


class GraphEquations:
    """Closures of a graph that is one block, of n joints; bodies are where `gaps` placed them last."""

    def __init__(self, tables: Tables) -> None:
        self._model, self._data, self._block = tables.model, tables.data(), tables.blocks[0]
        self.state, self._rows = self._data.state, self._data.rows
        start, count, self.count, first = (int(self._block[name]) for name in ("start", "count", "rows", "rows_at"))
        self.span, self._equations = slice(start, start + count), slice(first, first + self.count)
        self._flat = np.empty(self.count * count)
        self.home: Array = self.state["q"][self.span].copy()
        self.sliding = tables.bodies["prismatic"][self.span] == 1

    def gaps(self, x: Array) -> Array:
        """Gaps (m,) with the joints at x (n,)."""
        self.state["q"][self.span] = x
        place_block(self._model.bodies, self._block, self.state)
        write_block_rows(self._model.closures, self._block, self.state, self._rows)
        return np.array(self._rows["gap"][self._equations])

    def slope(self) -> Array:
        """Derivatives (m, n): exact where the loops are closed, elsewhere good enough for Newton's method."""
        block_jacobian(self._model, self._data, self._block, self._flat, 0)
        return self._flat.reshape(self.count, -1).copy()

    @property
    def residual(self) -> float:
        """Largest gap [m]."""
        return float(block_residual(self._model.closures, self._block, self._rows))

    @property
    def genuine(self) -> bool:
        """False where axes that ought to coincide oppose each other, which the gaps do not show."""
        return not turned_over(self._model.closures, self._block, self.state)

    @property
    def closed(self) -> bool:
        """Whether the loops are closed."""
        return bool(closed(self._block, self.residual)) and self.genuine


PIECES = 16  # of a path that is followed with care
FREE = floating_freedoms("platform/")  # of a platform without a branch


class WholeGraph:
    """All joints of a mechanism, passive, actuated and the platform's own, as one set of unknowns.

    `platform_branch` are the bodies of the platform's branch, `platform_carrier` is the last of them, and `tail` (4, 4)
    the platform's frame in that one. `home` holds joint positions by name, `home_pose` is (7,) in the base frame.
    """

    def __init__(self, mechanism: Mechanism, task: Task, home: dict[str, float], home_pose: Array) -> None:
        graph, self.platform_carrier = _with_platform(build_graph(mechanism), task, transform_from_pose(home_pose))
        first = self.platform_carrier + 1 - (len(task.names) or len(FREE))
        self.platform_branch = range(first, self.platform_carrier + 1)
        movable = tuple(i for i in range(2, len(graph.bodies)))
        plan = Plan(movable, tuple(range(len(graph.closures))))
        tables = assemble(mechanism, graph, [[plan]], home)
        # dependent columns are expected here: joints that nothing determines stay where they are
        self.tables: Tables = tables
        self.names = tables.names
        self._idle = mechanism.mobility.idle
        self._held: dict[tuple[str, ...], Tables] = {}
        self.tail: Array = np.array(graph.link_frame[mechanism.platform_link])

    def nearest(self, wanted: Array, size: float) -> PoseRows:
        """The closed configuration nearest to positions (n_bodies,), above all in the platform's own; NaN if none."""
        t, pose = self.tables, np.full(7, np.nan)
        units = self._units_of_distance(wanted, size)
        found, residual, iterations = nearest_closed(t, wanted, units, self.platform_branch, size)
        status = Status.DIVERGED
        if found is not None:
            status, state = Status.CONVERGED, t.data().state
            state["q"] = found
            place_block(t.model.bodies, t.blocks[0], state)
            pose = pose_from_transform(self.platform_transform(state))
        positions = np.full(len(wanted), np.nan) if found is None else found
        return PoseRows(
            pose[None], positions[None], np.array([int(status)]), np.array([residual]), np.array([iterations])
        )

    def _units_of_distance(self, wanted: Array, size: float) -> Array:
        """What `nearest_closed` takes: distances are those of the platform [m], and a bit of the joints' own."""
        t, branch = self.tables, list(self.platform_branch)
        block, state = t.blocks[0], t.data().state
        state["q"] = wanted
        place_block(t.model.bodies, block, state)
        axes, arms = state["R"][branch][:, :, 2], self.platform_transform(state)[:3, 3] - state["p"][branch]
        slides = (t.bodies["prismatic"] == 1)[:, None]
        weights = JOINTS * np.where(slides[:, 0], 1.0, size)
        units = np.diag(1.0 / weights)
        with np.errstate(over="ignore", invalid="ignore"):
            twists = [np.where(slides[branch], axes, np.cross(axes, arms)), np.where(slides[branch], 0.0, size * axes)]
            moved = np.linalg.qr(np.vstack([*(part.T for part in twists), np.diag(weights[branch])]), mode="r")
            units[np.ix_(branch, branch)] = np.linalg.inv(moved)
        span = slice(block["start"], block["start"] + block["count"])
        return units[span, span]

    def holding(self, actuated: tuple[str, ...]) -> Tables:
        """The tables with the joints named as actuators, held; made once."""
        if actuated not in self._held:
            bodies, blocks = self.tables.bodies.copy(), self.tables.blocks.copy()
            bodies["actuator"] = [actuated.index(name) if name in actuated else -1 for name in self.names]
            bodies["held"] = bodies["actuator"] >= 0
            blocks["idle"] = self._idle + len(actuated)
            self._held[actuated] = replace(self.tables, bodies=bodies, blocks=blocks)
        return self._held[actuated]

    def follow(self, start: Array, actuated: Sequence[str], q: Array, size: float) -> PoseRows:
        """Move joints `actuated` straight to q (k,) from a closed configuration (n_bodies,), the others free.

        The path has PIECES at least: calls get here after a singularity, and in one step the path may cross the next.
        """
        columns = [self.names.index(name) for name in actuated]
        span = q - start[columns]
        turning = self.tables.bodies["prismatic"][columns] == 0
        span = np.where(turning, np.angle(np.exp(1j * span)), span)
        positions = start[None]
        for left in range(PIECES - 1, -1, -1):
            end = self.follow_many(positions, actuated, (q - left / PIECES * span)[None], size)
            if end.status[0] != Status.CONVERGED:
                end.residual[0] += left / PIECES * np.abs(span).max() if end.status[0] == Status.SINGULAR else 0.0
                break
            positions = end.joints
        return end

    def follow_many(self, positions: Array, actuated: Sequence[str], q: Array, size: float) -> PoseRows:
        """`follow` for rows: positions (n, n_bodies) in the order of `names`, q (n, as many as `actuated`)."""
        t, n = self.holding(tuple(actuated)), len(positions)
        bodies = np.array([self.names.index(name) for name in actuated])
        q, codes = np.ascontiguousarray(q), np.zeros((2, n), dtype=np.int64)
        found = PoseRows(nans(n, 7), np.array(positions), codes[0], np.zeros(n), codes[1])

        def part(at: slice) -> None:
            rows = PoseRows(*(array[at] for array in found))
            follow_graphs(t.model, t.data(), size, bodies, q[at], self.platform_carrier, self.tail, rows)

        over_cores(part, n)
        return found

    def platform_transform(self, state: NDArray[Any]) -> Array:
        """Transform (4, 4) of the platform in the base frame where the bodies of `tables` stand in a workspace."""
        return transform(state["p"][self.platform_carrier], state["R"][self.platform_carrier]) @ self.tail


def _platform_branch(task: Task, home: Array) -> tuple[list[Body], Array]:
    """Bodies of the platform's branch, or six about home, each carried by the one before; its frame in the last."""
    if task.names:
        tail = transform(task.record["tail_point"][0], task.record["tail"][0])
        return [
            Body(name, 0, bool(row["prismatic"]), row["rotation"].copy(), row["translation"].copy())
            for name, row in zip(task.names, task.chain[1:], strict=True)
        ], tail
    branch = []
    at = home
    for freedom in FREE:
        body, at = body_behind(freedom, 0, at)
        branch.append(body)
    return branch, at


def _with_platform(graph: Graph, task: Task, home: Array) -> tuple[Graph, int]:
    """The graph with the platform's branch as ordinary bodies; returns it and the index of the platform's body. Limb
    bodies come first: where the closures leave joints free, the last ones rest, and those are the platform's.
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
    while body > PLATFORM:
        body = bodies[body].parent
    return body


JOINTS = 1e-3  # weight of a joint's motion, that of the platform being 1
APPROACHES = 60
CLOSURES = 20
LONGEST = 0.3  # rad, and of the robot's size: longest step of any joint
AT_REST = 1e-9
EXACT = 1e-12  # of the robot's size: what the iteration closes the loops to
RANK = 1e-9  # relative singular value below which closure equations repeat others


def nearest_closed(
    tables: Tables, wanted: Array, units: Array, platform: Collection[int], size: float
) -> tuple[Array | None, float, int]:
    """Positions (n_bodies,), None if open, that close the loops nearest to `wanted`, their gap [m], and iterations.

    `tables` holds the whole graph as one block, `platform` the bodies of the platform's own branch. Columns of `units`
    (n, n) are motions of the joints of length 1, each square to the others.
    """
    equations = GraphEquations(tables)
    span = equations.span
    lengths = np.where(equations.sliding, 1.0, size)
    of_platform = np.zeros(len(lengths), dtype=bool)
    of_platform[[i - span.start for i in platform]] = True

    def least(J: Array, right: Array) -> Array:
        """The least motion that `J` maps to `right`; NaN where these are too large for floating point."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = J @ units
        if not (np.isfinite(scaled).all() and np.isfinite(right).all()):
            return np.full(len(lengths), np.nan)
        return np.asarray(units @ np.linalg.lstsq(scaled, right, rcond=RANK)[0])

    def shortened(step: Array) -> Array:
        longest = float(np.abs(step * lengths).max())
        return step * min(1.0, LONGEST * size / longest) if longest > 0.0 else step

    goal = wanted[span]
    x = goal.copy()
    iterations = 0
    for iterations in range(1, APPROACHES + 1):  # noqa: B007 (counted)
        gap, J = equations.gaps(x), equations.slope()
        toward = np.where(of_platform, goal - x, 0.0)  # joints would rather stay where they are by now
        step = toward - least(J, gap + J @ toward)
        x = x + shortened(step)
        if not float(np.abs(step * lengths).max()) >= AT_REST * size:  # at rest, or lost
            break
    for _ in range(CLOSURES):  # what is left is to close the loops exactly
        gap, J = equations.gaps(x), equations.slope()
        if not float(np.abs(gap).max()) >= EXACT * size:
            break
        x = x - shortened(least(J, gap))
        iterations += 1
    equations.gaps(x)
    found = equations.state["q"].copy() if equations.closed else None
    return found, equations.residual, iterations
