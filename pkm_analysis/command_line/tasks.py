# SPDX-License-Identifier: Apache-2.0
"""The tasks of `pkm analyse`: all but predict ask about a domain, predict about a motion."""

from __future__ import annotations

import argparse
import importlib
import textwrap
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pkm_analysis
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.question import (
    CONDITIONS,
    EXIT,
    MOTIONS,
    WHERE,
    Found,
    Task,
    asked,
    file,
    flag,
    number,
    ranges_of,
    several,
    values_of,
    where,
)
from pkm_analysis.requirements.grammar import (
    IN_WORDS,
    KINDS,
    MOST_BOXES,
    POSE_ERROR,
    PROVED,
    RESOLUTION,
    in_si,
    read_bound,
    read_number,
)
from pkm_description.command_options import NO, OPEN, distance, mass, not_negative, positive
from pkm_description.mechanism import Inertial
from pkm_runtime import sweeps as chunks

if TYPE_CHECKING:
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.proof.halving import Proof, Settings
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

MANY = 8  # most working modes of `--modes all`


def _wrong_place(given: argparse.Namespace) -> str:
    return "--gpu and --scheduler exclude each other" if given.gpu and given.scheduler else ""


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


def _tilt(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    if given.directions < 1:
        raise AnalysisError("--directions", f"{given.directions} is too few", "give one or more")
    hold = values_of(analysis.robot.coordinates, given.hold)
    limits = not given.no_joint_limits
    found = analysis.tilt(given.directions, hold=hold, requirements=given.require, joint_limits=limits)
    return Found(analysis.robot.name, "tilt", [found])


def _stiffness(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = pkm_analysis.Analysis(mechanism, given.mode, given.stiffness, sweeps)
    at = values_of(analysis.robot.coordinates, given.at)
    wrench = _six(given.wrench)
    found = analysis.stiffness(at, payload=given.payload, wrench=wrench, tension=given.tension)
    shapes = importlib.import_module("pkm_analysis.stiffness.stiffness_files")
    modes = [shapes.ModeShapes(found)] if given.vibrations or len(found.vibrations.frequency) else []
    if given.vibrations:
        to = Path(given.vibrations)
        modes[0].save(to) if to.suffix == ".glb" else modes[0].plot(to)
    lines = [str(_table(given, analysis, wrench))] if given.table else []
    return Found(analysis.robot.name, "stiffness", [found, *modes], found.to_dict(), lines)


def _table(given: argparse.Namespace, analysis: Analysis, wrench: list[float] | None) -> Any:
    room, robot = importlib.import_module("pkm_analysis.stiffness.stiffness_files"), analysis.robot
    if given.along:
        motion = importlib.import_module(MOTIONS).sampled_motion(robot.dynamics, given.along, None, False)
        poses = room.poses_along(motion.poses)
    else:
        poses = room.poses_over(robot, ranges_of(robot.coordinates, given.range))
    return room.write_table(analysis.stiffnesses, poses, given.table, given.payload, wrench)


def _six(wrench: list[float] | None) -> list[float] | None:
    return wrench and [*wrench, *[0.0] * (6 - len(wrench))]


def _wrong_wrench(given: argparse.Namespace) -> str:
    return "" if len(given.wrench or (0,) * 3) in (3, 6) else "--wrench takes three numbers, or six"


def _wrong_stiffness(given: argparse.Namespace) -> str:
    if wrong := _wrong_wrench(given):
        return wrong
    if bool(given.table) != (bool(given.along) or bool(given.range)) or (given.along and given.range):
        return "--table takes --range or --along, and they take it"
    if given.table and given.mode is not None:
        return "--table is for home's working mode, in which controllers begin"
    return ""


def _balance(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    rest = None
    if given.rest is not None:
        ends = [read_number(end, f"--rest {given.rest}") for end in given.rest.split(":")]
        values = [in_si(number, unit or ends[-1][1], "m", f"--rest {given.rest}") for number, unit in ends]
        if len(values) > 2 or not 0.0 <= values[0] <= values[-1]:
            raise AnalysisError(f"--rest {given.rest}", "these are not lengths", "write 50mm, or 0:200mm")
        rest = values[0], values[-1]
    move = in_si(*read_number(given.move, "--move"), "m", "--move") if given.move is not None else 0.0
    if not 0.0 <= move <= 100.0:
        raise AnalysisError(f"--move {given.move}", "it is not a length", "write a length, such as 100mm")
    if move > 0.0 and given.springs is None and not mechanism.springs:
        problem = "the robot has no spring whose ends could move"
        raise AnalysisError(f"--move {given.move}", problem, "name places for some: --springs FILE")
    at = where(analysis, given)
    found = analysis.balance(**at, springs=given.springs, rest=rest, move=move, payload=given.payload)
    return Found(analysis.robot.name, "balance", [found])


def _map(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    found = analysis.map(given.quantity, **where(analysis, given, slices=True))
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, found.quantity.name, [found])


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


def _loci(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at = where(analysis, given)
    del at["requirements"]
    found = analysis.loci(**at)
    if given.layer:
        found.save(given.layer)
    return Found(analysis.robot.name, "loci of singularities", [found])


def _regions(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    at, modes = where(analysis, given), _modes(analysis, given.modes)
    found = analysis.regions(**at, modes=modes, joint_limits=not given.no_joint_limits)
    numbers, lines = found.to_dict(), []
    if given.assembly:
        assembled = found.assembly_modes()
        numbers["assembly_modes"] = [
            {"label": a.label, "mode": a.mode, "at": a.point.tolist(), "region": a.region} for a in assembled
        ]
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
    status = max(map(_verdict, proof), default=0 if found.found else NO)
    return Found(analysis.robot.name, "path", [found, *proof], numbers, lines, status)


def _prove(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    analysis = asked(given, mechanism, sweeps)
    if not given.tolerances and any(POSE_ERROR in text for text in given.require):
        remedy = "give --tolerances FILE, see errors --help"
        raise AnalysisError(POSE_ERROR, "it needs tolerances, and none are given", remedy)
    found = _proof(given, analysis, sweeps)
    more = _outside(analysis, found) if found.refuted and found.refuted.violated == "inside" else []
    return Found(analysis.robot.name, " and ".join(found.that), [found], more=more, status=_verdict(found))


def _verdict(found: Proof) -> int:
    return 0 if found.ok else NO if found.refuted else OPEN


def _proved_errors(given: argparse.Namespace, analysis: Analysis, limits: Settings) -> Proof:
    bounds = [read_bound(text) for text in given.require]
    if len(bounds) != 1 or bounds[0].name != POSE_ERROR or bounds[0].above:
        raise AnalysisError("--tolerances", "they are for one question", f"--that '{POSE_ERROR} < 0.1 mm'")
    if given.start is not None or given.motion is not None:
        raise AnalysisError("--tolerances", "errors are proved over boxes", "give --box")
    room = importlib.import_module("pkm_analysis.errors.certified_errors")
    tolerances = importlib.import_module("pkm_analysis.errors.tolerances").read_tolerances(given.tolerances)
    box = analysis.box(ranges_of(analysis.robot.coordinates, given.box, optional=True))
    found: Proof = room.prove_pose_error(analysis.robot, box, tolerances, bounds[0].in_si("m"), **limits)
    return found


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
        problem = f"{given.resolution:g} is not a fraction of a side"
        raise AnalysisError("--resolution", problem, "give one between 0 and 1")
    if given.most_boxes < 1:
        raise AnalysisError("--most-boxes", f"{given.most_boxes} boxes prove nothing", "give one or more")
    wanted, task, began = given.require or ["inside"], analysis.robot.coordinates, time.monotonic()

    def tell(share: float, boxes: int) -> None:
        left = f", {chunks.duration((time.monotonic() - began) * (1.0 - share) / share)} left" if share > 0.0 else ""
        sweeps.note = f"proved in {100.0 * share:.1f} %, {boxes} boxes{left}"

    limits: Settings = {"resolution": given.resolution, "most_boxes": given.most_boxes, "progress": tell}
    if given.tolerances:
        return _proved_errors(given, analysis, limits)
    if given.start is not None:
        ends = [task.point(values_of(task, words)) for words in (given.start, given.end)]
        return analysis.prove_path(wanted, ends, **limits)
    if given.motion is not None:
        path = importlib.import_module(MOTIONS).rounded_motion(analysis.robot.kinematics, given.motion, given.closed)
        return analysis.prove_motion(wanted, path.poses, path.radii, **limits)
    return analysis.prove(wanted, ranges_of(task, given.box, optional=True), **limits)


def _predict(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    prediction = importlib.import_module("pkm_analysis.prediction")  # heavy
    motors = prediction.read_motors(given.motors) if given.motors else []
    gears = prediction.read_gears(given.gears) if given.gears else [prediction.DIRECT]
    robot = pkm_analysis.AnalysedRobot(mechanism, sweeps=sweeps)
    drives = len(robot.kinematics.actuated_names)
    if given.continuous and len(given.continuous) not in (1, drives):
        raise AnalysisError("--continuous", f"these are {len(given.continuous)} efforts", f"give 1 or {drives}")
    payload = Inertial(mass=given.payload) if given.payload else None
    motion = importlib.import_module(MOTIONS).sampled_motion(robot.dynamics, given.motion, payload, given.closed)
    load = {"payload": payload} if motion.wrench is None else {"wrench": motion.wrench}  # of the file
    found = replace(prediction.predict(robot.dynamics, *motion[:4], **load, name=given.motion), payload=motion.payload)
    rest = _rest(given, found.duration)
    cycles = 60.0 / (found.duration + rest)
    numbers: dict[str, Any] = {**found.to_dict(), "notes": list(motion.notes), "cycles_per_minute": cycles}
    lines, hot = [*motion.notes, f"{cycles:.4g} cycles per minute, with a rest of {rest:.4g} s after each"], False
    if given.continuous:
        duty = found.duty(given.continuous, rest)
        numbers["thermal_duty"] = dict(zip(found.names, duty.tolist(), strict=True))
        hot = bool((duty > 1.0).any())
        verdicts = ("too hot" if one > 1.0 else "fits" for one in duty)
        each = zip(found.names, duty, verdicts, strict=True)
        lines += [f"{name}: thermal duty {100.0 * one:.3g} %, {verdict}" for name, one, verdict in each]
    choices = prediction.choose_drives(found, motors, gears, rest)
    results: list[Any] = [found, choices] if choices else [found]
    numbers |= choices.to_dict() if choices else {}
    status = NO if found.exceeded or hot else 0
    return Found(robot.name, "what a motion asks for", results, numbers, lines, status)


def _rest(given: argparse.Namespace, duration: float) -> float:
    if given.cycles_per_minute is None:
        return float(given.rest)
    rest = 60.0 / given.cycles_per_minute - duration
    if rest < 0.0:
        problem = f"one takes {duration:.4g} s, which is {60.0 / duration:.4g} a minute"
        raise AnalysisError("--cycles-per-minute", problem, "ask for fewer, or for a faster motion")
    return float(rest)


def _errors(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    room = importlib.import_module("pkm_analysis.errors.error_budget")
    tolerances = importlib.import_module("pkm_analysis.errors.tolerances")
    analysis = pkm_analysis.Analysis(mechanism, given.mode, sweeps=sweeps)
    robot, poses, wrench = analysis.robot, None, _six(given.wrench)
    if given.motion is not None:
        motion = importlib.import_module(MOTIONS).sampled_motion(robot.dynamics, given.motion, None, False)
        some = slice(None, None, max(1, len(motion.poses) // given.over))
        poses = motion.poses[some]
        wrench = motion.wrench[some] if wrench is None and motion.wrench is not None else wrench
    elif given.at:
        poses = analysis.pose_at(values_of(robot.coordinates, given.at))[None]
    of_file = tolerances.read_tolerances(given.tolerances) if given.tolerances else tolerances.Tolerances()
    model = room.ErrorModel(robot, of_file, poses, given.over, wrench)
    if given.parameters:
        sizes = ((one.name, of_file.of(one.name, one.unit), one.unit) for one in model.parameters.all)
        lines = [f"{name}  {room.shown_size(size, unit)}" for name, size, unit in sizes]
        return Found(robot.name, "geometric parameters", [], {"parameters": lines}, lines)
    if given.reach is not None:
        allocation = importlib.import_module("pkm_analysis.errors.allocation")
        goal = in_si(*read_number(given.reach, "--reach"), "m", "--reach")
        if not goal > 0.0:
            about = f"--reach {given.reach.strip()}"
            raise AnalysisError(about, "it is no size of an error", "write one, such as 0.1mm")
        return Found(robot.name, "tolerances", [allocation.allocate(model, goal, given.criterion)])
    results: list[Any] = [model.budget(given.motion is not None)]
    if given.machines:
        results.append(room.sampled_errors(model, given.machines, given.random or 0))
    numbers = {**results[0].to_dict(), **({"machines": results[1].to_dict()} if given.machines else {})}
    return Found(robot.name, "errors of pose", results, numbers)


def _wrong_errors(given: argparse.Namespace) -> str:
    if given.at and given.motion is not None:
        return "--at and --motion exclude each other"
    if not 1 <= given.over <= 10_000 or not 0 <= given.machines <= 1_000_000:
        return "--over takes 1 to 10000 configurations, --machines up to a million"
    return _wrong_wrench(given)


_END = {"nargs": "+", "metavar": "NAME=VALUE", "help": "coordinates, home's where not named, such as x=0.1 yaw=20deg"}
_PAYLOAD = number("KG", "mass at the platform's origin [kg], or such as 500g", mass, 0.0)
_BOX = "ranges of task coordinates, m and rad if no unit is named; coordinates that are not named stay at home"
_MOTION = "a motion file (CSV), or a motion that ships: its path, straight lines with rounded corners"
_MODES = f"working modes, as 0,1,2, home (which is 0), or all of them (at most {MANY}); home by default"
_WRENCH = "load at the platform's origin: FX FY FZ [N], and MX MY MZ [N m] if there are any"
_VIBRATIONS = (
    "the lowest natural vibrations: a picture as .png, .svg or .pdf, or as .glb a layer in which they move "
    "('pkm run --layers FILE')"
)
_TABLE = (
    "file (.json) of the compliance over --range or --along a motion, by which a controller leads the platform "
    "against what gives way ('pkm run --compliance-file FILE'); loads are there always"
)
_CONTINUOUS = "effort that each drive can give for ever [N m, N], for its thermal duty"
_TILT = ("--hold", *CONDITIONS, "--no-joint-limits")
_PROOF = "what can be asked:\n\n  " + "\n  ".join(PROVED)
_EACH = [
    Task(
        "workspace",
        "reachable volume, its border as a mesh, and what limits it",
        "Where a robot can be: within reach, limits of all joints, and bounds of your own. Its size with an error,\n"
        "its border as a mesh, and at each point of it what stops the robot there.",
        _workspace,
        (*WHERE, "--gpu", "--no-joint-limits"),
        {
            "--tolerance": number("M", "how far the border may be off [m], or such as 1mm", distance),
            "--mesh": file("border as .stl, .ply or .obj"),
            "--kind": {"choices": KINDS, "help": "positions over orientations, instead of a held orientation"},
            "--turn": several("NAME=A:B", "ranges of angles for --kind, such as yaw=-20:20deg"),
            "--turn-steps": number("N", "values of each angle (default: 13)", int, 13),
            "--largest": flag("find the largest box and the largest cylinder inside"),
            "--no-platform-limits": flag("do without limits of the platform itself"),
        },
        wrong=_wrong_place,
    ),
    Task(
        "tilt",
        "how far it can tilt in every direction at a place",
        "How far the platform can tilt in every direction at one place, and what stops it there.",
        _tilt,
        _TILT,
        {"--directions": number("N", "how many are tried (default: 72)", int, 72)},
    ),
    Task(
        "stiffness",
        "displacement under load: stiffness, sag, the share of every part",
        "Stiffness and compliance (6 x 6) of the platform at a pose, its sag under weight and payload, its deflection\n"
        "under a load, and which part has which share: links as beams, joints and drives with the stiffness that the\n"
        "description says (docs/stiffness.md). JSON holds every beam, joint and drive, to compute it again.",
        _stiffness,
        ("--mode", "--stiffness"),
        {
            "--at": several("NAME=VALUE", "where, home's where not named, such as x=0.1 z=-0.9"),
            "--payload": _PAYLOAD,
            "--tension": number("N", "least tension of cables [N], in place of the description's"),
            "--wrench": number("NUMBER", _WRENCH, nargs="+"),
            "--vibrations": file(_VIBRATIONS),
            "--table": file(_TABLE),
            "--range": several("NAME=A:B", "ranges, such as x=-300mm:300mm yaw=-10:10deg"),
            "--along": {"metavar": "MOTION", "help": "motion file, or the name of a shipped motion"},
        },
        wrong=_wrong_stiffness,
    ),
    Task(
        "errors",
        "effect of machine errors on the pose; tolerances worth their cost",
        "How far manufacturing errors, sensors, play in joints and warmth put the platform off: every source's part,\n"
        "to first order, the worst that they make together, and with --machines the errors of machines at random,\n"
        "loops closed exactly. With --reach: the cheapest grades of tolerances that are accurate enough.",
        _errors,
        ("--mode",),
        {
            "--tolerances": file("what may be wrong (YAML; default: 0.05 mm, 0.02 deg)"),
            "--at": several("NAME=VALUE", "at this pose, such as x=0.1 yaw=20deg"),
            "--motion": file("along a motion file (CSV), or a motion that ships"),
            "--over": number("N", "configurations otherwise (default: 50)", int, 50),
            "--wrench": number("NUMBER", _WRENCH, nargs="+"),
            "--machines": number("N", "draw N machines at random as well", int, 0),
            "--random": number("SEED", "of the machines (default: 0)", int),
            "--reach": {"metavar": "SIZE", "help": "find the cheapest tolerances that reach it, such as 0.1mm"},
            "--criterion": {"choices": ("expected", "worst"), "default": "expected", "help": "for --reach"},
            "--parameters": flag("list the names of the parameters, with their tolerances"),
        },
        wrong=_wrong_errors,
    ),
    Task(
        "balance",
        "efforts at rest, and springs and counterweights that reduce them",
        "How large the efforts are that hold the robot still over a domain, and which springs and counterweights\n"
        "leave least of them: the best stiffness of the description's springs, or of those in a file\n"
        "(docs/balance.md), and where they may be chosen their rest lengths and the places of their ends. Prints\n"
        "elements for the description.",
        _balance,
        WHERE,
        {
            "--springs": file("springs and counterweights to be sized (YAML)"),
            "--rest": {"metavar": "SIZE", "help": "their rest length, such as 50mm, or 0:200mm to choose from"},
            "--move": {"metavar": "SIZE", "help": "how far their ends may move along each axis, such as 100mm"},
            "--payload": _PAYLOAD,
        },
    ),
    Task(
        "map",
        "any quantity over a slice, with the loci of singularities",
        "A quantity over a slice of the workspace, or a volume ('--vary x,y,z', shown as slices and as\n"
        "surfaces of one value), in colour and with its unit, its worst point beside its mean, and the loci of\n"
        "singularities of type 1 and type 2 as curves.",
        _map,
        (*WHERE, "--gpu", "--quantity", "--layer"),
        wrong=_wrong_place,
        epilog=f"{textwrap.fill(f'Quantities: {IN_WORDS}.', 112)}\n{EXIT}",
    ),
    Task(
        "loci",
        "singularities of all types as surfaces over a volume",
        "Singularities of type 1, type 2, of the constraints and inside limbs as surfaces over three coordinates,\n"
        "where the limbs reach: with their areas, as a picture, and as a layer for the browser page and RViz.",
        _loci,
        (*WHERE, "--layer"),
    ),
    Task(
        "regions",
        "singularity-free regions, their contacts, and the assembly modes in each",
        "The singularity-free regions of working modes: how large they are, which of them touch and through which\n"
        "singularity, and which assembly modes are in one region, so that the robot changes between them without one.",
        _regions,
        (*WHERE, "--no-joint-limits"),
        {
            "--modes": {"metavar": "N,N", "help": _MODES},
            "--assembly": flag("find home's assembly modes, and the region of each"),
        },
    ),
    Task(
        "path",
        "a path without singularities and with margins, or a report that there is none",
        "A path from one pose to another in one working mode that meets no singularity and keeps chosen\n"
        "margins, checked between its waypoints; or that there is none on a grid whose step is told.",
        _path,
        ("--range", *CONDITIONS, "--resolution", "--no-joint-limits"),
        {
            "--from": {**_END, "dest": "start", "default": []},
            "--to": {**_END, "dest": "end", "required": True},
            "--prove": flag("prove that it is inside, meets no singularity and keeps --that, by intervals"),
        },
        "Exit status: 0 found (and proved), 1 there is none (or it is refuted), 3 the proof is undecided, 2 where the\n"
        "question has a fault.",
        "--from X=.. Y=.. --to X=.. Y=.. [options]",
    ),
    Task(
        "sweep",
        "statistics of a quantity over very many poses",
        "Statistics of a quantity over very many poses, on a grid or at random: mean, deviation, histogram, the least\n"
        "and the largest value with their poses, what stops the robot how often. Memory does not grow with the number.",
        _sweep,
        (*WHERE, "--quantity"),
        {
            "--poses": number("N", "how many, about (default: 1e6)", default=1e6),
            "--random": number("SEED", "at random rather than on a grid", int),
        },
        wrong=_wrong_sweep,
    ),
    Task(
        "prove",
        "prove a requirement at every pose of a box or of a path",
        "Say whether something holds (by default that the robot is inside) at every pose of a box, a straight path or\n"
        "a motion: proved everywhere, refuted at a pose that is named, or undecided in boxes of the stated size.\n"
        "Proofs are by interval arithmetic.",
        _prove,
        (*CONDITIONS, "--closed"),
        {
            "--box": {"nargs": "+", "metavar": "NAME=LOW:HIGH", "help": _BOX},
            "--from": {**_END, "dest": "start"},
            "--motion": {"metavar": "MOTION", "help": _MOTION},
            "--to": {**_END, "dest": "end"},
            "--resolution": {"type": float, "default": RESOLUTION, "help": f"of the sides (default: {RESOLUTION:.2g})"},
            "--most-boxes": {"type": int, "default": MOST_BOXES, "help": f"until undecided (default: {MOST_BOXES})"},
            "--tolerances": file(f"for {POSE_ERROR}: what may be wrong with the machine (YAML)"),
        },
        f"{_PROOF}\n\nexit status: 0 proved, 1 refuted, 3 undecided, 2 where the question has no answer",
        None,
        ("--box", "--from", "--motion"),
        True,
        lambda given: "a path needs both --from and --to" if (given.start is None) != (given.end is None) else "",
    ),
    Task(
        "predict",
        "requirements of a motion on drives and joints; choice of drives",
        "What a motion asks of every drive: peak and RMS effort and speed, power, energy, thermal duty;\n"
        "what every joint transmits; and which limits of the description it exceeds. With a table of motors, and of\n"
        "gears, which of them provide it, which fit all drives, and why the others do not.",
        _predict,
        ("--closed",),
        {
            "motion": {"metavar": "MOTION", "help": "a motion file (CSV), a motion that ships, or auto"},
            "--payload": {
                **_PAYLOAD,
                "help": "mass at the platform's origin, where the file says none [kg], or such as 500g",
            },
            "--rest": number("S", "rest after each run [s]", not_negative, 0.0),
            "--cycles-per-minute": number("N", "runs per minute, with a rest after each", positive),
            "--continuous": number("EFFORT", _CONTINUOUS, positive, nargs="+"),
            "--motors": file("table of motors to choose from"),
            "--gears": file("table of gears to choose from; without, motors drive directly"),
        },
        "Times in the motion file are kept, whatever they ask for; without times it is run as fast as limits\n"
        "allow. Tables are CSV: name, continuous [N m], peak [N m], speed [rpm], inertia [kg cm^2] of motors;\n"
        "name, ratio, and efficiency, inertia [kg cm^2], peak [N m], speed [rpm] of gears.\n"
        "Exit status: 0 within all limits, 1 beyond some or too hot, 2 no answer.",
        "MOTION [options]",
        ("--rest", "--cycles-per-minute"),
        wrong=lambda given: "--gears need --motors" if given.gears and not given.motors else "",
    ),
]
TASKS = {one.word: one for one in _EACH}
