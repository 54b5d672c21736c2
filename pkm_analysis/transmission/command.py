# SPDX-License-Identifier: Apache-2.0
"""The command `pkm transmission`: what a linkage does to a joint, and what other tools are told of it."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from pkm_analysis.analysis_errors import PICTURES, AnalysisError, check_ending
from pkm_analysis.drawing.sheet import write
from pkm_analysis.transmission.over_range import TransmissionRange, over_range, read_ranges
from pkm_analysis.transmission.pictures import transmission_picture
from pkm_analysis.transmission.told_to_others import (
    Gains,
    csv_text,
    isaaclab_text,
    linkage_text,
    mjlab_text,
    ros2_control_text,
)
from pkm_description.command_options import add_robot, write_files, write_output
from pkm_description.load import load_model, xacro_arguments
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.unit_slips import suspects
from pkm_description.urdf.urdf_plus import parse
from pkm_description.urdf.xml_text import read_xml
from pkm_dynamics.transmission.in_c import name_in_c, transmission_in_c
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.verdicts import of_units
from pkm_runtime.errors import PkmError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(prog="pkm transmission", description="Say what a linkage does to a joint.")
    add_robot(p)
    p.add_argument(
        "--joints",
        metavar="JOINTS",
        default="",
        help="joints, separated by commas (a name with a comma in double quotes); default: all that loops leave",
    )
    p.add_argument(
        "--actuators",
        metavar="JOINTS",
        default="",
        help="joints with a motor, as in --joints; by default the file's",
    )
    p.add_argument(
        "--range",
        nargs="+",
        default=[],
        metavar="NAME=A:B",
        help="ranges, such as x=-300mm:300mm yaw=-10:10deg",
    )
    p.add_argument(
        "--list", action="store_true", help="only list the clusters of loops, with their joints and actuators"
    )
    p.add_argument(
        "--kp-motor",
        type=float,
        metavar="K",
        help="stiffness of each motor [N m/rad or N/m] that joints' gains are made of",
    )
    p.add_argument(
        "--kd-motor",
        type=float,
        metavar="D",
        help="damping of each motor [N m s/rad or N s/m] that joints' gains are made of",
    )
    p.add_argument("--picture", metavar="FILE", help="picture as .png, .svg or .pdf")
    p.add_argument(
        "--csv", metavar="FILE", help="write positions, ratios, inertia and efforts over the range as a table"
    )
    p.add_argument("--mjlab", metavar="FILE", help="write an actuator configuration of mjlab, in Python")
    p.add_argument("--isaaclab", metavar="FILE", help="write an actuator configuration of Isaac Lab, in Python")
    p.add_argument("--c", metavar="DIR", help="write a header and a source in C99 for a control loop into a folder")
    p.add_argument(
        "--ros2-control",
        "--ros-control",
        dest="ros_control",
        metavar="FILE",
        help="write a <transmission> of ros2_control: with --c our plugin's, else a stock one's with home's ratios",
    )
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 1 for what cannot be done as asked."""
    given = parser().parse_args(arguments)
    try:
        return _run(given)
    except (PkmError, OSError) as error:
        print(f"pkm transmission: {error}", file=sys.stderr)
        return 1


def _names(text: str) -> tuple[str, ...]:
    """Names apart by commas; those with a comma are in double quotes."""
    return tuple(name for row in csv.reader([text], skipinitialspace=True) for name in row if name)


def _run(given: argparse.Namespace) -> int:
    gains = Gains(given.kp_motor, given.kd_motor)
    if given.picture:
        check_ending("picture", given.picture, PICTURES)  # before the work
    tree = load_model(given.robot, xacro_arguments(given.xacro_args))
    if given.list:
        print(tree)
        return 0
    _warn_of_units(tree)
    joints, actuators = (_names(text) for text in (given.joints, given.actuators))
    # without names each linkage by itself
    asked = [joints] if joints else [one.independent for one in tree.clusters if one.actuators] or [()]
    parts = [Transmission(tree, one, actuators) for one in asked]
    names = {name for t in parts for name in t.joints}
    ranges = read_ranges(given.range, tree, names)
    found = [over_range(t, {name: ranges[name] for name in t.joints if name in ranges}) for t in parts]
    for one in found:
        print(one.transmission, *one.lines(), sep="\n")
    if given.picture:
        write(transmission_picture(_only(found)), given.picture)
    for file, text in (
        (given.csv, lambda: csv_text(_only(found))),
        (given.mjlab, lambda: mjlab_text(found, gains)),
        (given.isaaclab, lambda: isaaclab_text(found, gains)),
        (given.ros_control, lambda: (linkage_text if given.c else ros2_control_text)(_only(found))),
    ):
        if file:
            write_output(text(), file)
    if given.c:
        t = _only(found).transmission
        write_files(Path(given.c), transmission_in_c(t, name_in_c(t)), "transmission")
    return 0


def _warn_of_units(tree: TreeModel) -> None:
    """Print what `pkm check` warns of: numbers that look like degrees or millimetres."""
    found = suspects(parse(tree.urdf, tree.source, tree=True), read_xml(tree.urdf, tree.source))
    for one in of_units(found, sum(link.inertial.mass for link in tree.links)):
        print(f"pkm transmission: warning: {one.about}: {one.meaning}; {one.remedy}", file=sys.stderr)


def _only(found: list[TransmissionRange]) -> TransmissionRange:
    """The one linkage of a picture or a table."""
    if len(found) > 1:
        joints = " or ".join(",".join(one.transmission.joints) for one in found)
        raise AnalysisError("--joints", f"the robot has {len(found)} linkages", f"name those of one: {joints}")
    return found[0]


if __name__ == "__main__":
    sys.exit(main())
