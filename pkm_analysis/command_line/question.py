# SPDX-License-Identifier: Apache-2.0
"""Tasks and their options, what people say in them, and how every task answers: words, JSON, a picture, a page."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pkm_analysis
from pkm_analysis.analysis_errors import MESHES, PICTURES, AnalysisError, check_ending
from pkm_analysis.requirements.grammar import check_coordinate, check_name, check_proved, in_si, read_number
from pkm_description import PkmError, load_mechanism
from pkm_description.command_options import Parser, add_robot, wrong
from pkm_description.load import xacro_arguments
from pkm_runtime import sweeps as chunks
from pkm_runtime.json_text import json_text
from pkm_runtime.whole_files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkm_analysis.analysed_robot import AnalysedRobot
    from pkm_analysis.analysis import Analysis
    from pkm_analysis.domain import Range, TaskCoordinates
    from pkm_analysis.drawing.report_page import Result
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

REPORTS = Path("reports")
MOTIONS = "pkm_control.motion.files.default_motion"  # reads and plans motion files; imported by name
PRINTED = "-"  # instead of a file: print
PAGES = (".html", ".htm")


Answer: TypeAlias = "Callable[[argparse.Namespace, Mechanism, Sweeps], Found]"


@dataclass(frozen=True)
class Found:
    """What a task found. `numbers` are for JSON, by default those of the only result; `more` are lines to print."""

    robot: str
    title: str
    results: Sequence[Result]
    numbers: Mapping[str, Any] | None = None
    more: Sequence[str] = field(default=())
    status: int = 0


def add_output(p: argparse.ArgumentParser) -> None:
    """Add the options for where the work is done and where the answer goes."""
    text = "address of a Dask scheduler that you trust, such as tcp://host:8786, whose workers do what takes long"
    p.add_argument("--scheduler", metavar="ADDRESS", help=text)
    text = "file for finished chunks of work: the same command goes on from there after it was stopped"
    p.add_argument("--journal", metavar="FILE", help=text)
    text = "write the numbers as JSON; without FILE print them, and nothing else"
    p.add_argument("--json", nargs="?", const=PRINTED, metavar="FILE", help=text)
    text = f"page to write, FILE.html or a directory (default: {REPORTS}/, and none where JSON is printed)"
    p.add_argument("--report", type=Path, metavar="PAGE", help=text)


def answered(word: str, given: argparse.Namespace, answer: Answer) -> int:
    """Run a task and print the answer, or what is wrong; the exit status."""
    summaries: list[Callable[[], str]] = []
    try:
        mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        _check_words(given, mechanism)
        making = importlib.import_module("pkm_runtime.kernels.kernel_cache").making  # solvers: after these checks
        with making(f"analysing {given.robot}", lambda: summaries[0]() if summaries else ""):
            sweeps = chunks.Sweeps(scheduler=given.scheduler, journal=given.journal)
            summaries.append(sweeps.in_words)
            try:
                found = answer(given, mechanism, sweeps)
            finally:
                summaries.clear()
                sweeps.close()
        numbers, path = _numbers(found), getattr(given, "picture", None)
        paged = given.report is not None or given.json != PRINTED
        drawn = found.results if paged else found.results[: bool(path)]  # each once
        pictures = [one.plot(path if k == 0 else None) for k, one in enumerate(drawn)]
        if given.json and given.json != PRINTED:
            Path(given.json).parent.mkdir(parents=True, exist_ok=True)
            write_whole(Path(given.json), numbers + "\n")
        page = _page(given, word, found, pictures, numbers) if paged else None
    except (PkmError, OSError) as error:
        return wrong(f"analyse {word}".strip(), error)
    if given.json == PRINTED:
        print(numbers)
        return found.status
    for text in (*found.results, *found.more):
        print(text)
    if page is not None:
        print(f"report: {page}")
    return found.status


def _check_words(given: argparse.Namespace, mechanism: Mechanism) -> None:
    """Raise for an unknown quantity, coordinate or extension before anything heavy is imported."""
    asked = vars(given)
    proof = "most_boxes" in asked
    for what, endings in (("picture", PICTURES), ("mesh", MESHES)):
        if asked.get(what):
            check_ending(what, asked[what], endings)
    if asked.get("quantity"):
        check_name(given.quantity)
    for text in asked.get("require") or ():
        (check_proved if proof else check_name)(text)
    pairs = [word for option in ("range", "hold", "turn", "box", "start", "end") for word in asked.get(option) or ()]
    names = [pair.partition("=")[0] for pair in pairs if "=" in pair] + (asked.get("vary") or "").split(",")
    for name in filter(None, map(str.strip, names)):
        check_coordinate(name, mechanism.platform_chain)


def _numbers(found: Found) -> str:
    numbers = found.results[0].to_dict() if found.numbers is None else found.numbers
    return json_text(dict(numbers))


def _page(given: argparse.Namespace, word: str, found: Found, pictures: list[Figure], numbers: str) -> Path:
    asked = REPORTS if given.report is None else given.report
    name = f"{found.robot}_{found.title if word in ('map', 'sweep') else word or 'analysis'}"
    file = "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in name) + PAGES[0]
    page: Path = asked if asked.suffix in PAGES else asked / file
    write = importlib.import_module("pkm_analysis.drawing.report_page").write_report
    write(page, f"{found.robot}: {found.title}", found.results, pictures, found.more, numbers)
    return page


Told = dict[str, Any]  # what argparse is told of an option


def file(text: str) -> Told:
    """A file."""
    return {"metavar": "FILE", "help": text}


def flag(text: str) -> Told:
    """An option without a value."""
    return {"action": "store_true", "help": text}


def number(metavar: str, text: str, kind: Callable[[str], Any] = float, default: Any = None, **more: Any) -> Told:
    """A number, or several."""
    return {"type": kind, "metavar": metavar, "default": default, "help": text, **more}


def several(metavar: str, text: str) -> Told:
    """Any number of words, the option given once or more."""
    return {"nargs": "+", "action": "extend", "default": [], "metavar": metavar, "help": text}


_BOUNDS = "what is to hold, such as 'type2 > 0.2 rad/m' or 'no singularity'; may be given several times"
_SENSORS = "largest error of the drives' sensors, such as 0.01 deg, for position_error and turning_error"
SHARED: dict[str, Told] = {  # options of several tasks
    "--vary": {"metavar": "NAMES", "help": "coordinates that vary, such as x,y,z (default: all)"},
    "--range": several("NAME=A:B", "ranges, such as x=-300mm:300mm yaw=-10:10deg"),
    "--hold": several("NAME=VALUE", "values of others, such as yaw=20deg"),
    "--require --that": {"action": "append", "default": [], "metavar": "BOUND", "help": _BOUNDS},
    "--mode": number("N", "number of a working mode (default: home's)", int),
    "--stiffness": number("K", "of the drives [N m/rad or N/m], where none is described"),
    "--sensor-error": {"nargs": "+", "metavar": ("NUMBER", "UNIT"), "help": _SENSORS},
    "--resolution": number("N", "nodes along a coordinate", int),
    "--quantity": {"default": "type2", "metavar": "NAME", "help": "what is asked for, see map --help (default: type2)"},
    "--layer": file("surfaces as .glb, which 'pkm run --layers' and RViz show"),
    "--no-joint-limits": flag("do without limits of joints"),
    "--gpu": flag("compute on a GPU of NVIDIA, through CuPy: the same answers"),
    "--closed": flag("of a motion: add a way back where it ends elsewhere"),
}
CONDITIONS = ("--require --that", "--mode", "--stiffness", "--sensor-error")
WHERE = ("--vary", "--range", "--hold", *CONDITIONS, "--resolution")
EXIT = "Exit status: 0 found, 2 where the question has a fault, or no answer."


@dataclass(frozen=True)
class Task:
    """A task of the command: `options` are names of `SHARED`, `own` ones come with what argparse is told.

    Of the options `either` at most one is given, one at least if `needed`. `wrong` says what is wrong with options.
    """

    word: str
    brief: str
    description: str
    answer: Answer
    options: tuple[str, ...] = WHERE
    own: Mapping[str, Told] = field(default_factory=dict)
    epilog: str = EXIT
    usage: str | None = "[options]"
    either: tuple[str, ...] = ()
    needed: bool = False
    wrong: Callable[[argparse.Namespace], str] = lambda given: ""

    def parser(self) -> argparse.ArgumentParser:
        """Its command line."""
        prog, form = f"pkm analyse ROBOT {self.word}", argparse.RawDescriptionHelpFormatter
        usage = self.usage and f"{prog} {self.usage}"
        p = Parser(prog=prog, usage=usage, description=self.description, epilog=self.epilog, formatter_class=form)
        add_robot(p)
        one = p.add_mutually_exclusive_group(required=self.needed) if self.either else p
        for name, told in {**{name: SHARED[name] for name in self.options}, **self.own}.items():
            (one if name in self.either else p).add_argument(*name.split(), **told)
        add_output(p)
        p.add_argument("--picture", metavar="FILE", help="picture as .png, .svg or .pdf")
        return p


def sensor_errors(robot: AnalysedRobot, words: list[str] | None) -> tuple[float, ...]:
    """One error [rad, m] for all sensors, or none; `words` are a number and its unit, or one word of both."""
    if not words:
        return ()
    about = f"--sensor-error {' '.join(words)}"
    number, unit = read_number(" ".join(words), about, "write 0.01 deg")
    if robot.actuator_unit not in ("m", "rad"):
        raise AnalysisError(about, "some drives turn and others slide", "give one for each: Analysis(..., sensors=...)")
    return (in_si(number, unit, robot.actuator_unit, about),)


def asked(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Analysis:
    """The analysis of a robot, with what the command line assumes of it."""
    gpu = getattr(given, "gpu", False)
    analysis = pkm_analysis.Analysis(mechanism, given.mode, given.stiffness, sweeps, gpu=gpu)
    analysis.assumed = analysis.assumed._replace(sensors=sensor_errors(analysis.robot, given.sensor_error))
    return analysis


def where(analysis: Analysis, given: argparse.Namespace, slices: bool = False) -> dict[str, Any]:
    """Domain and conditions as arguments of `Analysis`; with `slices` only coordinates with a range vary."""
    task = analysis.robot.coordinates
    ranges, hold = ranges_of(task, given.range), values_of(task, given.hold)
    vary = given.vary.split(",") if given.vary else list(ranges) or None
    if not given.vary and not slices:
        usual = [c.name for c in task.free[:3]]
        if set(usual).issuperset(ranges):  # one range leaves the others free unless held
            vary = [name for name in usual if name not in hold] if hold.keys() & set(usual) else None
    return {"ranges": ranges, "vary": vary, "hold": hold, "requirements": given.require, "resolution": given.resolution}


def ranges_of(task: TaskCoordinates, texts: Iterable[str], optional: bool = False) -> dict[str, Range]:
    """Ranges [m, rad] by name from texts NAME=LOWER:UPPER, units optional; with `optional` also NAME=VALUE."""
    return {c.name: ends for c, ends in (task.read_range(text, optional) for text in texts)}


def values_of(task: TaskCoordinates, texts: Iterable[str]) -> dict[str, float]:
    """Values [m, rad] by name from texts NAME=VALUE, unit optional."""
    return {c.name: value for c, value in map(task.read_value, texts)}
