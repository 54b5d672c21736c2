# SPDX-License-Identifier: Apache-2.0
"""Encoder, drive loops and end stops, each alone on one joint of known inertia."""

import numpy as np
import pytest

from pkm_hardware.simulated.drive_parts import DriveLoop, Encoder, EndStops

INERTIA = np.array([0.5])
NONE = np.zeros(1)


def test_encoder_rounds_to_its_steps() -> None:
    positions, velocities = Encoder(resolution=0.01).read(np.array([0.123, -0.456]), np.array([1.0, 2.0]))
    np.testing.assert_allclose(positions, [0.12, -0.46])
    np.testing.assert_allclose(velocities, [1.0, 2.0])


def test_encoder_noise_is_as_large_as_stated_and_repeats_with_the_seed() -> None:
    many = np.zeros(20000)
    first = Encoder(position_noise=1e-3, velocity_noise=0.1, seed=4).read(many, many)
    again = Encoder(position_noise=1e-3, velocity_noise=0.1, seed=4).read(many, many)
    np.testing.assert_array_equal(first, again)
    # standard error of a standard deviation from n samples: sigma / sqrt(2 n) = 0.5 %; four of them
    assert first[0].std() == pytest.approx(1e-3, rel=0.02)
    assert first[1].std() == pytest.approx(0.1, rel=0.02)


def test_encoder_refuses_negative_settings() -> None:
    with pytest.raises(ValueError, match="zero or more"):
        Encoder(resolution=-1.0)


def follow(
    command, seconds: float, mode: str, load: float = 0.0, every: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integrate one joint under its drive, `load` [N m] being known to it, commanded every so many steps of 0.1 ms.

    Returns:
        Positions, velocities and efforts.
    """
    drive, q, v, dt = DriveLoop(np.diag(INERTIA)), np.zeros(1), np.zeros(1), 1e-4
    trace = []
    for k in range(int(seconds / dt)):
        wanted = np.array([command(k * dt)])
        weight = np.array([load])
        if mode == "position" and k % every == 0:
            drive.take(wanted, k * dt, k * dt)
        effort = drive.velocity(wanted, v, weight) if mode == "velocity" else drive.position(q, v, weight, dt)
        v = v + dt * (effort - load) / INERTIA
        q = q + dt * v
        trace.append((q[0], v[0], effort[0]))
    return np.array(trace).T


def test_drive_reaches_a_position_without_overshoot() -> None:
    q, _, _ = follow(lambda t: 1.0, 0.3, "position", load=3.0)
    assert q[-1] == pytest.approx(1.0, abs=1e-6)
    q, _, _ = follow(lambda t: min(1.0, 10.0 * t), 0.4, "position")
    assert q.max() < 1.0 + 2 * 10.0 / 300.0  # a command that stops dead from 10 rad/s: the way of two time constants


def test_drive_follows_a_moving_position_without_lasting_lag() -> None:
    q, _, _ = follow(lambda t: 2.0 * t, 0.5, "position")
    assert q[-1] == pytest.approx(2.0 * 0.5, abs=1e-3)


@pytest.mark.parametrize("every", [40, 100, 200])
def test_positions_at_a_low_rate_are_a_path_and_no_stairs(every: int) -> None:
    """At 250, 100 and 50 Hz: there when the next command comes, with the effort that this takes.

    From chord to chord the rate steps by the acceleration times the period, which the drive makes up for.
    """
    period = 1e-4 * every
    q, _, effort = follow(lambda t: 0.2 * (1.0 - np.cos(5.0 * (t + period))), 2.0, "position", every=every)
    times = 1e-4 * (1.0 + np.arange(len(q)))
    late = times > 0.3  # it begins with a jump
    assert np.abs(q - 0.2 * (1.0 - np.cos(5.0 * times)))[late].max() < 0.02
    assert np.abs(effort[late]).max() < 1.1 * (1.0 + 300.0 * period / np.e) * 0.2 * 5.0**2 * INERTIA[0]


def test_of_two_positions_at_one_time_the_newer_counts() -> None:
    efforts = []
    for doubled in (False, True):
        drive, place, still = DriveLoop(np.diag(INERTIA)), np.array([1.0]), np.zeros(1)
        for k, goal in enumerate((1.0, 1.01, 1.03)):
            if doubled:
                drive.take(place + 0.5, 1e-2 * k, 1e-2 * k)
            drive.take(np.array([goal]), 1e-2 * k, 1e-2 * k)
            given = [drive.position(place, still, still, 1e-3) for _ in range(10)]
        efforts.append(given)
    np.testing.assert_array_equal(*efforts)


@pytest.mark.parametrize("period", [1e-3, 4e-3])
def test_jitter_of_commands_on_their_way_is_no_motion(period: float) -> None:
    """Each answers a reading, and comes one to three periods after it; of those that come together the newest counts.

    Where none is late the drive needs 9.7 N m; taken for when they come, such commands cost 85 N m and more.
    """
    random, amplitude, speed, h = np.random.default_rng(5), 0.3, 8.0, 1e-4
    drive, q, v = DriveLoop(np.diag(INERTIA)), np.zeros(1), np.zeros(1)
    on_the_way: list[tuple[int, int]] = []
    places, efforts = [], []
    for k in range(round(2.0 / period)):
        on_the_way.append((k + random.choice([1, 2, 3], p=[0.5, 0.3, 0.2]), k))
        here = [of for comes, of in on_the_way if comes <= k]
        if here:
            answers = max(here)
            on_the_way = [pair for pair in on_the_way if pair[1] > answers]
            goal = amplitude * (1.0 - np.cos(speed * answers * period))
            drive.take(np.array([goal]), answers * period, k * period)
        for _ in range(round(period / h)):
            effort = drive.position(q, v, NONE, h)
            v = v + h * effort / INERTIA
            q = q + h * v
            efforts.append(effort[0])
        places.append(q[0])
    times, late = period * (1.0 + np.arange(len(places))), slice(len(places) // 4, None)
    usual = amplitude * speed**2 * INERTIA[0]
    assert np.abs(efforts[len(efforts) // 4 :]).max() < (1.5 if period < 2e-3 else 3.0) * usual
    errors = [
        np.abs(np.array(places) - amplitude * (1.0 - np.cos(speed * (times - lag))))[late].max()
        for lag in period * np.arange(1.0, 4.0, 0.1)
    ]
    assert min(errors) < 0.01 * amplitude  # all of it the same time late


def test_a_drive_that_is_commanded_nothing_new_stops_soon() -> None:
    drive, still = DriveLoop(np.diag(INERTIA)), np.zeros(1)
    for k in range(20):
        drive.take(np.array([1e-3 * k]), 1e-3 * k, 1e-3 * k)
        drive.position(np.array([1e-3 * k]), still, still, 1e-3)
    stays = np.array([19e-3 + 2e-3])  # the way of two more periods
    given = [drive.position(stays, still, still, 1e-3)[0] for _ in range(60)]
    assert np.abs(given[-1]) < 1e-6 * np.abs(given[0])


def test_drive_reaches_a_velocity_with_its_bandwidth() -> None:
    _, v, _ = follow(lambda t: 2.0, 0.05, "velocity", load=-3.0)
    assert v[int(1 / 300 / 1e-4)] == pytest.approx(2.0 * (1 - np.exp(-1)), rel=0.03)
    assert v[-1] == pytest.approx(2.0, rel=1e-3)


def test_end_stop_is_silent_inside_and_stops_what_hits_it() -> None:
    step = 1e-3
    stops = EndStops(np.array([-1.0]), np.array([1.0]), INERTIA, step)
    np.testing.assert_array_equal(stops.efforts(np.array([0.999]), np.array([50.0])), NONE)
    for direction in (1.0, -1.0):
        q, v = np.array([direction * 0.99]), np.array([direction * 3.0])
        furthest, energies = 0.0, []
        for _ in range(2000):
            v = v + step * stops.efforts(q, v) / INERTIA
            q = q + step * v
            furthest = max(furthest, direction * q[0])
            energies.append(0.5 * INERTIA[0] * v[0] ** 2)
        assert furthest < 1.0 + 3.0 * 2 * step  # about the way of two steps
        assert direction * q[0] <= 1.0  # pushed back inside, not glued to the stop
        assert energies[-1] < 0.5 * INERTIA[0] * 9.0 * 0.2  # and with little of its energy


def test_end_stop_never_pulls() -> None:
    stops = EndStops(np.array([-1.0]), np.array([1.0]), INERTIA, 1e-3)
    assert stops.efforts(np.array([1.01]), np.array([-100.0]))[0] == 0.0
    assert stops.efforts(np.array([-1.01]), np.array([100.0]))[0] == 0.0
    np.testing.assert_array_equal(
        EndStops(np.array([-np.inf]), np.array([np.inf]), INERTIA, 1e-3).efforts(np.array([1e6]), NONE), NONE
    )
