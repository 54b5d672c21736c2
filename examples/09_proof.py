# SPDX-License-Identifier: Apache-2.0
"""A straight path of a hexapod that crosses a singularity, and the seventh leg that removes it: refuted, and proved.

Intervals bound every quantity over a whole box, so that the answer holds for each of its points: *proved*, *refuted*
with a point, or *undecided*. The path is that of Merlet's and others' seven-legged machine.
"""

import numpy as np

from pkm_analysis.proof import Domain, NoSingularity, prove
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics


def main(picture: str = "09_proof.png") -> None:
    """Ask for the same path with six and with seven legs."""
    start = np.array([0.4, 1.4, 1.2, 0.0, 0.2, 0.1])  # x y z [m], yaw pitch roll [rad]
    end = np.array([0.8, 1.8, 1.8, 0.0, 0.4, 0.3])
    path = Domain.of_path(start, end)
    six = prove(Kinematics(load_mechanism("gough_stewart")), path, NoSingularity())
    seven = prove(Kinematics(load_mechanism("gough_stewart_7")), path, NoSingularity())
    print(f"six legs: {six.verdict}, at {(six.point - start)[0] / (end - start)[0]:.4f} of the path")
    print(f"seven legs: {seven.verdict}")
    assert (six.verdict, seven.verdict) == ("refuted", "proved")
    six.plot(picture)


if __name__ == "__main__":
    main()
