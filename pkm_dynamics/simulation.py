# SPDX-License-Identifier: Apache-2.0
"""Motion of a robot under given efforts and wrenches, to a chosen accuracy.

By the embedded Runge-Kutta method of order 8 of Hairer, Norsett and Wanner (`scipy.integrate.DOP853`) with adaptive
steps. For real time there is `Dynamics.lean_step`. Equations of motion are integrated in one of three forms (Müller,
"Dynamics of parallel manipulators with hybrid complex limbs: modular modeling and parallel computing", section 8.1):

    task      (127 to 130)  state: pose and twist; joints by the inverse kinematics
    joint     (131 to 134)  state: pose, all joints, and twist; qd = K V is integrated beside the twist
    actuator  (8.1.3)       state: actuated positions and velocities; the platform by the forward kinematics

The paper's orientation coordinates have singularities; here it is a quaternion, normalised after every step. Drift is
removed there too: the joint form closes its loops by the inverse kinematics, and in a configuration-dependent motion
space pose and twist go to the nearest possible ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # whose parts load when they are first used
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.kernels.over_rows import seed_joints
from pkm_dynamics.kernels.platform_dynamics import acceleration_here, direct_dynamics, move_all, place_joints
from pkm_kinematics import Configuration, Status
from pkm_kinematics.batch import numbers
from pkm_kinematics.kernels.compiled_rotations import multiply
from pkm_kinematics.kernels.model_and_data import NEAREST, near
from pkm_kinematics.kernels.regularity import is_regular
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.describable import Describable, number
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import bind

Load = Callable[[float, Array, Array], tuple[Array, Array]]


class NoMotionHereError(PkmError):
    """A state at which the equations of motion have no solution."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = Status(status)
        super().__init__(reason)


@dataclass(frozen=True, eq=False)
class State:
    """Pose (7,), twist (6,) and all joint positions (n_joints,) at one instant."""

    pose: Array
    twist: Array
    joints: Array


def unit(pose: Array) -> Array:
    """A pose (7,) with its quaternion normalised."""
    return np.concatenate([pose[:3], pose[3:] / np.linalg.norm(pose[3:])])


def pose_rate(pose: Array, twist: Array) -> Array:
    """Rate (7,) of a pose for a twist (6,): the origin's velocity, and the quaternion product w q / 2."""
    return np.concatenate([twist[:3], 0.5 * multiply(np.array([*twist[3:], 0.0]), pose[3:])])


class Form:
    """Common parts of the three forms: robot, loads, and removal of drift from a state."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        self.dynamics, self.load, self.payload = dynamics, load, payload
        self.kinematics = dynamics.kinematics
        refuse_redundant(self.kinematics.redundant_names, "simulation in these coordinates")
        self.constant = self.kinematics.constant_space
        self.S = np.ascontiguousarray(self.kinematics.task.subspace) if self.constant else np.eye(6)
        self.dual = np.linalg.pinv(self.S)
        self.model = dynamics.model(payload).replace(subspace=self.S)
        self.bodies, self.data = self.model.bodies, self.kinematics.engine.data()
        self.columns = self.kinematics.engine.body_column[2:]
        self.q = np.zeros(len(self.bodies))
        self.out = np.zeros(6)

    def possible(self, pose: Array, twist: Array, joints: Array) -> State:
        """Possible state nearest to one that has drifted; `NoMotionHereError` where there is none near."""
        k = self.kinematics
        if self.constant:
            answer = k.inverse(pose, joints)
            if not closes(answer.status):
                raise NoMotionHereError(int(answer.status), answer.reason())
            return State(pose, twist, answer.joints)
        found = k.nearest(pose, joints)
        if int(found.status) != Status.CONVERGED:
            raise NoMotionHereError(int(found.status), found.reason())
        self.place(found.pose, found.joints[self.columns])
        S, _ = k.engine.spaces.space_in(self.model, self.data, found.pose, np.zeros(6))
        return State(found.pose, inside(S, twist, k.engine.characteristic_length), found.joints)

    def place(self, pose: Array, q: Array) -> None:
        """Place all bodies, loops left open, joints (n_bodies - 2,); `NoMotionHereError` where a limb is singular."""
        self.q[2:] = q
        regularity, _ = place_joints(self.model, self.data, pose, self.q)
        if not is_regular(regularity):
            raise NoMotionHereError(Status.SINGULAR, "a limb is singular")

    def accelerate(self, t: float, pose: Array, twist: Array) -> Array:
        """Platform acceleration (6,) at placed bodies, overwritten by the next call; joint rates in the workspace."""
        model, bias = self.model, np.zeros(6)
        if not self.constant:
            S, bias = self.kinematics.engine.spaces.space_in(model, self.data, pose, twist)
            model = model.replace(subspace=S)
        effort, wrench = self.load(t, pose, twist)
        move_all(model, self.data, twist, bias)
        external, efforts = (np.ascontiguousarray(x, dtype=np.float64) for x in (wrench, effort))
        status = acceleration_here(model, self.data, external, bias, efforts, self.out)
        if status != Status.CONVERGED:
            raise NoMotionHereError(status, Status(status).meaning)
        return self.out


def inside(S: Array, twist: Array, length: float) -> Array:
    """Twist in the motion space S (6, n) nearest to a given one, rotations weighted by `length`."""
    scale = scaling(length)
    u = np.linalg.lstsq(S * scale[:, None], twist * scale, rcond=None)[0]
    return np.asarray(S @ u)


class TaskForm(Form):
    """State (7 + n,): pose, and velocity in the motion space; the whole twist where that is configuration-dependent."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        super().__init__(dynamics, load, payload)
        self.joints: Array = np.array(self.kinematics.home_joints)
        if self.constant:
            self.motion = np.zeros(25)
            self.motion[:7] = self.kinematics.home
            self._direct = bind(
                direct_dynamics,
                (self.model, self.data, NEAREST),
                (self.motion, np.zeros(len(self.kinematics.actuated_names)), self.out),
            )

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self._remember(state.joints)
        return np.concatenate([state.pose, self.dual @ state.twist])

    def _remember(self, joints: Array) -> None:
        self.joints = joints
        seed_joints(self.model, self.data, near(joints, 1), 0)

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector at time `t` [s]; `NoMotionHereError` where the equations have no solution."""
        pose, twist = unit(y[:7]), self.S @ y[7:]
        if not self.constant:
            state = self.possible(pose, twist, self.joints)
            return np.concatenate([pose_rate(state.pose, state.twist), self.accelerate(t, state.pose, state.twist)])
        effort, wrench = self.load(t, pose, twist)
        self.motion[:7], self.motion[7:13], self.motion[19:] = pose, twist, wrench
        status = self._direct(self.motion, np.ascontiguousarray(effort, dtype=np.float64), self.out)
        if status != Status.CONVERGED:
            raise NoMotionHereError(status, Status(status).meaning)
        return np.concatenate([pose_rate(pose, twist), self.dual @ self.out])

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector without drift, and the state, after an accepted step."""
        state = self.possible(unit(y[:7]), self.S @ y[7:], self.joints)
        return self.start(state), state


class JointForm(Form):
    """State (7 + n_bodies - 2 + n,): pose, integrated limb joints, velocity as in the task form."""

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self.joints: Array = state.joints
        return np.concatenate([state.pose, state.joints[self.columns], self.dual @ state.twist])

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector."""
        at = 7 + len(self.columns)
        pose, twist = unit(y[:7]), self.S @ y[at:]
        self.place(pose, y[7:at])
        acceleration = self.accelerate(t, pose, twist)
        qd = self.data.state["qd"][2:]
        return np.concatenate([pose_rate(pose, twist), qd, self.dual @ acceleration])

    def parts(self, y: Array) -> tuple[Array, Array, Array]:
        """Pose (7,), twist (6,) and joints (n_joints,) of a state vector, drift included."""
        at = 7 + len(self.columns)
        joints = self.joints.copy()
        joints[self.columns] = y[7:at]
        return unit(y[:7]), self.S @ y[at:], joints

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector with closed loops, and the state, after an accepted step."""
        state = self.possible(*self.parts(y))
        return self.start(state), state


class ActuatorForm(Form):
    """State (2 n_actuated,): positions and velocities of the actuated joints. Ends at type 2 singularities."""

    def __init__(self, dynamics: Dynamics, load: Load, payload: Inertial | None) -> None:
        super().__init__(dynamics, load, payload)
        self.driven = np.flatnonzero(self.bodies["actuator"] >= 0)

    def start(self, state: State) -> Array:
        """State vector of a state."""
        self.last = state
        return np.concatenate([state.joints[self.kinematics.engine.actuated_column], self._speeds(state)])

    def _speeds(self, state: State) -> NDArray[Any]:
        return np.asarray(self.kinematics.at(state.pose, seed=state.joints).inverse_jacobian @ state.twist)

    def _state(self, y: Array) -> State:
        k, m = self.kinematics, len(y) // 2
        found = k.forward(y[:m], near=self.last.pose, seed=self.last.joints)
        if not closes(found.status):
            raise NoMotionHereError(int(found.status), found.reason())
        joints = found.joints
        if self.constant:
            joints = self.possible(found.pose, np.zeros(6), joints).joints
        twist = k.at(found.pose, seed=joints).platform_twist(y[m:])
        if not np.isfinite(twist).all():
            raise NoMotionHereError(Status.SINGULAR, "the actuators do not determine the platform's velocity")
        return State(found.pose, twist, joints)

    def rates(self, t: float, y: Array) -> Array:
        """Rate of the state vector."""
        state, m = self._state(y), len(y) // 2
        self.place(state.pose, state.joints[self.columns])
        acceleration = self.accelerate(t, state.pose, state.twist)
        move_all(self.model, self.data, state.twist, acceleration)
        seconds = np.empty(m)
        seconds[self.bodies["actuator"][self.driven]] = self.data.state["qdd"][self.driven]
        return np.concatenate([y[m:], seconds])

    def settle(self, y: Array) -> tuple[Array, State]:
        """State vector with redundant actuators made consistent, and the state, after an accepted step."""
        self.last = self._state(y)
        if len(y) == 2 * self.kinematics.mobility:
            return y, self.last
        m = len(y) // 2
        turned = y[:m] - self.last.joints[self.kinematics.engine.actuated_column]
        turns = np.where(self.kinematics.engine.actuated_turning, 2.0 * np.pi * np.round(turned / (2.0 * np.pi)), 0.0)
        again = self.start(self.last)
        again[:m] += turns
        return again, self.last


AnyForm = TaskForm | JointForm | ActuatorForm
FORMS: dict[str, type[AnyForm]] = {"task": TaskForm, "joint": JointForm, "actuator": ActuatorForm}


LoadFunction = Callable[[float, Array, Array], tuple[ArrayLike, ArrayLike]]

NEAR = 0.05  # of the margin at home: where a motion counts as passing near a type 2 singularity
LOST = 1e-3  # of the margin at home: where actuator coordinates no longer tell the pose
SHORTEST = 1e-9  # s: a step that still has no answer at this length ends the simulation


@dataclass(frozen=True, eq=False, repr=False)
class Simulated(Describable):
    """A motion at the times asked for: NaN, with the reason as status, after its early end.

    `slowest_actuation` is the margin to type 2 singularities, `Kinematics.singularity(...).type2`. `notices` says where
    the motion passed near or through such a singularity, and why it ended early.
    """

    time: Array  # (k,) s
    pose: Array  # (k, 7)
    twist: Array  # (k, 6)
    joints: Array  # (k, n_joints)
    slowest_actuation: Array  # (k,)
    status: NDArray[np.int64]  # (k,)
    least_margin: float
    least_margin_time: float
    notices: tuple[str, ...]
    steps: int
    evaluations: int

    def _summary(self) -> str:
        reached = np.asarray(self.time)[self.ok]
        until = f"until {number(reached[-1])} s" if len(reached) else "nowhere"
        return f"{until}, {len(reached)} of {len(self.time)} times in {self.steps} steps"

    def _details(self) -> list[str]:
        margin = f"least margin to type 2 {number(self.least_margin)} at {number(self.least_margin_time)} s"
        return [margin, *self.notices]

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Mask of the times reached."""
        return self.status == Status.CONVERGED


def simulate(
    dynamics: Dynamics,
    pose: ArrayLike | Configuration,
    twist: ArrayLike,
    times: ArrayLike,
    load: LoadFunction | None = None,
    *,
    form: Literal["task", "joint", "actuator"] = "task",
    tolerance: float = 1e-10,
    payload: Inertial | None = None,
) -> Simulated:
    """Motion of a robot under efforts and wrenches, at `times`; `pose`, `twist` and `payload` as in `Dynamics.inverse`.

    Args:
        times: (k,) [s], increasing; the motion starts at the first.
        load: `load(time, pose, twist)` returns efforts (n_actuated,) and external wrench (6,); zero where None.
        form: the integrated coordinates; all three give the same motion.
        tolerance: error of a step, relative and absolute, in SI units.

    PkmError: the motion cannot start there, the times do not increase, there is no such form, or the load is not a pair
    of efforts and a wrench.
    """
    clock = _checked(times)
    if form not in FORMS:
        raise PkmError(f"form: expected one of {', '.join(FORMS)}, got {form!r}")
    k = dynamics.kinematics
    begin = k.at_one(pose).motion(twist)
    if int(begin.status) != Status.CONVERGED:
        raise PkmError(f"the motion cannot start there: {Status(int(begin.status)).meaning}")
    equations = FORMS[form](dynamics, _loads(load, len(k.actuated_names)), payload)
    state = State(np.array(begin.at.pose), np.array(twist, dtype=np.float64), begin.joints)
    log = _Log(dynamics, clock)
    log.step(float(clock[0]), state)
    log.keep(0, state)
    if len(clock) == 1:
        return log.result(0, 0)
    run = _Run(equations, state, log, tolerance)
    for i in range(1, len(clock)):
        error = run.reach(clock[i])
        if error is not None:
            log.end(i, run.time, error)
            break
        log.keep(i, run.state)
    return log.result(run.steps, run.evaluations)


def _checked(times: ArrayLike) -> Array:
    clock = np.asarray(times, dtype=np.float64)
    if clock.ndim != 1 or len(clock) == 0 or not (np.diff(clock) > 0.0).all() or not np.isfinite(clock).all():
        raise PkmError("times: expected increasing numbers")
    return clock


def _loads(load: LoadFunction | None, n_actuated: int) -> Load:
    """The user's function with its answers as arrays; zeros where there is none."""
    idle = np.zeros(n_actuated), np.zeros(6)
    expected = f"a pair, the efforts of shape ({n_actuated},) and the external wrench of shape (6,)"

    def loads(t: float, at: Array, moving: Array) -> tuple[Array, Array]:
        if load is None:
            return idle
        given: Any = load(t, at, moving)
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise PkmError(f"load: expected {expected}, got {_in_words(given)}")
        effort, wrench = (numbers(value, expected, "load") for value in given)
        if effort.shape != (n_actuated,) or wrench.shape != (6,):
            raise PkmError(f"load: expected {expected}, got shapes {np.shape(given[0])} and {np.shape(given[1])}")
        if not (np.isfinite(effort).all() and np.isfinite(wrench).all()):
            raise PkmError(f"load: not finite at {t:.6g} s")
        return effort, wrench

    return loads


def _in_words(given: Any) -> str:
    if isinstance(given, tuple | list):
        return f"{len(given)} values"
    return f"an array of shape {np.shape(given)}" if isinstance(given, np.ndarray) else type(given).__name__


class _Run:
    def __init__(self, equations: AnyForm, state: State, log: _Log, tolerance: float) -> None:
        self.equations, self.state, self.log = equations, state, log
        self.steps = 0
        self._ends_where_lost = isinstance(equations, ActuatorForm)
        self._solver = scipy.integrate.DOP853(
            equations.rates, log.time[0], equations.start(state), log.time[1], rtol=tolerance, atol=tolerance
        )

    @property
    def time(self) -> float:
        """Time reached [s]."""
        return float(self._solver.t)

    @property
    def evaluations(self) -> int:
        return self._solver.nfev

    def reach(self, t: float) -> NoMotionHereError | None:
        """Go on to time t [s]; returns the reason where the motion ends before."""
        solver = self._solver
        solver.t_bound, solver.status = t, "running"
        while solver.status == "running":
            error = self._step()
            if error is not None:
                if solver.h_abs < SHORTEST:
                    return error
            elif self._ends_where_lost and self.log.lost:
                return NoMotionHereError(Status.SINGULAR, "the actuators no longer control the platform")
        return None

    def _step(self) -> NoMotionHereError | None:
        """Make a step and remove its drift; on failure stay, return the reason and leave a shorter step to try."""
        solver = self._solver
        before = solver.t, solver.y, solver.f, solver.h_abs
        try:
            solver.step()
            if solver.status == "failed":
                raise NoMotionHereError(Status.DIVERGED, "the step became too short")
            solver.y, self.state = self.equations.settle(solver.y)
            solver.f = self.equations.rates(solver.t, solver.y)
        except NoMotionHereError as error:
            solver.t, solver.y, solver.f, h = before
            solver.h_abs, solver.status = 0.25 * h, "running"
            return error
        self.steps += 1
        self.log.step(self.time, self.state)
        return None


class _Log:
    def __init__(self, dynamics: Dynamics, clock: Array) -> None:
        self.kinematics = dynamics.kinematics
        n = len(clock)
        self.time = clock
        self.pose, self.twist = np.full((n, 7), np.nan), np.full((n, 6), np.nan)
        self.joints = np.full((n, len(self.kinematics.joint_names)), np.nan)
        self.margins = np.full(n, np.nan)
        self.status = np.full(n, int(Status.CONVERGED), dtype=np.int64)
        self.least, self.least_time = np.inf, float(clock[0])
        self.notices: list[str] = []
        home = self.kinematics.singularity(self.kinematics.home)
        self.near = NEAR * float(np.nan_to_num(home.type2))
        self.usual = float(home.type2 / home.type1)  # square of the drives' rates per unit speed, in any direction
        self.sign, self.inside = 0.0, False
        self.before: Configuration | None = None
        self.basis: Array | None = None
        self.sense = 1.0

    def step(self, t: float, state: State) -> None:
        """Look at the margin to type 2 singularities after a step."""
        at = self.kinematics.at(state.pose, seed=state.joints)
        found = at.singularity
        self.margin = float(found.type2)
        self.lost = self.margin < LOST / NEAR * self.near
        sign = float(found.determinant_sign) * self._orientation(at)
        if self.margin < self.least:
            self.least, self.least_time = self.margin, t
        inside = self.margin < self.near
        if inside and not self.inside:
            self.notices.append(
                f"{t:.6g} s: near a type 2 singularity, margin {self.margin:.3g} with {self.near / NEAR:.3g} at home"
            )
        if self.before is not None and sign * self.sign < 0.0:
            stretched = self._through_infinity(self.before, at)
            self.lost = self.lost or not stretched
            kind, modes = (1, "working") if stretched else (2, "assembly")
            self.notices.append(f"{t:.6g} s: passed through a type {kind} singularity into another {modes} mode")
        self.inside, self.sign, self.before = inside, sign, at

    def _through_infinity(self, before: Configuration, at: Configuration) -> bool:
        """Whether the drives' rates of the motion that changed their sign are large, as where a limb is stretched."""
        S = before.subspace
        K, after = before.inverse_jacobian @ S, at.inverse_jacobian @ S
        try:
            values, vectors = np.linalg.eig(np.linalg.solve(K, after))
        except np.linalg.LinAlgError:  # singular, or not finite: no limb is stretched
            return False
        motion = vectors[:, np.argmin(values.real)].real
        rates = np.linalg.norm(K @ motion) * np.linalg.norm(after @ motion)
        speed = np.linalg.norm(S @ motion * scaling(self.kinematics.engine.characteristic_length))
        return bool(rates > self.usual * speed**2) and is_regular(self.usual)

    def _orientation(self, at: Configuration) -> float:
        """Orientation of the motion space's basis against the one before: the sign of a determinant depends on it."""
        k = self.kinematics
        if k.constant_space:
            return 1.0
        S = at.subspace * scaling(k.engine.characteristic_length)[:, None]
        if self.basis is not None:
            self.sense *= float(np.sign(np.linalg.det(self.basis.T @ S)))
        self.basis = S
        return self.sense

    def keep(self, i: int, state: State) -> None:
        self.pose[i], self.twist[i], self.joints[i] = state.pose, state.twist, state.joints
        self.margins[i] = self.margin

    def end(self, i: int, t: float, error: NoMotionHereError) -> None:
        self.status[i:] = int(error.status)
        self.notices.append(f"{t:.6g} s: ended, {error}")

    def result(self, steps: int, evaluations: int) -> Simulated:
        rows = self.time, self.pose, self.twist, self.joints, self.margins, self.status
        return Simulated(*rows, self.least, self.least_time, tuple(self.notices), steps, evaluations)
