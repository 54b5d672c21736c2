# SPDX-License-Identifier: Apache-2.0
"""What a linkage computes, recorded as straight-line code: Newton's steps block after block, and rates.

One input array: positions of the inputs (n,) [m, rad]; where each dependent joint is (2 each: cosine and sine, or
position over the length and 0); then, where they are asked for, rates (n,) of the inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations_with_replacement
from math import pi
from typing import Any

import numpy as np

from pkm_description.graph import path_from_base
from pkm_description.mechanism import Array, Coupling, Inertial, Loop
from pkm_kinematics.kernels.regularity import factorise, least_norm, nearest, orientation
from pkm_kinematics.linkage.loop_system import (
    Block,
    LinkageError,
    LoopSystem,
    PlacedSide,
    Row,
    chain_of,
    chained,
    dot,
    loop_sides,
    moving,
    rows_between,
)
from pkm_runtime.codegen import Recording, Tape, trace
from pkm_runtime.codegen.derivatives import rates_of
from pkm_runtime.codegen.tape import Number, Term, call, extreme

Table = dict[str, list[Number]]  # rates of a joint by name, per rate of each input
CHORDS = 1  # further steps with the derivatives of the second, for many states at once
FARTHEST = 1e6  # rad: angles beyond have no digits left to close a loop with
# Pi in three parts, the first two so short that whole multiples up to FARTHEST are exact.
_PI = (3.1415926534682512, 1.215420100718692e-10, 5.825464112186712e-20)
STEPS = 2  # of Newton's method in a recording: the second squares what the first left


@cache
def _kernel(kernel: Any) -> Any:
    """A kernel that takes terms; traced at first use, since the site's build has no kernels."""
    return trace(kernel)


def state_at(system: LoopSystem, positions: Mapping[str, float], names: Sequence[str] | None = None) -> Array:
    """Where the dependent joints, or some, are (2 each), as code takes it, at positions [m, rad] by name."""
    at, names = system.numbers_at(positions), system.dependent if names is None else names
    pairs = [
        (positions[name] / system.unit(name), 0.0) if system.straight(name) else at(name, 1.0, 0.0) for name in names
    ]
    return np.array(pairs).ravel()


class Recorder:
    """The linkage on a tape: `state` has the numbers of the dependent joints, which steps replace."""

    def __init__(self, system: LoopSystem, extra: Array | None = None, names: Sequence[str] | None = None) -> None:
        self.system, self.tape, n = system, Tape(), len(system.inputs)
        self.unit = system.unit
        names = system.dependent if names is None else names
        example = np.concatenate([[system.near[name] for name in system.inputs], state_at(system, system.near, names)])
        values = np.concatenate([example, np.zeros(0) if extra is None else extra])
        numbers = self.tape.inputs(0, values, range(len(values)))
        self.q = dict(zip(system.inputs, numbers[:n], strict=True))
        pairs = numbers[n : len(example)].reshape(-1, 2)
        self.state: dict[str, tuple[Number, Number]] = {k: (a, b) for k, (a, b) in zip(names, pairs, strict=True)}
        self.extra = numbers[len(example) :]
        self.turned: dict[str, tuple[Number, Number]] = {}  # cosines and sines of inputs where they are known
        self._still = system.numbers_at(system.home)
        self.margins: list[Number] = []
        self.gaps: list[Number] = []

    def position(self, name: str, factor: float, offset: float) -> tuple[Number, Number]:
        """See `loop_system.Position`."""
        system = self.system
        if name in self.turned and (factor, offset) == (1.0, 0.0):
            return self.turned[name]
        if name in self.q:
            value = factor * self.q[name] + offset
            return (
                (value * (1.0 / system.length), 0.0)
                if system.slides(name)
                else (call("cos", value), call("sin", value))
            )
        if name not in self.state:
            return self._still(name, factor, offset)
        c, s = self.state[name]
        if system.slides(name):
            return factor * c + offset / system.length, 0.0
        if system.straight(name) or abs(factor) != 1.0:
            angle = factor * (c if system.straight(name) else call("atan2", s, c)) + offset
            return call("cos", angle), call("sin", angle)
        s, a, b = factor * s, float(np.cos(offset)), float(np.sin(offset))
        return (c, s) if offset == 0.0 else (c * a - s * b, s * a + c * b)

    def rows(self, block: Block) -> list[Row]:
        """The equations of a block where the joints are now."""
        loops = {k: self.system.rows_of(k, self.position, self.angle) for k in block.loops}
        return [loops[k][n] for k, n in block.equations]

    def factorised(self, block: Block, rows: Sequence[Row]) -> _Factors:
        """A block's derivatives by its joints, ready to divide by; notes how regular they are."""
        A = np.array([[row.rates.get(name, 0.0) for name in block.joints] for row in rows], dtype=object)
        return _Factors(A)

    def step(self, block: Block, again: int = 0) -> Number:
        """A step of Newton's method in a block, and more with the same derivatives; the last correction."""
        rows = self.rows(block)
        factors = self.factorised(block, rows)
        for k in range(again + 1):
            change = factors.solve([-row.gap for row in (self.rows(block) if k else rows)])
            for name, x in zip(block.joints, change, strict=True):
                self._move(name, x)
        return extreme("worse", *map(abs, change))

    def steps(self, blocks: Sequence[Block]) -> Number:
        """STEPS of Newton's method in each of some blocks; the largest of their last corrections."""
        return extreme("worse", 0.0, *([self.step(block) for _ in range(STEPS)][-1] for block in blocks))

    def _move(self, name: str, x: Number) -> None:
        """Add a correction: an angle as 2 atan(x / 2), which needs no trigonometric function."""
        c, s = self.state[name]
        if self.system.straight(name):
            self.state[name] = c + x, s
            return
        square = 0.25 * (x * x)
        # what rounding has made of the length of (c, s) is mended on the way
        scale = (1.5 - 0.5 * (c * c + s * s)) / (1.0 + square)
        near = 1.0 - square
        self.state[name] = (near * c - x * s) * scale, (near * s + x * c) * scale

    def angle(self, name: str) -> Number:
        """Position [m, rad] of a joint, angles of loops within pi of home."""
        if name in self.q:
            return self.q[name]
        if name not in self.state:
            return self.system.home[name]
        c, s = self.state[name]
        if self.system.straight(name):
            return c * self.unit(name)
        home = self.system.home[name]
        a, b = float(np.cos(home)), float(np.sin(home))
        return home + call("atan2", s * a - c * b, c * a + s * b)

    def rates(self, blocks: Sequence[Block] | None = None) -> Table:
        """Dimensionless rates (n,) of joints of some blocks, or all, per one of each input; notes margins and gaps."""
        n = len(self.system.inputs)
        K: Table = {name: [float(k == j) for j in range(n)] for k, name in enumerate(self.system.inputs)}
        for block in self.system.blocks if blocks is None else blocks:
            rows = self.rows(block)
            factors = self.factorised(block, rows)
            self.margins.append(factors.margin)
            self.gaps += [abs(row.gap) for row in rows]
            columns = []
            for j in range(n):
                known = [_along(row.rates, {name: row_of[j] for name, row_of in K.items()}) for row in rows]
                columns.append(factors.solve([-x for x in known]))
            for k, name in enumerate(block.joints):
                K[name] = [column[k] for column in columns]
        return K

    def rates_and_their_rates(self, speeds: Sequence[Number]) -> tuple[Table, Table]:
        """`rates`, and how they change while the inputs move at `speeds` (n,), dimensionless."""
        K = self.rates()
        v = {name: _sum(k * s for k, s in zip(row, speeds, strict=True)) for name, row in K.items()}
        seeds = self.seeds(v)
        n = len(self.system.inputs)
        dK: Table = {name: [0.0] * n for name in self.system.inputs}
        for block in self.system.blocks:
            rows, changes = self.changing(block, seeds)
            factors = self.factorised(block, rows)
            columns = []
            for j in range(n):
                one, other = ({name: row[j] for name, row in table.items()} for table in (K, dK))
                known = [
                    _along(change, one) + _along(row.rates, other) for row, change in zip(rows, changes, strict=True)
                ]
                columns.append(factors.solve([-x for x in known]))
            for k, name in enumerate(block.joints):
                dK[name] = [column[k] for column in columns]
        return K, dK

    def seeds(self, v: Mapping[str, Number]) -> dict[int, Number]:
        """Rates of the input numbers, and of all axes and points, while joints move at dimensionless speeds `v`."""
        seeds: dict[int, Number] = {}
        for name, q in self.q.items():
            seeds[q.number] = v[name] * self.unit(name)
        seeds |= {c.number: v[name] for name, (c, _) in self.state.items() if self.system.straight(name)}
        turning = [(name, pair) for name, pair in self.state.items() if not self.system.straight(name)]
        for name, (c, s) in (*turning, *self.turned.items()):
            seeds[c.number], seeds[s.number] = -(s * v[name]), c * v[name]
        for loop in self.system.ties:
            for side in () if isinstance(loop, Coupling) else self._sides(loop):
                for numbers, rates in moving(*side, v)[1]:
                    for x, rate in zip(numbers, rates, strict=True):
                        if isinstance(x, Term):
                            seeds.setdefault(x.number, rate)
        return seeds

    def _sides(self, loop: Loop) -> Iterator[PlacedSide]:
        return loop_sides(self.system.model, loop, self.position)

    def changing(self, block: Block, seeds: Mapping[int, Number]) -> tuple[list[Row], list[dict[str, Number]]]:
        """The equations of a block, and how fast their derivatives change."""
        rows = self.rows(block)
        pairs = [(row, name) for row in rows for name in row.rates]
        flat = iter(rates_of(self.tape, [row.rates[name] for row, name in pairs], seeds))
        return rows, [{name: next(flat) for name in row.rates} for row in rows]

    def bias(self, block: Block, v: Mapping[str, Number], seeds: Mapping[int, Number]) -> list[Number]:
        """Accelerations of the equations of a block while joints move at constant dimensionless speeds `v`."""
        found: dict[tuple[int, int], Number] = {}
        for k in block.loops:
            loop = self.system.ties[k]
            if isinstance(loop, Coupling):
                found[k, 0] = _along(Row(*loop.at(self.angle, self.unit)).rates, v)
                continue
            sides = [(R, p, [moving(R, p, screws, v)[0]]) for R, p, screws in self._sides(loop)]
            found |= {(k, n): row.rates[""] for n, row in enumerate(rows_between(loop, *sides))}
        constant = {x.number: 0.0 for x in v.values() if isinstance(x, Term)}
        return rates_of(self.tape, [found[one] for one in block.equations], {**seeds, **constant})

    def gap(self) -> Number:
        """The largest gap of any loop, dimensionless, of equations that repeat others, too."""
        every = range(len(self.system.ties))
        rows = [row for k in every for row in self.system.rows_of(k, self.position, self.angle)]
        return extreme("worse", 0.0, *(abs(row.gap) for row in rows))


def cosine_and_sine(angle: Number) -> tuple[Number, Number]:
    """Of an angle [rad] below `FARTHEST`, to 4e-16, in operations that are the same for all, for whole registers."""
    halves = call("floor", angle * (1.0 / pi) + 0.5)
    for part in _PI:
        angle = angle - halves * part
    square, terms = angle * angle, range(11, 0, -1)
    cosine, sine = 0.0, 0.0
    for k in terms:
        cosine = (cosine * square + 1.0) * (-1.0 / (2 * k * (2 * k - 1)))
        sine = (sine * square + 1.0) * (-1.0 / (2 * k * (2 * k + 1)))
    sign = 1.0 - 2.0 * (halves - 2.0 * call("floor", 0.5 * halves))
    return sign * (cosine * square + 1.0), sign * ((sine * square) * angle + angle)


class _Factors:
    """A (k, k) of terms, factorised; `margin` is its condition, positive as recorded, which turns over with a fold."""

    def __init__(self, A: Any) -> None:
        self.A, k = A.copy(), len(A)
        self.inverse = np.zeros((k, k), dtype=object)
        self.weights = np.zeros(k, dtype=object)
        condition = _kernel(factorise)(self.A, k, k, self.inverse, self.weights)
        side = _kernel(orientation)(self.inverse, k)
        self.margin = condition * side * (1.0 if value_of(side) > 0.0 else -1.0)

    def solve(self, b: Sequence[Number]) -> list[Number]:
        """x with A x = b."""
        k = len(b)
        x = np.zeros(k, dtype=object)
        if all(not isinstance(one, Term) and one == 0.0 for one in b):
            return [0.0] * k
        _kernel(nearest)(self.A, k, k, self.inverse, self.weights, np.array(b, dtype=object), x)
        return list(x)


def value_of(x: Number) -> float:
    """A number's value in the recording."""
    return x.value if isinstance(x, Term) else float(x)


def _along(rates: Mapping[str, Number], speeds: Mapping[str, Number]) -> Number:
    return _sum(rate * speeds[name] for name, rate in rates.items() if name in speeds)


def _sum(numbers: Any) -> Number:
    total: Number = 0.0
    for x in numbers:
        total = total + x
    return total


def record_motion(system: LoopSystem) -> Recording:
    """From inputs; their speeds and accelerations (n each); and where the dependent joints start.

    That is the tangent of half a joint's angle from home, or its way from home over the length. Results: positions of
    the dependent joints, their speeds and accelerations [m, rad]; the last correction, the least margin.
    """
    n = len(system.inputs)
    starts = [0.5 * (system.near[name] - system.home[name]) for name in system.dependent]
    r = Recorder(system, np.concatenate([np.sin(1.0 + np.arange(2.0 * n)), starts]), ())
    v, a = r.extra[:n], r.extra[n : 2 * n]
    for name, q in r.q.items():
        if not system.slides(name):
            r.tape.decide("<", abs(q), FARTHEST)
            r.turned[name] = cosine_and_sine(q)
    for name, start in zip(system.dependent, r.extra[2 * n :], strict=True):
        home = system.home[name]
        if system.straight(name):
            r.state[name] = start + home / system.unit(name), 0.0
            continue
        square = start * start
        cosine, sine = (1.0 - square) / (1.0 + square), (start + start) / (1.0 + square)
        one, other = float(np.cos(home)), float(np.sin(home))
        r.state[name] = cosine * one - sine * other, sine * one + cosine * other
    for block in system.blocks:
        r.step(block)
        r.step(block, CHORDS)
    speeds, more = ({k: x * (1.0 / r.unit(k)) for k, x in zip(system.inputs, one, strict=True)} for one in (v, a))
    factors: dict[Block, _Factors] = {}
    corrections: dict[str, Number] = {}
    for block in system.blocks:
        rows = r.rows(block)
        factors[block] = r.factorised(block, rows)
        r.margins.append(factors[block].margin)
        for table, gaps in ((corrections, [row.gap for row in rows]), (speeds, [0.0] * len(rows))):
            known = [_along(row.rates, table) + gap for row, gap in zip(rows, gaps, strict=True)]
            table |= zip(block.joints, factors[block].solve([-x for x in known]), strict=True)
    seeds = r.seeds(speeds)
    for block in system.blocks:
        changes = r.bias(block, speeds, seeds)
        known = [_along(row.rates, more) + change for row, change in zip(r.rows(block), changes, strict=True)]
        more |= zip(block.joints, factors[block].solve([-x for x in known]), strict=True)
    for name, x in corrections.items():
        r._move(name, x)
    last = extreme("worse", 0.0, *map(abs, corrections.values()))
    results = [r.angle(name) for name in system.dependent]
    results += [table[name] * r.unit(name) for table in (speeds, more) for name in system.dependent]
    return Recording(r.tape, 1, (*results, last, extreme("min", 1.0, *r.margins)))


def record_solve(system: LoopSystem) -> Recording:
    """From inputs and states near the answer: states (2 each), the last correction."""
    r = Recorder(system)
    last = r.steps(system.blocks)
    states = [x for name in system.dependent for x in r.state[name]]
    return Recording(r.tape, 1, (*states, last))


def record_lean(system: LoopSystem, outputs: Sequence[str]) -> tuple[Recording, tuple[str, ...]]:
    """From inputs, states and rates (d n) of some dependent joints, efforts (n,), and the inputs' way (n,) from there.

    States (2 each), rates, the last correction or gap, the least margin; positions of `outputs`; their efforts, which
    make those at the inputs. And the names of the dependent joints, those alone on which the outputs depend.
    """
    if len(outputs) < len(system.inputs):
        problem = "cannot produce arbitrary efforts at"
        raise LinkageError(f"{len(outputs)} motor(s) {problem} {len(system.inputs)} joints: {', '.join(system.inputs)}")
    blocks = system.blocks_for(outputs)
    names = tuple(name for block in blocks for name in block.joints)
    n, m = len(system.inputs), len(outputs)
    # The way is too short to lead elsewhere in the recording.
    numbers = np.sin(1.0 + np.arange(n * len(names) + 2.0 * n))
    r = Recorder(system, np.concatenate([numbers[:-n], 1e-9 * numbers[-n:]]), names)
    way = [x * (1.0 / r.unit(k)) for k, x in zip(system.inputs, r.extra[-n:], strict=True)]
    for k, name in enumerate(names):
        r._move(name, _sum(rate * x for rate, x in zip(r.extra[k * n : k * n + n], way, strict=True)))
    last = extreme("worse", 0.0, *map(r.step, blocks))
    K = r.rates(blocks)
    units = [[r.unit(a) / r.unit(k) for k in system.inputs] for a in outputs]
    J = np.array([K[a] for a in outputs], dtype=object) * np.array(units, dtype=object)
    inverse, weights, efforts = np.zeros((n, n), dtype=object), np.zeros(n, dtype=object), np.zeros(m, dtype=object)
    if m == n == 1 and value_of(J[0, 0]) != 0.0:
        # one ratio is always regular: where the motor loses the joint it is small beside the recorded one
        r.margins.append(abs(J[0, 0]) * (1.0 / abs(value_of(J[0, 0]))))
    r.margins.append(_kernel(factorise)(J, m, n, inverse, weights))
    given = np.array(r.extra[-2 * n : -n], dtype=object)
    _kernel(least_norm)(J, m, n, inverse, weights, given, efforts)
    states = [x for name in names for x in r.state[name]] + [x for name in names for x in K[name]]
    last = extreme("worse", last, *r.gaps)
    results = (*states, last, extreme("min", 1.0, *r.margins), *map(r.angle, outputs), *efforts)
    return Recording(r.tape, 1, results), names


def record_inertia(system: LoopSystem, bodies: Mapping[str, Inertial]) -> Recording:
    """From inputs and solved states: the upper triangle of the inertia (n, n) [kg m^2, kg m, kg] felt at the inputs."""
    n, r = len(system.inputs), Recorder(system)
    K = r.rates()
    M: list[list[Number]] = [[0.0] * n for _ in range(n)]
    for link, inertial in bodies.items():
        way = path_from_base(system.model.joints, link)
        R, p, screws = chained(*chain_of(way, np.eye(4)), r.position, system.length)
        com = p + R @ (inertial.com / system.length).astype(object)
        spin, slide = [np.zeros(3, dtype=object) for _ in range(n)], [np.zeros(3, dtype=object) for _ in range(n)]
        for screw in screws:
            moved = screw.axis if screw.slides else np.cross(screw.axis, com - screw.point)
            for j, rate in enumerate(K.get(screw.name, [0.0] * n)):
                slide[j] = slide[j] + np.array([screw.factor * rate * x for x in moved], dtype=object)
                if not screw.slides:
                    spin[j] = spin[j] + np.array([screw.factor * rate * x for x in screw.axis], dtype=object)
        turned = [inertial.inertia.astype(object) @ (R.T @ one) for one in spin]
        for i, j in combinations_with_replacement(range(n), 2):
            both = inertial.mass * system.length**2 * dot(slide[i], slide[j]) + dot(R.T @ spin[i], turned[j])
            M[i][j] = M[i][j] + both / (r.unit(system.inputs[i]) * r.unit(system.inputs[j]))
    return Recording(r.tape, 1, tuple(M[i][j] for i, j in combinations_with_replacement(range(n), 2)))


def record_rates(system: LoopSystem, *, changing: bool) -> Recording:
    """From inputs, solved states and, where `changing`, rates of inputs.

    Positions [m, rad] of the dependent joints; their rates per rate of each input, row by row [m, rad per m, rad];
    where `changing`, the rates of these; the gap of what was solved and that of all loops, dimensionless; the least
    margin of a block.
    """
    n = len(system.inputs)
    r = Recorder(system, np.sin(1.0 + np.arange(n)) if changing else None)
    if changing:
        speeds = [v * (1.0 / r.unit(name)) for v, name in zip(r.extra, system.inputs, strict=True)]
        K, dK = r.rates_and_their_rates(speeds)
    else:
        K, dK = r.rates(), None
    results: list[Number] = [r.angle(name) for name in system.dependent]
    for table in (K, dK) if dK is not None else (K,):
        for name in system.dependent:
            for k, x in zip(system.inputs, table[name], strict=True):
                results.append(x * (r.unit(name) / r.unit(k)))
    return Recording(r.tape, 1, (*results, extreme("worse", 0.0, *r.gaps), r.gap(), extreme("min", 1.0, *r.margins)))
