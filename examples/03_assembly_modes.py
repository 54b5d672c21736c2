# SPDX-License-Identifier: Apache-2.0
"""Forty assembly modes of one hexapod: the poses of its platform for the same leg lengths.

Dietmaier (1998) found legs with forty real solutions of the forward kinematics. The mode of a real platform depends
on its history: `forward` takes the previous pose, and `forward_all` lists all modes.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def main(picture: str = "03_assembly_modes.png") -> None:
    """Find all poses for the leg lengths at home, and show the platform's origin in each."""
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
