# SPDX-License-Identifier: Apache-2.0
"""The services of the kinematics, a request in and a response out, and whether commanded positions fit the robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_description.ros import messages, topics
from pkm_description.ros.messages import RequestError
from pkm_description.ros.polled import PolledSubscription
from pkm_interfaces.msg import FkSolution, IkSolution, SolveStatus
from pkm_kinematics.forward.tracker import TrackedMotion
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.status import Status, closes
from pkm_runtime.errors import PkmError

Array = NDArray[np.float64]


def solve_inverse(kinematics: Kinematics, request: Any, response: Any, measured: Array | None) -> None:
    """Answer SolveInverse; joints `measured` (n_joints,) pick the working mode if the request names none."""
    messages.check_frame(request.header, kinematics.mechanism.base_link)
    messages.check_count(len(request.poses), "poses", request.all_modes)
    poses = messages.poses_of(request.poses)
    seed = measured
    if request.seed.name or request.seed.position:
        seed = _seed_of(kinematics, request.seed)
    if request.all_modes:
        groups = [kinematics.inverse_all(pose) for pose in poses]
        response.solutions = [_ik(k, one, 0, one.label) for k, group in enumerate(groups) for one in group]
    else:
        answer = kinematics.inverse(poses, seed)
        response.solutions = [_ik(k, answer, k, "") for k in range(len(poses))]
    response.joint_names = kinematics.joint_names
    response.actuated_names = kinematics.actuated_names
    response.status = messages.summary("pose", len(poses), ((s.pose_index, s.status) for s in response.solutions))


def solve_forward(kinematics: Kinematics, request: Any, response: Any, measured: Array | None) -> None:
    """Answer SolveForward from the pose `measured` (7,) if it names none; `RequestError` if unusable as a whole."""
    messages.check_frame(request.header, kinematics.mechanism.base_link)
    messages.check_count(len(request.joints), "joints", request.all_modes)
    if len(request.near) not in (0, 1, len(request.joints)):
        counts = f"{len(request.near)} poses in near for {len(request.joints)} joint states"
        raise RequestError(f"{counts}; give none, one, or one for each")
    names = kinematics.actuated_names
    rows, problems = np.full((len(request.joints), len(names)), np.nan), {}
    for k, message in enumerate(request.joints):
        try:
            rows[k] = messages.joint_values(message, names)
        except RequestError as error:
            problems[k] = messages.status(SolveStatus.INVALID_INPUT, str(error))
    if len(problems) == len(rows):
        raise RequestError(problems[0].reason)
    near = messages.poses_of(request.near) if request.near else measured
    if request.all_modes:
        groups = {k: kinematics.forward_all(rows[k]) for k in range(len(rows)) if k not in problems}
        response.solutions = [_fk(k, one, 0, one.label) for k, group in groups.items() for one in group]
        seen = {solution.joints_index for solution in response.solutions}
        for k in groups.keys() - seen:
            problems[k] = messages.status(SolveStatus.UNREACHABLE, "no assembly mode")
    else:
        answer = kinematics.forward(rows, near if near is None or near.ndim == 1 or len(near) > 1 else near[0])
        response.solutions = [_fk(k, answer, k, "") for k in range(len(rows)) if k not in problems]
    response.solutions = sorted(
        [*response.solutions, *(FkSolution(joints_index=k, status=s) for k, s in problems.items())],
        key=lambda solution: int(solution.joints_index),
    )
    response.joint_names = kinematics.joint_names
    response.header.frame_id = kinematics.mechanism.base_link
    response.status = messages.summary(
        "joint state", len(rows), ((s.joints_index, s.status) for s in response.solutions)
    )


def _seed_of(kinematics: Kinematics, message: Any) -> Array:
    """Joints (n_joints,) as named in the seed, the others at home. Driven joints alone are enough."""
    named = list(dict.fromkeys(message.name))
    positions = dict(zip(named, messages.joint_values(message, named, what="seed"), strict=True))
    unknown = [name for name in positions if name not in kinematics.joint_names]
    if unknown:
        raise RequestError(f"seed: the robot has no joint {', '.join(unknown)}")
    home = kinematics.home_joints
    return np.array([positions.get(name, home[k]) for k, name in enumerate(kinematics.joint_names)])


def _ik(index: int, answer: Any, at: int, label: str) -> IkSolution:
    joints = np.reshape(answer.joints, (-1, answer.joints.shape[-1]))[at]
    solved = bool(np.isfinite(joints).all())
    return IkSolution(
        pose_index=index,
        status=_status(answer, at),
        positions=joints if solved else [],
        actuated=np.reshape(answer.actuated, (-1, answer.actuated.shape[-1]))[at] if solved else [],
        working_mode=label,
        residual=float(np.reshape(answer.residual, -1)[at]),
        iterations=int(np.reshape(answer.iterations, -1)[at]),
    )


def _fk(index: int, answer: Any, at: int, label: str) -> FkSolution:
    joints = np.reshape(answer.joints, (-1, answer.joints.shape[-1]))[at]
    pose = np.reshape(answer.pose, (-1, 7))[at]
    message = FkSolution(
        joints_index=index,
        status=_status(answer, at),
        positions=joints if np.isfinite(joints).all() else [],
        assembly_mode=label,
        residual=float(np.reshape(answer.residual, -1)[at]),
        iterations=int(np.reshape(answer.iterations, -1)[at]),
    )
    if np.isfinite(pose).all():
        message.pose = messages.to_pose(pose)
    return message


def _status(answer: Any, at: int) -> SolveStatus:
    code = int(np.reshape(answer.status, -1)[at])
    return messages.status(code, "" if code == Status.CONVERGED else answer.reason(at))


_STILL = 1e-6  # rad or m, between two looks
_APART = 1e-3  # rad, or of the characteristic length: by so much drives may be from where they can all be
_SILENT = 5  # looks


class CommandedPositions:
    """Subscriber to commands for drives with one loop each, which take any positions; logs problems.

    Between the points of a trajectory redundant drives are asked for what they cannot do all at once; what counts is
    where they stay. Commands by effort or velocity tell nothing.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._commands = PolledSubscription(node, JointState, topic, topics.STREAM_IN)
        self._wanted: Array | None = None
        self._judged = False
        self._silent = 0  # looks
        self.problem = ""

    def look(self, kinematics: Kinematics, last: TrackedMotion) -> None:
        """Process the received commands, with the robot at `last`; to be called a few times a second."""
        message = self._commands.take()
        self._silent = self._silent + 1 if message is None else 0
        if message is None:
            if self._silent > _SILENT:  # nobody commands any more
                self._wanted, self.problem = None, ""
            return
        try:
            wanted = messages.joint_values(message, kinematics.actuated_names, what="command")
        except PkmError:  # by effort, or NaN, as ros2_control sends until a controller commands
            self._wanted, self.problem = None, ""
            return
        if self._wanted is None or np.abs(wanted - self._wanted).max() > _STILL:
            self._wanted, self._judged, self.problem = wanted, False, ""
        elif not self._judged:
            self._judged, self.problem = True, unsuitable(kinematics, wanted, last)
            if self.problem:
                self._node.get_logger().warn(self.problem)


def unsuitable(kinematics: Kinematics, wanted: Array, last: TrackedMotion) -> str:
    """Why a robot at `last` cannot be held with its drives at `wanted` (n_actuated,) [rad or m]; empty if it can."""
    found = kinematics.forward(wanted, near=last.pose, seed=last.joints)
    if not closes(found.status):
        return f"the commanded drive positions have no pose of the platform: {found.reason(0)}"
    turning = kinematics.engine.actuated_turning
    had = kinematics.inverse(found.pose, seed=found.joints).actuated  # redundant drives come near to `wanted` at best
    apart = np.abs(np.asarray(had) - wanted)
    worst = int(np.argmax(apart / np.where(turning, 1.0, kinematics.characteristic_length)))
    name = kinematics.actuated_names[worst]
    if apart[worst] > _APART * (1.0 if turning[worst] else kinematics.characteristic_length):
        off = f"{1e3 * apart[worst]:.3g} {'mrad' if turning[worst] else 'mm'}"
        return f"the commanded drive positions are inconsistent: {name} is off by {off}; the drives push each other"
    beyond = kinematics.limit_violations(found.joints)
    return f"the commanded drive positions are beyond limits: {'; '.join(beyond)}" if beyond else ""
