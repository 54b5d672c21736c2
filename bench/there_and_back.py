# SPDX-License-Identifier: Apache-2.0
"""A period's way of a robot there and back, as a loop asks, and the lean calls on it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_test import NEAR, states_of

Call = Callable[[], object]


class ThereAndBack:
    """Two poses 0.005 of the robot's size and rad apart, with a motion at each, and efforts.

    Where limbs are iterated in a space that turns, lean calls do not come from home to any pose: there it is at rest at
    home.

    Raises:
        LookupError: no state of home's mode has all answers.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self.dynamics, kinematics = dynamics, dynamics.kinematics
        states = states_of(dynamics, 20 * kinematics.n_modes)
        usable = (states.mode == 0) & (states.status["inverse_dynamics"] == 0) & (states.status["forward"] == 0)
        if not usable.any():
            raise LookupError(f"{kinematics.mechanism.name}: no state with all answers")
        given = {name: np.array(values[np.flatnonzero(usable)[0]]) for name, values in states.given.items()}
        if kinematics.engine.iterated and not kinematics.constant_space:
            unit = np.where(kinematics.engine.actuated_turning, NEAR, NEAR * kinematics.engine.size)
            given["pose"], q = np.array(kinematics.home), kinematics.home_joints[kinematics.engine.actuated_column]
            given |= {"near": kinematics.forward(q + unit).pose, "twist": np.zeros(6), "acceleration": np.zeros(6)}
        rest = [given["twist"], given["acceleration"], np.zeros(6)]
        self.motion = np.array([np.concatenate([given[where], *rest]) for where in ("pose", "near")])
        self.coasting = self.motion.copy()
        self.coasting[:, 13:] = 0.0
        self.effort, self.near, self.q = given["effort"], given["near"], np.empty((2, len(kinematics.actuated_names)))
        inverse = kinematics.lean_inverse()
        if any(inverse(self.motion[at, :7].copy(), self.q[at]) for at in (0, 1)):
            raise LookupError(f"{kinematics.mechanism.name}: lean calls do not come to {self.motion[0, :7]}")

    @property
    def lean(self) -> list[Call]:
        """Inverse kinematics, inverse and direct dynamics, forward kinematics: each call asks twice, there and back."""
        dynamics, kinematics = self.dynamics, self.dynamics.kinematics
        inverse, lean_inverse = kinematics.lean_inverse(), dynamics.lean_inverse()
        lean_direct, track = dynamics.lean_direct(), kinematics.lean_track()
        effort, acceleration, pose = np.empty(len(self.effort)), np.empty(6), np.array(kinematics.home)
        q, push = list(self.q), self.effort
        moving, coasting = list(self.motion), list(self.coasting)
        poses = [row[:7].copy() for row in moving]
        track(self.q[1], pose)
        pose[:] = self.near
        return [
            _twice(lambda at: inverse(poses[at], effort)),
            _twice(lambda at: lean_inverse(moving[at], effort)),
            _twice(lambda at: lean_direct(coasting[at], push, acceleration)),
            _twice(lambda at: track(q[at], pose)),
        ]


def _twice(call: Callable[[int], object]) -> Call:
    return lambda: (call(0), call(1))
