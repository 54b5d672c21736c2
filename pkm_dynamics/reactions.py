# SPDX-License-Identifier: Apache-2.0
"""Wrenches that the joints transmit, and the wrench of the whole robot on the ground.

Every body is cut free. A joint transmits to its child the inertia and weight of all that it carries, less what the
closures on these bodies bring; their wrenches follow from the joint axes, along which only efforts are transmitted, and
from the free platform (legs and platform apart, as in Briot and Khalil, with w_P resolved into the closures). They are
the Lagrange multipliers of Kövecses, Piedboeuf and Lange ("Methods for dynamic models of parallel robots and
mechanisms", 2002).

In an overconstrained robot rigid bodies do not determine the wrenches. The answer has the least sum of squares over all
joints, tree and loop alike, moments taken at the joints' points and divided by the mean distance of these points from
their centre at home: it does not depend on where the loops are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_description.rotations import skew
from pkm_dynamics.distribution import Distribution, meant
from pkm_dynamics.inverse_and_direct import efforts_of
from pkm_dynamics.kernels.wrenches import add_springs, limb_wrenches, platform_wrench
from pkm_dynamics.problem import POSE, WRENCH, Problem
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.records import BASE, PLATFORM
from pkm_kinematics.model.tables import build_graph
from pkm_kinematics.status import Solution
from pkm_runtime.describable import listed, vector
from pkm_runtime.errors import PkmError

RANK = 1e-9  # of the largest singular value: below it an equation repeats others
STRESSED = 1e-7  # of a unit of stress without load: what reaches a joint by rounding only
BALANCED = 1e-7  # of the largest load: what a solve of full accuracy never leaves


@dataclass(frozen=True, eq=False, repr=False)
class Reactions(Solution):
    """Wrenches at the joints, base axes: NaN where the status is not CONVERGED.

    `wrench`: the parent's on the child, or the predecessor's of a loop on its successor: force [N], then moment [N m]
    about `point` on the joint. Its component along the joint's axis is the effort less that of the joint's own rotor
    and friction. `determinate`: whether balance alone determines a wrench; the others are one choice of many (see the
    module), `redundant` being the number of independent load-free stresses.

    `base`: the robot's on the ground, moment about the base's origin: the weight of all bodies and the external wrench,
    less the rate of momentum, without the base link's own weight and the spin of rotors. `branch`: the platform's own
    branch's on the platform, about its origin: only what no limb can hold.
    """

    names: tuple[str, ...]  # limb joints in the order of the description, then loops
    wrench: Array  # (..., n, 6) N, N m
    point: Array  # (..., n, 3) m
    axes: Array  # (..., n, 3, 3) columns x, y, z of the joint; z along its axis
    determinate: NDArray[np.bool_]  # (..., n)
    base: Array  # (..., 6)
    branch: Array  # (..., 6)
    effort: Array  # (..., n_actuated) N m or N, as `Dynamics.inverse` answers them
    redundant: NDArray[np.int64]  # (...,)
    status: NDArray[np.int64]  # (...,)

    def _values(self) -> list[str]:
        if not self.ok:
            return []
        force, moment = vector(self.base[:3]), vector(self.base[3:])
        return [
            f"on the ground: force {force} N, moment {moment} N m about the base's origin",
            f"of(name) for {listed(self.names)}",
            f"{int(self.determinate.sum())} of {len(self.names)} wrenches follow from balance alone",
        ]

    def of(self, name: str) -> Array:
        """Wrench (..., 6) [N, N m] of one joint or loop, base axes; `PkmError` if there is none of this name."""
        return np.asarray(self.wrench[..., self._index(name), :])

    def along_axes(self, name: str) -> Array:
        """`of` in the joint's axes: components 2 and 5 are along its axis."""
        R, w = self.axes[..., self._index(name), :, :], self.of(name)
        return np.concatenate([np.einsum("...ji,...j->...i", R, w[..., k : k + 3]) for k in (0, 3)], axis=-1)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise PkmError(f"no joint or loop '{name}'; there are {', '.join(self.names)}")
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class _Balance:
    """Balance of the bodies, affine in the closures' unknowns: column 0, then one column per closure equation."""

    needed: Array
    closing: Array
    points: Array
    own: Array  # (n_bodies,) effort that the joint's rotor and friction take


def reactions(problem: Problem, distribution: Distribution | None = None) -> Reactions:
    """See `Dynamics.reactions`."""
    k = problem.robot.kinematics
    t, bodies, motions, status = k.tables, problem.model.bodies, problem.motions, problem.status
    efforts, _ = efforts_of(problem, meant(distribution, k.mechanism))
    names, at = _listed(k)
    swapped = _swapped(k)
    sign = np.concatenate([np.ones(len(t.bodies) - 2), np.where(swapped, -1.0, 1.0)])[at]
    length = _length(k, at)
    n, count = len(motions), len(names)
    wrenches, points = np.full((n, count, 6), np.nan), np.full((n, count, 3), np.nan)
    axes = np.full((n, count, 3, 3), np.nan)
    base, branch = np.full((n, 6), np.nan), np.full((n, 6), np.nan)
    determinate, redundant = np.zeros((n, count), dtype=bool), np.zeros(n, dtype=np.int64)
    for i in np.flatnonzero(status == Status.CONVERGED):
        data = problem.moved(int(i))
        state, rows = data.state, data.rows
        state["force"][BASE] = state["torque"][BASE] = 0.0
        limb_wrenches(bodies, state)
        platform_wrench(bodies, state, motions[i, WRENCH])
        add_springs(problem.model, state)
        balance = _balance(bodies, t.closures, state, rows)
        allowed = k.engine.spaces.allowed_at(motions[i, POSE])
        found = _resolve(balance, bodies, state, efforts[i], allowed, length, rows, at)
        if found is None:
            status[i] = Status.SINGULAR
            continue
        unknown, stress, held = found
        every = np.concatenate([balance.needed[2:], balance.closing])[at]
        wrenches[i] = sign[:, None] * (every @ unknown)
        points[i] = np.concatenate([state["p"][2:], balance.points])[at]
        sides = [state["R"][t.closures[s]] @ t.closures[f"{s}_rotation"] for s in ("successor", "predecessor")]
        axes[i] = np.concatenate([state["R"][2:], np.where(swapped[:, None, None], *sides)])[at]
        largest = np.abs(every[:, :, 1:]).max() if every.shape[2] > 1 else 1.0
        determinate[i] = (np.abs(every[:, :, 1:] @ stress) <= STRESSED * largest).all(axis=(1, 2))
        redundant[i] = stress.shape[1]
        branch[i] = held
        base[i] = -(balance.needed[BASE] @ unknown) - _moved(held, motions[i, :3])
    efforts[status != Status.CONVERGED] = np.nan
    rows_of = (wrenches, points, axes, determinate, base, branch, efforts, redundant, status)
    return Reactions(names, *(problem.shaped(rows) for rows in rows_of))


def _listed(kinematics: Kinematics) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Names of all joints and loops, and their places in the bodies after the platform followed by the closures."""
    t = kinematics.tables
    order = {name: k for k, name in enumerate(kinematics.joint_names)}
    joints = sorted(range(2, len(t.bodies)), key=lambda i: order[t.names[i]])
    loops = [t.closure_names.index(loop.name) for loop in kinematics.mechanism.loops]
    names = (*(t.names[i] for i in joints), *(loop.name for loop in kinematics.mechanism.loops))
    return names, np.array([*(i - 2 for i in joints), *(len(t.bodies) - 2 + c for c in loops)], dtype=np.int64)


def _swapped(kinematics: Kinematics) -> NDArray[np.bool_]:
    """Mask of the closures whose predecessor and successor are swapped against their loop."""
    t = kinematics.tables
    graph = build_graph(kinematics.mechanism)
    of_loop = {loop.name: graph.bodies[graph.link_body[loop.predecessor]].name for loop in kinematics.mechanism.loops}
    return np.array(
        [
            name in of_loop and t.names[closure["predecessor"]] != of_loop[name]
            for name, closure in zip(t.closure_names, t.closures, strict=True)
        ],
        dtype=bool,
    )


def _length(kinematics: Kinematics, at: NDArray[np.int64]) -> float:
    """Mean distance [m] of all joints from their centre at home; makes moments comparable with forces."""
    engine = kinematics.engine
    placed = engine.placed(engine.home, engine.home_joints)
    points = np.concatenate([placed.state["p"][2:], placed.rows["point"][engine.tables.closures["rows_at"]]])[at]
    return float(np.linalg.norm(points - points.mean(axis=0), axis=1).mean()) or 1.0


def _moved(wrench: Array, arm: Array) -> Array:
    """Wrench (6,) or (6, c) about the start of `arm` (3,), given about its end."""
    return np.concatenate([wrench[:3], wrench[3:] + skew(arm) @ wrench[:3]])


def _balance(bodies: NDArray[Any], closures: NDArray[Any], state: NDArray[Any], rows: NDArray[Any]) -> _Balance:
    """Balance of every body from the tips down, from the wrenches of inertia and springs in the state."""
    needed = np.zeros((len(bodies), 6, 1 + len(rows)))
    needed[:, :3, 0], needed[:, 3:, 0] = state["force"], state["torque"]
    closing = np.zeros((len(closures), 6, 1 + len(rows)))
    points = rows["point"][closures["rows_at"]]
    for k, closure in enumerate(closures):
        own = slice(closure["rows_at"], closure["rows_at"] + closure["rows"])
        columns = slice(1 + own.start, 1 + own.stop)
        closing[k, :3, columns], closing[k, 3:, columns] = rows["force"][own].T, rows["moment"][own].T
        for body, sign in ((closure["successor"], -1.0), (closure["predecessor"], 1.0)):
            needed[body] += sign * _moved(closing[k], points[k] - state["p"][body])
    for i in range(len(bodies) - 1, PLATFORM, -1):
        parent = bodies[i]["parent"]
        needed[parent] += _moved(needed[i], state["p"][i] - state["p"][parent])
    return _Balance(needed, closing, points, state["effort"].copy())


def _resolve(
    balance: _Balance,
    bodies: NDArray[Any],
    state: NDArray[Any],
    effort: Array,
    allowed: Array,
    length: float,
    rows: NDArray[Any],
    at: NDArray[np.int64],
) -> tuple[Array, Array, Array] | None:
    """(1, unknowns) (1 + n_rows,), stresses (n_rows, redundant), wrench of the branch (6,); None without balance."""
    slides = bodies["prismatic"][2:] == 1
    z = state["R"][2:, :, 2]
    part = np.where(slides[:, None, None], balance.needed[2:, :3], balance.needed[2:, 3:])
    along = np.einsum("ij,ijc->ic", z, part)
    driven = bodies["actuator"][2:]
    brought = np.where(driven >= 0, effort[np.maximum(driven, 0)], 0.0) - balance.own[2:]
    # one unit everywhere: moments, of joints, platform and unknowns alike, are forces at the characteristic length
    scale = np.concatenate([np.where(slides, 1.0, 1.0 / length), 3 * [1.0], 3 * [1.0 / length]])
    turns = np.abs(rows["moment"]).max(axis=1) > 0.0
    unit = np.where(turns, length, 1.0)
    A = np.concatenate([along[:, 1:], balance.needed[PLATFORM][:, 1:]]) * scale[:, None] * unit
    b = np.concatenate([brought - along[:, 0], -balance.needed[PLATFORM][:, 0]]) * scale
    U, values, Vt = np.linalg.svd(A)
    rank = int(np.sum(values > RANK * values[0])) if len(values) else 0
    held = np.zeros(6)
    if allowed.shape[1] < 6:  # what moves freely in spite of the limbs is held by the branch as far as it can
        blocked = np.linalg.svd(allowed.T / scale[-6:])[2][allowed.shape[1] :].T
        free = U[:, rank:].T
        left, moving, right = np.linalg.svd(free[:, -6:] @ blocked, full_matrices=False)
        kept = moving > STRESSED
        held = -blocked @ (right[kept].T @ ((left[:, kept].T @ (free @ b)) / moving[kept]))
        b[-6:] += held
    particular = Vt[:rank].T @ ((U[:, :rank].T @ b) / values[:rank])
    size = max(np.abs(b).max(), np.abs(particular).max(initial=0.0))
    if not np.abs(A @ particular - b).max() <= BALANCED * size:
        return None
    stress = Vt[rank:].T * unit[:, None]
    unknown = np.concatenate([[1.0], particular * unit])
    if stress.shape[1]:
        every = np.concatenate([balance.needed[2:], balance.closing])[at]
        every = (every * np.array(3 * [1.0] + 3 * [1.0 / length])[:, None]).reshape(-1, every.shape[2])
        share = np.linalg.lstsq(every[:, 1:] @ stress, -every @ unknown, rcond=None)[0]
        unknown[1:] += stress @ share
    return unknown, stress / np.abs(stress).max() if stress.size else stress, held / scale[-6:]
