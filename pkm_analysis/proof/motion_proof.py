# SPDX-License-Identifier: Apache-2.0
"""Proofs about the path of a motion file: straight lines between poses, with rounded corners."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, TaskCoordinates
from pkm_analysis.proof.halving import Proof, Settings, Stretch, prove_stretches
from pkm_analysis.requirements.quantity import Requirement
from pkm_description.mechanism import Array

if TYPE_CHECKING:
    from typing import Unpack

STRAIGHT = 1e-9  # rad, and of the robot's size: rounding of task coordinates on a straight line
_TRIED = np.linspace(0.0, 1.0, 17)[:, None]  # shares of a part at which poses are tried


def prove_motion(
    robot: Robot, poses: ArrayLike, radii: ArrayLike, requirements: Sequence[Requirement], **settings: Unpack[Settings]
) -> Proof:
    """Whether requirements hold along a path of straight lines with rounded corners, see `Analysis.prove_motion`.

    Within `radii` of a corner the path lies in the parallelogram of the last stretch before it and the first after it,
    as does every path whose way along one line ends while that along the next begins. The requirements are proved on
    the whole parallelogram. `AnalysisError` where there is no path, or it is not straight in the task coordinates.
    """
    poses, radii = np.asarray(poses, dtype=np.float64), np.asarray(radii, dtype=np.float64)
    if poses.ndim != 2 or len(poses) < 2:
        raise AnalysisError("motion", "it has no way to go", "give two poses or more that differ")
    task = robot.coordinates
    at = np.array([_coordinates(task, pose) for pose in poses])
    turning = [not np.allclose(a[3:], b[3:], atol=1e-12) for a, b in pairwise(poses)]
    for k, turns in enumerate(turning):
        if turns:
            _require_straight(task, poses[k : k + 2], at[k : k + 2])
    lengths = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1)
    for k in range(1, len(poses) - 1):
        if radii[k] > 0.0 and (turning[k - 1] or turning[k]):
            raise AnalysisError("motion", "the platform turns where a corner is rounded", "leave out blends there")
    stretches: list[Stretch] = []
    for k, length in enumerate(lengths):
        step = at[k + 1] - at[k]
        begin, end = (r / length if r > 0.0 else 0.0 for r in radii[k : k + 2])
        if k and radii[k] > 0.0:
            stretches.append(_corner(task, at[k], radii[k] / lengths[k - 1] * (at[k] - at[k - 1]), begin * step))
        if begin + end < 1.0 - 1e-12:
            line = Domain.of_path(task, at[k] + begin * step, at[k + 1] - end * step)
            stretches.append(Stretch(line, line.values(_TRIED)))
    return prove_stretches(robot, stretches, requirements, **settings)


def _coordinates(task: TaskCoordinates, pose: Array) -> Array:
    return np.array(list(task.kinematics.engine.inputs.branch_at(pose).values()))


def _require_straight(task: TaskCoordinates, poses: Array, at: Array) -> None:
    """Refuse a rotation whose task coordinates do not change in proportion, as about none of their axes."""
    turn = Rotation.from_quat(poses[0, 3:])
    vector = (turn.inv() * Rotation.from_quat(poses[1, 3:])).as_rotvec()
    units = [task.kinematics.engine.size if c.unit == "m" else 1.0 for c in task.all]
    for share in (0.25, 0.5, 0.75):
        attitude = (turn * Rotation.from_rotvec(share * vector)).as_quat()
        pose = np.concatenate([poses[0, :3] + share * (poses[1, :3] - poses[0, :3]), attitude])
        missed = _coordinates(task, pose) - (at[0] + share * (at[1] - at[0]))
        if np.abs(missed / units).max() > STRAIGHT:
            problem = "it turns about an axis that is none of the task coordinates'"
            raise AnalysisError("motion", problem, "turn about one at a time")


def _corner(task: TaskCoordinates, at: Array, before: Array, after: Array) -> Stretch:
    """About a corner (c,): the last stretch before it and the first after it, both (c,), and points of the path.

    With x the rest of the first way and y the progress on the second, the path goes smoothly from (1, 0) to (0, 1):
    with the ramp of `RoundedPath`, x and y are at most 0.16 in its middle.
    """
    left, done = ((t**4 * (5.0 - 6.0 * t + 2.0 * t * t)) for t in (1.0 - _TRIED, _TRIED))
    domain = Domain(task, at, np.column_stack([-before, after]), np.zeros(2), np.ones(2))
    return Stretch(domain, domain.values(np.hstack([left, done])), every=False)
