# SPDX-License-Identifier: Apache-2.0
"""Which working mode and which assembly mode a moving robot is in, and when it leaves them.

A working mode ends where a limb is stretched or folded, in a singularity of type 1; an assembly mode where the limbs
lose hold of the platform, in one of type 2. Both show as changes of sign: of the derivative of a limb's distance
equation by its driver, of the determinant of a limb's Jacobian, of that of the direct Jacobian (Gosselin and Angeles
1990). So one compiled call tells from a configuration alone on which side of all of them it is. A sign says that a
singularity was passed, not always where that led: limbs that are solved by iteration, and assembly modes on the same
side, are then searched among all modes, once per change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import pose_distance
from pkm_kinematics.assembly.method import REDUNDANT
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.solve.constraints import scaling
from pkm_kinematics.solve.mode_reader import ModeReader
from pkm_kinematics.status import closes


@dataclass(frozen=True)
class Modes:
    """Labels as `Kinematics.inverse_all` and `Kinematics.forward_all` give them; empty where there are none.

    `change` is a sentence where a label differs from that of the configuration before, else empty.
    """

    working: str
    assembly: str
    change: str = ""


class ModeTracker:
    """Labels the configurations of one motion, each a short way from the one before. Not thread-safe.

    The assembly mode's number stays along the motion, as nothing but a singularity of type 2 ends it. The first
    configuration is taken to be in home's assembly mode if it is on home's side, where `forward` stays that starts at
    home. For robots whose side cannot be told from a configuration alone (`AssemblyMethod.unsigned` is `?`) the first
    configuration is taken to be on home's, and changes are tracked from there. Modes of robots with redundant actuators
    have no sides, those with redundant joints are not told: theirs is called `redundant` throughout.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        self._reader = ModeReader(kinematics.engine)
        blocks = kinematics.tables.blocks
        self._iterated = blocks["solver"] == NEWTON
        self._actuated = blocks["actuators"] > 0
        self._unsigned = REDUNDANT if kinematics.redundant_names else kinematics.assembly.unsigned
        self._reader.read(np.array(kinematics.home), np.array(kinematics.home_joints))
        self._before = self._reader.sides.copy()
        self._read = 0.0  # by the reader, in the last configuration with labels
        self._side = 0.0  # of home's 1.0
        self._space: Array | None = None
        self._lost = True
        self._modes = Modes("", "")

    def observe(self, pose: Array, joints: Array) -> Modes:
        """The modes at a pose (7,), with joints (n_joints,) near those that close the loops there.

        Empty labels if singular or open; the next ones are a new beginning, compared with the last labels all the same.
        """
        pose, joints = np.ascontiguousarray(pose, dtype=np.float64), np.ascontiguousarray(joints, dtype=np.float64)
        status, read = self._reader.read(pose, joints)
        k, sides, last = self.kinematics, self._reader.sides, self._modes
        if closes(status) and not k.constant_space and self._unsigned != REDUNDANT:
            read = self._read_turning(pose, joints)
        if not closes(status) or read == 0.0:
            self._lost = True
            return Modes("", "")
        same = read == self._read and np.array_equal(sides, self._before) and not self._turned()
        if same and not self._lost:
            return last
        side = self._side
        if not self._unsigned:
            side = k.assembly.side(pose, joints)
        elif self._side == 0.0 or self._unsigned == REDUNDANT:
            side = 1.0
        elif read * self._read * float(np.prod(self._passed()[self._actuated])) < 0.0:
            side = -self._side
        working = last.working if same and last.working else self._working_label(pose, joints)
        assembly = last.assembly if side == self._side else self._assembly_label(side, pose, joints)
        self._before[:], self._read, self._side, self._lost = sides, read, side, False
        self._modes = Modes(working, assembly)
        return Modes(working, assembly, _sentence(last, self._modes))

    def _read_turning(self, pose: Array, joints: Array) -> float:
        """What the reader does not tell in a configuration-dependent motion space, whose basis is tracked here."""
        k = self.kinematics
        at = k.at(pose, seed=joints)
        K, S = at.inverse_jacobian, at.subspace
        if not (np.isfinite(K).all() and np.isfinite(S).all()):
            return 0.0
        scaled = S * scaling(k.characteristic_length)[:, None]
        turned = 1.0 if self._space is None else float(np.sign(np.linalg.det(self._space.T @ scaled)))
        scaled[:, 0] *= turned
        self._space = scaled
        return turned * float(np.sign(np.linalg.det(K @ S)))

    def _passed(self) -> Array:
        """Per block -1.0 if its singularity was passed since the last configuration with labels; of its drivers not.

        Closed forms are compared with that configuration, iterated limbs by the reader with the one that it read last.
        The reader itself takes out the branches of closed forms where the motion space is constant.
        """
        passed = np.where(self._iterated, self._reader.sides, 1.0)
        if not self.kinematics.constant_space:
            passed = passed * np.where(self._iterated, 1.0, self._reader.sides * self._before)
        return passed

    def _turned(self) -> bool:
        """Whether a limb solved by iteration has passed a singularity since the configuration before."""
        return bool((self._reader.sides[self._iterated] < 0.0).any())

    def _working_label(self, pose: Array, joints: Array) -> str:
        mode = self._reader.branch
        modes = self.kinematics.modes
        return modes.label_of(mode, modes.numbers_at(pose, joints, mode))

    def _assembly_label(self, side: float, pose: Array, joints: Array) -> str:
        """Sign and number of the mode on the side of the singularities now reached."""
        k = self.kinematics
        if self._unsigned == REDUNDANT:
            return REDUNDANT.strip()
        sign = "+" if side >= 0.0 else "-"
        if self._side == 0.0 and sign == "+":
            return "+1"
        if k.assembly_method == "search":
            return sign
        listed = k.forward_all(joints[k.engine.actuated_column])
        if not listed:
            return sign
        gaps = pose_distance(pose, np.array([one.pose for one in listed]), k.characteristic_length)
        return listed[int(np.argmin(gaps))].label


def _sentence(before: Modes, now: Modes) -> str:
    """What changed, for a person; empty without a change, or if nothing was known before."""
    changes = []
    if before.working not in ("", now.working):
        changes.append(f"working mode {before.working} left for {now.working}: a limb passed a type 1 singularity")
    if before.assembly not in ("", now.assembly):
        changes.append(f"assembly mode {before.assembly} left for {now.assembly}: a type 2 singularity was passed")
    return "; ".join(changes)
