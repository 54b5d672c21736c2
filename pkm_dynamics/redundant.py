# SPDX-License-Identifier: Apache-2.0
"""Dynamics of kinematically redundant robots: platform and redundant joints are coordinates, the actuators others.

On the whole graph, whose coordinates are the actuators, efforts follow from a motion without a system to be solved:
`tau = N^T rnea(q, qd, qdd) - J^T w`, and accelerations from the inertia that the actuators feel. The linear map from
the rates of the actuators to those of platform and redundant joints does the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.mechanism import Array, Inertial
from pkm_dynamics.distribution import Distribution, meant
from pkm_dynamics.inverse_and_direct import Accelerations, Efforts
from pkm_dynamics.kernels.graph_dynamics import redundant_accelerations, redundant_efforts
from pkm_dynamics.robot_model import RobotModel, graph_model
from pkm_kinematics import Configuration, Status
from pkm_kinematics.batch import as_rows, nans, rows_for, shaped
from pkm_kinematics.forward.graph_tracker import coordinates_of, graph_motion
from pkm_kinematics.status import closes
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.binding import WithScratch

Rows = ArrayLike | None


class RedundantDynamics:
    """Dynamics of one robot; arguments and answers as in `Dynamics`, rates and accelerations (..., 6 + r)."""

    def __init__(self, robot: RobotModel) -> None:
        self.robot, self.engine = robot, robot.kinematics.engine
        self.coordinates = coordinates_of(self.engine)
        self._unloaded = graph_model(robot)
        self._calls: dict[Any, WithScratch] = {}

    def inverse(
        self,
        at: Configuration,
        twist: Rows,
        acceleration: Rows,
        wrench: Rows,
        payload: Inertial | None,
        distribution: Distribution | None = None,
    ) -> Efforts:
        """See `Dynamics.inverse`; there is nothing to distribute."""
        bounded = meant(distribution, self.engine.mechanism)
        if bounded is not None and bounded.bounds is not None:
            raise PkmError("distribution: a kinematically redundant robot has no efforts to choose from within bounds")
        efforts, condition = nans(len(at.poses), self.robot.n_actuated), np.zeros(len(at.poses))
        status = self._run(redundant_efforts, at, (twist, acceleration, wrench), payload, condition, efforts)
        shape, names = at.shape, self.engine.names
        return Efforts(shaped(efforts, shape), shaped(status, shape), shaped(condition, shape), names)

    def direct(
        self, at: Configuration, twist: ArrayLike, effort: ArrayLike, wrench: Rows, payload: Inertial | None
    ) -> Accelerations:
        """See `Dynamics.direct`: accelerations (..., 6 + r)."""
        n = len(at.poses)
        out = nans(n, self.coordinates.width)
        given = as_rows(effort, self.robot.n_actuated, "effort")[0]
        efforts = np.array(np.broadcast_to(given, (n, given.shape[1])))
        status = self._run(redundant_accelerations, at, (twist, None, wrench), payload, efforts, out)
        return Accelerations(shaped(out, at.shape), shaped(status, at.shape), at)

    def mass_matrix(self, at: Configuration) -> Array:
        """See `Dynamics.mass_matrix`: (mobility + r, mobility + r), redundant joints behind."""
        n, S, r = len(at.poses), at.subspace, self.coordinates.width - 6
        m = S.shape[-1]
        units = np.zeros((n, 1 + m + r, 6 + r))
        units[:, 1 : 1 + m, :6] = np.swapaxes(S.reshape(n, 6, m), 1, 2)
        units[:, 1 + m :, 6:] = np.eye(r)
        every = at.rows(np.repeat(np.arange(n), 1 + m + r))
        forces = self._forces(every, None, units.reshape(-1, 6 + r)).reshape(n, 1 + m + r, -1)
        return shaped(np.swapaxes(forces[:, 1:] - forces[:, :1], 1, 2), at.shape)

    def coriolis(self, at: Configuration, twist: ArrayLike) -> Array:
        """See `Dynamics.coriolis`: (mobility + r,)."""
        one = at.rows(slice(None))
        return np.asarray(self._forces(one, twist, None)[0] - self._forces(one, None, None)[0])

    def _forces(self, at: Configuration, twist: Rows, acceleration: Rows) -> Array:
        answer = RedundantDynamics(self.robot.frictionless).inverse(at, twist, acceleration, None, None)
        return np.einsum("kai,ka->ki", at.motion_jacobian, answer.effort)

    def _run(
        self, kernel: Any, at: Configuration, given: tuple[Rows, Rows, Rows], payload: Inertial | None, *arrays: Array
    ) -> Array:
        """Fill the last of `arrays` for rates, accelerations and wrenches `given`; the status of each row."""
        c, n, out = self.coordinates, len(at.poses), arrays[-1]
        rates, accelerations = c.rows(given[0], n, "twist"), c.rows(given[1], n, "acceleration")
        wrenches = np.zeros((n, 6))
        if given[2] is not None:
            wrenches[:] = rows_for(given[2], 6, n, "wrench")
        solved = at.solved()
        status = np.where(closes(solved.status), int(Status.CONVERGED), solved.status)
        good = ~c.astray(rates, accelerations) & np.isfinite(wrenches).all(axis=1)
        good &= np.isfinite(arrays[0]).reshape(n, -1).all(axis=1)  # efforts that are given, or conditions, still zero
        status[(status == Status.CONVERGED) & ~good] = int(Status.INVALID_INPUT)
        motions = np.ascontiguousarray(np.hstack([rates, accelerations]))
        rows = c.at, graph_motion(self.engine), c.positions(solved.q, at.poses, status), motions, wrenches
        if kernel not in self._calls:
            self._calls[kernel] = WithScratch(kernel, c.tables.data, self._unloaded, *rows, *arrays, status)
        model = self._unloaded if payload is None else graph_model(self.robot, payload)
        self._calls[kernel](model, *rows, *arrays, status)
        status[(status == Status.CONVERGED) & ~np.isfinite(out).all(axis=1)] = int(Status.INVALID_INPUT)
        out[status != Status.CONVERGED] = np.nan
        return status
