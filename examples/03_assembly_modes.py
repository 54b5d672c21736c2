# SPDX-License-Identifier: Apache-2.0
"""Forty assembly modes of one hexapod: the places where its platform can be while no leg changes its length.

Dietmaier (1998) found legs for which all forty solutions of the forward kinematics are real. Which of them a real
platform is in, only its history tells: `forward` takes the pose where it was, `forward_all` lists them all.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def main(picture: str = "03_assembly_modes.png") -> None:
    """Find all poses for the legs' lengths at home, and show where the platform's origin is in each."""
    kinematics = Kinematics(load_mechanism("dietmaier"))
    lengths = kinematics.inverse(kinematics.home).actuated
    modes = kinematics.forward_all(lengths)
    print(len(modes), "assembly modes")
    assert len(modes) == 40
    for mode in modes:
        assert np.allclose(kinematics.inverse(mode.pose).actuated, lengths, atol=1e-9)

    places = np.array([mode.pose[:3] for mode in modes])
    axes = plt.figure(figsize=(6, 5)).add_subplot(projection="3d")
    axes.scatter(*places.T)
    axes.scatter(*kinematics.home[:3], color="red", label="home")
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title="platform's origin in each assembly mode")
    axes.legend()
    plt.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
