# SPDX-License-Identifier: Apache-2.0
"""The command `pkm check`: what the suite makes of a robot's description, and what is wrong or worth a second look."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from pkm_description.command_options import NO, Parser, add_robot, wrong
from pkm_description.description_error import DescriptionError
from pkm_description.formats import DOUBT
from pkm_description.from_urdf import mechanism_from_urdf
from pkm_description.graph import ordered_tree, platform_chain
from pkm_description.load import (
    CORRECTIONS,
    compare_exported,
    expand_told,
    find_robot,
    load_model,
    xacro_arguments,
)
from pkm_description.loops.home import LONGEST
from pkm_description.mechanism import Joint, Loop, Mechanism
from pkm_description.urdf.unit_slips import Slip, Written, blamed, suspects, taken_as_radians
from pkm_description.urdf.urdf_plus import parse
from pkm_description.urdf.xacro_expansion import Argument, arguments_of
from pkm_description.urdf.xml_text import read_file, read_xml
from pkm_kinematics.kernels import records
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.load_verdicts import of_masses, of_velocities, of_weight
from pkm_kinematics.status import Status
from pkm_kinematics.verdicts import (
    NEAR_SINGULAR,
    Verdict,
    of_cosines,
    of_drives,
    of_margins,
    of_misfits,
    of_singularity,
    of_starts,
    of_units,
    units_of_tree,
)
from pkm_runtime.describable import ROUNDING, alike, counted, in_degrees, measure
from pkm_runtime.errors import PkmError, UsageError
from pkm_runtime.json_text import json_text
from pkm_runtime.kernels.kernel_cache import making

MODES_SHOWN, REMARKS_SHOWN = 16, 4
MARGINS = ("type1", "type2", "force_amplification", "constraint_hold", "limb_regularity", "characteristic_length")


@dataclass
class Report:
    """Everything that the check found; lengths in m, angles in rad. Empty where the check did not get that far."""

    source: str
    usable: bool = False
    verdicts: list[Verdict] = field(default_factory=list)  # what the numbers mean; why it is unusable: of level "error"
    remarks: list[str] = field(default_factory=list)
    description: dict[str, Any] = field(default_factory=dict)  # name, base, platform, links, joints, loops, limbs
    mobility: dict[str, Any] = field(default_factory=dict)
    limbs: list[dict[str, Any]] = field(default_factory=list)
    articulated_platform: dict[str, Any] = field(default_factory=dict)  # as a limb: what joins limbs and platform link
    actuators: list[dict[str, Any]] = field(default_factory=list)
    home: dict[str, Any] = field(default_factory=dict)
    modes: dict[str, Any] = field(default_factory=dict)
    singularity: dict[str, float] = field(default_factory=dict)
    tree: list[str] = field(default_factory=list)  # the graph as lines of text
    loops: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)  # of a tree without platform


def examine(
    source: str,
    xacro_args: dict[str, str] | None = None,
    modes: bool = True,
    progress: Callable[[str], None] = lambda phase: None,
) -> Report:
    """Load a robot (as `load_mechanism` does) and report on it. Never raises for a bad description.

    `modes` false skips the slow search for modes; `progress` is told each phase that may take long.
    """
    report = Report(source if not source.lstrip().startswith("<") else "text")
    try:
        progress("reading the description")
        text, origin = _expanded(report, source, xacro_args)
        drawn = {name: value for name, value in (xacro_args or {}).items() if name != CORRECTIONS}
        _sketch(report, text, Path(origin) if origin.endswith(".xacro") else None, drawn)
        progress(f"closing the loops at home (no new attempt after {LONGEST:g} s)")
        mechanism = mechanism_from_urdf(text, origin)
        _describe(report, mechanism)
        progress("preparing the solvers")
        kinematics = Kinematics(mechanism)
        _solve(report, kinematics)
        if modes and not kinematics.redundant_names:
            progress("searching for working and assembly modes (--no-modes skips this)")
            _list_modes(report, kinematics)
    except DescriptionError as error:
        report.clusters = _clusters(report, source, xacro_args or {})
        remedy = "use load_model and pkm transmission, or name one: --xacro-args platform:=BODY"
        alone = Verdict("warning", "platform", None, f"it is a tree, no robot with one platform: {error}", remedy)
        report.verdicts.append(alone if report.clusters else _refusal(error))
    except PkmError as error:
        report.verdicts.append(Verdict("error", f"robot {report.source}", None, *_told(error)))
    report.usable = not any(verdict.level == "error" for verdict in report.verdicts)
    return report


def _clusters(report: Report, source: str, arguments: Mapping[str, str]) -> list[str]:
    """What a file is as a tree with clusters of loops, in lines; none where it is no such tree, or names a platform."""
    with contextlib.suppress(PkmError):
        tree = None if arguments.get("platform") else load_model(source, arguments)
        if tree is not None and tree.clusters and not tree.platform_link:
            report.verdicts += [one for one in units_of_tree(tree) if one not in report.verdicts]
            judged = tuple(f"{one.about}: " for one in report.verdicts)
            report.remarks = [note for note in tree.notes if not note.startswith(judged)]
            return str(tree).splitlines()
    return []


def _expanded(report: Report, source: str, arguments: Mapping[str, str] | None) -> tuple[str, str]:
    """The text of a robot and its file; without a text, whether numbers in other units are why."""
    try:
        text, origin, notes = expand_told(source, arguments)
        report.remarks += [note for note in notes if not note.startswith(DOUBT)]
        return text, origin
    except DescriptionError as error:
        path = Path(source)
        if "which has no value" in error.problem and path.is_file():
            report.verdicts += of_misfits(lambda slip: blamed(path, arguments, slip))
        raise


def _told(error: PkmError) -> tuple[str, str]:
    if isinstance(error, UsageError):
        return error.problem, error.remedy
    return str(error), "see the docs on descriptions"


def _refusal(error: DescriptionError) -> Verdict:
    """What the loader refuses. Verdicts tell wrong units in warnings, more exactly than the loader can."""
    if isinstance(error.__cause__, DescriptionError):
        plain = error.__cause__
        remedy = f"first correct the units named in the warnings above; if the error remains: {plain.remedy}"
        return Verdict("error", plain.element, None, plain.problem, remedy)
    return Verdict("error", error.element, None, error.problem, error.remedy)


def _sketch(report: Report, text: str, source: Path | None, arguments: Mapping[str, str] | None) -> None:
    """The graph alone, to show even if the loops do not close."""
    with contextlib.suppress(DescriptionError):  # told when the mechanism is built
        parsed = parse(text)
        joints = ordered_tree(parsed.links, parsed.joints, parsed.base_link)
        chain = platform_chain(parsed.links, joints, parsed.loops, parsed.platform_link)
        report.tree = _tree(joints, parsed.loops, {parsed.base_link: "base", parsed.platform_link: "platform"}, chain)
        report.loops = [
            f"{loop.name}: {loop.type.value}, {loop.predecessor} -- {loop.successor}" for loop in parsed.loops
        ]
        found = suspects(parsed, read_xml(text, "text"))
        mass = sum(link.inertial.mass for link in parsed.links)

        def blame(slip: Slip) -> Sequence[Written]:
            return blamed(source, arguments, slip) if source is not None else ()

        report.verdicts += of_units(found, mass, blame)
        report.verdicts += [] if found else of_starts(parsed)
        known = {verdict.about for verdict in report.verdicts}
        angles = [] if source is None else taken_as_radians(read_file(source))
        report.verdicts += of_cosines([one for one in angles if one.place not in known])


def _describe(report: Report, mechanism: Mechanism) -> None:
    m = mechanism.mobility
    report.description = {
        "name": mechanism.name,
        "base_link": mechanism.base_link,
        "platform_link": mechanism.platform_link,
        "links": len(mechanism.links),
        "joints": len(mechanism.moving_joints),
        "loops": len(mechanism.loops),
        "mass": float(sum(link.inertial.mass for link in mechanism.links)),
        "task_coordinates": [name for name in mechanism.platform_chain if mechanism.joint_named[name].type.dof],
    }
    report.mobility = {**asdict(m), "redundant_actuators": m.redundant_actuators}
    report.limbs = [{**asdict(limb), "blocks": []} for limb in mechanism.limbs]
    if mechanism.articulated_platform is not None:
        report.articulated_platform = {**asdict(mechanism.articulated_platform), "blocks": []}
    report.remarks += _remarks(mechanism)
    report.verdicts += [*of_drives(mechanism), *of_velocities(mechanism), *of_masses(mechanism)]


def _remarks(mechanism: Mechanism) -> list[str]:
    m = mechanism.mobility
    notes = []
    if mechanism.redundant_joints:
        names = ", ".join(mechanism.redundant_joints)
        are = "is a coordinate" if len(mechanism.redundant_joints) == 1 else "are coordinates"
        notes.append(f"kinematic redundancy: beside the pose, {names} {are}; modes are not listed")
    if m.singular_home:
        notes.append("home is a singularity: its degrees of freedom differ from those of nearby poses")
    if m.uncontrolled:
        notes.append(
            f"the actuators do not control {m.uncontrolled} degree(s) of freedom of the platform; the file accepts this"
        )
    if m.redundant_actuators:
        within = " within their ranges" * bool(mechanism.one_way_actuators.any())
        notes.append(f"{m.redundant_actuators} redundant actuator(s): efforts have minimum norm{within}")
    if m.redundant_constraints:
        notes.append(
            f"overconstrained: {m.redundant_constraints} redundant equation(s) of the loops; "
            "the real machine needs exact lengths and directions, the solvers accept this"
        )
    if m.idle:
        notes.append(f"{m.idle} idle degree(s) of freedom without effect on the platform, such as the spin of rods")
    if m.left_out:
        branch = ", ".join(mechanism.platform_chain)
        notes.append(
            f"the platform's own branch ({branch}) removes {m.left_out} degree(s) of freedom that the limbs permit. "
            "This is correct if the branch is a real part, such as an ankle's universal joint, or if these degrees of "
            "freedom do not matter, such as the rotation of a pen about its pin. If the branch only names the task "
            "coordinates, the real platform is loose"
        )
    if not mechanism.platform_chain:
        notes.append(
            "the platform has no branch of virtual joints: in pkm analyse, its x, y, z, yaw, pitch and roll count from "
            "the platform at home, along its axes there; with a branch, they are positions of its joints"
        )
    for limb in mechanism.limbs:
        redundant = any(f"{one}/".startswith(f"{name}/") for one in mechanism.redundant_joints for name in limb.joints)
        if not limb.actuated and not redundant:
            notes.append(f"limb {limb.name} has no actuator: it only guides the platform")
        if len(limb.actuated) > 1:
            notes.append(f"limb {limb.name} has {len(limb.actuated)} actuators")
    for joint in mechanism.joints:
        if np.isfinite(joint.limits.lower) != np.isfinite(joint.limits.upper):
            notes.append(
                f"joint {joint.name} has one end of its range only; other tools read 0 for the other, here none"
            )
    for name in mechanism.actuated_joints:
        limits = mechanism.joint_named[name].limits
        open_ends = [what for what in ("velocity", "effort") if not np.isfinite(getattr(limits, what))]
        if open_ends:
            notes.append(f"joint {name} is actuated and has no limit of {' and '.join(open_ends)}")
    return notes


def _tree(joints: Sequence[Joint], loops: Sequence[Loop], marked: dict[str, str], chain: Sequence[str]) -> list[str]:
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    ends: dict[str, list[str]] = {}
    for loop in loops:
        for link in (loop.predecessor, loop.successor):
            ends.setdefault(link, []).append(loop.name)

    def label(link: str) -> str:
        mark = f" [{marked[link]}]" if link in marked else ""
        return f"{link}{mark}" + (f"  ~ {', '.join(ends[link])}" if link in ends else "")

    def branch(link: str, prefix: str) -> list[str]:
        lines = []
        for joint in children.get(link, []):
            last = joint is children[link][-1]
            driven = ", driven" if joint.actuated else ""
            virtual = ", task coordinate" if joint.name in chain else ""
            geared = f", mimics {joint.mimic.joint}" if joint.mimic else ""
            text = f"({joint.name}: {joint.type.value}{driven}{virtual}{geared}) {label(joint.child)}"
            lines.append(f"{prefix}{'└─ ' if last else '├─ '}{text}")
            lines += branch(joint.child, prefix + ("   " if last else "│  "))
        return lines

    return [label(next(iter(marked))), *branch(next(iter(marked)), "")]


def _solve(report: Report, kinematics: Kinematics) -> None:
    mechanism = kinematics.mechanism
    parts = [*report.limbs, *([report.articulated_platform] if report.articulated_platform else [])]
    for block in kinematics.tables.blocks:
        entry = _block(kinematics, block)
        owner = next((part for part in parts if _belongs(entry, part)), None)
        if owner is None:
            owner = {"name": "(coupled)", "joints": [], "actuated": [], "loops": [], "blocks": []}
            report.limbs.append(owner)
            parts.append(owner)
        owner["blocks"].append(entry)
    home = kinematics.home
    column = {name: k for k, name in enumerate(kinematics.joint_names)}
    report.home = {
        "pose": home.tolist(),
        "rpy": Rotation.from_quat(home[3:]).as_euler("xyz").tolist(),
        "joints": {name: float(kinematics.home_joints[k]) for name, k in column.items()},
    }
    for name in kinematics.actuated_names:
        joint = mechanism.joint_named[name]
        report.actuators.append(
            {
                "joint": name,
                "type": joint.type.value,
                "home": float(kinematics.home_joints[column[name]]),
                **{end: value if np.isfinite(value) else None for end, value in asdict(joint.limits).items()},
                "command_interfaces": list(joint.drive.command_interfaces) if joint.drive else [],
                "armature": joint.drive.armature if joint.drive else 0.0,
            }
        )
    at_home = kinematics.inverse(home)
    if at_home.status not in (Status.CONVERGED, Status.SINGULAR):
        report.remarks.append(f"home: {at_home.reason()}")
    margins = kinematics.singularity(home)
    report.singularity = {name: float(getattr(margins, name)) for name in MARGINS}
    if report.singularity["constraint_hold"] < NEAR_SINGULAR:
        report.remarks.append("home is at or near a constraint singularity: the limbs hardly constrain the platform")
    report.verdicts += [*of_margins(report.singularity), *of_singularity(kinematics), *of_weight(kinematics)]


def _list_modes(report: Report, kinematics: Kinematics) -> None:
    count = kinematics.n_modes
    found = kinematics.forward_all(kinematics.home_joints[kinematics.engine.actuated_column])
    report.modes = {
        "working": count,
        "working_labels": [kinematics.mode_label(k) for k in range(min(count, MODES_SHOWN))],
        "assembly": len(found),
        "assembly_method": kinematics.assembly_method,
        "assembly_certified": found.certified,
        "assembly_caution": found.caution,
        "assembly_modes": [{"label": one.label, "pose": np.asarray(one.pose).tolist()} for one in found],
    }


def _block(kinematics: Kinematics, block: Any) -> dict[str, Any]:
    tables = kinematics.tables
    span = range(int(block["start"]), int(block["start"] + block["count"]))
    first = int(block["closure_start"])
    kinds = [int(k) for k in tables.closures["kind"][first : first + int(block["closure_count"])]]
    names = ("spherical", "universal", "revolute", "cylindrical", "prismatic", "planar", "fixed")
    if block["solver"] == records.CLOSED_FORM:
        where = "on a sphere" if block["spherical"] else "in a plane" if block["planar"] else "in space"
        how = f"closed form {where}, {int(block['branches'])} branch{'es' if block['branches'] > 1 else ''}"
    elif block["solver"] == records.GIVEN:
        how = "nothing: its position is a coordinate beside the pose"
    elif block["count"]:
        how = "iteration (Newton's method)"
    else:
        how = "nothing to solve"
    return {
        "joints": [tables.names[i] for i in span],
        "closures": [names[k] for k in kinds],
        "equations": int(block["rows"]),
        "idle": int(block["idle"]) if kinds else 0,
        "solved_by": how,
    }


def _belongs(block: dict[str, Any], limb: dict[str, Any]) -> bool:
    return any(name.split("/")[0] in limb["joints"] for name in block["joints"])


# -- text --------------------------------------------------------------------------------------------------------------


def as_text(report: Report, everything: bool = True) -> str:
    """The report for a person: what is wrong comes first. Not `everything`: some 20 lines."""
    everything = everything or bool(report.clusters)
    warnings = [verdict for verdict in report.verdicts if verdict.level == "warning"]
    lines = [f"{report.source}: {'usable' if report.usable else 'NOT usable'}, {counted(len(warnings), 'warning')}"]
    lines += [line for verdict in warnings for line in _verdict_text(verdict)]
    for error in (verdict for verdict in report.verdicts if verdict.level == "error"):
        lines += ["", f"ERROR {error.about}", f"  problem: {error.meaning}", f"  remedy:  {error.remedy}"]
    lines += ["", *(_everything(report) if everything else _in_short(report))]
    return "\n".join(lines).rstrip("\n")


def _in_short(report: Report) -> list[str]:
    if not report.usable:
        return ["--all shows the graph, as far as it was read"] if report.tree else []
    lines = [_robot_text(report), *_mobility_text(report)[::2], *_home_text(report)]
    lines += alike({a["joint"]: _actuator_text(a) for a in report.actuators})
    if report.modes:
        lines += _modes_text(report.modes)[:2]
    lines += [line for verdict in report.verdicts if verdict.level == "ok" for line in _verdict_text(verdict)]
    lines += [f"  - {remark}" for remark in report.remarks[:REMARKS_SHOWN]]
    more = len(report.remarks) - REMARKS_SHOWN
    remarks = f"{counted(more, 'more remark')}, " if more > 0 else ""
    return [*lines, f"--all shows more: {remarks}the graph, the solution of each limb, the modes, the margins"]


def _everything(report: Report) -> list[str]:
    lines = list(report.clusters)
    if report.description:
        lines += [_robot_text(report), *_mobility_text(report)]
    if report.tree:
        lines += ["", "Graph (~: loops that end at this link)", *(f"  {line}" for line in report.tree)]
        lines += ["", "Loops", *(f"  {line}" for line in report.loops)]
    if report.description:
        lines += ["", "Limbs", *(line for limb in report.limbs for line in _limb_text(limb))]
    if report.articulated_platform:
        lines += ["", "Articulated platform", *_limb_text(report.articulated_platform)]
    if report.home:
        lines += ["", "Actuators", *(f"  {a['joint']}: {_actuator_text(a)}" for a in report.actuators)]
        lines += ["", *_home_text(report)]
    if report.modes:
        lines += ["", *_modes_text(report.modes)]
    if report.singularity:
        lines += _singularity_text(report.singularity)
    if report.remarks:
        lines += ["", "Remarks", *(f"  - {line}" for line in report.remarks)]
    good = [verdict for verdict in report.verdicts if verdict.level == "ok"]
    return lines + (["", "Verdicts", *(line for one in good for line in _verdict_text(one))] if good else [])


def _robot_text(report: Report) -> str:
    d = report.description
    counts = f"{d['links']} links, {d['joints']} moving joints, {d['loops']} loops"
    return f"Robot {d['name']}: {counts}, {d['mass']:.4g} kg"


def _home_text(report: Report) -> list[str]:
    pose, rpy = report.home["pose"], report.home["rpy"]
    return [f"Home  xyz {_vector(pose[:3])} m, rpy {_vector(np.degrees(rpy))} deg"]


def _mobility_text(report: Report) -> list[str]:
    m = report.mobility
    lines = [
        f"Mobility  {m['platform']} ({m['motion']}), {m['actuators']} actuator(s), {m['idle']} idle",
        f"  Chebychev-Gruebler-Kutzbach count {m['gruebler']}{_counted_branch(report)}, "
        f"redundant constraints {m['redundant_constraints']}",
    ]
    if report.description["task_coordinates"]:
        lines.append(f"  task coordinates: {', '.join(report.description['task_coordinates'])}")
    return lines


def _counted_branch(report: Report) -> str:
    """What the count becomes if the platform's branch holds the platform, too; empty if it does not."""
    chain = report.description["task_coordinates"]
    if not report.mobility["left_out"]:
        return ""
    limbs = " of the limbs, the platform free"
    if report.mobility["redundant_constraints"]:  # which the count takes for others
        return limbs
    joint = "the branch of the platform as a joint of its own"
    return f"{limbs}; {report.mobility['gruebler'] - 6 + len(chain)} with {joint}"


def _limb_text(limb: dict[str, Any]) -> list[str]:
    driven = ", ".join(limb["actuated"]) or "none"
    loops = ", ".join(limb["loops"]) or "none"
    count = len(limb["joints"])
    lines = [f"  {limb['name']}: {count} joint{'s' if count != 1 else ''}, driven: {driven}, loops: {loops}"]
    for block in limb["blocks"]:
        idle = f", {block['idle']} idle" if block["idle"] else ""
        lines.append(
            f"    {', '.join(block['joints']) or 'no joint'} | {', '.join(block['closures']) or 'no'} closure, "
            f"{block['equations']} equations{idle}: {block['solved_by']}"
        )
    return lines


def _actuator_text(a: dict[str, Any]) -> str:
    position, force = ("m", "N") if a["type"] == "prismatic" else ("rad", "N m")
    factor, unit = in_degrees(position)
    lower = "-inf" if a["lower"] is None else measure(factor * a["lower"])
    home, upper = measure(factor * a["home"]), _or_none(a["upper"], unit, factor)
    return (
        f"{a['type']}, home {home} {unit}, range {lower} to {upper}, "
        f"at most {_or_none(a['velocity'], f'{unit}/s', factor)}, {_or_none(a['effort'], force)}"
    )


def _or_none(value: float | None, unit: str, factor: float = 1.0) -> str:
    return f"inf {unit}" if value is None else f"{measure(factor * value)} {unit}"


def _modes_text(modes: dict[str, Any]) -> list[str]:
    labels = modes["working_labels"]
    listed = f" ({', '.join(labels)}{', ...' if len(labels) < modes['working'] else ''})" if len(labels) > 1 else ""
    trust = "every real one" if modes["assembly_certified"] else modes["assembly_caution"]
    lines = [f"Working modes at home  {modes['working']}{listed}"]
    lines.append(f"Assembly modes at home  {modes['assembly']} by method '{modes['assembly_method']}': {trust}")
    if labels != ["only"]:
        lines.append(
            "  working: a sign per limb with two solutions for a pose, in the order of the limbs; +: the solution "
            "at home"
        )
    if len(modes["assembly_modes"]) > 1:
        lines.append(f"  assembly: {_assembly_signs(modes)}, and a number; all have the same drive positions")
    for mode in modes["assembly_modes"][:MODES_SHOWN]:
        lines.append(f"  {mode['label']}: xyz {_vector(mode['pose'][:3])} m, quaternion {_vector(mode['pose'][3:])}")
    return lines


def _assembly_signs(modes: dict[str, Any]) -> str:
    labels = [mode["label"] for mode in modes["assembly_modes"]]
    if any(label.startswith("redundant") for label in labels):
        return "redundant: with more drives than degrees of freedom, no sign distinguishes them"
    unknown = "?: the robot has no such sign, or it is unknown" if any(la.startswith("?") for la in labels) else ""
    sign = "+ or -: the side of the type 2 singularities between them"
    return "; ".join(filter(None, (sign if any(la[0] in "+-" for la in labels) else "", unknown)))


def _singularity_text(s: dict[str, float]) -> list[str]:
    return [
        "",
        f"Margins from singularity at home (rotations at {s['characteristic_length']:.4g} m)",
        f"  type 1: slowest platform speed at unit actuator speed {measure(s['type1'])}",
        f"  type 2: slowest actuator speed at unit platform speed {measure(s['type2'])}, "
        f"force amplification {measure(s['force_amplification'])}",
        f"  constraint: {measure(s['constraint_hold'])}; inside the limbs: {measure(s['limb_regularity'])}",
    ]


def _verdict_text(verdict: Verdict) -> list[str]:
    number = "" if verdict.number is None else f" {measure(verdict.number)}"
    lines = [f"  {verdict.level + ':':9}{verdict.about}{number}: {verdict.meaning}"]
    return lines + ([f"           remedy: {verdict.remedy}"] if verdict.remedy else [])


def _vector(values: Sequence[float]) -> str:
    return " ".join(f"{value:.5g}" if abs(value) > ROUNDING else "0" for value in values)


def _arguments_text(path: Path | None) -> str:
    found = [] if path is None or path.suffix != ".xacro" else arguments_of(path)
    width = [
        max(len(getattr(one, what)) for one in found or [Argument("", "")]) for what in ("name", "unit", "meaning")
    ]
    rows = [f"{a.name:{width[0]}}  {a.unit:{width[1]}}  {a.meaning:{width[2]}}  {a.default}" for a in found]
    return "\n".join(rows or ["its file has no arguments"])


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog="pkm check",
        description="Check the URDF+ description of a parallel robot and print the results. "
        "Lengths in m, angles in degrees (with --json in rad), efforts in N or N m.",
        epilog="Exit status: 0 usable, 1 not usable, 2 no such robot, or a wrong command line.",
    )
    add_robot(p)
    p.add_argument("--json", action="store_true", help="print the report as JSON (infinite or undefined: null)")
    p.add_argument("--all", action="store_true", help="also print the graph, limbs, modes and margins")
    p.add_argument("--args", action="store_true", help="list the arguments of the robot's file, set with --xacro-args")
    p.add_argument("--no-modes", action="store_true", help="skip the search for working and assembly modes")
    p.add_argument(
        "--exported",
        metavar="DIR",
        help="only check whether C from pkm export or pkm transmission in a folder belongs to this robot",
    )
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 0 where the robot can be used, 1 where it cannot, 2 where there is none."""
    command = parser()
    given = command.parse_args(arguments)
    try:
        xacro_args = xacro_arguments(given.xacro_args)
    except DescriptionError as error:
        command.error(str(error))
    try:
        path = None if given.robot.lstrip().startswith("<") else find_robot(given.robot)
        if given.args:
            print(_arguments_text(path))
            return 0
    except DescriptionError as error:  # nothing to be judged
        return wrong("check", error)
    if given.exported:
        try:
            print(compare_exported(given.robot, xacro_args, given.exported))
        except DescriptionError as error:
            print(f"pkm check: {error}", file=sys.stderr)
            return NO
        return 0
    phases = ["checking the robot"]
    with making(phases[0], lambda: f"{phases[0]}: {phases[-1]}"):
        report = examine(given.robot, xacro_args, not given.no_modes, phases.append)
    print(json_text(asdict(report)) if given.json else as_text(report, given.all))
    return 0 if report.usable else NO


if __name__ == "__main__":
    sys.exit(main())
