# SPDX-License-Identifier: Apache-2.0
"""Conversion between messages and arrays, the checks of incoming requests, and their answers.

Poses are arrays (7,): x y z qx qy qz qw. Twists, accelerations and wrenches are (6,): linear (or force), then angular
(or moment).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import Accel, Inertia, Pose, Twist, Vector3, Wrench
from numpy.typing import NDArray
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from pkm_description.rotations import with_unit_quaternions
from pkm_interfaces.msg import PlatformReference, SolveStatus
from pkm_runtime.errors import PkmError, shortened

Array = NDArray[np.float64]


MOST_ROWS = 10_000  # poses, joint states or motions in one request: about a second of a node's time
MOST_WITH_ALL_MODES = 20  # of them, where all modes are asked for


BESIDE = "positions", "velocities", "accelerations"  # of redundant joints
READINGS = "position", "velocity", "effort"  # of joints


class RequestError(PkmError):
    """An unreadable request; the message says why."""


def status(code: int, reason: str = "") -> SolveStatus:
    """A status message."""
    return SolveStatus(code=int(code), reason=reason)


def check_count(count: int, what: str, all_modes: bool = False) -> None:
    """Refuse a request for nothing, or for more than a node has time for; `all_modes` asks for every mode of each."""
    most = MOST_WITH_ALL_MODES if all_modes else MOST_ROWS
    if not count:
        raise RequestError(f"{what} is empty")
    if count > most:
        raise RequestError(f"{count} {what} at once, more than {most}{' with all modes' if all_modes else ''}")


# Messages to arrays


def vector_of(message: Vector3) -> tuple[float, float, float]:
    """x, y, z of a vector or a point."""
    return message.x, message.y, message.z


def pose_of(message: Pose) -> Array:
    """Pose (7,), with a nearly unit quaternion normalised as in the library."""
    p, q = message.position, message.orientation
    return with_unit_quaternions(np.array([(p.x, p.y, p.z, q.x, q.y, q.z, q.w)]))[0]


def poses_of(messages: Sequence[Pose]) -> Array:
    """Poses (n, 7)."""
    return np.array([pose_of(message) for message in messages])


def twist_of(message: Twist | Accel) -> Array:
    """Linear and angular part (6,)."""
    return np.array((*vector_of(message.linear), *vector_of(message.angular)))


def reference_numbers(message: PlatformReference) -> Array:
    """What redundant joints do (3 r,), then pose, twist and acceleration (19,); quaternion not normalised."""
    q = message.pose.orientation
    place = *vector_of(message.pose.position), q.x, q.y, q.z, q.w
    return np.concatenate([message.redundant, place, twist_of(message.twist), twist_of(message.acceleration)])


def wrench_of(message: Wrench) -> Array:
    """Force and moment (6,)."""
    return np.array((*vector_of(message.force), *vector_of(message.torque)))


def inertia_of(message: Inertia) -> tuple[float, Array, Array]:
    """Mass, centre of mass (3,) and rotational inertia (3, 3)."""
    m = message
    matrix = np.array([[m.ixx, m.ixy, m.ixz], [m.ixy, m.iyy, m.iyz], [m.ixz, m.iyz, m.izz]])
    return m.m, np.array(vector_of(m.com)), matrix


def to_inertia(mass: float, com: Array, inertia: Array) -> Inertia:
    """Message of a mass, its centre (3,) and its rotational inertia (3, 3) about it."""
    (ixx, ixy, ixz), (_, iyy, iyz), (_, _, izz) = inertia.tolist()
    return Inertia(m=float(mass), com=to_vector(com), ixx=ixx, ixy=ixy, ixz=ixz, iyy=iyy, iyz=iyz, izz=izz)


def to_joints(names: Sequence[str], fields: Sequence[str], stamp: Any, numbers: Array) -> JointState:
    """Message of joints: `numbers` has the values (n,) of each field, such as position, one after the other."""
    values = dict(zip(fields, np.split(numbers, len(fields)), strict=True))
    return JointState(header=Header(stamp=stamp), name=list(names), **values)


def joint_values(
    message: JointState, names: Sequence[str], field: str = "position", what: str = "joint state"
) -> Array:
    """Values (n,) of a joint message in the order of `names`, from position, velocity or effort.

    Raises `RequestError`, with `what` for the message, where a joint is missing or named twice, values do not match
    names, or one is not finite.
    """
    values = getattr(message, field)
    if len(values) != len(message.name):
        raise RequestError(f"{what}: {len(message.name)} names but {len(values)} values of {field}")
    if list(message.name) == list(names):
        array = np.array(values, dtype=np.float64)
    else:
        by_name = dict(zip(message.name, values, strict=True))
        if len(by_name) != len(values):
            names_twice = [name for name in by_name if list(message.name).count(name) > 1]
            raise RequestError(f"{what}: {', '.join(names_twice)} is named more than once")
        missing = [name for name in names if name not in by_name]
        if missing:
            raise RequestError(f"{what}: no {field} of {', '.join(missing)}")
        array = np.array([by_name[name] for name in names], dtype=np.float64)
    if not np.isfinite(array).all():
        bad = names[int(np.flatnonzero(~np.isfinite(array))[0])]
        raise RequestError(f"{what}: {field} of {bad} is not finite")
    return array


def reading_of(names: Sequence[str], message: JointState) -> Array:
    """Positions, velocities and efforts (3 n,) of a joint message by `names`; efforts NaN where it has none."""
    efforts = np.full(len(names), np.nan)
    if len(message.effort) == len(names) and list(message.name) == list(names):
        efforts = np.array(message.effort, dtype=np.float64)
    what = "measured state"
    return np.concatenate(
        (joint_values(message, names, what=what), joint_values(message, names, "velocity", what), efforts)
    )


def redundant_of(names: Sequence[str], messages: Sequence[Any], field: str, joints: Sequence[str], what: str) -> Array:
    """Values (n, r) of a field of messages about redundant joints `names`, in the order of the robot's `joints`.

    (n, 0) without names. Raises `RequestError`, with `what` for a message, unless they name all joints once, and each
    message has a value for each.
    """
    if names and sorted(names) != sorted(joints):
        own = f"name all of {', '.join(joints)}, each once, or none" if joints else "the robot has none"
        raise RequestError(f"redundant_names is {list(names)}; {own}")
    rows = [getattr(message, field) for message in messages]
    wrong = [k for k, row in enumerate(rows) if len(row) != len(names)]
    if wrong:
        count = len(rows[wrong[0]])
        raise RequestError(f"{what} {wrong[0]}: it has {count} {field}, and {len(names)} joints are in redundant_names")
    order = [list(names).index(name) for name in joints if names]
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1)[:, order]


def check_frame(header: Header, base_frame: str) -> None:
    """Refuse a request outside the base frame; an empty frame means the base frame."""
    frame = header.frame_id.lstrip("/")
    if frame and frame != base_frame:
        raise RequestError(f"frame '{frame}' is not the base frame '{base_frame}'; transform the request into it first")


# Arrays to messages


def to_vector(values: Array) -> Vector3:
    """A vector message."""
    return Vector3(x=float(values[0]), y=float(values[1]), z=float(values[2]))


def to_pose(pose: Array) -> Pose:
    """A pose message."""
    message = Pose()
    p, q = message.position, message.orientation
    p.x, p.y, p.z, q.x, q.y, q.z, q.w = pose.tolist()
    return message


def to_twist(twist: Array) -> Twist:
    """A twist message."""
    return Twist(linear=to_vector(twist[:3]), angular=to_vector(twist[3:]))


def to_wrench(wrench: Array) -> Wrench:
    """A wrench message of force and moment (6,)."""
    return Wrench(force=to_vector(wrench[:3]), torque=to_vector(wrench[3:]))


def to_acceleration(acceleration: Array) -> Accel:
    """An acceleration message."""
    return Accel(linear=to_vector(acceleration[:3]), angular=to_vector(acceleration[3:]))


INTERNAL_ERROR = 9  # as in SolveStatus.msg, whose constants are as old as the last build of pkm_interfaces


def answered(node: Node, response: Any, solve: Callable[[], None]) -> Any:
    """The response filled in by `solve`, or with the reason of its failure in `status`.

    INVALID_INPUT for an invalid request, INTERNAL_ERROR for an error of ours, which is also logged.
    """
    try:
        solve()
    except PkmError as error:
        response.status = status(SolveStatus.INVALID_INPUT, str(error))
    except Exception as error:  # one that nobody thought of
        node.get_logger().error(traceback.format_exc())
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        response.status = status(INTERNAL_ERROR, reason)
    return response


def summary(what: str, count: int, statuses: Iterable[tuple[int, SolveStatus]]) -> SolveStatus:
    """CONVERGED if each of `count` items has a converged status, else the status of the first without one."""
    best: dict[int, SolveStatus] = {}
    for index, one in statuses:
        if index not in best or one.code == SolveStatus.CONVERGED:
            best[index] = one
    for index in range(count):
        found = best.get(index)
        if found is not None and found.code != SolveStatus.CONVERGED:
            return status(found.code, f"{what} {index}: {found.reason}" if count > 1 else found.reason)
    return status(SolveStatus.CONVERGED)
