# SPDX-License-Identifier: Apache-2.0
"""Control laws on the simulated Delta: the closed loop behaves as its two numbers say."""

from pathlib import Path

import numpy as np
import pytest

from pkm_control.controllers.adaptive import Adaptive
from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import ControlModel, Reference
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_control.operator_interface import EFFORT_LAWS, PHASE_MARGIN, highest_natural_frequency
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.weight import actuator_mass_matrix, free_inertia
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

STILL = np.zeros(6)
DT = 1e-3


@pytest.fixture(scope="module")
def smooth(kinematics):
    """Dynamics without friction, so that linear theory is exact."""
    return Dynamics(kinematics, friction=False)


def at_rest(pose) -> Reference:
    return Reference(pose, STILL, STILL)


def settle(kinematics, dynamics, limits, controller, start, target, seconds: float, payload=None) -> np.ndarray:
    """Return the position error (n, 3) of the platform while it goes from `start` to rest at `target`."""
    machine = SimulatedMachine(dynamics, limits, payload=payload)
    machine.configure(start)
    machine.activate()
    observer = PlatformObserver(kinematics, start)
    errors = []
    for _ in range(round(seconds / DT)):
        state = machine.read()
        measured = observer.observe(state.positions, state.velocities)
        assert measured is not None
        errors.append(measured.pose[:3] - target[:3])
        machine.write(controller.command(at_rest(target), measured))
        machine.step(DT)
    return np.array(errors)


def moved(kinematics, offset) -> np.ndarray:
    pose = kinematics.home.copy()
    pose[:3] += offset
    return pose


@pytest.mark.parametrize("model_at", ["measured", "reference"])
@pytest.mark.parametrize("space", ["task", "actuator"])
@pytest.mark.parametrize("damping", [0.5, 1.0])
def test_errors_of_computed_torque_decay_as_a_linear_oscillator(
    kinematics, smooth, limits, space: str, model_at: str, damping: float
) -> None:
    omega = 40.0
    law = ComputedTorque(smooth, limits, omega, damping, space, model_at)
    start = moved(kinematics, [0.002, -0.001, 0.003])
    errors = settle(kinematics, smooth, limits, law, start, kinematics.home, 0.15)
    t = np.arange(len(errors)) * DT
    if damping == 1.0:
        shape = (1.0 + omega * t) * np.exp(-omega * t)
    else:
        fast = omega * np.sqrt(1.0 - damping**2)
        shape = np.exp(-damping * omega * t) * (np.cos(fast * t) + damping * omega / fast * np.sin(fast * t))
    # efforts are held for a period, which delays them by half of it: omega dt / 2 = 2 %
    np.testing.assert_allclose(errors, shape[:, None] * errors[0], atol=0.04 * np.abs(errors[0]).max())
    assert not law.saturations.any()


@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros(4), np.zeros((1, 3)), 0.0, [0.0] * 4])
def test_a_law_of_the_wrong_shape_is_left_to_the_guard(kinematics, smooth, limits, monkeypatch, wrong) -> None:
    """Compiled code would write beyond the end of its arrays, and the process would end some time later."""

    class Wrong(ComputedTorque):
        def law(self, reference, measured):
            return wrong

    law, machine = Wrong(smooth, limits), SimulatedMachine(smooth, limits)
    machine.configure()
    state = machine.read()
    measured = PlatformObserver(kinematics, kinematics.home).observe(state.positions, state.velocities)
    monkeypatch.setattr(law.sharing, "share", lambda *_: pytest.fail("it reached compiled code"))
    assert np.shape(law.command(at_rest(kinematics.home), measured)) == np.shape(wrong)


def test_a_plan_of_the_wrong_shape_is_not_used(kinematics, smooth, limits, monkeypatch) -> None:
    class Wrong(ComputedTorque):
        def law(self, reference, measured):
            return 10.0 * limits.effort

        def planned(self, reference, measured):
            return np.zeros(4)

    law, machine = Wrong(smooth, limits), SimulatedMachine(smooth, limits)
    machine.configure()
    state = machine.read()
    measured = PlatformObserver(kinematics, kinematics.home).observe(state.positions, state.velocities)
    monkeypatch.setattr(law.sharing, "towards", lambda *_: pytest.fail("it reached compiled code"))
    assert np.shape(law.command(at_rest(kinematics.home), measured)) == (3,)
    assert law.saturated.all()


def test_pd_with_gravity_holds_and_returns(kinematics, smooth, limits) -> None:
    law = PdGravity(smooth, limits, 40.0, 1.0)
    start = moved(kinematics, [0.02, -0.01, 0.03])
    errors = settle(kinematics, smooth, limits, law, start, kinematics.home, 0.6)
    assert np.linalg.norm(errors[-1]) < 1e-6
    held = settle(kinematics, smooth, limits, law, kinematics.home, kinematics.home, 0.1)
    assert np.abs(held).max() < 1e-9


def test_efforts_saturate_and_that_is_told(kinematics, smooth, limits) -> None:
    law = ComputedTorque(smooth, limits, 500.0)
    observer = PlatformObserver(kinematics)
    measured = observer.observe(kinematics.inverse(kinematics.home).actuated, np.zeros(3))
    assert measured is not None
    efforts = law.command(at_rest(moved(kinematics, [0.0, 0.0, 0.05])), measured)
    assert (np.abs(efforts) <= limits.effort).all()
    assert law.saturated.all()
    np.testing.assert_array_equal(law.saturations, 1)
    law.command(at_rest(kinematics.home), measured)
    assert not law.saturated.any()
    np.testing.assert_array_equal(law.saturations, 1)


def test_the_exact_model_at_the_reference_needs_no_correction(kinematics, smooth, limits) -> None:
    """On the reference itself the law is inverse dynamics, whatever the gains."""
    pose, twist = moved(kinematics, [0.05, 0.02, 0.01]), np.array([1.0, -0.5, 0.3, 0, 0, 0])
    acceleration = np.array([10.0, 5.0, -7.0, 0, 0, 0])
    motion = kinematics.motion(pose, twist)
    observer = PlatformObserver(kinematics, pose)
    measured = observer.observe(motion.actuated, motion.actuated_velocities)
    assert measured is not None
    np.testing.assert_allclose(measured.twist, twist, atol=1e-9)
    wanted = smooth.inverse(pose, twist, acceleration).effort
    for space in ("task", "actuator"):
        law = ComputedTorque(smooth, limits, 300.0, 1.0, space)
        np.testing.assert_allclose(law.law(Reference(pose, twist, acceleration), measured), wanted, rtol=1e-6)


def test_inertia_in_the_actuators_is_what_direct_dynamics_shows(kinematics, smooth) -> None:
    pose = moved(kinematics, [0.1, -0.05, 0.02])
    n = len(kinematics.actuated_names)
    jacobian = kinematics.at(pose).inverse_jacobian[:, :3]
    # the platform's acceleration per effort, by direct dynamics, inverted
    response = np.array(
        [
            smooth.direct(pose, STILL, np.eye(n)[i]).acceleration - smooth.direct(pose, STILL, np.zeros(n)).acceleration
            for i in range(n)
        ]
    )[:, :3].T
    per_effort = jacobian @ response
    mass = actuator_mass_matrix(smooth, pose)
    np.testing.assert_allclose(mass, np.linalg.inv(per_effort), rtol=1e-8, atol=1e-8 * mass.max())
    np.testing.assert_allclose(free_inertia(smooth, pose), 1.0 / np.diag(per_effort), rtol=1e-8)
    several = actuator_mass_matrix(smooth, [kinematics.home, pose])
    np.testing.assert_allclose(several[1], mass, rtol=1e-12)


def test_an_observer_that_gets_nonsense_says_so_and_keeps_its_place(kinematics) -> None:
    observer = PlatformObserver(kinematics)
    good = kinematics.inverse(kinematics.home).actuated
    assert observer.observe(good, np.zeros(3)) is not None
    assert observer.observe(np.array([0.0, np.nan, 0.0]), np.zeros(3)) is None
    assert "not finite" in observer.reason
    np.testing.assert_array_equal(observer.pose, kinematics.home)
    assert observer.observe(np.array([-3.0, 3.0, 3.0]), np.zeros(3)) is None  # no platform reaches all three rods
    assert observer.reason.startswith("forward kinematics: ")
    np.testing.assert_array_equal(observer.pose, kinematics.home)
    assert observer.observe(good, np.zeros(3)) is not None
    assert observer.reason == ""


def test_readings_beside_one_before_which_a_singularity_lies_are_not_searched_again(of_gallery, monkeypatch) -> None:
    k = of_gallery["gough_stewart"].kinematics
    asked, search = [], k.continued
    monkeypatch.setattr(k, "continued", lambda *where: asked.append(1) or search(*where))
    observer, still, apart = PlatformObserver(k), np.zeros(6), np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    good = k.inverse(k.home).actuated
    assert observer.observe(good, still) is not None
    for noise in 1e-3 * np.random.default_rng(2).standard_normal((50, 6)):
        assert observer.observe(good + 0.5 * apart + noise, still) is None
        assert observer.singular
    assert len(asked) == 1
    for way in (0.45, 0.55):  # nearer, and farther
        assert observer.observe(good + way * apart, still) is None
    assert len(asked) == 3
    assert observer.observe(good + 1e-3 * apart, still) is not None


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"natural_frequency": 0.0}, "natural_frequency"),
        ({"natural_frequency": float("nan")}, "natural_frequency"),
        ({"damping": -1.0}, "damping"),
        ({"space": "joint"}, "space"),
        ({"model_at": "noon"}, "model_at"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kinematics, smooth, limits, settings, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        ComputedTorque(smooth, limits, **settings)


def test_every_law_has_a_name_and_a_line_in_the_docs(smooth, limits) -> None:
    text = (Path(__file__).parents[2] / "docs" / "control.md").read_text()
    for law, kind in zip(EFFORT_LAWS, (ComputedTorque, PdGravity, Adaptive), strict=True):
        assert type(make_controller(law, smooth, limits, DT)) is kind
        assert f"| `{law}`, `{kind.__name__}` |" in text
    with pytest.raises(ValueError, match="law is 'guesswork', not one of computed_torque"):
        make_controller("guesswork", smooth, limits, DT)


@pytest.mark.parametrize("damping", [0.5, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("delay", [0.5, 1.5, 3.0])
def test_the_highest_natural_frequency_leaves_its_phase_margin(damping: float, delay: float) -> None:
    """The loop's own frequency response, on a fine grid: where it crosses one, and what is left of the phase there."""
    period = 1e-3
    omega = highest_natural_frequency(period, damping, delay)
    s = 1j * np.geomspace(0.01, 100.0, 200_001) * omega
    loop = (2.0 * damping * omega * s + omega**2) / s**2 * np.exp(-s * delay * period)
    crossing = np.flatnonzero(np.abs(loop) < 1.0)[0]
    assert np.angle(-loop[crossing]) == pytest.approx(PHASE_MARGIN, abs=1e-3)


def test_a_loop_at_its_highest_natural_frequency_settles_with_a_heavier_platform(kinematics, smooth, limits) -> None:
    """What the margin is for: half the platform's mass more than the model knows, and it comes to rest."""
    platform = next(link for link in kinematics.mechanism.links if link.name == kinematics.mechanism.platform_link)
    omega = highest_natural_frequency(DT, 1.0, 0.5)
    law = ComputedTorque(smooth, limits, omega)
    start = moved(kinematics, [1e-4, 0.0, 1e-4])
    errors = np.abs(
        settle(
            kinematics, smooth, limits, law, start, kinematics.home, 0.2, Inertial(mass=0.5 * platform.inertial.mass)
        )
    )
    # gravity of what is not known holds the platform off by g / omega^2 times its share of the mass
    assert np.ptp(errors[-20:], axis=0).max() < 1e-7


@pytest.mark.parametrize("name", ["capaman", "wrist_3ruu"])
def test_a_platform_that_is_found_far_away_has_drives_there(name: str) -> None:
    """Led by hand while drives were off: limbs solved by iteration go on from the last pose, which was too far."""
    dynamics = Dynamics(load_mechanism(name))
    k = dynamics.kinematics
    model = ControlModel(dynamics)
    home = k.inverse(k.home).actuated
    drives = home + np.random.default_rng(1).uniform(-0.4, 0.4, (100, len(home)))
    found = k.forward(drives)
    there = k.inverse(found.pose[found.ok], mode=0)
    poses, expected = found.pose[found.ok][there.ok], there.actuated[there.ok]
    assert len(poses) > 60
    for pose, positions in zip(poses, expected, strict=True):
        np.testing.assert_allclose(model.positions(np.array(pose)), positions, atol=1e-9)
        turned = ControlModel(dynamics, 0, np.array(k.inverse(pose).joints), np.array(pose))
        np.testing.assert_allclose(turned.positions(np.array(pose)), positions, atol=1e-9)
