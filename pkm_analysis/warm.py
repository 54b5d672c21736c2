# SPDX-License-Identifier: Apache-2.0
"""Warms up the compiled code of the analyses. `pkm warm ROBOT --for analysis` finds this module by name."""

from __future__ import annotations

import contextlib

import numpy as np

from pkm_analysis.analysis import Analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.indices import zonotope_faces
from pkm_analysis.kernels.geometry import largest_full_box
from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_analysis.prediction import predict
from pkm_description import Mechanism, PkmError
from pkm_kinematics.graph_model import GraphModel
from pkm_runtime.sweeps import Sweeps

NARROW = 1e-6  # m and rad: of the box that is proved


def warm(mechanism: Mechanism) -> None:
    """Call every compiled path of the analyses once, for one robot."""
    analysis = Analysis(mechanism, sweeps=Sweeps(1))
    robot = analysis.robot
    poses = np.tile(robot.kinematics.home, (2, 1))
    robot.evaluator.by_kernels(poses, tuple(range(WIDTH)))
    robot.coordinates.read(poses)
    largest_full_box(np.zeros((3, 3, 3), dtype=np.int64), np.zeros((3, 2)), np.zeros(6, dtype=np.int64))
    zonotope_faces(np.tile(np.eye(3), (1, 2, 1))[:, :4])
    with contextlib.suppress(PkmError):  # a robot that is singular at home
        robot.dynamics.gravity(poses)
        predict(robot.dynamics, (0.0, 1.0), poses, np.zeros((2, 6)), np.zeros((2, 6)))
    GraphModel(mechanism).random_states(1)
    home = {c.name: (c.home - NARROW, c.home + NARROW) for c in robot.coordinates.all}
    with contextlib.suppress(AnalysisError):  # a robot of which nothing is proved
        analysis.prove(["inside", "no singularity"], home, most_boxes=1)
