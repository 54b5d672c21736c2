# SPDX-License-Identifier: Apache-2.0
"""Slides that leave the plane of their hinge: limbs of a tripod that still have a closed form."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.status import Status

MASS = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'

CHAIN = [
    *((name, "prismatic", axis) for name, axis in zip("xyz", ("1 0 0", "0 1 0", "0 0 1"), strict=True)),
    *((name, "revolute", axis) for name, axis in (("yaw", "0 0 1"), ("pitch", "0 1 0"), ("roll", "1 0 0"))),
]


def joint(name: str, kind: str, parent: str, child: str, axis: str, xyz: str, yaw: float = 0.0) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="0 0 {yaw!r}"/><axis xyz="{axis}"/>'
        '<limit lower="-3" upper="3" effort="100" velocity="5"/></joint>'
    )


def tripod(order: str, lean: float) -> str:
    """Three limbs "PRS" or "RPS", whose slides lean out of the plane across their hinges by a sine."""
    parts, drives = [f'<link name="base"/><link name="platform">{MASS}</link>'], []
    ends = ["base", *(f"behind_{name}" for name, _, _ in CHAIN[:-1]), "platform"]
    parts += [f'<link name="{link}"/>' for link in ends[1:-1]]
    parts += [joint(name, kind, ends[i], ends[i + 1], axis, "0 0 0") for i, (name, kind, axis) in enumerate(CHAIN)]
    for k in range(3):
        yaw, names = 2.0 * pi / 3.0 * k, {"P": f"slide{k}", "R": f"hinge{k}"}
        slide = f"0.3 {lean!r} {sqrt(1.0 - 0.09 - lean**2)!r}" if order == "PRS" else f"-0.3 {lean!r} 0.9"
        axes = {"P": ("prismatic", slide), "R": ("revolute", "0 1 0")}
        first, second = order[:2]
        parts += [
            f'<link name="a{k}">{MASS}</link><link name="b{k}">{MASS}</link>',
            joint(names[first], axes[first][0], "base", f"a{k}", axes[first][1],
                  f"{0.4 * cos(yaw)!r} {0.4 * sin(yaw)!r} 0", yaw),
            joint(names[second], axes[second][0], f"a{k}", f"b{k}", axes[second][1], "0.02 0 0.05"),
            f'<loop name="ball{k}" type="spherical"><predecessor link="b{k}"><origin xyz="-0.2 0.01 0.5"/>'
            f'</predecessor><successor link="platform"><origin xyz="{0.2 * cos(yaw)!r} {0.2 * sin(yaw)!r} 0"/>'
            "</successor></loop>",
        ]  # fmt: skip
        drives.append(f'<joint name="slide{k}"><command_interface name="effort"/></joint>')
    home = "".join(f'<joint name="{kind}{k}" position="0.1"/>' for k in range(3) for kind in ("slide", "hinge"))
    return (
        f'<robot name="tripod">{"".join(parts)}<pkm base_link="base" platform_link="platform"><home>{home}</home></pkm>'
        f'<ros2_control name="tripod" type="system">{"".join(drives)}</ros2_control></robot>'
    )


@pytest.mark.parametrize("lean", [0.0, 2e-3, 0.2])
@pytest.mark.parametrize("order", ["PRS", "RPS"])
def test_there_and_back(order: str, lean: float) -> None:
    robot = Kinematics(load_mechanism(tripod(order, lean)))
    assert (robot.tables.blocks["solver"] == CLOSED_FORM).all()
    drives = robot.inverse(robot.home).actuated + np.random.default_rng(0).uniform(-0.05, 0.05, (100, 3))
    there = robot.forward(drives)
    assert (there.status == Status.CONVERGED).all()
    back = robot.inverse(there.pose)
    assert (back.status == Status.CONVERGED).all()
    assert back.residual.max() < 1e-13  # of the loops as described, whatever the closed form says
    np.testing.assert_allclose(back.actuated, drives, atol=1e-11)
