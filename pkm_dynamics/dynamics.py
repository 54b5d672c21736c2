# SPDX-License-Identifier: Apache-2.0
"""Dynamics of any parallel robot: actuator efforts for a motion, and motion for efforts.

Poses, twists and accelerations as in `pkm_kinematics`. Wrenches (..., 6) are force [N], then moment [N m] about the
platform's origin, in base axes, applied to the platform by its surroundings. Efforts are [N m] or [N], in the order of
`Kinematics.actuated_names`. Of the configurations that reach a pose, calls take the one that continues home;
for that of a working mode, or nearest to a seed, they take `kinematics.at(pose, seed, mode)` in place of the pose.

Of kinematically redundant robots, twists and accelerations may be (..., 6 + r), the rates of the joints
`Kinematics.redundant_names` behind those of the platform; where they are not given, these joints do not move, or follow
the platform as the description says.

Joint limits are ignored: any configuration that closes the loops has an answer, CONVERGED where `Kinematics` says
JOINT_LIMIT. Between pose and efforts no joint angle is computed that could be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.distribution import Distribution
from pkm_dynamics.inverse_and_direct import (
    Accelerations,
    Efforts,
    coriolis,
    direct,
    inverse,
    mass_matrix,
    spring_efforts,
)
from pkm_dynamics.inverse_derivatives import InverseDerivatives, inverse_derivatives
from pkm_dynamics.lean_calls import lean
from pkm_dynamics.linear_form import ParameterSet, parameters_of, regressor
from pkm_dynamics.problem import Problem
from pkm_dynamics.reactions import Reactions, reactions
from pkm_dynamics.redundant import RedundantDynamics
from pkm_dynamics.robot_model import RobotModel
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_kinematics.batch import integer, is_vector, is_vector_or_none
from pkm_kinematics.kernels.model_and_data import Model
from pkm_kinematics.kinematics import shared_kinematics
from pkm_runtime.describable import Describable, alike, vector

__all__ = ["Accelerations", "Dynamics", "Efforts"]

Pose = ArrayLike | Configuration  # poses (..., 7) in the base frame, or task coordinates, or what is solved there
Rows = ArrayLike | None  # (..., 6)


class Dynamics(Describable):
    """Dynamics of one mechanism, with the inertia of every body, friction, gears and rotors.

    Methods raise `ShapeError` for an array of another shape, `ModeError` for a mode that the robot lacks, and
    `PkmError` for a payload that is no body. Arguments, also of the methods:

    Args:
        robot: a mechanism, or its kinematics to share them.
        friction: False leaves out joint friction everywhere, for comparison with models that have none.
        pose: platform poses (..., 7) in the base frame; where a method answers for one, several are a `ShapeError`.
        twist: (..., 6) [m/s, rad/s] in base axes; at rest where None.
        acceleration: (..., 6) [m/s^2, rad/s^2] in base axes; zero where None. In a configuration-dependent motion space
            the nearest possible one is taken, and INVALID_INPUT is more than 5 % away; None is that of a constant
            velocity in the motion space.
        wrench: external wrench on the platform (..., 6) [N, N m]; none where None.
        payload: a body in the platform's frame.
        effort: actuator efforts (..., n_actuated) [N m or N].
        distribution: how redundant actuators share, and bounds to keep. Where None, by minimum norm, and where an
            actuator only pulls or only pushes within the ranges of the description.

    PkmError: the robot is neither a `Mechanism` nor a `Kinematics`.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"model", "problem", "robot"})
    _elsewhere: ClassVar[dict[str, str]] = {
        "torque torques effort efforts rnea inverse_dynamics": "inverse(pose, twist, acceleration) has the drives' "
        "efforts, gravity(pose) those that hold it still",
        "forward forward_dynamics acceleration": "direct(pose, twist, effort) has the platform's acceleration",
        "inertia inertia_matrix mass": "mass_matrix(pose) is the robot's, mechanism.links have each body's inertial",
        "jacobian task_jacobian forward_kinematics inverse_kinematics": "ask kinematics, which it has",
        "home joint_names actuated_names": "those of kinematics",
        "name": "mechanism.name",
    }

    def __init__(self, robot: Mechanism | Kinematics, *, friction: bool = True) -> None:
        self.kinematics = robot if isinstance(robot, Kinematics) else Kinematics(robot)
        self.mechanism = self.kinematics.mechanism
        self.friction = friction
        self.robot = RobotModel(self.kinematics, friction=friction)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the kinematics, from which the rest is rebuilt."""
        return partial(type(self), friction=self.friction), (self.kinematics,)

    def _summary(self) -> str:
        return self.mechanism._summary()

    def _details(self) -> list[str]:
        mass = sum(link.inertial.mass for link in self.mechanism.links)
        friction = "counts" if self.friction else "is left out"
        actuated = {name: self.mechanism.joint_named[name].in_words() for name in self.kinematics.actuated_names}
        return [
            f"{mass:.4g} kg in all, gravity {vector(self.mechanism.gravity)} m/s^2, joint friction {friction}",
            "actuated joints",
            *(f"  {line}" for line in alike(actuated)),
            f"task coordinates: {self.mechanism.coordinates_in_words()}",
        ]

    # -- motions to efforts, and back -------------------------------------------------------------------------------

    def inverse(
        self,
        pose: Pose,
        twist: Rows = None,
        acceleration: Rows = None,
        wrench: Rows = None,
        payload: Inertial | None = None,
        distribution: Distribution | None = None,
    ) -> Efforts:
        """Actuator efforts (..., n_actuated) [N m or N] that drive a platform motion; joint limits are not reported.

        Status (...,) INVALID_INPUT: a motion that is not finite, not in the motion space or too fast for floating
        point; EFFORT_LIMIT: no efforts are within the bounds.
        DistributionError: the distribution does not fit the robot.
        """
        if self._redundant is not None:
            at = self.kinematics.at(pose)
            return self._redundant.inverse(at, twist, acceleration, wrench, payload, distribution)
        plain = wrench is None and payload is None and distribution is None and not self._one_way
        if plain and is_vector(pose, 7) and is_vector_or_none(twist) and is_vector_or_none(acceleration):
            found = self.robot.efforts_at(pose, twist, acceleration)
            if found is not None:
                return Efforts(found[0], integer(Status.CONVERGED), found[1], self.kinematics.engine.names)
        problem = self.problem(pose, twist, acceleration, wrench, payload)
        return inverse(problem, distribution)

    @cached_property
    def _redundant(self) -> RedundantDynamics | None:
        return RedundantDynamics(self.robot) if self.kinematics.redundant_names else None

    @cached_property
    def _one_way(self) -> bool:
        return bool(self.mechanism.one_way_actuators.any())

    def direct(
        self, pose: Pose, twist: ArrayLike, effort: ArrayLike, wrench: Rows = None, payload: Inertial | None = None
    ) -> Accelerations:
        """Platform accelerations (..., 6) [m/s^2, rad/s^2] in base axes for actuator efforts; ignores joint limits."""
        if self._redundant is not None:
            return self._redundant.direct(self.kinematics.at(pose), twist, effort, wrench, payload)
        return direct(self.problem(pose, twist, None, wrench, payload), effort)

    def gravity(self, pose: Pose, payload: Inertial | None = None) -> Efforts:
        """Efforts (..., n_actuated) [N m or N] that hold the robot still against gravity, shared as by `inverse`."""
        if self._redundant is not None:
            return self._redundant.inverse(self.kinematics.at(pose), None, None, None, payload)
        return inverse(self.problem(pose, payload=payload))

    def inverse_derivatives(
        self,
        pose: Pose,
        twist: Rows = None,
        acceleration: Rows = None,
        wrench: Rows = None,
        payload: Inertial | None = None,
    ) -> InverseDerivatives:
        """Derivatives (..., n_actuated, mobility) of `inverse`, exact to rounding, see `InverseDerivatives`.

        In the basis of `Kinematics.subspace`. Redundant actuators share by minimum norm. Raises `PkmError` where a
        configuration-dependent branch carries the platform.
        """
        return inverse_derivatives(self.problem(pose, twist, acceleration, wrench, payload))

    def reactions(
        self,
        pose: Pose,
        twist: Rows = None,
        acceleration: Rows = None,
        wrench: Rows = None,
        payload: Inertial | None = None,
        distribution: Distribution | None = None,
    ) -> Reactions:
        """Wrenches (..., n, 6) [N, N m] that joints, loops and the ground transmit in a motion, see `Reactions`.

        SINGULAR where the joints cannot carry the load. Raises `DistributionError` as `inverse` does.
        """
        problem = self.problem(pose, twist, acceleration, wrench, payload)
        return reactions(problem, distribution)

    def mass_matrix(self, pose: Pose) -> Array:
        """Mass matrices (..., mobility, mobility) [kg, kg m, kg m^2] of the whole robot, `K^T M K`, with rotors.

        In the basis of `Kinematics.subspace`; NaN where the pose has no regular configuration.
        """
        at = self.kinematics.at(pose)
        return mass_matrix(self.robot, at) if self._redundant is None else self._redundant.mass_matrix(at)

    def coriolis(self, pose: Pose, twist: ArrayLike) -> Array:
        """Coriolis and centrifugal forces (mobility,) [N, N m], in the basis of `Kinematics.subspace`, at one pose.

        `K_a^T tau` of the actuators that keeps the velocity in the motion space, without gravity and friction.
        """
        at = self.kinematics.at_one(pose)
        return coriolis(self.robot, at, twist) if self._redundant is None else self._redundant.coriolis(at, twist)

    # -- linear form ------------------------------------------------------------------------------------------------

    def regressor(self, pose: Pose, twist: Rows = None, acceleration: Rows = None) -> tuple[Array, tuple[str, ...]]:
        """Psi (..., n_actuated, n_parameters) and the names of the parameters, see `pkm_dynamics.linear_form`.

        `effort = Psi @ dynamics.parameters.values`, and `+ spring_efforts(pose)` with springs; NaN as in `inverse`.
        """
        problem = self.problem(pose, twist, acceleration)
        return regressor(problem, self.parameters)[0], self.parameters.names

    def spring_efforts(self, pose: Pose) -> Array:
        """What the springs ask of the actuators (..., n_actuated) [N m or N], of redundant ones by minimum norm."""
        return spring_efforts(self.problem(pose))

    @cached_property
    def parameters(self) -> ParameterSet:
        """Parameters that `regressor` multiplies, with the description's values; without a payload."""
        return parameters_of(self.kinematics, friction=self.friction)

    # -- lean calls -------------------------------------------------------------------------------------------------

    def lean_inverse(self, mode: int = 0) -> Callable[[Array, Array], int]:
        """`call(motion, effort) -> status`: inverse dynamics for time-critical loops, without checks.

        `motion` (25,) is pose (7), twist (6), acceleration (6) and external wrench (6); `effort` (n_actuated,) is
        written. Both must be contiguous float64 arrays, the pose finite with a unit quaternion, all inside the motion
        space. One call at a time per object returned. Limbs solved by iteration keep their mode as in
        `Kinematics.lean_inverse`. Raises `PkmError` for a configuration-dependent motion space with redundant
        actuators, and a mode that tears a gear.
        """
        return lean(self.robot, "inverse", mode)

    def lean_direct(self, mode: int = 0) -> Callable[[Array, Array, Array], int]:
        """`call(motion, effort, acceleration) -> status` as `lean_inverse`; the acceleration given must be zero."""
        return lean(self.robot, "direct", mode)

    def lean_step(self, dt: float, mode: int = 0) -> Callable[[Array, Array, Array], int]:
        """`call(motion, effort, acceleration) -> status`: advance pose and twist in `motion` (25,) by `dt` [s].

        Semi-implicit Euler in platform coordinates, as lean as `lean_direct`; the loops stay closed.
        """
        return lean(self.robot, "step", mode, dt)

    # -- for those who bring equations of their own -----------------------------------------------------------------

    def problem(
        self,
        pose: Pose,
        twist: Rows = None,
        acceleration: Rows = None,
        wrench: Rows = None,
        payload: Inertial | None = None,
    ) -> Problem:
        """The motions of a call, checked and in rows, with a status each and the robot; arguments as in `inverse`."""
        return Problem.of(self.robot, self.kinematics.at(pose), twist, acceleration, wrench, payload)

    def model(self, payload: Inertial | None = None) -> Model:
        """Read-only tables of the robot for the kernels, with a payload (platform frame) and friction if enabled."""
        return self.robot.model(payload)


@lru_cache(maxsize=2)
def shared_dynamics(mechanism: Mechanism) -> Dynamics:
    """The `Dynamics` of a robot on its `shared_kinematics`, the same object at every call."""
    return Dynamics(shared_kinematics(mechanism))
