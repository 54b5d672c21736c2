# SPDX-License-Identifier: Apache-2.0
"""The platform's motion space and the coordinates in which its pose is written.

Where the description carries the platform on a branch of its own, that branch is the motion space, and its joint
positions are the robot's task coordinates. With three turning joints every orientation is allowed, and velocities are
then the angular velocity itself, free of the singularities of the angles. Without such a branch the platform is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import copy_records
from pkm_kinematics.model.tables import Body, body_behind, body_table, columns_of


@dataclass(frozen=True, eq=False)
class Task:
    """The platform's branch: `chain` (records.BODY, base first), and the motion space `subspace` (6, n).

    Columns of `subspace` are twists (linear, angular; base frame, at the platform origin): independent velocities of
    the platform. `constant` says whether they are the same at every pose.
    """

    names: tuple[str, ...]  # joints of the branch
    chain: NDArray[Any]
    record: NDArray[Any]  # (1,) records.TASK, without what is not the branch's
    subspace: Array
    constant: bool

    @cached_property
    def state_at_home(self) -> NDArray[Any]:
        """State of the branch (records.STATE) with its joints at home, not placed; to be copied."""
        state = np.zeros(len(self.chain), dtype=records.STATE)
        state["q"] = self.chain["home"]
        state["R"][0] = np.eye(3)
        return state


def build_task(mechanism: Mechanism, home: dict[str, float]) -> Task:
    """The task of a mechanism. Raises `DescriptionError` for joints of its branch, or an order, not supported."""
    bodies = [Body("base", -1)]
    at = np.eye(4)
    names = []
    for name in mechanism.platform_chain:
        joint = mechanism.joint_named[name]
        at = at @ joint.origin
        if joint.type.dof == 0:
            continue
        if joint.type.dof > 1:
            raise DescriptionError(
                f"joint '{name}'",
                f"a {joint.type.value} joint cannot carry the platform",
                "use a chain of prismatic and revolute joints, whose positions are the task coordinates",
            )
        (freedom,) = freedoms(joint)
        body, at = body_behind(freedom, len(bodies) - 1, at, joint)
        bodies.append(body)
        names.append(name)
    chain = body_table(bodies, (), home, columns_of(mechanism))
    slides_first = [bool(row["prismatic"]) for row in chain[1:]]
    sliding = sum(slides_first)
    turning = len(names) - sliding
    if slides_first != [True] * sliding + [False] * turning or turning > 3 or sliding > 3:
        raise DescriptionError(
            f"platform branch {', '.join(names)}",
            "its order of joints is not supported",
            "put up to three prismatic joints first and up to three revolute joints after them",
        )
    directions = []
    R = np.eye(3)
    for row in chain[1:]:
        R = R @ row["rotation"]
        directions.append(R[:, 2])
    slide = np.array(directions[:sliding]).reshape(sliding, 3).T
    subspace = np.zeros((6, len(names)))
    subspace[:3, :sliding] = slide
    if turning == 3:
        subspace[3:, sliding:] = np.eye(3)
    elif turning:
        subspace[3:, sliding:] = np.array(directions[sliding:]).T
    if not names:
        subspace = np.eye(6)
    spread = np.zeros((3, 3))
    if sliding:
        spread[:sliding] = np.linalg.pinv(slide)
    # a turning platform whose origin is off the axes would carry its origin along
    offset = any(np.abs(row["translation"]).max() > 0 for row in chain[2 + sliding :]) or np.abs(at[:3, 3]).max() > 0
    constant = turning == 0 or (turning in (1, 3) and not offset)
    record = np.zeros(1, dtype=records.TASK)
    record["sliding"], record["spread"], record["constant"] = sliding, spread, constant
    record["tail"], record["tail_point"] = at[:3, :3], at[:3, 3]
    for array in (chain, record, subspace):
        array.setflags(write=False)
    return Task(tuple(names), chain, record, subspace, constant)


def chain_state(task: Task) -> NDArray[Any]:
    """Scratch state of the branch, at home."""
    return copy_records(task.state_at_home)
