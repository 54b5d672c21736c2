# SPDX-License-Identifier: Apache-2.0
"""A platform that fell, by a load that nobody knows of or by drives that give nothing, is led back by `recover`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pkm_control.client import RefusedError, Robot, Setup
from pkm_control.client.simulated import SimulatedBackend
from pkm_control.hardware.simulated.simulated_machine import SimulatedMachine
from pkm_control.loop.modes import Mode
from pkm_description.mechanism import Array, Inertial
from pkm_kinematics.kernels.compiled_rotations import displacement_between

RATE = 250.0  # Hz


def loaded(mass: float) -> Callable[[SimulatedMachine], Callable[[], None]]:
    """What puts a body on the platform without the controller's knowledge [kg], and takes it off again."""

    def act(machine: SimulatedMachine) -> Callable[[], None]:
        machine.carry(Inertial(mass, np.zeros(3), 0.01 * mass * np.eye(3)))
        return lambda: machine.carry(None)

    return act


def without(*drives: int) -> Callable[[SimulatedMachine], Callable[[], None]]:
    """What takes all effort from some drives, and gives it back."""

    def act(machine: SimulatedMachine) -> Callable[[], None]:
        given = machine.write

        def less(command: Array, answers: float | None = None) -> None:
            weak = command.copy()
            weak[list(drives)] = 0.0
            given(weak, answers)

        machine.write = less  # type: ignore[method-assign]

        def again() -> None:
            machine.write = given  # type: ignore[method-assign]

        return again

    return act


def fallen(robot: Robot, fall: Callable[[SimulatedMachine], Callable[[], None]]) -> SimulatedMachine:
    """Have it fall, and assert that it did; what made it fall is over then."""
    assert isinstance(robot._backend, SimulatedBackend)
    machine = robot._backend.loop.machine
    assert isinstance(machine, SimulatedMachine)
    robot.wait(0.1)
    over = fall(machine)
    robot.wait(2.0)
    assert robot.state.mode is Mode.STOPPED
    assert robot.state.reason
    assert not machine.twist.any()  # its brakes hold it
    over()
    return machine


@pytest.mark.parametrize(
    ("name", "fall", "outside"),
    [
        ("delta", loaded(200.0), True),
        ("delta", without(0), False),
        ("tripod_3prs", loaded(200.0), True),
        ("tripod_3prs", without(0), True),
        ("quattro", without(1), False),
        ("gough_stewart", without(*range(6)), False),
    ],
)
def test_who_fell_is_led_back(name: str, fall: Callable[[SimulatedMachine], Callable[[], None]], outside: bool) -> None:
    with Robot.simulated(name, False, Setup(rate=RATE)) as robot:
        machine = fallen(robot, fall)
        check = robot._backend.loop.follower.check
        assert bool(check.standing(machine.pose)) == outside
        answer = robot.recover()
        assert ("moves back inside" in answer) == outside
        fastest = 0.0
        for _ in range(400):
            robot.wait(0.05)
            fastest = max(fastest, float((np.abs(machine.read().velocities) / machine.limits.velocity).max()))
            if not robot.state.moving:
                break
        state = robot.state
        assert state.mode is Mode.HOLDING, state.reason
        assert fastest < 0.5
        assert check.standing(state.reference) == ""
        assert np.abs(displacement_between(machine.pose, state.reference)).max() < 1e-3
        assert robot.recover() == "nothing is wrong: the platform stands well"


def test_who_fell_through_a_singularity_comes_to_rest_and_is_told_why_not() -> None:
    """Once it is let go its brakes have it, whatever its readings say then; they do not tell any more where it is."""
    with Robot.simulated("gough_stewart", False, Setup(rate=RATE)) as robot:
        machine = fallen(robot, without(0))
        with pytest.raises(RefusedError, match=r"lose hold of the platform .* bring it home by hand, or reset"):
            robot.recover()
        assert robot.state.mode is Mode.STOPPED
        robot.wait(1.0)
        assert not machine.twist.any()
