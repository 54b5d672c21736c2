# SPDX-License-Identifier: Apache-2.0
"""Services of the dynamics: a request message in, one call of the library, a response message out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Inertial, frozen
from pkm_description.ros import messages
from pkm_description.ros.messages import RequestError
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.observed_legs import Observed, ObservedLegs
from pkm_dynamics.robot_model import checked_payload
from pkm_interfaces.msg import AccelerationSolution, EffortSolution, SolveStatus
from pkm_kinematics import Configuration, Status
from pkm_runtime.errors import PkmError

Array = NDArray[np.float64]


def inverse_dynamics(dynamics: Dynamics, request: Any, response: Any) -> None:
    """Answer InverseDynamics."""
    at, twist, acceleration, wrench = _motions(dynamics, request)
    answer = dynamics.inverse(at, twist, acceleration, wrench, payload_of(request.payload))
    solved = [bool(np.isfinite(row).all()) for row in answer.effort]
    statuses, residual = _statuses(at, answer.status)
    response.actuated_names = dynamics.kinematics.actuated_names
    response.solutions = [
        EffortSolution(status=statuses[k], effort=answer.effort[k] if solved[k] else [], residual=residual[k])
        for k in range(len(statuses))
    ]
    response.status = messages.summary("motion", len(statuses), enumerate(statuses))


def direct_dynamics(dynamics: Dynamics, request: Any, response: Any) -> None:
    """Answer DirectDynamics; `RequestError` unless there is one set of efforts per motion, with all joints."""
    if len(request.efforts) != len(request.motions):
        raise RequestError(f"{len(request.efforts)} efforts for {len(request.motions)} motions")
    at, twist, _, wrench = _motions(dynamics, request)
    names = dynamics.kinematics.actuated_names
    efforts = np.array(
        [messages.joint_values(one, names, "effort", f"efforts {k}") for k, one in enumerate(request.efforts)]
    )
    answer = dynamics.direct(at, twist, efforts, wrench)
    statuses, residual = _statuses(at, answer.status)
    response.redundant_names = dynamics.kinematics.redundant_names
    response.solutions = [
        AccelerationSolution(status=status, residual=gap) for status, gap in zip(statuses, residual, strict=True)
    ]
    for solution, acceleration in zip(response.solutions, answer.acceleration, strict=True):
        if np.isfinite(acceleration).all():
            solution.acceleration = messages.to_acceleration(acceleration[:6])
            solution.redundant_accelerations = acceleration[6:]
    response.status = messages.summary("motion", len(statuses), enumerate(statuses))


def observed_state(legs: ObservedLegs, message: Any) -> Observed:
    """State of the legs from an ObservedLegs message, which must be in the base frame (`RequestError`)."""
    messages.check_frame(message.header, legs.kinematics.mechanism.base_link)
    for names, fields in (("links", ("directions", "rates")), ("joints", ("positions", "velocities"))):
        for field in fields:
            if len(getattr(message, names)) != len(getattr(message, field)):
                raise RequestError(f"{len(getattr(message, names))} {names} but {len(getattr(message, field))} {field}")
    directions, rates = (map(messages.vector_of, x) for x in (message.directions, message.rates))
    return legs.of_directions(
        dict(zip(message.links, directions, strict=True)),
        dict(zip(message.links, rates, strict=True)),
        dict(zip(message.joints, message.positions, strict=True)),
        dict(zip(message.joints, message.velocities, strict=True)),
    )


def payload_of(message: Any) -> Inertial | None:
    """Payload of an inertia message in the platform's frame, None if all zeros; `RequestError` if it is no body."""
    mass, com, inertia = messages.inertia_of(message)
    if mass == 0.0 and not inertia.any():
        return None
    try:
        return checked_payload(Inertial(mass, frozen(com), frozen(inertia)))
    except PkmError as error:
        raise RequestError(str(error)) from error


def _motions(dynamics: Dynamics, request: Any) -> tuple[Configuration, Array, Array, Array]:
    messages.check_frame(request.header, dynamics.mechanism.base_link)
    motions: Sequence[Any] = request.motions
    messages.check_count(len(motions), "motions")
    k = dynamics.kinematics
    positions, velocities, accelerations = (
        messages.redundant_of(request.redundant_names, motions, f"redundant_{what}", k.redundant_names, "motion")
        for what in messages.BESIDE
    )
    return (
        k.inverse(np.hstack([[messages.pose_of(m.pose) for m in motions], positions])),
        np.hstack([[messages.twist_of(m.twist) for m in motions], velocities]),
        np.hstack([[messages.twist_of(m.acceleration) for m in motions], accelerations]),
        np.array([messages.wrench_of(m.wrench) for m in motions]),
    )


def _statuses(where: Configuration, codes: NDArray[np.int64]) -> tuple[list[SolveStatus], list[float]]:
    statuses = []
    for k, code in enumerate(codes):
        reason = ""
        if code != Status.CONVERGED:
            same = int(where.status[k]) != Status.CONVERGED
            motion = code == Status.INVALID_INPUT
            words = "the motion or the efforts are not finite, or outside the motion space" if motion else ""
            reason = where.reason(k) if same else words or Status(int(code)).meaning
        statuses.append(messages.status(int(code), reason))
    return statuses, [float(r) for r in where.residual]
