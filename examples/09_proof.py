# SPDX-License-Identifier: Apache-2.0
"""A straight path of a hexapod crosses a singularity, and a seventh leg removes it: refuted, and proved.

Intervals bound every quantity over a whole box. The result holds for each point of the box: *proved*, *refuted*
with a point, or *undecided*. The path is from the seven-legged machine of Merlet and others.
"""

from pkm_analysis import Analysis
from pkm_description import load_mechanism


def main(picture: str = "09_proof.png") -> None:
    """Prove the same path with six and with seven legs."""
    start = [0.4, 1.4, 1.2, 0.0, 0.2, 0.1]  # x y z [m], yaw pitch roll [rad]
    end = [0.8, 1.8, 1.8, 0.0, 0.4, 0.3]
    six, seven = (
        Analysis(load_mechanism(robot)).prove_path("no singularity", [start, end])
        for robot in ("gough_stewart", "gough_stewart_7")
    )
    print(f"six legs: {six.verdict}, at {six.way:.4f} of the path")
    print(f"seven legs: {seven.verdict}")
    assert (six.verdict, seven.verdict) == ("refuted", "proved")
    six.plot(picture)


if __name__ == "__main__":
    main()
