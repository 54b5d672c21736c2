# SPDX-License-Identifier: Apache-2.0
"""Which poses are worth measuring: those that leave the least uncertain parameters, within limits, bodies apart.

Of very many poses that the robot can take, a greedy choice and then exchanges raise the determinant of the information
matrix (D-optimal: Fedorov, "Theory of Optimal Experiments", 1972), whose root is the observability index O1 of Borm and
Menq (1991). What is expected of parameters counts as one more measurement of each, so that few poses are ranked, too.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_calibration.measured_robot import EXPECTED, MeasuredRobot, followed
from pkm_calibration.measurements import ATTITUDE, POSITION, SIGMA, MeasurementError, Measurements
from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics import Kinematics
from pkm_kinematics.geometric_parameters import GeometricParameter, GeometricParameters
from pkm_kinematics.graph_model import States
from pkm_kinematics.status import closes

CANDIDATES = 600
SPREADS = (0.1, 0.2, 0.35, 0.5)  # rad, and of the robot's size: around home
SAME = 1e-6  # m, and of rotation matrices: configurations that are one
EXCHANGES = 3  # times through the chosen
KINDS = ("position", "attitude", "height", "distance")


@dataclass(frozen=True, eq=False)
class Plan:
    """Poses to measure: readings of the drives (n, n_actuated), and where the platform then is (n, 7).

    `observability` is O1, the geometric mean of the singular values of the whitened, scaled derivative, `at_random`
    that of as many poses taken at random. `uncertain` (k,) are standard deviations expected of `parameters` after it,
    `rank` counts directions that the poses know better than is expected of them beforehand.
    """

    mechanism: Mechanism
    kinds: tuple[str, ...]
    drives: Array
    poses: Array
    parameters: tuple[GeometricParameter, ...]
    uncertain: Array
    rank: int
    observability: float
    at_random: float

    def table(self) -> str:
        """The file to fill in: readings of the drives, and empty cells for what is measured; a comment has the pose."""
        columns = {"position": POSITION, "attitude": ATTITUDE, "height": ("height",), "distance": ("distance",)}
        empty = [name for kind in self.kinds for name in columns[kind]]
        lines = ["# Poses to measure: fill in the empty cells [m, rad]; add a unit as in 'x [mm]'."]
        head = io.StringIO()
        csv.writer(head, lineterminator="").writerow([*self.mechanism.actuated_joints, *empty])
        lines.append(head.getvalue())
        for drives, pose in zip(self.drives, self.poses, strict=True):
            lines.append(
                "# pose of the drawing: " + " ".join(f"{value:.6f}" for value in pose) + " (x y z qx qy qz qw)"
            )
            lines.append(",".join([*(f"{q:.9f}" for q in drives), *[""] * len(empty)]))
        return "\n".join(lines) + "\n"


def plan_poses(
    mechanism: Mechanism,
    count: int,
    kinds: tuple[str, ...] = ("position",),
    seed: int = 0,
    ideal_joints: bool = True,
    ideal_gears: bool = True,
) -> Plan:
    """The poses worth measuring where `kinds` of `KINDS` are measured at each, distances from the base's origin.

    `ideal_joints` and `ideal_gears` are those of `GeometricParameters`.
    """
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong or not kinds:
        raise MeasurementError("--measure", f"there is no measurement {', '.join(wrong)}", f"give {', '.join(KINDS)}")
    parameters = GeometricParameters(mechanism, ideal_joints, ideal_gears)
    states = _candidates(parameters, seed)
    if len(states) < count:
        raise MeasurementError(
            mechanism.name, f"only {len(states)} poses were found within limits and without collisions", "ask for fewer"
        )
    robot = MeasuredRobot(parameters, _as_measured(states, parameters, kinds), nominal=states)
    J = robot.residuals(np.zeros_like(parameters.model.displacements), parameters.all, states)[1]
    chosen = parameters.identifiable(J)
    scale = np.array([EXPECTED[one.unit] for one in chosen])
    columns = [parameters.all.index(one) for one in chosen]
    blocks = _blocks(J[:, columns] * scale, robot.groups, len(states))
    picked = _best(blocks, count)
    random = np.random.default_rng(seed).permutation(len(states))[:count]
    covariance = np.linalg.inv(_information(blocks, picked) + np.eye(len(chosen)))
    drives = states.q[:, parameters.model.columns_of(mechanism.actuated_joints)]
    order = _short_way(drives[picked])
    return Plan(
        mechanism,
        tuple(kinds),
        drives[picked][order],
        states.rows(picked[order]).poses,
        chosen,
        scale * np.sqrt(np.diag(covariance)),
        int((np.linalg.eigvalsh(_information(blocks, picked)) > 1.0).sum()),
        *(_observability(blocks, rows) for rows in (picked, random)),
    )


def _candidates(parameters: GeometricParameters, seed: int) -> States:
    """Closed configurations within limits, away from singularities, with bodies apart where their shapes are known."""
    mechanism, model = parameters.mechanism, parameters.model
    drives = model.columns_of(mechanism.actuated_joints)
    redundant = len(drives) > mechanism.mobility.platform
    kinematics = Kinematics(mechanism)
    found = []
    for k, spread in enumerate(SPREADS):
        states = model.random_states(CANDIDATES // len(SPREADS), spread, seed + k)
        poses = states.poses
        joints = model.joints_of(states, kinematics.joint_names, kinematics.home_joints)
        at = kinematics.at(poses, seed=joints)
        good = closes(at.status) & (at.drive_condition > 0.02)
        good &= ~kinematics.engine.ranges.beyond(at.joints).any(axis=1)
        if not redundant:  # beyond a singularity, a robot that is led to these readings stands elsewhere
            led, stands = followed(model, drives, states.q[:, drives])
            good &= stands & (np.abs(led.platform - states.platform).max(axis=(1, 2)) < SAME)
        good &= _apart(mechanism, poses, good)
        found.append(states.rows(np.flatnonzero(good)))
    return States(np.concatenate([one.q for one in found]), np.concatenate([one.platform for one in found]))


def _apart(mechanism: Mechanism, poses: Array, good: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether no two bodies touch; true where shapes or the collision library are missing."""
    from pkm_analysis import Analysis
    from pkm_analysis.requirements.quantity import Batch
    from pkm_runtime.errors import PkmError

    apart = np.ones(len(poses), dtype=bool)
    try:
        analysis = Analysis(mechanism)
        quantity = analysis.quantity("clearance")
        apart[good] = ~(quantity.evaluate(Batch(analysis.robot, poses[good], quantity.needs)) <= 0.0)
    except PkmError:
        return np.ones(len(poses), dtype=bool)
    return apart if apart[good].any() else np.ones(len(poses), dtype=bool)  # drawn into each other, even at home


def _as_measured(states: States, parameters: GeometricParameters, kinds: tuple[str, ...]) -> Measurements:
    n, none = len(states), np.full(len(states), np.nan)
    position = np.full((n, 3), np.nan)
    if "position" in kinds:
        position = states.platform[:, :3, 3].copy()
    if "height" in kinds:
        position[:, 2] = states.platform[:, 2, 3]
    attitude = states.platform[:, :3, :3] if "attitude" in kinds else np.full((n, 3, 3), np.nan)
    distance = np.linalg.norm(states.platform[:, :3, 3], axis=1) if "distance" in kinds else none
    names = parameters.mechanism.actuated_joints
    sigma = dict.fromkeys((*POSITION, "distance", *names), SIGMA["m"]) | dict.fromkeys(ATTITUDE, SIGMA["rad"])
    drives = states.q[:, parameters.model.columns_of(names)]
    zero = np.zeros((n, 3))
    return Measurements(drives, {}, position, attitude, distance, zero, zero, sigma, True, "plan", np.arange(n))


def _blocks(J: Array, groups: NDArray[np.int64], n: int) -> Array:
    found = np.zeros((n, J.shape[1], J.shape[1]))
    for k in range(n):
        rows = J[groups == k]
        found[k] = rows.T @ rows
    return found


def _information(blocks: Array, picked: NDArray[np.int64]) -> Array:
    return np.asarray(blocks[picked].sum(axis=0))


def _gain(blocks: Array, inverse: Array) -> Array:
    return np.asarray(np.einsum("nij,ji->n", blocks, inverse))


def _best(blocks: Array, count: int) -> NDArray[np.int64]:
    total: Array = np.eye(blocks.shape[1])
    picked: list[int] = []
    for _ in range(count):
        gain = _gain(blocks, np.asarray(np.linalg.inv(total)))
        gain[picked] = -1.0
        picked.append(int(np.argmax(gain)))
        total = total + blocks[picked[-1]]
    value = np.linalg.slogdet(total)[1]
    for _ in range(EXCHANGES):
        changed = False
        for at in range(count):
            without = total - blocks[picked[at]]
            gain = _gain(blocks, np.asarray(np.linalg.inv(without)))
            gain[picked] = -1.0
            other = int(np.argmax(gain))
            better = np.linalg.slogdet(without + blocks[other])[1]
            if better > value + 1e-9:
                total, value, picked[at], changed = without + blocks[other], better, other, True
        if not changed:
            break
    return np.array(picked, dtype=np.int64)


def _observability(blocks: Array, picked: NDArray[np.int64]) -> float:
    values = np.linalg.eigvalsh(_information(blocks, picked))
    return float(np.exp(0.5 * np.mean(np.log(np.maximum(values, 1e-30)))))


def _short_way(drives: Array) -> NDArray[np.int64]:
    """An order in which each pose is followed by the nearest that is left."""
    left, order = list(range(1, len(drives))), [0]
    while left:
        distances = np.abs(drives[left] - drives[order[-1]]).max(axis=1)
        order.append(left.pop(int(np.argmin(distances))))
    return np.array(order, dtype=np.int64)
