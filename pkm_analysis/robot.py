# SPDX-License-Identifier: Apache-2.0
"""A robot that questions are asked about: its solvers, its task coordinates, the working mode that is meant."""

from __future__ import annotations

from functools import cached_property

from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.evaluation.evaluator import PoseEvaluator
from pkm_description import Mechanism
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics


class Robot:
    """What all analyses of a robot share.

    Args:
        robot: its description, or its kinematics.
        mode: number of a working mode; home's, with joints in the turns that they make from there, where None.

    Raises:
        PkmError: it is neither.
        ModeError: no such working mode.
    """

    def __init__(self, robot: Mechanism | Kinematics, mode: int | None = None) -> None:
        self.kinematics = robot if isinstance(robot, Kinematics) else Kinematics(robot)
        self.mode = mode
        self.evaluator = PoseEvaluator(self.kinematics, mode)
        self.coordinates = TaskCoordinates(self.kinematics)

    @property
    def mechanism(self) -> Mechanism:
        """Its description."""
        return self.kinematics.mechanism

    @property
    def name(self) -> str:
        """As in the description."""
        return self.mechanism.name

    @cached_property
    def dynamics(self) -> Dynamics:
        """Its dynamics."""
        return Dynamics(self.kinematics)

    @property
    def actuator_unit(self) -> str:
        """Unit of the drives' positions, "m or rad" where there are both."""
        units = {self.kinematics.engine.names.units[name] for name in self.kinematics.actuated_names}
        return units.pop() if len(units) == 1 else "m or rad"
