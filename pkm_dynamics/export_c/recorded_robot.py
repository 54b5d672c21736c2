# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: D105 - operators do what operators do
"""What the C functions of a robot compute, recorded from the kernels near home; the working mode is an input.

A closed form depends on the mode by a sign per limb, so that one recording serves all modes. The comparisons that
kernels make on the way come in stretches, each with the status that says what it means when one comes out otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import numpy as np

from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.direct_dynamics import acceleration_here
from pkm_dynamics.kernels.inverse_dynamics import efforts_here
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import FACTORS, VECTORS
from pkm_kinematics.kernels.path.fixed_steps import SETTLED, newton_in_fixed_steps
from pkm_kinematics.kernels.path.follow import TWIST, actuator_error, correction
from pkm_kinematics.kernels.position.chain import place_chain, read_chain
from pkm_kinematics.kernels.position.closed_form import read_angles, solve_closed_form, turn_from_home
from pkm_kinematics.kernels.position.closures import CLOSED, block_jacobian, closed, invert_block, turned_over
from pkm_kinematics.kernels.position.placement import place_platform
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    ROUNDED,
    place_block,
    solve_newton,
    solve_positions,
    write_block_rows,
)
from pkm_kinematics.kernels.position.solve_poses import INSIDE, UNIT
from pkm_kinematics.kernels.rates.motion import accelerations, invert_blocks, move_platform, velocities
from pkm_kinematics.kernels.rates.motion_space import is_off_space, onto_space
from pkm_kinematics.kernels.rates.projection import drive_rates, factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.records import CLOSED_FORM, PLATFORM
from pkm_kinematics.kernels.regularity import factorise, is_regular, orientation, solve_three, turn_back
from pkm_kinematics.lean_kinematics import pose_near_home
from pkm_kinematics.recorded_tracking import SMALL
from pkm_kinematics.recordings_at_home import FIRM, RecordedSpace, pose_inputs, some_numbers
from pkm_kinematics.solve.position_solver import EXACT, TORN
from pkm_kinematics.solve.possible_twists import ASTRAY
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.codegen import Tape, loose, trace
from pkm_runtime.codegen.c_code import CCode, Part, identifier
from pkm_runtime.codegen.tape import Number, Term, call, extreme
from pkm_runtime.errors import PkmError

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


SINGULAR_SINGLE = 1e-4  # a margin below which a matrix of floats is singular
# Of floats: what counts as closed and as no step where the motion space turns, and which constraints are independent.
CLOSED_SINGLE, SMALL_SINGLE, FIRM_SINGLE = 1e-4, 1e-5, 1e-2


# Longest step of the forward kinematics where limbs are iterated, in rad and of the characteristic length, over the
# reciprocal condition of constraints and limbs: so it leaps over no singularity of theirs to another way, on which
# limbs close just as well. With 0.5, 8 of 1,500 random calls of the Carpal wrist end elsewhere than in Python, with
# 0.25 2, with 0.1 none.
ROOM = 0.1


class ExportError(PkmError):
    """A robot that an outlet cannot express."""


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


class RecordedFunction:
    """One function of a robot while it is recorded: its tape, the robot at a pose, and the parts so far."""

    def __init__(self, robot: RecordedRobot) -> None:
        self.robot, self.tape, self.parts, self.regular = robot, Tape(), list[Part](), True
        self.inputs: dict[tuple[int, int], str] = {}
        engine = robot.engine
        self.model, self.data = loose(robot.dynamics.robot.model()), loose(engine.data())
        self.mode = Mode(self._side)

    # -- inputs -------------------------------------------------------------------------------------------------------

    def given(self, array: int, values: Any, name: str, first: int = 0) -> Any:
        """Numbers of an input array that C calls `name`."""
        for k in range(len(values)):
            self.inputs[array, first + k] = f"{name}[{k}]"
        return self.tape.inputs(array, np.asarray(values, dtype=float), range(len(values)), first)

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
        tape.decide("<", abs(length - 1.0), robot.unit)
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

    def limbs(self, joints: bool) -> None:
        """Solve the limbs, on request with the angles of all joints."""
        if self.robot.iterated:
            self.take_joints(len(self.model.blocks))
            return
        if joints:
            start = self.given(START, self.robot.engine.home_joints, "start")
            for i in range(2, len(self.model.bodies)):
                self.data.state[i].q = start[self.model.bodies[i].column]
        status, _, _ = self.trace(solve_positions)(self.model, self.data, self.mode, joints)
        self.robot.expect(status == CONVERGED, "limbs do not reach the pose beside home where it is recorded")
        if joints:
            turn = self.trace(turn_from_home)
            for block in self.model.blocks:
                if block.bend == block.bend:
                    me, home = self.data.state[block.driver], start[self.model.bodies[block.driver].column]
                    side = (self.mode // block.stride) % block.branches
                    me.q = turn(self.model.bodies, self.model.closures, block, self.data.state, side, home)

    def take_joints(self, blocks: int, closes: Callable[[Any, Number], Any] | None = None) -> None:
        """Place the bodies of the first blocks by joint positions that are given, whose loops must be closed.

        `closes` stands in the place of `closed`.
        """
        q = self.given(START, self.robot.solved, "q")
        for i in range(2, len(self.model.bodies)):
            self.data.state[i].q = q[self.model.bodies[i].column]
        for block in self.model.blocks[:blocks]:
            self.place_block(block)
            closures, rows = self.model.closures, self.data.rows
            gap = self.trace(write_block_rows)(closures, block, self.data.state, rows)
            (closes or self.trace(closed))(block, gap)
            self.trace(turned_over)(closures, block, self.data.state)
            if self.robot.engine.divided and block.solver != CLOSED_FORM:
                self.tape.decide(">", self.trace(invert_block)(self.model, self.data, block), BLUNT)

    def place_block(self, block: Any) -> None:
        """Place the bodies of a block by their joint positions."""
        self.trace(place_block)(self.model.bodies, block, self.data.state)

    def invert(self) -> Number:
        """Invert the limbs' equations; the regularity of the worst."""
        regularity = self.trace(invert_blocks)(self.model, self.data)
        self.regular = bool(self.trace(is_regular)(regularity))
        return regularity

    def space(self) -> RecordedSpace:
        """The motion space at the pose, where it turns, blocks inverted; refused where wrenches are not FIRM."""
        robot = self.robot
        self.end("how the limbs' joints move with the platform", "singular")
        space = RecordedSpace(self.model, self.data, robot.n, robot.instead)
        firm = self.tape.decide(">", space.condition, FIRM_SINGLE if robot.single else FIRM)
        robot.expect(firm, "its limbs' constraints on the platform are nearly dependent beside home")
        self.end("what limbs hold of the platform", "blunt")
        return space

    def move(self, twist: Any, acceleration: Any) -> None:
        """Give the platform its motion, and all bodies theirs.

        In a space that turns it is the nearest one, which twist and acceleration become.
        """
        if self.robot.turning:
            space = self.space()
            wanted = twist.copy(), acceleration.copy()
            space.move(twist, acceleration)
            self._near(wanted[0], twist, self.robot.inside, _size(wanted[0], space.length))
            along = wanted[1].copy()
            self.trace(onto_space)(self.model.subspace, space.length, along)
            sizes = _size(wanted[1], space.length) + _size(acceleration - along, space.length)
            self._near(wanted[1], acceleration, ASTRAY, sizes)
            self.end("the motion that limbs leave", "invalid")
            return
        self.trace(move_platform)(self.data.state, twist, acceleration)
        self.trace(velocities)(self.model, self.data)
        self.trace(accelerations)(self.model, self.data)

    def _near(self, wanted: Any, found: Any, part: float, size: Number) -> None:
        """Expect that a motion misses what is wanted by a part of one plus its size at most; any may be at rest."""
        if any(isinstance(x, Term) for x in wanted):
            off = _size(wanted - found, self.model.task[0].length)
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
        """Names of the values that describe bodies, and whose limb they are of."""
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
    """Values that describe a body, with what they are."""
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


def _any_gap(block: Any, residual: Number) -> bool:
    """In place of `closed`."""
    return True


def _size(rates: Any, length: float) -> Number:
    """Size of a twist or an acceleration (6,), rotations at a length."""
    scaled = [*rates[:3], *(length * x for x in rates[3:])]
    return call("sqrt", sum(x * x for x in scaled))


class RecordedRobot:
    """Records the functions of one robot."""

    def __init__(self, dynamics: Dynamics, single: bool = False) -> None:
        self.dynamics, self.kinematics, self.engine = dynamics, dynamics.kinematics, dynamics.kinematics.engine
        blocks = self.engine.tables.blocks
        self.turning, self.iterated = not self.engine.constant_space, bool(self.engine.iterated)
        refuse_redundant(self.engine.redundant_names, "generated code")
        self.tables, self.subspace, self.single = self.engine.tables, self.engine.model.subspace, single
        self.m = len(self.engine.actuated_names)
        self.n: int = self.engine.mobility if self.turning else self.subspace.shape[1]
        self.pose = pose_near_home(self.engine, self.kinematics.modes.start(0))
        self.rates = self._rates()  # twist and acceleration (6,) of the recording
        self.sides = [int(b["stride"]) for b in blocks if b["branches"] > 1]
        # bounds below which a float cannot see: see `docs/export_c.md`
        self.unit, self.inside = (1e-5, 1e-4) if single else (UNIT, INSIDE)
        self.instead: list[tuple[Any, Callable[..., Any]]] = [
            (read_angles, read_angles_without_branch),
            (solve_three, lambda A, b, x: 0.0),  # Householder's reflections, which serve every pose
        ]
        if single:
            self.instead += [
                (closed, lambda block, residual: residual < 1e-4 * block.size),
                (is_regular, lambda condition: condition > SINGULAR_SINGLE),
            ]
        self.group_of_body = self._groups()
        if self.iterated:
            self.expect(
                self.engine.divided or not self._turns_over(),
                "a limb solved by iteration may slide through its joint and come out on the other side; "
                "use the Python package",
            )
            self.solved = np.asarray(self.kinematics.inverse(self.pose, mode=0).joints)
            self.expect(bool(np.isfinite(self.solved).all()), "its limbs do not reach the poses beside home")
        self.expect(
            not (self.one_way and self.m == self.n), "its drives only pull, or only push, and none is redundant"
        )

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

    def _turns_over(self) -> bool:
        """Whether a limb is found by iteration, as many equations as joints, and one of these slides.

        Beside where such a limb turns over, C took another configuration than Python, in one state of 500.
        """
        bodies, blocks = self.tables.bodies, self.tables.blocks
        return any(
            b["solver"] != CLOSED_FORM
            and b["rows"] == b["count"]
            and bool(bodies["prismatic"][b["start"] : b["start"] + b["count"]].any())
            for b in blocks
        )

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
            found[group] = f"limb {k + 1}: {', '.join(joints)}"
        return found

    # -- limbs solved by iteration, block by block ------------------------------------------------------------------

    def platform(self) -> RecordedFunction:
        """A pose that is checked and moved into the motion space."""
        f = RecordedFunction(self)
        f.check_pose(joints=False)
        at = [*f.data.state[PLATFORM].p, *f.pose[3:]]
        f.end("the platform", "invalid", *((f"at[{k}]", x) for k, x in enumerate(at)))
        return f

    def block(self, b: int) -> RecordedFunction:
        """A step of Newton's method for a block, or its joints in closed form."""
        f = RecordedFunction(self)
        f.place(joints=False)
        q = f.given(START, self.solved, "q")
        model, data = f.model, f.data
        for i in range(2, len(model.bodies)):
            data.state[i].q = q[model.bodies[i].column]
        for before in model.blocks[:b]:
            f.place_block(before)
        block = model.blocks[b]
        bodies = range(block.start, block.start + block.count)
        if block.solver == CLOSED_FORM:
            branch = (f.mode // block.stride) % block.branches
            f.trace(solve_closed_form)(model.bodies, model.closures, block, data.state, branch)
            read_angles_without_branch(model.bodies, data.state, block.start, block.start + block.count)
            gap = f.trace(write_block_rows)(model.closures, block, data.state, data.rows)
            results = [(f"q[{model.bodies[i].column}]", data.state[i].q) for i in bodies]
            if self.turning:
                results.append(("*gap", gap))
            else:
                f.trace(closed)(block, gap)
            f.end("positions in closed form", "unreachable", *results)
            return f
        f.place_block(block)
        gap = f.trace(write_block_rows)(model.closures, block, data.state, data.rows)
        f.trace(invert_block)(model, data, block)
        steps: list[Number] = []
        for j in range(block.count):
            inverse = data.work[block.inverse_at + j * block.rows : block.inverse_at + (j + 1) * block.rows]
            steps.append(-sum(inverse[r] * data.rows[block.rows_at + r].gap for r in range(block.rows)))
        results = [(f"step[{j}]", x) for j, x in enumerate(steps)]
        turned: Number = 0.0
        if block.rows == block.count and not self.engine.divided:
            n = block.count
            f.trace(block_jacobian)(model, data, block, data.work, block.scratch_at)
            A = np.array(data.work[block.scratch_at : block.scratch_at + n * n], dtype=object).reshape(n, n)
            inverse = np.zeros((n, n), dtype=object)
            f.trace(factorise)(A, n, n, inverse, np.zeros(n, dtype=object))
            turned = f.trace(orientation)(inverse, n)
        f.end("a step of Newton's method", "singular", *results, ("*gap", gap), ("*turned", turned))
        return f

    def carry(self) -> RecordedFunction:
        """Where limbs get in a fixed number of Newton's steps from joints `from`, which were right at a pose nearby."""
        f = RecordedFunction(self)
        f.place(joints=False)
        state, bodies = f.data.state, f.model.bodies
        q = f.given(START, self.solved, "from")
        for i in range(2, len(bodies)):
            me = state[i]
            me.q = q[bodies[i].column]
            me.c, me.s = call("cos", me.q), call("sin", me.q)
        bounds = (1e-4, 1e-5) if self.single else (ROUNDED, SETTLED)

        def in_fixed_steps(*block: Any) -> Any:
            return f.trace(newton_in_fixed_steps)(*block, *bounds)

        instead = [*self.instead, (solve_newton, in_fixed_steps)]
        if self.turning:  # how open they are says whether the pose is a possible one
            instead.append((closed, _any_gap))
        status, gap, _ = trace(solve_positions, instead)(f.model, f.data, f.mode, True)
        self.expect(status == CONVERGED, "its limbs are not followed beside home")
        for block in f.model.blocks:
            if block.solver != CLOSED_FORM:
                read_angles_without_branch(bodies, state, block.start, block.start + block.count)
        if self.engine.divided and not self.turning:
            f.tape.decide("<", gap, (1e-4 if self.single else EXACT) * self.engine.size)
        results = [(f"q[{bodies[i].column}]", state[i].q) for i in range(2, len(bodies))]
        f.end("the limbs, from where they were nearby", "blunt", *results, ("found[1]", gap))
        return f

    def closing(self) -> RecordedFunction:
        """The nearest pose that the limbs' constraints allow, to first order; how open they are."""
        f = self._on_the_way()
        gap = f.open_limbs()
        f.end("positions of the limbs", f.open)
        f.invert()
        step, to = f.space().closing(), np.zeros(7, dtype=object)
        f.trace(shift_pose)(f.pose, step, 1.0, to)
        f.end("the way there", "singular", *((f"next[{k}]", x) for k, x in enumerate(to)), ("*open", gap))
        return f

    # -- the functions ------------------------------------------------------------------------------------------------

    def inverse(self, drives: bool = False) -> RecordedFunction:
        """Positions of all joints at a pose in a mode, or of the `drives` alone."""
        f = RecordedFunction(self)
        f.place(joints=not drives)
        f.end("the platform", "invalid")
        f.limbs(joints=True)
        state, chain = f.data.state, f.data.chain
        q: list[Number] = [0.0] * len(self.engine.joint_names)
        for i in range(2, len(state)):
            q[f.model.bodies[i].column] = state[i].q
        for i in range(1, len(chain)):
            q[f.model.chain[i].column] = chain[i].q
        for follower, leader, multiplier, offset in self.engine.gears:
            unit = 1.0 if self.engine.joint_turning[follower] else self.engine.size
            f.tape.decide("<=", abs(q[follower] - multiplier * q[leader] - offset), TORN * unit)
        wanted = [(f"joints[{k}]", x) for k, x in enumerate(q)]
        if drives:
            wanted = [(f"actuated[{a}]", q[column]) for a, column in enumerate(self.engine.actuated_column)]
        f.end("positions of the limbs", f.open, *wanted)
        return f

    def _at(self) -> RecordedFunction:
        """A function that begins with a pose and the limbs there."""
        f = RecordedFunction(self)
        f.place(joints=False)
        f.end("the platform", "invalid")
        return f

    def _limbs(self, f: RecordedFunction) -> Number:
        f.limbs(joints=False)
        f.end("positions of the limbs", f.open)
        return f.invert()

    def jacobian(self) -> RecordedFunction:
        """Actuated rates per twist (n_actuated, 6)."""
        f = self._at()
        self._limbs(f)
        J = np.zeros((self.m, 6), dtype=object)
        f.trace(inverse_jacobian)(f.model, f.data, J)
        f.end("rates", "singular", *((f"jacobian[{k}]", x) for k, x in enumerate(J.flat)))
        return f

    def motion_space(self) -> RecordedFunction:
        """Basis of the possible twists (6, n) at a pose; where it turns, orthonormal, rotations times the length."""
        f = self._at()
        self._limbs(f)
        if self.turning:
            f.space()
        space = f.model.subspace
        f.end("the motion space", "singular", *((f"motions[{k}]", x) for k, x in enumerate(space.flat)))
        return f

    def joint_rates(self) -> RecordedFunction:
        """Rates of all joints as the platform has a twist; zero for those of its own branch."""
        f = RecordedFunction(self)
        twist = f.rates(GIVEN, "twist")
        f.place(joints=False)
        f.end("the platform and its motion", "invalid")
        self._limbs(f)
        if self.turning:
            f.trace(onto_space)(f.space().model.subspace, self.engine.characteristic_length, twist)
        f.trace(move_platform)(f.data.state, twist, np.zeros(6))
        f.trace(velocities)(f.model, f.data)
        rates: list[Number] = [0.0] * len(self.engine.joint_names)
        for i in range(2, len(f.data.state)):
            rates[f.model.bodies[i].column] = f.data.state[i].qd
        f.end("rates of the joints", "singular", *((f"rates[{k}]", x) for k, x in enumerate(rates)))
        return f

    def inverse_dynamics(self, moving: bool) -> RecordedFunction:
        """Efforts (n_actuated,) of a motion, or at rest."""
        f = RecordedFunction(self)
        twist, acceleration = np.zeros((2, 6), dtype=object)
        if moving:
            twist, acceleration = f.rates(GIVEN, "twist"), f.rates(MORE, "acceleration")
        f.place(joints=False)
        f.end("the platform and its motion" if moving else "the platform", "invalid")
        self._limbs(f)
        f.end("how the limbs' joints move with the platform", "singular")
        f.move(twist, acceleration)
        f.end("motion of the limbs" if moving else "the limbs at rest", "singular")
        effort = np.zeros(self.m, dtype=object)
        status, _ = f.trace(efforts_here)(f.model, f.data, np.zeros(6), effort)
        f.regular = f.regular and status == CONVERGED
        results = [(f"effort[{k}]", x) for k, x in enumerate(effort)]
        if self.one_way:
            results += [(f"null[{k}]", x) for k, x in enumerate(self._null_space(f))]
        f.end("inertia, weight and friction, brought to the drives", "singular", *results)
        return f

    def _null_space(self, f: RecordedFunction) -> Any:
        """Efforts that do no work together: an orthonormal basis, by drive, of a Jacobian that is factorised."""
        m, n = self.m, self.n
        null = np.zeros((m, m - n), dtype=object)
        for c in range(m - n):
            null[n + c, c] = 1.0
            f.trace(turn_back)(f.data.system[0, :m, :n], m, n, f.data.system[3, 1], null[:, c])
        return null.flat

    def direct_dynamics(self) -> RecordedFunction:
        """Acceleration (6,) of the platform under efforts."""
        f = RecordedFunction(self)
        twist = f.rates(GIVEN, "twist")
        effort = f.given(MORE, some_numbers(self.m), "effort")
        for k in range(self.m):
            f.tape.decide("<", abs(effort[k]), inf)
        f.place(joints=False)
        f.end("the platform and its motion", "invalid")
        self._limbs(f)
        f.end("how the limbs' joints move with the platform", "singular")
        bias = np.zeros(6, dtype=object)
        f.move(twist, bias)
        f.end("motion of the limbs while the platform does not accelerate", "singular")
        out = np.zeros(6, dtype=object)
        status = f.trace(acceleration_here)(f.model, f.data, np.zeros(6), bias, effort, out)
        f.regular = f.regular and status == CONVERGED
        f.end(
            "inertia of the whole robot, and what accelerates it",
            "singular",
            *((f"acceleration[{k}]", x) for k, x in enumerate(out)),
        )
        return f

    def margins(self) -> RecordedFunction:
        """Regularity of the worst limb, reciprocal condition of the drives."""
        f = self._at()
        regularity = self._limbs(f)
        if self.turning:
            f.space()
        m, n = self.m, self.n
        J, system = np.zeros((m, 6), dtype=object), f.data.system
        f.trace(inverse_jacobian)(f.model, f.data, J)
        A, weights, per_speed = np.zeros((m, n), dtype=object), system[FACTORS, 0], system[FACTORS, 1]
        condition = f.trace(factorise_drives)(f.model, J, A, np.zeros((n, n), dtype=object), weights, per_speed)
        f.end("margins", "singular", ("margins[0]", regularity), ("margins[1]", condition))
        return f

    def _on_the_way(self) -> RecordedFunction:
        """A function that begins with a pose which is checked."""
        f = RecordedFunction(self)
        f.place_checked(joints=False)
        f.end("the platform", "invalid")
        return f

    def limb_errors(self) -> RecordedFunction:
        """What actuators still have to go to `goal` (n_actuated,) at a pose."""
        f = self._on_the_way()
        if self.turning:
            self.expect(f.open_limbs() < self.near_enough, "its limbs do not reach the poses beside home")
        else:
            f.limbs(joints=False)
        self._errors(f)
        return f

    @property
    def near_enough(self) -> float:
        """How far a pose to begin from may leave loops open, in units of what counts as closed."""
        return INSIDE / CLOSED if not self.single else 1.0

    def _errors(self, f: RecordedFunction) -> Any:
        goal = f.given(GIVEN, self.engine.home_joints[self.engine.actuated_column] + 0.01, "goal")
        left = np.zeros(self.m, dtype=object)
        f.trace(actuator_error)(f.model.bodies, f.data.state, goal, left)
        f.end("positions of the limbs", f.open, *((f"left[{k}]", x) for k, x in enumerate(left)))
        return goal

    def newton_step(self) -> RecordedFunction:
        """A step of Newton's method on the pose towards actuators at `goal`: see `kernels/path/follow.py`."""
        f = self._on_the_way()
        gap: Number = 0.0
        if self.turning:
            gap = f.open_limbs()
        else:
            f.limbs(joints=False)
        goal, closing = self._errors(f), np.zeros(6)
        if self.turning:
            regularity = f.invert()
            space = f.space()
            closing = space.closing()

        def missing(bodies: Any, state: Any, q: Any, error: Any) -> None:
            """In place of `actuator_error`: what is left of it once the constraints are closed."""
            f.trace(actuator_error)(bodies, state, q, error)
            for a in range(self.m):
                error[a] = error[a] - sum(f.data.system[0, a, k] * closing[k] for k in range(6))

        sign, _ = trace(correction, [*self.instead, (actuator_error, missing)])(f.model, f.data, goal)
        f.regular = isinstance(sign, Term) or sign != 0.0
        m, n = self.m, self.n
        results = []
        if f.regular:
            twist, to = f.data.system[VECTORS, TWIST, :6] + closing, np.zeros(7, dtype=object)
            f.trace(shift_pose)(f.pose, twist, 1.0, to)
            turn = call("sqrt", twist[3] * twist[3] + twist[4] * twist[4] + twist[5] * twist[5])
            length = self.engine.characteristic_length
            squares = twist[0] * twist[0] + twist[1] * twist[1] + twist[2] * twist[2]
            squares = squares + (length * turn) * (length * turn)
            results = [*((f"step->pose[{k}]", x) for k, x in enumerate(to)), ("step->turn", turn)]
            far = call("sqrt", squares)
            results += [("step->length", far), ("step->side", 1.0 if self.turning else sign)]
            if self.turning:
                small = (SMALL_SINGLE if self.single else SMALL) * length
                results.append(("step->open", extreme("worse", gap, far / small)))
                if self.iterated:
                    firm = extreme("min", regularity, space.condition)
                    results.append(("step->room", ROOM * length * firm))
            if m > n or self.turning:
                rates = np.zeros((m, n), dtype=object)
                f.trace(drive_rates)(f.data.system[0, :m], f.model.subspace, rates)
                rates = space.rates_by_twist(rates) if self.turning else rates
                results += [(f"step->rates[{k}]", x) for k, x in enumerate(rates.flat)]
        f.end("the step", "singular", *results)
        return f
