# SPDX-License-Identifier: Apache-2.0
"""What is known of a belt by readings whose stamps err, and its file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pkm_control.conveyor.belt import Belt, SimulatedBelt
from pkm_control.conveyor.conveyor import Conveyor, Ride, SimulatedDrive, read_conveyors
from pkm_control.conveyor.riding import Passenger
from pkm_runtime.errors import ConfigurationError

LATENCY = 0.004  # s


def conveyor(**changes: object) -> Conveyor:
    usual = {
        "name": "belt",
        "direction": np.array((0.0, 1.0, 0.0)),
        "origin": np.zeros(3),
        "window": (0.0, 1.0),
        "topic": "states",
        "joint": "belt",
        "metres_per_unit": 0.05,
        "offset": 7.0,
        "latency": LATENCY,
        "simulated": SimulatedDrive(0.5, 100.0, 1e-3),
    }
    return Conveyor(**{**usual, **changes})  # type: ignore[arg-type]


def run(drive: SimulatedBelt, belt: Belt, begin: float, end: float, period: float = 1e-3) -> np.ndarray:
    """Errors of position [m] and speed [m/s], and the acceleration [m/s^2], in each period."""
    rows = []
    for time in np.arange(begin, end, period):
        drive.step(float(time), belt)
        belt.advance(float(time))
        rows.append((belt.travel - drive.travel, belt.speed - drive.running, belt.acceleration))
    return np.array(rows)


@pytest.mark.parametrize("rate", [50.0, 1000.0])
def test_a_belt_at_half_a_metre_per_second_is_known_to_half_a_millimetre(rate: float) -> None:
    described = conveyor(simulated=SimulatedDrive(0.5, rate, 1e-3))  # stamps err by up to a millisecond: 0.5 mm
    belt, drive = Belt(described), SimulatedBelt(described)
    run(drive, belt, 0.0, 1.0)
    errors = run(drive, belt, 1.0, 10.0)
    assert belt.problem(10.0) == ""
    assert np.abs(errors[:, 0]).max() < 0.4e-3
    assert abs(errors[:, 0].mean()) < 0.03e-3
    assert np.abs(errors[:, 1]).max() < 0.02
    assert np.abs(np.diff(errors[:, 2])).max() < 0.1  # the acceleration is continuous, up to the period


def test_a_belt_that_starts_and_stops_is_caught_up_with() -> None:
    described = conveyor()
    belt, drive = Belt(described), SimulatedBelt(described)
    run(drive, belt, 0.0, 2.0)
    drive.speed = 0.2
    run(drive, belt, 2.0, 3.5)
    assert np.abs(run(drive, belt, 3.5, 4.5)[:, 0]).max() < 0.4e-3


def test_why_a_belt_is_not_known() -> None:
    belt, drive = Belt(conveyor()), SimulatedBelt(conveyor())
    assert "no reading of conveyor 'belt' has come (joint 'belt' on topic 'states')" in belt.problem(0.0)
    belt.hear(0.0, float("nan"))
    assert "its readings are not finite" in belt.problem(0.0)
    run(drive, belt, 0.0, 0.03)
    assert "is not known well enough yet" in belt.problem(0.03)
    run(drive, belt, 0.03, 1.0)
    assert belt.problem(1.0) == ""
    assert "its encoder is silent for 0.5" in belt.problem(1.5)
    assert "ahead of the machine's" in belt.problem(0.5)
    belt.hear(1.01, float("inf"))
    assert "its readings are not finite" in belt.problem(1.5)
    drive.slip = 0.05
    run(drive, belt, 1.0, 1.03)
    assert "since it jumped by " in belt.problem(1.03)
    run(drive, belt, 1.03, 2.0)
    assert belt.problem(2.0) == ""
    assert belt.jumps == 1
    drive.speed = 1.2
    run(drive, belt, 2.0, 3.5)
    assert "more than 1 m/s" in belt.problem(3.5)


def test_readings_out_of_order_and_of_long_ago() -> None:
    belt = Belt(conveyor(latency=0.0, offset=0.0))
    for k in range(100):
        stamp = 0.001 * (k + (-1) ** k)  # each second one comes late
        belt.hear(stamp, 0.5 * stamp / 0.05)
    belt.hear(-5.0, 1e6)
    assert belt.jumps == 0
    state = belt.state(0.2)
    assert state.travel == pytest.approx(0.1, abs=1e-6)
    assert state.speed == pytest.approx(0.5, abs=1e-6)


def test_shares_rise_and_fall_smoothly() -> None:
    ride = Ride("belt", 0.0, 0.0, (0.1, 0.3, 0.5, 0.9))
    times = np.linspace(0.0, 1.0, 10_001)
    share, rate, bend = ride.share(times)
    np.testing.assert_allclose(share[[0, 1000, 3000, 4000, 5000, 9000, 10000]], [0, 0, 1, 1, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.gradient(share, times)[1:-1], rate[1:-1], atol=1e-3)
    np.testing.assert_allclose(np.gradient(rate, times)[1:-1], bend[1:-1], atol=1.5)
    assert np.abs(np.diff(bend)).max() < 1.0


FILE = """
conveyors:
  belt:
    direction: [0, 2, 0]
    origin: [0, -1, -0.85]
    window: [0.8, 1.2]
    metres_per_unit: 0.05
"""


def test_a_conveyor_file(tmp_path: Path) -> None:
    file = tmp_path / "belt.yaml"
    file.write_text(FILE)
    (belt,) = read_conveyors(str(file))
    np.testing.assert_allclose(belt.direction, (0.0, 1.0, 0.0))
    assert (belt.window, belt.joint, belt.deviation) == ((0.8, 1.2), "belt", 0.02)
    assert read_conveyors("") == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("direction: [0, 2, 0]", "direction: [0, 0, 0]"), "conveyors.belt.direction: has no length"),
        (("direction: [0, 2, 0]", "direction: along"), "no list of 3 numbers"),
        (("window: [0.8, 1.2]", "window: [1.2, 0.8]"), "is empty"),
        (("metres_per_unit: 0.05", "metres_per_unit: 0"), "conveyors.belt.metres_per_unit: is 0"),
        (("metres_per_unit: 0.05", "jump: 0.1"), "metres_per_unit: is missing"),
        (("metres_per_unit: 0.05", "metres_per_unit: 0.05\n    windw: 3"), "did you mean 'window'"),
        (("metres_per_unit: 0.05", "metres_per_unit: 0.05\n    deviation: 3"), "outside its range"),
        (("metres_per_unit: 0.05", "metres_per_unit: 0.05\n    simulated: {speed: fast}"), "'fast' is no number"),
        (("belt:", "belt: 3\n  other:"), "is not a mapping"),
        (("conveyors:", "conveyor:"), "no such key"),
    ],
)
def test_a_conveyor_file_that_makes_no_sense(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    file = tmp_path / f"{abs(hash(change))}.yaml"
    file.write_text(FILE.replace(*change))
    with pytest.raises(ConfigurationError, match=said):
        read_conveyors(str(file))


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_steps_loses_the_belt_for_a_moment_alone(step: float) -> None:
    """All stamps are another hour's from one reading to the next: those of the belt and of the machine."""
    described = conveyor()
    belt, drive = Belt(described), SimulatedBelt(described)
    run(drive, belt, 0.0, 1.0)
    assert belt.problem(1.0) == ""
    for k in range(101):
        belt.hear(1.0 + step + 0.01 * k, 7.0 + 20.0 * (0.5 + 0.005 * k))
        belt.advance(1.0 + step + 0.01 * k)
    assert belt.problem(2.0 + step) == ""
    assert belt.speed == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("stamp", "reading"),
    [
        (1.005, np.nan),
        (1.005, np.inf),
        (1.005, 1e308),
        (1.005, -1e300),
        (np.nan, 17.0),
        (np.inf, 17.0),
        (1e18, 17.0),
        (-1e18, 17.0),
        (4600.0, 17.0),
        (-4600.0, 17.0),
    ],
)
def test_one_reading_of_nonsense_is_forgotten_soon(stamp: float, reading: float) -> None:
    described = conveyor()
    belt, drive = Belt(described), SimulatedBelt(described)
    run(drive, belt, 0.0, 1.0)
    belt.hear(stamp, reading)
    belt.advance(1.0)
    errors = run(drive, belt, 1.0, 2.0)
    assert belt.problem(2.0) == ""
    assert np.isfinite(errors).all()
    assert abs(errors[-1, 0]) < 1e-3


def test_stamps_that_stand_say_nothing_new() -> None:
    """The belt runs on as it did, until it is lost: no place jumps."""
    described = conveyor(latency=0.0, offset=0.0)
    belt = Belt(described)
    for k in range(101):
        belt.hear(0.01 * k, 0.1 * k)
    for k in range(1, 16):
        belt.hear(1.0, 10.0 + 0.1 * k)
        belt.advance(1.0 + 0.01 * k)
        assert belt.travel == pytest.approx(0.5 + 0.005 * k, abs=1e-6)
        assert ("its encoder is silent" in belt.problem(1.001 + 0.01 * k)) == (k >= 10)


@pytest.mark.parametrize("leaving", [False, True])
def test_nobody_follows_a_belt_that_says_to_be_far_away(leaving: bool) -> None:
    """The ride ends, or the platform leaves on, where the belt was predicted to be."""
    belt = SimpleNamespace(jumps=0, travel=0.5, speed=0.5, acceleration=0.0, advance=lambda _: None)
    belt.problem = lambda _: ""
    ride = SimpleNamespace(travel=0.0, instants=(0.0, 0.1, 0.9 if leaving else 2.0))
    motion = SimpleNamespace(conveyor=conveyor(), ride=ride, predicted=lambda t: 0.5 * t, speed=0.5, stands=False)
    passenger, clock = Passenger(motion, belt), SimpleNamespace(time=1.0)  # type: ignore[arg-type]
    assert passenger.advance(1.0, clock, False) == ""  # type: ignore[arg-type]
    belt.travel, belt.speed, clock.time = 0.6, 3.0, 1.01
    said = passenger.advance(1.01, clock, False)  # type: ignore[arg-type]
    assert (said == "") if leaving else ("95.0 mm from where it was predicted to be" in said)
    assert passenger._u == pytest.approx(0.505)
    assert passenger._rate == 0.5
