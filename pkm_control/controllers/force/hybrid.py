# SPDX-License-Identifier: Apache-2.0
"""Hybrid control: force along the selected axes of a task frame, position along the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.controllers.controller import Measured, Reference
from pkm_control.controllers.force.compliance import left_inverse
from pkm_control.controllers.force.force_law import ForceLaw
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.compiled_rotations import displace, displacement_between

_SLOWER = 4.0  # the integral of the force's error against the contact's own frequency
_IN_TOUCH = 0.1  # of the wanted force: less is no contact yet, and nothing is integrated
_STEADY = 0.5  # of the wanted force, what nobody knows of the weight, and a bit: the most that the integral adds
_UNKNOWN = 0.6  # of the weight along the axis: half the platform as a payload, links a fifth heavier
_A_BIT = 2.0  # N, N m


class Hybrid(ForceLaw):
    """Computed torque, and along the selected axes N no more push than N (f + i - D v), i' = k (f - f_felt).

    Raibert and Craig, "Hybrid position/force control of manipulators" (1981), in the platform's coordinates. Along each
    selected axis acts the weaker push of two: that of position control, where the reference is not behind the surface,
    else that of the force. So a reference leads to the surface, a little behind it, and away again; a missing surface
    is sought no deeper than the reference. Along an axis with a desired force of zero the platform gives way to every
    push.

    D damps the robot's mass on the stiffest contact of the task, as far as the natural frequency allows; before the
    contact the platform is at most f / D faster than the reference. Forces across N, friction for one, are carried by
    the position control. Without a sensor the selected axes hold their place. Raises `ValueError` where no axis is
    selected, or the robot has no degree of freedom along one.
    """

    uses_wrench = True

    def tune(self) -> None:
        """Set damping and integral gain of the selected axes."""
        pressed = self.task.pressed
        if not pressed.shape[1]:
            raise ValueError("hybrid control needs an axis along which force is controlled: select one of the task's")
        space = pressed.T @ self.freedoms.basis
        scale = np.where(np.abs(pressed[:3]).sum(axis=0) > 0.0, 1.0, self.length)
        if np.linalg.matrix_rank(space * scale[:, None], tol=1e-6) < pressed.shape[1]:
            raise ValueError("the robot has no degree of freedom of its own along each force-controlled axis")
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
            self._aside = np.zeros(6)
            self._feeling = True

    def engage(self, feeling: bool) -> None:
        """Have the selected axes hold their place while the sensor delivers nothing."""
        self._feeling = feeling
        if not feeling:
            self._sum[:] = 0.0

    def forget(self) -> None:
        """Drop the memory: the platform is held where it was found."""
        super().forget()
        self._sum[:] = 0.0
        self._aside[:] = 0.0

    def law(self, reference: Reference, measured: Measured) -> Array:
        """Efforts (n_actuated,) [N m or N] of hybrid control, before limits."""
        if not self._feeling:
            error = displacement_between(measured.pose, displace(reference.pose, self._aside))
            return self.efforts(self.towards(error, reference, measured), self._carried, measured)
        carried = self.carry(measured)
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

    def _integrate(self, pushes: Array, ruled: NDArray[np.bool_]) -> None:
        """Integrate the force error where the force rules in contact."""
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
