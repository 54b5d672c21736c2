# SPDX-License-Identifier: Apache-2.0
"""One function of a robot while it is recorded: what stands for the working mode, stretches with their refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from pkm_description.mechanism import Array
from pkm_description.rotations import UNIT
from pkm_dynamics.dynamics import Dynamics
from pkm_kinematics.kernels.path.fixed_steps import place_iterated
from pkm_kinematics.kernels.position.chain import place_chain, read_chain
from pkm_kinematics.kernels.position.closed_form import read_angles, turn_from_home
from pkm_kinematics.kernels.position.closures import CLOSED, closed, inverse_by_rows, invert_block, turned_over
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    place_block,
    solve_positions,
    write_block_rows,
)
from pkm_kinematics.kernels.position.solve_poses import INSIDE
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.motion_space import is_off_space, onto_space
from pkm_kinematics.kernels.records import CLOSED_FORM, PLATFORM
from pkm_kinematics.kernels.regularity import factorise, is_regular, solve_three, turn_back
from pkm_kinematics.lean_kinematics import pose_near_home
from pkm_kinematics.recordings_at_home import FIRM, RecordedSpace, pose_inputs, some_numbers
from pkm_kinematics.solve.possible_twists import ASTRAY
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.codegen import Tape, loose, trace
from pkm_runtime.codegen.c_code import CCode, Part, harmless, identifier
from pkm_runtime.codegen.tape import Number, Term, call, extreme, value
from pkm_runtime.errors import PkmError

SINGULAR_SINGLE = 1e-4  # a margin below which a matrix of floats is singular
TAU = 6.283185307179586
POSE, SIDES, START, GIVEN, MORE = range(5)  # arrays of inputs: pose, sign per branch, joints at home, others
REFUSAL = {
    "invalid": "PKM_INVALID_INPUT",
    "unreachable": "PKM_UNREACHABLE",
    "singular": "PKM_SINGULAR",
    "blunt": "PKM_NOT_CONNECTED",
}

# Reciprocal condition of a part of a limb below which its joints are too inexact, and the limb is solved as a whole in
# Python: rounding leaves rates off by 1e-16 over its square.
BLUNT = 2e-2


# Of floats: what counts as closed where the motion space turns, and which constraints are independent.
CLOSED_SINGLE, FIRM_SINGLE = 1e-4, 1e-2


class Mode:
    """Stands for the number of a working mode in kernels, which only ever take its digits."""

    def __init__(self, side: Callable[[int], Number]) -> None:
        self._side = side

    def __lt__(self, other: object) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def __floordiv__(self, stride: int) -> Mode:
        return Mode(lambda _: self._side(stride))

    def __mod__(self, branches: int) -> Any:
        return 0 if branches == 1 else _Branch(self._side(branches))


class _Branch:
    """Branch 0 or 1 of a limb as kernels use it: 1 - 2 * branch is the sign of the side."""

    def __init__(self, side: Number) -> None:
        self.side = side

    def __lt__(self, other: object) -> bool:
        return False

    def __rmul__(self, two: float) -> _Branch:
        return self

    def __rsub__(self, one: float) -> Number:
        return self.side


def read_angles_without_branch(bodies: Any, state: Any, start: int, stop: int) -> None:
    """`read_angles` in operations that are the same for all angles."""
    for i in range(start, stop):
        if bodies[i].prismatic == 0:
            me = state[i]
            q = call("atan2", me.s, me.c)
            me.q = q + TAU * call("floor", (me.q - q) / TAU + 0.5)


def inverse_by_reflections(work: Any, at: int, m: int, n: int, to: int, idle: int) -> Number:
    """`inverse_by_rows` in two thirds of the operations, or fewer where many numbers are zero; no joint may be idle."""
    if idle:
        return trace(inverse_by_rows)(work, at, m, n, to, idle)
    given = np.array(work[at : at + m * n], dtype=object).reshape(m, n)
    rows, columns = _order_of_reflections(given)
    A = given[np.ix_(rows, columns)]
    squares = (A * A).sum(axis=0)
    inverse, weights, inverted = np.zeros((n, n), dtype=object), np.zeros(n, dtype=object), 0.0
    if not value(trace(factorise)(A, m, n, inverse, weights)) > 0.0:
        return 0.0
    for j, column in enumerate(columns):
        row = np.array([*inverse[j], *[0.0] * (m - n)], dtype=object)
        trace(turn_back)(A, m, n, weights, row)
        for r, x in zip(rows, row, strict=True):
            work[to + column * m + r] = x
        inverted = inverted + squares[j] * sum(x * x for x in row)
    return call("sqrt", n / inverted)


def _order_of_reflections(A: Array) -> tuple[list[int], list[int]]:
    """Rows and columns of A (m, n) in the order in which reflections keep most of its zeros."""
    there = np.array([[isinstance(x, Term) or x != 0.0 for x in row] for row in A])
    rows, columns = list[int](), list[int]()
    for _ in range(A.shape[1]):
        active = np.setdiff1d(np.arange(A.shape[0]), rows)
        touched = {  # by column: rows that its reflection mixes, and columns that have numbers there
            c: (mixed := active[there[active, c]], np.flatnonzero(there[mixed].any(axis=0)))
            for c in range(A.shape[1])
            if c not in columns
        }
        best = min(touched, key=lambda c: len(touched[c][0]) * len(touched[c][1]))
        mixed, wide = touched[best]
        there[np.ix_(mixed, wide)] = True
        columns.append(best)
        rows.append(int(mixed[0]) if len(mixed) else int(active[0]))
    return [*rows, *(r for r in range(A.shape[0]) if r not in rows)], columns


class ExportError(PkmError):
    """A robot that an outlet cannot express."""


class RobotFacts:
    """What functions of a robot need to know of it while they are recorded. Raises `ExportError`.

    With `turns`, cosines and sines of all joints stand behind their positions where limbs are iterated.
    """

    def __init__(self, dynamics: Dynamics, single: bool = False, turns: bool = False) -> None:
        self.dynamics, self.kinematics, self.engine = dynamics, dynamics.kinematics, dynamics.kinematics.engine
        blocks = self.engine.tables.blocks
        self.turning, self.iterated = not self.engine.constant_space, bool(self.engine.iterated)
        self.turns = turns and self.iterated
        refuse_redundant(self.engine.redundant_names, "generated code")
        self.tables, self.subspace, self.single = self.engine.tables, self.engine.model.subspace, single
        self.m = len(self.engine.actuated_names)
        self.n: int = self.engine.mobility if self.turning else self.subspace.shape[1]
        self.pose = pose_near_home(self.engine, self.kinematics.modes.start(0))
        self.rates = self._rates()  # twist and acceleration (6,) of the recording
        self.sides = [int(b["stride"]) for b in blocks if b["branches"] > 1]
        # what a float can see: see `docs/export_c.md`
        self.inside = 1e-4 if single else INSIDE
        self.instead: list[tuple[Any, Callable[..., Any]]] = [
            (read_angles, read_angles_without_branch),
            (solve_three, lambda A, b, x: 0.0),  # Householder's reflections, which serve every pose
            (inverse_by_rows, inverse_by_reflections),
        ]
        if single:
            self.instead += [
                (closed, lambda block, residual: residual < 1e-4 * block.size),
                (is_regular, lambda condition: condition > SINGULAR_SINGLE),
            ]
        self.group_of_body = self._groups()
        if self.iterated:
            self.solved = self.at_home
            self.expect(bool(np.isfinite(self.solved).all()), "its limbs do not reach the poses beside home")
        self.expect(
            not (self.one_way and self.m == self.n), "its drives only pull, or only push, and none is redundant"
        )

    @cached_property
    def at_home(self) -> Array:
        """Joints (n_joints,) at the pose near home where functions are recorded."""
        return np.asarray(self.kinematics.inverse(self.pose, mode=0).joints)

    @property
    def passive(self) -> list[int]:
        """Bodies of limbs whose joints are not driven."""
        return [i for i in range(2, len(self.tables.bodies)) if self.tables.bodies["actuator"][i] < 0]

    @property
    def one_way(self) -> bool:
        """Whether a drive only pulls, or only pushes."""
        return bool(self.kinematics.mechanism.one_way_actuators.any())

    @property
    def moves_into_space(self) -> bool:
        """Whether poses that miss what limbs allow by rounding are moved; of floats, what that is counts as closed."""
        return self.turning and not self.single

    def expect(self, fact: bool, otherwise: str) -> None:
        """Refuse the robot unless something is so."""
        if not fact:
            raise ExportError(f"{self.kinematics.mechanism.name}: not recorded: {otherwise}")

    def _rates(self) -> tuple[Any, Any]:
        numbers = some_numbers(self.n)
        if not self.turning:
            return (self.subspace @ numbers,) * 2
        at = self.kinematics.inverse(self.pose).rows(slice(None))
        twist = at.subspace[0] @ numbers
        return twist, twist + at.spaces(twist[None])[1][0]

    def _groups(self) -> list[str]:
        groups = ["", ""]
        for k, (first, stop) in enumerate(self.tables.limbs):
            count = sum(int(b["count"]) for b in self.tables.blocks[first:stop])
            groups += [f"limb{k + 1}"] * count
        return groups

    @property
    def titles(self) -> dict[str, str]:
        """Comments where the values of a limb begin, by group."""
        found = {"": "platform"}
        for k in range(len(self.tables.limbs)):
            group = f"limb{k + 1}"
            joints = [n for n, g in zip(self.tables.names, self.group_of_body, strict=True) if g == group]
            found[group] = f"limb {k + 1}: {harmless(', '.join(joints))}"
        return found


class RecordedFunction:
    """One function of a robot while it is recorded: its tape, the robot at a pose, and the parts so far."""

    def __init__(self, robot: RobotFacts) -> None:
        self.robot, self.tape, self.parts, self.regular = robot, Tape(), list[Part](), True
        self.inputs: dict[tuple[int, int], str] = {}
        engine = robot.engine
        self.model, self.data = loose(robot.dynamics.robot.model()), loose(engine.data())
        self.mode = Mode(self._side)

    # -- inputs -------------------------------------------------------------------------------------------------------

    def given(self, array: int, values: Any, name: str, places: Sequence[int] | None = None) -> Any:
        """Numbers of an input array that C calls `name`, its first if no places are told."""
        places, numbers = range(len(values)) if places is None else places, np.asarray(values, dtype=float)
        self.inputs |= {(array, k): f"{name}[{k}]" for k in places}
        found = [self.tape.inputs(array, numbers[i : i + 1], [0], k)[0] for i, k in enumerate(places)]
        return np.array(found, dtype=object)

    def _side(self, stride: int) -> Number:
        k = self.robot.sides.index(stride)
        self.inputs[SIDES, k] = f"side[{k}]"
        return self.tape.inputs(SIDES, np.array([1.0]), [0], k)[0]

    def rates(self, array: int, name: str) -> Any:
        """A twist or acceleration (6,) that is checked to be in the motion space."""
        S = self.robot.subspace
        raw = self.given(array, self.robot.rates[array - GIVEN], name)
        spaces = self.robot.engine.spaces
        self.trace(is_off_space)(raw, spaces.rate_scale, spaces.onto_space, self.robot.inside)
        free = np.abs(S).sum(axis=1) > 0.0
        return np.array([raw[k] if free[k] else 0.0 for k in range(6)], dtype=object)

    @property
    def open(self) -> str:
        """Why limbs stay open: out of reach, or beside what iteration can solve."""
        return "blunt" if self.robot.iterated else "unreachable"

    # -- stretches ----------------------------------------------------------------------------------------------------

    def trace(self, kernel: Any) -> Callable[..., Any]:
        """A kernel that takes terms."""
        return trace(kernel, self.robot.instead)

    def end(self, title: str, why: str, *results: tuple[str, Number]) -> None:
        """End a stretch: `why` a comparison that comes out otherwise is a reason to refuse."""
        refusal, found = f"return {REFUSAL[why]};", list(results) if self.regular else []
        self.parts.append(Part(title, len(self.tape.order), len(self.tape.conditions), refusal, found))

    def place(self, joints: bool) -> None:
        """Put the platform at the pose that is given, moved into the motion space if it misses that by rounding."""
        if self.robot.iterated:
            self.place_checked(joints)
            return
        self.check_pose(joints)

    def place_checked(self, joints: bool) -> None:
        """Put the platform at a pose that `platform` in C has moved into the motion space."""
        robot = self.robot
        pose = pose_inputs(self.tape, POSE, robot.pose, robot.subspace)
        self.inputs |= {(POSE, k): f"pose[{k}]" for k in range(7)}
        self.pose = pose
        platform = self.data.state[PLATFORM]
        self.trace(place_platform)(self.data.state, pose)
        if joints and len(self.model.chain) > 1:
            self.trace(read_chain)(self.model, self.data, platform.R, platform.p)

    def check_pose(self, joints: bool) -> None:
        """Refuse a pose that is not usable, and place the platform."""
        robot, tape = self.robot, self.tape
        pose = self.given(POSE, robot.pose, "pose")
        squares = sum(pose[k] * pose[k] for k in range(3, 7))
        length = call("sqrt", squares)
        tape.decide("<", abs(length - 1.0), UNIT)
        for k in range(3):
            tape.decide("<", abs(pose[k]), inf)
        clean = np.array([*pose[:3], *(pose[k] / length for k in range(3, 7))], dtype=object)
        self.pose = clean
        self.trace(place_platform)(self.data.state, clean)
        n = len(self.model.chain) - 1
        if n and (joints or n < 6):
            platform = self.data.state[PLATFORM]
            miss, turn = self.trace(read_chain)(self.model, self.data, platform.R, platform.p)
            if n < 6:
                for off, size in ((miss, robot.engine.size), (turn, 1.0)):
                    if isinstance(off, Term):
                        tape.decide("<", off, robot.inside * size)
                self.trace(place_chain)(self.model, self.data, platform.R, platform.p)

    def limbs(self, joints: bool, firm: bool = True) -> None:
        """Solve the limbs, on request with the angles of all joints; `firm` as in `take_joints`."""
        if self.robot.iterated:
            self.take_joints(len(self.model.blocks), firm=firm)
            return
        if joints:
            start = self.joints_from("start", self.robot.engine.home_joints)
        status, _, _ = self.trace(solve_positions)(self.model, self.data, self.mode, joints)
        self.robot.expect(status == CONVERGED, "limbs do not reach the pose beside home where it is recorded")
        if joints:
            turn = self.trace(turn_from_home)
            for block in self.model.blocks:
                if block.bend == block.bend:
                    me, home = self.data.state[block.driver], start[self.model.bodies[block.driver].column]
                    side = (self.mode // block.stride) % block.branches
                    me.q = turn(self.model.bodies, self.model.closures, block, self.data.state, side, home)

    def joints_from(self, name: str, values: Any) -> Any:
        """Give the bodies joint positions, an input that C calls `name`, which it returns."""
        q, n = self.given(START, values, name), len(values)
        for body, me in zip(self.model.bodies[2:], self.data.state[2:], strict=True):
            k = body.column
            me.q = q[k]
            if self.robot.turns and body.prismatic == 0:
                turn = np.cos(values[k]), np.sin(values[k])
                me.c, me.s = self.given(START, turn, name, (n + k, 2 * n + k))
        return q

    def take_joints(self, blocks: int, closes: Callable[[Any, Number], Any] | None = None, firm: bool = True) -> None:
        """Place the bodies of the first blocks by joint positions that are given, whose loops must be closed.

        With `firm`, parts of limbs that are nearly singular by themselves are refused.
        """
        self.joints_from("q", self.robot.solved)
        for block in self.model.blocks[:blocks]:
            self.place_block(block)
            closures, rows = self.model.closures, self.data.rows
            gap = self.trace(write_block_rows)(closures, block, self.data.state, rows)
            (closes or self.trace(closed))(block, gap)
            self.trace(turned_over)(closures, block, self.data.state)
            if firm and self.robot.engine.divided and block.solver != CLOSED_FORM:
                self.tape.decide(">", self.trace(invert_block)(self.model, self.data, block), BLUNT)

    def place_block(self, block: Any) -> None:
        """Place the bodies of a block by their joint positions."""
        self.trace(place_iterated if self.robot.turns else place_block)(self.model.bodies, block, self.data.state)

    def invert(self) -> Number:
        """Invert the limbs' equations; the regularity of the worst."""
        regularity = self.trace(invert_blocks)(self.model, self.data)
        self.regular = bool(self.trace(is_regular)(regularity))
        return regularity

    def space(self) -> RecordedSpace:
        """The motion space at the pose, where it turns, blocks inverted; refused where wrenches are not FIRM."""
        robot = self.robot
        self.end("how the limbs' joints move with the platform", "singular")
        why = "its limbs do not hold the platform as the platform's own branch does; see pkm transmission for linkages"
        robot.expect(robot.engine.task.subspace.shape[1] == 6, why)
        space = RecordedSpace(self.model, self.data, robot.n, robot.instead)
        firm = self.tape.decide(">", space.condition, FIRM_SINGLE if robot.single else FIRM)
        robot.expect(firm, "its limbs' constraints on the platform are nearly dependent beside home")
        self.end("what limbs hold of the platform", "blunt")
        return space

    def move(self, twist: Any, acceleration: Any) -> None:
        """Give the platform its motion, made the nearest one where the space turns, and all bodies theirs."""
        if self.robot.turning:
            space = self.space()
            wanted = twist.copy(), acceleration.copy()
            space.move(twist, acceleration)
            self._near(wanted[0], twist, self.robot.inside, size_of(wanted[0], space.length))
            along = wanted[1].copy()
            self.trace(onto_space)(self.model.subspace, space.length, along)
            sizes = size_of(wanted[1], space.length) + size_of(acceleration - along, space.length)
            self._near(wanted[1], acceleration, ASTRAY, sizes)
            self.end("the motion that limbs leave", "invalid")
            return
        self.trace(move_platform)(self.data.state, twist, acceleration)
        self.trace(velocities)(self.model, self.data)
        self.trace(accelerations)(self.model, self.data)

    def _near(self, wanted: Any, found: Any, part: float, size: Number) -> None:
        """Expect that a motion misses what is wanted by a part of one plus its size at most; any may be at rest."""
        if any(isinstance(x, Term) for x in wanted):
            off = size_of(wanted - found, self.model.task[0].length)
            self.tape.decide("<=", off, part * (1.0 + size))

    def open_limbs(self) -> Number:
        """Solve the limbs, whatever they hold of the platform; how open that is, 1 where it just counts as closed."""
        gaps: list[Number] = []
        bound = CLOSED_SINGLE if self.robot.single else CLOSED

        def note(block: Any, residual: Number) -> bool:
            gaps.append(residual / (bound * block.size))
            return True

        if self.robot.iterated:
            self.take_joints(len(self.model.blocks), note)
        else:
            trace(solve_positions, [*self.robot.instead, (closed, note)])(self.model, self.data, self.mode, False)
        return extreme("worse", *gaps)

    # -- C ------------------------------------------------------------------------------------------------------------

    def code(self, single: bool) -> CCode:
        """The body of the function."""
        names, groups = self._names()
        return CCode(self.tape, self.parts, self.inputs, names, groups, single)

    def _names(self) -> tuple[dict[int, str], dict[int, str]]:
        names: dict[int, str] = {}
        groups: dict[int, str] = {}
        taken: set[str] = set()
        for i, me in enumerate(self.data.state):
            for what, number in _values_of(me):
                if not isinstance(number, Term) or number.how[0] in ("input", "negated") or number.number in names:
                    continue
                name = f"{identifier(self.robot.tables.names[i])}_{what}"
                if name not in taken:
                    names[number.number] = name
                    taken.add(name)
                    groups[number.number] = self.robot.group_of_body[i]
        return names, groups


AXES = ("x", "y", "z")
VECTORS_OF_BODY = {"p": "{}", "w": "w_{}", "v": "v_{}", "dw": "dw_{}", "dv": "dv_{}", "force": "force_{}"}
VECTORS_OF_BODY |= {"torque": "torque_{}", "moment": "moment_{}"}
NUMBERS_OF_BODY = {"c": "cos", "s": "sin", "q": "q", "qd": "qd", "qdd": "qdd", "effort": "effort"}


def _values_of(me: Any) -> Iterator[tuple[str, Number]]:
    for field, what in NUMBERS_OF_BODY.items():
        yield what, getattr(me, field)
    for field, text in VECTORS_OF_BODY.items():
        for axis, number in zip(AXES, getattr(me, field), strict=True):
            yield text.format(axis), number
    for r in range(3):
        for k in range(3):
            yield f"R{r}{k}", me.R[r, k]
    for k, name in enumerate(("xx", "xy", "xz", "yy", "yz", "zz")):
        yield f"I{name}", me.inertia[k]


def any_gap(block: Any, residual: Number) -> bool:
    """In place of `closed`."""
    return True


def size_of(rates: Any, length: float) -> Number:
    """Size of a twist or an acceleration (6,), rotations at a length."""
    scaled = [*rates[:3], *(length * x for x in rates[3:])]
    return call("sqrt", sum(x * x for x in scaled))
