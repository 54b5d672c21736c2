# SPDX-License-Identifier: Apache-2.0
"""The tasks of `pkm analyse` that ask about a domain: workspace, map, sweep, loci, regions, path, prove."""

from __future__ import annotations

import argparse
import importlib
import textwrap
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import asked, over_a_domain, parser, ranges_of, values_of, where
from pkm_analysis.command_line.task_answers import MOTIONS, Found, Task
from pkm_analysis.requirements.grammar import IN_WORDS, KINDS, MOST_BOXES, PROVED, RESOLUTION
from pkm_runtime import sweeps as chunks

if TYPE_CHECKING:
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.proof.halving import Proof, Settings
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

MANY = 8  # most working modes of `--modes all`
NO_PATH = 3
EXIT = "Exit status: 0 found, 1 there is none, or a question with a fault, 2 wrong command line."
REFUTED, NO_ANSWER, UNDECIDED = 1, 2, 3


def workspace_parser() -> argparse.ArgumentParser:
    """The command line of `workspace`."""
    p = over_a_domain(
        "workspace",
        "Where a robot can be: within reach, limits of all joints, and bounds of your own. Its size with an error,\n"
        "its border as a mesh, and at each point of it what stops the robot there.",
        EXIT,
        "--no-joint-limits",
    )
    p.add_argument("--tolerance", type=float, metavar="M", help="how far the border may be off [m]")
    p.add_argument("--mesh", metavar="FILE", help="border as .stl, .ply or .obj")
    p.add_argument("--kind", choices=KINDS, help="positions over orientations, instead of a held orientation")
    text = "ranges of angles for --kind, such as yaw=-20:20deg"
    p.add_argument("--turn", nargs="+", action="extend", default=[], metavar="NAME=A:B", help=text)
    p.add_argument("--turn-steps", type=int, default=13, metavar="N", help="values of each angle tried (default: 13)")
    p.add_argument("--largest", action="store_true", help="find the largest box and the largest cylinder inside")
    p.add_argument("--no-platform-limits", action="store_true", help="do without limits of the platform itself")
    return p


def _workspace(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at = {**where(analysis, given), "tolerance": given.tolerance}
    if given.kind:
        turn = ranges_of(analysis.robot.coordinates, given.turn) or None
        at = {name: value for name, value in at.items() if name not in ("vary", "hold")}
        found = analysis.positions(given.kind, turn, steps=given.turn_steps, **at)
    else:
        if given.mesh:
            analysis.conditions(at["vary"], at["hold"], platform_limits=False).domain.check_surface()
        at |= {"joint_limits": not given.no_joint_limits, "platform_limits": not given.no_platform_limits}
        found = analysis.workspace(**at)
    if given.mesh:
        found.save(given.mesh)
    inner: dict[str, Any] = {}
    lines = []
    for name in ("largest_box", "largest_cylinder") if given.largest else ():
        try:
            inner[name] = getattr(found, name)()
        except AnalysisError as none:  # the workspace is an answer without it
            lines.append(f"no {name.replace('_', ' ')}: {none}")
    numbers = {**found.to_dict(), **{name: one.to_dict() for name, one in inner.items()}}
    return Found(analysis.robot.name, "workspace", [found, *inner.values()], numbers, lines)


def tilt_parser() -> argparse.ArgumentParser:
    """The command line of `tilt`."""
    p = parser(
        "tilt",
        "How far the platform can tilt in every direction at one place, and what stops it there.",
        EXIT,
        options=("--hold", "--require", "--mode", "--stiffness", "--sensor-error", "--no-joint-limits"),
    )
    p.add_argument("--directions", type=int, default=72, metavar="N", help="how many are tried (default: 72)")
    return p


def _tilt(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    if given.directions < 1:
        raise AnalysisError("--directions", f"{given.directions} are none", "give one or more")
    at = {"hold": values_of(analysis.robot.coordinates, given.hold), "requirements": given.require}
    found = analysis.tilt(given.directions, **at, joint_limits=not given.no_joint_limits)
    return Found(analysis.robot.name, "tilt", [found])


def map_parser() -> argparse.ArgumentParser:
    """The command line of `map`."""
    return over_a_domain(
        "map",
        "A quantity over a slice of the workspace, or a volume ('--vary x,y,z', shown as slices and as\n"
        "surfaces of one value), in colour and with its unit, its worst point beside its mean, and the loci of\n"
        "singularities of type 1 and type 2 as curves.",
        f"{textwrap.fill(f'Quantities: {IN_WORDS}.', 112)}\n{EXIT}",
        *("--quantity", "--layer"),
    )


def _map(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    found = analysis.map(given.quantity, **where(analysis, given, slices=True))
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, found.quantity.name, [found])


def sweep_parser() -> argparse.ArgumentParser:
    """The command line of `sweep`."""
    p = over_a_domain(
        "sweep",
        "Statistics of a quantity over very many poses, on a grid or at random: mean, deviation, histogram, the least\n"
        "and the largest value with their poses, what stops the robot how often. Memory does not grow with the number.",
        EXIT,
        "--quantity",
    )
    p.add_argument("--poses", type=float, default=1e6, metavar="N", help="how many, about (default: 1e6)")
    p.add_argument("--random", type=int, metavar="SEED", help="at random rather than on a grid")
    return p


def _wrong_sweep(given: argparse.Namespace) -> str:
    if not 1.0 <= given.poses <= 1e15:
        return f"--poses {given.poses:g} is no number of poses"
    return "--random takes a seed that is not negative" if (given.random or 0) < 0 else ""


def _sweep(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at = where(analysis, given)
    del at["resolution"]
    found = analysis.sweep(given.quantity, **at, poses=int(given.poses), seed=given.random)
    return Found(analysis.robot.name, f"sweep of {found.quantity.name}", [found])


def loci_parser() -> argparse.ArgumentParser:
    """The command line of `loci`."""
    return over_a_domain(
        "loci",
        "Singularities of type 1, type 2, of the constraints and inside limbs as surfaces over three coordinates,\n"
        "where the limbs reach: with their areas, as a picture, and as a layer for the browser page and RViz.",
        EXIT,
        "--layer",
    )


def _loci(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at = where(analysis, given)
    del at["requirements"]
    found = analysis.loci(**at)
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, "loci of singularities", [found])


def regions_parser() -> argparse.ArgumentParser:
    """The command line of `regions`."""
    p = over_a_domain(
        "regions",
        "The singularity-free regions of working modes: how large they are, which of them touch and through which\n"
        "singularity, and which assembly modes are in one region, so that the robot changes between them without one.",
        EXIT,
        "--no-joint-limits",
    )
    text = f"working modes, as 0,1,2, home (which is 0), or all of them (at most {MANY}); home by default"
    p.add_argument("--modes", metavar="N,N", help=text)
    p.add_argument("--assembly", action="store_true", help="find home's assembly modes, and the region of each")
    return p


def _regions(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at, modes = where(analysis, given), _modes(analysis, given.modes)
    found = analysis.regions(**at, modes=modes, joint_limits=not given.no_joint_limits)
    numbers, lines = found.to_dict(), []
    if given.assembly:
        assembled = found.assembly_modes()
        numbers["assembly_modes"] = [{**vars(a), "point": a.point.tolist()} for a in assembled]
        for a in assembled:
            place = found.graph.domain.place(a.point, 4)
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
    p = parser(
        "path",
        "A path from one pose to another in one working mode that meets no singularity and keeps chosen\n"
        "margins, checked between its waypoints; or that there is none on a grid whose step is told.",
        f"Exit status: 0 found, 1 a question with a fault, 2 wrong command line, {NO_PATH} there is none.",
        "--from X=.. Y=.. --to X=.. Y=.. [options]",
        ("--require", "--range", "--mode", "--resolution", "--no-joint-limits", "--stiffness", "--sensor-error"),
    )
    text = "coordinates, home's where they are not named, such as x=0.1 yaw=20deg"
    p.add_argument("--from", nargs="+", default=[], metavar="NAME=VALUE", dest="start", help=text)
    p.add_argument("--to", nargs="+", required=True, metavar="NAME=VALUE", dest="end", help=text)
    p.add_argument("--prove", action="store_true", help="prove by intervals that it is inside and meets no singularity")
    return p


def _path(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    task = analysis.robot.coordinates
    found = analysis.path(
        values_of(task, given.start),
        values_of(task, given.end),
        margins=given.require,
        ranges=ranges_of(task, given.range),
        joint_limits=not given.no_joint_limits,
        resolution=given.resolution,
    )
    proof = [found.prove()] if given.prove and found.found else []
    numbers = {**found.to_dict(), **({"proof": proof[0].to_dict()} if proof else {})}
    lines = [f"  {found.graph.domain.place(point, 4)}" for point in found.waypoints]
    return Found(analysis.robot.name, "path", [found, *proof], numbers, lines, 0 if found.found else NO_PATH)


def prove_parser() -> argparse.ArgumentParser:
    """The command line of `prove`."""
    p = parser(
        "prove",
        "Say whether something holds at every pose of a box, a straight path or a motion: proved "
        "everywhere, refuted at a pose that is named, or undecided in boxes of the stated size. Proofs are by interval "
        "arithmetic.",
        "what can be asked:\n"
        + "".join(f"\n  {form}" for form in PROVED)
        + "\n\nexit code: 0 proved, 1 refuted, 3 undecided, 2 where the question has no answer",
        None,
        ("--require", "--mode", "--stiffness", "--sensor-error"),
    )
    at = p.add_mutually_exclusive_group(required=True)
    text = "ranges of task coordinates, m and rad if no unit is named; coordinates that are not named stay at home"
    at.add_argument("--box", nargs="+", metavar="NAME=LOW:HIGH", help=text)
    at.add_argument("--from", dest="start", nargs="+", metavar="NAME=VALUE", help="where a straight path begins")
    text = "a motion file (CSV), or a motion that ships: its path, straight lines with rounded corners"
    at.add_argument("--motion", metavar="MOTION", help=text)
    p.add_argument("--closed", action="store_true", help="of a motion: add a way back where it ends elsewhere")
    p.add_argument("--to", dest="end", nargs="+", metavar="NAME=VALUE", help="where it ends")
    p.add_argument("--resolution", type=float, default=RESOLUTION, help=f"of the sides (default: {RESOLUTION:.2g})")
    p.add_argument("--most-boxes", type=int, default=MOST_BOXES, help=f"until undecided (default: {MOST_BOXES})")
    return p


def _wrong_proof(given: argparse.Namespace) -> str:
    return "a path needs both --from and --to" if (given.start is None) != (given.end is None) else ""


def _prove(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    found = _proof(given, analysis, sweeps)
    status = 0 if found.ok else REFUTED if found.refuted else UNDECIDED
    more = _outside(analysis, found) if found.refuted and found.refuted.violated == "inside" else []
    return Found(analysis.robot.name, " and ".join(found.that), [found], more=more, status=status)


def _outside(analysis: Analysis, found: Proof) -> list[str]:
    """One line on what stops the robot at the point of a proof; none where point tests find nothing."""
    at, conditions = found.by_name(), analysis.conditions([c.name for c in analysis.robot.coordinates.free])
    around = {c.name: (at[c.label] - 1.0, at[c.label] + 1.0) for c in conditions.domain.coordinates}
    membership = conditions.over(conditions.domain.within(around))
    point = membership.domain.box.mean(axis=1)
    code = int(membership.codes(point[None])[0])
    return [f"  there: {membership.why(code, point)}"] if code else []


def _proof(given: argparse.Namespace, analysis: Analysis, sweeps: Sweeps) -> Proof:
    if not 0.0 < given.resolution < 1.0:
        raise AnalysisError("--resolution", f"{given.resolution:g} is no part of a side", "give one between 0 and 1")
    if given.most_boxes < 1:
        raise AnalysisError("--most-boxes", f"{given.most_boxes} boxes prove nothing", "give one or more")
    wanted, task, began = given.require or ["inside"], analysis.robot.coordinates, time.monotonic()

    def tell(share: float, boxes: int) -> None:
        left = f", {chunks.duration((time.monotonic() - began) * (1.0 - share) / share)} left" if share > 0.0 else ""
        sweeps.note = f"proved in {100.0 * share:.1f} %, {boxes} boxes{left}"

    limits: Settings = {"resolution": given.resolution, "most_boxes": given.most_boxes, "progress": tell}
    if given.start is not None:
        ends = [task.point(values_of(task, words)) for words in (given.start, given.end)]
        return analysis.prove_path(wanted, np.array(ends), **limits)
    if given.motion is not None:
        path = importlib.import_module(MOTIONS).rounded_motion(analysis.robot.kinematics, given.motion, given.closed)
        return analysis.prove_motion(wanted, path.poses, path.radii, **limits)
    return analysis.prove(wanted, ranges_of(task, given.box, optional=True), **limits)


TASKS = {
    "workspace": Task(workspace_parser, _workspace),
    "tilt": Task(tilt_parser, _tilt),
    "map": Task(map_parser, _map),
    "loci": Task(loci_parser, _loci),
    "regions": Task(regions_parser, _regions),
    "path": Task(path_parser, _path),
    "prove": Task(prove_parser, _prove, _wrong_proof, NO_ANSWER),
    "sweep": Task(sweep_parser, _sweep, _wrong_sweep),
}
