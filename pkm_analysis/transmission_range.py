# SPDX-License-Identifier: Apache-2.0
"""The command `pkm transmission`: a linkage over the range of its joints, and what other tools are told of it.

mjlab, Isaac Lab and ros2_control's stock plugins know joints without a linkage, so each number stands for a range; the
assumption is written beside it.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import io
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import PICTURES, AnalysisError, check_ending
from pkm_analysis.plottable import Plottable
from pkm_analysis.requirements.grammar import by_default, read_number, shown
from pkm_description.command_options import Parser, add_robot, write_files, write_output, wrong
from pkm_description.load import load_model, xacro_arguments
from pkm_description.mechanism import Array, Joint
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.urdf_plus import unread
from pkm_description.urdf.xml_text import read_xml
from pkm_dynamics.transmission.in_c import name_in_c, transmission_in_c
from pkm_dynamics.transmission.transmission import MotorLine, Transmission
from pkm_kinematics.status import Status
from pkm_kinematics.verdicts import units_of_tree
from pkm_runtime.codegen.c_code import harmless
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.kernel_cache import making

NODES = 41  # of each of one or two joints
SAMPLES = 2000  # of more joints, at random
WIDEST = 2.0 * np.pi  # rad: a wider limit says nothing
CONTRADICTS = 1e-6  # m: more than a file's rounding
HALVED = 12  # times: steps in the search for the worst
TO_FOLD = (
    30  # halvings of the way to where solutions end: a margin, which is as the root of the way left, is 3e-5 of it
)
FOLDED = 1e-2  # a margin below it there is that of a fold
MARGIN = "margin to a fold"
NEAR_FOLD = 0.1  # margin below which a fold is near
RATE, RATIO = 10.0, 2.0  # Hz, 1: frequency and damping ratio of joints where no gains of motors are given

Gains = tuple[float, float] | None  # stiffness and damping of the motors
Simulator = tuple[str, str, dict[str, str]]  # an import, the argument for the joints, and those for numbers
MJLAB: Simulator = "from mjlab.actuator import BuiltinPositionActuatorCfg", "target_names_expr", {
    "stiffness": "stiffness", "damping": "damping", "effort": "effort_limit", "armature": "armature",
    "friction": "frictionloss",
}  # fmt: skip
ISAAC: Simulator = "from isaaclab.actuators import ImplicitActuatorCfg", "joint_names_expr", {
    "effort": "effort_limit_sim", "speed": "velocity_limit_sim", "stiffness": "stiffness", "damping": "damping",
    "armature": "armature", "friction": "friction",
}  # fmt: skip
FILE = {"metavar": "FILE"}
OPTIONS: list[tuple[str, str, dict[str, Any]]] = [  # names, help, and what else argparse is told
    ("--joints", "joints, separated by commas (a name with a comma in double quotes); default: all that loops leave",
     {"metavar": "JOINTS", "default": ""}),
    ("--actuators", "joints with a motor, as in --joints; by default the file's", {"metavar": "JOINTS", "default": ""}),
    ("--range", "ranges, such as x=-300mm:300mm yaw=-10:10deg", {"nargs": "+", "default": [], "metavar": "NAME=A:B"}),
    ("--motor", "limits of motors at their joints, SI units: an effort, the speed beyond which there is none, and the "
     "effort at rest of the line between, such as *=50:20:80 or left_arm=50",
     {"nargs": "+", "default": [], "metavar": "NAME=EFFORT[:SPEED[:STALL]]"}),
    ("--list", "only list the clusters of loops, with their joints and actuators", {"action": "store_true"}),
    ("--kp-motor", "stiffness of each motor [N m/rad or N/m] that joints' gains are made of",
     {"type": float, "metavar": "K"}),
    ("--kd-motor", "damping of each motor [N m s/rad or N s/m] that joints' gains are made of",
     {"type": float, "metavar": "D"}),
    ("--picture", "picture as .png, .svg or .pdf", {}),
    ("--csv", "write positions, ratios, inertia and efforts over the range as a table", {}),
    ("--mjlab", "write an actuator configuration of mjlab, in Python", {}),
    ("--isaaclab", "write an actuator configuration of Isaac Lab, in Python", {}),
    ("--c", "write a header and a source in C99 for a control loop into a folder", {"metavar": "DIR"}),
    ("--ros2-control --ros-control",
     "write a <transmission> of ros2_control: with --c our plugin's, else a stock one's with home's ratios",
     {"dest": "ros_control", **FILE}),
]  # fmt: skip


class Quantity(NamedTuple):
    """A number over the range: `values` (n,), NaN where nothing is solved, the `bad` end of which is the worst."""

    name: str
    unit: str
    values: Array
    bad: str  # "low", "high", or "both" for what should stay as at home
    home: float

    @property
    def badness(self) -> Array:
        """How bad each value is, unsolved ones least."""
        by = {"low": -self.values, "high": self.values, "both": np.abs(self.values - self.home)}
        return np.nan_to_num(by[self.bad], nan=-np.inf)


class Extreme(NamedTuple):
    """The worst value of a quantity, the position (joints,) where it is, and whether solutions end there."""

    value: float
    q: Array
    at_fold: bool = False
    badness: float = -np.inf


@dataclass(frozen=True, eq=False, repr=False)
class TransmissionRange(Plottable):
    """Answers at positions `q` (n, joints), on a grid of `axes` for one or two joints, with home in the last row.

    `solved` (n,) where the linkage gets there from home; numbers elsewhere are NaN.
    """

    _picture: ClassVar[str] = "performance_pictures.transmission_picture"

    transmission: Transmission
    q: Array
    axes: tuple[Array, ...]
    solved: NDArray[np.bool_]
    actuators: Array  # (n, m)
    jacobian: Array  # (n, m, joints)
    margin: Array  # (n,)
    widest: tuple[str, float]  # the loop that is open the most, and by how much [m or rad]
    armature: Array  # (n, joints, joints), with the linkage's masses
    rotors: Array  # (n, joints, joints), without
    effort: Array  # (n, joints): of each joint alone
    speed: Array  # (n, joints): the same

    def quantities(self) -> list[Quantity]:
        """What is told of the range."""
        t, found = self.transmission, list[Quantity]()

        def add(name: str, unit: str, values: Array, bad: str) -> None:
            found.append(Quantity(name, unit, np.where(self.solved, values, np.nan), bad, float(values[-1])))

        for j, name in enumerate(t.joints):
            joint = t.tree.joint_named[name]
            for a, actuator in enumerate(t.actuators):
                if np.nan_to_num(self.jacobian[:, a, j]).any():  # else in another linkage
                    per = f"{t.tree.joint_named[actuator].unit}/{joint.unit}"  # of the joints' kinds
                    add(f"{actuator} per {name}", per, self.jacobian[:, a, j], "both")
            if np.isfinite(self.effort[-1, j]):
                add(f"effort of {name} alone", joint.effort_unit, self.effort[:, j], "low")
            if np.isfinite(self.speed[-1, j]):
                add(f"speed of {name} alone", f"{joint.unit}/s", self.speed[:, j], "low")
            inertia = "kg" if joint.unit == "m" else "kg m^2"
            if self.rotors[-1, j, j] > 0.0:  # else the file says nothing of them
                add(f"rotors' inertia at {name}", inertia, self.rotors[:, j, j], "high")
            add(f"with the linkage's, at {name}", inertia, self.armature[:, j, j], "high")
        add(MARGIN, "1", self.margin, "low")
        return found

    @cached_property
    def extremes(self) -> dict[str, Extreme]:
        """The worst of each quantity, by its name, found from the worst of `q` and of those where solutions end."""
        low, high = self.q[:-1].min(axis=0), self.q[:-1].max(axis=0)
        step = (high - low) / (len(self.axes[0]) - 1 if self.axes else len(self.q) ** (1.0 / len(low)))
        found = self._searched(self.solved, step, low, high)
        if not self.solved.all():
            ends = scipy.spatial.KDTree(self.q[~self.solved] / step).query(self.q / step)[0] < 1.5
            for name, one in self._searched(self.solved & ends, step, low, high).items():
                found[name] = max(found[name], one, key=lambda each: each.badness)
        return found

    def _searched(self, among: NDArray[np.bool_], step: Array, low: Array, high: Array) -> dict[str, Extreme]:
        """The worst by steps, ever halved, from the worst of some positions."""
        n = len(step)
        star = np.vstack([np.zeros(n), np.diag(step), -np.diag(step)])
        masked = {one.name: np.where(among, one.badness, -np.inf) for one in self.quantities()}
        worst = {name: Extreme(np.nan, self.q[np.argmax(badness)]) for name, badness in masked.items()}
        for halved in range(1, HALVED + 1):
            around = np.concatenate([np.clip(one.q + 0.5**halved * star, low, high) for one in worst.values()])
            near = _answers(self.transmission, np.concatenate([around, [one.q for one in worst.values()]]), ())
            for one in near.quantities():
                if one.name in worst:
                    k = list(worst).index(one.name)
                    rows = np.append(np.arange(len(star)) + k * len(star), len(around) + k)
                    best = rows[np.argmax(one.badness[rows])]
                    ends = worst[one.name].at_fold or (halved > HALVED // 2 and not near.solved[rows].all())
                    worst[one.name] = Extreme(float(one.values[best]), near.q[best], ends, float(one.badness[best]))
        return worst

    def without_rotors(self) -> list[str]:
        """Actuators whose drive the file gives no inertia."""
        drives = {name: self.transmission.tree.joint_named[name].drive for name in self.transmission.actuators}
        return [name for name, drive in drives.items() if drive is None or not drive.armature]

    def lines(self) -> list[str]:
        """The range as a table, and sentences about rotors that are not known and about folds."""
        rows = [("", "at home", "mean", "worst", "where")]
        for one in self.quantities():
            value, q, at_fold, _ = self.extremes[one.name]
            unit = "" if one.unit == "1" else f" [{one.unit}]"
            mean = f"{np.nanmean(one.values):.4g}" if unit else ""  # a margin's says nothing
            where = self._place(q) + (", where solutions end" if at_fold else "")
            rows.append((one.name + unit, f"{one.home:.4g}", mean, f"{value:.4g}", where))
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        table = [
            " ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in (1, 2, 3)), f" {row[4]}"])
            for row in rows
        ]
        names = ", ".join(self.without_rotors())
        unknown = [f"armature lacks the rotors of {names}: no rotor_inertia is given"] if names else []
        return [line.rstrip() for line in table] + unknown + self._fold()

    def _place(self, q: Array) -> str:
        joints = [self.transmission.tree.joint_named[name] for name in self.transmission.joints]
        return ", ".join(f"{one.name} {shown(x, one.unit, 3)}" for one, x in zip(joints, q, strict=True))

    def _fold(self) -> list[str]:
        lost = self.q[~self.solved]
        name, gap = self.widest
        closed = f"; loops close to {gap:.2g} m" if self.solved.any() else ""
        if gap > CONTRADICTS:
            closed = f"; its loops contradict each other: {name} stays open by up to {gap:.2g} m"
        if not len(lost):
            low = self.extremes[MARGIN].value
            verdict = f"near a fold: its margin falls to {low:.2g}" if low < NEAR_FOLD else "it folds nowhere"
            if low < 0.0:
                verdict = f"the motors lose the joints on the way: the margin passes through zero, to {low:.2g}"
            return [f"{verdict}{closed}"]
        away = np.abs(lost - self.transmission.home).max(axis=1)
        first = self._place(lost[int(np.argmin(away))])
        where = f"{100.0 * (~self.solved).mean():.1f} % of the range, first at {first}"
        return [f"no solution was found in {where}: {self._why(lost[int(np.argmin(away))])}{closed}"]

    def _why(self, lost: Array) -> str:
        """What ends the way from home to a position: a fold, told by the margin where the last solution is, or not."""
        t = self.transmission
        if t.linkage.folded:
            home = self._place(t.home)
            return f"home, {home}, is a fold, from where it goes on in several ways; give another, in MJCF a <key>"
        s, reached, left = t.at(t.home), 0.0, 1.0
        for _ in range(TO_FOLD):
            left *= 0.5
            on = t.at(t.home + (reached + left) * (lost - t.home), near=s.linkage.q[0])
            if on.linkage.status[0] == Status.CONVERGED:
                s, reached = on, reached + left
        margin = float(s.linkage.margin[0])
        at = self._place(t.home + reached * (lost - t.home))
        if margin < FOLDED:
            return f"the linkage folds, at {at} on the way from home"
        if reached + left >= 1.0:
            return "it is reached in smaller steps alone"
        return f"Newton's method fails at {at}, far from a fold (margin {margin:.2g})"


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
    return _answers(t, q, axes)


def _answers(t: Transmission, q: Array, axes: tuple[Array, ...]) -> TransmissionRange:
    q = np.concatenate([q, t.home[None]])
    s = t.at(q)
    speeds = np.array([t.motors[name].speed for name in t.actuators])
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = (speeds[:, None] / np.abs(s.jacobian)).min(axis=1)
    closed = s.linkage.status == Status.CONVERGED
    return TransmissionRange(
        t, q, axes, closed, s.actuators, s.jacobian, s.margin, t.linkage.widest(s.linkage),
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
            problem = f"there is no joint {name!r}" if colon and name else "it cannot be read"
            raise AnalysisError(about, problem, f"write JOINT=A:B with one of {', '.join(sorted(joints))}")
        wanted, (end, unit) = tree.joint_named[name].unit, read_number(high, about)
        start, own = read_number(low, about)
        found[name] = by_default(start, own or unit, wanted, size, about), by_default(end, unit, wanted, size, about)
        if not found[name][0] < found[name][1]:
            raise AnalysisError(about, "it is empty", "give the lower end first")
    return found


def read_motors(texts: Sequence[str], names: Sequence[str]) -> dict[str, MotorLine]:
    """Limits of motors by name from texts such as `*=50:20:80`, a later one before an earlier one."""
    found = dict[str, MotorLine]()
    for text in texts:
        pattern, _, numbers = text.rpartition("=")
        try:
            line = MotorLine(*map(float, numbers.split(":")))
        except (TypeError, ValueError):
            line = None
        if line is None or not (meant := fnmatch.filter(names, pattern)):
            remedy = f"write NAME=EFFORT[:SPEED[:STALL]], NAME * for all or one of {', '.join(names)}"
            raise AnalysisError(f"motor '{text}'", "it cannot be read", remedy)
        found |= dict.fromkeys(meant, line)
    return found


def motor_gains(kp: float | None, kd: float | None) -> tuple[float, float] | None:
    """Stiffness and damping of the motors, if given; `AnalysisError` for one without the other, or what is no gain."""
    if kp is None and kd is None:
        return None
    if kp is None or kd is None:
        given, missing = ("stiffness", "damping") if kd is None else ("damping", "stiffness")
        problem = f"a {given} of the motors without a {missing}"
        raise AnalysisError("gains", problem, "give both: --kp-motor and --kd-motor")
    for name, value in (("--kp-motor", kp), ("--kd-motor", kd)):
        if not 0.0 <= value < np.inf:
            raise AnalysisError(f"{name} {value:g}", "no gain of a motor", "give a finite number, zero or more")
    return kp, kd


def joint_numbers(found: TransmissionRange, gains: Gains) -> list[dict[str, tuple[float, str]]]:
    """What simulators without linkages take for each joint, SI units, with a sentence each: limits hold everywhere."""
    t, good = found.transmission, found.solved
    kp, kd, how = _joint_gains(found, gains)
    lacking = found.without_rotors()
    parts = f"linkage, without the rotors of {harmless(', '.join(lacking))}," if lacking else "rotors and linkage,"
    result, sliding = [], "dry friction of motors and passive joints at home, all of them sliding"
    for j in range(len(t.joints)):
        inertia = found.armature[good][:, j, j]
        coupled = np.abs(np.delete(found.armature[-1, j], j)).max(initial=0.0) / max(inertia.mean(), 1e-300)
        most = found.extremes[f"with the linkage's, at {t.joints[j]}"].value  # between the nodes, too
        over = f"{inertia.min():.3g} to {max(most, inertia.max()):.3g} over the range"
        effort, speed = found.effort[:, j], found.speed[:, j]
        no_limit = Extreme(np.inf, t.home)
        least = [found.extremes.get(f"{what} of {t.joints[j]} alone", no_limit).value for what in ("effort", "speed")]
        numbers = {
            "effort": (least[0], f"least over the range, other joints at zero; at home {effort[-1]:.4g}"),
            "speed": (least[1], f"least over the range, other joints at rest; at home {speed[-1]:.4g}"),
            "stiffness": (kp[j], f"{how}; couplings between joints left out"),
            "damping": (kd[j], how),
            "armature": (inertia.mean(), f"{parts} mean; {over}, coupling of {100.0 * coupled:.0f} % left out"),
            "friction": (t.friction(t.home).coulomb[j], sliding),
        }
        result.append(numbers)
    return result


def _joint_gains(found: TransmissionRange, gains: Gains) -> tuple[Array, Array, str]:
    if gains is None:
        inertia, omega = np.diagonal(found.armature[found.solved], axis1=1, axis2=2).mean(axis=0), 2.0 * np.pi * RATE
        how = f"armature, at {RATE:g} Hz with damping ratio {RATIO:g}"
        return inertia * omega**2, 2.0 * RATIO * inertia * omega, how
    each = found.transmission.gains(found.q[found.solved], np.asarray(gains[0]), np.asarray(gains[1]))
    kp, kd = (np.diagonal(k, axis1=1, axis2=2).mean(axis=0) for k in each)
    return kp, kd, f"mean of J' k J over the range, k = {gains[0]:g} and {gains[1]:g} at the motors"


def actuators_text(ranges: Sequence[TransmissionRange], gains: Gains, simulator: Simulator) -> str:
    """Python with one actuator configuration of a simulator per joint of some linkages."""
    line, names, keys = simulator
    kind = line.rpartition(" ")[2]
    name = harmless(ranges[0].transmission.tree.name)
    lines = [f'"""Actuators of {name} at its joints, SI units; linkages are left out."""']
    lines += ["", line, "", "ACTUATORS = ("]
    for found in ranges:
        t = found.transmission
        ends = [(found.q[:, j].min(), found.q[:, j].max()) for j in range(len(t.joints))]
        over = ", ".join(f"{name} {a:.4g} to {b:.4g}" for name, (a, b) in zip(t.joints, ends, strict=True))
        about = f"by {', '.join(t.actuators)}, over {over}", found.lines()[-1]
        lines += [f"    # {harmless(text)}" for text in about]
        for joint, numbers in zip(t.joints, joint_numbers(found, gains), strict=True):
            lines += [f"    {kind}(", f"        {names}=({json.dumps(re.escape(joint))},),"]
            for key, called in keys.items():
                value, sentence = numbers[key]
                known, none = f"{called}={value:.6g},  # {sentence}", f"# {called}: no limit of the motors is known"
                lines.append(f"        {known if np.isfinite(value) else none}")
            lines.append("    ),")
    return "\n".join([*lines, ")", ""])


def csv_text(found: TransmissionRange) -> str:
    """A table over the range, a row for each position where the linkage closes."""
    t = found.transmission
    pairs = [f"d {a} / d {j}" for a in t.actuators for j in t.joints]
    inertia = [f"armature {a} {b}" for k, a in enumerate(t.joints) for b in t.joints[k:]]
    head = [*t.joints, *t.actuators, *pairs, *inertia, *(f"effort {j}" for j in t.joints), "margin"]
    i, j = np.triu_indices(len(t.joints))
    parts = [found.q, found.actuators, found.jacobian.reshape(len(found.q), -1), found.armature[:, i, j]]
    rows = np.column_stack([*parts, found.effort, found.margin])[:-1][found.solved[:-1]]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *([f"{x:.10g}" for x in row] for row in rows)])
    return text.getvalue()


def ros2_control_text(found: TransmissionRange) -> str:
    """`<transmission>` of ros2_control's stock plugins, for one joint or a differential; errors are said."""
    t, home = found.transmission, found.jacobian[-1]
    if home.shape == (1, 1):
        kind, reductions, joint_reductions = "SimpleTransmission", [home[0, 0]], [1.0]
        fit = home
    elif home.shape == (2, 2) and np.abs(home).min() > 1e-3 * np.abs(home).max():
        kind, reductions = "DifferentialTransmission", [1.0, home[1, 0] / home[0, 0]]
        joint_reductions = [home[0, 0], home[0, 1]]
        fit = np.array([[1.0, 1.0], [1.0, -1.0]]) * np.array(reductions)[:, None] * np.array(joint_reductions)
    else:
        problem = f"ros2_control has no transmission from {len(t.actuators)} motors to {len(t.joints)} joints"
        raise AnalysisError("transmission", problem, "name one joint and its motor, or two joints of a differential")
    worst = 100.0 * np.abs(found.jacobian[found.solved] - fit).max() / np.abs(home).max()
    first = 100.0 * np.abs(home - fit).max() / np.abs(home).max()
    root = _element(found, f"transmission_interface/{kind}")
    root.insert(
        0, ET.Comment(f" ratios of home, off by {first:.2g} % there and by up to {worst:.2g} % over the range ")
    )
    offset = t.home - np.linalg.solve(fit, found.actuators[-1])  # of joints when motors are at zero, by these ratios
    for element, ratio in zip(root.findall("actuator"), reductions, strict=True):
        ET.SubElement(element, "mechanical_reduction").text = f"{ratio:.9g}"
    for element, ratio, at in zip(root.findall("joint"), joint_reductions, offset, strict=True):
        ET.SubElement(element, "mechanical_reduction").text = f"{ratio:.9g}"
        ET.SubElement(element, "offset").text = f"{at:.9g}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def linkage_text(found: TransmissionRange) -> str:
    """`<transmission>` of ros2_control by the plugin of pkm_ros2_control, over the C of the linkage."""
    root = _element(found, "pkm_ros2_control/LinkageTransmission")
    ET.SubElement(root, "param", name="linkage").text = name_in_c(found.transmission)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _element(found: TransmissionRange, plugin: str) -> ET.Element:
    t = found.transmission
    root = ET.Element("transmission", name=f"{t.tree.name}_{t.joints[0]}")
    ET.SubElement(root, "plugin").text = plugin
    for kind, names in (("actuator", t.actuators), ("joint", t.joints)):
        for k, name in enumerate(names, start=1):
            ET.SubElement(root, kind, name=name, role=f"{kind}{k}")
    return root


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(prog="pkm transmission", description="Say what a linkage does to a joint.")
    add_robot(p)
    for names, text, more in OPTIONS:
        p.add_argument(*names.split(), help=text, **(more or FILE))
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 2 for what cannot be done as asked."""
    given = parser().parse_args(arguments)
    try:
        return _run(given)
    except (PkmError, OSError) as error:
        return wrong("transmission", error)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for row in csv.reader([text], skipinitialspace=True) for name in row if name)


def _run(given: argparse.Namespace) -> int:
    gains = motor_gains(given.kp_motor, given.kd_motor)
    if given.picture:
        check_ending("picture", given.picture, PICTURES)  # before the work
    tree = load_model(given.robot, xacro_arguments(given.xacro_args))
    _warn(tree)
    if given.list:
        print(tree)
        return 0
    joints, actuators = (_names(text) for text in (given.joints, given.actuators))
    # without names each linkage by itself
    asked = [joints] if joints else [one.independent for one in tree.clusters if one.actuators] or [()]
    if given.picture or given.csv or given.ros_control or given.c:
        _require_one([] if given.mjlab or given.isaaclab else asked)  # else these are written first
    with making(f"solving the linkages of {tree.name}"):
        parts = [Transmission(tree, one, actuators) for one in asked]
        motors = read_motors(given.motor, [name for t in parts for name in t.actuators])
        for t in parts:
            t.motors |= {name: line for name, line in motors.items() if name in t.motors}
        ranges = read_ranges(given.range, tree, {name for t in parts for name in t.joints})
        found = [over_range(t, {name: ranges[name] for name in t.joints if name in ranges}) for t in parts]
    for one in found:
        print(one.transmission, *one.lines(), sep="\n")
    return _write(given, found, gains)


def _write(given: argparse.Namespace, found: list[TransmissionRange], gains: Any) -> int:
    """The files that are asked for; one that is refused does not keep the others back."""

    def in_c() -> None:
        t = _only(found).transmission
        write_files(Path(given.c), transmission_in_c(t, name_in_c(t)), "transmission")

    outputs: list[tuple[str | None, Callable[[], object]]] = [
        (given.csv, lambda: write_output(csv_text(_only(found)), given.csv)),
        (given.mjlab, lambda: write_output(actuators_text(found, gains, MJLAB), given.mjlab)),
        (given.isaaclab, lambda: write_output(actuators_text(found, gains, ISAAC), given.isaaclab)),
        (
            given.ros_control,
            lambda: write_output((linkage_text if given.c else ros2_control_text)(_only(found)), given.ros_control),
        ),
        (given.c, in_c),
        (given.picture, lambda: _only(found).plot(given.picture)),
    ]
    status = 0
    reported: set[str] = set()
    for file, write in outputs:
        try:
            if file:
                write()
        except (PkmError, OSError) as error:
            if str(error) not in reported:
                status = wrong("transmission", error)
            reported.add(str(error))
    return status


def _warn(tree: TreeModel) -> None:
    """Print what nobody reads, and what `pkm check` warns of: numbers that look like degrees or millimetres."""
    notes = unread(read_xml(tree.urdf, tree.source))
    for note in (*notes, *(one for one in tree.notes if one.startswith(("not read: <", "not followed", "home: ")))):
        print(f"pkm transmission: warning: {note}", file=sys.stderr)
    for one in units_of_tree(tree):
        print(f"pkm transmission: warning: {one.about}: {one.meaning}; {one.remedy}", file=sys.stderr)


def _only(found: list[TransmissionRange]) -> TransmissionRange:
    _require_one([one.transmission.joints for one in found])
    return found[0]


def _require_one(joints: Sequence[Sequence[str]]) -> None:
    """Refuse an output of one linkage where there are several, by their joints."""
    if len(joints) > 1:
        problem = f"the robot has {len(joints)} linkages, and this output is of one"
        remedy = f"name those of one: {' or '.join(map(','.join, joints))} (--list says more)"
        raise AnalysisError("--joints", problem, remedy)
