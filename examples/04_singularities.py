# SPDX-License-Identifier: Apache-2.0
"""The margin of a five-bar from type 2 singularities, over its plane. There, it loses control of its platform.

At type 2 the forearms are in line: motors of any strength cannot hold the platform. At type 1 a limb is
stretched or folded. `singularity` computes the margins of a million poses in one call.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def main(picture: str = "04_singularities.png") -> None:
    """Draw the margin in the robot's first two working modes."""
    kinematics = Kinematics(load_mechanism("five_bar"))
    x, y = np.meshgrid(np.linspace(-0.6, 0.6, 200), np.linspace(-0.7, 0.7, 200))
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for mode, axes in enumerate(panels):
        margin = kinematics.singularity(np.stack([x, y], axis=-1), mode=mode).type2  # NaN out of reach
        drawn = axes.contourf(x, y, margin, levels=20)
        axes.set(title=f"working mode {kinematics.mode_label(mode)}", aspect="equal", xlabel="x [m]", ylabel="y [m]")
        figure.colorbar(drawn, ax=axes, label="margin from type 2 [rad/m]")
        print(kinematics.mode_label(mode), "reaches", f"{np.isfinite(margin).mean():.0%} of what is drawn")
    home = kinematics.singularity(kinematics.home)
    print(home)
    assert home.type2 > 0.0
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
