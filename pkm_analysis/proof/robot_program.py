# SPDX-License-Identifier: Apache-2.0
"""One robot's kinematics as a program for jets: recorded from the kernels that every robot runs on.

The kernels that place bodies and solve limbs in closed form run once as plain Python on numbers that record their
operations. Limbs without a closed form contribute their closure equations, with their joints as unknowns.

The kernels compute the cosine and the sine of a joint without its angle. Over intervals this loses their dependence.
Here each is the cosine and the sine of an angle, measured from the quarter turn nearest in the recording, so that no
branch cut is near. The tape becomes a table that the interpreter of jets runs (`kernels/intervals.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import atan2, pi
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.proof.kernels import intervals
from pkm_description.mechanism import Array
from pkm_dynamics.kernels.wrenches import straight_energy
from pkm_kinematics.kernels.position.chain import place_chain
from pkm_kinematics.kernels.position.closed_form import face, solve_closed_form, turn_to
from pkm_kinematics.kernels.position.closures import block_jacobian, write_rows
from pkm_kinematics.kernels.position.positions import place_block
from pkm_kinematics.kernels.rates.motion_space import limb_system
from pkm_kinematics.kernels.records import BASE, CLOSED_FORM, JOINT_SPRING, PLATFORM
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.recordings_at_home import NEAR, some_numbers
from pkm_runtime.codegen import Tape, loose, trace
from pkm_runtime.codegen.tape import Constant, Number, Term, call, extreme, key, value

Numbers = NDArray[np.int64]
HALF_PI = 0.5 * pi
PIVOT = 1e-9  # of the largest: a joint or an equation with a smaller pivot is dependent
_PLAIN = {  # operations of a tape that have one operation of their own
    "+": intervals.ADD,
    "-": intervals.SUBTRACT,
    "atan2": intervals.ANGLE,
    "negated": intervals.NEGATED,
    "sqrt": intervals.ROOT,
    "sin": intervals.SINE,
    "cos": intervals.COSINE,
}
_COMPARISONS = {  # what is compared with which outcome, and whether the sides change places
    "<": (intervals.LESS, True, False),
    ">": (intervals.LESS, True, True),
    "<=": (intervals.LESS, False, True),
    ">=": (intervals.LESS, False, False),
    "==": (intervals.EQUAL, True, False),
    "!=": (intervals.EQUAL, False, False),
}


class Program(NamedTuple):
    """A tape in rows: constants first, then inputs and what is computed from them, in order."""

    terms: Numbers  # (n, 3) operation and operands
    constants: Numbers  # (c,) rows of constants
    values: Array  # (c,) what they are
    conditions: Numbers  # (d, 4) comparison, left, right, outcome
    rows: dict[int | Constant, int]  # of terms and constants, by their identity in the tape
    reaches: tuple[int, ...]  # rows that must not be negative: what is under the roots of closed forms

    def rows_of(self, numbers: Iterable[Number]) -> Numbers:
        """The rows (n,) of numbers; -1 for terms that nothing needs."""
        return np.array([self.rows.get(key(n), -1) for n in numbers], dtype=np.int64)


def compile_tape(tape: Tape, results: Iterable[Number]) -> Program:
    """The rows of a tape that `results` and the comparisons recorded need.

    Closed forms take the root of the larger of a number and zero. The number itself is used here, which leaves an
    interval with a root of its own where it is negative nowhere, and it is listed in `reaches`: a limb reaches its
    target where it is not negative. `AnalysisError` for an operation without an interval form.
    """
    results = list(results)
    needed = tape.needed(results)
    used: list[int | Constant] = [key(r) for r in results]
    for term in needed:
        if term.how[0] != "input":
            used += term.how[1:]
    for _, left, right in tape.conditions:
        used += [left, right]
    constants = list(dict.fromkeys(k for k in [*used, Constant(1.0)] if isinstance(k, Constant)))
    table = _Rows(constants)
    for term in needed:
        table.places[term.number] = table.add(term)
    checks = []
    for (comparison, *sides), was in tape.conditions.items():
        what, outcome, turned = _COMPARISONS[comparison]
        left, right = (table.places[side] for side in (sides[::-1] if turned else sides))
        checks.append([what, left, right, int(was == outcome)])
    return Program(
        np.array(table.rows, dtype=np.int64).reshape(-1, 3),
        np.arange(len(constants)),
        np.array(constants, dtype=float),
        np.array(checks, dtype=np.int64).reshape(-1, 4),
        table.places,
        tuple(dict.fromkeys(table.reaches)),
    )


class _Rows:
    def __init__(self, constants: list[Constant]) -> None:
        self.places: dict[int | Constant, int] = {value: i for i, value in enumerate(constants)}
        self.rows, self.constants, self.reaches = (
            [(intervals.GIVEN, 0, 0)] * len(constants),
            len(constants),
            list[int](),
        )
        self._known: dict[tuple[int, int, int], int] = {}

    def _write(self, what: int, a: int = 0, b: int = 0) -> int:
        row = (what, a, b)
        if what == intervals.GIVEN or row not in self._known:
            self.rows.append(row)
            self._known[row] = len(self.rows) - 1
        return self._known[row]

    def add(self, term: Term) -> int:
        """Write the rows of one term; the row of its value."""
        what, *operands = term.how
        if what == "input":
            return self._write(intervals.GIVEN)
        at = [self.places[o] for o in operands]
        if what == "max" and Constant(0.0) in operands:
            reach = at[1] if operands[0] == Constant(0.0) else at[0]
            self.reaches.append(reach)
            return reach
        if what == "*":
            return self._product(*at)
        if what == "/":
            return self._product(at[0], self._write(intervals.RECIPROCAL, at[1]))
        if what in _PLAIN:
            return self._write(_PLAIN[what], *at)
        raise AnalysisError("proof", f"the operation '{what}' has no interval form", "prove what does not need it")

    def _product(self, a: int, b: int) -> int:
        if a == b:
            return self._write(intervals.SQUARE, a)
        if b < self.constants:
            a, b = b, a
        return self._write(intervals.MULTIPLE if a < self.constants else intervals.MULTIPLY, a, b)


class Angles:
    """Angles of joints solved in closed form; `instead` pairs kernels with their replacement in the recording."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, Any], Number] = {}
        self.instead: list[tuple[Any, Callable[..., Any]]] = [(turn_to, self.turn_to), (face, self.face)]

    def of(self, c: Number, s: Number) -> Number:
        """The angle [rad] of a joint with this cosine and sine."""
        known = self._found.get((key(c), key(s)))
        return atan2(value(s), value(c)) if known is None else known

    def _turned(self, y: Number, x: Number, more: Number = 0.0, quarters: int = 0) -> tuple[Number, Number]:
        """Cosine and sine of the angle of (x, y) plus `more`, plus quarter turns."""
        base = round(atan2(value(y), value(x)) / HALF_PI)
        for _ in range(base % 4):
            x, y = y, -x
        angle = call("atan2", y, x) + more
        c, s = call("cos", angle), call("sin", angle)
        quarters += base
        for _ in range(quarters % 4):
            c, s = -s, c
        self._found[key(c), key(s)] = angle + quarters * HALF_PI
        return c, s

    def turn_to(self, A: Number, B: Number, C: Number, sign: float) -> tuple[Number, Number, Number]:
        """`turn_to`: the angle of (A, B), plus that from there to where A cos q + B sin q = C."""
        rr = A * A + B * B
        if rr == 0.0:
            return 1.0, 0.0, -1.0
        if not isinstance(C, Term) and C == 0.0:
            c, s = self._turned(B, A, quarters=1 if sign > 0.0 else -1)
            return c, s, 1.0
        rest = rr - C * C
        h = sign * call("sqrt", extreme("max", rest, 0.0))
        c, s = self._turned(B, A, call("atan2", h, C))
        return c, s, rest / rr

    def face(self, me: Any, d: Any, t: Any) -> None:
        """`face`: the joint turns by the angle from d to t."""
        if (d[0] * d[0] + d[1] * d[1]) * (t[0] * t[0] + t[1] * t[1]) > 0.0:
            me.c, me.s = self._turned(d[0] * t[1] - d[1] * t[0], d[0] * t[0] + d[1] * t[1])


class Table(NamedTuple):
    """A matrix (rows, columns) of constants, but for entries (n, 2), row and column, that are results from `first`."""

    constants: Array
    entries: Numbers
    first: int


class Recordable(Protocol):
    """What is made of the robot's bodies on the tape as well: matrices of numbers."""

    def record(self, recorder: Recorder) -> list[NDArray[Any]]:
        """The matrices, each an array (rows, columns) of objects."""


@dataclass(frozen=True, eq=False)
class RobotProgram:
    """Two programs, and the layout of the second one's results: `reach` numbers under roots, the positions of `joints`,
    the potential energy [J], and entries of `tables`: the closure matrix, then what else was asked for.
    """

    pose: Program  # task coordinates to origin and rotation
    coordinates: Numbers  # (k,) rows of the coordinates
    placed: Numbers  # (12,) rows of origin and rotation
    robot: Program
    inputs: Numbers  # (12,) rows of origin and rotation, -1 where they are not needed
    results: Numbers
    blocks: Numbers  # (b, 4) as kernels/enclose.py has them
    unknowns: Numbers  # rows
    equations: Numbers  # rows
    unknown_columns: Numbers  # of the unknowns among all joints
    reach: int
    joints: Numbers  # columns among all joints: of the actuators, in their order, and of those with limits
    n_actuated: int
    limits: Array  # (2, n) of `joints` [rad, m], with room for rounding
    tables: tuple[Table, ...]


class _Block(NamedTuple):
    unknowns: list[Number]
    equations: list[Number]
    columns: list[int]


def record_robot(kinematics: Kinematics, mode: int, constraints: bool, more: Recordable | None = None) -> RobotProgram:
    """Record a robot in a mode, on request with the closure equations' matrix, for singularities of every type.

    `AnalysisError` for a configuration-dependent motion space, a platform without a branch, or no interval form.
    """
    about, engine = f"robot '{kinematics.mechanism.name}'", kinematics.engine
    if not engine.constant_space:
        problem = "its motion space depends on the pose, so that no box of its coordinates lies in it"
        raise AnalysisError(about, problem, "look at its workspace, which is bounded by points")
    if not engine.task.names:
        problem = "its platform has no branch of its own, so that no coordinates bound a box"
        remedy = "give the platform a branch of sliding and turning joints in its description"
        raise AnalysisError(about, problem, remedy)
    return Recorder(kinematics, mode, constraints).record(more)


class Recorder:
    """Records a robot: `data.state` has its bodies on the tape, near the task coordinates `at`."""

    def __init__(self, kinematics: Kinematics, mode: int, constraints: bool) -> None:
        self.kinematics, self.mode, self.constraints = kinematics, mode, constraints
        self.engine = kinematics.engine
        self.start = np.asarray(kinematics.modes.start(mode))
        self.branch = kinematics.modes.branch(mode)
        self.model, self.data = loose(self.engine.model), loose(self.engine.data(self.start))
        chain = self.engine.model.chain
        self.angles = Angles()
        units = np.where(chain["prismatic"][1:] == 1, self.engine.size, 1.0)
        self.at = chain["home"][1:] + NEAR * units * some_numbers(len(chain) - 1)
        found = kinematics.inverse(self.at, mode=mode or None).joints
        self.there = found if np.isfinite(found).all() else self.start

    def record(self, more: Recordable | None = None) -> RobotProgram:
        """The robot's program, with matrices of `more`."""
        coordinates, placed = self._pose()
        pose = compile_tape(_tape_of(coordinates), placed)
        tape = Tape()
        inputs = self._place_platform(tape, placed)
        blocks = self._limbs(tape)
        reached = [body.column for body in self.model.bodies[PLATFORM + 1 :]]
        actuated = [int(c) for c in self.engine.actuated_column]
        lower, upper = self.engine.ranges.limits
        columns = actuated + [c for c in reached if c not in actuated and np.isfinite([lower[c], upper[c]]).any()]
        joints = [self.position(PLATFORM + 1 + reached.index(c)) for c in columns]
        system = self._system() if self.constraints else np.zeros((0, 0), dtype=object)
        found, tables = [*joints, self._energy()], list[Table]()
        for matrix in (system, *(more.record(self) if more else ())):
            varying = {at: x for at, x in np.ndenumerate(matrix) if isinstance(x, Term)}
            constants = np.array([0.0 if isinstance(x, Term) else x for x in matrix.flat]).reshape(matrix.shape)
            tables.append(Table(constants, np.array(list(varying), dtype=np.int64).reshape(-1, 2), len(found)))
            found += varying.values()
        unknowns = [y for block in blocks for y in block.unknowns]
        equations = [e for block in blocks for e in block.equations]
        program = compile_tape(tape, [*found, *equations, *unknowns])
        spans, at = [], 0
        for block in blocks:
            rows = program.rows_of([*block.unknowns, *block.equations])
            spans.append([rows.min(), rows.max() + 1, at, len(block.unknowns)])
            at += len(block.unknowns)
        return RobotProgram(
            pose=pose,
            coordinates=pose.rows_of(coordinates),
            placed=pose.rows_of(placed),
            robot=program,
            inputs=program.rows_of(inputs),
            results=np.concatenate([np.array(program.reaches, dtype=np.int64), program.rows_of(found)]),
            blocks=np.array(spans, dtype=np.int64).reshape(-1, 4),
            unknowns=program.rows_of(unknowns),
            equations=program.rows_of(equations),
            unknown_columns=np.array([c for block in blocks for c in block.columns], dtype=np.int64),
            reach=len(program.reaches),
            joints=np.array(columns, dtype=np.int64),
            n_actuated=len(actuated),
            limits=np.array([lower[columns], upper[columns]]),
            tables=tuple(t._replace(first=t.first - len(joints) - 1) for t in tables),
        )

    def _pose(self) -> tuple[Any, list[Number]]:
        tape = Tape()
        coordinates = tape.inputs(0, self.at, range(len(self.at)))
        for i, q in enumerate(coordinates):
            self.data.chain[1 + i].q = q
        R, p = np.zeros((3, 3), dtype=object), np.zeros(3, dtype=object)
        trace(place_chain)(self.model, self.data, R, p)
        return coordinates, [*p, *R.ravel()]

    def _place_platform(self, tape: Tape, placed: list[Number]) -> Any:
        turns = self.engine.task.subspace[3:].any()
        vary = [j for j, x in enumerate(placed) if isinstance(x, Term) or j < 3 or turns]
        inputs = tape.inputs(0, np.array([value(x) for x in placed]), vary)
        platform = self.data.state[PLATFORM]
        platform.p, platform.R = inputs[:3].copy(), inputs[3:].reshape(3, 3).copy()
        return inputs

    def _limbs(self, tape: Tape) -> list[_Block]:
        bodies, closures, state, rows = self.model.bodies, self.model.closures, self.data.state, self.data.rows
        found: list[_Block] = []
        for b, block in enumerate(self.model.blocks):
            if block.solver == CLOSED_FORM:
                branch = (self.branch // block.stride) % block.branches
                trace(solve_closed_form, self.angles.instead)(bodies, closures, block, state, branch)
                chosen: tuple[list[int], list[int]] = [], []
            else:
                chosen = self._square(b)
                first = sum(len(other.unknowns) for other in found)
                wanted = [int(bodies[i].column) for i in chosen[0]]
                for i in range(block.start, block.start + block.count):
                    state[i].q = float(self.there[bodies[i].column])
                unknowns = tape.inputs(1, self.there[wanted], range(len(wanted)), first)
                for i, y in zip(chosen[0], unknowns, strict=True):
                    state[i].q = y
                trace(place_block)(bodies, block, state)
            if chosen[0] or self.constraints:
                for k in range(block.closure_start, block.closure_start + block.closure_count):
                    trace(write_rows)(closures, state, rows, k)
            if chosen[0]:
                found.append(_Block(list(unknowns), [rows[r].gap for r in chosen[1]], wanted))
        return found

    def _square(self, b: int) -> tuple[list[int], list[int]]:
        """As many bodies and rows of a block as it has independent equations; the others follow."""
        block = self.engine.model.blocks[b]
        placed = self.engine.placed(self.engine.inputs.poses_at(self.at[None])[0], self.there, self.branch)
        m, n = int(block["rows"]), int(block["count"])
        flat = np.zeros(m * n)
        block_jacobian(placed.model, placed.data, block, flat, 0)
        J = flat.reshape(m, n)
        _, R, joints = qr(J, pivoting=True)
        sizes = np.abs(np.diagonal(R))
        rank = int((sizes > PIVOT * max(sizes.max(), 1e-300)).sum())
        kept = np.sort(joints[:rank])
        _, _, rows = qr(J[:, kept].T, pivoting=True)
        first = int(block["start"])
        return [first + int(j) for j in kept], [int(block["rows_at"]) + int(r) for r in np.sort(rows[:rank])]

    def position(self, i: int) -> Number:
        """Position of the joint of body `i`: of a revolute one in closed form, the turn nearest to home."""
        me = self.data.state[i]
        if self.model.bodies[i].prismatic or isinstance(me.q, Term):
            return me.q
        q = self.angles.of(me.c, me.s)
        turns = round((float(self.start[self.model.bodies[i].column]) - value(q)) / (2.0 * pi))
        return q + 2.0 * pi * turns if turns else q

    def _system(self) -> NDArray[Any]:
        """The matrix of all closure equations by the passive joints and the platform's twist, actuators locked.

        Where its columns are independent nothing can move: no singularity of type 2, of the constraints, or inside a
        limb. Joints that are free by design, such as the spin of a rod, are left out. Where the limbs leave the
        platform what its branch alone holds, as the spin of the pin at a five-bar's tip, the platform's own degrees of
        freedom are examined, without the constraints.
        """
        freedoms = np.eye(6) if self.kinematics.mechanism.mobility.left_out == 0 else self.engine.task.subspace
        blocks, closures = self.engine.model.blocks, self.engine.model.closures
        sides = []
        for first, stop in self.engine.model.limbs:
            limb = blocks[first:stop]
            at, n = int(limb["start"][0]), int(limb["count"].sum())
            row, m = int(limb["rows_at"][0]), int(limb["rows"].sum())
            start = int(limb["closure_start"][0])
            end = int(limb["closure_start"][-1] + limb["closure_count"][-1])
            J, G = np.zeros((m, n), dtype=object), np.zeros((m, 6), dtype=object)
            trace(limb_system)(self.model, self.data, start, end, at, J, G)
            passive = [j for j in self._independent(range(first, stop), at) if self.model.bodies[at + j].actuator < 0]
            sides.append((row, J[:, passive], G @ freedoms))
        width = sum(J.shape[1] for _, J, _ in sides)
        system = np.zeros((int(closures["rows"].sum()), width + freedoms.shape[1])).astype(object)
        column = 0
        for row, J, G in sides:
            for part, first in ((J, column), (G, width)):
                system[row : row + len(part), first : first + part.shape[1]] = part
            column += J.shape[1]
        return system

    def _independent(self, blocks: range, first: int) -> list[int]:
        return [i - first for b in blocks for i in self._square(b)[0]]

    def _energy(self) -> Number:
        lift = self.data.state[BASE].dv  # minus gravity
        total: Number = 0.0
        for i, body in enumerate(self.model.bodies):
            if i == BASE:
                continue
            me = self.data.state[i]
            for r in range(3):
                arm = sum(me.R[r, c] * body.moment[c] for c in range(3))
                total = total + lift[r] * (body.mass * me.p[r] + arm)
        for spring in self.model.springs:
            if spring.kind == JOINT_SPRING:
                stretch = self.position(spring.second) - spring.rest
                total = total + 0.5 * spring.stiffness * stretch * stretch
            else:
                total = total + trace(straight_energy)(spring, self.data.state)
        return total


def _tape_of(numbers: Any) -> Tape:
    return next(x.tape for x in numbers if isinstance(x, Term))
