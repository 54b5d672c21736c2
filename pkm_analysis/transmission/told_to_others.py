# SPDX-License-Identifier: Apache-2.0
"""What other tools are told of a transmission: actuators of mjlab and Isaac Lab, a table, ros2_control's element.

Each of them knows joints without a linkage, so each number stands for a range; the assumption is written beside it.
"""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.transmission.over_range import TransmissionRange
from pkm_description.mechanism import Array
from pkm_dynamics.transmission.in_c import name_in_c
from pkm_runtime.codegen.c_code import harmless


@dataclass(frozen=True)
class Gains:
    """What makes stiffness and damping of the joints: gains of the motors, else a frequency [Hz] and damping ratio."""

    kp_motor: float | None = None
    kd_motor: float | None = None
    frequency: float = 10.0
    ratio: float = 2.0

    def __post_init__(self) -> None:
        """Refuse what is no gain, and one without the other."""
        if (self.kp_motor is None) != (self.kd_motor is None):
            given, missing = ("stiffness", "damping") if self.kd_motor is None else ("damping", "stiffness")
            problem = f"a {given} of the motors without a {missing}"
            raise AnalysisError("gains", problem, "give both: --kp-motor and --kd-motor")
        for name, value in (("--kp-motor", self.kp_motor), ("--kd-motor", self.kd_motor)):
            if value is not None and not 0.0 <= value < np.inf:
                raise AnalysisError(f"{name} {value:g}", "no gain of a motor", "give a finite number, zero or more")


@dataclass(frozen=True)
class JointNumbers:
    """What a simulator without linkages takes for one joint, SI units, and a sentence for each."""

    joint: str
    values: dict[str, float]
    said: dict[str, str]


def joint_numbers(found: TransmissionRange, gains: Gains) -> list[JointNumbers]:
    """Numbers for each joint: what holds over the whole range for limits, means for the others."""
    t, good = found.transmission, found.solved
    kp, kd = _joint_gains(found, gains)
    lacking = found.without_rotors()
    parts = f"linkage, without the rotors of {harmless(', '.join(lacking))}," if lacking else "rotors and linkage,"
    result = []
    for j, name in enumerate(t.joints):
        inertia = found.armature[good][:, j, j]
        friction = t.friction(t.home).coulomb[j]
        values = {"effort": found.effort[good][:, j].min(), "speed": found.speed[good][:, j].min()}
        values |= {"stiffness": kp[j], "damping": kd[j], "armature": inertia.mean(), "friction": friction}
        how = (
            f"mean of J' k J over the range, k = {gains.kp_motor:g} and {gains.kd_motor:g} at the motors"
            if gains.kp_motor is not None
            else f"armature, at {gains.frequency:g} Hz with damping ratio {gains.ratio:g}"
        )
        coupled = np.abs(np.delete(found.armature[-1, j], j)).max(initial=0.0) / max(inertia.mean(), 1e-300)
        said = {
            "effort": f"least over the range, other joints at zero; at home {found.effort[-1, j]:.4g}",
            "speed": f"least over the range, other joints at rest; at home {found.speed[-1, j]:.4g}",
            "stiffness": f"{how}; couplings between joints left out",
            "damping": how,
            "armature": f"{parts} mean; {inertia.min():.3g} to {inertia.max():.3g} over the range, "
            f"coupling of {100.0 * coupled:.0f} % left out",
            "friction": "dry friction of motors and passive joints at home, all of them sliding",
        }
        result.append(JointNumbers(name, {key: float(x) for key, x in values.items()}, said))
    return result


def _joint_gains(found: TransmissionRange, gains: Gains) -> tuple[Array, Array]:
    """Stiffness and damping (n,) of the joints."""
    t = found.transmission
    if gains.kp_motor is None:
        inertia = np.diagonal(found.armature[found.solved], axis1=1, axis2=2).mean(axis=0)
        omega = 2.0 * np.pi * gains.frequency
        return inertia * omega**2, 2.0 * gains.ratio * inertia * omega
    some = found.q[found.solved]
    means = [np.diagonal(k, axis1=1, axis2=2).mean(axis=0) for k in t.gains(some, gains.kp_motor, gains.kd_motor)]  # type: ignore[arg-type]
    return means[0], means[1]


MJLAB = {
    "stiffness": "stiffness", "damping": "damping", "effort": "effort_limit", "armature": "armature",
    "friction": "frictionloss",
}  # fmt: skip
ISAAC = {
    "effort": "effort_limit_sim", "speed": "velocity_limit_sim", "stiffness": "stiffness", "damping": "damping",
    "armature": "armature", "friction": "friction",
}  # fmt: skip


def mjlab_text(ranges: Sequence[TransmissionRange], gains: Gains) -> str:
    """Python with one mjlab actuator configuration per joint of some linkages."""
    line = "from mjlab.actuator import BuiltinPositionActuatorCfg"
    return _python(ranges, gains, line, "target_names_expr", MJLAB)


def isaaclab_text(ranges: Sequence[TransmissionRange], gains: Gains) -> str:
    """Python with one Isaac Lab actuator configuration per joint of some linkages."""
    return _python(ranges, gains, "from isaaclab.actuators import ImplicitActuatorCfg", "joint_names_expr", ISAAC)


def _python(ranges: Sequence[TransmissionRange], gains: Gains, line: str, names: str, keys: dict[str, str]) -> str:
    kind = line.rpartition(" ")[2]
    name = harmless(ranges[0].transmission.tree.name)
    lines = [f'"""Actuators of {name} at its joints, SI units; linkages are left out."""']
    lines += ["", line, "", "ACTUATORS = ("]
    for found in ranges:
        t = found.transmission
        ends = [(found.q[:, j].min(), found.q[:, j].max()) for j in range(len(t.joints))]
        over = ", ".join(f"{name} {a:.4g} to {b:.4g}" for name, (a, b) in zip(t.joints, ends, strict=True))
        said = f"by {', '.join(t.actuators)}, over {over}", found.lines()[-1]
        lines += [f"    # {harmless(text)}" for text in said]
        for one in joint_numbers(found, gains):
            lines += [f"    {kind}(", f"        {names}=({json.dumps(re.escape(one.joint))},),"]
            for key, called in keys.items():
                value = one.values[key]
                if np.isfinite(value):
                    lines.append(f"        {called}={value:.6g},  # {one.said[key]}")
                else:
                    lines.append(f"        # {called}: no limit of the motors is known")
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
    """`<transmission>` of ros2_control's stock plugins, whose ratios are constant: those of home, errors said.

    `AnalysisError` for a linkage that is neither one joint by one motor nor a differential.
    """
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
    J = found.jacobian[found.solved]
    worst = 100.0 * np.abs(J - fit).max() / np.abs(home).max()
    first = 100.0 * np.abs(home - fit).max() / np.abs(home).max()
    root = ET.Element("transmission", name=f"{t.tree.name}_{t.joints[0]}")
    root.append(ET.Comment(f" ratios of home, off by {first:.2g} % there and by up to {worst:.2g} % over the range "))
    ET.SubElement(root, "plugin").text = f"transmission_interface/{kind}"
    for k, (name, ratio) in enumerate(zip(t.actuators, reductions, strict=True), start=1):
        element = ET.SubElement(root, "actuator", name=name, role=f"actuator{k}")
        ET.SubElement(element, "mechanical_reduction").text = f"{ratio:.9g}"
    for k, (name, ratio) in enumerate(zip(t.joints, joint_reductions, strict=True), start=1):
        element = ET.SubElement(root, "joint", name=name, role=f"joint{k}")
        ET.SubElement(element, "mechanical_reduction").text = f"{ratio:.9g}"
        # where the joint is when the motors are at zero, by these ratios
        ET.SubElement(element, "offset").text = f"{_offset(found, fit)[k - 1]:.9g}"
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def linkage_text(found: TransmissionRange) -> str:
    """`<transmission>` of ros2_control by the plugin of pkm_ros2_control, over the C of the linkage."""
    t = found.transmission
    root = ET.Element("transmission", name=f"{t.tree.name}_{t.joints[0]}")
    ET.SubElement(root, "plugin").text = "pkm_ros2_control/LinkageTransmission"
    for kind, names in (("actuator", t.actuators), ("joint", t.joints)):
        for k, name in enumerate(names, start=1):
            ET.SubElement(root, kind, name=name, role=f"{kind}{k}")
    ET.SubElement(root, "param", name="linkage").text = name_in_c(t)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _offset(found: TransmissionRange, fit: Array) -> Array:
    return np.asarray(found.transmission.home - np.linalg.solve(fit, found.actuators[-1]))
