# SPDX-License-Identifier: Apache-2.0
"""Integration in one compiled call per step, for motion spaces that do not turn with the pose (nearly all robots)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.kernels.platform_step import SCRATCH, step_platform
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_kinematics import Status
from pkm_kinematics.kernels.binding import bind
from pkm_kinematics.status import closes

Array = NDArray[np.float64]

_HOME_MODE = 0  # the working mode of home


class CompiledIntegrator:
    """An `Integrator` over `kernels/platform_step.py`.

    The acceleration is always within the motion space, so the state cannot leave it but by rounding.

    Args:
        dynamics: of the robot.
        runge_kutta: classical Runge-Kutta, else semi-implicit Euler.
        payload: what the platform carries, in its frame.
    """

    def __init__(self, dynamics: Dynamics, runge_kutta: bool, payload: Inertial | None) -> None:
        self._dynamics = dynamics
        self._runge_kutta = runge_kutta
        self._payload = payload
        n = len(dynamics.kinematics.actuated_names)
        self._motion = np.zeros(25)  # pose, twist, no acceleration, no wrench
        self.pose = self._motion[:7]
        self.twist = self._motion[7:13]
        self.positions = np.zeros(n)
        self.velocities = np.zeros(n)
        self._none = np.zeros(n)
        self._bind()

    def place(self, pose: Array) -> str:
        """Put the robot at rest at a pose, in its home working mode.

        Args:
            pose: of the platform (7,), base frame.

        Returns:
            Why it cannot be there; empty where it is.
        """
        kinematics = self._dynamics.kinematics
        solution = kinematics.inverse(pose, mode=_HOME_MODE)
        if not closes(solution.status):
            return str(solution.reason(0))
        self._bind()
        self.pose[:] = pose
        self.twist[:] = 0.0
        self.positions[:] = solution.actuated
        return self.advance(self._none, 0.0)

    def advance(self, efforts: Array, h: float) -> str:
        """Let time pass under constant efforts.

        Args:
            efforts: of the actuators (n_actuated,) [N m or N].
            h: length of the step [s].

        Returns:
            Why no motion goes on, everything being left as it was; empty where it does.
        """
        status = self._step(self._motion, efforts, h, self._scratch, self.positions, self.velocities)
        return "" if status == Status.CONVERGED else Status(status).meaning

    def _bind(self) -> None:
        """Take a fresh workspace, which begins at home."""
        self._scratch = np.zeros((SCRATCH, 25))
        home = np.zeros(25)
        home[:7] = self._dynamics.kinematics.home
        kinematics = self._dynamics.kinematics
        data = kinematics.engine.data(kinematics.modes.start(_HOME_MODE))
        fixed = (self._dynamics.model(self._payload), data, kinematics.modes.branch(_HOME_MODE), self._runge_kutta)
        n = len(self.positions)
        example = (home, np.zeros(n), 0.0, self._scratch, np.zeros(n), np.zeros(n))
        self._step = bind(step_platform, fixed, example)
