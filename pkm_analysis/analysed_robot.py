# SPDX-License-Identifier: Apache-2.0
"""The robot that questions are about: its solvers, its task coordinates, the working mode in question."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.body_distances import Clearance, meshes_stamp
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.evaluator import GPU_CHUNK, PoseEvaluator
from pkm_description import Mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.chunks import slices
from pkm_runtime.sweeps import Sweeps

CHUNK, SLOW_CHUNK = 1 << 13, 1 << 7  # poses too few for a second core

Result = TypeVar("Result")


class Robot:
    """What all analyses of a robot share.

    Args:
        robot: its description, or its kinematics.
        mode: number of a working mode; None: home's, with joints in the turns that they make from there.
        sweeps: where many poses are computed, on all cores by default.
        cupy: CuPy, or what does as it does: a GPU computes what limbs say of poses.

    Raises:
        PkmError: `robot` is neither.
        ModeError: no such working mode.
        AnalysisError: a GPU has no code of the robot.
    """

    def __init__(
        self,
        robot: Mechanism | Kinematics,
        mode: int | None = None,
        sweeps: Sweeps | None = None,
        cupy: Any = None,
    ) -> None:
        self.sweeps = Sweeps() if sweeps is None else sweeps
        self.kinematics = robot if isinstance(robot, Kinematics) else Kinematics(robot)
        refuse_redundant(self.kinematics.redundant_names, "analyses")
        self.mode = mode
        self.kinematics.modes.branch(mode or 0)
        self.coordinates = TaskCoordinates(self.kinematics)
        self.cupy = cupy
        if cupy is not None and not self.evaluator.quick:
            problem = "not all its limbs have a closed form, or its motion space turns with the pose"
            raise AnalysisError(f"{self.name} on a GPU", problem, "leave the GPU out")

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is built once, however often it is sent."""
        return _built, (self.question, self.meshes, self.kinematics, self.mode)

    @cached_property
    def meshes(self) -> str:
        """A hash of the mesh files of its bodies, as they were at the first call."""
        return meshes_stamp(self.mechanism)

    @cached_property
    def question(self) -> str:
        """A hash of description, meshes, tables and working mode."""
        seal = hashlib.sha256(f"{self.mode} {self.meshes} {self.mechanism.urdf}".encode())
        for table in self.kinematics.engine.model.arrays().values():
            seal.update(table.tobytes())
        return seal.hexdigest()

    def numbers(self, poses: Array, wanted: Sequence[int]) -> Array:
        """`PoseEvaluator.numbers` (len(wanted), n) of many poses (n, 7) in the motion space, as one sweep."""
        call = partial(PoseEvaluator.numbers, self.evaluator, wanted=tuple(wanted))
        return np.concatenate(self.in_chunks(call, poses, "poses"), axis=1)

    def in_chunks(
        self,
        function: Callable[[Array], Result],
        rows: Array,
        what: str,
        question: Callable[[], str | None] = lambda: None,
    ) -> list[Result]:
        """Results of a function for rows (n, ...) in parts, in order: of few in one call, else as one sweep."""
        size = GPU_CHUNK if self.cupy is not None else CHUNK if self.evaluator.quick else SLOW_CHUNK
        if len(rows) <= size:
            return [function(rows)]
        function(rows[:1])  # compile once, before the threads
        chunks = (rows[at] for at in slices(len(rows), size))
        return list(self.sweeps.map(function, chunks, f"{len(rows)} {what}", -(-len(rows) // size), question()))

    @cached_property
    def evaluator(self) -> PoseEvaluator:
        """Numbers of many poses."""
        return PoseEvaluator(self.kinematics, self.mode, self.cupy)

    @property
    def mechanism(self) -> Mechanism:
        """The description."""
        return self.kinematics.mechanism

    @property
    def name(self) -> str:
        """Name in the description."""
        return self.mechanism.name

    @cached_property
    def dynamics(self) -> Dynamics:
        """The dynamics solver."""
        return Dynamics(self.kinematics)

    @cached_property
    def clearance(self) -> Clearance:
        """Distances between its bodies; `AnalysisError` without any, or if mesh files changed since `meshes`."""
        if meshes_stamp(self.mechanism) != self.meshes:
            problem = "its files are not those that the question was asked with"
            raise AnalysisError(f"meshes of {self.name}", problem, "have the same ones on all computers, and ask again")
        return Clearance(self.kinematics)

    @property
    def actuator_unit(self) -> str:
        """Unit of the drives' positions, "m or rad" where both occur."""
        units = {self.kinematics.engine.names.units[name] for name in self.kinematics.actuated_names}
        return units.pop() if len(units) == 1 else "m or rad"


_ROBOTS: dict[str, Robot] = {}  # received from other processes, the last few
_MOST = 4


def _built(question: str, meshes: str, kinematics: Kinematics, mode: int | None) -> Robot:
    if question not in _ROBOTS:
        while len(_ROBOTS) >= _MOST:
            _ROBOTS.pop(next(iter(_ROBOTS)), None)
        robot = _ROBOTS[question] = Robot(kinematics, mode, Sweeps(1))
        robot.meshes = meshes
    return _ROBOTS[question]
