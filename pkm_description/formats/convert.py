# SPDX-License-Identifier: Apache-2.0
"""The command `pkm convert`: a robot as a file of another tool, with a list of what that cannot say."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from pkm_description.command_options import Parser, add_output, add_robot, write_output, wrong
from pkm_description.description_error import DescriptionError
from pkm_description.formats import DOUBT, USD, YAML
from pkm_description.formats.bodies_and_joints import REMARKED, SMALL, left_out_of, named, weak_passive_joints
from pkm_description.formats.mjcf_export import export_mjcf, gap_in_mujoco
from pkm_description.formats.sdf import to_sdf
from pkm_description.formats.urdf_dialects import to_constraints, to_tree, to_yaml
from pkm_description.formats.usd import to_usd, write_usd
from pkm_description.load import expand_told, load_mechanism, load_model, xacro_arguments
from pkm_description.mechanism import Mechanism
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.unit_slips import in_words, suspects
from pkm_description.urdf.urdf_plus import is_tree, parse, unread
from pkm_description.urdf.visuals import visuals_of
from pkm_description.urdf.xml_text import read_xml
from pkm_runtime.describable import counted
from pkm_runtime.errors import PkmError
from pkm_runtime.progress import progress

Robot = Mechanism | TreeModel


def _plus(mechanism: Robot) -> tuple[str, list[str]]:
    return mechanism.urdf, [f"not drawn: {problem}" for problem in visuals_of(mechanism)[1]]


def _mjcf(mechanism: Robot) -> tuple[str, list[str]]:
    drives = [n for n in mechanism.actuated_joints if mechanism.joint_named[n].drive.command_interfaces[0] != "effort"]  # type: ignore[union-attr]
    notes = [f"{REMARKED}: which bodies are base and platform, task coordinates", *left_out_of(mechanism)]
    links = read_xml(mechanism.urdf, "URDF text").findall("link")
    notes += named("meshes of", [e.get("name", "") for e in links if e.find("visual/geometry/mesh") is not None])
    ends = {j.name: (j.limits.lower, j.limits.upper, j.limits.velocity) for j in mechanism.joints}
    notes += named("limits of velocity of", [name for name, (_, _, most) in ends.items() if math.isfinite(most)])
    notes += named("limits of effort of passive joints,", weak_passive_joints(mechanism))
    one_end = [name for name, (low, high, _) in ends.items() if math.isfinite(low) != math.isfinite(high)]
    notes += named("ranges that are open at one end, of", one_end)
    if drives:
        notes.append(f"these drives become effort motors, and their own kind is {REMARKED}: {', '.join(drives)}")
    text = export_mjcf(mechanism)
    bodies = {e.get("name", ""): e for e in read_xml(text, "MJCF").iter("body")}
    passed_over = [e.get("name", "") for e in links if e.find("visual") is not None and e.get("name", "") not in bodies]
    notes += named("pictures of what weighs nothing,", [name for name in passed_over if name != mechanism.base_link])
    massless = [link.name for link in mechanism.links if link.inertial.massless and link.name in bodies]
    if light := [name for name in massless if bodies[name].find("inertial") is not None]:
        notes.append(f"bodies without mass get {SMALL:g} of the robot's: {', '.join(light)}")
    if find_spec("mujoco"):
        gap = gap_in_mujoco(text)
        apart = f"ends of loops come {gap:.2g} m or rad apart in MuJoCo while the robot falls for 0.2 s"
        unstable = "MuJoCo finds the robot unstable at a step of 2 ms: its lightest bodies need more armature or mass"
        notes.append(apart if gap < float("inf") else unstable)
    return text, notes


WRITERS: dict[str, Callable[[Robot], tuple[str, list[str]]]] = {
    "urdf+": _plus,
    "urdf+constraint": to_constraints,
    "urdf": to_tree,
    "yaml": to_yaml,
    "mjcf": _mjcf,
    "sdf": to_sdf,
    "usd": to_usd,
}
OF_BALLS = {"sdf": to_sdf, "usd": to_usd}  # which have ball joints
SUFFIXES = {"urdf": (".urdf", ".xml"), "mjcf": (".xml", ".mjcf"), "sdf": (".sdf", ".world"), "usd": USD}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(prog="pkm convert", description="Write a robot as a file of another tool.")
    add_robot(p)
    text = "format to write; default: as the file of -o ends, URDF+ for .urdf, .xml and without a file"
    p.add_argument("--to", choices=sorted(WRITERS), help=text)
    p.add_argument("--platform", metavar="BODY", help="the platform body, for files of other tools")
    p.add_argument("--base", metavar="BODY", help="the base body; default: the body fixed to the world")
    p.add_argument("--actuated", metavar="JOINTS", help="the driven joints, separated by commas")
    p.add_argument(
        "--balls", choices=("balls", "hinges"), default="balls", help="how to write ball joints (sdf and usd)"
    )
    add_output(p)
    return p


def _format_of(ending: str) -> str:
    if ending in SUFFIXES["urdf"]:
        return "urdf+"
    return "yaml" if ending in YAML else next((name for name in SUFFIXES if ending in SUFFIXES[name]), "urdf+")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    command = parser()
    given = command.parse_args(arguments)
    given.to = given.to or _format_of(Path(given.output or "").suffix)
    endings = SUFFIXES.get(given.to.partition("+")[0], YAML)
    if given.output and Path(given.output).suffix not in endings:
        command.error(f"-o {given.output}: {given.to} files end with {' or '.join(endings)}")
    written, taken = Path(given.output or "-"), Path(given.robot)
    if written.exists() and taken.exists() and written.samefile(taken):
        command.error(f"-o {written}: this is the file that is read; name another one")
    if given.balls == "hinges" and given.to not in OF_BALLS:
        command.error(f"--balls hinges is only for {' and '.join(OF_BALLS)}: remove it from --to {given.to}")
    try:
        named = xacro_arguments(given.xacro_args)
        named |= {key: getattr(given, key) for key in ("platform", "base", "actuated") if getattr(given, key)}
        with progress(f"converting {given.robot}"):
            mechanism, notes_of_reading = _loaded(given.robot, named)
            if given.balls == "hinges":
                text, notes = OF_BALLS[given.to](mechanism, ("spherical",))
            else:
                text, notes = WRITERS[given.to](mechanism)
        notes = (
            [one for one in notes_of_reading if not one.startswith(DOUBT)]
            + _units(mechanism)
            + [f"in the {given.to} file: {note}" for note in notes]
        )
        if given.to == "usd" and given.output:
            write_usd(text, given.output)
        else:
            write_output(text, given.output)
    except (PkmError, OSError) as error:
        return wrong("convert", error, "; name another file with -o")
    for note in notes:
        print(note, file=sys.stderr)
    return 0


def _loaded(file: str, named: dict[str, str]) -> tuple[Robot, list[str]]:
    """A robot, or a tree where a file is none and no platform is named, and what of the file was not taken."""
    try:
        text, _, notes_of_reading = expand_told(file, named)
        return (load_model if is_tree(text) and "platform" not in named else load_mechanism)(
            file, named
        ), notes_of_reading
    except DescriptionError as error:
        if named.get("platform"):
            raise
        tree = load_model(file, named)  # whose own error says more than that there is no platform
        notes_of_reading = expand_told(file, {"platform": "", **named})[2]
        clusters = counted(len(tree.clusters), "cluster")
        return tree, [f"read as a tree, with {clusters} of loops and no platform: {error}", *notes_of_reading]


def _units(mechanism: Robot) -> list[str]:
    """What nobody reads, and units other than SI that numbers of the file look like."""
    text, file = mechanism.urdf, mechanism.source
    root = read_xml(text, file)
    return unread(root) + in_words(suspects(parse(text, file, tree=True), root))
