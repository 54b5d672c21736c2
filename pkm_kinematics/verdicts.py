# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a check mean: verdicts, each with its level, its number, its meaning and a remedy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.loops.mobility import WEAK_ADVICE, hold_advice
from pkm_description.mechanism import Array, Mechanism
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.unit_slips import LARGE, Slip, Suspect, Written, suspects
from pkm_description.urdf.urdf_plus import Description, parse
from pkm_description.urdf.xml_text import read_xml
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import closes
from pkm_runtime.describable import listed
from pkm_runtime.errors import PkmError

Level = Literal["ok", "warning", "error"]

# Share of what independent drives would hold. Friction, backlash and errors of measurement reach the platform enlarged
# by its inverse: beyond ten times, they are no longer of the size that the drives' own figures say.
WEAK = 0.1
NEAR_SINGULAR = 1e-3  # beyond a thousand times nothing real is held; also for the margins in `Singularity`
MANY = 14  # drives: of more, not every combination of their errors is tried
ROUNDED = 1e-3  # rad or m: how far beyond its range a start with few digits may be
NEARBY = 12  # poses around home that are looked at
STRAY = 0.1  # rad, and half of it times the robot's size


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check."""

    level: Level
    about: str  # element of the description, or what was measured
    number: float | None  # the measure itself, SI units
    meaning: str
    remedy: str = ""


def of_drives(mechanism: Mechanism) -> Iterator[Verdict]:
    """Verdicts on the command interfaces of the joints."""
    by_position = [
        name
        for name in mechanism.actuated_joints
        if (drive := mechanism.joint_named[name].drive) is not None and drive.command_interfaces == ("position",)
    ]
    if by_position:
        yield Verdict(
            "ok",
            f"drives {listed(by_position)}",
            float(len(by_position)),
            "commanded by position only: ros2_control writes positions, and the drive controls its efforts itself. Use "
            "inverse dynamics to select the drives, not to command them; only the gains of the drive's own position "
            "and velocity loops matter",
            'for computed torque, give every drive <command_interface name="effort"/>',
        )
    if by_position and len(by_position) < len(mechanism.actuated_joints):
        yield Verdict(
            "warning",
            "<ros2_control>",
            float(len(by_position)),
            "the drives have different command interfaces; no controller of ros2_control writes both",
            "give every driven joint the same command_interface",
        )


def of_margins(margins: Mapping[str, float]) -> Iterator[Verdict]:
    """Warnings of limbs that are singular, stretched or folded at home."""
    if not np.isfinite(margins["type2"]):
        meaning = "a limb is singular at home: there is no Jacobian, and no motion can start there"
        yield Verdict("warning", "home", None, meaning, "move <home>")
    elif margins["type1"] < NEAR_SINGULAR:
        meaning = "at or near a type 1 singularity: a limb is stretched or folded there"
        yield Verdict("warning", "home", margins["type1"], meaning, "move <home>")


def of_singularity(kinematics: Kinematics) -> Iterator[Verdict]:
    """Verdicts on how firmly the drives hold the platform at home, and around it."""
    home = hold_at(kinematics, kinematics.home)
    if home is None:
        return
    around = [hold.independence for pose in poses_around(kinematics) if (hold := hold_at(kinematics, pose)) is not None]
    if home.independence < NEAR_SINGULAR and len(around) > 2 and max(around) < NEAR_SINGULAR:
        accepted = kinematics.mechanism.mobility.uncontrolled > 0
        yield Verdict(
            "warning" if accepted else "error",
            "architecture singularity",
            max(around),
            f"the drives do not hold the platform at home or at {len(around)} poses nearby: the robot is singular "
            "everywhere" + (", which its description accepts" if accepted else ""),
            f"change the geometry: {hold_advice(kinematics.mechanism.mobility.motion)}",
        )
        return
    yield home.verdict(kinematics)


@dataclass(frozen=True, eq=False)
class Hold:
    """How the drives hold the platform at one pose.

    `independence` is the smallest singular value of the wrenches that the drives exert, each of unit length, with
    moments over the characteristic length: 1 where they are square to each other, 0 at a type 2 singularity. Unlike the
    number of `kernels/regularity.py`, it does not depend on units, lever arms or gears. `efforts` (n_actuated,) are the
    largest [N or N m] that a load of 1 N, or a moment of 1 N times the characteristic length, can ask of each drive.
    """

    independence: float
    efforts: Array
    amplification: float

    def verdict(self, kinematics: Kinematics) -> Verdict:
        """The verdict on home."""
        which = int(np.argmax(self.efforts > (1.0 - 1e-9) * self.efforts.max()))  # the first of equals
        name = kinematics.actuated_names[which]
        joint = kinematics.mechanism.joint_named[name]
        motion = kinematics.mechanism.mobility.motion
        length = kinematics.characteristic_length
        turns = "T" not in motion  # such a platform is told in moments and angles, of 1 N m and mrad
        largest = float(self.efforts.max()) / (length if turns else 1.0)
        if self.independence < NEAR_SINGULAR:
            return Verdict(
                "warning",
                "force amplification at home",
                self.amplification,
                f"home is at or near a type 2 singularity: in one direction the drives hold {self.independence:.1g} of "
                "the load of independent drives; no motion can start there",
                "move <home> away from the singularity (Kinematics.singularity gives the distance of a pose); if the "
                f"robot must work at home, change the geometry: {hold_advice(motion)}",
            )
        limit = float(kinematics.mechanism.largest_effort[which])
        most = ""
        if np.isfinite(limit) and largest > 0.0 and not kinematics.mechanism.one_way_actuators.any():
            most = f"; its limit holds {limit / largest:.3g} {'N m' if turns else 'times this load'}"
        load = "1 N m on the platform" if turns else "1 N on the platform"
        if "R" in motion and not turns:
            load += f" or a moment of {length:.3g} N m"
        meaning = (
            f"{load} can need {largest:.3g} {joint.effort_unit} of {name}{most} in the worst direction; "
            f"{_strayed(kinematics)}"
        )
        if self.independence >= WEAK:
            return Verdict("ok", "force amplification at home", self.amplification, meaning)
        return Verdict(
            "warning",
            "force amplification at home",
            self.amplification,
            f"{meaning}; the drives hold {self.independence:.2g} of the load of independent drives (weak: below "
            f"{WEAK:g})",
            "move <home> away from the nearby type 2 singularity, or spread the lines of action of the drives: "
            f"{WEAK_ADVICE.get(motion, 'other joint centres, longer lever arms')}; and use poses with a margin "
            "(Kinematics.singularity)",
        )


def _moves(kinematics: Kinematics, pose: Array) -> Array:
    at = kinematics.at(pose)
    moves: Array = at.subspace @ np.linalg.pinv(at.motion_jacobian)[: at.subspace.shape[1]]
    return moves  # (6, n_actuated): twists of the platform by rates of drives, and so efforts by loads


def _strayed(kinematics: Kinematics) -> str:
    moves = _moves(kinematics, kinematics.home)
    n = moves.shape[1]
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=n))) if n <= MANY else np.sign(moves.T @ moves)
    far, turned = (float(np.linalg.norm(rows @ signs.T, axis=0).max()) for rows in (moves[:3], moves[3:]))
    words = [f"move the platform by {far:.3g} mm"] * (far > 1e-9 * turned * kinematics.characteristic_length)
    if turned * kinematics.characteristic_length > 1e-9 * far:
        words.append(f"turn {'it' if words else 'the platform'} by {turned:.3g} mrad")
    units = sorted({f"1 m{kinematics.mechanism.joint_named[name].unit}" for name in kinematics.actuated_names})
    return f"errors of up to {' and '.join(units)} in every drive can {' and '.join(words)}"


def hold_at(kinematics: Kinematics, pose: Array) -> Hold | None:
    """How the drives hold the platform at a pose (7,); None where it has no regular configuration."""
    at = kinematics.at(pose)
    K = at.uniform_jacobian[0]
    if not np.isfinite(K).all() or K.shape[0] < K.shape[1]:
        return None
    lengths = np.linalg.norm(K, axis=1)
    values = np.linalg.svd(K / np.where(lengths > 0.0, lengths, 1.0)[:, None], compute_uv=False)
    n = K.shape[1] - len(kinematics.redundant_names)
    beside = np.linalg.qr(K[:, n:])[0]  # drives against loads at redundant joints, of which there are none
    K = K[:, :n] - beside @ (beside.T @ K[:, :n])
    smallest = float(np.linalg.svd(K, compute_uv=False)[-1])
    moves = _moves(kinematics, pose)
    force, moment = (
        np.linalg.norm(moves[:3], axis=0),
        kinematics.characteristic_length * np.linalg.norm(moves[3:], axis=0),
    )
    efforts = np.maximum(force, moment) if "T" in kinematics.mechanism.mobility.motion else moment
    return Hold(float(values[-1]), efforts, 1.0 / smallest if smallest > 0.0 else float(np.inf))


def poses_around(kinematics: Kinematics) -> Array:
    """Poses (n, 7) in general position around home that the robot reaches."""
    random = np.random.default_rng(3)
    home, S = kinematics.home, kinematics.subspace(kinematics.home)
    if not np.isfinite(S).all():
        return np.empty((0, 7))
    found = []
    for _ in range(NEARBY):
        step: Array = S @ random.uniform(-1.0, 1.0, S.shape[1])
        length = 0.5 * kinematics.engine.size
        largest = max(float(np.linalg.norm(step[:3])) / length, float(np.linalg.norm(step[3:])), 1e-12)
        step *= STRAY / largest
        turned = (Rotation.from_rotvec(step[3:]) * Rotation.from_quat(home[3:])).as_quat()
        pose = np.concatenate([home[:3] + step[:3], turned])
        if kinematics.constant_space:
            found.append(pose)
            continue
        try:
            near = kinematics.nearest(pose)
        except PkmError:
            continue
        if closes(near.status):
            found.append(near.pose)
    return np.array(found).reshape(-1, 7)


Blame = Callable[[Slip], Sequence[Written]]
NAMED = 3  # elements; of more alike, their number is enough


def of_units(found: Sequence[Suspect], mass: float, blame: Blame = lambda slip: ()) -> Iterator[Verdict]:
    """A warning per number of the file that looks like another unit's, or else per kind of place and value.

    `found` is from `suspects`, `mass` in kg; `blame` answers which numbers explain those of a kind, or of its factor.
    """
    known = {slip: blame(slip) for slip in (Slip.DEGREES, Slip.MILLIMETRES) if _of(found, slip)}
    for slip, written in known.items():
        alike = _of(found, slip)
        worst = max(alike, key=lambda one: abs(one.value))
        for one in written:
            meaning = f"because of it, {worst.about} is {_what(worst, mass)}{_others(alike, worst)}"
            yield Verdict("warning", one.place, one.value, meaning, _correction(one.value, slip))
    for alike in _groups([one for one in found if not known.get(_kind(one.slip))]):
        worst = max(alike, key=lambda one: abs(one.value))
        meaning = f"{_what(worst, mass)}{_others(alike, worst)}"
        yield Verdict("warning", worst.about, worst.value, meaning, _remedy(worst))


def of_starts(description: Description) -> Iterator[Verdict]:
    """Warnings of joints that are to start outside their own range."""
    ranges = {joint.name: joint.limits for joint in description.joints}
    for name, start in description.home_joints.items():
        limits = ranges.get(name)
        if limits is not None and not limits.lower - ROUNDED <= start <= limits.upper + ROUNDED:
            yield Verdict(
                "warning",
                f'position of <joint name="{name}"> at home',
                start,
                f"it is to start at {start:.6g}, outside its range {limits.lower:.6g} to {limits.upper:.6g}; home was "
                "sought inside, perhaps in another working mode",
                "correct the position in <home>, the initial_value, or the <limit>",
            )


def units_of_tree(tree: TreeModel) -> list[Verdict]:
    """Warnings of `of_units` for a tree with clusters of loops."""
    found = suspects(parse(tree.urdf, tree.source, tree=True), read_xml(tree.urdf, tree.source))
    return list(of_units(found, sum(link.inertial.mass for link in tree.links)))


def of_cosines(found: Sequence[Written]) -> Iterator[Verdict]:
    """Warnings of numbers, from `taken_as_radians`, that look like degrees and go into cosines and sines only."""
    for one in found:
        meaning = "the file uses it as radians in cosines and sines, but it looks like degrees"
        yield Verdict("warning", one.place, one.value, meaning, _correction(one.value, Slip.DEGREES))


def of_misfits(blame: Blame) -> Iterator[Verdict]:
    """Warnings of numbers that prevent an expansion, such as the root of a negative number; `blame` finds them."""
    in_units: dict[Written, list[Slip]] = {}
    for slip in (Slip.MILLIMETRES, Slip.DEGREES):
        for one in blame(slip):
            in_units.setdefault(one, []).append(slip)
    for one, slips in in_units.items():
        units = " or ".join("degrees" if slip is Slip.DEGREES else "mm" for slip in slips)
        meaning = f"the numbers are inconsistent; they are consistent if this is in {units}"
        yield Verdict(
            "warning", one.place, one.value, meaning, "; ".join(_correction(one.value, slip) for slip in slips)
        )


def _correction(value: float, slip: Slip) -> str:
    if slip is Slip.DEGREES:
        return f"write angles in rad: {value:g} degrees are {value * slip.factor:.6g}, or write ${{radians({value:g})}}"
    return f"write lengths in m: {value:g} mm are {value * slip.factor:g}"


def _kind(slip: Slip) -> Slip:
    return Slip.MILLIMETRES if slip is Slip.SLIDE else slip


def _of(found: Sequence[Suspect], kind: Slip) -> list[Suspect]:
    return [one for one in found if _kind(one.slip) is kind]


def _groups(found: Sequence[Suspect]) -> list[list[Suspect]]:
    """Suspects of one kind and size together: limits of six arms, lengths of all rods; of a range, its larger end."""
    groups: dict[tuple[object, ...], list[Suspect]] = {}
    largest: dict[str, float] = {}
    for one in found:
        largest[one.about] = max(largest.get(one.about, 0.0), abs(one.value))
    for one in found:
        if not one.attribute or abs(one.value) == largest[one.about]:
            kind = re.sub(r'"[^"]*"', "", one.about), round(abs(one.value), 9)
            groups.setdefault((one.slip, None if one.slip is Slip.MILLIMETRES else kind), []).append(one)
    return list(groups.values())


def _what(one: Suspect, mass: float) -> str:
    if one.slip is Slip.DEGREES:
        return f"{one.value:g} rad, more than a full turn: the unit looks like degrees"
    if one.slip is Slip.INERTIA:
        return f"{one.value:g} kg m^2, more than a body of its mass in this robot: the unit looks like kg mm^2"
    if one.slip is Slip.SLIDE:
        return f"a translation of {abs(one.value):g} m: the unit looks like millimetres"
    size = f"more than {LARGE:g} m" if one.value > LARGE else "a hundred times the others"
    return f"{one.value:g} m, {size}, in a robot of {mass:.4g} kg: the unit looks like mm"


def _others(alike: Sequence[Suspect], worst: Suspect) -> str:
    names = list(dict.fromkeys(one.about for one in alike if one.about != worst.about))
    if not names:
        return ""
    return f" (and {len(names)} more alike)" if len(names) > NAMED else f" (alike: {listed(names)})"


def _remedy(one: Suspect) -> str:
    if one.slip is Slip.DEGREES:
        return (
            f"write angles in rad: {one.value:.6g} degrees are {np.radians(one.value):.6g}; "
            f"or write ${{{one.value:.6g} * pi / 180}}; if it comes from an expression, correct the angles of the "
            "expression"
        )
    if one.slip is Slip.INERTIA:
        return f"write inertias in kg m^2: {one.value:g} kg mm^2 are {1e-6 * one.value:g}"
    more = "; inertias in kg m^2 (1 kg mm^2 is 1e-6)" if one.slip is Slip.MILLIMETRES else ""
    return f"write lengths in m: {abs(one.value):g} mm are {abs(one.value) / 1000.0:g}{more}"
