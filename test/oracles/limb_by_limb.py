# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics limb by limb: each limb's share of the equations of motion by a call of its own.

    K_a^T tau = S^T (w_P + sum over limbs of J_l^T (...)_l)

Müller, "Dynamics of parallel manipulators with hybrid complex limbs: modular modeling and parallel computing", section
8.2: given the platform's motion, the shares of limbs are independent and can be evaluated in parallel; only the
platform and a small linear system need them all. A limb here takes some microseconds, handing it to a thread takes
many: threads slow one call down (measured by `python -m bench.scaling`). For many motions use `Dynamics.inverse`,
which uses all cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics, Efforts
from pkm_kinematics import Status
from pkm_kinematics.kernels.model_and_data import NEAREST
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.model.tables import Tables
from pkm_runtime.kernels.binding import bind, read_only
from test.oracles.limb_kernels import efforts_from_shares, limb_share


def limb_tables(tables: Tables, limb: int) -> tuple[Tables, np.ndarray]:
    """Tables of one limb, and the numbers (k,) in `tables` of its bodies, base and platform included.

    Actuators and working modes keep their numbers.
    """
    first, stop = tables.limbs[limb]
    blocks = tables.blocks[first:stop].copy()
    start, closure_start = int(blocks["start"][0]), int(blocks["closure_start"][0])
    count = int(blocks["start"][-1] + blocks["count"][-1]) - start
    closure_count = int(blocks["closure_start"][-1] + blocks["closure_count"][-1]) - closure_start
    numbers = np.concatenate([np.arange(PLATFORM + 1), np.arange(start, start + count)])
    new = np.full(len(tables.bodies), -1)
    new[numbers] = np.arange(len(numbers))

    among = slice(closure_start, closure_start + closure_count)
    bodies, closures = tables.bodies[numbers].copy(), tables.closures[among].copy()
    for table, fields in (
        (bodies, ("parent",)),
        (closures, ("predecessor", "successor", "predecessor_anchor", "successor_anchor")),
        (blocks, ("start", "driver", "pointing", "extension", "lift", "wrist")),
    ):
        for name in fields:
            table[name] = np.where(table[name] >= 0, new[table[name]], -1)
    blocks["limb_first"] -= first
    blocks["closure_start"] -= closure_start
    for array in (bodies, closures, blocks):
        array.setflags(write=False)
    # equations and inverses keep their places, in a workspace that has room for those of the others
    found = Tables(
        bodies=bodies,
        closures=closures,
        blocks=blocks,
        gravity=tables.gravity,
        names=tuple(tables.names[i] for i in numbers),
        closure_names=tables.closure_names[among],
        n_rows=tables.n_rows,
        n_work=tables.n_work,
        limbs=((0, len(blocks)),),
    )
    return found, numbers


Share = Callable[[Array, Array, Array], int]  # (motion, jacobian, wrench) -> status


class LimbByLimb:
    """Inverse dynamics of one robot, limb by limb. Limbs that share bodies, those of an articulated plate, are one."""

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, self.kinematics = dynamics, dynamics.kinematics
        tables = self.kinematics.tables
        both = [limb_tables(tables, k) for k in range(len(tables.limbs))]
        self._limbs = [one for one, _ in both]
        self._bodies = [numbers for _, numbers in both]
        self._data = [one.data() for one in self._limbs]
        m = len(self.kinematics.actuated_names)
        self._jacobian, self._wrenches = np.zeros((m, 6)), np.zeros((len(both), 6))

    def __len__(self) -> int:
        """Number of limbs."""
        return len(self._limbs)

    def lean_shares(self, mode: int = 0) -> list[Share]:
        """One `call(motion, jacobian, wrench) -> status` per limb, for time-critical loops; limbs may run in parallel.

        `motion` (25,) as in `Dynamics.lean_inverse`. `wrench` (6,) gets the force [N] and moment [N m] at the
        platform's origin, base axes, with which the platform moves the limb; `jacobian` (n_actuated, 6) the rows of its
        own actuators.
        """
        return self._shares(self.kinematics.modes.branch(mode))

    def _shares(self, branch: int) -> list[Share]:
        motion, m = self._at_home(), len(self.kinematics.actuated_names)
        return [
            bind(
                limb_share,
                (t.model.replace(bodies=self.dynamics.robot.with_friction(t.bodies)), data, branch),
                (motion, np.zeros((m, 6)), np.zeros(6)),
            )
            for t, data in zip(self._limbs, self._data, strict=True)
        ]

    def lean_rest(self, subspace: Array | None = None) -> Callable[[Array, Array, Array, Array, Array], int]:
        """`call(motion, jacobian, wrenches, wrench, effort) -> status`: efforts from all shares (limbs, 6).

        `wrench` (6,) gets their sum with the platform's. `subspace` (6, mobility) is for configuration-dependent
        spaces.
        """
        S = read_only(self.kinematics.task.subspace if subspace is None else subspace)
        m = len(self.kinematics.actuated_names)
        example = self._at_home(), np.zeros((m, 6)), np.zeros((len(self), 6)), np.zeros(6), np.zeros(m)
        model = self.dynamics.model().replace(subspace=S)
        return bind(efforts_from_shares, (model, self.kinematics.engine.data()), example)

    def inverse(
        self,
        pose: ArrayLike,
        twist: ArrayLike | None = None,
        acceleration: ArrayLike | None = None,
        wrench: ArrayLike | None = None,
        seed: ArrayLike | None = None,
        pool: Executor | None = None,
    ) -> Efforts:
        """`Dynamics.inverse` of one motion without condition, limbs on the threads of `pool`; not thread-safe."""
        k = self.kinematics
        poses, _ = k.engine.inputs.poses(pose)
        parts = [np.zeros(6) if x is None else np.asarray(x, dtype=np.float64) for x in (twist, acceleration, wrench)]
        motion = np.concatenate([poses[0], *parts])
        effort = np.full(len(k.actuated_names), np.nan)
        at = k.motion(poses[0], parts[0], parts[1], seed)
        if not at.ok:
            return Efforts(effort, np.asarray(at.status), np.asarray(np.nan), k.engine.names)
        calls = self._near  # made, and with it tried out in the workspaces, before these get their seeds
        q = at.joints[np.maximum(k.engine.body_column, 0)]
        for data, numbers in zip(self._data, self._bodies, strict=True):
            state = data.state
            state["q"] = q[numbers]
            state["c"], state["s"] = np.cos(q[numbers]), np.sin(q[numbers])
        jobs = [(call, motion, self._jacobian, out) for call, out in zip(calls, self._wrenches, strict=True)]
        statuses = list(map(_run, jobs) if pool is None else pool.map(_run, jobs))
        status = max(statuses, key=lambda s: s != Status.CONVERGED)
        if status == Status.CONVERGED:
            rest = self.lean_rest(k.subspace(poses[0], at.joints))
            status = rest(motion, self._jacobian, self._wrenches, np.zeros(6), effort)
        if status != Status.CONVERGED:
            effort[:] = np.nan
        return Efforts(effort, np.asarray(status), np.asarray(np.nan), k.engine.names)

    @cached_property
    def _near(self) -> list[Share]:
        """Calls that choose the branches nearest to the joints in the workspaces."""
        return self._shares(NEAREST)

    def _at_home(self) -> Array:
        motion = np.zeros(25)
        motion[:7] = self.kinematics.home
        return motion


def _run(job: tuple[Any, ...]) -> int:
    call, *arguments = job
    return int(call(*arguments))
