# SPDX-License-Identifier: Apache-2.0
"""A straight path of a hexapod that crosses a singularity, and the seventh leg that removes it: refuted, and proved.

Intervals bound every quantity over a whole box, so that the answer holds for each of its points: *proved*, *refuted*
with a point, or *undecided*. The path is that of Merlet's and others' seven-legged machine.
"""

from pkm_analysis import Analysis
from pkm_description import load_mechanism


def main(picture: str = "09_proof.png") -> None:
    """Ask for the same path with six and with seven legs."""
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
