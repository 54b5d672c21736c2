# SPDX-License-Identifier: Apache-2.0
"""A machine that is not what its description says: how it differs, always the same, and controllers bear it."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_bringup import bringup
from pkm_bringup.main_job import plan_cycle, run_motion, simulated_loop
from pkm_client.client_errors import RefusedError
from pkm_client.robot import Robot
from pkm_control.loop.control_loop import switch_on
from pkm_control.loop_settings import Setup
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.planning import MotionPlanner
from pkm_control.operator_interface import Mode
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_dynamics.weight import actuator_mass_matrix
from pkm_hardware import machine_kinds
from pkm_hardware.simulated.drive_parts import Encoder, realistic_encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine, heavier, realistic_machine
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_viewer.report.report import Report


def test_links_are_heavier_and_nothing_else_is(mechanism, dynamics) -> None:
    other = Dynamics(heavier(mechanism, machine_kinds.HEAVIER))
    home = np.asarray(dynamics.kinematics.home)
    np.testing.assert_allclose(other.kinematics.home, home)
    weight = dynamics.gravity(home).effort
    np.testing.assert_allclose(other.gravity(home).effort, machine_kinds.HEAVIER * np.asarray(weight), rtol=1e-9)
    assert ActuatorLimits.of(other.mechanism).effort == pytest.approx(ActuatorLimits.of(mechanism).effort)


def test_a_command_acts_when_the_next_has_come(dynamics, limits) -> None:
    machine = SimulatedMachine(dynamics, limits, delay=1)
    machine.configure()
    machine.activate()
    for sent, applied in ((1.0, 0.0), (2.0, 1.0), (3.0, 2.0)):
        machine.write(np.full(3, sent))
        machine.step(1e-3)
        np.testing.assert_array_equal(machine.read().efforts, np.full(3, applied))
    machine.deactivate()
    machine.activate()
    machine.write(np.full(3, 9.0))
    machine.step(1e-3)
    assert not machine.read().efforts.any()  # what was sent before the brakes closed is forgotten
    with pytest.raises(ValueError, match="delay"):
        SimulatedMachine(dynamics, limits, delay=-1)


def test_encoders_differ_for_what_turns_and_what_slides() -> None:
    encoder = realistic_encoder(ActuatorLimits.of(load_mechanism("hexaglide")))
    assert np.unique(encoder.resolution) == pytest.approx(machine_kinds.LINEAR_STEP)
    mixed = Encoder(np.array([0.01, 0.0]))
    np.testing.assert_allclose(mixed.read(np.array([0.123, 0.123]), np.zeros(2))[0], [0.12, 0.123])


@pytest.mark.slow
@pytest.mark.by_day("gough_stewart")
@pytest.mark.parametrize("name", ["delta", "gough_stewart", "agile_eye"])
def test_controllers_bear_it_and_the_run_is_the_same_each_time(name: str) -> None:
    mechanism = load_mechanism(name)
    errors = []
    for _ in range(2):
        loop = simulated_loop(mechanism, machine=realistic_machine(mechanism))
        planner = MotionPlanner(loop.dynamics, loop.limits, reserve=machine_kinds.RESERVE)
        job = plan_cycle(planner, motion_named("auto", loop.kinematics))
        switch_on(loop)
        run_motion(loop, job.approach, recorded=False)
        report = Report.of(run_motion(loop, job.cycle))
        assert not report.faults
        assert report.position_max < 2e-3
        assert report.attitude_max < 5e-3
        errors.append((report.position_rms, report.attitude_rms))
    assert errors[0] == errors[1]
    assert max(errors[0]) > 1e-5  # a perfect machine of these leaves less


def test_a_run_over_ros_tells_its_nodes() -> None:
    nodes = {node.name: node for node in bringup.NODES}
    on, off = bringup.defaults(realistic="true"), bringup.defaults()
    assert bringup.parameters(nodes["hardware"], on)["realistic"] is True
    assert bringup.parameters(nodes["controller"], on)["command_delay"] == 2.0
    assert bringup.parameters(nodes["controller"], off)["command_delay"] == 1.0  # the way over ROS
    assert bringup.parameters(nodes["control"], on)["command_delay"] == 1.0
    assert "command_delay" not in bringup.parameters(nodes["control"], off)
    player = bringup.parameters(nodes["motion_player"], on)
    assert machine_kinds.NOTE in player["notes"]
    assert player["reserve"] == machine_kinds.RESERVE
    assert machine_kinds.NOTE not in bringup.parameters(nodes["motion_player"], off)["notes"]
    yours = bringup.defaults(realistic="true", hardware="none")
    assert machine_kinds.NOTE not in bringup.parameters(nodes["motion_player"], yours)["notes"]


@pytest.mark.parametrize("about", [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0)])
def test_a_hexapod_with_noise_is_jogged_to_its_border_and_stays_there(about: tuple[float, float, float]) -> None:
    with Robot.simulated("gough_stewart", realtime=False, setup=Setup(realistic=True)) as robot:
        fastest = {joint.name: joint.limits.velocity for joint in robot.mechanism.joints}
        assert "so near a type 2 singularity" in robot.jog(angular=about, seconds=3.0).result().reason
        for _ in range(20):
            robot.wait(0.1)
            state = robot.state
            assert state.mode is Mode.HOLDING, state.reason
            assert all(abs(rate) < 0.2 * fastest[name] for name, rate in state.velocities.items())
        nearer = displace(np.array(state.reference), np.array([0.0, 0.0, 0.0, *(0.03 * np.array(about))]))
        with pytest.raises(RefusedError, match="noise of encoders"):
            robot.move_to(nearer)


@pytest.mark.by_day(0.5)
@pytest.mark.parametrize(("name", "about"), [("delta", 0.0), ("gough_stewart", 0.0), ("gough_stewart", 0.5)])
def test_noise_takes_the_efforts_that_motions_are_judged_by(name: str, about: float) -> None:
    """As measured while a machine with noise holds; the loop adds a little to what its gains alone make of it."""
    with Robot.simulated(name, realtime=False, setup=Setup(realistic=True)) as robot:
        if about:
            robot.jog(angular=(about, 0.0, 0.0), seconds=3.0).result()
        robot.wait(1.0)
        loop = robot._backend.loop
        law, efforts = loop.controller.law, []

        def listening(*given):
            efforts.append(np.array(law(*given)))
            return efforts[-1]

        loop.controller.law = listening
        robot.wait(2.0)
        mass = actuator_mass_matrix(loop.dynamics, robot.state.reference)
        expected = np.sqrt(mass**2 @ loop.controller.noise() ** 2)
        worst = np.argmax(expected)
        assert np.std(efforts, axis=0)[worst] == pytest.approx(expected[worst], rel=0.15)
