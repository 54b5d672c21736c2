# SPDX-License-Identifier: Apache-2.0
"""The command `pkm zoo`: public files with closed loops, fetched, and run through the suite and every format."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError, check_ending
from pkm_description.command_options import NO, Parser, wrong
from pkm_description.formats.convert import WRITERS
from pkm_description.joint_geometry import freedoms
from pkm_description.load import load_mechanism, load_model
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, JointType, LoopType
from pkm_description.rotations import skew
from pkm_description.tree_model import SINGLE, Motions, TreeModel
from pkm_description.urdf.robot_cache import folders
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import Status
from pkm_runtime.errors import PkmError

TABLE = Path(__file__).with_name("zoo.csv")
HOST = "https://github.com"
MOST = 600  # s, for one repository
FORMATS = ("urdf+", "mjcf", "sdf", "usd", "urdf+constraint", "yaml")
AWAY = 0.02  # rad and m: how far from home they are compared
WAYS = 8  # from home that are tried
OPEN = 1e-7  # dimensionless: a file with numbers of single precision is open by less
STEPS = 30  # of Newton's method
CLOSED = 1e-13
SWING = 0.02  # rad and m, of each joint about home, while the call is timed
HALVINGS = 6  # of it, where the linkage folds before
PLACES = 200  # along it
REPEATS = 100  # of which the least counts: other programs only add to it


@dataclass(frozen=True)
class Specimen:
    """A file: `repository` is owner/name, `commit` the one that is fetched, `arguments` what the file must be told."""

    name: str
    repository: str
    commit: str
    path: str
    arguments: str

    def told(self) -> dict[str, str]:
        """The arguments by name."""
        return dict(pair.split("=", 1) for pair in self.arguments.split())


def specimens(names: list[str], table: Path = TABLE) -> list[Specimen]:
    """Those of the table with these names, all where none is given. Raises `AnalysisError` for a name it has not."""
    with table.open(encoding="utf-8", newline="") as lines:
        found = [Specimen(**row) for row in csv.DictReader(lines)]
    known = [one.name for one in found]
    for name in names:
        if name not in known:
            raise AnalysisError(name, "not in the zoo", f"it has {', '.join(known)}")
    return [one for one in found if not names or one.name in names]


def fetched(one: Specimen, into: Path, host: str = HOST) -> Path:
    """The file, with the folder that it is in, at its commit; only these are brought. Raises `AnalysisError`."""
    folder = into / one.repository
    file = folder / one.path
    if file.exists() and _git(folder, "rev-parse", "HEAD") == one.commit:
        return file
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet")
        _git(folder, "remote", "add", "origin", f"{host}/{one.repository}")
    _git(folder, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", one.commit)
    _git(folder, "update-ref", "--no-deref", "HEAD", one.commit)
    _git(folder, "checkout", "--quiet", one.commit, "--", str(Path(one.path).parent))
    return file


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-c", "protocol.version=2", *arguments],
            cwd=folder, capture_output=True, text=True, timeout=MOST, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        problem = lines[-1] if lines else "no answer"
        raise AnalysisError(f"git {arguments[0]} in {folder}", problem, "fetch it by hand, and name --from") from error
    return done.stdout.strip()


class Difference(NamedTuple):
    """Largest differences: positions [m or rad]; mass matrix and weight, relative to the largest that bodies add to."""

    joints: float
    inertia: float
    weight: float


class LostError(PkmError):
    """A tree came back with other joints."""


def there_and_back(tree: TreeModel, kind: str) -> Difference:
    """Write a tree in a format and read it; `PkmError` where it cannot be, or has lost its coordinates."""
    text = WRITERS[kind](tree)[0]
    if kind != "yaml":
        return difference(tree, load_model(text))
    if not tree.loops:
        raise LostError(f"{tree.name}: it has no loop for a file of loops")
    unsaid = [loop.name for loop in tree.loops if loop.type not in (LoopType.REVOLUTE, LoopType.SPHERICAL)]
    if unsaid := [*unsaid, *(one.name for one in tree.couplings)]:
        raise LostError(f"{tree.name}: YAML has hinges and balls alone, and no {', '.join(unsaid)}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tree.urdf").write_text(WRITERS["urdf"](tree)[0], encoding="utf-8")
        loops = Path(folder, "tree.yaml")
        loops.write_text(text, encoding="utf-8")
        return difference(
            tree, replace(load_model(loops), gravity=tree.gravity)
        )  # these files have none, which is told


def difference(tree: TreeModel, again: TreeModel) -> Difference:
    """Compare two trees beside home, in the coordinates that the first leaves free."""
    # rates of one floating joint's attitude are others than those of three turns: it is held
    held = {f.name for j in again.joints if j.type is JointType.FLOATING for f in freedoms(j) if not f.slides}
    names = _coordinates(tree, {f.name for joint in again.joints for f in freedoms(joint)}, held)
    try:
        one = _beside(tree, names, held)
    except LostError:  # it is singular all around: its tree's own coordinates, if both have the same
        names = [
            f.name for j in tree.joint_named.values() if j.mimic is None for f in freedoms(j) if f.name not in held
        ]
        one = _State(tree, names, held, tree.home)
    other = _State(again, names, held, one.at)
    joints = max(abs(x - other.at[name]) for name, x in one.at.items() if name in other.at)
    pairs = ((one.inertia, other.inertia, one.inertia), (one.weight, other.weight, one.weighed))
    return Difference(joints, *(float(np.abs(a - b).max() / max(np.abs(c).max(), 1e-300)) for a, b, c in pairs))


def _coordinates(tree: TreeModel, shared: set[str], held: set[str]) -> list[str]:
    """Names of shared coordinates that determine a tree: what clusters call independent, where loops are cut alike."""
    tied = {name for one in tree.clusters for name in one.joints}
    free = {name for one in tree.clusters for name in (*one.independent, *one.idle)}
    leading = [j for j in tree.joint_named.values() if j.mimic is None]
    first = [f.name for j in leading if j.name not in tied or j.name in free for f in freedoms(j) if f.name not in held]
    if set(first) <= shared:
        return first
    model = tree.whole
    there = [f.name for joint in leading for f in freedoms(joint) if f.name in shared - held]
    found, lost = Motions.of(model, tree.home_of(model)).independent(
        [*(n for n in first if n in shared), *there], there
    )
    if lost:
        raise LostError(f"{tree.name}: it has come back without {', '.join(n for n in first if n not in shared)}")
    return list(found)


def _beside(tree: TreeModel, names: Sequence[str], held: Collection[str]) -> _State:
    """A state near home where the loops close: home may be one that folds. Home where they close there alone."""
    best = None
    for k in range(WAYS):
        away = {name: tree.home[name] + AWAY * np.sin(k + 1.0 + n) for n, name in enumerate(names)}
        try:
            found = _State(tree, names, held, tree.home | away)
        except LostError:
            continue
        if best is None or found.gap < best.gap:
            best = found
    if best is None or best.gap > OPEN:
        return _State(tree, names, held, tree.home)
    return best


class _State:
    """A whole tree at positions of some coordinates: `at` [m, rad] of all, `inertia` (n, n) and `weight` (n,).
    `weighed` (n,) is the sum of what `weight` adds, without signs: weights that balance each other leave rounding.
    """

    def __init__(
        self, tree: TreeModel, names: Sequence[str], held: Collection[str], start: Mapping[str, float]
    ) -> None:
        model = tree.whole
        columns = [f.name for joint in model.free for f in freedoms(joint)]
        if lost := [name for name in names if name not in columns]:
            raise LostError(f"{tree.name}: it has come back without {', '.join(lost)}")
        given = [columns.index(name) for name in names]
        moving = [k for k, name in enumerate(columns) if name not in held]
        others = [k for k in moving if k not in given]
        q = np.array([start.get(name, tree.home[name]) for name in columns])
        for _ in range(STEPS):
            gap, J = model.closure(q)
            if np.abs(gap).max(initial=0.0) < CLOSED or not others:
                break
            q[others] -= np.linalg.lstsq(J[:, others], gap, rcond=1e-9)[0] * model.scale[others]
        gap, J = model.closure(q)
        self.gap = float(np.abs(gap).max(initial=0.0))
        rates = np.zeros((model.size, len(given)))  # of all coordinates, for one of each given, dimensionless
        rates[given] = np.eye(len(given))
        if others and len(J):
            rates[others], _, rank, _ = np.linalg.lstsq(J[:, others], -J[:, given], rcond=SINGLE)
        if others and (not len(J) or rank < len(others)):
            raise LostError(f"{tree.name}: {', '.join(names)} leave joints undetermined")
        rates *= model.scale[:, None]
        self.at = dict(zip(columns, map(float, q), strict=True))
        M, G = _inertia(tree, model, q)
        self.inertia, self.weight, self.weighed = rates.T @ M @ rates, rates.T @ G, np.abs(rates.T) @ np.abs(G)


def _inertia(tree: TreeModel, model: ClosureModel, q: Array) -> tuple[Array, Array]:
    """Mass matrix (size, size) of all bodies and rotors, and what their weight asks of each coordinate (size,)."""
    poses, columns = model.forward(q)
    twists = model.twists(columns)
    M, G = np.zeros((model.size, model.size)), np.zeros(model.size)
    for link in tree.links:
        k = model.link_index[link.name]
        R, com = poses[k][:3, :3], poses[k][:3, :3] @ link.inertial.com + poses[k][:3, 3]
        moved = twists[k][:3] - skew(com) @ twists[k][3:]
        M += link.inertial.mass * moved.T @ moved + twists[k][3:].T @ R @ link.inertial.inertia @ R.T @ twists[k][3:]
        G -= link.inertial.mass * tree.gravity @ moved
    for name in tree.actuated_joints:
        drive = tree.joint_named[name].drive
        if drive is not None:
            M[model.slices[name], model.slices[name]] += drive.armature
    return M, G


@dataclass
class Finding:
    """What becomes of one file; None: the file has no such thing, `notes` say why."""

    name: str
    repository: str
    commit: str
    path: str
    loads: bool = False
    freedoms: int | None = None
    loops: int | None = None
    clusters: int | None = None
    gap: float | None = None  # m, the largest of all loops at home
    modes: int | None = None  # working modes of a robot with one platform
    microseconds: float | None = None  # of a processor, for a lean call from joints to motors
    seconds: float | None = None
    there_and_back: dict[str, float | None] = field(default_factory=dict)  # by format; None: it cannot say it
    refused: str = ""
    notes: str = ""


def examine(found: Finding, file: Path, told: dict[str, str]) -> None:
    """Fill in what becomes of a file. A refusal is noted, whichever step it comes from."""
    begin = time.perf_counter()
    try:
        tree = load_model(file, told)
    except (PkmError, OSError) as error:
        found.refused = str(error)
        return
    found.seconds = time.perf_counter() - begin
    found.loads = True
    found.loops, found.clusters = len(tree.loops), len(tree.clusters)
    found.freedoms, found.gap = freedoms_of(tree), gap_of(tree)
    notes = []
    try:
        found.microseconds = lean_call(Transmission(tree))
    except PkmError as error:
        notes.append(f"no lean call: {error}")
    try:
        found.modes = Kinematics(load_mechanism(file, told)).n_modes
    except PkmError as error:
        notes.append(f"no robot with one platform: {error}")
    for kind in FORMATS:
        try:
            found.there_and_back[kind] = max(there_and_back(tree, kind))
        except PkmError as error:
            found.there_and_back[kind] = None
            notes.append(f"not written as {kind}: {error}")
    found.notes = "; ".join(notes)


def freedoms_of(tree: TreeModel) -> int:
    """Degrees of freedom: serial joints, and what loops leave, rods that only spin included."""
    free = sum(len(one.independent) + len(one.idle) for one in tree.clusters)
    return free + len(tree.joint_named) - sum(len(one.joints) for one in tree.clusters)


def gap_of(tree: TreeModel) -> float:
    """How far the ends of any loop are apart at home [m]; turns count at the length of the linkage."""
    worst = 0.0
    for members, loops in tree.tied_to(tree.joint_named):
        if loops:
            model = tree.closures(members, loops)
            worst = float(np.maximum(worst, float(np.abs(model.closure(tree.home_of(model))[0]).max()) * model.length))
    return worst


def motion_about_home(t: Transmission, swing: float, places: int) -> list[Array]:
    """Positions (n,) of the joints along a closed motion of small steps, by less where the linkage folds before.

    Raises `AnalysisError` where there is none.
    """
    phase = np.arange(float(len(t.joints)))
    turn = 2.0 * np.pi * np.arange(places)[:, None] / places
    for _ in range(HALVINGS):
        ways = t.home + swing * (np.sin(phase + turn) - np.sin(phase))
        if (t.at(ways).status == Status.CONVERGED).all():
            return list(ways)
        swing *= 0.5
    raise AnalysisError(t.tree.name, "its linkage folds at home, or a joint is moved by no motor", "name others")


def lean_call(t: Transmission) -> float:
    """Microseconds of a processor for positions and efforts of the motors, along a motion of small steps."""
    call, ways = t.lean(), motion_about_home(t, SWING, PLACES)
    effort, position, out = np.ones(len(t.joints)), np.zeros(len(t.actuators)), np.zeros(len(t.actuators))
    took = []
    for _ in range(REPEATS):
        begin = time.thread_time()
        for q in ways:
            call(q, effort, position, out)
        took.append(time.thread_time() - begin)
    return min(took) / PLACES * 1e6


def parser() -> argparse.ArgumentParser:
    """The command line."""
    about = "Load, check, solve and convert public files with closed loops, and print the results for each."
    p = Parser(prog="pkm zoo", description=about)
    p.add_argument("names", nargs="*", metavar="NAME", help="files of the table; all if none is given")
    text = "folder with clones as OWNER/NAME, at any commit; by default git fetches the commits of the table"
    p.add_argument("--from", dest="clones", type=Path, metavar="DIR", help=text)
    text = "table of other files: CSV with name, repository, commit, path, arguments"
    p.add_argument("--table", type=Path, default=TABLE, metavar="FILE", help=text)
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the numbers as JSON; else print them")
    p.add_argument("--report", type=Path, metavar="PAGE", help="page with the results to write, FILE.md")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: exit status 1 where a file is not there, 2 for a wrong question; a refusal is an answer."""
    given = parser().parse_args(arguments)
    try:
        if given.report:
            check_ending("report", given.report, (".md",))
        chosen = specimens(given.names, given.table)
    except (PkmError, OSError) as error:
        return wrong("zoo", error)
    findings, missing = [], 0
    for one in chosen:
        found = Finding(one.name, one.repository, one.commit, one.path)
        try:
            file = _here(given.clones / one.repository / one.path) if given.clones else fetched(one, _cache())
            examine(found, file, one.told())
        except AnalysisError as error:
            found.refused, missing = str(error), missing + 1
        root = f"{given.clones or _cache()}/"  # of no use to others
        found.refused, found.notes = found.refused.replace(root, ""), found.notes.replace(root, "")
        findings.append(found)
        if given.json != "-":
            print(_line(found), flush=True)
    if given.json:
        text = json.dumps([asdict(one) for one in findings], indent=1) + "\n"
        print(text, end="") if given.json == "-" else Path(given.json).write_text(text, encoding="utf-8")
    if given.report:
        given.report.write_text(page(findings), encoding="utf-8")
    return NO if missing else 0


def _cache() -> Path:
    return folders()[1] / "zoo"


def _here(file: Path) -> Path:
    if not file.exists():
        raise AnalysisError(str(file), "not there", "clone the repository there, or leave --from out")
    return file


def _cells(one: Finding) -> list[str]:
    numbers = (one.freedoms, one.loops, one.clusters, one.gap, one.modes, one.microseconds)
    shown = ["–" if value is None else f"{value:.2g}" if isinstance(value, float) else str(value) for value in numbers]
    differences = [value for value in one.there_and_back.values() if value is not None]
    missing = [kind for kind, value in one.there_and_back.items() if value is None]
    return [*shown, f"{max(differences, default=0.0):.0e}" + (f", not {', '.join(missing)}" if missing else "")]


def _line(one: Finding) -> str:
    if not one.loads:
        return f"{one.name}: {one.refused}"
    free, loops, clusters, gap, modes, call, again = _cells(one)
    return (
        f"{one.name}: {free} degrees of freedom, {loops} loops in {clusters} clusters, gap {gap} m, "
        f"modes {modes}, {call} µs, there and back {again}"
    )


def page(findings: Sequence[Finding]) -> str:
    """The findings as a page of Markdown."""
    rows = [
        "| file | degrees of freedom | loops | clusters | gap [m] | modes | lean call [µs] | there and back |",
        "|---|---|---|---|---|---|---|---|",
        *(f"| `{one.name}` | {' | '.join(_cells(one))} |" for one in findings if one.loads),
    ]
    refused = [f"| `{one.name}` | `{one.refused.replace('|', '/')}` |" for one in findings if not one.loads]
    if refused:
        rows += ["", "| file | reason |", "|---|---|", *refused]
    where = [f"| `{one.name}` | {one.repository} | `{one.commit[:10]}` | `{one.path}` |" for one in findings]
    rows += ["", "| file | repository | commit | path |", "|---|---|---|---|", *where]
    return "\n".join(rows) + "\n"
