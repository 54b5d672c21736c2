# SPDX-License-Identifier: Apache-2.0
"""A transmission over the range of its joints: where it folds, and its ratios, efforts, speeds and inertia."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.requirements.grammar import by_default, read_number
from pkm_description.mechanism import Array, Joint
from pkm_description.tree_model import TreeModel
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.status import Status

NODES = 41  # of each of one or two joints
SAMPLES = 2000  # of more joints, at random
WIDEST = 2.0 * np.pi  # rad: a wider limit says nothing
CONTRADICTS = 1e-6  # m: more than a file's rounding
NEAR_FOLD = 0.1  # margin below which a fold is near


class Quantity(NamedTuple):
    """A number over the range: `values` (k,) at the solved positions, the `bad` end of which is the worst."""

    name: str
    unit: str
    values: Array
    bad: str  # "low", "high", or "both" for what should stay as at home
    home: float


@dataclass(frozen=True, eq=False)
class TransmissionRange:
    """Answers at positions `q` (n, joints), on a grid of `axes` for one or two joints, with home in the last row.

    `solved` (n,) where the linkage gets there from home; numbers elsewhere are NaN.
    """

    transmission: Transmission
    q: Array
    axes: tuple[Array, ...]
    solved: NDArray[np.bool_]
    actuators: Array  # (n, m)
    jacobian: Array  # (n, m, joints)
    margin: Array  # (n,)
    gap: float  # m, the largest
    armature: Array  # (n, joints, joints), with the linkage's masses
    rotors: Array  # (n, joints, joints), without
    effort: Array  # (n, joints): of each joint alone
    speed: Array  # (n, joints): the same

    def quantities(self) -> list[Quantity]:
        """What is told of the range."""
        t, found = self.transmission, []
        for j, name in enumerate(t.joints):
            unit = t.tree.joint_named[name].unit
            for a, actuator in enumerate(t.actuators):
                if not np.nan_to_num(self.jacobian[:, a, j]).any():
                    continue  # in another linkage
                # units on both sides are those of the joints' kinds
                per = f"{t.tree.joint_named[actuator].unit}/{unit}"
                found.append(self._of(f"{actuator} per {name}", per, self.jacobian[:, a, j], "both"))
            effort = t.tree.joint_named[name].effort_unit
            if np.isfinite(self.effort[-1, j]):
                found.append(self._of(f"effort of {name} alone", effort, self.effort[:, j], "low"))
            if np.isfinite(self.speed[-1, j]):
                found.append(self._of(f"speed of {name} alone", f"{unit}/s", self.speed[:, j], "low"))
            inertia = "kg" if unit == "m" else "kg m^2"
            if self.rotors[-1, j, j] > 0.0:  # else the file says nothing of them
                found.append(self._of(f"rotors' inertia at {name}", inertia, self.rotors[:, j, j], "high"))
            found.append(self._of(f"with the linkage's, at {name}", inertia, self.armature[:, j, j], "high"))
        found.append(self._of("margin to a fold", "1", self.margin, "low"))
        return found

    def _of(self, name: str, unit: str, values: Array, bad: str) -> Quantity:
        return Quantity(name, unit, values[self.solved], bad, float(values[-1]))

    def worst(self, quantity: Quantity) -> tuple[float, Array]:
        """The worst value, and the position (joints,) where it is."""
        by = {"low": -quantity.values, "high": quantity.values, "both": np.abs(quantity.values - quantity.home)}
        k = int(np.argmax(by[quantity.bad]))
        return float(quantity.values[k]), self.q[self.solved][k]

    def without_rotors(self) -> list[str]:
        """Actuators whose drive the file gives no inertia."""
        drives = {name: self.transmission.tree.joint_named[name].drive for name in self.transmission.actuators}
        return [name for name, drive in drives.items() if drive is None or not drive.armature]

    def lines(self) -> list[str]:
        """The range as a table, and sentences about rotors that are not known and about folds."""
        t = self.transmission
        rows = [("", "at home", "mean", "worst", "where")]
        for one in self.quantities():
            value, q = self.worst(one)
            place = ", ".join(f"{name} {x:.3g}" for name, x in zip(t.joints, q, strict=True))
            unit = "" if one.unit == "1" else f" [{one.unit}]"
            mean = f"{one.values.mean():.4g}" if unit else ""  # a margin's says nothing
            rows.append((one.name + unit, f"{one.home:.4g}", mean, f"{value:.4g}", place))
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        table = [
            " ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in (1, 2, 3)), f" {row[4]}"])
            for row in rows
        ]
        names = self.without_rotors()
        unknown = [f"armature lacks the rotors of {', '.join(names)}: no rotor_inertia is given"] if names else []
        return [line.rstrip() for line in table] + unknown + self._fold()

    def _fold(self) -> list[str]:
        lost = self.q[~self.solved]
        closed = f"loops close to {self.gap:.2g} m"
        if self.gap > CONTRADICTS:
            closed = f"its loops contradict each other and stay open by up to {self.gap:.2g} m"
        if not len(lost):
            low = self.margin[self.solved].min()
            said = f"near a fold: its margin falls to {low:.2g}" if low < NEAR_FOLD else "it folds nowhere"
            if low < 0.0:
                said = f"the motors lose the joints on the way: the margin passes through zero, to {low:.2g}"
            return [f"{said}; {closed}"]
        away = np.abs(lost - self.transmission.home).max(axis=1)
        first = lost[int(np.argmin(away))]
        place = ", ".join(f"{name} {x:.3g}" for name, x in zip(self.transmission.joints, first, strict=True))
        share = 100.0 * (~self.solved).mean()
        where = f"{share:.1f} % of the range, first at {place}"
        return [f"no solution was found in {where}: the linkage folds, or Newton's method fails there; {closed}"]


def over_range(
    transmission: Transmission, ranges: Mapping[str, tuple[float, float]] | None = None, nodes: int = NODES
) -> TransmissionRange:
    """Answers over ranges [rad or m] by joint, else over the joints' limits; `AnalysisError` where there are none."""
    t, given = transmission, dict(ranges or {})
    if unknown := given.keys() - set(t.joints):
        raise AnalysisError(f"range of {', '.join(sorted(unknown))}", "no such joint", f"it has {', '.join(t.joints)}")
    ends = [given.get(name) or _limits(t.tree.joint_named[name]) for name in t.joints]
    axes: tuple[Array, ...] = ()
    if len(ends) <= 2:
        axes = tuple(np.linspace(low, high, nodes) for low, high in ends)
        q = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(ends))
    else:
        low, high = np.array(ends).T
        q = low + (high - low) * np.random.default_rng(0).uniform(size=(SAMPLES, len(ends)))
    q = np.concatenate([q, t.home[None]])
    s = t.at(q)
    actuators = t.actuators_of(s)
    speeds = np.array([t.motors[name].speed for name in t.actuators])
    J = t.jacobian_of(s)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = (speeds[:, None] / np.abs(J)).min(axis=1)
    return TransmissionRange(
        t, q, axes, s.status == Status.CONVERGED, actuators, J, t.margin_of(s), float(np.nanmax(s.gap)),
        t.armature(q), t.armature(q, linkage=False), t.effort_alone(q), alone,
    )  # fmt: skip


def _limits(joint: Joint) -> tuple[float, float]:
    low, high = joint.limits.lower, joint.limits.upper
    if not np.isfinite(high - low) or (joint.unit == "rad" and high - low > WIDEST):
        problem = "it has no limits, or they are more than a turn apart"
        raise AnalysisError(f"range of {joint.name}", problem, f"give one: --range {joint.name}=-20deg:20deg")
    return low, high


def read_ranges(texts: Sequence[str], tree: TreeModel, joints: Collection[str]) -> dict[str, tuple[float, float]]:
    """Ranges of joints from texts such as "ankle_pitch=-30:20deg"; one unit at the upper end is of both, none SI's."""
    found, size = {}, max((float(np.linalg.norm(joint.origin[:3, 3])) for joint in tree.joints), default=0.0)
    for text in texts:
        about = f"range '{text}'"
        name, _, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        if not colon or name not in joints:
            raise AnalysisError(about, "it cannot be read", f"write JOINT=A:B with one of {', '.join(sorted(joints))}")
        wanted, (end, unit) = tree.joint_named[name].unit, read_number(high, about)
        start, own = read_number(low, about)
        found[name] = by_default(start, own or unit, wanted, size, about), by_default(end, unit, wanted, size, about)
        if not found[name][0] < found[name][1]:
            raise AnalysisError(about, "it is empty", "give the lower end first")
    return found
