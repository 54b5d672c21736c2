# SPDX-License-Identifier: Apache-2.0
"""What the C functions of a robot compute, recorded from the kernels near home; the working mode is an input.

A closed form depends on the mode by a sign per limb, so that one recording serves all modes. The comparisons that
kernels make on the way come in stretches, each with the status that says what it means when one comes out otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np

from pkm_dynamics.export_c.recorded_function import (
    BLUNT,
    CLOSED_SINGLE,
    GIVEN,
    MORE,
    RecordedFunction,
    RobotFacts,
    any_gap,
    read_angles_without_branch,
)
from pkm_dynamics.kernels.platform_dynamics import acceleration_here, efforts_here
from pkm_kinematics.kernels.compiled_rotations import shift_pose
from pkm_kinematics.kernels.model_and_data import FACTORS, VECTORS
from pkm_kinematics.kernels.path.fixed_steps import SETTLED, newton_in_fixed_steps
from pkm_kinematics.kernels.path.follow import TWIST, actuator_error, correction
from pkm_kinematics.kernels.position.closed_form import solve_closed_form
from pkm_kinematics.kernels.position.closures import (
    CLOSED,
    LENGTHS,
    block_jacobian,
    closed,
    inverse_by_rows,
    invert_block,
    turned_over,
)
from pkm_kinematics.kernels.position.positions import (
    CONVERGED,
    ROUNDED,
    solve_newton,
    solve_positions,
    write_block_rows,
)
from pkm_kinematics.kernels.position.solve_poses import INSIDE
from pkm_kinematics.kernels.rates.motion import move_platform, velocities
from pkm_kinematics.kernels.rates.motion_space import limb_system, onto_space
from pkm_kinematics.kernels.rates.projection import drive_rates, factorise_drives, inverse_jacobian
from pkm_kinematics.kernels.records import CLOSED_FORM, PLATFORM
from pkm_kinematics.kernels.regularity import factorise, is_regular, orientation, turn_back
from pkm_kinematics.recorded_tracking import SMALL, LimbsUnderWay
from pkm_kinematics.recordings_at_home import (
    inverse_in_fixed_order,
    nearby,
    parts_of_blocks,
    reading_inputs,
    some_numbers,
)
from pkm_kinematics.solve.position_solver import TORN
from pkm_runtime.codegen import trace
from pkm_runtime.codegen.tape import Number, Term, call, extreme

SMALL_SINGLE = 1e-5  # of floats: what counts as no step where the motion space turns

# Longest step of the forward kinematics on the pose alone where the motion space turns, in rad and of the
# characteristic length, over the reciprocal condition of constraints and limbs: so it leaps over no singularity of
# theirs to another way, on which limbs close just as well. With 0.5, 8 of 1,500 random calls of the Carpal wrist ended
# elsewhere than in Python, with 0.25 2, with 0.1 none.
ROOM = 0.1
# Or the second correction is this part of the first at most: rates then change so little along the step that they
# vanish no sooner than 25 steps farther on. With 0.1, 4 of 7,700 random ways of the Carpal wrist ended elsewhere, with
# 0.05 one, with 0.02 none, and the same ways had an answer as without. Other ways are followed on all joints.
STRAIGHT = 0.02


def listed(name: str, numbers: Iterable[Number]) -> list[tuple[str, Number]]:
    """Numbers by their places in an array of C."""
    return [(f"{name}[{k}]", x) for k, x in enumerate(numbers)]


class RecordedRobot(RobotFacts):
    """Records the functions of one robot."""

    # -- limbs solved by iteration, block by block ------------------------------------------------------------------

    def platform(self) -> RecordedFunction:
        """A pose that is checked and moved into the motion space."""
        f = RecordedFunction(self)
        f.check_pose(joints=False)
        at = [*f.data.state[PLATFORM].p, *f.pose[3:]]
        f.end("the platform", "invalid", *listed("at", at))
        return f

    def block(self, b: int) -> RecordedFunction:
        """A step of Newton's method for a block, or its joints in closed form."""
        f = RecordedFunction(self)
        f.place(joints=False)
        f.joints_from("q", self.solved)
        model, data = f.model, f.data
        for before in model.blocks[:b]:
            f.place_block(before)
        block = model.blocks[b]
        bodies = range(block.start, block.start + block.count)
        if block.solver == CLOSED_FORM:
            branch = (f.mode // block.stride) % block.branches
            f.trace(solve_closed_form)(model.bodies, model.closures, block, data.state, branch)
            read_angles_without_branch(model.bodies, data.state, block.start, block.start + block.count)
            gap = f.trace(write_block_rows)(model.closures, block, data.state, data.rows)
            results = self._joints(f, bodies)
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
        results = listed("step", steps)
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

    def carry(self, under_way: bool = False) -> RecordedFunction:
        """Where limbs get in a fixed number of Newton's steps from joints `from`, which were right at a pose nearby.

        `under_way` to another pose they need not be closed, but near that.
        """
        f = RecordedFunction(self)
        f.place(joints=False)
        state, bodies = f.data.state, f.model.bodies
        f.joints_from("from", self.solved)
        if not self.turns:
            for me in state[2:]:
                me.c, me.s = call("cos", me.q), call("sin", me.q)
        bounds = (1e-4, 1e-3) if under_way else (1e-4, 1e-5) if self.single else (ROUNDED, SETTLED)

        quick = [*self.instead, (inverse_by_rows, inverse_in_fixed_order)]

        def in_fixed_steps(*block: Any) -> Any:
            return trace(newton_in_fixed_steps, quick)(*block, *bounds)

        parts = parts_of_blocks(self.tables, self.engine.home)
        instead: list[tuple[Any, Any]] = [*self.instead, (solve_newton, nearby(parts, in_fixed_steps))]
        if self.turning or under_way:  # how open they are says whether the pose is a possible one
            instead.append((closed, any_gap))
        status, gap, _ = trace(solve_positions, instead)(f.model, f.data, f.mode, True)
        self.expect(status == CONVERGED, "its limbs are not followed beside home")
        for block in f.model.blocks:
            if block.solver != CLOSED_FORM:
                read_angles_without_branch(bodies, state, block.start, block.start + block.count)
                self._make_units(f, block)
        if self.engine.divided and not (self.turning or under_way):
            f.tape.decide("<", gap, 1e-4 * self.engine.size if self.single else self.engine.positions.exact)
        results = self._joints(f, range(2, len(bodies)))
        f.end("the limbs, from where they were nearby", "blunt", *results, ("found[1]", gap))
        return f

    def _joints(self, f: RecordedFunction, of: Iterable[int]) -> list[tuple[str, Number]]:
        """Positions of the joints of some bodies by their places in `q` of C; cosines and sines behind them."""
        bodies, state = f.model.bodies, f.data.state
        found = [(f"q[{bodies[i].column}]", state[i].q) for i in of]
        return found + (self._turns(f, of, "q") if self.turns else [])

    def _turns(self, f: RecordedFunction, of: Iterable[int], name: str) -> list[tuple[str, Number]]:
        """Cosines and sines of the joints of some bodies, positions of those that slide."""
        found, n = list[tuple[str, Number]](), len(self.engine.joint_names)
        for i in of:
            me, k = f.data.state[i], f.model.bodies[i].column
            turns = f.model.bodies[i].prismatic == 0
            found += [(f"{name}[{n + k}]", me.c), (f"{name}[{2 * n + k}]", me.s)] if turns else [(f"{name}[{k}]", me.q)]
        return found

    def _make_units(self, f: RecordedFunction, block: Any) -> None:
        """Make good what rounding does to cosines and sines that are taken along for days."""
        for i in range(block.start, block.start + block.count):
            me = f.data.state[i]
            if self.turns and f.model.bodies[i].prismatic == 0:
                part = 1.5 - 0.5 * (me.c * me.c + me.s * me.s)
                me.c, me.s = part * me.c, part * me.s

    def closing(self) -> RecordedFunction:
        """The nearest pose that the limbs' constraints allow, to first order; how open they are."""
        f = self._on_the_way()
        gap = f.open_limbs()
        f.end("positions of the limbs", f.open)
        f.invert()
        step, to = f.space().closing(), np.zeros(7, dtype=object)
        f.trace(shift_pose)(f.pose, step, 1.0, to)
        f.end("the way there", "singular", *listed("next", to), ("*open", gap))
        return f

    # -- the functions ------------------------------------------------------------------------------------------------

    def inverse(self, drives: bool = False) -> RecordedFunction:
        """Positions of all joints at a pose in a mode, or of the `drives` alone."""
        f = self._at(joints=not drives)
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
        wanted = listed("actuated", [q[k] for k in self.engine.actuated_column]) if drives else listed("joints", q)
        f.end("positions of the limbs", f.open, *wanted)
        return f

    def _at(self, joints: bool = False) -> RecordedFunction:
        f = RecordedFunction(self)
        f.place(joints)
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
        f.end("rates", "singular", *listed("jacobian", J.flat))
        return f

    def motion_space(self) -> RecordedFunction:
        """Basis of the possible twists (6, n) at a pose; where it turns, orthonormal, rotations times the length."""
        f = self._at()
        self._limbs(f)
        if self.turning:
            f.space()
        space = f.model.subspace
        f.end("the motion space", "singular", *listed("motions", space.flat))
        return f

    def nearest_twist(self) -> RecordedFunction:
        """The possible twist nearest to one, where the motion space turns."""
        f = RecordedFunction(self)
        twist = f.given(GIVEN, self.rates[0], "twist")
        f.place(joints=False)
        f.end("the platform and its motion", "invalid")
        self._limbs(f)
        f.trace(onto_space)(f.space().model.subspace, self.engine.characteristic_length, twist)
        f.end("the nearest possible twist", "singular", *listed("nearest", twist))
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
        f.end("rates of the joints", "singular", *listed("rates", rates))
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
        results = listed("effort", effort) + (listed("null", self._null_space(f)) if self.one_way else [])
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
        f.end("inertia of the whole robot, and what accelerates it", "singular", *listed("acceleration", out))
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

    def graph(self) -> RecordedFunction:
        """Gaps of all closures, by joints and a pose that need not close them, and their rates (equations, unknowns).

        Unknown are the joints that are not driven, and a twist of the platform; what holds a direction counts as an arc
        at the robot's size.
        """
        f = RecordedFunction(self)
        f.place_checked(joints=False)
        f.joints_from("q", self.at_home)
        model, data, passive, gaps = f.model, f.data, self.passive, []
        rates = np.zeros((0, len(passive) + 6), dtype=object)
        for block in model.blocks:
            f.place_block(block)
            f.trace(write_block_rows)(model.closures, block, data.state, data.rows)
            f.trace(turned_over)(model.closures, block, data.state)
        for first, stop in self.tables.limbs:
            start, closures = model.blocks[first].start, model.blocks[first].closure_start
            last = model.blocks[stop - 1]
            end, closures_end = last.start + last.count, last.closure_start + last.closure_count
            rows = sum(model.blocks[b].rows for b in range(first, stop))
            J, G = np.zeros((rows, end - start), dtype=object), np.zeros((rows, 6), dtype=object)
            f.trace(limb_system)(model, data, closures, closures_end, start, J, G)
            wide = np.zeros((rows, len(passive) + 6), dtype=object)
            wide[:, len(passive) :] = G
            for i in range(start, end):
                if i in passive:
                    wide[:, passive.index(i)] = J[:, i - start]
            rates = np.concatenate([rates, wide])
        for closure in model.closures:
            for r in range(closure.rows):
                unit = self.engine.size if r >= LENGTHS[closure.kind] else 1.0
                row = closure.rows_at + r
                gaps.append(unit * data.rows[row].gap)
                rates[row] = unit * rates[row]
        f.end("all closures, and their rates", "singular", *listed("gap", gaps), *listed("J", rates.flat))
        return f

    def _on_the_way(self) -> RecordedFunction:
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
            f.limbs(joints=False, firm=False)  # a step from there is
        self._errors(f)
        return f

    @property
    def near_enough(self) -> float:
        """How far a pose to begin from may leave loops open, in units of what counts as closed."""
        return INSIDE / CLOSED if not self.single else 1.0

    def _errors(self, f: RecordedFunction) -> Any:
        goal = reading_inputs(
            f.tape, GIVEN, self.engine.home_joints[self.engine.actuated_column] + 0.01, self.engine.actuated_turning
        )
        f.inputs |= {(GIVEN, k): f"goal[{k}]" for k in range(3 * self.m)}
        left = np.zeros(self.m, dtype=object)
        f.trace(actuator_error)(f.model.bodies, f.data.state, goal, left)
        f.end("positions of the limbs", f.open, *listed("left", left))
        return goal

    def newton_step(self, quick: bool = False) -> RecordedFunction:
        """A step of Newton's method on the pose towards actuators at `goal`: see `kernels/path/follow.py`.

        Iterated limbs take a step of their own with it, as in `recorded_tracking`, to `next`. A `quick` one inverts by
        elimination, in fewer operations, and has no result at some poses.
        """
        f = self._on_the_way()
        by = [*self.instead, (inverse_by_rows, inverse_in_fixed_order)] if quick else self.instead
        bound = CLOSED_SINGLE if self.single else CLOSED
        way = LimbsUnderWay(self.engine, trace(invert_block, by), bound, forms=quick)
        instead, closing = [*by, *(way.openly if self.turning or self.iterated else way.instead)], np.zeros(6)
        if self.iterated:
            f.joints_from("q", self.solved)
            trace(solve_positions, instead)(f.model, f.data, f.mode, False)
            for block in f.model.blocks:
                if block.solver != CLOSED_FORM and self.engine.divided:
                    f.tape.decide(">", way.condition(f.model, f.data, block), BLUNT)
        elif self.turning:
            way.gap = f.open_limbs()
        else:
            f.limbs(joints=False)
        goal = self._errors(f)
        if self.turning:
            regularity = way.invert(f.model, f.data)
            f.regular = bool(f.trace(is_regular)(regularity))
            space = f.space()
            closing = space.closing()

        def missing(bodies: Any, state: Any, q: Any, error: Any) -> None:
            """In place of `actuator_error`: what is left of it once the constraints are closed."""
            f.trace(actuator_error)(bodies, state, q, error)
            for a in range(self.m):
                error[a] = error[a] - sum(f.data.system[0, a, k] * closing[k] for k in range(6))

        sign, _ = trace(correction, [*instead, (actuator_error, missing)])(f.model, f.data, goal)
        f.regular = isinstance(sign, Term) or sign != 0.0
        results = []
        if f.regular:
            twist, to = f.data.system[VECTORS, TWIST, :6] + closing, np.zeros(7, dtype=object)
            f.trace(shift_pose)(f.pose, twist, 1.0, to)
            length = self.engine.characteristic_length
            turn, far = way.lengths(twist, length)
            results = [*listed("step->pose", to), ("step->turn", turn)]
            results += [("step->length", far), ("step->side", 1.0 if self.turning else sign)]
            if self.turning or self.iterated:
                small = (SMALL_SINGLE if self.single else SMALL) * length
                results.append(("step->open", extreme("worse", way.gap, far / small)))
            if self.turning:
                firm = extreme("min", regularity, space.condition)
                results.append(("step->room", ROOM * length * firm))
            if self.m > self.n or self.turning:
                rates = np.zeros((self.m, self.n), dtype=object)
                f.trace(drive_rates)(f.data.system[0, : self.m], f.model.subspace, rates)
                rates = space.rates_by_twist(rates) if self.turning else rates
                results += [(f"step->rates[{k}]", x) for k, x in enumerate(rates.flat)]
            if self.iterated:
                way.carry(f.model, f.data, twist)
                results += self._turns(f, range(2, len(f.data.state)), "next")
        f.end("the step", "singular", *results)
        return f
