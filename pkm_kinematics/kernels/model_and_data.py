# SPDX-License-Identifier: Apache-2.0
"""What every kernel takes: a `Model`, constant per robot, a `Data`, the scratch of one thread, and often a `Choice`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_kinematics.kernels import records
from pkm_runtime.kernels.binding import ByAddress, arrays_type

Array = NDArray[np.float64]
Records = Any  # a structured array: of what its fields give, mypy would try every overload of NumPy, for seconds

NEAREST = -1  # branch: for each limb in closed form, the one nearest to where its joints are
SEEDED = -2  # the same, of joint positions that somebody gave: those that close the loops are the answer themselves
SOLVED = -3  # the seeds are the configurations: bodies are placed by them, and nothing is solved
NEAREST_BRANCH = np.int64(NEAREST)  # the same between kernels, which numba compiles anew for a plain number


def copy_records(table: Records) -> Records:
    """A copy of a record array, several times as fast as NumPy's own, which goes field by field."""
    return table.view(f"V{table.itemsize}").copy().view(table.dtype)


class Model(ByAddress):
    """A robot, immutable; robots with a payload, or at a pose of a configuration-dependent motion space, are copies."""

    kind = arrays_type(
        "Model",
        True,
        bodies=(records.BODY, 1),
        closures=(records.CLOSURE, 1),
        blocks=(records.BLOCK, 1),
        limbs=(np.int64, 2),
        chain=(records.BODY, 1),
        task=(records.TASK, 1),
        subspace=(np.float64, 2),
        springs=(records.SPRING, 1),
    )
    bodies: Records  # records.BODY
    closures: Records  # records.CLOSURE
    blocks: Records  # records.BLOCK
    limbs: NDArray[np.int64]  # (k, 2) first block of each limb, and the one after its last
    chain: Records  # records.BODY: the platform's own branch, base first
    task: Records  # (1,) records.TASK
    subspace: Array  # (6, n) motion space; if configuration-dependent, the twists that the branch allows
    springs: Records  # records.SPRING

    def of_graph(self) -> dict[str, Records]:
        """The tables of bodies and closures, without what belongs to the platform's branch."""
        return {"bodies": self.bodies, "closures": self.closures, "blocks": self.blocks, "limbs": self.limbs}


class Data(ByAddress):
    """Scratch of a kernel: where the robot is, its equations, and matrices."""

    kind = arrays_type(
        "Data",
        False,
        state=(records.STATE, 1),
        rows=(records.ROW, 1),
        work=(np.float64, 1),
        chain=(records.STATE, 1),
        system=(np.float64, 3),
    )
    state: Records  # records.STATE of the bodies
    rows: Records  # records.ROW of the closures' equations
    work: Array  # pseudo-inverses of the blocks, and behind them scratch, at least BRANCH_SCRATCH values
    chain: Records  # records.STATE of the branch
    system: Array  # (MATRICES, w, w) small matrices and vectors; their users say which

    def copy(self) -> Data:
        """The same for another thread."""
        state, rows, chain = map(copy_records, (self.state, self.rows, self.chain))
        return Data(state, rows, self.work.copy(), chain, self.system.copy())


BRANCH_SCRATCH = 108  # for the motion of the branch: two matrices of 6 by up to 6 joints, one of 6 by 6
MATRICES = 6
VECTORS = 3  # the matrix of `Data.system` whose rows are scratch vectors
FACTORS = 5  # the one whose rows are, while a Jacobian is factorised: weights of reflections, one over unit speeds
SLOWEST = 7  # its row whose first element is the largest ratio of two corrections of Newton's method, until put to 0


class Choice(NamedTuple):
    """Which configuration, of those that reach a pose: made by `WorkingModes.choose`, and taken by every solve.

    `certain` tells for which poses the solution is known to be of the mode asked for; kernels do not read it.
    """

    branch: int  # of all limbs in closed form together, or NEAREST, SEEDED, SOLVED
    seeds: Array  # (1 or n, n_joints) where iterations start, and what the nearest branch is nearest to
    certain: NDArray[np.bool_]  # (n,)
    from_home: bool = False  # seeds are those at home, from where joints count their turns; of a branch alone

    def rows(self, at: Any) -> Choice:
        """The choice for some of the poses."""
        seeds = self.seeds[at] if len(self.seeds) > 1 else self.seeds
        return Choice(self.branch, seeds, self.certain[at], self.from_home)

    def seeds_for(self, at: Any) -> Array:
        """A row of `seeds` (k, n_joints) for each of some poses, given by number (k,)."""
        return self.seeds[at] if len(self.seeds) > 1 else np.repeat(self.seeds, len(at), axis=0)


def near(joints: Array, n: int, branch: int = NEAREST) -> Choice:
    """The choice, for n poses, of what is nearest to joint positions (n_joints,) or (1 or n, n_joints)."""
    certain = np.empty(n, dtype=np.bool_)
    certain.fill(True)
    return Choice(branch, writeable(joints if joints.ndim == 2 else joints[None]), certain)


def writeable(array: Array) -> Array:
    """An array in C order and not read-only, for which kernels would be compiled again; copied only if needed."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


class Solved(NamedTuple):
    """Rows of a solve; NaN where there is no configuration."""

    q: Array  # (n, n_joints)
    qd: Array
    qdd: Array
    status: NDArray[np.int64]  # (n,)
    residual: Array
    iterations: NDArray[np.int64]
    regularity: Array  # (n,) of the worst limb; 0 unless rates or the Jacobian are asked for
    jacobian: Array  # (n, n_actuated, 6) actuated rates per twist; (n, 0, 6) where it is not asked for

    def rows(self, at: Any) -> Solved:
        """Some of the rows, as views where `at` is a slice."""
        return Solved(*(array[at] for array in self))
