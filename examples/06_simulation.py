# SPDX-License-Identifier: Apache-2.0
"""A hexapod released on six springs: direct dynamics, integrated with closed loops at every step.

The system has no losses, so the test is that its total energy stays constant.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.energy import energy
from pkm_dynamics.simulation import simulate


def main(picture: str = "06_simulation.png") -> None:
    """Push the platform, simulate half a second, and draw the path of its origin."""
    dynamics = Dynamics(load_mechanism("gough_stewart"), friction=False)
    kinematics = dynamics.kinematics
    weight = dynamics.gravity(kinematics.home).effort  # N, holds it at home
    rest, stiffness = kinematics.inverse(kinematics.home).actuated, 2e5  # m, N/m

    def springs(time, pose, twist):  # efforts of the legs, wrench on the platform
        return weight - stiffness * (kinematics.inverse(pose).actuated - rest), np.zeros(6)

    times = np.linspace(0.0, 0.5, 201)
    run = simulate(dynamics, kinematics.home, [0.2, 0.1, 0.3, 0.0, 0.0, 0.2], times, springs)
    stretched = kinematics.inverse(run.pose).actuated - rest
    moving = energy(dynamics, run.pose, run.twist)
    total = moving.kinetic + moving.potential + 0.5 * stiffness * (stretched**2).sum(axis=1) - stretched @ weight
    print(f"energy {moving.kinetic[0]:.2f} J at the start, drift {np.ptp(total):.1e} J")
    assert np.ptp(total) < 1e-6

    plt.plot(times, 1e3 * (run.pose[:, :3] - kinematics.home[:3]), label=["x", "y", "z"])
    plt.legend(title="from home [mm] over time [s]")
    plt.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
