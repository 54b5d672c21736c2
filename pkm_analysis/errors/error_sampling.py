# SPDX-License-Identifier: Apache-2.0
"""Machines drawn at random within their tolerances, with their loops closed exactly: how good first order is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from pkm_analysis.errors.error_budget import GEOMETRY, SENSORS, ErrorModel
from pkm_analysis.errors.tolerances import NORMAL
from pkm_analysis.plottable import Plottable, Table
from pkm_description.mechanism import Array
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_kinematics.graph_model import GraphModel, States, rotation_vectors

CHUNK = 10  # machines
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False, repr=False)
class SampledErrors(Plottable):
    """Errors (machines, n, 2) of position [m] and rotation [rad] of machines at n configurations; NaN: no closure."""

    _picture: ClassVar[str] = "error_pictures.sampled_picture"

    robot: str
    poses: Array
    errors: Array
    expected: Array  # (n, 2) root mean squares, first order

    def _summary(self) -> str:
        at = 1e3 * self.quantile(0.95)[0]
        return f"{self.robot}: 95 % of {len(self.errors)} machines are within {at:.4g} mm everywhere"

    def quantile(self, share: float) -> Array:
        """Errors (2,) that a share of the machines does not exceed at any configuration."""
        return np.asarray(np.nanquantile(np.nanmax(self.errors, axis=1), share, axis=0))

    @property
    def rms(self) -> Array:
        """Root mean squares (n, 2) over the machines."""
        return np.asarray(np.sqrt(np.nanmean(self.errors**2, axis=0)))

    def _details(self) -> list[str]:
        ratio = self.rms[:, 0] / np.maximum(self.expected[:, 0], 1e-300)
        lines = [
            f"{100 * share:g} % within {1e3 * self.quantile(share)[0]:.4g} mm and "
            f"{np.degrees(self.quantile(share)[1]):.4g} deg"
            for share in QUANTILES
        ]
        lines.append(f"root mean square over that of first order: {ratio.min():.4f} to {ratio.max():.4f}")
        lost = int(np.isnan(self.errors).any(axis=(1, 2)).sum())
        return lines + ([f"{lost} machines cannot close their loops somewhere"] if lost else [])

    @property
    def tables(self) -> list[Table]:
        """Quantiles."""
        rows = [
            [f"{100 * s:g} %", f"{1e3 * self.quantile(s)[0]:.4g} mm", f"{np.degrees(self.quantile(s)[1]):.4g} deg"]
            for s in QUANTILES
        ]
        return [Table("Machines within", ["share", "position", "rotation"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in m and rad."""
        return {
            **self._plain("robot", "poses", "rms", "expected"),
            "machines": len(self.errors),
            "quantiles": {f"{share:g}": self.quantile(share).tolist() for share in QUANTILES},
        }


def sampled_errors(model: ErrorModel, machines: int, seed: int = 0) -> SampledErrors:
    """Errors of machines with parameters and sensor readings at random, over all cores or the sweeps' cluster."""
    sources = [one for one in model.sources() if one.kind in (GEOMETRY, SENSORS)]
    names, sizes = [one.name for one in sources], np.array([one.size for one in sources])
    kinds = [one.kind for one in sources]
    normal = model.tolerances.distribution == NORMAL
    call = partial(_chunk, model.parameters, model.states, names, kinds, sizes, normal, seed)
    chunks = [(k, min(CHUNK, machines - k)) for k in range(0, machines, CHUNK)]
    question = repr(
        ("sampled errors", model.mechanism.urdf, names, sizes.tolist(), normal, seed, model.states.q.tolist())
    )
    parts = model.robot.sweeps.map(call, chunks, f"errors of {machines} machines", len(chunks), question)
    errors = np.concatenate(list(parts))
    variance = np.sum([one.effects**2 for one in sources], axis=0) / (9.0 if normal else 3.0)
    expected = np.sqrt(np.column_stack((variance[:, :3].sum(axis=1), variance[:, 3:].sum(axis=1))))
    return SampledErrors(model.mechanism.name, model.poses, errors, expected)


def _chunk(
    parameters: GeometricParameters,
    states: States,
    names: list[str],
    kinds: list[str],
    sizes: Array,
    normal: bool,
    seed: int,
    chunk: tuple[int, int],
) -> Array:
    first, count = chunk
    random = np.random.default_rng([seed, first])
    model = GraphModel(parameters.mechanism)
    drives = model.columns_of(parameters.mechanism.actuated_joints)
    found = np.full((count, len(states), 2), np.nan)
    for k in range(count):
        drawn = sizes * (random.standard_normal(len(sizes)) / 3.0 if normal else random.uniform(-1.0, 1.0, len(sizes)))
        values = {name: v for name, v, kind in zip(names, drawn, kinds, strict=True) if kind == GEOMETRY}
        read = dict(zip(names, drawn, strict=True))
        model.displace(parameters.displacements(values))
        start = States(states.q.copy(), states.platform)
        for column, name in zip(drives, parameters.mechanism.actuated_joints, strict=True):
            start.q[:, column] += read.get(f"sensor of {name}", 0.0)
        ends, gap = model.closed(start, drives)
        moved = np.linalg.norm(ends.platform[:, :3, 3] - states.platform[:, :3, 3], axis=1)
        turn = ends.platform[:, :3, :3] @ np.swapaxes(states.platform[:, :3, :3], 1, 2)
        turned = np.linalg.norm(rotation_vectors(turn), axis=1)
        found[k] = np.where((gap < 1e-5 * model.length)[:, None], np.column_stack((moved, turned)), np.nan)
    return found
