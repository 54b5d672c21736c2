# SPDX-License-Identifier: Apache-2.0
"""A Delta robot: the motor positions for a pose, and the pose for motor positions.

The solvers need only the file of the robot. Every result has a status and a reason.
"""

import numpy as np

from pkm_description import load_mechanism
from pkm_description.picture import draw
from pkm_kinematics import Kinematics


def main(picture: str = "01_first_robot.png") -> None:
    """Solve one pose in both directions, and one pose out of reach."""
    mechanism = load_mechanism("delta")  # a robot of the gallery, a path, or URDF text
    kinematics = Kinematics(mechanism)
    pose = np.add(kinematics.home, [0.2, 0.1, 0.05, 0, 0, 0, 0])  # x y z [m], quaternion x y z w

    inverse = kinematics.inverse(pose)
    print(inverse.by_name())  # rad, by the name of each motor's joint
    forward = kinematics.forward(inverse.actuated, near=kinematics.home)
    print("back again:", np.round(forward.pose[:3], 12))
    assert np.allclose(forward.pose, pose, atol=1e-12)

    far = kinematics.inverse(np.add(kinematics.home, [2.0, 0, 0, 0, 0, 0, 0]))
    print(far.reason())
    assert not far.ok

    draw(mechanism, picture, inverse.joints)


if __name__ == "__main__":
    main()
