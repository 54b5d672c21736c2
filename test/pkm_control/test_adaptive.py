# SPDX-License-Identifier: Apache-2.0
"""The adaptive law on a simulated Delta that carries a payload its model does not know."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_control.controllers.adaptive import FASTEST, Adaptive
from pkm_control.controllers.controller import Controller, Measured, Reference
from pkm_control.controllers.pd_gravity import PdGravity
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import displace

DT = 1e-3
PERIOD = 0.8  # s, of the motion
PAYLOAD = Inertial(mass=1.5)


def reference(kinematics, t: float) -> Reference:
    """A tilted circle of 80 mm radius, twisted into a figure that repeats every 0.8 s; it starts from home at rest."""
    w = 2.0 * np.pi / PERIOD
    ramp = np.clip(t / PERIOD, 0.0, 1.0)
    size = 0.08 * ramp**3 * (10.0 - 15.0 * ramp + 6.0 * ramp**2)
    rate = 0.08 * 30.0 * ramp**2 * (1.0 - ramp) ** 2 / PERIOD
    second = 0.08 * 60.0 * ramp * (1.0 - ramp) * (1.0 - 2.0 * ramp) / PERIOD**2
    k = w * np.array([1.0, 1.0, 2.0])
    phase = np.array([0.0, 0.5 * np.pi, 0.0])
    f, df, ddf = np.sin(k * t + phase), k * np.cos(k * t + phase), -(k**2) * np.sin(k * t + phase)
    pose = np.array(kinematics.home)
    pose[:3] += size * f
    twist, acceleration = np.zeros(6), np.zeros(6)
    twist[:3] = rate * f + size * df
    acceleration[:3] = second * f + 2.0 * rate * df + size * ddf
    return Reference(pose, twist, acceleration)


def run(kinematics, dynamics, limits, controller: Controller, seconds: float) -> np.ndarray:
    """Tracking error (n,) of the platform [m] with the payload on the machine."""
    machine = SimulatedMachine(dynamics, limits, payload=PAYLOAD)
    machine.configure(kinematics.home)
    machine.activate()
    observer = PlatformObserver(kinematics, kinematics.home)
    errors = []
    for k in range(round(seconds / DT)):
        state = machine.read()
        measured = observer.observe(state.positions, state.velocities)
        assert measured is not None
        wanted = reference(kinematics, k * DT)
        errors.append(np.linalg.norm(measured.pose[:3] - wanted.pose[:3]))
        machine.write(controller.command(wanted, measured))
        machine.step(DT)
    return np.array(errors)


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.fixture(scope="module")
def smooth(kinematics):
    return Dynamics(kinematics, friction=False)


def test_error_shrinks_while_the_payload_is_learned(kinematics, smooth, limits) -> None:
    """The platform's mass is found, and the error falls to what the right mass leaves from the start.

    That rest comes from efforts that are held for a control period.
    """
    law = Adaptive(smooth, limits, 60.0, adaptation_time=0.02)
    assert law.adapt[0] == "platform.m"
    before = law.adapted["platform.m"]
    errors = run(kinematics, smooth, limits, law, 3 * PERIOD)
    n = round(PERIOD / DT)
    last = rms(errors[-n:])
    learning_nothing = Adaptive(smooth, limits, 60.0, adapt=("platform.m",), adaptation_time=1e9)
    unlearned = rms(run(kinematics, smooth, limits, learning_nothing, 2 * PERIOD)[-n:])
    knowing = Adaptive(smooth, limits, 60.0, adapt=("platform.m",), adaptation_time=1e9)
    knowing.parameters[smooth.parameters.names.index("platform.m")] += PAYLOAD.mass
    rest = rms(run(kinematics, smooth, limits, knowing, 2 * PERIOD)[-n:])
    assert unlearned > 2.0 * rest
    assert last < 1.1 * rest
    assert law.adapted["platform.m"] - before == pytest.approx(PAYLOAD.mass, rel=0.05)
    assert not law.saturations.any()


@pytest.mark.slow
def test_without_adaptation_the_error_stays(kinematics, smooth, limits) -> None:
    law = Adaptive(smooth, limits, 60.0, adapt=("platform.m",), adaptation_time=1e9)
    errors = run(kinematics, smooth, limits, law, 3 * PERIOD)
    n = round(PERIOD / DT)
    assert rms(errors[-n:]) > 0.8 * rms(errors[n : 2 * n])
    lagging = run(kinematics, smooth, limits, PdGravity(smooth, limits, 60.0), 3 * PERIOD)
    assert rms(errors[-n:]) < rms(lagging[-n:])


@pytest.mark.slow
def test_all_base_parameters_can_be_learned_at_once(kinematics, limits) -> None:
    """Friction included; what one repeated motion does not show stays as it is, and the error still shrinks."""
    dynamics = Dynamics(kinematics)
    law = Adaptive(dynamics, limits, 60.0, adapt="all", adaptation_time=0.05)
    assert len(law.adapt) == 52
    errors = run(kinematics, dynamics, limits, law, 9 * PERIOD)
    n = round(PERIOD / DT)
    assert rms(errors[-n:]) < 0.3 * rms(errors[n // 2 : n])
    assert all(value >= 0.0 for name, value in law.adapted.items() if name.endswith((".m", ".viscous", ".coulomb")))


@pytest.mark.parametrize("name", ["delta", "gough_stewart_7"])
def test_learning_is_never_faster_than_a_quarter_of_the_feedback(name: str) -> None:
    """Also of redundant actuators, whose mass matrix is singular: the inverse of its rounding threw cable robots."""
    dynamics = Dynamics(Kinematics(load_mechanism(name)), friction=False)
    kinematics, random = dynamics.kinematics, np.random.default_rng(1)
    limits = ActuatorLimits.of(dynamics.mechanism)
    limits.effort[:] = np.inf
    law = Adaptive(dynamics, limits, 60.0)
    home, still = np.array(kinematics.home), np.zeros(6)
    space = np.asarray(kinematics.subspace(home))
    rates = np.zeros(len(kinematics.actuated_names))
    mass_at, learned = law._mass_at, []

    def rounded(measured: Measured) -> Array:  # as where the weight is a hundred times the inertia
        mass = mass_at(measured)
        return mass + 1e-14 * np.abs(mass).max() * random.uniform(-1.0, 1.0, mass.shape)

    law._mass_at = rounded  # type: ignore[method-assign]
    for _ in range(100):
        pose = displace(home, space @ random.uniform(-0.1, 0.1, space.shape[1]))
        here = kinematics.inverse(pose)
        measured = PlatformObserver(kinematics, pose).observe(np.array(here.actuated), rates) if here.ok else None
        if measured is None:
            continue
        law.reset()
        before = law.parameters.copy()
        there = displace(pose, space @ random.uniform(-1e-3, 1e-3, space.shape[1]))
        acceleration = space @ random.uniform(-500.0, 500.0, space.shape[1])
        law.command(Reference(there, still, acceleration), measured)
        psi, _ = dynamics.regressor(there, still, acceleration)
        K = law.viscosity * mass_at(measured)
        sliding = law.slope * (np.asarray(kinematics.inverse(there).actuated) - measured.positions)
        gained = psi @ (law.parameters - before)
        learned.append(gained @ np.linalg.pinv(K, 1e-9) @ gained / (sliding @ K @ sliding))
    assert len(learned) > 50
    assert 0.0 < np.sqrt(max(learned)) < 1.01 * FASTEST * law.viscosity * law.period


def test_learning_pauses_while_cables_cannot_give_what_is_asked() -> None:
    """Although no effort that is asked for is beyond its drive's largest."""
    dynamics = Dynamics(Kinematics(load_mechanism("cable_8")))
    kinematics, random = dynamics.kinematics, np.random.default_rng(1)
    law = Adaptive(dynamics, ActuatorLimits.of(dynamics.mechanism), 60.0)
    home = np.array(kinematics.home)
    measured = PlatformObserver(kinematics).observe(kinematics.inverse(home).actuated, np.zeros(8))
    assert measured is not None
    before = law.adapted
    for _ in range(200):
        asked = Reference(displace(home, random.normal(scale=0.01, size=6)), np.zeros(6), np.zeros(6))
        law.command(asked, measured)
        if law.sharing.short and (np.abs(law.law(asked, measured)) < law.limits.effort).all():
            assert law.adapted == before
            return
        law.reset()
    raise AssertionError("every motion was within what the cables can do")


def test_learning_pauses_while_saturated_and_can_be_forgotten(kinematics, smooth, limits) -> None:
    law = Adaptive(smooth, limits, 500.0, adapt=("platform.m",))
    observer = PlatformObserver(kinematics)
    measured = observer.observe(kinematics.inverse(kinematics.home).actuated, np.zeros(3))
    assert measured is not None
    still = np.zeros(6)
    pose = np.array(kinematics.home)
    before = law.adapted
    pose[2] += 0.05
    law.command(Reference(pose, still, still), measured)
    assert law.saturated.any()
    assert law.adapted == before
    pose[2] -= 0.0499
    law.command(Reference(pose, still, still), measured)
    assert not law.saturated.any()
    assert law.adapted != before
    law.reset()
    assert law.adapted == before


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"period": 0.0}, "period"),
        ({"adaptation_time": -1.0}, "adaptation_time"),
        ({"damping": 0.0}, "damping"),
        ({"adapt": ("platform.mass",)}, "platform.mass"),
        ({"adapt": ()}, "adapt"),
        ({"adapt": "everything"}, "everything"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kinematics, smooth, limits, settings, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Adaptive(smooth, limits, **settings)
