# SPDX-License-Identifier: Apache-2.0
"""Which motor and gear a Delta needs: torques, speeds and heat of a motion, against data sheets."""

import numpy as np

from pkm_analysis.prediction import Gear, Motor, choose_drives, predict
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics


def main(picture: str = "10_choose_drives.png") -> None:
    """Predict a cycle of half a second, and check two motors with two gears."""
    dynamics = Dynamics(load_mechanism("delta"))
    time = np.linspace(0.0, 0.5, 200)
    rate, way = 2 * np.pi / 0.5, np.array([0.2, 0.05, 0.04])  # rad/s, m
    none = np.zeros((200, 3))
    position = np.array([-0.1, 0.0, -0.9]) + 0.5 * (1 - np.cos(rate * time))[:, None] * way
    twist = np.hstack([0.5 * rate * np.sin(rate * time)[:, None] * way, none])
    acceleration = np.hstack([0.5 * rate**2 * np.cos(rate * time)[:, None] * way, none])
    motion = predict(dynamics, time, position, twist, acceleration)
    print(motion)

    small = Motor("small", continuous=0.32, peak=0.96, speed=600.0, inertia=2.6e-5)  # N m, N m, rad/s, kg m²
    large = Motor("large", continuous=1.3, peak=3.8, speed=600.0, inertia=1.3e-4)
    choices = choose_drives(motion, [small, large], [Gear("1:40", 40.0, efficiency=0.9), Gear("1:10", 10.0)])
    for choice in choices:
        print(choice)
    assert choices
    motion.plot(picture)


if __name__ == "__main__":
    main()
