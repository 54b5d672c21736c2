# SPDX-License-Identifier: Apache-2.0
"""Your own robot: two sliders on a rail hold a pen by two rods. You only write the description."""

from pkm_description import load_mechanism
from pkm_description.picture import draw
from pkm_kinematics import Kinematics


def joint(name: str, kind: str, parent: str, axis: str) -> str:
    """A joint and its child link with the same name."""
    ends = f'<parent link="{parent}"/><child link="{name}"/><axis xyz="{axis}"/>'
    limits = '<limit lower="-1" upper="1" velocity="2" effort="50"/>' if kind == "prismatic" else ""
    bar = '<visual><origin xyz="0.25 0 0"/><geometry><box size="0.5 0.02 0.02"/></geometry></visual>'
    link = f'<link name="{name}">{"" if limits else bar}</link>'
    return f'{link}<joint name="{name}" type="{kind}">{ends}{limits}</joint>'


def main(picture: str = "12_your_own_robot.png") -> None:
    """Describe the robot, load it, and list its modes. Its bodies have no masses: kinematics only."""
    tree = joint("left", "prismatic", "rail", "1 0 0") + joint("left_rod", "continuous", "left", "0 0 1")
    tree += joint("right", "prismatic", "rail", "1 0 0") + joint("right_rod", "continuous", "right", "0 0 1")
    tree += joint("x", "prismatic", "rail", "1 0 0") + joint("pen", "prismatic", "x", "0 1 0")
    pin = '<loop name="{0}_pin" type="revolute"><predecessor link="{0}_rod"><origin xyz="0.5 0 0"/></predecessor>'
    pin += '<successor link="pen"/><axis xyz="0 0 1"/></loop>'
    home = '<home xyz="0 0.4 0"><joint name="left_rod" position="0.9"/><joint name="right_rod" position="2.2"/></home>'
    drive = '<joint name="{}"><command_interface name="effort"/></joint>'
    drives = drive.format("left") + drive.format("right")
    mechanism = load_mechanism(
        f'<robot name="biglide"><link name="rail"/>{tree}{pin.format("left")}{pin.format("right")}'
        f'<pkm base_link="rail" platform_link="pen" kinematics_only="true">{home}</pkm>'
        f'<ros2_control name="biglide" type="system">{drives}</ros2_control></robot>'
    )
    kinematics = Kinematics(mechanism)
    print(mechanism, kinematics.inverse([0.1, 0.3]), sep="\n")  # x, y of the pen [m]
    assert kinematics.n_modes == 4
    draw(mechanism, picture, kinematics.inverse([0.1, 0.3]).joints)


if __name__ == "__main__":
    main()
