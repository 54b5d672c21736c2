# SPDX-License-Identifier: Apache-2.0
"""Descriptions of kinematically redundant robots: hexapods in series, robots on a rail, and a planar 3-PRRR."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import ROBOTS

NUMBERS = """
    leg_body=[1.5,0.018,0.3] leg_rod=[0.8,0.01,0.3] leg_lower=0.1 leg_upper=2 leg_velocity=2 leg_effort=1000
    leg_damping=10 leg_friction=2 slider_mass=3 slider_size=0.1 slider_lower=-1 slider_upper=1
    slider_velocity=1 slider_effort=100 slider_damping=5 slider_friction=1 bar_radius=0.02 arm_length=0.4
    arm_mass=1 arm_inertia=0.01 arm_lower=-6 arm_upper=6 arm_velocity=10 arm_effort=100 arm_damping=0.1
    arm_friction=0.1 forearm_length=0.6 forearm_mass=1 forearm_inertia=0.03
"""
# Joint centres on base and platform: in space, and in the plane.
SPATIAL = (
    ("0.6 0.2 0", "0.3 0 0.1"),
    ("0.1 0.5 0.1", "0.3 0.2 0"),
    ("-0.3 0.3 0.1", "0 0.3 0"),
    ("-0.3 -0.4 0", "-0.2 0.1 -0.1"),
    ("0.2 -0.3 -0.05", "-0.15 -0.2 -0.05"),
    ("0.5 -0.2 0", "0.15 -0.15 0"),
)
PLANAR = (("0 0 0", "-0.15 -0.09 0"), ("1 0 0", "0.15 -0.09 0"), ("0.5 0.866 0", "0 0.17 0"))
RANGES = 'base="base_link" platform="platform" x_range="${[-3, 3]}" y_range="${[-3, 3]}"'
IN_SPACE = f'<xacro:platform_branch_6dof {RANGES} z_range="${{[-3, 3]}}"/>'
IN_PLANE = f"<xacro:platform_branch_planar {RANGES}/>"


def description(parts: str, home: str, drives: list[str], numbers: str = "") -> str:
    """A robot of limb macros with the named drives."""
    given = dict(entry.split("=") for entry in (NUMBERS + numbers).split())
    files = "".join(
        f'<xacro:include filename="{ROBOTS.parent}/limbs/{name}.xacro"/>'
        for name in ("ups", "planar", "aim", "platform_branch")
    )
    values = "".join(f'<xacro:property name="{k}" value="${{{v}}}"/>' for k, v in given.items())
    driven = "".join(f'<joint name="{name}"><command_interface name="effort"/></joint>' for name in drives)
    return (
        f'<robot name="redundant" xmlns:xacro="http://www.ros.org/wiki/xacro">{files}{values}<link name="base_link"/>'
        f'{body("platform")}{parts}<pkm base_link="base_link" platform_link="platform">{home}</pkm>'
        f'<ros2_control name="s" type="system">{driven}</ros2_control></robot>'
    )


def body(name: str) -> str:
    return f'<link name="{name}"><xacro:cylinder_inertial mass="2.0" radius="0.12" length="0.03"/></link>'


def slider(name: str, xyz: str, yaw: float, locked: bool) -> str:
    """A driven slider, or the same as a fixed joint."""
    if locked:
        place = f'parent="base_link" child="{name}" axis="1 0 0" xyz="{xyz}" rpy="0 0 {yaw}"'
        return f'{body(name)}<xacro:joint name="{name}" type="fixed" {place}/>'
    return f'<xacro:driven_slider name="{name}" base="base_link" base_xyz="{xyz}" base_rpy="0 0 {yaw}"/>'


def hexapods_in_series(locked: bool) -> str:
    """A hexapod that stands on the platform of another: twelve legs, or six where the stage between is fixed."""

    def legs(stage: str, base: str, platform: str) -> str:
        return "".join(
            f'<xacro:ups_limb name="{stage}{k}" base="{base}" base_xyz="{a}" platform="{platform}" platform_xyz="{b}"/>'
            for k, (a, b) in enumerate(SPATIAL, start=1)
        )

    kind = "fixed" if locked else "floating"
    stage = (
        f'{body("stage")}<joint name="stage" type="{kind}"><parent link="base_link"/><child link="stage"/>'
        '<origin xyz="0.2 0.1 0.8"/></joint>'
    )
    stages = ("upper",) if locked else ("upper", "lower")
    parts = IN_SPACE + stage + legs("upper", "stage", "platform")
    return description(
        parts if locked else parts + legs("lower", "base_link", "stage"),
        '<home xyz="0.4 0.2 1.6"/>',
        [f"{stage}{k}_leg" for stage in stages for k in range(1, 7)],
        "home_xyz=[0.2,0.1,0.8] home_rpy=[0.0,0.0,0.0]",
    )


def planar_on_a_rail(locked: bool) -> str:
    """A planar 3-RPR whose whole frame slides on a rail."""
    legs = "".join(
        f'<xacro:aim base_xyz="{a}" platform_xyz="{b}"/><xacro:planar_rpr_limb name="limb{k}" base="rail" '
        f'base_xyz="{a}" base_yaw="${{heading}}" platform="platform" platform_xyz="{b}"/>'
        for k, (a, b) in enumerate(PLANAR, start=1)
    )
    return description(
        IN_PLANE + slider("rail", "0 0 0", 0.0, locked) + legs,
        '<home xyz="0.5 0.29 0" rpy="0 0 0.7"/>',
        ["limb1_leg", "limb2_leg", "limb3_leg"] + ([] if locked else ["rail"]),
        "home_xyz=[0.5,0.29,0.0] home_rpy=[0.0,0.0,0.7]",
    )


def planar_3prrr(locked: bool) -> str:
    """A planar robot of three PRRR limbs, slider and arm of each driven."""
    limbs = "".join(
        slider(f"limb{k}_slider", a, 2.1 * k, locked)
        + f'<xacro:planar_rrr_limb name="limb{k}" base="limb{k}_slider" base_xyz="0 0 0" platform="platform" '
        f'platform_xyz="{b}"/>'
        for k, (a, b) in enumerate(PLANAR, start=1)
    )
    driven = ("arm",) if locked else ("arm", "slider")
    return description(
        IN_PLANE + limbs, '<home xyz="0.5 0.29 0"/>', [f"limb{k}_{part}" for k in (1, 2, 3) for part in driven]
    )


def on_a_rail(name: str, axis: str = "0.6 0.8 0") -> str:
    """A robot of the gallery whose base is a carriage on a driven rail."""
    mechanism = load_mechanism(name)
    root, base = ET.fromstring(mechanism.urdf), mechanism.base_link
    for joint in root.findall("joint"):
        parent = joint.find("parent")
        if parent is not None and parent.get("link") == base and joint.get("name") not in mechanism.platform_chain:
            parent.set("link", "carriage")
    for element in (
        '<link name="carriage"><inertial><mass value="8"/><inertia ixx="0.3" iyy="0.2" izz="0.4" ixy="0" ixz="0" '
        'iyz="0"/></inertial></link>',
        f'<joint name="rail" type="prismatic"><parent link="{base}"/><child link="carriage"/><axis xyz="{axis}"/>'
        '<limit lower="-1" upper="1" velocity="2" effort="2000"/><dynamics damping="3" friction="1"/></joint>',
        '<ros2_control name="rail" type="system"><joint name="rail"><command_interface name="effort"/></joint>'
        "</ros2_control>",
    ):
        root.append(ET.fromstring(element))
    return ET.tostring(root, encoding="unicode")


# How it is written, degrees of freedom of its platform and of the whole, and its redundant joints.
STAGE = tuple(f"stage/{name}" for name in ("x", "y", "z", "yaw", "pitch", "roll"))
REDUNDANT = {
    "two hexapods in series": (lambda: hexapods_in_series(locked=False), 6, 12, STAGE),
    "planar 3-RPR on a driven rail": (lambda: planar_on_a_rail(locked=False), 3, 4, ("rail",)),
    "planar 3-PRRR with six drives": (
        lambda: planar_3prrr(locked=False), 3, 6, tuple(f"limb{k}_slider" for k in (1, 2, 3)),
    ),
    "Delta on a rail": (lambda: on_a_rail("delta"), 3, 4, ("rail",)),
    "H4 on a rail": (lambda: on_a_rail("h4"), 4, 5, ("rail",)),
    "hexapod on a rail": (lambda: on_a_rail("gough_stewart"), 6, 7, ("rail",)),
}  # fmt: skip
AT_NIGHT = "planar 3-RPR on a driven rail", "hexapod on a rail"  # others by day are of their kind
CASES = [pytest.param(name, marks=pytest.mark.slow) if name in AT_NIGHT else name for name in REDUNDANT]
LOCKED = {
    "two hexapods in series": (hexapods_in_series, 6),
    "planar 3-RPR on a driven rail": (planar_on_a_rail, 3),
    "planar 3-PRRR with six drives": (planar_3prrr, 3),
}
