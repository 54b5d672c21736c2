# SPDX-License-Identifier: Apache-2.0
"""The tasks of `pkm analyse` that ask about a domain: workspace, map, sweep, loci, regions, path."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line import question
from pkm_analysis.command_line.task_answers import Found, Task, add_output, add_picture
from pkm_analysis.requirements.names import IN_WORDS, KINDS

if TYPE_CHECKING:
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.workspace.largest import Box, Cylinder
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

MANY = 8  # most working modes of `--modes all`
NO_PATH = 3


def workspace_parser() -> argparse.ArgumentParser:
    """The command line of `workspace`."""
    p = question.parser(
        "workspace",
        "Where a robot can be: within reach, limits of all joints, and bounds of your own. Its size with an error,\n"
        "its border as a mesh, and at each point of it what stops the robot there.",
        "Exit status: 0 found, 1 there is none (empty, endless, a question with a fault), 2 wrong command line.",
    )
    p.add_argument("--tolerance", type=float, metavar="M", help="how far the border may be off [m]")
    p.add_argument("--mesh", metavar="FILE", help="border as .stl, .ply or .obj")
    add_picture(p)
    p.add_argument("--kind", choices=KINDS, help="positions over orientations, instead of a held orientation")
    p.add_argument("--turn", action="append", default=[], metavar="NAME=A:B", help="range of an angle for --kind")
    p.add_argument("--turn-steps", type=int, default=13, metavar="N", help="values of each angle tried (default: 13)")
    p.add_argument("--largest", action="store_true", help="find the largest box and the largest cylinder inside")
    _add_no_joint_limits(p)
    p.add_argument("--no-platform-limits", action="store_true", help="do without limits of the platform itself")
    return p


def _workspace(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    where = question.where(analysis, given)
    if given.kind:
        found = analysis.positions(
            given.kind,
            question.ranges_of(analysis, given.turn) or None,
            steps=given.turn_steps,
            ranges=where["ranges"],
            requirements=where["requirements"],
            tolerance=given.tolerance,
            resolution=where["resolution"],
        )
    else:
        if given.mesh:
            analysis.conditions(where["vary"], where["hold"], platform_limits=False).domain.check_surface()
        found = analysis.workspace(
            **where,
            tolerance=given.tolerance,
            joint_limits=not given.no_joint_limits,
            platform_limits=not given.no_platform_limits,
        )
    if given.mesh:
        found.save(given.mesh)
    inner: dict[str, Box | Cylinder] = {}
    lines = []
    for name, find in (("largest_box", found.largest_box), ("largest_cylinder", found.largest_cylinder)):
        try:
            if given.largest:
                inner[name] = find()
        except AnalysisError as none:  # the workspace is an answer without it
            lines.append(f"no {name.replace('_', ' ')}: {none}")
    numbers = {**found.to_dict(), **{name: one.to_dict() for name, one in inner.items()}}
    return Found(analysis.robot.name, "workspace", [found, *inner.values()], numbers, lines)


def map_parser() -> argparse.ArgumentParser:
    """The command line of `map`."""
    p = question.parser(
        "map",
        "A quantity over a slice of the workspace, or a volume ('--vary x,y,z', shown as slices and as\n"
        "surfaces of one value), in colour and with its unit, its worst point beside its mean, and the loci of\n"
        "singularities of type 1 and type 2 as curves.",
        textwrap.fill(f"Quantities: {IN_WORDS}.", 112) + "\n"
        "Exit status: 0 found, 1 nothing there, 2 wrong command line.",
    )
    p.add_argument("--quantity", default="type2", metavar="NAME", help="what is mapped (default: type2)")
    p.add_argument(
        "--layer", metavar="FILE", help="slices and surfaces as .glb, which 'pkm run --layers' and RViz show"
    )
    add_picture(p)
    return p


def _map(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    found = analysis.map(given.quantity, **question.where(analysis, given, slices=True))
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, found.quantity.name, [found])


def sweep_parser() -> argparse.ArgumentParser:
    """The command line of `sweep`."""
    p = question.parser(
        "sweep",
        "Statistics of a quantity over very many poses, on a grid or at random: mean, deviation, histogram, the least\n"
        "and the largest value with their poses, what stops the robot how often. Memory does not grow with the number.",
        "Exit status: 0 found, 1 nothing there, 2 wrong command line.",
    )
    p.add_argument("--quantity", default="type2", metavar="NAME", help="as for map (default: type2)")
    p.add_argument("--poses", type=float, default=1e6, metavar="N", help="how many, about (default: 1e6)")
    p.add_argument("--random", type=int, metavar="SEED", help="at random rather than on a grid")
    add_picture(p)
    return p


def _wrong_sweep(given: argparse.Namespace) -> str:
    if not 1.0 <= given.poses <= 1e15:
        return f"--poses {given.poses:g} is no number of poses"
    if given.random is not None and given.random < 0:
        return "--random takes a seed that is not negative"
    return ""


def _sweep(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    where = question.where(analysis, given)
    where.pop("resolution")
    found = analysis.sweep(given.quantity, **where, poses=int(given.poses), seed=given.random)
    return Found(analysis.robot.name, f"sweep of {found.quantity.name}", [found])


def loci_parser() -> argparse.ArgumentParser:
    """The command line of `loci`."""
    p = question.parser(
        "loci",
        "Singularities of type 1, type 2, of the constraints and inside limbs as surfaces over three coordinates,\n"
        "where the limbs reach: with their areas, as a picture, and as a layer for the browser page and RViz.",
        "Exit status: 0 found, 1 there is no answer, 2 wrong command line.",
    )
    p.add_argument("--layer", metavar="FILE", help="surfaces as .glb, which 'pkm run --layers' and RViz show")
    add_picture(p)
    return p


def _loci(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    where = question.where(analysis, given)
    where.pop("requirements")
    found = analysis.loci(**where)
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, "loci of singularities", [found])


def regions_parser() -> argparse.ArgumentParser:
    """The command line of `regions`."""
    p = question.parser(
        "regions",
        "The singularity-free regions of working modes: how large they are, which of them touch and through which\n"
        "singularity, and which assembly modes are in one region, so that the robot changes between them without one.",
        "Exit status: 0 found, 1 there is none, 2 wrong command line.",
    )
    text = f"working modes, as 0,1,2, home (which is 0), or all of them (at most {MANY}); home by default"
    p.add_argument("--modes", metavar="N,N", help=text)
    p.add_argument("--assembly", action="store_true", help="find home's assembly modes, and the region of each")
    _add_no_joint_limits(p)
    add_picture(p)
    return p


def _regions(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    where = question.where(analysis, given)
    found = analysis.regions(**where, modes=_modes(analysis, given.modes), joint_limits=not given.no_joint_limits)
    numbers, lines = found.to_dict(), []
    if given.assembly:
        assembled = found.assembly_modes()
        numbers["assembly_modes"] = [
            {"label": a.label, "mode": a.mode, "at": a.point.tolist(), "region": a.region} for a in assembled
        ]
        for a in assembled:
            place = found.graph.domain.place(a.point)
            lines.append(f"assembly mode {a.label} at {place}: region {a.region or 'none of these'}")
    return Found(analysis.robot.name, "regions", [found], numbers, lines)


def _modes(analysis: Analysis, text: str | None) -> list[int] | None:
    if text is None:
        return None
    if text == "all":
        return list(range(min(analysis.robot.kinematics.n_modes, MANY)))
    try:
        return [0 if word.strip() == "home" else int(word) for word in text.split(",")]
    except ValueError:
        raise AnalysisError(f"--modes {text}", "it cannot be read", "write numbers, as 0,1, or home, or all") from None


def path_parser() -> argparse.ArgumentParser:
    """The command line of `path`."""
    p = question.plain_parser(
        "path",
        "A path from one pose to another in one working mode that meets no singularity and keeps chosen\n"
        "margins, checked between its waypoints; or that there is none on a grid whose step is told.",
        f"Exit status: 0 found, 1 a question with a fault, 2 wrong command line, {NO_PATH} there is none.",
        "--from X=.. Y=.. --to X=.. Y=.. [options]",
    )
    text = "coordinates, home's where they are not named, such as x=0.1 yaw=20deg"
    p.add_argument("--from", nargs="+", default=[], metavar="NAME=VALUE", dest="start", help=text)
    p.add_argument("--to", nargs="+", required=True, metavar="NAME=VALUE", dest="end", help=text)
    p.add_argument("--that", action="append", default=[], metavar="BOUND", help="such as 'margin > 0.2'")
    p.add_argument("--range", action="append", default=[], metavar="NAME=A:B", help="where a path is looked for")
    question.add_mode(p)
    question.add_resolution(p)
    _add_no_joint_limits(p)
    p.add_argument("--prove", action="store_true", help="prove by intervals that it is inside and meets no singularity")
    question.add_assumed(p)
    add_picture(p)
    add_output(p)
    return p


def _path(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = question.asked(given, mechanism, sweeps)
    found = analysis.path(
        question.values_of(analysis, given.start),
        question.values_of(analysis, given.end),
        margins=given.that,
        ranges=question.ranges_of(analysis, given.range),
        joint_limits=not given.no_joint_limits,
        resolution=given.resolution,
    )
    proof = [found.prove()] if given.prove and found.found else []
    numbers = {**found.to_dict(), **({"proof": proof[0].to_dict()} if proof else {})}
    lines = [f"  {found.graph.domain.place(point)}" for point in found.waypoints]
    return Found(analysis.robot.name, "path", [found, *proof], numbers, lines, 0 if found.found else NO_PATH)


def _add_no_joint_limits(p: argparse.ArgumentParser) -> None:
    p.add_argument("--no-joint-limits", action="store_true", help="do without limits of joints")


TASKS = {
    "workspace": Task(workspace_parser, _workspace),
    "map": Task(map_parser, _map),
    "loci": Task(loci_parser, _loci),
    "regions": Task(regions_parser, _regions),
    "path": Task(path_parser, _path),
    "sweep": Task(sweep_parser, _sweep, _wrong_sweep),
}
