# SPDX-License-Identifier: Apache-2.0
"""Identification of the simulated machine: what a controller measured on an exciting motion goes to the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from pkm_control.controllers.computed_torque import ComputedTorque
from pkm_control.controllers.controller import Reference
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_description.mechanism import Inertial
from pkm_dynamics.identification import ExcitationLimits, Recorded, find_excitation
from pkm_dynamics.identification.__main__ import main
from pkm_dynamics.linear_form.base_parameters import base_parameters
from pkm_hardware.simulated.drive_parts import Encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine

PAYLOAD = 1.5  # kg, which neither controller nor description knows
DT = 1e-3
EFFORT_NOISE = 0.25  # N m


@pytest.mark.slow
def test_the_hidden_payload_of_the_simulated_machine_is_found(
    kinematics, dynamics, limits, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = base_parameters(dynamics)
    excitation = find_excitation(
        dynamics,
        base,
        ExcitationLimits(reach=0.25, velocity=4.0, acceleration=60.0),
        period=4.0,
        evaluations=150,
        seed=1,
    )
    times = np.arange(0.0, 2.0 * excitation.period, DT)
    wanted = excitation.motions(times)
    encoder = Encoder(
        resolution=2.0 * np.pi / 2**17 / 55.0, position_noise=1e-5, velocity_noise=1e-3
    )  # before a gear of 55
    machine = SimulatedMachine(dynamics, limits, encoder=encoder, payload=Inertial(mass=PAYLOAD))
    machine.configure(kinematics.home)
    machine.activate()
    law = ComputedTorque(dynamics, limits)
    observer = PlatformObserver(kinematics)
    positions, efforts = np.empty((2, len(times), 3))
    for k in range(len(times)):
        state = machine.read()
        measured = observer.observe(state.positions, state.velocities)
        assert measured is not None
        positions[k] = state.positions
        efforts[k] = law.command(Reference(wanted.pose[k], wanted.twist[k], wanted.acceleration[k]), measured)
        machine.write(efforts[k])
        machine.step(DT)
    assert not machine.fault
    assert not law.saturations.any()
    # an effort holds from its sample to the next: it is measured in the middle of its period
    middle = 0.5 * (efforts[1:] + efforts[:-1])
    noise = np.random.default_rng(3).normal(0.0, EFFORT_NOISE, middle.shape)
    Recorded(times[1:], positions[1:], middle + noise).save(tmp_path / "recorded.csv", kinematics.actuated_names)

    output = tmp_path / "parameters.yaml"
    assert main(["delta", str(tmp_path / "recorded.csv"), "-o", str(output)]) == 0, capsys.readouterr().err
    text = yaml.safe_load(output.read_text())
    groups = {entry["group"].split()[0]: entry for entry in text["base_parameters"]}
    truth = dict(zip(base.names, base.values(dynamics.parameters.values), strict=True))
    truth["platform.m"] += PAYLOAD
    inside = [e["confidence_95"][0] <= truth[name] <= e["confidence_95"][1] for name, e in groups.items()]
    assert np.mean(inside) > 0.85
    assert groups["platform.m"]["value"] == pytest.approx(truth["platform.m"], rel=0.03)
    for limb in ("limb1", "limb2", "limb3"):
        assert groups[f"{limb}_arm.Iyy"]["value"] == pytest.approx(truth[f"{limb}_arm.Iyy"], rel=0.03)
        assert groups[f"{limb}_arm.coulomb"]["value"] == pytest.approx(1.0, rel=0.1)
    assert text["bodies"]["limb1_a_rod"]["mass"] > 0.0
