# SPDX-License-Identifier: Apache-2.0
"""A worked example on data with noise: what was put in comes out, within the confidence intervals that are claimed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.identification import Excitation, ExcitationLimits, Recorded, find_excitation, identify
from pkm_dynamics.identification.__main__ import main, report
from pkm_dynamics.identification.estimates import ExcitationTooPoorError, estimate, feasible_estimate, pseudo_inertia
from pkm_dynamics.identification.excitation import ExcitationError, turning
from pkm_dynamics.identification.identify import equations
from pkm_dynamics.identification.identify import read as read_parameters
from pkm_dynamics.identification.recorded import RecordingError, read
from pkm_dynamics.linear_form.base_parameters import BaseParameters, base_parameters

POSITION_NOISE = 1e-5  # rad: a good encoder
EFFORT_NOISE = 0.5  # N m


@dataclass(frozen=True, eq=False)
class Case:
    """A Delta with a payload that its description does not know, and recordings of it."""

    dynamics: Dynamics
    base: BaseParameters
    excitation: Excitation
    fresh: Excitation
    truth: Array  # all parameters, payload included

    def record(self, excitation: Excitation, seed: int, effort_noise: float = EFFORT_NOISE) -> Recorded:
        times = np.arange(0.0, 2.0 * excitation.period, 1e-3)
        at = excitation.motions(times)
        actuated = self.dynamics.kinematics.motion(at.pose, at.twist).actuated
        effort = self.dynamics.inverse(at.pose, at.twist, at.acceleration, payload=PAYLOAD).effort
        rng = np.random.default_rng(seed)
        return Recorded(
            times,
            actuated + rng.normal(0.0, POSITION_NOISE, actuated.shape),
            effort + rng.normal(0.0, effort_noise, effort.shape),
        )


PAYLOAD = Inertial(1.5, np.zeros(3), np.diag([2e-3, 2e-3, 1e-3]))


@cache
def delta() -> Case:
    dynamics = Dynamics(load_mechanism("delta"))
    base = base_parameters(dynamics)
    limits = ExcitationLimits(reach=0.25, velocity=4.0, acceleration=60.0)
    excitation = find_excitation(dynamics, base, limits, period=4.0, evaluations=150, seed=1)
    fresh = find_excitation(dynamics, base, limits, period=3.0, evaluations=20, seed=2)
    truth = np.array(dynamics.parameters.values)
    truth[dynamics.parameters.names.index("platform.m")] += PAYLOAD.mass
    return Case(dynamics, base, excitation, fresh, truth)


def test_excitation_keeps_the_limits_and_rests_at_the_ends():
    case = delta()
    times = np.linspace(0.0, 4.0, 401)
    x, u, du = case.excitation.coordinates(times)
    # limits are checked at 60 points per harmonic, between which its peak rises by at most (pi / 60)^2 / 2
    assert np.abs(x).max() <= 0.25 * 1.0014
    assert np.abs(u).max() <= 4.0 * 1.0014
    assert np.abs(du).max() <= 60.0 * 1.0014
    for values in (x, u, du):
        assert np.abs(values[[0, -1]]).max() < 1e-9 * max(1.0, np.abs(values).max())
    at = case.excitation.motions(times)
    motion = case.dynamics.kinematics.motion(at.pose, at.twist, at.acceleration)
    assert motion.ok.all()
    assert np.abs(motion.actuated_velocities).max() < 10.0


def test_optimisation_lowers_the_condition_number():
    case = delta()
    limits = ExcitationLimits(reach=0.25, velocity=4.0, acceleration=60.0)
    first = find_excitation(case.dynamics, case.base, limits, period=4.0, evaluations=1, seed=1)
    assert case.excitation.condition < first.condition


def test_motions_are_their_own_derivatives():
    """Positions and angles of an exciting motion of a six-freedom platform, by difference quotients of fourth order."""
    dynamics = Dynamics(load_mechanism("gough_stewart"))
    rng = np.random.default_rng(3)
    series = rng.normal(size=(6, 7)) * np.array([1.0, *3 * [0.1], *3 * [0.1]]) * 0.3
    excitation = Excitation(dynamics.kinematics, series, 2.0, 0.0)
    h = 1e-3
    at = excitation.motions(0.37 + h * np.arange(-2, 3))
    weights = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / (12.0 * h)
    assert np.abs(weights @ at.twist - at.acceleration[2]).max() < 1e-6
    assert np.abs(weights @ at.pose[:, :3] - at.twist[2, :3]).max() < 1e-7
    rate = weights @ at.pose[:, 3:]
    x, y, z, w = at.pose[2, 3:]
    # body to base: omega = 2 (qdot q^-1)
    found = 2.0 * np.array(
        [
            -rate[3] * x + rate[0] * w - rate[1] * z + rate[2] * y,
            -rate[3] * y + rate[0] * z + rate[1] * w - rate[2] * x,
            -rate[3] * z - rate[0] * y + rate[1] * x + rate[2] * w,
        ]
    )
    assert np.abs(found - at.twist[2, 3:]).max() < 1e-6


def test_turning_is_smooth_where_the_series_takes_over():
    """The closed form and the series of the rotation vector's rate, on both sides of the angle where they change."""
    u, du = np.array([[0.3, -0.2, 0.5]]), np.array([[-1.0, 0.4, 0.7]])
    direction = np.array([[0.6, 0.64, 0.48]])
    below, above = turning(0.00999999 * direction, u, du), turning(0.01000001 * direction, u, du)
    for a, b in zip(below, above, strict=True):
        assert np.abs(a - b).max() < 1e-7


def test_noise_free_data_give_the_parameters():
    case = delta()
    at = case.excitation.motions(np.linspace(0.1, 3.9, 200))
    psi, _ = case.dynamics.regressor(at.pose, at.twist, at.acceleration)
    effort = case.dynamics.inverse(at.pose, at.twist, at.acceleration, payload=PAYLOAD).effort
    found = estimate(psi, effort, case.base)
    assert np.abs(found.values - case.base.values(case.truth)).max() < 1e-6


def test_confidence_intervals_hold_what_they_claim():
    """Over 20 recordings, about 95 % of the intervals contain the truth: the deviation of the share is below 4 %."""
    case = delta()
    at = case.excitation.motions(np.linspace(0.0, 4.0, 300, endpoint=False))
    psi, _ = case.dynamics.regressor(at.pose, at.twist, at.acceleration)
    effort = case.dynamics.inverse(at.pose, at.twist, at.acceleration, payload=PAYLOAD).effort
    truth = case.base.values(case.truth)
    rng = np.random.default_rng(8)
    inside = []
    for _ in range(20):
        found = estimate(psi, effort + rng.normal(0.0, [0.3, 0.6, 0.9], effort.shape), case.base)
        inside.append(np.abs(found.values - truth) <= found.interval)
        assert found.noise == pytest.approx([0.3, 0.6, 0.9], rel=0.25)
    assert abs(np.mean(inside) - 0.95) < 0.04


def test_from_a_noisy_recording_to_parameters_that_predict():
    case = delta()
    found = identify(
        case.dynamics, case.record(case.excitation, 4), base=case.base, validate=case.record(case.fresh, 5)
    )
    truth = case.base.values(case.truth)
    inside = np.abs(found.estimate.values - truth) <= found.estimate.interval
    assert inside.mean() > 0.85
    values = dict(zip(case.base.names, found.estimate.values, strict=True))
    true = dict(zip(case.base.names, truth, strict=True))
    assert values["platform.m"] == pytest.approx(true["platform.m"], rel=0.03)  # the payload is 1.5 of 5.5 kg
    for limb in ("limb1", "limb2", "limb3"):
        assert values[f"{limb}_arm.Iyy"] == pytest.approx(true[f"{limb}_arm.Iyy"], rel=0.03)
        assert values[f"{limb}_arm.coulomb"] == pytest.approx(1.0, rel=0.1)
    assert found.validation is not None
    assert found.validation.relative.max() < 0.02
    assert found.validation.described.min() > 3.0 * found.validation.relative.max()


def test_feasible_parameters_are_those_of_real_bodies():
    case = delta()
    said = equations(case.dynamics, case.record(case.excitation, 6, effort_noise=3.0))
    least = estimate(said.psi, said.efforts, case.base)
    found = feasible_estimate(least, case.dynamics.parameters)
    parameters = case.dynamics.parameters
    for at in parameters.bodies.values():
        matrix = pseudo_inertia(found.values[at : at + 10])
        assert np.linalg.eigvalsh(matrix).min() > -1e-7 * np.abs(matrix).max()
    joints = [k for k, name in enumerate(parameters.names) if name.endswith((".viscous", ".coulomb", ".armature"))]
    assert found.values[joints].min() > -1e-7
    # least squares leaves what real bodies can have: that is what the constraints are for
    free = dict(zip(case.base.names, least.values, strict=True))
    assert min(free[name] for name in free if name.endswith((".viscous", ".coulomb"))) < 0.0
    assert least.values.shape == found.base_values.shape
    assert found.least_squares_residual <= found.residual < 1.1 * found.least_squares_residual
    truth = case.base.values(case.truth)
    assert np.linalg.norm(found.base_values - truth) < np.linalg.norm(least.values - truth)


def test_bodies_stay_near_the_description_in_what_the_motion_does_not_tell():
    """Of a five-bar, few groups of 52 parameters show: masses of the bodies are known from the description alone."""
    dynamics = Dynamics(load_mechanism("five_bar"), friction=False)
    base, prior = base_parameters(dynamics), dynamics.parameters.values
    rng = np.random.default_rng(3)
    motions = Excitation(dynamics.kinematics, 0.03 * rng.normal(size=(2, 7)), 2.0, 0.0).motions(np.arange(0, 2, 0.01))
    psi, _ = dynamics.regressor(motions.pose, motions.twist, motions.acceleration)
    truth = np.array(prior)
    truth[dynamics.parameters.bodies["platform"]] += 0.2
    least = estimate(psi, psi @ truth + rng.normal(0.0, 1e-3, psi.shape[:2]), base)
    found = feasible_estimate(least, dynamics.parameters)
    assert (np.abs(found.base_values - least.values) < 0.3 * least.interval).all()
    for link, at in dynamics.parameters.bodies.items():
        assert found.values[at] == pytest.approx(truth[at], rel=0.5 if link == "platform" else 0.1)


def test_pseudo_inertia_of_a_point_and_of_a_rod():
    """A unit point mass at r has the pseudo-inertia (r, 1)(r, 1)^T."""
    r = np.array([0.3, -0.2, 0.5])
    about = r @ r * np.eye(3) - np.outer(r, r)
    ten = np.array([1.0, *r, *about[np.triu_indices(3)]])
    v = np.append(r, 1.0)
    assert np.abs(pseudo_inertia(ten) - np.outer(v, v)).max() < 1e-15


@pytest.mark.slow
def test_command_writes_a_file_that_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    case = delta()
    names = case.dynamics.kinematics.actuated_names
    case.record(case.excitation, 4).save(tmp_path / "recorded.csv", names)
    case.record(case.fresh, 5).save(tmp_path / "fresh.csv", names)
    output = tmp_path / "parameters.yaml"
    status = main(
        [
            "delta",
            str(tmp_path / "recorded.csv"),
            "-o",
            str(output),
            "--validate",
            str(tmp_path / "fresh.csv"),
        ]
    )
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "52 base parameters" in said.out
    assert "validation: relative error" in said.out
    text = yaml.safe_load(output.read_text())
    assert text["robot"] == "delta"
    assert text["validation"]["limb1_arm"]["relative_error"] < 0.02
    values = read_parameters(output, case.dynamics.parameters)
    truth = case.base.values(case.truth)
    assert case.base.values(values)[0] == pytest.approx(truth[0], rel=0.03)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,position_limb1_arm\n" + 30 * "0,0\n", "effort_limb1_arm"),
        ("time,a\n0,1\n", "at least 20"),
        ("time,a\n0,b\n", "not a table of numbers"),
        ("time\n" + 30 * "0\n", "time does not increase"),
        ("time\n" + "\n".join("nan" for _ in range(30)), "not a finite number"),
    ],
)
def test_bad_recordings_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    assert main(["delta", str(path), "-o", str(tmp_path / "out.yaml")]) == 2
    error = capsys.readouterr().err
    assert said in error or said == "effort_limb1_arm"
    assert error.startswith("pkm identify: ")
    assert not (tmp_path / "out.yaml").exists()


def test_missing_file_and_unknown_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["delta", str(tmp_path / "none.csv"), "-o", "out.yaml"]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["dleta", str(tmp_path / "none.csv"), "-o", "out.yaml"]) == 2
    assert "did you mean delta" in capsys.readouterr().err


def test_a_recording_is_read_again_whatever_its_joints_are_called(tmp_path: Path) -> None:
    names = ('a b,c;"d"', "=1+1", "two\nlines")
    written = Recorded(np.arange(30.0), np.random.default_rng(0).normal(size=(30, 3)), np.ones((30, 3)))
    written.save(tmp_path / "strange.csv", names)
    robot = SimpleNamespace(actuated_names=names)
    np.testing.assert_allclose(read(tmp_path / "strange.csv", robot).positions, written.positions, rtol=1e-9)


def test_controller_recordings_can_be_read(tmp_path: Path):
    """The table that the controller writes: platform poses instead of actuator positions."""
    case = delta()
    at = case.excitation.motions(np.linspace(0.0, 4.0, 50, endpoint=False))
    effort = case.dynamics.inverse(at.pose, at.twist, at.acceleration).effort
    pose = ("x", "y", "z", "qx", "qy", "qz", "qw")
    header = ["time", *(f"measured_{p}" for p in pose), *(f"effort_limb{k}_arm" for k in (1, 2, 3))]
    table = np.column_stack([np.linspace(0.0, 4.0, 50), at.pose, effort])
    path = tmp_path / "recording.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")
    found = read(path, case.dynamics.kinematics)
    wanted = case.dynamics.kinematics.inverse(at.pose).actuated
    assert np.abs(found.positions - wanted).max() < 1e-7
    table[7, 3] = 5.0
    np.savetxt(path, table, delimiter=",", header=",".join(header), comments="", fmt="%.9g")
    with pytest.raises(RecordingError, match="row 9"):
        read(path, case.dynamics.kinematics)


def test_a_motion_that_says_too_little_is_refused():
    case = delta()
    at = case.excitation.motions(np.linspace(0.1, 3.9, 100))
    psi, _ = case.dynamics.regressor(at.pose, np.zeros_like(at.twist), np.zeros_like(at.acceleration))
    with pytest.raises(ExcitationTooPoorError, match="does not excite"):
        estimate(psi, psi @ case.truth, case.base)


def test_limits_that_nothing_keeps():
    case = delta()
    with pytest.raises(ExcitationError, match="reduce the reach"):
        find_excitation(
            case.dynamics, case.base, ExcitationLimits(reach=5.0, velocity=1e3, acceleration=1e5), evaluations=4
        )


def test_a_motion_space_that_turns_is_excited_by_its_actuators():
    dynamics = Dynamics(load_mechanism("tripod_3prs"), friction=False)
    base = base_parameters(dynamics)
    excitation = find_excitation(
        dynamics, base, ExcitationLimits(reach=0.03, velocity=0.5, acceleration=10.0), evaluations=1, samples=30
    )
    at = excitation.motions(np.linspace(0.3, 4.7, 40))
    psi, _ = dynamics.regressor(at.pose, at.twist, at.acceleration)
    effort = dynamics.inverse(at.pose, at.twist, at.acceleration).effort
    assert np.isfinite(effort).all()
    assert (
        np.abs(base.reduce(psi) @ base.values(dynamics.parameters.values) - effort).max() < 1e-7 * np.abs(effort).max()
    )


def test_parameters_that_noise_of_the_positions_bends_are_named() -> None:
    """It is in the regressor, too: of a Gough-Stewart with 1 um of it, half of the intervals missed the true value."""
    dynamics = Dynamics(load_mechanism("five_bar"))
    base = base_parameters(dynamics)
    excitation = find_excitation(dynamics, base, ExcitationLimits(0.12, 2.0, 30.0), period=4.0)
    times = np.arange(0.0, 8.0, 2e-3)
    at = excitation.motions(times)
    effort = dynamics.inverse(at.pose, at.twist, at.acceleration).effort
    actuated = dynamics.kinematics.at(at.pose).actuated
    random = np.random.default_rng(0)
    noisy = effort + 0.02 * random.standard_normal(effort.shape)
    for size, named in ((1e-5, False), (1e-3, True)):
        positions = actuated + size * random.standard_normal(actuated.shape)
        found = identify(dynamics, Recorded(times, positions, noisy), base=base, feasible=False)
        assert bool(found.blurred) == named
        assert set(found.blurred) <= set(base.names)
        assert ("noise of the positions bends" in report(found)) == named


def test_a_recording_with_a_hole_is_refused_with_its_times() -> None:
    """What moved in it was interpolated: of 0.6 s, efforts had fifty times their noise, and nothing said so."""
    whole = delta().record(delta().excitation, seed=1)
    there = (whole.times < 3.0) | (whole.times > 3.6)
    holed = Recorded(whole.times[there], whole.positions[there], whole.efforts[there])
    with pytest.raises(RecordingError, match=r"no samples from 2.999 to 3.60\d s"):
        identify(delta().dynamics, holed, base=delta().base, feasible=False)
    few = np.arange(len(whole.times)) % 100 != 0  # lost samples that the filter passes over
    found = identify(
        delta().dynamics, Recorded(whole.times[few], whole.positions[few], whole.efforts[few]), feasible=False
    )
    assert np.all(found.estimate.noise < 1.5 * EFFORT_NOISE)


def test_efforts_of_exchanged_drives_or_of_another_sign_are_told() -> None:
    good = delta().record(delta().excitation, seed=1)
    for efforts, wrong in ((good.efforts, False), (good.efforts[:, [1, 0, 2]], True), (-good.efforts, True)):
        found = identify(delta().dynamics, Recorded(good.times, good.positions, efforts), base=delta().base)
        assert ("are columns exchanged" in report(found)) == wrong
