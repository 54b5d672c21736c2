# SPDX-License-Identifier: Apache-2.0
"""UNREACHABLE: no configuration is there; NOT_CONNECTED: limbs solved by iteration do not get there from home."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bench.legs_at_home import offset_hexaglide
from bench.strange_robots import joint, loop
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.kernels.records import CLOSED_FORM, NEWTON

SMALL = "<mass value='0.1'/><inertia ixx='1e-5' iyy='1e-5' izz='1e-5' ixy='0' ixz='0' iyz='0'/>"
GROUND, CRANK, COUPLER, ROCKER = 0.4, 0.1, 0.35, 0.3  # a crank turns all round: two circuits that never meet


def coupler(crank: float, side: float) -> tuple[Array, Array]:
    """Pose of a coupler by the angle of the crank, on one of the circuits, and angles of the three joints."""
    pin = CRANK * np.array([np.cos(crank), np.sin(crank)])
    apart = np.array([GROUND, 0.0]) - pin
    length = np.hypot(*apart)
    bend = np.arccos((COUPLER**2 + length**2 - ROCKER**2) / (2.0 * COUPLER * length))
    angle = np.arctan2(apart[1], apart[0]) + side * bend
    end = pin + COUPLER * np.array([np.cos(angle), np.sin(angle)])
    rocker = np.arctan2(end[1], end[0] - GROUND)
    return np.r_[pin, 0.0, 0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle)], np.array([crank, angle - crank, rocker])


def four_bar() -> str:
    bodies = "".join(f'<link name="{x}"><inertial>{SMALL}</inertial></link>' for x in ("crank", "coupler", "rocker"))
    start = dict(zip(("motor", "pin", "post"), coupler(0.5, 1.0)[1], strict=True))
    return (
        f'<robot name="four_bar"><link name="base"/>{bodies}{joint("motor", "base", "crank")}'
        f"{joint('pin', 'crank', 'coupler', f'{CRANK} 0 0')}{joint('post', 'base', 'rocker', f'{GROUND} 0 0')}"
        f"{loop('end', 'coupler', f'{COUPLER} 0 0', 'rocker', f'{ROCKER} 0 0')}"
        '<pkm base_link="base" platform_link="coupler"><home>'
        + "".join(f'<joint name="{name}" position="{q:.17g}"/>' for name, q in start.items())
        + '</home></pkm><ros2_control name="s" type="system"><joint name="motor"><command_interface name="effort"/>'
        f'<state_interface name="position"><param name="initial_value">{start["motor"]}</param></state_interface>'
        "</joint></ros2_control></robot>"
    )


def test_the_other_circuit_of_a_four_bar() -> None:
    """It has configurations, and nothing leads there from home; a seed does."""
    dynamics = Dynamics(load_mechanism(four_bar()))
    k = dynamics.kinematics
    columns = [k.joint_names.index(name) for name in ("motor", "pin", "post")]
    for crank in np.linspace(-2.5, 3.0, 12):
        pose, joints = coupler(crank, 1.0)
        found = k.inverse(pose)
        assert found.ok
        np.testing.assert_allclose(np.exp(1j * found.joints[columns]), np.exp(1j * joints), atol=1e-7)
        pose, joints = coupler(crank, -1.0)
        found = k.inverse(pose)
        assert found.status == Status.NOT_CONNECTED
        assert np.isnan(found.joints).all()
        assert "do not follow the platform from home" in found.reason()
        assert k.motion(pose, np.zeros(6)).status == Status.NOT_CONNECTED
        assert dynamics.inverse(pose).status == Status.NOT_CONNECTED
        seed = k.home_joints.copy()
        seed[columns] = joints
        assert k.inverse(pose, seed=seed).ok


def test_where_a_leg_stops_on_the_way() -> None:
    """Offset legs: turned platforms to which the straight way from home ends; iteration does not say that none is."""
    dynamics = Dynamics(load_mechanism(offset_hexaglide(0.15).text))
    k, random, blocked = dynamics.kinematics, np.random.default_rng(3), 0
    for _ in range(20):
        by = np.r_[random.uniform(-0.3, 0.3, 3), random.uniform(-0.8, 0.8, 3)]
        turned = Rotation.from_rotvec(by[3:]) * Rotation.from_quat(k.home[3:])
        pose = np.r_[k.home[:3] + by[:3], turned.as_quat()]
        found = k.inverse(pose)
        assert found.status in (Status.CONVERGED, Status.JOINT_LIMIT, Status.NOT_CONNECTED)
        if found.status == Status.NOT_CONNECTED:
            blocked += 1
            assert "do not follow the platform on the straight path from home" in found.reason()
            assert k.motion(pose, np.zeros(6)).status == Status.NOT_CONNECTED
            assert dynamics.inverse(pose).status == Status.NOT_CONNECTED
    assert 0 < blocked < 20


@pytest.mark.parametrize("name", ["delta", "five_bar", "hexa"])
def test_closed_forms_know(name: str) -> None:
    k = Kinematics(load_mechanism(name))
    away = k.home.copy()
    away[:2] += 10.0
    assert k.inverse(away).status == Status.UNREACHABLE


def test_statuses_are_those_of_the_messages() -> None:
    """Codes are numbers of the interface's file, which messages carry as they are."""
    from pathlib import Path

    import pkm_kinematics

    text = (Path(pkm_kinematics.__file__).parents[1] / "pkm_interfaces/msg/SolveStatus.msg").read_text()
    constants = dict(
        line.split()[1].split("=") for line in text.splitlines() if line.startswith("uint8 ") and "=" in line
    )
    named = {status.name: str(int(status)) for status in Status}
    assert named.items() <= constants.items()
    assert len(set(constants.values())) == len(constants)  # what only nodes say has codes of its own


@pytest.mark.parametrize("name", ["h4", "irsbot2", "quattro"])
def test_a_closed_form_behind_an_iterated_block_does_not_say_that_nothing_is_there(name: str) -> None:
    """What it closes on is one of the solutions of the block before it."""
    k = Kinematics(load_mechanism(name))
    solvers = k.tables.blocks["solver"]
    assert (solvers == NEWTON).any()
    assert (solvers == CLOSED_FORM).any()
    far = np.array(k.home)
    far[:3] += np.asarray(k.subspace(k.home))[:3, 0] * 6.0 * k.engine.size
    found = k.inverse(far)
    assert found.status == Status.NOT_CONNECTED
    assert "inverse_all searches for other configurations" in found.reason()


@pytest.mark.parametrize("name", ["delta", "five_bar"])
def test_closed_forms_alone_say_that_nothing_is_there(name: str) -> None:
    k = Kinematics(load_mechanism(name))
    far = np.array(k.home)
    far[0] += 6.0 * k.engine.size
    assert k.inverse(far).status == Status.UNREACHABLE
