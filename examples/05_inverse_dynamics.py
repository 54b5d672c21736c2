# SPDX-License-Identifier: Apache-2.0
"""The torque of each motor of a Delta for a fast motion, with the inertia of every arm and rod.

Direct dynamics is the test: it computes the given acceleration from these torques.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics


def main(picture: str = "05_inverse_dynamics.png") -> None:
    """Move the platform back and forth in half a second."""
    dynamics = Dynamics(load_mechanism("delta"))
    time = np.linspace(0.0, 0.5, 200)
    rate = 4.0 * np.pi  # rad/s
    pose = np.tile(dynamics.kinematics.home, (200, 1))
    twist, acceleration = np.zeros((2, 200, 6))  # linear, then angular, in the base frame
    pose[:, 0] += 0.15 * np.sin(rate * time)
    twist[:, 0] = 0.15 * rate * np.cos(rate * time)
    acceleration[:, 0] = -0.15 * rate**2 * np.sin(rate * time)

    effort = dynamics.inverse(pose, twist, acceleration).effort  # (200, 3) N m
    print("largest torque of each motor:", np.abs(effort).max(axis=0).round(2), "N m")
    back = dynamics.direct(pose, twist, effort).acceleration
    assert np.abs(back - acceleration).max() < 1e-8

    plt.plot(time, effort, label=dynamics.kinematics.actuated_names)
    plt.gca().set(xlabel="time [s]", ylabel="torque [N m]", title="0.15 m to and fro at 2 Hz")
    plt.legend()
    plt.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
