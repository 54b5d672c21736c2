# SPDX-License-Identifier: Apache-2.0
"""Springs and counterweights that leave the drives least to hold, at rest and over a domain.

At rest the efforts are linear in stiffness and mass: those of the robot without springs, and a column for each spring
of unit stiffness and each counterweight of unit mass. The sum of squares over all poses and drives is least for what
non-negative least squares finds (Lawson and Hanson). Of a spring whose rest length may be anything between two bounds
the columns at both span all that it can do, as its force is linear in stiffness and in stiffness times rest length.
Where ends may move, a search over their places has that solution inside (variable projection, Golub and Pereyra, 1973).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Range, nodes_of
from pkm_analysis.plottable import Table
from pkm_analysis.requirements.conditions import INSIDE, Membership, OverDomain
from pkm_analysis.requirements.grammar import shown
from pkm_analysis.workspace.border import extent
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Inertial, Mechanism, Spring, frozen
from pkm_dynamics.inverse_and_direct import efforts_of
from pkm_dynamics.problem import Problem
from pkm_kinematics.kernels.records import JOINT_SPRING
from pkm_kinematics.model.tables import add_mass, build_graph, spring_table
from pkm_runtime.describable import counted, listed
from pkm_runtime.sweeps import Sweeps, duration
from pkm_runtime.yaml_section import Section, read_yaml

STIFF = 1.0  # N/m, N m/rad: of the springs that are to be sized, until they are
POSES = 400  # about, where no resolution is given
STARTS = 4  # of the search over places of ends
EVALUATIONS = 200  # at most, of each start
NONE = 1e-6  # of what the spring alone would need: stiffness and mass below it are none
STEEL = (1200e6, 210e9, 7800.0)  # Pa, Pa, kg/m^3: stress, Young's modulus and density of spring steel
USED = {"helical": 0.25, "torsion": 0.125}  # part of the energy that evenly strained material would store (Herder)


@dataclass(frozen=True, eq=False)
class StraightSpring:
    """A spring to be sized, with its least and largest rest length [m]; ends may `move` [m] along each axis."""

    spring: Spring
    rest: tuple[float, float]
    move: float = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        return self.spring.name


@dataclass(frozen=True)
class JointSpring:
    """A spring of a joint whose stiffness is to be found; it rests between two positions [rad or m]."""

    name: str  # of the joint
    rest: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Counterweight:
    """A mass on a link whose size is to be found, at a point (3,) of the link that may move as a spring's end."""

    name: str
    link: str
    point: Array
    move: float = 0.0


Candidate = StraightSpring | JointSpring | Counterweight


def described(mechanism: Mechanism, rest: tuple[float, float] | None, move: float) -> list[Candidate]:
    """The springs of a description, to be sized anew; with other rest lengths [m] where `rest` is given."""
    found: list[Candidate] = [
        StraightSpring(spring, rest or (spring.rest_length, spring.rest_length), move) for spring in mechanism.springs
    ]
    joints = (joint for joint in mechanism.joints if joint.spring_stiffness > 0.0)
    return found + [JointSpring(joint.name, (joint.spring_reference, joint.spring_reference)) for joint in joints]


def read_candidates(path: str | Path, mechanism: Mechanism, rest: tuple[float, float], move: float) -> list[Candidate]:
    """The springs and counterweights of a YAML file, lengths in m; `rest` and `move` are of those that say nothing.

    Raises `ConfigurationError` for what cannot be read, or names what the robot lacks.
    """
    source, values = read_yaml(Path(path))
    file = Section(source, "", values)
    found: list[Candidate] = []
    springs, weights = file.mapping("springs"), file.mapping("counterweights")
    for name in springs:
        one = Section(source, f"springs.{name}", springs[name])
        found.append(
            _joint_spring(one, mechanism) if one.has("joint") else _spring(str(name), one, mechanism, rest, move)
        )
        one.finish()
    for name in weights:
        one = Section(source, f"counterweights.{name}", weights[name])
        point = frozen(one.numbers("xyz", (3,)))
        found.append(Counterweight(str(name), _body(one, "link", mechanism), point, _length(one, "move", move)))
        one.finish()
    if not found:
        raise file.wrong("", "it has neither springs nor counterweights", "see docs/balance.md for an example")
    file.finish()
    return found


def _spring(name: str, one: Section, mechanism: Mechanism, rest: tuple[float, float], move: float) -> StraightSpring:
    ends = [(_body(one, key, mechanism), frozen(one.numbers(f"{key}_xyz", (3,)))) for key in ("from", "to")]
    if ends[0][0] == ends[1][0]:
        raise one.wrong("to", f"both ends are on '{ends[0][0]}'", "name two different links")
    lengths = one.numbers("rest_length", (1, 2), rest)
    if not 0.0 <= lengths[0] <= lengths[-1]:
        raise one.wrong("rest_length", "these are not lengths, the least first", "give one, or [least, largest], in m")
    spring = Spring(name, STIFF, *ends[0], *ends[1])
    return StraightSpring(spring, (lengths[0], lengths[-1]), _length(one, "move", move))


def _joint_spring(one: Section, mechanism: Mechanism) -> JointSpring:
    able = [j.name for j in mechanism.joints if len(freedoms(j)) == 1 and j.name not in mechanism.virtual_chain]
    joint = one.text("joint", choices=able)
    rest = one.numbers("reference", (1, 2), (-np.pi, np.pi))
    if rest[0] > rest[-1]:
        raise one.wrong("reference", "the least comes first", "give one position, or [least, largest], in rad or m")
    return JointSpring(joint, (rest[0], rest[-1]))


def _body(one: Section, key: str, mechanism: Mechanism) -> str:
    between = {mechanism.joint_named[name].child for name in mechanism.virtual_chain} - {mechanism.platform_link}
    return one.text(key, choices=[link.name for link in mechanism.links if link.name not in between])


def _length(one: Section, key: str, default: float) -> float:
    return one.number(key, default, (0.0, 100.0))


def spring_mass(energy: float, kind: str = "helical") -> float:
    """Mass [kg] of a steel spring that stores an energy [J] at most: U = eta V sigma^2 / E (Herder)."""
    stress, modulus, density = STEEL
    return density * energy * modulus / (USED[kind] * stress**2)


@dataclass(frozen=True, eq=False)
class Sized:
    """A candidate with its stiffness [N/m, N m/rad] or mass [kg], and what it does over the domain.

    `lengths` are the least and the largest length [m] of a straight spring, or positions of the joint from where its
    spring rests [rad or m]; `force` [N, N m] and `energy` [J] are the largest.
    """

    what: Candidate
    size: float
    rest: float = 0.0
    lengths: tuple[float, float] = (0.0, 0.0)
    force: float = 0.0
    energy: float = 0.0

    @property
    def mass(self) -> float:
        """Mass [kg]: of a counterweight, or about that of a steel spring."""
        if isinstance(self.what, Counterweight):
            return self.size
        return spring_mass(self.energy, "torsion" if isinstance(self.what, JointSpring) else "helical")

    @property
    def element(self) -> str:
        """The element of the description."""
        one = self.what
        if isinstance(one, Counterweight):
            inertial = f'<inertial><mass value="{self.size:.10g}"/></inertial>'
            return (
                f'<link name="{one.name}">{inertial}</link>\n<joint name="{one.name}_mount" type="fixed">'
                f'<parent link="{one.link}"/><child link="{one.name}"/><origin xyz="{_row(one.point)}"/></joint>'
            )
        if isinstance(one, JointSpring):
            spring = f'spring_stiffness="{self.size:.10g}" spring_reference="{self.rest:.10g}"'
            return f'<joint name="{one.name}" ...> <dynamics {spring}/>'
        more = f' rest_length="{self.rest:.10g}"' if self.rest else ""
        more += f' preload="{one.spring.preload:.10g}"' if one.spring.preload else ""
        s = one.spring
        ends = (("from", s.from_link, s.from_point), ("to", s.to_link, s.to_point))
        points = "".join(f'<{tag} link="{link}" xyz="{_row(point)}"/>' for tag, link, point in ends)
        return f'<spring name="{one.name}" stiffness="{self.size:.10g}"{more}>{points}</spring>'

    def in_words(self, unit: str) -> str:
        """What it is; `unit` is that of the joint's position."""
        one, longest = self.what, self.lengths[1]
        if isinstance(one, Counterweight):
            return f"{one.name}: {self.size:.4g} kg on {one.link} at {_place(one.point)}"
        if isinstance(one, JointSpring):
            effort = "N m" if unit == "rad" else "N"
            return (
                f"{one.name}: {self.size:.4g} {effort}/{unit}, at rest at {shown(self.rest, unit)}; up to "
                f"{self.force:.4g} {effort} and {self.energy:.3g} J, some {self.mass:.2g} kg of spring steel"
            )
        rest = shown(self.rest, "m") if self.rest else "none"
        return (
            f"{one.name}: {1e-3 * self.size:.4g} N/mm, rest length {rest}, from {one.spring.from_link} "
            f"{_place(one.spring.from_point)} to {one.spring.to_link} {_place(one.spring.to_point)}; up to "
            f"{shown(longest, 'm')} long, {self.force:.4g} N and {self.energy:.3g} J, some {self.mass:.2g} kg of "
            "spring steel"
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in SI units."""
        kind = {StraightSpring: "spring", JointSpring: "joint", Counterweight: "counterweight"}[type(self.what)]
        found = {"name": self.what.name, "kind": kind, "element": self.element, "mass": self.mass}
        if kind != "counterweight":
            found |= {"stiffness": self.size, "rest": self.rest, "lengths": list(self.lengths)}
            found |= {"force": self.force, "energy": self.energy}
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Balance(OverDomain):
    """Efforts that hold a robot still over a domain, and the springs and counterweights that leave least of them.

    `efforts` has them by name, "without springs", "as described", "balanced": (n, n_actuated) [N m or N] at those nodes
    of the `axes` that the `mask` has. `sized` are the candidates, those of no use left out.
    """

    _picture: ClassVar[str] = "performance_pictures.balance_picture"

    membership: Membership
    axes: tuple[Array, ...]
    mask: NDArray[np.bool_]  # (n_nodes,) of the grid, the last coordinate fastest
    efforts: dict[str, Array]
    sized: tuple[Sized, ...]
    notes: tuple[str, ...]

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Unit of each drive's effort."""
        return tuple(self.membership.robot.mechanism.joint_named[name].effort_unit for name in self.drives)

    @property
    def drives(self) -> tuple[str, ...]:
        """Names of the drives."""
        return self.membership.robot.kinematics.actuated_names

    def rms(self, which: str) -> Array:
        """Root of the mean square (n_actuated,) of each drive's effort."""
        return np.asarray(np.sqrt(np.mean(self.efforts[which] ** 2, axis=0)))

    def worst(self, which: str) -> Array:
        """The largest effort (n_actuated,) of each drive."""
        return np.asarray(np.abs(self.efforts[which]).max(axis=0))

    def _summary(self) -> str:
        name, (first, *others) = self.membership.robot.name, self.efforts
        if not others:
            return f"{name}: to hold it takes {self._of_all(first)}"
        return f"{name}: to hold it takes {self._of_all(others[-1])}, and {self._of_all(first)} {first}"

    def _of_all(self, which: str) -> str:
        words = []
        for unit in dict.fromkeys(self.units):
            of = np.array([one == unit for one in self.units])
            rms = float(np.sqrt(np.mean(self.efforts[which][:, of] ** 2)))
            words.append(f"{_effort(rms)} {unit} rms, {_effort(self.worst(which)[of].max())} {unit} at most")
        return " and ".join(words)

    def _details(self) -> list[str]:
        lines = [f"over {self.domain.in_words()}, {counted(int(self.mask.sum()), 'pose')}"]
        head, *rows = self._rows
        widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
        lines += ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in self._rows]
        lines += [f"{one.in_words(self._unit(one.what))}" for one in self.sized]
        lines += self.notes
        if self.sized:
            lines += ["for the description:", *(f"  {line}" for one in self.sized for line in one.element.splitlines())]
        return lines

    def _unit(self, one: Candidate) -> str:
        return self.membership.robot.mechanism.joint_named[one.name].unit if isinstance(one, JointSpring) else "m"

    @property
    def _rows(self) -> list[list[str]]:
        head = ["drive", *(f"{which}: rms, largest" for which in self.efforts)]
        every = {which: (self.rms(which), self.worst(which)) for which in self.efforts}
        rows = [
            [name, *(f"{_effort(rms[k])}, {_effort(worst[k])} {unit}" for rms, worst in every.values())]
            for k, (name, unit) in enumerate(zip(self.drives, self.units, strict=True))
        ]
        return [head, *rows]

    @property
    def tables(self) -> list[Table]:
        """Efforts of every drive before and after, and what is sized."""
        head, *rows = self._rows
        found = [Table("Efforts that hold the robot", head, rows)]
        if self.sized:
            what = [[one.what.name, one.in_words(self._unit(one.what)).partition(": ")[2]] for one in self.sized]
            found.append(Table("Springs and counterweights", ["name", "what it is"], what))
        return found

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in SI units."""
        efforts = {one: {"rms": self.rms(one).tolist(), "worst": self.worst(one).tolist()} for one in self.efforts}
        return {
            **self.asked,
            "poses": int(self.mask.sum()),
            "drives": list(self.drives),
            "effort_units": list(self.units),
            "efforts": efforts,
            "springs": [one.to_dict() for one in self.sized],
            "notes": list(self.notes),
        }


def balance(
    conditions: Membership,
    given: dict[str, Range],
    candidates: Sequence[Candidate] | None,
    payload: Inertial | None = None,
    resolution: int | None = None,
    described: Sequence[Candidate] = (),
) -> Balance:
    """Efforts at rest over a domain with and without springs, and the best sizes of candidates.

    Without `candidates` those of the description are sized, given as `described`; else these stay as they are. `given`
    are ranges [m, rad] by full name, others the workspace's extent; `resolution` counts nodes along each coordinate.
    `AnalysisError` where the robot can be nowhere.
    """
    membership = conditions.over(conditions.domain.within(extent(conditions, given)))
    domain, robot = membership.domain, membership.robot
    counts = [resolution or max(3, round(POSES ** (1.0 / domain.dimension)))] * domain.dimension
    axes = tuple(domain.grid(counts))
    nodes = nodes_of(axes)
    poses, known = domain.poses(nodes)
    mask = known & (membership.codes(nodes) == INSIDE)
    if not mask.any():
        raise AnalysisError("balance", f"the robot cannot be anywhere over {domain.in_words()}", "give other ranges")
    loads = Loads(membership, poses[mask], payload)
    mask[np.flatnonzero(mask)[~loads.held]] = False
    notes = [] if loads.held.all() else [f"left out: {int((~loads.held).sum())} poses where the drives lose hold"]
    efforts = {"without springs": loads.efforts()}
    springs = robot.dynamics.robot.springs
    if len(springs):
        efforts["as described"] = loads.efforts(springs)
    wanted = list(described if candidates is None else candidates)
    sized: tuple[Sized, ...] = ()
    if wanted:
        search = _Search(loads, wanted, springs[:0] if candidates is None else springs, robot.sweeps)
        sized, efforts["balanced"] = search.best()
        useless = sorted({one.name for one in wanted} - {one.what.name for one in sized})
        notes += [f"of no use, and left out: {listed(useless)}"] if useless else []
        weights = sum(one.size for one in sized if isinstance(one.what, Counterweight))
        notes += [f"counterweights add {weights:.4g} kg to what moves"] if weights else []
    else:
        notes.append("no springs are described: --springs FILE names places for some")
    if len(robot.kinematics.actuated_names) > robot.kinematics.mobility:
        notes.append("more drives than degrees of freedom: efforts are those of least norm")
    return Balance(membership, axes, mask, efforts, sized, tuple(notes))


class Loads:
    """Efforts at rest at poses (n, 7), for any springs and masses; `held` are the rows where drives hold the robot."""

    def __init__(self, membership: Membership, poses: Array, payload: Inertial | None) -> None:
        robot = membership.robot
        self.mechanism, self.tables = robot.mechanism, robot.kinematics.tables
        at = robot.kinematics.at(poses, mode=robot.mode)
        at.solved()  # once: kernels then place the bodies, and solve nothing
        self._problem = Problem.of(robot.dynamics.robot, at, payload=payload)
        self._graph = build_graph(self.mechanism)
        names = self.tables.names
        self._place = {k: k if k < 2 else names.index(body.name) for k, body in enumerate(self._graph.bodies)}
        self.held: NDArray[np.bool_] = np.ones(len(poses), dtype=bool)
        self.held = np.asarray(np.isfinite(self.efforts()).all(axis=1))

    def efforts(self, springs: NDArray[Any] | None = None, masses: Sequence[tuple[str, Array]] = ()) -> Array:
        """Efforts (n, n_actuated) with a table of springs, none by default, and units of mass at points of links."""
        springs = self.tables.springs[:0] if springs is None else springs
        model = self._problem.model.replace(springs=springs)
        if masses:
            bodies = model.bodies.copy()
            for link, point in masses:
                frame = self._graph.link_frame[link]
                add_mass(bodies[self._place[self._graph.link_body[link]]], Inertial(1.0, point).in_frame(frame).ten)
            model = model.replace(bodies=bodies)
        status = self._problem.status.copy()
        return np.asarray(efforts_of(replace(self._problem, model=model, status=status))[0][self.held])

    def table(self, *springs: Spring) -> NDArray[Any]:
        """The table of straight springs."""
        described = replace(self.mechanism, springs=springs)
        return spring_table(described, self._graph, self._place, {})[: len(springs)]

    def joint_table(self, joint: str, stiffness: float, rest: float) -> NDArray[Any]:
        """The table of a spring of a joint."""
        k = self.tables.names.index(joint)
        found = np.zeros(1, dtype=self.tables.springs.dtype)
        body = self.tables.bodies[k]
        found[0] = (JOINT_SPRING, body["parent"], k, np.zeros(3), np.zeros(3), stiffness, rest, 0.0, body["home"])
        return found

    @cached_property
    def _frames(self) -> tuple[Array, Array]:
        states = [self._problem.moved(int(i)).state for i in np.flatnonzero(self.held)]
        return np.array([state["R"] for state in states]), np.array([state["p"] for state in states])

    def lengths(self, spring: Spring) -> Array:
        """Lengths (n,) of a straight spring [m]."""
        (row,), (R, p) = self.table(spring), self._frames
        first, second = (p[:, row[end]] + R[:, row[end]] @ row[f"{end}_point"] for end in ("first", "second"))
        return np.asarray(np.linalg.norm(second - first, axis=1))

    def positions(self, joint: str) -> Array:
        """Positions (n,) of a joint [rad or m]."""
        column = int(self.tables.bodies["column"][self.tables.names.index(joint)])
        return np.asarray(self._problem.at.solved().q[self.held, column])


class _Search:
    """The sizes of candidates, and the places of their ends, with the least sum of squares of efforts."""

    def __init__(self, loads: Loads, candidates: Sequence[Candidate], fixed: NDArray[Any], sweeps: Sweeps) -> None:
        self.loads, self.candidates, self.fixed, self.sweeps = loads, candidates, fixed, sweeps
        mechanism = loads.mechanism
        units = [mechanism.joint_named[name].effort_unit for name in mechanism.actuated_joints]
        self.plain, self.weights = loads.efforts(), np.ones(len(units))
        if len(set(units)) > 1:  # N and N m: each in units of what it is without springs
            for unit in set(units):
                of = np.array([one == unit for one in units])
                self.weights[of] = 1.0 / max(float(np.sqrt(np.mean(self.plain[:, of] ** 2))), 1e-300)

    def best(self) -> tuple[tuple[Sized, ...], Array]:
        """Candidates with their sizes, without those of no use, and the efforts (n, n_actuated) that they leave."""
        reach = np.concatenate([[0.0], *(_moves(one) for one in self.candidates)])[1:]
        x, moving = np.zeros(len(reach)), np.flatnonzero(reach)
        if len(moving):
            x[moving] = self._best_places(reach, moving)
        placed = list(self._placed(x))
        columns, constant = self._columns(placed)
        amounts = self._amounts(columns, constant)
        sized = [s for one, of in zip(placed, self._of(placed), strict=True) if (s := self._sized(one, amounts[of]))]
        return tuple(sized), constant + columns @ amounts

    def _best_places(self, reach: Array, moving: NDArray[np.int64]) -> Array:
        """Displacements (k,) of what moves: the best of a few starts, the first from where the ends are given."""
        bounds, random = reach[moving], np.random.default_rng(0)
        starts = [np.zeros(len(moving)), *(random.uniform(-0.7, 0.7, (STARTS - 1, len(moving))) * bounds)]
        began, tried, most = time.monotonic(), itertools.count(1), STARTS * EVALUATIONS * (len(moving) + 1)

        def missed(of: Array) -> Array:
            x = np.zeros(len(reach))
            x[moving] = of
            columns, constant = self._columns(self._placed(x))
            left = constant + columns @ self._amounts(columns, constant)
            done = next(tried)
            longest = duration((time.monotonic() - began) / done * (most - done))
            self.sweeps.note = f"places of ends: {done} tried of {most} at most, {longest} left at most"
            return np.asarray((left * self.weights).ravel())

        found = [
            scipy.optimize.least_squares(
                missed, start, bounds=(-bounds, bounds), x_scale=bounds, max_nfev=EVALUATIONS, xtol=1e-9, ftol=1e-9
            )
            for start in starts
        ]
        return np.asarray(min(found, key=lambda one: float(one.cost)).x)

    def _placed(self, x: Array) -> list[Candidate]:
        found: list[Candidate] = []
        for one in self.candidates:
            by, x = x[: len(_moves(one))], x[len(_moves(one)) :]
            if isinstance(one, StraightSpring):
                s = one.spring
                first, second = frozen(s.from_point + by[:3]), frozen(s.to_point + by[3:])
                found.append(replace(one, spring=replace(s, from_point=first, to_point=second)))
            else:
                found.append(replace(one, point=frozen(one.point + by)) if isinstance(one, Counterweight) else one)
        return found

    @staticmethod
    def _of(candidates: Sequence[Candidate]) -> list[slice]:
        """Columns of each candidate: one, or two where its spring's rest may be anything between two bounds."""
        widths = [1 if isinstance(one, Counterweight) or one.rest[0] == one.rest[1] else 2 for one in candidates]
        return [slice(int(a), int(b)) for a, b in itertools.pairwise(np.cumsum([0, *widths]))]

    def _columns(self, candidates: Sequence[Candidate]) -> tuple[Array, Array]:
        """Efforts (n, n_actuated, k) per unit of each amount, and those (n, n_actuated) of all that is not sized."""
        loads, plain, found = self.loads, self.plain, []
        preloads = [replace(one.spring, stiffness=0.0) for one in candidates if isinstance(one, StraightSpring)]
        given = np.concatenate([self.fixed, loads.table(*(one for one in preloads if one.preload))])
        for one in candidates:
            if isinstance(one, Counterweight):
                found.append(loads.efforts(masses=[(one.link, one.point)]))
                continue
            for rest in dict.fromkeys(one.rest):
                if isinstance(one, JointSpring):
                    found.append(loads.efforts(loads.joint_table(one.name, 1.0, rest)))
                else:
                    unit = replace(one.spring, stiffness=1.0, rest_length=rest, preload=0.0)
                    found.append(loads.efforts(loads.table(unit)))
        return np.stack(found, axis=2) - plain[:, :, None], loads.efforts(given) if len(given) else plain

    def _amounts(self, columns: Array, constant: Array) -> Array:
        """What is to be taken of each column (k,), none negative, and none of what is of no use."""
        A = (columns * self.weights[:, None]).reshape(-1, columns.shape[2])
        b = -(constant * self.weights).ravel()
        size = np.linalg.norm(A, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        found, _ = scipy.optimize.nnls(A / size, b)
        return np.asarray(np.where(found > NONE * np.linalg.norm(b), found, 0.0) / size)

    def _sized(self, one: Candidate, amounts: Array) -> Sized | None:
        size = float(amounts.sum())
        if size == 0.0:
            return None
        if isinstance(one, Counterweight):
            return Sized(one, size)
        rest = float(np.dot(amounts, list(dict.fromkeys(one.rest)))) / size
        preload = 0.0
        if isinstance(one, JointSpring):
            lengths = self.loads.positions(one.name) - rest
            stretch = lengths
        else:
            lengths, preload = self.loads.lengths(one.spring), one.spring.preload
            stretch = lengths - rest
        force = float(np.abs(size * stretch + preload).max())
        energy = float(((0.5 * size * stretch + preload) * stretch).max())
        return Sized(one, size, rest, (float(lengths.min()), float(lengths.max())), force, energy)


def _moves(one: Candidate) -> Array:
    return np.full({StraightSpring: 6, Counterweight: 3}.get(type(one), 0), getattr(one, "move", 0.0))


def _effort(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:.4g}"


def _place(point: Array) -> str:
    return f"({', '.join(f'{1e3 * round(value, 9) + 0.0:.4g}' for value in point.tolist())}) mm"


def _row(point: Array) -> str:
    return " ".join(f"{round(value, 12) + 0.0:.10g}" for value in point.tolist())
