# SPDX-License-Identifier: Apache-2.0
"""Which working mode and which assembly mode a moving robot is in, and when it leaves them.

A working mode ends where a limb is stretched or folded, in a singularity of type 1; an assembly mode where the limbs
lose hold of the platform, in one of type 2. Both show as changes of sign: of the derivative of a limb's distance
equation by its driver, of the determinant of a limb's Jacobian, of that of the direct Jacobian (Gosselin and Angeles
1990). So one compiled call tells from a configuration alone on which side of all of them it is.

A sign says that something was passed, not always where that led: limbs that are solved by iteration, and assembly modes
on the same side, are then looked up among all modes, once per change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.modes import read_modes
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.lean import bind
from pkm_kinematics.pose import distance
from pkm_kinematics.status import Status
from pkm_kinematics.task import chain_state

if TYPE_CHECKING:
    from pkm_kinematics.kinematics import Kinematics

CLOSES = (Status.CONVERGED, Status.JOINT_LIMIT)


@dataclass(frozen=True)
class Modes:
    """Labels as `Kinematics.inverse_all` and `Kinematics.forward_all` give them; empty where there are none.

    `change` is a sentence where a label is not that of the configuration before, else empty.
    """

    working: str
    assembly: str
    change: str = ""


class ModeReader:
    """On which sides of the singularities configurations are; see `kernels.modes`. Not for several threads."""

    def __init__(self, kinematics: Kinematics) -> None:
        e, t = kinematics.engine, kinematics.tables
        m, blocks = len(kinematics.actuated_names), t.blocks
        square = e.constant_space and m == e.mobility
        subspace = np.ascontiguousarray(e.task.subspace) if square else np.zeros((6, m + 1))
        self.sides = np.ones(len(blocks))
        size = max(int(blocks["count"].max(initial=0)), m)
        scratch = (np.zeros(t.n_work), np.zeros(t.n_work), np.zeros((size, size)), np.zeros((m, 6)))
        task = e.task
        fixed = (
            t.bodies, t.closures, blocks, *t.workspace(),
            task.chain, task.sliding, task.spread, task.tail, task.tail_point, chain_state(task),
            e.body_column, e.chain_column, subspace, *scratch, self.sides,
        )  # fmt: skip
        self._read: Callable[..., Any] = bind(read_modes, fixed, (np.array(e.home), np.array(e.home_joints)))

    def read(self, pose: Array, joints: Array) -> tuple[int, float]:
        """Status, and the side of the platform: 1.0, -1.0, 0.0 where singular; writes those of the blocks to `sides`.

        `pose` (7,) and `joints` (n_joints,) must be contiguous float64 arrays.
        """
        status, side = self._read(pose, joints)
        return status, side


class ModeTracker:
    """Labels the configurations of one motion, each a little way from the one before. Not for several threads.

    The assembly mode's number is kept along the motion, as nothing but a singularity of type 2 ends it. The first
    configuration is taken to be in home's assembly mode where it is on home's side, which is where `forward` stays that
    starts at home. Where the motion space turns with the pose or actuators are redundant, determinants compare nothing:
    such a robot's assembly mode is home's, as far as a tracker can tell.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self._reader = ModeReader(kinematics)
        blocks = kinematics.tables.blocks
        self._weights = np.where(blocks["branches"] > 1, blocks["stride"], 0)
        self._iterated = blocks["solver"] == NEWTON
        self._home_side = self._reader.read(np.array(kinematics.home), np.array(kinematics.home_joints))[1]
        self._before = self._reader.sides.copy()
        self._side = 0.0
        self._lost = True
        self._modes = Modes("", "")

    def observe(self, pose: Array, joints: Array) -> Modes:
        """The modes of a configuration: pose (7,), joints (n_joints,) near those that close the loops there.

        Empty labels where these are singular or do not close; the next configuration then is a new beginning, but still
        compared with the last one that had labels.
        """
        pose, joints = np.ascontiguousarray(pose, dtype=np.float64), np.ascontiguousarray(joints, dtype=np.float64)
        status, side = self._reader.read(pose, joints)
        if status not in CLOSES or side == 0.0:
            self._lost = True
            return Modes("", "")
        sides, last = self._reader.sides, self._modes
        if not self._lost and side == self._side and np.array_equal(sides, self._before) and not self._turned():
            return last
        working = self._working_label(pose, joints)
        assembly = last.assembly if side == self._side else self._assembly_label(side, pose, joints)
        self._before[:], self._side, self._lost = sides, side, False
        self._modes = Modes(working, assembly)
        return Modes(working, assembly, _sentence(last, self._modes))

    def _turned(self) -> bool:
        """Whether a limb solved by iteration has passed a singularity since the configuration before."""
        return bool((self._reader.sides[self._iterated] < 0.0).any())

    def _working_label(self, pose: Array, joints: Array) -> str:
        mode = int(self._weights @ (self._reader.sides < 0.0))
        modes = self.kinematics.modes
        return modes.label_of(mode, modes.numbers_at(pose, joints, mode))

    def _assembly_label(self, side: float, pose: Array, joints: Array) -> str:
        """`sign` and number of the mode on a side of the singularities that the motion has come to."""
        k = self.kinematics
        sign = "+" if side * self._home_side >= 0.0 else "-"
        if self._side == 0.0 and sign == "+":
            return "+1"
        if k.assembly_method == "search":
            return sign
        listed = k.forward_all(joints[k.engine.actuated_column])
        gaps = [distance(one.pose, pose, k.characteristic_length) for one in listed]
        return listed[int(np.argmin(gaps))].label if gaps else sign


def _sentence(before: Modes, now: Modes) -> str:
    """What changed, for a person; empty where nothing did, or nothing was known before."""
    said = []
    if before.working not in ("", now.working):
        said.append(f"working mode {before.working} left for {now.working}: a limb passed a type 1 singularity")
    if before.assembly not in ("", now.assembly):
        said.append(f"assembly mode {before.assembly} left for {now.assembly}: a type 2 singularity was passed")
    return "; ".join(said)
