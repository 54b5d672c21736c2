# SPDX-License-Identifier: Apache-2.0
"""The order in which the loops are solved.

With the platform's pose known, each closure ties together the joints on its two ways to ground. Joints that share a
closure belong to one limb. Within a limb, a *block* is the smallest set of closures that determines all its joints once
the blocks before it are solved (the local resolution of loop constraints of Müller, sections 3.3 and 4): a rod of a
Delta's parallelogram is a block of its own behind the arm, a limb that does not decompose is one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import BRANCH_SCRATCH
from pkm_kinematics.kernels.position.closures import block_jacobian, closed
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import place_block, solve_newton, write_block_rows
from pkm_kinematics.model.recognition import recognise
from pkm_kinematics.model.tables import (
    Body,
    Closure,
    Graph,
    Tables,
    body_table,
    build_graph,
    closure_table,
    columns_of,
    spring_table,
)

# A singular value below this fraction of the largest counts as zero. Lengths and angles mix in the rows, so that ratios
# of a thousand are ordinary and rounding is 1e-13; this lies between.
RANK_TOLERANCE = 1e-7
LARGEST_GROUP = 3  # closures searched together before a limb is taken as one block


@dataclass(frozen=True)
class Plan:
    """A set of bodies and closures, by index into the graph, solved at once."""

    bodies: tuple[int, ...]
    closures: tuple[int, ...]


def build_tables(
    mechanism: Mechanism,
    home_pose: Array,
    home_joints: dict[str, float],
    generic: tuple[Array, dict[str, float]] | None = None,
) -> Tables:
    """The read-only tables of a mechanism. Raises `DescriptionError` if the loops do not close near `home_joints`.

    `generic`: pose (7,) and joints by name for ranks if home is singular.
    """
    graph = build_graph(mechanism)
    limbs = limbs_of(graph)
    draft = assemble(mechanism, graph, [[Plan(*limb)] for limb in limbs], home_joints)
    state, jacobians = _close_at_home(draft, home_pose)
    at_home = {name: float(q) for name, q in zip(draft.names, state["q"], strict=True)}
    if generic is not None:
        beside = assemble(mechanism, graph, [[Plan(*limb)] for limb in limbs], generic[1])
        jacobians = _close_at_home(beside, generic[0])[1]
    plans = [split(graph, limb, J) for limb, J in zip(limbs, jacobians, strict=True)]
    tables = assemble(mechanism, graph, plans, at_home)
    _count_idle(tables, *(generic or (home_pose, at_home)))
    recognise(tables, home_pose)
    for table in (tables.bodies, tables.closures, tables.blocks):
        table.setflags(write=False)
    return tables


def build_undivided(
    mechanism: Mechanism, home_joints: dict[str, float], pose: Array, joints: dict[str, float]
) -> Tables:
    """As `build_tables`, with each limb as one block, slow but regular alone; `joints` are closed at a pose (7,)."""
    graph = build_graph(mechanism)
    tables = assemble(mechanism, graph, [[Plan(*limb)] for limb in limbs_of(graph)], home_joints)
    _count_idle(tables, pose, joints)
    return tables


def ancestors(bodies: list[Body], body: int) -> set[int]:
    """The bodies from `body` down to the base, the platform or a redundant joint's body, without that one."""
    found: set[int] = set()
    while body > records.PLATFORM and not bodies[body].given:
        found.add(body)
        body = bodies[body].parent
    return found


def tied(graph: Graph, closure: Closure) -> set[int]:
    """Bodies whose joints a closure ties together, and their ancestors."""
    return ancestors(graph.bodies, closure.predecessor) | ancestors(graph.bodies, closure.successor)


def limbs_of(graph: Graph) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Bodies and closures of each limb, which share no moving body; those of redundant joints first, each by itself."""
    groups: list[tuple[set[int], set[int]]] = []
    for k, closure in enumerate(graph.closures):
        bodies, closures = tied(graph, closure), {k}
        for other in [g for g in groups if g[0] & bodies]:
            groups.remove(other)
            bodies |= other[0]
            closures |= other[1]
        groups.append((bodies, closures))
    groups.sort(key=lambda g: min(g[0], default=0))
    given = [((k,), ()) for k, body in enumerate(graph.bodies) if body.given]
    return [*given, *((tuple(sorted(bodies)), tuple(sorted(closures))) for bodies, closures in groups)]


def split(graph: Graph, limb: tuple[tuple[int, ...], tuple[int, ...]], J: Array) -> list[Plan]:
    """Blocks of a limb in solving order, from its Jacobian (rows, bodies) at a closed configuration."""
    bodies, closures = limb
    if not closures:
        return [Plan(bodies, ())]
    column = {body: k for k, body in enumerate(bodies)}
    rows: dict[int, slice] = {}
    at = 0
    for k in closures:
        rows[k] = slice(at, at + graph.closures[k].rows)
        at += graph.closures[k].rows
    known: set[int] = set()
    open_closures = list(closures)
    plans: list[Plan] = []
    while open_closures:
        group = _smallest_group(graph, open_closures, known, column, rows, J)
        tying = set().union(*(tied(graph, graph.closures[k]) for k in group))
        unknown = tying - known
        plan = Plan(tuple(sorted(unknown)), group)
        ball = next((p for p in plans if _holds_a_ball(graph, p) and tying & known <= set(p.bodies)), None)
        ends = {end for k in group for end in (graph.closures[k].predecessor, graph.closures[k].successor)}
        J_loop = np.vstack([J[rows[k]] for k in group])[:, [column[b] for b in sorted(tying)]]
        if ball and records.PLATFORM not in ends and rank(J_loop) > len(unknown):
            # The loop holds joints of the arm, too. On its own the arm, as a parallelogram's crank and coupler
            # (CaPaMan), gets stretched where the limb is regular.
            plans[plans.index(ball)] = Plan(tuple(sorted(ball.bodies + plan.bodies)), ball.closures + group)
        else:
            plans.append(plan)
        known |= unknown
        open_closures = [k for k in open_closures if k not in group]
    return plans


def _holds_a_ball(graph: Graph, plan: Plan) -> bool:
    return len(plan.bodies) == 3 and [graph.closures[k].kind for k in plan.closures] == [records.SPHERICAL]


def _smallest_group(
    graph: Graph, candidates: list[int], known: set[int], column: dict[int, int], rows: dict[int, slice], J: Array
) -> tuple[int, ...]:
    """The closures that determine the fewest joints, and determine them all."""
    best: tuple[int, tuple[int, ...]] | None = None
    for size in range(1, min(LARGEST_GROUP, len(candidates)) + 1):
        for group in combinations(candidates, size):
            unknown = sorted(set().union(*(tied(graph, graph.closures[k]) for k in group)) - known)
            sub = np.vstack([J[rows[k]] for k in group])[:, [column[b] for b in unknown]]
            if sub.shape[0] >= sub.shape[1] == rank(sub) and (best is None or len(unknown) < best[0]):
                best = (len(unknown), group)
        if best is not None:
            return best[1]
    return tuple(candidates)


def rank(matrix: Array) -> int:
    """Numerical rank."""
    if matrix.size == 0:
        return 0
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > RANK_TOLERANCE * max(values[0], 1e-300)))


def assemble(mechanism: Mechanism, graph: Graph, plans: list[list[Plan]], home: dict[str, float]) -> Tables:
    """Tables for the given blocks, all of them solved by Newton's method."""
    order = [0, 1]
    closure_order: list[int] = []
    for limb in plans:
        for plan in limb:
            order += plan.bodies
            closure_order += plan.closures
    new = {old: k for k, old in enumerate(order)}
    new[-1] = -1
    bodies = [graph.bodies[old] for old in order]
    table = body_table(bodies, mechanism.actuated_joints, home, columns_of(mechanism))
    table["parent"] = [new[body.parent] for body in bodies]
    closures = closure_table([graph.closures[k] for k in closure_order])
    closures["predecessor"] = [new[k] for k in closures["predecessor"]]
    closures["successor"] = [new[k] for k in closures["successor"]]

    blocks = np.zeros(sum(len(limb) for limb in plans), dtype=records.BLOCK)
    points = [table["translation"], closures["predecessor_point"], closures["successor_point"]]
    size = float(np.linalg.norm(np.concatenate(points), axis=1).max()) or 1.0
    spans = []
    b, start, closure_start, rows_at, inverse_at = 0, 2, 0, 0, 0
    for limb in plans:
        first = b
        for plan in limb:
            block = blocks[b]
            n, k = len(plan.bodies), len(plan.closures)
            m = int(closures["rows"][closure_start : closure_start + k].sum())
            block["limb_first"], block["start"], block["count"] = first, start, n
            block["closure_start"], block["closure_count"] = closure_start, k
            block["rows"], block["rows_at"], block["inverse_at"] = m, rows_at, inverse_at
            block["driver"] = block["pointing"] = block["extension"] = block["lift"] = block["wrist"] = -1
            block["flip"] = block["reach"] = 1.0
            block["branches"] = block["stride"] = 1
            block["size"] = size
            block["solver"] = records.NEWTON if k else records.GIVEN
            block["actuators"] = int((table["actuator"][start : start + n] >= 0).sum())
            for closure in closures[closure_start : closure_start + k]:
                closure["predecessor_anchor"] = _anchor(table["parent"], int(closure["predecessor"]), start)
                closure["successor_anchor"] = _anchor(table["parent"], int(closure["successor"]), start)
            b, start, closure_start = b + 1, start + n, closure_start + k
            rows_at, inverse_at = rows_at + m, inverse_at + m * n
        if limb and limb[0].closures:
            spans.append((first, b))
    tall = np.where(blocks["rows"] > blocks["count"], 2 * blocks["rows"] * blocks["count"], 0)
    blocks["side_at"] = inverse_at + np.cumsum(tall) - tall
    inverse_at += int(tall.sum())
    blocks["scratch_at"] = inverse_at
    scratch = max((int(x["rows"] * x["count"] + x["count"] ** 2) for x in blocks), default=0)
    scratch = max(scratch, BRANCH_SCRATCH)
    return Tables(
        table,
        closures,
        blocks,
        mechanism.gravity,
        tuple(body.name for body in bodies),
        tuple(graph.closures[k].name for k in closure_order),
        rows_at,
        inverse_at + scratch,
        tuple(spans),
        spring_table(mechanism, graph, new, home),
        len(mechanism.redundant_joints),
    )


def _anchor(parents: NDArray[np.int64], body: int, start: int) -> int:
    while body >= start:
        body = int(parents[body])
    return body


def _close_at_home(tables: Tables, pose: Array) -> tuple[NDArray[Any], list[Array]]:
    model, data = tables.model, tables.data()
    state, rows = data.state, data.rows
    place_platform(state, pose)
    jacobians = []
    for block in tables.blocks:
        residual, _ = solve_newton(model, data, block)
        if not closed(block, residual):
            closures = range(block["closure_start"], block["closure_start"] + block["closure_count"])
            worst = max(closures, key=lambda k: float(np.abs(_gaps(tables, rows, k)).max()))
            joints = ", ".join(tables.names[block["start"] : block["start"] + block["count"]])
            problem = f"does not reach the platform at the home pose (gap {residual:.3g}, closure {worst})"
            remedy = "check the limb's dimensions, the home pose and the initial values of the joints"
            raise DescriptionError(f"limb with joints {joints}", problem, remedy)
        J = np.zeros(block["rows"] * block["count"])
        block_jacobian(model, data, block, J, 0)
        jacobians.append(J.reshape(block["rows"], block["count"]))
    return state, jacobians


def _count_idle(tables: Tables, pose: Array, joints: dict[str, float]) -> None:
    """Record how many joints of each block its closures leave free at a closed configuration."""
    model, data = tables.model, tables.data()
    state, rows = data.state, data.rows
    state["q"] = [joints.get(name, 0.0) for name in tables.names]
    place_platform(state, pose)
    for block in tables.blocks:
        place_block(tables.model.bodies, block, state)
        write_block_rows(tables.model.closures, block, state, rows)
        J = np.zeros(block["rows"] * block["count"])
        block_jacobian(model, data, block, J, 0)
        block["idle"] = block["count"] - rank(J.reshape(block["rows"], block["count"]))


def _gaps(tables: Tables, rows: NDArray[Any], k: int) -> Array:
    closure = tables.closures[k]
    gaps: Array = rows["gap"][closure["rows_at"] : closure["rows_at"] + closure["rows"]]
    return gaps
