# SPDX-License-Identifier: Apache-2.0
"""Laws for a platform that touches something: impedance, admittance, and hybrid force and position control."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_control.control_errors import LawError
from pkm_control.controllers.controller import Controller, Measured, Reference, left_inverse, projection
from pkm_control.controllers.force_task import ForceTask
from pkm_control.operator_interface import DAMPING, NATURAL_FREQUENCY
from pkm_description.mechanism import Array
from pkm_dynamics import Distribution, Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between


@dataclass(frozen=True, eq=False)
class Freedoms:
    """Possible twists at home: a basis (6, n), and the mass matrix (n, n) in it."""

    basis: Array
    mass: Array

    @staticmethod
    def of(dynamics: Dynamics) -> Freedoms:
        """The possible twists of a robot."""
        home = dynamics.kinematics.home
        return Freedoms(np.asarray(dynamics.kinematics.subspace(home)), dynamics.mass_matrix(home))

    def tuned(self, stiffness: Array, damping: float, highest: float) -> tuple[Array, Array, float]:
        """Stiffness (6, 6), damping (6, 6) that gives every direction the same ratio z, and the least factor on a
        direction's stiffness.

        With M and K in the basis, K v = l M v are the squared natural frequencies l, lowered to `highest` [rad/s]; K
        is then M V diag(l) V^T M, and the damping M V diag(2 z sqrt(l)) V^T M.
        """
        root = np.linalg.cholesky(self.mass)
        whitened = np.linalg.solve(root, np.linalg.solve(root, self.basis.T @ stiffness @ self.basis).T)
        squares, vectors = np.linalg.eigh(0.5 * (whitened + whitened.T))
        factor = min(1.0, highest**2 / max(float(squares[-1]), 1e-12))
        squares = np.clip(squares, 0.0, highest**2)
        along = np.linalg.pinv(self.basis).T @ root @ vectors  # forces of unit accelerations in each
        rates = 2.0 * damping * np.sqrt(squares)
        return (along * squares) @ along.T if factor < 1.0 else stiffness, (along * rates) @ along.T, factor

    def mass_along(self, direction: Array) -> float:
        """Mass or inertia [kg or kg m^2] of the platform pushed along a direction (6,), base axes, otherwise free."""
        rate = self.basis.T @ direction
        return 1.0 / max(float(rate @ np.linalg.solve(self.mass, rate)), 1e-300)


CARRIED = 0.25  # of the natural frequency: how quickly what is felt is carried
_TUNED = 0.01  # s: how often an impedance follows the mass, which changes with the pose
_LONGEST = 0.01  # s: a stall of the loop counts as no more


class ForceLaw(Controller):
    """Computed torque on the platform, with a force task. `natural_frequency` [rad/s] of the tracking error without
    contact is also the highest of the contact; `period` lies between two calls [s]. While `rigid`, it does not yield.
    """

    yields = True
    rigid = False

    def __init__(
        self,
        dynamics: Dynamics,
        limits: ActuatorLimits,
        natural_frequency: float = NATURAL_FREQUENCY,
        damping: float = DAMPING,
        period: float = 1e-3,
        task: ForceTask | None = None,
    ) -> None:
        self.task = task or ForceTask.usual()
        self.length = dynamics.kinematics.characteristic_length
        self.freedoms = Freedoms.of(dynamics)
        self._inside = projection(self.freedoms.basis, self.length, True)
        self._independent = len(limits.names) == dynamics.kinematics.mobility
        self._turns = not dynamics.kinematics.constant_space
        self._passed = self._period = period
        self._carried = np.zeros(6)
        self._aside, self._rate, self._change = np.zeros(6), np.zeros(6), np.zeros(6)
        self._feeling = True
        self._none = np.zeros(6)
        super().__init__(dynamics, limits, natural_frequency, damping)

    def set_gains(self, natural_frequency: float, damping: float) -> None:
        """Set natural frequency [rad/s] and damping of the error without contact; the contact's follow."""
        super().set_gains(natural_frequency, damping)
        self.tune()

    def tune(self) -> None:
        """Set the gains of the contact, which follow from those without."""
        return

    def weight_along(self, directions: Array) -> Array:
        """Efforts (k,) [N, N m] that hold the weight at home along unit twists (6, k) with their parasitic ones."""
        ways = self._inside @ directions
        ways /= np.maximum(np.sum(directions * ways, axis=0), 1e-9)
        still, home = np.zeros(6), self.kinematics.home
        effort = np.asarray(self.dynamics.inverse(home, still, still, distribution=Distribution()).effort)
        return np.asarray(effort @ (self.kinematics.at(home).inverse_jacobian @ ways))

    def advance(self, passed: float) -> None:
        """Take the time [s] that passed since the last command."""
        self._passed = min(max(passed, self._period), _LONGEST)

    def forget(self) -> None:
        """Drop the memory: the platform is held anew, where it was found."""
        self._carried[:] = self._aside[:] = self._rate[:] = self._change[:] = 0.0

    def possible(self, twist: Array, measured: Measured) -> Array:
        """The possible twist (6,) [m/s, rad/s] nearest to one."""
        inside = projection(measured.jacobian, self.length, self._independent) if self._turns else self._inside
        return np.asarray(inside @ twist)

    def felt_by(self, measured: Measured, reading: Array) -> Measured:
        """Add a reading (6,) of the sensor, whose place the task knows."""
        return self.task.felt(measured, reading)

    def felt(self, measured: Measured) -> Array:
        """The felt wrench (6,) about the platform's origin, base axes [N, N m]; zero without a sensor."""
        return self._none if measured.wrench is None else measured.wrench

    def carry(self, measured: Measured) -> Array:
        """The felt wrench (6,), smoothed, which the position control carries as a weight; overwritten by the next call.

        The sum of a contact and minus its smoothed self is passive for every passive contact, since 1 - 1 / (t s + 1)
        has a positive real part.
        """
        share = 1.0 - math.exp(-CARRIED * self.natural_frequency * self._passed)
        self._carried += share * (self.felt(measured) - self._carried)
        return self._carried

    def pushed_by(self, reference: Reference, measured: Measured) -> Array:
        """The wrench (6,) about the platform's origin, base axes [N, N m], to which the law yields."""
        return self._carried.copy()

    def hold_against(self, wrench: Array) -> None:
        """Be `rigid` from now on, carrying such a wrench."""
        self.rigid, self._carried = True, wrench

    def led_by(self, measured: Measured, seconds: float) -> Array | None:
        """How far (6,) what is felt leads a platform at rest in some time; None for laws that cannot tell."""
        return None

    def _stiff(self, reference: Reference, measured: Measured) -> Array:
        # efforts that follow the reference, or what is aside of it
        pose = displace(reference.pose, self._aside)
        moving = Reference(pose, reference.twist + self._rate, reference.acceleration + self._change)
        acceleration = self.towards(displacement_between(measured.pose, pose), moving, measured)
        return self.efforts(acceleration, self._carried, measured)

    def towards(self, displacement: Array, reference: Reference, measured: Measured) -> Array:
        """Acceleration (6,) [m/s^2, rad/s^2] along a displacement (6,) that follows the rates of a reference."""
        wanted = self.stiffness * displacement + self.viscosity * (reference.twist - measured.twist)
        return np.asarray(reference.acceleration + self.possible(wanted, measured))

    def planned(self, reference: Reference, measured: Measured) -> Array:
        """See `Controller.planned`: the motion's, and what carries the wrench that is felt."""
        return self.efforts(reference.acceleration, self._carried, measured)

    def efforts(self, acceleration: Array, external: Array, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of an acceleration (6,) under an external wrench (6,), as `felt` has it."""
        return self.model.efforts(measured.pose, measured.twist, acceleration, measured.joints, external)


class Impedance(ForceLaw):
    """M e'' + D e' + K e = -w: w the wrench from outside, M the robot's own mass, which is not reshaped (Hogan, 1985).

    tau = ID(x, v, a_ref) + J^T (K e + D e'). With the mass left as it is the law is passive for every contact. The
    natural frequencies of K on M, as it is where the platform is, are lowered to what rate and delay allow: `lowered`
    is the least factor on K.
    """

    soft = True

    def tune(self) -> None:
        """Set stiffness, as far as rate and delay allow, and damping from the task."""
        wanted = self.task.stiffness_matrix(self.length)
        self.spring, self.damper, self.lowered = self.freedoms.tuned(wanted, self.damping, self.natural_frequency)
        self._tuned = 0.0  # s ago

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of the impedance, before limits."""
        if self.rigid:
            return self._stiff(reference, measured)
        self._tuned += self._passed
        if self._tuned > _TUNED and np.isfinite(measured.jacobian).all():
            self.freedoms = self._freedoms_at(measured)
            self.tune()
        return self.efforts(reference.acceleration, -self._pull(reference, measured), measured)

    def pushed_by(self, reference: Reference, measured: Measured) -> Array:
        """See `ForceLaw.pushed_by`: as strong as spring and damper."""
        return -self._pull(reference, measured)

    def _pull(self, reference: Reference, measured: Measured) -> Array:
        pull = self.spring @ displacement_between(measured.pose, reference.pose)
        return np.asarray(pull + self.damper @ (reference.twist - measured.twist))

    def _freedoms_at(self, measured: Measured) -> Freedoms:
        # where the platform is, payload included: on an agile eye it is a third as heavy at the border as at home
        basis, none = self.freedoms.basis, np.zeros(6)
        if self._turns:
            basis = np.linalg.svd(measured.jacobian, full_matrices=False)[0][:, : basis.shape[1]]
        rates = left_inverse(measured.jacobian, self._independent) @ basis

        def efforts(acceleration: Array) -> Array:
            return self.model.efforts(measured.pose, none, acceleration, measured.joints, none)

        held = efforts(none)
        mass = rates.T @ np.column_stack([efforts(way) - held for way in basis.T])
        mass = 0.5 * (mass + mass.T)
        return Freedoms(basis, mass) if np.linalg.eigvalsh(mass)[0] > 0.0 else self.freedoms


_QUICK = 0.8  # of the drives' speeds: what a motion and the push that it gives way to use of them
CROSSING = 1.0 / 6.0  # of the natural frequency: where the loop over the stiffest contact crosses one


class Admittance(ForceLaw):
    """M d'' + D d' + K d = w, the reference displaced by d; computed torque follows it, and carries w smoothed.

    K is the task's stiffness. D is at least what lets the loop over the stiffest contact cross one at a sixth of the
    natural frequency, D = k_c / w_x, and M = D / w_n puts the last lag at the natural frequency: with the position
    control's own lag a phase margin of about sixty degrees is left.
    """

    uses_wrench = True

    def tune(self) -> None:
        """Set the gains from the task's stiffness and contact."""
        self.spring = self.task.stiffness_matrix(self.length)
        contact = self.task.contact_stiffness * np.array([1.0] * 3 + [self.length**2] * 3)
        across = contact / (CROSSING * self.natural_frequency)
        critical = 4.0 * self.damping**2 * np.diag(self.spring) / self.natural_frequency
        self.damper = np.maximum(across, critical)
        self.inertia = self.damper / self.natural_frequency

    def engage(self, feeling: bool) -> None:
        """Freeze the displacement while the sensor delivers nothing."""
        self._feeling = feeling

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] that follow the displaced reference, before limits."""
        if self._feeling:
            self.carry(measured)
        if not self.rigid:
            self._give_way(reference.twist, measured)
        return self._stiff(reference, measured)

    def led_by(self, measured: Measured, seconds: float) -> Array | None:
        """See `ForceLaw.led_by`: at the speed at which the damper holds the wrench."""
        return self.possible(self.felt(measured) / self.damper, measured) * seconds

    def _within_speeds(self, rate: Array, twist: Array, measured: Measured) -> Array:
        # beside singularities a slow platform takes quick drives, for which the motion's `twist` leaves less
        if not np.isfinite(measured.jacobian).all():
            return rate
        motion, own = np.abs(left_inverse(measured.jacobian, self._independent) @ np.stack([twist, rate], axis=1)).T
        room = np.maximum(_QUICK * self.limits.velocity - motion, 0.0)
        return np.asarray(rate * min(1.0, float(np.min(room / np.maximum(own, 1e-300)))))

    def _give_way(self, twist: Array, measured: Measured) -> None:
        if not self._feeling:
            self._rate[:] = self._change[:] = 0.0
            return
        dt = self._passed
        wrench = self.felt(measured) - self.spring @ self._aside
        # the damper acts on the rate at the end of the step, so that any of it is stable
        rate = (self._rate + dt * wrench / self.inertia) / (1.0 + dt * self.damper / self.inertia)
        rate = self._within_speeds(self.possible(rate, measured), twist, measured)
        self._change = (rate - self._rate) / dt
        self._rate = rate
        self._aside += dt * rate


_SLOWER = 4.0  # the integral of the force's error against the contact's own frequency
_IN_TOUCH = 0.1  # of the wanted force: less is no contact yet, and nothing is integrated
_STEADY = 0.5  # of the wanted force, what nobody knows of the weight, and a bit: the most that the integral adds
_UNKNOWN = 0.6  # of the weight along the axis: half the platform as a payload, links a fifth heavier
_A_BIT = 2.0  # N, N m
_HYBRID, _SELECT = "law 'hybrid'", "select an axis in the task of the force file"


class Hybrid(ForceLaw):
    """Computed torque, and along the selected axes N no more push than N (f + i - D v), i' = k (f - f_felt).

    Raibert and Craig, "Hybrid position/force control of manipulators" (1981), in the platform's coordinates. Along each
    selected axis acts the weaker push of two: that of position control, where the reference is not behind the surface,
    else that of the force. So a reference leads to the surface, a little behind it, and away again; a missing surface
    is sought no deeper than the reference. Along an axis with a desired force of zero the platform gives way to every
    push.

    D damps the robot's mass on the stiffest contact of the task, as far as the natural frequency allows; before the
    contact the platform is at most f / D faster than the reference. Forces across N, friction for one, are carried by
    the position control. Without a sensor the selected axes hold their place. Raises `LawError` where no axis is
    selected, or the robot has no degree of freedom along one.
    """

    uses_wrench = True

    def tune(self) -> None:
        """Set damping and integral gain of the selected axes."""
        pressed = self.task.pressed
        if not pressed.shape[1]:
            raise LawError(_HYBRID, "it needs an axis along which force is controlled", f"{_SELECT} (docs/force.md)")
        space = pressed.T @ self.freedoms.basis
        scale = np.where(np.abs(pressed[:3]).sum(axis=0) > 0.0, 1.0, self.length)
        if np.linalg.matrix_rank(space * scale[:, None], tol=1e-6) < pressed.shape[1]:
            problem = "the robot has no degree of freedom of its own along each force-controlled axis"
            raise LawError(_HYBRID, problem, f"{_SELECT} along which it moves")
        self._masses = np.array([self.freedoms.mass_along(axis) for axis in pressed.T])
        contact = self.task.contact_stiffness * scale**2
        own = np.minimum(np.sqrt(contact / self._masses), self.natural_frequency)
        self._pressed = pressed
        self._wanted = self.task.wrench[self.task.selected]
        at_rest = self.weight_along(pressed)
        self._most = _STEADY * np.abs(self._wanted) + _UNKNOWN * np.abs(at_rest) + _A_BIT
        self._damper = 2.0 * self.damping * self._masses * own
        self._slope = own / _SLOWER
        self._across: dict[bytes, Array] = {}
        if not hasattr(self, "_sum"):
            self._sum = np.zeros(pressed.shape[1])

    def engage(self, feeling: bool) -> None:
        """Have the selected axes hold their place while the sensor delivers nothing."""
        self._feeling = feeling
        if not feeling:
            self._sum[:] = 0.0

    def forget(self) -> None:
        """Drop the memory: the platform is held where it was found."""
        super().forget()
        self._sum[:] = 0.0

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of hybrid control, before limits."""
        carried = self.carry(measured) if self._feeling else self._carried
        if self.rigid or not self._feeling:
            return self._stiff(reference, measured)
        error = displacement_between(measured.pose, reference.pose)
        acceleration = self.towards(error, reference, measured)
        pushes = -self._pressed.T @ self.felt(measured)
        touching = np.abs(pushes) >= _IN_TOUCH * np.abs(self._wanted)
        force = self._wanted + self._sum - self._damper * (self._pressed.T @ measured.twist)
        # before the contact the push is on top of what the motion takes
        led = self._damper * (self._pressed.T @ reference.twist) + self._masses * (
            self._pressed.T @ reference.acceleration
        )
        force += np.where(touching, 0.0, led)
        follows = self._masses * (self._pressed.T @ acceleration) - self._pressed.T @ carried
        way = np.sign(self._wanted)
        chosen = way * force <= way * follows
        # a weight that the model does not know of presses too hard, and keeps the position's push below the force's
        hard = way * pushes > np.abs(self._wanted)
        self._integrate(pushes, (chosen | hard) & touching)
        if not chosen.any():
            self._aside[:] = 0.0
            return self.efforts(acceleration, carried, measured)
        along = self._pressed[:, chosen]
        self._aside = -along @ (along.T @ error)
        external = carried - along @ (along.T @ carried) - along @ force[chosen]
        return self.efforts(self._beside(chosen, measured) @ acceleration, external, measured)

    def led_by(self, measured: Measured, seconds: float) -> Array | None:
        """See `ForceLaw.led_by`: along the axes, at the speed at which the damper holds push and force."""
        rates = (self._wanted + self._pressed.T @ self.felt(measured)) / self._damper
        return self.possible(self._pressed @ rates, measured) * seconds

    def _integrate(self, pushes: Array, ruled: NDArray[np.bool_]) -> None:
        grown = np.clip(self._sum + self._passed * self._slope * (self._wanted - pushes), -self._most, self._most)
        self._sum = np.where(ruled, grown, 0.0)

    def _beside(self, chosen: NDArray[np.bool_], measured: Measured) -> Array:
        """Projection (6, 6) onto possible twists without a part along the chosen axes."""
        if self._turns:
            return _across(measured.jacobian, self._pressed[:, chosen], self._independent)
        key = chosen.tobytes()
        if key not in self._across:
            self._across[key] = _across(self.freedoms.basis, self._pressed[:, chosen], True)
        return self._across[key]


def _across(basis: Array, pressed: Array, independent: bool) -> Array:
    """Projection (6, 6) of twists onto those of a basis (6, m) that have no part along `pressed` (6, k)."""
    along = pressed.T @ basis
    inverse = left_inverse(basis, independent)
    kept = basis - basis @ along.T @ np.linalg.solve(along @ along.T, along)
    return np.asarray(kept @ inverse)
