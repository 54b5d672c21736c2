# SPDX-License-Identifier: Apache-2.0
"""Mechanisms of one degree of freedom, whose platform moves on a curve: Theo Jansen's leg, followed through the whole
turn.

The judge is the leg drawn with compasses: every pin is where two circles about known pins meet.
"""

from __future__ import annotations

import numpy as np
import pytest

from bench.strange_robots import joint, loop
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status

SMALL = "<mass value='0.1'/><inertia ixx='1e-5' iyy='1e-5' izz='1e-5' ixy='0' ixz='0' iyz='0'/>"
PIVOT = np.array([-38.0, -7.8]) * 1e-3
m, b, c, d, e, f, g, h, i, j, k = np.array([15, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49, 50, 61.9]) * 1e-3


def meet(first: Array, second: Array, to_first: float, to_second: float) -> Array:
    """The point at given distances from two others, on the left of the way from the first to the second."""
    apart = second - first
    length = np.hypot(*apart)
    along = (length**2 + to_first**2 - to_second**2) / (2.0 * length)
    across = np.sqrt(to_first**2 - along**2)
    return first + (along * apart + across * np.array([-apart[1], apart[0]])) / length


def drawn(crank: float) -> dict[str, Array]:
    """The pins of a Jansen leg by the angle of its crank: holy numbers, in millimetres."""
    end = m * np.array([np.cos(crank), np.sin(crank)])
    upper, lower = meet(PIVOT, end, b, j), meet(end, PIVOT, k, c)
    side = meet(PIVOT, upper, d, e)
    knee = meet(lower, side, g, f)
    return {"end": end, "upper": upper, "lower": lower, "side": side, "knee": knee}


def leg(start: float, limits: str = "") -> str:
    """The description of the leg with the crank at an angle: all frames are parallel there, and all joints at zero."""
    at = drawn(start)

    def text(v: Array) -> str:
        return f"{v[0]:.17g} {v[1]:.17g} 0"

    crank = 'type="revolute"' if limits else 'type="continuous"'
    names = ("crank", "rod", "low_rod", "rocker", "low_rocker", "bar", "foot")
    parts = [f'<link name="{name}"><inertial>{SMALL}</inertial></link>' for name in names]
    parts += [
        joint("motor", "base", "crank", kind=crank).replace("</joint>", f"{limits}</joint>"),
        joint("j", "crank", "rod", text(at["end"])),
        joint("k", "crank", "low_rod", text(at["end"])),
        joint("b", "base", "rocker", text(PIVOT)),
        joint("c", "base", "low_rocker", text(PIVOT)),
        joint("f", "rocker", "bar", text(at["side"] - PIVOT)),
        joint("g", "low_rocker", "foot", text(at["lower"] - PIVOT)),
        loop("upper", "rod", text(at["upper"] - at["end"]), "rocker", text(at["upper"] - PIVOT)),
        loop("lower", "low_rod", text(at["lower"] - at["end"]), "low_rocker", text(at["lower"] - PIVOT)),
        loop("knee", "bar", text(at["knee"] - at["side"]), "foot", text(at["knee"] - at["lower"])),
    ]
    return (
        f'<robot name="leg"><link name="base"/>{"".join(parts)}<pkm base_link="base" platform_link="foot"/>'
        '<ros2_control name="s" type="system"><joint name="motor"><command_interface name="effort"/></joint>'
        "</ros2_control></robot>"
    )


def pose(crank: float, start: float) -> Array:
    """Of the foot: the origin at the lower pin, parallel to the base where the crank is at `start`."""
    now, home = drawn(crank), drawn(start)
    shin, at_home = now["knee"] - now["lower"], home["knee"] - home["lower"]
    turn = np.arctan2(shin[1], shin[0]) - np.arctan2(at_home[1], at_home[0])
    return np.array([*now["lower"], 0.0, 0.0, 0.0, np.sin(0.5 * turn), np.cos(0.5 * turn)])


@pytest.mark.parametrize("start", [0.0, 1.57, 3.0])
def test_a_jansen_leg_is_followed_through_the_whole_turn(start: float) -> None:
    k = Kinematics(load_mechanism(leg(start)))
    motor = k.joint_names.index("motor")
    cranks = np.concatenate([[0.34], np.linspace(-3.1, 3.1, 63)])
    found = k.inverse(np.array([pose(start + x, start) for x in cranks]))
    assert found.ok.all()
    np.testing.assert_allclose(found.joints[:, motor], cranks, atol=1e-7)
    assert found.residual.max() < 1e-12
    alone = k.inverse(pose(start + 0.34, start))  # stateless: one pose alone has the same answer
    np.testing.assert_array_equal(alone.joints, found.joints[0])


def test_a_pose_beside_the_curve_is_not_connected() -> None:
    k = Kinematics(load_mechanism(leg(0.0)))
    beside = pose(0.34, 0.0)
    beside[:2] += 1e-4
    assert k.inverse(beside).status == Status.NOT_CONNECTED


def test_a_crank_that_stops_goes_round_the_other_way() -> None:
    """Home is at an end of the crank's range: the short way to 4 rad leads through the stop, the long one does not."""
    k = Kinematics(load_mechanism(leg(0.0, '<limit lower="-0.1" upper="6" effort="9" velocity="9"/>')))
    motor = k.joint_names.index("motor")
    found = k.inverse(pose(4.0, 0.0))
    assert found.ok
    assert found.joints[motor] == pytest.approx(4.0, abs=1e-7)
    assert k.inverse(pose(-0.2, 0.0)).status == Status.JOINT_LIMIT


def test_the_leg_moves_as_its_drawing() -> None:
    """Velocities beyond the dead points, against differences of the drawing."""
    k, step = Kinematics(load_mechanism(leg(0.0))), 1e-6
    motor = k.joint_names.index("motor")
    for crank in np.linspace(-3.0, 3.0, 9):
        ahead, behind = drawn(crank + step), drawn(crank - step)
        lines = [x["knee"] - x["lower"] for x in (ahead, behind)]
        turned = np.arctan2(lines[0][1], lines[0][0]) - np.arctan2(lines[1][1], lines[1][0])
        speed = (ahead["lower"] - behind["lower"]) / (2.0 * step)
        twist = [*speed, 0.0, 0.0, 0.0, turned / (2.0 * step)]
        moved = k.motion(pose(crank, 0.0), twist)
        assert moved.ok, (crank, moved.reason())
        assert moved.velocities[motor] == pytest.approx(1.0, abs=1e-6)
