# SPDX-License-Identifier: Apache-2.0
"""Picks from a conveyor in one process: how exactly the platform is over an object, and what ends a ride."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_client import MotionEndedError, RefusedError, Robot, Setup
from pkm_client.simulated import SimulatedBackend
from pkm_control.control_errors import MotionFileError, UnreachableMotionError
from pkm_control.conveyor.boarding import _standing
from pkm_control.conveyor.conveyor import Conveyor, ConveyorError
from pkm_control.motion.files.motion_file import parse_motion
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.tool import Tool
from pkm_description import load_mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

RATE, FREQUENCY = 500.0, 80.0  # Hz and rad/s
SOON = 2.5  # s, from an order to the object's coming: the desk may take as long
ACCURACY = 0.5e-3  # m

PICK = """# frame: conveyor
# Down to the object, a rest on it, up, and to the place.
x [m], y [m], z [m], dwell [s], ride, label
{above}, 0,    1, above
0, 0, 0, 0.05, 1, pick
{above}, 0,    1, lifted
{place}, 0,    0, place
"""
BELT = """
conveyors:
  belt:
    direction: {direction}
    origin: {origin}
    window: [{begin}, {end}]
    metres_per_unit: 0.05
    deviation: {deviation}
    simulated: {{speed: {speed}, rate: 100, jitter: 0.001}}
"""


class Line:
    """A robot, a belt whose objects come by its home, and what was seen of both in each period."""

    def __init__(self, name: str, folder: Path, along: int = 1, up: int = 2, speed: float = 0.5, half: float = 0.2):
        home = np.array(shared_dynamics(load_mechanism(name)).kinematics.home[:3])
        self.direction, raised = np.eye(3)[along], np.eye(3)[up]
        self.speed, self.half = speed, half
        self.origin = home - self.direction
        numbers = {"begin": 1.0 - half, "end": 1.0 + half, "deviation": 0.1 * half, "speed": speed}
        belt, self.file, lift = folder / f"{name}.yaml", folder / f"{name}.csv", 0.15 * half
        belt.write_text(BELT.format(direction=self.direction.tolist(), origin=self.origin.tolist(), **numbers))
        self.file.write_text(
            PICK.format(above=in_words(lift * raised), place=in_words(home + lift * raised + lift * self.direction))
        )
        setup = Setup(rate=RATE, natural_frequency=FREQUENCY, conveyor_file=str(belt))
        self.robot = Robot.simulated(name, False, setup)
        backend = self.robot._backend
        assert isinstance(backend, SimulatedBackend)
        self.drive = backend.drives["belt"]
        self.seen: list[tuple[np.ndarray, float]] = []
        self.at_object: Callable[[], None] | None = None
        self.at = 0.0
        machine = backend.loop.machine
        assert isinstance(machine, SimulatedMachine)
        step, plan = machine.step, self.robot._boarding.plan
        goes = threading.Event()
        goes.set()

        def watched(seconds: float) -> None:
            goes.wait()
            self.seen.append((machine.pose[:3].copy(), self.drive.travel))
            if self.at_object is not None and self.away(1)[0] < 2e-3:
                self.at_object()
                self.at_object = None
            step(seconds)

        def planned(*order: Any) -> MotionPoints:
            goes.clear()  # however long this computer takes, the belt is where it was
            try:
                return plan(*order)
            finally:
                goes.set()

        machine.step = watched  # type: ignore[method-assign]
        self.robot._boarding.plan = planned  # type: ignore[method-assign]

    def ready(self) -> Line:
        """At its usual speed, with nothing of the test before."""
        self.at_object = None
        self.drive.speed, self.drive.silent = self.speed, False
        self.drive.travel, self.drive.slip = self.drive.travel + self.drive.slip, 0.0
        self.robot.set_speed(1.0)
        self.robot.stop()
        while self.drive.running != self.speed or self._belt_seems_wrong():
            self.robot.wait(0.3)  # in which the estimate forgets what was before
        return self

    def _belt_seems_wrong(self) -> bool:
        belt = self.robot.belt("belt")
        return bool(belt.problem) or abs(belt.speed - self.speed) > 0.01 * abs(self.speed)

    def next(self) -> float:
        """Return what the travel is when an object passes the origin that comes to the window soon."""
        self.at = self.robot.belt("belt").travel + self.speed * SOON - (1.0 - np.sign(self.speed) * self.half)
        self.seen.clear()
        return self.at

    def pick(self) -> float:
        """Pick an object; return how far the platform is from it in the rest on it, at most [m]."""
        result = self.robot.follow(self.file, on="belt", at=self.next()).result()
        assert result.outcome is Outcome.SUCCESSFUL
        return float(np.sort(self.away())[: round(0.04 * RATE)].max())

    def away(self, last: int = 0) -> np.ndarray:
        """Return the distance of platform and object [m], in the last periods that were seen, or in all."""
        seen = self.seen[-last:]  # a copy: the loop of the robot goes on
        places, travels = np.array([place for place, _ in seen]), np.array([travel for _, travel in seen])
        return np.asarray(np.linalg.norm(places - self.origin - np.outer(travels - self.at, self.direction), axis=1))


def in_words(numbers: np.ndarray) -> str:
    return ", ".join(repr(float(number)) for number in numbers)


@pytest.fixture(scope="module")
def delta(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    line = Line("delta", tmp_path_factory.mktemp("delta"))
    with line.robot:
        yield line


@pytest.fixture
def line(delta: Line) -> Line:
    return delta.ready()


def test_picks_at_half_a_metre_per_second(line: Line) -> None:
    assert max(line.pick() for _ in range(2)) < ACCURACY


def test_a_gripper_closes_at_the_object_and_carries_it_away(line: Line, tmp_path: Path) -> None:
    rows = line.file.read_text().splitlines()
    happens = ("payload [kg], output:grip", "0, 0", "0.3, 1", "0.3,", "0, 0")
    rows[2:] = [f"{row}, {more}" for row, more in zip(rows[2:], happens, strict=True)]
    file = tmp_path / "grip.csv"
    file.write_text("\n".join(rows) + "\n")
    told: list[tuple[str, float, float]] = []
    backend = line.robot._backend
    tell = backend.on_output
    backend.on_output = lambda name, value: told.append((name, value, float(line.away(1)[0])))
    try:
        result = line.robot.follow(file, on="belt", at=line.next()).result()
    finally:
        backend.on_output = tell
    assert result.outcome is Outcome.SUCCESSFUL
    assert [(name, value) for name, value, _ in told] == [("grip", 0.0), ("grip", 1.0), ("grip", 0.0)]
    assert told[1][2] < 2.0 * ACCURACY  # as the rest on the object begins
    assert min(told[0][2], told[2][2]) > 0.02
    assert line.robot.payload is None


def test_a_tool_is_where_the_object_is() -> None:
    tool = Tool("gripper", np.array((0.01, 0.02, -0.05, 0.0, 0.0, 0.0, 1.0)), 0.0, np.zeros(3))
    text = "# frame: conveyor\n# tool: gripper\nx [m], y [m], z [m], ride\n0, 0, 0, 1\n0, 0, -0.9, 0\n"
    conveyor = Conveyor("belt", np.array((0.0, 1.0, 0.0)), np.array((0.0, -1.0, -1.0)), (0.0, 2.0), "", "belt", 1.0)
    standing = _standing(parse_motion(text, tools={"gripper": tool}), conveyor, 0.7)
    np.testing.assert_allclose(standing.poses[0, :3], (-0.01, -0.32, -0.95), atol=1e-12)
    np.testing.assert_allclose(standing.poses[1, :3], (-0.01, -0.02, -0.85), atol=1e-12)
    assert not standing.of_tool


@pytest.mark.slow
def test_many_picks_at_half_a_metre_per_second(line: Line) -> None:
    missed = np.array([line.pick() for _ in range(60)])
    assert missed.max() < ACCURACY
    assert np.sqrt(np.mean(missed**2)) < 0.5 * ACCURACY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "along", "up", "speed", "half"),
    [
        ("linear_delta", 1, 2, 0.2, 0.1),
        ("quattro", 1, 2, 0.5, 0.2),
        ("gough_stewart", 1, 2, 0.4, 0.1),
        ("hexa", 1, 2, 0.3, 0.07),
        ("hexaglide", 1, 2, 0.3, 0.07),
        ("orthoglide", 1, 2, 0.1, 0.05),
        ("h4", 1, 2, 0.3, 0.1),
        ("cable_8", 1, 2, 0.3, 0.1),
        ("par2", 0, 2, 0.3, 0.1),
        ("five_bar", 0, 1, 0.2, 0.05),
        ("planar_3rrr", 0, 1, 0.3, 0.05),
        ("delta", 0, 2, -0.5, 0.2),
    ],
)
def test_other_robots_and_belts(name: str, along: int, up: int, speed: float, half: float, tmp_path: Path) -> None:
    line = Line(name, tmp_path, along, up, speed, half)
    with line.robot:
        assert max(line.ready().pick() for _ in range(5)) < ACCURACY


# What ends a ride


def reverse(line: Line) -> None:
    line.drive.speed = -line.speed


def stall(line: Line) -> None:
    line.drive.speed = 0.0


def jump(line: Line) -> None:
    line.drive.slip += 0.05


def fall_silent(line: Line) -> None:
    line.drive.silent = True


def lower(line: Line) -> None:
    line.robot._backend.loop.follower.set_override(0.5)  # type: ignore[attr-defined]


def pause(line: Line) -> None:
    line.robot._backend.loop.follower.pause()  # type: ignore[attr-defined]


def stop(line: Line) -> None:
    line.robot._backend.loop.follower.stop()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("happens", "outcome", "said"),
    [
        (jump, Outcome.STATE_LOST, r"conveyor 'belt' jumped by (49|5)"),
        pytest.param(
            reverse,
            Outcome.STATE_LOST,
            r"conveyor 'belt' is -2\d\.\d mm from where it was predicted to be",
            marks=pytest.mark.slow,
        ),
        (stall, Outcome.STATE_LOST, r"instead of 0\.(49|5)\d* m/s"),
        pytest.param(
            fall_silent,
            Outcome.STATE_LOST,
            "conveyor 'belt' is lost: its encoder is silent for 0.1",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lower, Outcome.PREEMPTED, "its speed was lowered, and a conveyor does not wait", marks=pytest.mark.slow
        ),
        (pause, Outcome.PREEMPTED, "paused on a moving frame, which does not wait"),
        pytest.param(stop, Outcome.PREEMPTED, "stopped", marks=pytest.mark.slow),
    ],
)
def test_a_ride_ends_at_rest_on_its_way(
    line: Line, happens: Callable[[Line], None], outcome: Outcome, said: str
) -> None:
    line.at_object = lambda: happens(line)
    file = line.file.with_name("long.csv")
    file.write_text(line.file.read_text().replace("0.05, 1, pick", "0.25, 1, pick"))
    with pytest.raises(MotionEndedError, match=said) as ended:
        line.robot.follow(file, on="belt", at=line.next())
    assert line.at_object is None  # it happened
    assert ended.value.result.outcome is outcome
    assert line.robot.state.mode is Mode.HOLDING
    places = np.array([place for place, _ in line.seen])
    speeds = np.diff(places, axis=0) * RATE
    assert np.linalg.norm(np.diff(speeds, axis=0) * RATE, axis=1).max() < 60.0  # m/s^2: no blow
    assert np.linalg.norm(speeds[-5:], axis=1).max() < 0.02
    assert abs(places[-1] @ line.direction) < line.half + 0.05  # in the window, nearly
    if happens is jump:
        assert line.ready().pick() < ACCURACY  # and the next one is picked


@pytest.mark.slow
def test_a_belt_that_stalls_before_a_motion_begins_is_waited_for(line: Line) -> None:
    task = line.robot.follow(line.file, on="belt", at=line.next(), block=False)
    line.drive.speed = 0.0
    line.robot.wait(3.0)
    assert not task.done, task.result()
    line.drive.speed = line.speed
    assert task.result().outcome is Outcome.SUCCESSFUL
    assert np.sort(line.away())[: round(0.04 * RATE)].max() < ACCURACY


@pytest.mark.slow
def test_a_belt_of_another_speed_than_judged(line: Line) -> None:
    task = line.robot.follow(line.file, on="belt", at=line.next(), block=False)
    line.drive.speed = 0.3
    with pytest.raises(
        MotionEndedError, match=r"runs at 0\.\d* m/s instead of the 0\.\d* m/s with which the motion was"
    ):
        task.result()
    assert line.robot.state.mode is Mode.HOLDING


def test_a_belt_that_stands_is_picked_from_too(line: Line) -> None:
    line.drive.speed = 0.0
    line.robot.wait(2.0)
    line.at = line.robot.belt("belt").travel - 0.95
    line.seen.clear()
    line.robot.follow(line.file, on="belt", at=line.at)
    assert line.away().min() < ACCURACY
    with pytest.raises(ConveyorError, match=r"which stands: it is not in the window from 0.8 to 1.2 m"):
        line.robot.follow(line.file, on="belt", at=line.at + 0.5)


def out_of_reach(text: str) -> str:
    return text.replace("0, 0, 0, 0.05", "0, 0, -0.7, 0.05")


@pytest.mark.parametrize(
    ("change", "where", "error", "said"),
    [
        ({"on": "other"}, 0.0, ConveyorError, "there is no conveyor 'other'; known: belt"),
        ({"cycles": 2}, 0.0, RefusedError, "a conveyor carries an object past only once"),
        ({"at": float("nan")}, 0.0, RefusedError, "at is nan"),
        ({}, -5.0, ConveyorError, "it would be followed from .* and leaves the window from 0.8 to 1.2 m before"),
        ({"motion": "pick_and_place"}, 0.0, ConveyorError, "it needs the line '# frame: conveyor'"),
        ({"on": ""}, 0.0, MotionFileError, "is in the frame of a conveyor; say which"),
        ({"change": out_of_reach}, 0.0, UnreachableMotionError, "the platform cannot be at"),
    ],
)
def test_what_does_not_begin(line: Line, change: dict, where: float, error: type[Exception], said: str) -> None:
    order = {"motion": line.file, "on": "belt", "at": line.next() + where, **change}
    if alter := order.pop("change", None):
        order["motion"] = line.file.with_name("altered.csv")
        order["motion"].write_text(alter(line.file.read_text()))
    with pytest.raises(error, match=said):
        line.robot.follow(order.pop("motion"), **order)
    assert line.robot.state.mode is Mode.HOLDING


def test_no_ride_at_a_lower_speed_or_on_a_lost_belt(line: Line) -> None:
    line.robot.set_speed(0.5)
    with pytest.raises(RefusedError, match=r"the speed override is 0.5; a conveyor does not wait: set it to 1"):
        line.robot.follow(line.file, on="belt", at=line.next())
    line.robot.set_speed(1.0)
    line.drive.silent = True
    line.robot.wait(1.0)
    assert "its encoder is silent" in line.robot.belt("belt").problem
    with pytest.raises(ConveyorError, match="its encoder is silent"):
        line.robot.follow(line.file, on="belt", at=line.next())
    with pytest.raises(ConveyorError, match="there is no conveyor 'other'"):
        line.robot.belt("other")


# Files


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# frame: belt\nx [m], y [m], z [m]\n0, 0, 0\n0, 0, 1\n",
            "write 'frame: base' or 'frame: home' or 'frame: con",
        ),
        ("x [m], y [m], z [m], ride\n0, 0, 0, 1\n0, 0, 1, 0\n", "add the line '# frame: conveyor'"),
        ("# frame: conveyor\nx [m], y [m], z [m], ride\n0, 0, 0, 2\n0, 0, 1, 1\n", "write 1 on the conveyor, 0 beside"),
        ("# frame: conveyor\nx [m], y [m], z [m], ride\n0, 0, 0, 0\n0, 0, 1, 0\n", "is 1 in no waypoint"),
        (
            "# frame: conveyor\nx [m], y [m], z [m], ride\n0, 0, 0, 1\n0, 0, 1, 0\n0, 0, 2, 1\n",
            "is 1 in more than one stretch",
        ),
        ("# frame: conveyor\nx [m], y [m], z [m], time [s]\n0, 0, 0, 0\n0, 0, 1, 1\n", "belongs to a fixed frame"),
    ],
)
def test_files_that_make_no_sense(text: str, said: str) -> None:
    with pytest.raises(MotionFileError, match=said):
        parse_motion(text)
