# SPDX-License-Identifier: Apache-2.0
"""Working modes: the different configurations of the limbs at one platform pose.

A limb in closed form has its branches. A limb solved by iteration has the solutions that Newton's method meets from
many starts; two solutions are the same mode when every joint stands at the same place along the same line, so that
turning a universal joint over does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.engine import Engine, Solved
from pkm_kinematics.kernels import records

STARTS = 60  # of Newton's method per limb
SAME = 1e-6  # m and directions: configurations nearer than this are one
MOST = 4096  # working modes listed at most


class WorkingModes:
    """Working modes of one robot: numbered mode 0 (home's) to count - 1, the first limb's branch changing fastest."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.blocks = engine.tables.blocks
        iterated = [int(b) for b in range(len(self.blocks)) if self.blocks["solver"][b] == records.NEWTON]
        self._searched = [span for span in engine.tables.limbs if any(span[0] <= b < span[1] for b in iterated)]
        self._closed = int(np.prod(self.blocks["branches"]))

    @cached_property
    def _home_choices(self) -> list[list[Array]]:
        """For each searched limb its solutions at home, home's first, as joint positions (n_joints,)."""
        return self._choices(self.engine.home, 0)

    @property
    def count(self) -> int:
        """Number of working modes at home."""
        return self._closed * int(np.prod([len(c) for c in self._home_choices]))

    def label(self, mode: int) -> str:
        """One character per limb with more than one branch."""
        signs = ["+-"[(mode // int(b["stride"])) % 2] for b in self.blocks if b["branches"] > 1]
        rest = mode // self._closed
        for choices in self._home_choices:
            if len(choices) > 1:
                signs.append(_sign(rest % len(choices)))
            rest //= len(choices)
        return "".join(signs) or "only"

    def kernel_mode(self, mode: int | None) -> int:
        """The number by which the closed forms know a mode: -1 for the nearest."""
        return -1 if mode is None else mode % self._closed

    def seed(self, mode: int) -> Array:
        """Joint positions (n_joints,) at home from which limbs solved by iteration take up a mode."""
        return self._combined([c[k] for c, k in zip(self._home_choices, self._digits(mode), strict=True)])

    def _digits(self, mode: int) -> list[int]:
        rest, digits = mode // self._closed, []
        for choices in self._home_choices:
            digits.append(rest % len(choices))
            rest //= len(choices)
        return digits

    def _combined(self, chosen: list[Array]) -> Array:
        joints = self.engine.home_joints.copy()
        for span, values in zip(self._searched, chosen, strict=True):
            columns = self._columns(span)
            joints[columns] = values[columns]
        return joints

    def _columns(self, span: tuple[int, int]) -> Array:
        blocks = self.blocks[span[0] : span[1]]
        first, stop = int(blocks["start"][0]), int(blocks["start"][-1] + blocks["count"][-1])
        columns: Array = self.engine.body_column[first:stop]
        return columns

    def solutions(self, pose: Array) -> Iterator[tuple[int | None, str, Solved]]:
        """(mode, label, solution) for every working mode at one pose (7,).

        The mode is None where a limb was searched: it is a number at home only.
        """
        if not self._searched:
            for mode in range(self._closed):
                yield mode, self.label(mode), self.engine.solve(pose[None], self.engine.home_joints[None], mode)
            return
        for mode in range(self._closed):
            head = "".join("+-"[(mode // int(b["stride"])) % 2] for b in self.blocks if b["branches"] > 1)
            choices = self._choices(pose, mode)
            several = [len(c) > 1 for c in choices]
            for chosen in list(product(*(range(len(c)) for c in choices)))[:MOST]:
                tail = "".join(_sign(k) for k, many in zip(chosen, several, strict=True) if many)
                seed = self._combined([c[k] for c, k in zip(choices, chosen, strict=True)])
                yield None, head + tail or "only", self.engine.solve(pose[None], seed[None], mode)

    def _choices(self, pose: Array, mode: int) -> list[list[Array]]:
        """Different solutions of each searched limb at a pose, the nearest to home first; home where there is none.

        Blocks of a searched limb that have a closed form stay in the branch that `mode` says.
        """
        e = self.engine
        if not self._searched:
            return []
        random = np.random.default_rng(0)
        bodies = e.tables.bodies
        length = e.characteristic_length
        low = np.where(np.isfinite(bodies["lower"]), bodies["lower"], -np.where(bodies["prismatic"], 3 * length, np.pi))
        high = np.where(np.isfinite(bodies["upper"]), bodies["upper"], np.where(bodies["prismatic"], 3 * length, np.pi))
        found: list[list[tuple[Array, Array]]] = [[] for _ in self._searched]
        seed = e.home_joints
        for _ in range(STARTS):
            at = e.placed(pose, seed, mode)
            for k, span in enumerate(self._searched):
                key = self._key(at.state, at.rows, span)
                if key is not None and all(np.abs(key - other).max() > SAME for other, _ in found[k]):
                    joints = e.home_joints.copy()
                    joints[e.body_column[2:]] = at.state["q"][2:]
                    found[k].append((key, joints))
            seed = e.home_joints.copy()
            seed[e.body_column[2:]] = random.uniform(low, high)[2:]
        return [[joints for _, joints in entry] or [e.home_joints] for entry in found]

    def _key(self, state: NDArray[Any], rows: NDArray[Any], span: tuple[int, int]) -> Array | None:
        """Places and lines of a limb's joints, or None where its loops stay open."""
        blocks = self.blocks[span[0] : span[1]]
        at = slice(int(blocks["rows_at"][0]), int(blocks["rows_at"][-1] + blocks["rows"][-1]))
        if not np.abs(rows["gap"][at]).max(initial=0.0) < 1e-10:
            return None
        bodies = slice(int(blocks["start"][0]), int(blocks["start"][-1] + blocks["count"][-1]))
        axes = state["R"][bodies][:, :, 2]
        lines = np.einsum("ni,nj->nij", axes, axes).reshape(-1)
        return np.concatenate([state["p"][bodies].reshape(-1), lines])


def _sign(choice: int) -> str:
    return "+-"[choice] if choice < 2 else str(choice)
