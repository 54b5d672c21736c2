# SPDX-License-Identifier: Apache-2.0
"""How near a pose is to a singularity, in physical units.

With K the inverse Jacobian on the motion space (actuator rates per platform velocity), made uniform in units by a
characteristic length for rotations:

* type 1 (a limb stretched or folded: the platform loses a degree of freedom): `type1`, the smallest platform
  speed that actuators running at unit speed can be left with, 1 / largest singular value of K;
* type 2 (the actuators no longer control the platform): `type2`, the smallest actuator speed that goes with unit
  platform speed, the smallest singular value of K, and its reciprocal `force_amplification`, the largest actuator
  effort for a unit load on the platform;
* constraint (the limbs lose hold of a degree of freedom that they should block): `constraint_hold`, the smallest
  singular value of the limbs' unit constraint wrenches on what the platform must not do;
* inside a limb: `limb_regularity`, 0 where a limb's passive joints are not determined, up to 1.

`condition` and `limb_regularity` are the number of `kernels/regularity.py` by which solves answer SINGULAR: whether
numbers can be trusted, without a unit. Distances from types 1 and 2 are the singular values behind it, in units of the
drives. Gosselin and Angeles (1990) for types 1 and 2; Zlatanov, Bonev and Gosselin (2002) for constraint singularities.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_runtime.describable import Describable, measure

LENGTH = "characteristic_length"


@dataclass(frozen=True, eq=False, repr=False)
class Singularity(Describable):
    """Margins at one pose or at many (leading axes as the poses); NaN where the pose has no solution."""

    type1: Array  # m/s per rad/s (or per m/s): zero at type 1
    type2: Array  # rad/s (or m/s) per m/s: zero at type 2
    force_amplification: Array  # N m (or N) per N: infinite at type 2
    determinant_sign: Array  # of K where it is square: changes at type 2; between working modes, at type 1 too
    constraint_hold: Array  # 1: zero at a constraint singularity, infinite where limbs block nothing
    limb_regularity: Array  # 1: zero where a limb is singular in itself
    condition: Array  # 1: of K in uniform units, zero at types 1 and 2, up to 1
    characteristic_length: float  # m

    def _summary(self) -> str:
        shape = np.shape(self.type2)
        if shape:
            known = np.asarray(self.type2)[np.isfinite(self.type2)]
            least = f"type 2 from {known.min():.4g} to {known.max():.4g}" if len(known) else "no solution"
            return f"margins of shape {shape}: {least}"
        if not np.isfinite(self.type2):
            return "margins: none, the pose has no regular solution"
        return f"margins: type 1 {measure(self.type1)}, type 2 {measure(self.type2)}"

    def _details(self) -> list[str]:
        if np.shape(self.type2) or not np.isfinite(self.type2):
            return []
        return [
            f"type 1 (a limb stretched or folded): slowest platform speed at unit actuator speed {measure(self.type1)}",
            f"type 2 (the actuators lose hold): slowest actuator speed at unit platform speed {measure(self.type2)}, "
            f"largest effort per unit of load {measure(self.force_amplification)}",
            f"constraint (the limbs lose hold): {measure(self.constraint_hold)}; "
            f"inside a limb: {measure(self.limb_regularity)}",
            f"0 is a singularity; rotations count at {self.characteristic_length:.4g} m",
        ]

    def reshaped(self, shape: tuple[int, ...]) -> Singularity:
        """The same margins with `shape` as their leading axes."""
        shaped = {f.name: getattr(self, f.name).reshape(shape) for f in fields(self) if f.name != LENGTH}
        return replace(self, **shaped)


def margins(
    K: Array, constraint: Array, regularity: Array, length: float, drive_units: Array | None = None
) -> Singularity:
    """Margins (n,) from drives' rates per unit speed K (n, m, f), and the limbs' `constraint` and `regularity` (n,).

    `length` is characteristic [m]; `drive_units` (m,) multiply the drives' rates for the condition, 1 where None.
    """
    finite = np.asarray(np.isfinite(K).all((-1, -2)))
    safe = np.where(finite[:, None, None], K, 0.0)
    values: Array = np.linalg.svd(safe, compute_uv=False)
    f = K.shape[-1]
    smallest = values[:, f - 1] if values.shape[-1] >= f else np.zeros(len(K))
    units = np.ones(K.shape[1]) if drive_units is None else drive_units
    uniform = values if (units == 1.0).all() else np.asarray(np.linalg.svd(safe * units[:, None], compute_uv=False))
    with np.errstate(divide="ignore", invalid="ignore"):
        slowest, amplification = 1.0 / values[:, 0], 1.0 / smallest
    sign = np.sign(np.linalg.det(safe)) if K.shape[-2] == f else np.ones(len(K))
    hide = np.where(finite, 0.0, np.nan)
    return Singularity(
        type1=slowest + hide,
        type2=smallest + hide,
        force_amplification=amplification + hide,
        determinant_sign=sign + hide,
        constraint_hold=constraint + hide,
        limb_regularity=regularity + hide,
        condition=conditions(uniform, f) + hide,
        characteristic_length=length,
    )


def conditions(values: Array, f: int) -> Array:
    """Reciprocal conditions (n,) from the singular values (n, k) of Jacobians of f columns in uniform units."""
    if values.shape[-1] < f:
        return np.zeros(len(values))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = f / np.sqrt((values**2).sum(axis=-1) * (values**-2.0).sum(axis=-1))
    return np.where(values[:, -1] > 0.0, found, 0.0)


def joined(parts: list[Singularity]) -> Singularity:
    """Margins of all parts, in their order."""
    names = [f.name for f in fields(parts[0]) if f.name != LENGTH]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], **arrays)


def scaling(length: float) -> Array:
    """Divisors (6,) of a wrench that go with an angular velocity multiplied by `length`."""
    return np.array([1.0, 1.0, 1.0, length, length, length])


def per_unit_speed(K: Array, S: Array, length: float) -> Array:
    """Rates per unit speed of K (..., m, n) in bases S (..., 6, n) of a motion space; rotations at `length` [m]."""
    speeds = np.linalg.norm(S * scaling(length)[:, None], axis=-2)
    return np.asarray(K / np.where(speeds > 0.0, speeds, 1.0)[..., None, :])
