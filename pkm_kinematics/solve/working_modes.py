# SPDX-License-Identifier: Apache-2.0
"""Working modes: the different configurations of the limbs at one platform pose.

A limb in closed form has its branches. A limb solved by iteration has the solutions that Newton's method meets from
many starts; two solutions are the same mode when every joint has the same place and line, so that turning a universal
joint over does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.batch import rows_for
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import SEEDED, Choice, Solved, near
from pkm_kinematics.kernels.position.closures import block_residual, closed
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.robot_constants import Placed, place
from pkm_kinematics.status import closes
from pkm_runtime.codegen import MachineCode
from pkm_runtime.describable import listed
from pkm_runtime.errors import PkmError

STARTS = 60  # of Newton's method per limb, besides those that continue home's solutions
STARTS_AT_HOME = 1000  # once per robot: what is not met here has no number
SAME = 1e-6  # of the robot's size, and directions: configurations nearer than this are one
COMBINATIONS = 16  # of solutions of several limbs, tried at most where one is looked for
FEW = 64  # working modes that are all tried where one is looked for
MOST = 4096  # working modes listed at most

Indices = NDArray[np.int64]
LimbColumns = tuple[Indices, Indices, Indices]  # columns of joints, its actuators by number and by column


class ModeError(PkmError):
    """A working mode that the robot does not have."""

    def __init__(self, mode: int | str, count: int, labels: Iterable[str] = ()) -> None:
        labelled = f", with labels {listed(labels)}" if labels else ""
        super().__init__(f"there is no working mode {mode!r}: the robot has {count}, numbered from 0{labelled}")
        self.mode, self.count = mode, count


class WorkingModes:
    """Working modes of one robot: numbered mode 0 (home's) to count - 1, the first limb's branch changing fastest."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.blocks = engine.tables.blocks
        iterated = [int(b) for b in range(len(self.blocks)) if self.blocks["solver"][b] == records.NEWTON]
        self._searched = [span for span in engine.tables.limbs if any(span[0] <= b < span[1] for b in iterated)]
        self._closed = int(np.prod(self.blocks["branches"]))
        self._starts: dict[int, Array] = {}
        self.straight: dict[int, tuple[MachineCode, int] | None] = {}  # code of `lean_inverse`, how many results

    @cached_property
    def _home_choices(self) -> list[list[Array]]:
        """For each searched limb its solutions at home, home's first, as joint positions (n_joints,)."""
        if not self._searched:
            return []
        found: list[dict[int, tuple[Array, Array]]] = [{} for _ in self._searched]
        data = self.engine.data()
        for seed in (self.engine.home_joints, *self._random_seeds(STARTS_AT_HOME)):
            self._note(
                found, place(self.engine.model, data, self.engine.home, seed, 0), [len(entry) for entry in found]
            )
        return [[joints for _, joints in entry.values()] or [self.engine.home_joints] for entry in found]

    @property
    def known_count(self) -> int | None:
        """Number of working modes at home where it is known without a search, or after one; else None."""
        return self.count if not self._searched or "_home_choices" in vars(self) else None

    @property
    def count(self) -> int:
        """Number of working modes at home."""
        return self._closed * int(np.prod([len(c) for c in self._home_choices]))

    def label(self, mode: int) -> str:
        """One character per limb with more than one branch. Raises `ModeError`."""
        self.branch(mode)
        return self.label_of(mode, self._digits(mode))

    def number(self, label: str) -> int:
        """The working mode of a label, as `label` gives it. Raises `ModeError`."""
        if label not in self._numbers:
            raise ModeError(label, self.count, self._numbers)
        return self._numbers[label]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {self.label(mode): mode for mode in range(min(self.count, MOST))}

    def choose(self, poses: Array, seed: ArrayLike | None = None, mode: int | None = None) -> Choice:
        """Which configurations poses (n, 7) are solved for: the one place where that is decided.

        With a seed (n_joints,) or (..., n_joints), those nearest to it. With a mode, those of a working mode: limbs in
        closed form take its branch, limbs solved by iteration carry on from where they are at home in that mode. With
        both, the branch of the mode, and iterations from the seed. With neither, those that continue home, in its
        working mode. Raises `ShapeError` or `ModeError`.
        """
        return self.choose_and_find(poses, seed, mode)[0]

    def choose_and_find(self, poses: Array, seed: ArrayLike | None, mode: int | None) -> tuple[Choice, Solved | None]:
        """`choose`, and the configurations where they had to be found for it."""
        if seed is not None:
            seeds = rows_for(seed, len(self.engine.joint_names), len(poses), "seed")
            return near(seeds, len(poses), SEEDED if mode is None else self.branch(mode)), None
        if mode is None:  # home's, which is the first, in the turns that joints make on the way from there
            return self.engine.from_home.found(poses, self.engine.home_joints, 0)
        branch = self.branch(mode)
        return self.engine.from_home.found(poses, self.start(mode), branch)

    def branch(self, mode: int) -> int:
        """The number by which the closed forms know a working mode. Raises `ModeError`."""
        if not isinstance(mode, int | np.integer) or isinstance(mode, bool):  # True is no number of a mode
            raise ModeError(mode, self.count)
        if not 0 <= mode < self._closed and not (mode >= 0 and mode < self.count):
            raise ModeError(mode, self.count)
        return mode % self._closed

    def start(self, mode: int) -> Array:
        """Joints (n_joints,) at home for a mode: iterated limbs go on from there, closed forms turn nearest to them."""
        if mode not in self._starts:
            self._starts[mode] = self._start(mode)
        return self._starts[mode]

    def _start(self, mode: int) -> Array:
        joints = self.engine.home_joints
        if mode >= self._closed:
            joints = self._combined([c[k] for c, k in zip(self._home_choices, self._digits(mode), strict=True)])
        branch = mode % self._closed
        if branch == 0:
            return joints
        # limbs solved by iteration need not be where they are in home's branch, if closed forms in them change theirs
        solved = self.engine.positions.solve(self.engine.home[None], near(joints, 1, branch))
        if not closes(solved.status[0]):
            return joints
        self.engine.ranges.wrap_into_limits(solved)
        return solved.q[0]

    @cached_property
    def starts(self) -> Array:
        """Joint positions (s, n_joints) at home that show every solution of every limb solved by iteration.

        In all combinations, since one limb at its end hides the others; where these are many, each solution once.
        """
        choices = self._home_choices
        if int(np.prod([len(c) for c in choices])) <= COMBINATIONS:
            return np.array([self._combined(list(chosen)) for chosen in product(*choices)])
        most = max(len(c) for c in choices)
        return np.array([self._combined([c[min(k, len(c) - 1)] for c in choices]) for k in range(most)])

    @cached_property
    def searched(self) -> list[LimbColumns]:
        """What is solved by iteration of each searched limb."""
        return [
            self._limb_columns([b for b in self.blocks[first:stop] if b["solver"] == records.NEWTON])
            for first, stop in self._searched
        ]

    @cached_property
    def hidden(self) -> list[LimbColumns]:
        """Each limb in closed form with a passive block of several branches, which no actuator of the block shows."""
        return [self._limb_columns(self.blocks[first:stop]) for first, stop in self._hidden_limbs]

    @cached_property
    def hidden_branches(self) -> list[int]:
        """Kernel modes that show, between them, every combination of the branches of each such limb; home's first."""
        limbs = [[b for b in self.blocks[first:stop] if b["branches"] > 1] for first, stop in self._hidden_limbs]
        combined = [
            [sum(k * int(b["stride"]) for k, b in zip(branch, blocks, strict=True)) for branch in _branches(blocks)]
            for blocks in limbs
        ]
        return [sum(modes[k % len(modes)] for modes in combined) for k in range(max(map(len, combined), default=0))]

    @property
    def _hidden_limbs(self) -> list[tuple[int, int]]:
        closed, passive = self.blocks["solver"] == records.CLOSED_FORM, self.blocks["actuators"] == 0
        branched = self.blocks["branches"] > 1
        return [
            (first, stop)
            for first, stop in self.engine.tables.limbs
            if closed[first:stop].all() and (passive & branched)[first:stop].any() and not passive[first:stop].all()
        ]

    def _limb_columns(self, blocks: Iterable[Any]) -> LimbColumns:
        actuated, column = self.engine.actuated_column, self.engine.body_column
        columns = np.concatenate([column[b["start"] : b["start"] + b["count"]] for b in blocks])
        driven = np.flatnonzero(np.isin(actuated, columns))
        return columns, driven, actuated[driven]

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
        """Mode (None if limbs were searched), label and solution of every working mode at a pose; or `PkmError`."""
        if self._closed > MOST:
            raise PkmError(
                f"the robot has {self._closed} working modes, but at most {MOST} are listed; request one by its number"
            )
        if not self._searched:
            for mode in range(self._closed):
                solved = self.engine.positions.solve(pose[None], near(self.start(mode), 1, mode))
                self.engine.ranges.wrap_into_limits(solved)
                yield mode, self.label(mode), solved
            return
        several = [len(c) > 1 for c in self._home_choices]
        for mode in range(self._closed):
            head = "".join("+-"[(mode // int(b["stride"])) % 2] for b in self.blocks if b["branches"] > 1)
            choices = self._choices(pose, mode)
            marked = [many or len(c) > 1 for many, c in zip(several, choices, strict=True)]
            for chosen in islice(product(*(sorted(c) for c in choices)), MOST):
                tail = "".join(_sign(k) for k, many in zip(chosen, marked, strict=True) if many)
                seed = self._combined([c[k] for c, k in zip(choices, chosen, strict=True)])
                solved = self.engine.positions.solve(pose[None], near(seed, 1, mode))
                self.engine.ranges.wrap_into_limits(solved)
                yield None, head + tail or "only", solved

    def numbers_at(self, pose: Array, joints: Array, mode: int) -> list[int]:
        """The numbers that `solutions` gives to searched limbs, closed forms being in branches `mode`; else -1."""
        if not self._searched:
            return []
        at = self.engine.placed(pose, joints)
        numbers = []
        for span, found in zip(self._searched, self._found(pose, mode), strict=True):
            key = self._key(at.state, at.rows, span)
            same = [n for n, (other, _) in found.items() if key is not None and np.abs(key - other).max() <= SAME]
            numbers.append(same[0] if same else -1)
        return numbers

    def label_of(self, mode: int, numbers: Sequence[int]) -> str:
        """As `label`: of branches of closed forms and numbers of searched limbs, "?" for -1."""
        signs = ["+-"[(mode // int(b["stride"])) % 2] for b in self.blocks if b["branches"] > 1]
        for number, choices in zip(numbers, self._home_choices, strict=True):
            if len(choices) > 1 or number != 0:
                signs.append(_sign(number) if number >= 0 else "?")
        return "".join(signs) or "only"

    def _choices(self, pose: Array, mode: int) -> list[dict[int, Array]]:
        """Joint positions of each searched limb's solutions by number; home's where there is none at all."""
        found = self._found(pose, mode)
        return [{k: joints for k, (_, joints) in entry.items()} or {0: self.engine.home_joints} for entry in found]

    def _found(self, pose: Array, mode: int) -> list[dict[int, tuple[Array, Array]]]:
        """Solutions of each searched limb at a pose by number, those continued from home's first; `mode`'s branches."""
        e = self.engine
        numbers, data = [len(c) for c in self._home_choices], e.data()
        found: list[dict[int, tuple[Array, Array]]] = [{} for _ in self._searched]
        for k in range(max(numbers)):
            start = self._combined([c[min(k, len(c) - 1)] for c in self._home_choices])
            at = e.from_home.continued(pose[None], start, mode)
            if at.certain[0]:
                self._note(found, place(e.model, data, pose, at.seeds[0], mode), [k if k < n else -1 for n in numbers])
        for seed in self._random_seeds(STARTS):
            new = [max((n - 1, *entry)) + 1 for n, entry in zip(numbers, found, strict=True)]
            self._note(found, place(e.model, data, pose, seed, mode), new)
        return found

    def _note(self, found: list[dict[int, tuple[Array, Array]]], at: Placed, number: list[int]) -> None:
        """Add each limb's solution under its number (-1: not at all) where it is a new one."""
        e = self.engine
        joints = e.home_joints.copy()
        joints[e.body_column[2:]] = at.state["q"][2:]
        turns = np.where(e.tables.bodies["prismatic"][2:] == 1, 0.0, 2.0 * np.pi)
        off = (joints - e.home_joints)[e.body_column[2:]]
        joints[e.body_column[2:]] -= turns * np.round(off / (2.0 * np.pi))  # every joint within half a turn of home
        for k, span in enumerate(self._searched):
            key = self._key(at.state, at.rows, span) if number[k] >= 0 else None
            if key is None:
                continue
            same = [n for n, (other, _) in found[k].items() if np.abs(key - other).max(initial=0.0) <= SAME]
            if not same:
                found[k][number[k]] = (key, joints)
            elif self._from_home(joints, span) < self._from_home(found[k][same[0]][1], span) - SAME:
                found[k][same[0]] = (key, joints)  # the same, without a joint turned over

    def _from_home(self, joints: Array, span: tuple[int, int]) -> float:
        columns = self._columns(span)
        return float(np.abs(joints - self.engine.home_joints)[columns].sum())

    def _random_seeds(self, count: int) -> Iterator[Array]:
        e = self.engine
        random = np.random.default_rng(0)
        bodies, length = e.tables.bodies, e.characteristic_length
        low = np.where(np.isfinite(bodies["lower"]), bodies["lower"], -np.where(bodies["prismatic"], 3 * length, np.pi))
        high = np.where(np.isfinite(bodies["upper"]), bodies["upper"], np.where(bodies["prismatic"], 3 * length, np.pi))
        for _ in range(count):
            seed = e.home_joints.copy()
            seed[e.body_column[2:]] = random.uniform(low, high)[2:]
            seed[e.redundant_column] = e.home_joints[e.redundant_column]
            yield seed

    def _key(self, state: NDArray[Any], rows: NDArray[Any], span: tuple[int, int]) -> Array | None:
        """Places and lines of a limb's joints that are not idle, or None where its loops stay open."""
        blocks = self.blocks[span[0] : span[1]]
        closures = self.engine.model.closures
        if not all(closed(block, block_residual(closures, block, rows)) for block in blocks):
            return None
        bodies = slice(int(blocks["start"][0]), int(blocks["start"][-1] + blocks["count"][-1]))
        seen = np.repeat(blocks["idle"] == 0, blocks["count"])
        axes = state["R"][bodies][:, :, 2] * seen[:, None]
        lines = np.einsum("ni,nj->nij", axes, axes).reshape(-1)
        return np.concatenate([state["p"][bodies].reshape(-1) / self.engine.size, lines])


def _branches(blocks: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    return product(*(range(int(b["branches"])) for b in blocks))


def _sign(choice: int) -> str:
    return "+-"[choice] if choice < 2 else str(choice)


def showing(modes: WorkingModes) -> list[int]:
    """Working modes that show each solution of each limb, home's first: of many, those of one limb at a time."""
    if modes.count <= FEW:
        return list(range(modes.count))
    found, stride = [0], modes._closed
    for choices in modes._home_choices:
        found += [k * stride for k in range(1, len(choices))]
        stride *= len(choices)
    return [branch + mode for mode in found for branch in range(modes._closed)]
