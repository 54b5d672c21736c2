# SPDX-License-Identifier: Apache-2.0
"""The solves behind `Kinematics` and `Dynamics`: plain arrays of rows in, plain arrays out."""

from __future__ import annotations

from pkm_description.mechanism import Mechanism
from pkm_kinematics.solve.from_home import FromHome
from pkm_kinematics.solve.inputs import Inputs
from pkm_kinematics.solve.joint_ranges import JointRanges
from pkm_kinematics.solve.position_solver import PositionSolver
from pkm_kinematics.solve.possible_twists import PossibleTwists
from pkm_kinematics.solve.robot_constants import RobotConstants


class Engine(RobotConstants):
    """Constant data of one robot, and its solves over rows by subject. Calls may run in several threads at once."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self.inputs = Inputs(self)
        self.ranges = JointRanges(self)
        self.positions = PositionSolver(self)
        self.spaces = PossibleTwists(self, self.inputs, self.positions)
        self.from_home = FromHome(self, self.ranges, self.positions, self.spaces)
