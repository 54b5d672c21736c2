# SPDX-License-Identifier: Apache-2.0
"""The platform's motion space and the coordinates in which its pose is written.

Where the description carries the platform on a branch of its own, that branch is the motion space, and its joint
positions are the robot's task coordinates. With three turning joints every orientation is allowed, and velocities are
then the angular velocity itself, free of the singularities of the angles. Without such a branch the platform is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.errors import DescriptionError
from pkm_description.mechanism import Array, Mechanism
from pkm_kinematics.kernels import records
from pkm_kinematics.tables import Body, body_table, frame_along


@dataclass(frozen=True, eq=False)
class Task:
    """The platform's branch: `chain` (records.BODY, base first), and the motion space `subspace` (6, n).

    Columns of `subspace` are twists (linear, angular; base frame, at the platform origin): independent velocities of
    the platform. `constant` says whether they are the same at every pose.
    """

    names: tuple[str, ...]  # joints of the branch
    chain: NDArray[Any]
    sliding: int
    spread: Array  # (3, 3) pseudo-inverse of the sliding directions
    tail: Array  # (3, 3) platform frame in the last body
    tail_point: Array  # (3,)
    subspace: Array
    constant: bool

    @property
    def free(self) -> bool:
        """True where the platform may take any pose."""
        return self.subspace.shape[1] == 6


def build_task(mechanism: Mechanism, home: dict[str, float]) -> Task:
    """The task of a mechanism; `home` holds joint positions by name."""
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
        align = frame_along(joint.axis)
        slides = joint.type.value == "prismatic"
        bodies.append(Body(name, len(bodies) - 1, slides, at[:3, :3] @ align, at[:3, 3].copy(), joint=joint))
        at = np.eye(4)
        at[:3, :3] = align.T
        names.append(name)
    chain = body_table(bodies, (), home)
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
    for array in (chain, spread, subspace):
        array.setflags(write=False)
    # a turning platform whose origin is off the axes would carry its origin along
    offset = any(np.abs(row["translation"]).max() > 0 for row in chain[2 + sliding :]) or np.abs(at[:3, 3]).max() > 0
    constant = turning == 0 or (turning in (1, 3) and not offset)
    return Task(tuple(names), chain, sliding, spread, at[:3, :3].copy(), at[:3, 3].copy(), subspace, constant)


def chain_state(task: Task) -> NDArray[Any]:
    """Scratch state of the branch, at home."""
    state = np.zeros(len(task.chain), dtype=records.STATE)
    state["q"] = task.chain["home"]
    state["R"][0] = np.eye(3)
    return state
