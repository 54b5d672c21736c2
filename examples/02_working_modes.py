# SPDX-License-Identifier: Apache-2.0
"""The four working modes of a five-bar: the configurations of its two elbows at one point.

`inverse_all` lists all modes, including those beyond joint limits. The label has a sign per limb.
"""

import matplotlib.pyplot as plt

from pkm_description import load_mechanism
from pkm_description.picture import View, held, paint
from pkm_kinematics import Kinematics


def main(picture: str = "02_working_modes.png") -> None:
    """Draw the robot at one point in each working mode."""
    mechanism = load_mechanism("five_bar")
    kinematics = Kinematics(mechanism)
    modes = kinematics.inverse_all(kinematics.home)
    figure, panels = plt.subplots(1, len(modes), figsize=(12, 3.2))
    view = View(held(mechanism))
    for axes, mode in zip(panels, modes, strict=True):
        axes.set_axis_off()
        if mode.ok:
            paint(axes, mechanism, view, mode.joints)
        axes.set_title(f"working mode {mode.label}")
        print(mode.label, mode.actuated, mode.reason())
    assert {mode.label for mode in modes} == {"++", "+-", "-+", "--"}
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main()
