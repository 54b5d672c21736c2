# SPDX-License-Identifier: Apache-2.0
"""What is written of an elastic robot beside its numbers: its lowest vibrations to be looked at, and its compliance.

A file of compliances at many poses lets the controller lead the platform against what gives way. It is judged by the
controller's own reader, found by its name: the control does not know analyses, nor they the control.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike

from pkm_analysis.analysis_errors import AnalysisError, check_ending
from pkm_analysis.domain import Domain, Range
from pkm_analysis.plottable import Plottable, Table
from pkm_analysis.stiffness.stiffness import DIRECTIONS, Stiffness, Stiffnesses
from pkm_description.mechanism import Array
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import Status
from pkm_runtime.describable import vector
from pkm_runtime.errors import ConfigurationError
from pkm_runtime.whole_files import write_whole

LOWEST = 4  # that are shown


@dataclass(frozen=True, eq=False, repr=False)
class ModeShapes(Plottable):
    """The `LOWEST` vibrations of `of`, drives held, without rotors."""

    _picture: ClassVar[str] = "elastic_pictures.mode_picture"
    of: Stiffness

    def __post_init__(self) -> None:
        if not len(self.of.vibrations.frequency):
            problem = "nothing gives way, or nothing has a mass"
            raise AnalysisError(f"vibrations of {self.of.robot.name}", problem, "describe sections, masses or drives")

    @property
    def frequency(self) -> Array:
        """Hz (k,), the lowest first."""
        return self.of.vibrations.frequency[:LOWEST]

    @property
    def shapes(self) -> Array:
        """Displacements (n_nodes, 6, k) of the nodes at the platform's origin."""
        return self.of.vibrations.shapes[:, :, :LOWEST]

    @property
    def platform(self) -> Array:
        """The platform's twist (6, k) in each: its largest element is 1, turns at the robot's length."""
        twists = self.shapes[self.of.model.platform]
        scaled = twists * scaling(self.of.system.length)[:, None]
        return np.asarray(scaled / np.maximum(np.abs(scaled).max(axis=0), 1e-12 * np.abs(self.shapes).max()))

    @property
    def names(self) -> list[str]:
        """Number and frequency of each."""
        return [f"mode {k}: {value:.4g} Hz" for k, value in enumerate(self.frequency, start=1)]

    @property
    def animation(self) -> str:
        """The vibrations as a moving SVG picture, for a page."""
        return str(importlib.import_module("pkm_analysis.drawing.elastic_pictures").moving_picture(self))

    def save(self, path: str | Path) -> Path:
        """Write a .glb layer for the browser page, where the vibrations move, and for RViz, where they stand still."""
        return Path(importlib.import_module("pkm_analysis.drawing.elastic_pictures").write_moving_layer(self, path))

    def _summary(self) -> str:
        return f"of {self.of.robot.name} at {vector(np.round(self.of.pose[:3], 6))} m: the lowest natural vibrations"

    def _details(self) -> list[str]:
        lines = []
        for name, twist in zip(self.names, self.platform.T, strict=True):
            along = ", ".join(f"{d} {v:.3g}" for d, v in zip(DIRECTIONS, twist, strict=True) if abs(v) > 0.05)
            lines.append(f"{name}, platform {along or 'at rest'}")
        return lines

    @property
    def tables(self) -> list[Table]:
        """What the platform does in each."""
        rows = [
            [name, *(f"{v:.3g}" if abs(v) > 5e-4 else "0" for v in twist)]
            for name, twist in zip(self.names, self.platform.T, strict=True)
        ]
        return [Table("The platform in each vibration, turns at the robot's length", ["", *DIRECTIONS], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON."""
        return {"frequency": self.frequency.tolist(), "shapes": self.shapes.tolist()}


READER = "pkm_control.motion.compensation"  # reads the file, and interpolates in it
POSES, CHECKS = 320, 40  # that are written; between them, where the file is judged
FEWEST = 8
SEED = 3


@dataclass(frozen=True)
class DeflectionTable:
    """What was written to a file: how many poses, and displacements of the platform's origin under weight and load [m].

    Of the `largest` one, `left` is across the directions in which the platform can move, so that no drive takes it
    back. `miss` is the largest error at `checks` poses between those of the file.
    """

    path: Path
    poses: int
    largest: float
    left: float
    miss: float
    checks: int

    def __str__(self) -> str:
        largest, left, miss = (f"{1e6 * value:.3g} um" for value in (self.largest, self.left, self.miss))
        share = 100.0 * self.miss / self.largest if self.largest else 0.0
        lines = [f"table {self.path}: {self.poses} poses, the platform gives way by up to {largest}"]
        lines.append(f"  {self.checks} poses between them: interpolated to {miss}, {share:.2g} % of that")
        if self.left > 1e-3 * self.largest:
            lines.append(f"  up to {left} of it is in directions in which the platform cannot be led")
        return "\n".join(lines)


def poses_over(robot: Any, ranges: Mapping[str, Range]) -> Array:
    """Poses (n, 7) that fill ranges [m, rad] of coordinates, their corners first (Sobol's sequence); others at home."""
    domain = Domain.of_ranges(robot.coordinates, ranges, None)
    d = domain.dimension
    corners = np.array(np.meshgrid(*d * [[0.0, 1.0]], indexing="ij")).reshape(d, -1).T
    inside = scipy.stats.qmc.Sobol(d, seed=SEED).random(512)[: POSES + CHECKS]
    found, known = domain.poses(domain.lower + np.concatenate([corners, inside]) * (domain.upper - domain.lower))
    return found[known]


def poses_along(poses: Array) -> Array:
    """Poses (n, 7) of those of a motion, as far apart as can be: next is the farthest from all before, each time."""
    size = np.linalg.norm(np.ptp(poses[:, :3], axis=0)) or 1.0
    places = np.column_stack([poses[:, :3] / size, poses[:, 3:] * np.sign(poses[:, 3:] @ poses[0, 3:])[:, None]])
    chosen, apart = [0], np.linalg.norm(places - places[0], axis=1)
    while len(chosen) < POSES + CHECKS and apart.max() > 1e-6:
        chosen.append(int(np.argmax(apart)))
        apart = np.minimum(apart, np.linalg.norm(places - places[chosen[-1]], axis=1))
    return np.asarray(poses[chosen])


def write_table(
    stiffnesses: Stiffnesses, poses: Array, path: str | Path, payload: float, wrench: ArrayLike | None
) -> DeflectionTable:
    """Write the file for poses (n, 7), the last ones for its judgement; those that it does not reach are left out.

    `payload` [kg] and `wrench` (6,) [N, N m] at the platform's origin are there always.
    """
    path, robot = Path(path), stiffnesses.robot
    check_ending("table", path, (".json",))
    drives = {
        joint.name: float(joint.stiffness[joint.driven])
        for joint in stiffnesses.at(robot.kinematics.home).model.joints
        if joint.driven is not None and np.isfinite(joint.stiffness[joint.driven])
    }
    if len(robot.kinematics.actuated_names) > robot.kinematics.mobility:
        drives = {}  # which then share what they bear by their stiffness, and are part of the whole
    found, inside = [], robot.kinematics.inverse(poses).status == Status.CONVERGED
    for pose in poses[inside]:
        try:
            found.append(stiffnesses.at(pose, payload, wrench))
        except AnalysisError:  # out of reach, or singular
            continue
    if len(found) < FEWEST + 2:
        problem = f"of {len(poses)} poses the robot reaches {len(found)} within its joints' ranges"
        raise AnalysisError(f"table {path.name}", problem, "give other ranges, or a motion with more of them")
    kept = len(found) - min(CHECKS, len(found) // 4)
    load = np.concatenate([payload * robot.mechanism.gravity, np.zeros(3)]) + found[0].wrench
    values = {"robot": robot.mechanism.name, "load": load.tolist(), "drives": drives}
    written = [_parts(one, bool(drives)) for one in found[:kept]]
    values |= {"poses": [one.pose.tolist() for one in found[:kept]]}
    values |= {name: [part[k].tolist() for part in written] for k, name in enumerate(("sag", "compliance"))}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(values) + "\n")
    try:
        table = importlib.import_module(READER).read_compliance(str(path), robot.kinematics)
    except ConfigurationError as error:  # beside a singularity
        path.unlink()
        gives = [float(np.linalg.norm((one.sag + one.deflection)[:3])) for one in found]
        at = vector(found[int(np.argmax(gives))].pose[:3])
        problem = f"no controller can use it: at {at} m the platform gives way by {1e3 * max(gives):.3g} mm"
        raise AnalysisError(f"table {path.name}", problem, "give ranges, or a motion, away from there") from error
    between = np.array([one.pose for one in found[kept:]])
    truth = np.array(
        [sag + compliance @ load for sag, compliance in (_parts(one, bool(drives)) for one in found[kept:])]
    )
    miss = table.displacement(between, np.zeros(6)) - (table.possible(between) @ truth[:, :, None])[:, :, 0]
    whole = np.array([one.sag + one.deflection for one in found])
    left = whole - (table.possible(np.array([one.pose for one in found])) @ whole[:, :, None])[:, :, 0]
    largest, across, off = (float(np.linalg.norm(rows[:, :3], axis=1).max()) for rows in (whole, left, miss))
    return DeflectionTable(path, kept, largest, across, off, len(between))


def _parts(one: Stiffness, without_drives: bool) -> tuple[Array, Array]:
    if without_drives:
        return one.with_rigid_drives()
    return one.sag - one.compliance[:, :3] @ (one.payload * one.robot.mechanism.gravity), one.compliance
