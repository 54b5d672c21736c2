# SPDX-License-Identifier: Apache-2.0
"""A robot that runs: move, jog, pause, stop. The same verbs command a real one over ROS: `Robot.connect()`.

`Robot.simulated` has the machine, the control loop and the guard in this process, without ROS. What cannot be done is
refused with the reason, before anything moves.
"""

import matplotlib.pyplot as plt
import numpy as np

from pkm_client import Robot
from pkm_runtime.errors import PkmError


def main(picture: str = "11_move_a_robot.png") -> None:
    """Move a Delta along a square, request an impossible motion, and return home."""
    with Robot.simulated("delta", realtime=False) as robot:
        seen = []
        for x, y in ((0.2, 0.0), (0.2, 0.2), (0.0, 0.2), (0.0, 0.0)):
            task = robot.move_to([x, y, -0.9], speed=0.5, block=False)  # m, m/s
            while not task.done:
                robot.wait(0.02)  # s
                seen.append(robot.state.pose[:2])
            print(f"({x}, {y}): {1e3 * task.result().max_position_error:.3f} mm off at most")
        robot.jog(linear=(0.1, 0.0, 0.0), seconds=0.5)  # m/s; comes to rest by itself
        try:
            robot.move_to([0.0, 0.0, -3.0])
        except PkmError as error:
            print("refused:", error)
        robot.move_to([0.0, 0.0, -0.9])
    plt.plot(*np.transpose(seen))
    plt.gca().set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
    plt.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
