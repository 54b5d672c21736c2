# SPDX-License-Identifier: Apache-2.0
"""A robot as the dynamics need it: kinematics, tables for the kernels, and generated machine code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial, frozen
from pkm_description.urdf.elements import ROUNDING, inertia_problem
from pkm_dynamics.kernels.over_rows import check_motions, inverse_dynamics_many, move_within
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.batch import all_finite, numbers, wrong_shape
from pkm_kinematics.kernels.model_and_data import Choice, Model
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.model.tables import add_mass
from pkm_runtime.codegen import MachineCode, Recording
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import Prepared, WithScratch

_NONE = np.zeros(6)
MANY = 100_000  # states from which on it pays to make straight-line code for them, which takes up to a second


class RobotModel:
    """One robot as all its dynamics see it, constant but for its cache of code; `springs` as `records.SPRING`."""

    def __init__(self, kinematics: Kinematics, *, friction: bool = True, springs: NDArray[Any] | None = None) -> None:
        self.kinematics = kinematics
        self.friction = friction
        self.springs = kinematics.tables.springs if springs is None else springs
        self.codes: dict[tuple[Record, int], MachineCode | None] = {}
        self.carried: dict[tuple[Any, int], tuple[MachineCode, int] | None] = {}  # of iterated limbs; results of each
        self._prepared: dict[Any, WithScratch] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled without code, which cannot leave its process and is made again."""
        return partial(type(self), friction=self.friction, springs=self.springs), (self.kinematics,)

    @property
    def n_actuated(self) -> int:
        """Number of actuated joints."""
        return len(self.kinematics.actuated_names)

    @cached_property
    def frictionless(self) -> RobotModel:
        """The same robot without joint friction."""
        return RobotModel(self.kinematics, friction=False, springs=self.springs) if self.friction else self

    def with_springs(self, springs: NDArray[Any]) -> RobotModel:
        """The same robot with other springs, a table of `records.SPRING`."""
        return RobotModel(self.kinematics, friction=self.friction, springs=springs)

    def model(self, payload: Inertial | None = None) -> Model:
        """Read-only tables for the kernels, with a payload (platform frame) and friction if enabled."""
        return self._unloaded if payload is None else self._loaded(checked_payload(payload))

    @cached_property
    def _unloaded(self) -> Model:
        return self._loaded(None)

    def _loaded(self, payload: Inertial | None) -> Model:
        bodies = self.with_friction(self._bodies(payload))
        return self.kinematics.engine.model.replace(bodies=bodies, springs=self.springs)

    def prepared(self, kernel: Any, *others: Any) -> WithScratch:
        """Cached call, without data, of a kernel of model, data, choice and arguments of the types of `others`."""
        found = self._prepared.get(kernel)
        if found is None:
            engine = self.kinematics.engine
            found = WithScratch(kernel, engine.data, self._unloaded, engine.any_choice, *others)
            self._prepared[kernel] = found
        return found

    def check_motions(self, motions: Array, status: NDArray[np.int64]) -> None:
        """Write the status as input of motions (k, 25), and move their poses into the motion space: `over_rows`."""
        spaces = self.kinematics.engine.spaces
        self._check_motions(motions, spaces.rate_scale, spaces.onto_space, status)
        if self._move_within is not None:
            self._move_within(self._unloaded, motions, status)

    @cached_property
    def _check_motions(self) -> Callable[..., None]:
        engine = self.kinematics.engine
        example = np.empty((1, 25)), engine.spaces.rate_scale, engine.spaces.onto_space, np.empty(1, dtype=np.int64)
        return Prepared(check_motions, *example).call

    @cached_property
    def _move_within(self) -> WithScratch | None:
        """Of robots whose platform's branch leaves less than six directions, or less than the limbs do."""
        engine = self.kinematics.engine
        less = 1 < len(engine.model.chain) < 7 or engine.mechanism.mobility.left_out
        if not (engine.constant_space and less):
            return None
        return WithScratch(move_within, engine.data, self._unloaded, np.empty((1, 25)), np.empty(1, dtype=np.int64))

    def efforts_at(self, pose: Array, twist: Array | None, acceleration: Array | None) -> tuple[Array, Array] | None:
        """Efforts (n_actuated,) and reciprocal condition on home's branches, or None: then a `Problem` is needed."""
        engine = self.kinematics.engine
        if engine.iterated or not engine.constant_space:
            return None
        twist = _NONE if twist is None else twist
        acceleration = _NONE if acceleration is None else acceleration
        motion = np.concatenate((pose, twist, acceleration, _NONE))[None]
        efforts, condition, status = np.empty((1, self.n_actuated)), np.empty(1), np.empty(1, dtype=np.int64)
        self.check_motions(motion, status)
        self.prepared(inverse_dynamics_many, motion, condition, efforts, status)(
            self._unloaded, self._home_choice, motion, condition, efforts, status
        )
        found: Array = efforts[0]
        return (found, condition.reshape(())) if status.item() == Status.CONVERGED and all_finite(found) else None

    @cached_property
    def _home_choice(self) -> Choice:
        return self.kinematics.modes.choose(self.kinematics.engine.home_row)

    def with_friction(self, bodies: NDArray[Any]) -> NDArray[Any]:
        """A table of bodies as it is, or without friction where that is disabled."""
        if self.friction:
            return bodies
        bodies = bodies.copy()
        bodies["viscous"] = bodies["coulomb"] = 0.0
        bodies.setflags(write=False)
        return bodies

    def _bodies(self, payload: Inertial | None) -> NDArray[Any]:
        bodies = self.kinematics.tables.bodies
        if payload is None:
            return bodies
        bodies = bodies.copy()
        add_mass(bodies[PLATFORM], payload.ten)
        bodies.setflags(write=False)
        return bodies

    def code(self, record: Record, branch: int, n: int) -> MachineCode | None:
        """Cached straight-line code for a branch; None without, or where making it takes longer than `n` states."""
        if (record, branch) not in self.codes and n >= MANY:
            recording = record(self, branch)
            self.codes[record, branch] = None if recording is None else MachineCode(recording)
        return self.codes.get((record, branch))


Record = Callable[[RobotModel, int], Recording | None]  # of a kernel for one robot, in a branch


def graph_model(robot: RobotModel, payload: Inertial | None = None) -> Model:
    """The whole graph, actuators held, the platform's mass in its branch's last body; a column per actuator."""
    k = robot.kinematics
    graph = k.engine.whole_graph
    tables = graph.holding(k.actuated_names)
    bodies = tables.bodies.copy()
    platform = robot.model(payload).bodies[PLATFORM]
    alone = Inertial.of_ten(np.concatenate([[platform["mass"]], platform["moment"], platform["inertia"]]))
    add_mass(bodies[graph.platform_carrier], alone.in_frame(graph.tail).ten)
    return tables.model.replace(bodies=robot.with_friction(bodies), subspace=np.zeros((6, robot.n_actuated)))


def checked_payload(payload: Inertial) -> Inertial:
    """A payload as arrays of numbers, checked by the description's rules for bodies (`ShapeError`, `PkmError`)."""
    if not isinstance(payload, Inertial):
        raise PkmError(
            f"payload: expected an Inertial(mass, com, inertia), got an object of type {type(payload).__name__}"
        )
    shapes: dict[str, tuple[int, ...]] = {"mass": (), "com": (3,), "inertia": (3, 3)}
    given = {}
    for name, shape in shapes.items():
        value, what = getattr(payload, name), f"payload.{name}"
        expected = f"an array of shape {shape}" if shape else "one number"
        array = numbers(value, expected, what)
        if np.shape(value) != shape:
            raise wrong_shape(value, expected, what)
        if not np.isfinite(array).all():
            raise PkmError(f"{what}: not finite")
        given[name] = array
    inertia = given["inertia"]
    if np.abs(0.5 * inertia - 0.5 * inertia.T).max() > 0.5 * ROUNDING * np.abs(inertia).max():
        raise PkmError("payload.inertia: not symmetric")
    body = Inertial(float(given["mass"][0]), given["com"], frozen(0.5 * inertia + 0.5 * inertia.T))
    problem = inertia_problem(body)
    if problem:
        raise PkmError(f"payload: {problem}")
    return body
