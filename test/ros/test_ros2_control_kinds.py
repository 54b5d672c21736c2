# SPDX-License-Identifier: Apache-2.0
"""A hexapod, a robot with redundant drives and one whose motion space turns, under the real controller_manager.

By position, where each drive closes its loop. Needs the same as `test_ros2_control_stack.py`, which does the Delta.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from bench.joint_loops import path_beside_home
from pkm_description.ros import messages, topics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics
from pkm_kinematics.status import closes

from .conftest import Graph
from .managed_robot import Stack, launched, needed

pytestmark = needed

_APART = 0.02  # m: one cable, for which all others are 5 mm off
_NEAR = 0.02  # m: further than a stop takes, nearer than the place where the robot was


@pytest.fixture(scope="module", params=("gough_stewart", "cable_8", "tripod_3prs"))
def by_position(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    graph = Graph(f"/{request.param}_by_position")
    log = tmp_path_factory.mktemp("launch") / "launch.log"
    with launched(graph, request.param, log, "command_interface:=position") as made:
        yield made
    graph.close()


def beside_home(stack: Stack) -> np.ndarray:
    """Positions of the driven joints (n,) 2 % of the robot's size away from home."""
    return path_beside_home(stack.kinematics, 50.0)[-1][0]


def without_platform(kinematics: Kinematics) -> np.ndarray | None:
    """Positions of the driven joints (n,) within their ranges that no platform has; None where none are found."""
    limits = ActuatorLimits.of(kinematics.mechanism)
    middle, half = 0.5 * (limits.upper + limits.lower), 0.48 * (limits.upper - limits.lower)
    for share in np.random.default_rng(1).uniform(-1.0, 1.0, (50, len(middle))):
        if not closes(kinematics.forward(middle + share * half).status):
            return np.asarray(middle + share * half)
    return None


def test_a_joint_trajectory_is_followed_by_position(by_position: Stack) -> None:
    end = beside_home(by_position)
    done, errors = by_position.go(end[None, :], 1.0)
    by_position.graph.wait(done.done)
    result = done.result().result
    assert result.error_code == 0, result.error_string
    assert np.abs(errors).max() < 0.01
    by_position.graph.wait(lambda: np.abs(by_position.here() - end).max() < 1e-3)


def went(stack: Stack, place: np.ndarray) -> bool:
    """Whether the drives got to their positions (n,), once they stood still."""
    stack.graph.wait(stack.rests)
    done, _ = stack.go(place[None, :], 3.0)
    stack.graph.wait(done.done)
    return bool(done.result().result.error_code == 0)


def test_positions_beyond_the_limits_are_not_a_success(by_position: Stack) -> None:
    before, limits = by_position.here(), ActuatorLimits.of(by_position.kinematics.mechanism)
    beyond = before.copy()
    beyond[0] = limits.upper[0] + 0.5 * (limits.upper[0] - limits.lower[0])
    done, _ = by_position.go(beyond[None, :], 1.5)
    by_position.graph.wait(done.done)
    assert done.result().result.error_code != 0
    assert np.all(by_position.here() < limits.upper + 0.02)
    if by_position.fault() or not went(by_position, before):  # it left its commands, at once or on the way back
        assert by_position.fault()
        by_position.lead_back()  # until then it takes no goal
        assert went(by_position, before)
    by_position.graph.wait(lambda: np.abs(by_position.here() - before).max() < 1e-3)


def test_redundant_drives_that_cannot_all_be_there_are_told(by_position: Stack) -> None:
    """To the trajectory controller it is a success: each drive is nearer to its goal than 0.3 % of its range."""
    if len(by_position.names) == by_position.kinematics.mobility:
        pytest.skip("its drives are not redundant")
    heard = by_position.graph.listen(DiagnosticArray, topics.DIAGNOSTICS)

    def warned() -> bool:
        own = f"{by_position.graph.namespace}/kinematics"
        said = [one for array in heard for one in array.status if one.name == own]
        return bool(said) and said[-1].level == DiagnosticStatus.WARN and "are inconsistent" in said[-1].message

    before = by_position.here()
    beside = before.copy()
    beside[0] += _APART
    done, _ = by_position.go(beside[None, :], 1.0)
    by_position.graph.wait(done.done)
    assert done.result().result.error_code == 0
    by_position.graph.wait(warned, 10.0)
    done, _ = by_position.go(before[None, :], 1.0)
    by_position.graph.wait(done.done)
    by_position.graph.wait(lambda: not warned(), 10.0)


def test_drives_that_fall_silent_are_not_thrown_when_they_are_back(by_position: Stack) -> None:
    stack, wanted = by_position, "joint_trajectory_controller"
    stack.wait_for_controllers()
    assert stack.graph.call(Trigger, "hardware/emergency_stop", Trigger.Request()).success
    stack.graph.wait(lambda: stack.states()[wanted] == "inactive", 10.0)
    assert stack.states()["joint_state_broadcaster"] == "inactive", "the last state is repeated"
    found = stack.graph.listen(JointState, topics.HARDWARE_STATES)
    stack.lead_back()
    time.sleep(1.0)
    states = np.array([messages.joint_values(one, stack.names, what="state") for one in found])
    assert np.abs(states - states[0]).max() < _NEAR


def test_positions_that_the_platform_cannot_have_are_not_a_success(by_position: Stack) -> None:
    """The last one: the robot may be found beyond a singularity, as a real one that is driven so."""
    stack, kinematics = by_position, by_position.kinematics
    nowhere = without_platform(kinematics)
    if nowhere is None:
        pytest.skip("its platform can be wherever the drives are within their ranges")
    heard = stack.graph.listen(DiagnosticArray, topics.DIAGNOSTICS)
    done, _ = stack.go(nowhere[None, :], 4.0)
    stack.graph.wait(done.done)
    assert done.result().result.error_code != 0
    names = {f"{stack.graph.namespace}/{node}" for node in ("kinematics", "hardware")}

    def warned() -> bool:
        said = [one for array in heard for one in array.status if one.name in names]
        return any(one.level in (DiagnosticStatus.WARN, DiagnosticStatus.ERROR) for one in said)

    stack.graph.wait(warned, 10.0)
