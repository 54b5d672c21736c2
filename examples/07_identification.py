# SPDX-License-Identifier: Apache-2.0
"""An unknown payload, found from the torques of a motion: the efforts are linear in the inertial parameters.

Only combinations of parameters, the base parameters, affect the motors. The regressor is reduced to these, and least
squares estimates them with standard deviations.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial
from pkm_dynamics import Dynamics
from pkm_dynamics.linear_form.base_parameters import base_parameters
from pkm_dynamics.linear_form.random_motions import random_motions


def main(picture: str = "07_identification.png") -> None:
    """Simulate noisy torque measurements of a Delta with 1.5 kg, and compare with its description."""
    dynamics = Dynamics(load_mechanism("delta"))
    base = base_parameters(dynamics)
    states = random_motions(dynamics.kinematics, 500, seed=3)
    motion = states.pose, states.twist, states.acceleration
    hidden = Inertial(1.5, np.zeros(3), np.diag([2e-3, 2e-3, 1e-3]))  # kg, m, kg m²
    noise = np.random.default_rng(1).normal(0.0, 0.5, (500, 3))  # N m
    effort = dynamics.inverse(*motion, payload=hidden).effort + noise

    regressor = base.reduce(dynamics.regressor(*motion)[0]).reshape(-1, len(base))
    found = np.linalg.lstsq(regressor, effort.ravel())[0]
    off = found - base.values(np.asarray(dynamics.parameters.values))
    sure = off / (0.5 * np.sqrt(np.diag(np.linalg.inv(regressor.T @ regressor))))
    print(f"{off[np.argmax(abs(sure))]:.2f} kg more than described")
    assert abs(off[np.argmax(abs(sure))] - 1.5) < 0.1
    plt.bar(range(len(base)), abs(sure))
    plt.gca().set(xlabel="base parameter", ylabel="standard deviations from the description")
    plt.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
