# SPDX-License-Identifier: Apache-2.0
"""The library on a robot of one's own: positions, velocities and efforts of the biglide along a circle."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics

robot = load_mechanism(Path(__file__).with_name("biglide.urdf.xacro"))
dynamics = Dynamics(robot)
kinematics = dynamics.kinematics

# a circle of 6 cm radius around home, one turn per second
angle = np.linspace(0.0, 2.0 * np.pi, 101)
cosine, sine = 0.06 * np.cos(angle), 0.06 * np.sin(angle)
pose = np.tile(kinematics.home, (len(angle), 1))
pose[:, 0] += cosine
pose[:, 2] += sine
rate = 2.0 * np.pi
twist, acceleration = np.zeros((len(angle), 6)), np.zeros((len(angle), 6))
twist[:, 0], twist[:, 2] = -rate * sine, rate * cosine
acceleration[:, 0], acceleration[:, 2] = -(rate**2) * cosine, -(rate**2) * sine

motion = kinematics.motion(pose, twist, acceleration)
assert (motion.status == 0).all()
for joint, position, velocity in zip(
    kinematics.actuated_names, motion.actuated.T, motion.actuated_velocities.T, strict=True
):
    print(f"{joint}: from {position.min():.3f} to {position.max():.3f} m, at most {np.abs(velocity).max():.2f} m/s")

effort = dynamics.inverse(pose, twist, acceleration).effort
print(
    f"largest effort: {np.abs(effort).max():.1f} N; holding still at home: {dynamics.gravity(kinematics.home).effort}"
)

back = kinematics.forward(motion.actuated, near=kinematics.home)
print(f"forward kinematics gives the poses back to {np.abs(back.pose - pose).max():.1e} m")
print("working modes:", ", ".join(one.label for one in kinematics.inverse_all(kinematics.home)))
print("assembly modes:", [one.pose[[0, 2]].round(4).tolist() for one in kinematics.forward_all(motion.actuated[0])])
