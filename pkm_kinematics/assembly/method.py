# SPDX-License-Identifier: Apache-2.0
"""What every method does: recognise the robots it serves, find all their assembly modes, name the side of each.

The side is that of the singularities of type 2, a sign that tells assembly modes apart. The direct Jacobian has a row
per limb, the force that the limb exerts with its actuators locked; its determinant changes sign where, and only where,
assembly modes meet (Gosselin and Angeles 1990). The row is the gradient of the constraint that the locked limb imposes
on the platform, and so needs neither a basis of a configuration-dependent motion space nor a working mode:

| assembly method | row |
|---|---|
| `spheres`, `circles`, `planar`, `schoenflies`, `distances` | the leg between the two points that keep a distance |
| `surfaces` | the normal of the surface |
| `plates` | the rod, that stands for a pair, and its moment about the platform's axis |
| `constraints` | the wrench of the constraint, all six degrees of freedom of the platform included |
| `angles`, `planes` | that of the inverse Jacobian, with the sign of the working mode taken out |

A robot with more actuators than degrees of freedom has no such determinant: its direct Jacobian loses rank on sets of
at least two dimensions less than the space, and these divide nothing. Where no method but `search` applies, the sign is
known only if every actuated limb has a closed form, else only along a motion (`forward/tracker.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.result import AssemblyPoses
from pkm_kinematics.kernels.model_and_data import writeable
from pkm_kinematics.kernels.path.assembled import actuator_errors, read_modes, sort_by_distance
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.singularity import scaling
from pkm_runtime.kernels.binding import Prepared

HELD = 1e-6  # relative singular value above which rows count as independent
REDUNDANT, UNKNOWN = "redundant ", "?"


class AssemblyMethod(ABC):
    """One way to find all assembly modes of one robot, thread-safe; `Kinematics.assembly_method` gives `name`."""

    name: ClassVar[str]

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @property
    @abstractmethod
    def recognised(self) -> bool:
        """Whether the robot is one that the method serves."""

    @abstractmethod
    def solve(self, q: Array) -> AssemblyPoses:
        """All poses with the actuated joints at q (n_actuated,) [rad or m]."""

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """Signs (k,) of the direct Jacobian's determinant at poses (k, 7), joints (k, n_joints); 0.0 where singular.

        Here by the inverse Jacobian, for constant motion spaces and actuated limbs in closed form.
        """
        e = self.engine
        data, sides, n = e.data(), np.empty(len(e.tables.blocks)), e.tables.n_work
        before, now = np.zeros(n), np.zeros(n)
        # copies: kernels are compiled once more for arrays that are read-only
        rows = zip(np.array(poses), np.array(joints), strict=True)
        return np.array([read_modes(e.model, data, before, now, sides, *row)[1] for row in rows])

    def usable(self, q: Array) -> bool:
        """Whether actuated joint positions q (n_actuated,) are accurate enough as numbers to close loops with."""
        return all(abs(x) < farthest for x, farthest in zip(q.tolist(), self._farthest, strict=True))

    @cached_property
    def _farthest(self) -> list[float]:
        return self.engine.inputs.farthest(self.engine.actuated_turning).tolist()

    def order(self, poses: Array) -> NDArray[np.int64]:
        """Numbers (k,) of poses (k, 7) in the order of their distances from home."""
        away, order = np.empty(len(poses)), np.empty(len(poses), dtype=np.int64)
        self._sort(self._home_pose, self.engine.characteristic_length, np.ascontiguousarray(poses), away, order)
        return order

    @cached_property
    def _home_pose(self) -> Array:
        return writeable(self.engine.home)

    @cached_property
    def _sort(self) -> Callable[..., None]:
        poses, order = np.empty((1, 7)), np.empty(1, dtype=np.int64)
        return Prepared(sort_by_distance, self._home_pose, 1.0, poses, self._home_pose, order).call

    def actuator_errors(self, joints: Array, q: Array) -> Array:
        """Largest difference (k,) of the actuated ones of joints (k, n_joints) from q (n_actuated,)."""
        errors = np.empty(len(joints))
        self._errors(joints, self.engine.actuated_column, q, errors)
        return errors

    @cached_property
    def _errors(self) -> Callable[..., None]:
        q, columns = np.empty(1), self.engine.actuated_column
        return Prepared(actuator_errors, np.empty((1, 1)), columns, q, q).call

    @cached_property
    def unsigned(self) -> str:
        """What replaces the sign in labels: REDUNDANT or UNKNOWN; empty where there is a sign."""
        return REDUNDANT if len(self.engine.actuated_names) > self.engine.mobility else ""

    def side(self, pose: Array, joints: Array) -> float:
        """1.0 on home's side of the type 2 singularities, -1.0 on the other, 0.0 where modes meet or have no sign."""
        if self.unsigned:
            return 0.0
        q = joints[self.engine.actuated_column]
        return float(self.signs(q, pose[None], joints[None])[0]) * self._home_sign

    def prefixes(self, q: Array, poses: Array, joints: Array) -> Sequence[str]:
        """How the labels (k,) of configurations begin: `+`, `-`, or what replaces them; arguments as above."""
        if self.unsigned:
            return [self.unsigned] * len(poses)
        return ["+" if sign * self._home_sign >= 0.0 else "-" for sign in self.signs(q, poses, joints).tolist()]

    @cached_property
    def _home_sign(self) -> float:
        e = self.engine
        q = e.home_joints[e.actuated_column]
        return float(self.signs(q, e.home[None], e.home_joints[None])[0])


class MethodByRows(AssemblyMethod):
    """A method with possibly more constraints than degrees of freedom, as passive joints add theirs."""

    @abstractmethod
    def rows(self, q: Array, poses: Array) -> Array:
        """Gradients (k, m, n) of m constraints by n of the platform's velocities at poses (k, 7)."""

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """See `AssemblyMethod.signs`."""
        return np.asarray(np.sign(np.linalg.det(self.rows(q, poses)[:, self._independent])))

    @cached_property
    def _independent(self) -> NDArray[np.int64]:
        e = self.engine
        rows = self.rows(e.home_joints[e.actuated_column], e.home[None])[0]
        rows = rows / scaling(e.characteristic_length)[: rows.shape[1]]
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        chosen: list[int] = []
        for candidate in range(len(rows)):
            if len(chosen) < rows.shape[1] and np.linalg.svd(rows[[*chosen, candidate]])[1][-1] > HELD:
                chosen.append(candidate)
        return np.array(chosen)
