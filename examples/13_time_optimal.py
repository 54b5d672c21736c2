# SPDX-License-Identifier: Apache-2.0
"""The fastest pick and place of a Delta over an obstacle, by CasADi and Ipopt (`pip install casadi`)."""

import casadi as ca  # if it is missing: ./pkm python -m pip install casadi
import matplotlib.pyplot as plt
import numpy as np

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.outlets.on_casadi import on_casadi

START, END, HIGH, N = np.array([-0.2, -0.1, -0.95]), np.array([0.2, 0.1, -0.95]), 0.08, 40  # m, m; intervals


def main(picture: str = "13_time_optimal.png") -> None:
    """Acceleration is constant in each interval, and efforts are within their limits in its middle."""
    robot, find, still = on_casadi(Dynamics(load_mechanism("delta"))), ca.Opti(), np.zeros((3, N))
    p, v, a, time = find.variable(3, N + 1), find.variable(3, N + 1), find.variable(3, N), find.variable()
    pose = ca.vertcat(p, np.tile([[0.0], [0.0], [0.0], [1.0]], N + 1))
    step, middle, speed = time / N, (pose[:, :-1] + pose[:, 1:]) / 2, (v[:, :-1] + v[:, 1:]) / 2
    effort, _ = robot.inverse_dynamics(middle, ca.vertcat(speed, still), ca.vertcat(a, still))
    rates = ca.diff(robot.inverse(pose)[0], 1, 1) / step
    find.subject_to(ca.veccat(ca.diff(p, 1, 1) - step * speed, ca.diff(v, 1, 1) - step * a) == 0)
    find.subject_to(ca.veccat(p[:, 0] - START, p[:, N] - END, v[:, 0], v[:, N]) == 0)
    find.subject_to(ca.veccat(p[2, :] - START[2] - HIGH * (1 - (p[0, :] / END[0]) ** 4), time - 0.05) >= 0)  # m, s
    find.subject_to(find.bounded(-1, ca.veccat(effort / 200, rates / 10), 1))  # N m, rad/s
    find.minimize(time)
    find.set_initial(ca.veccat(time, p), np.append(0.4, np.linspace(START, END, N + 1)))
    find.solver("ipopt", {"print_time": 0}, {"print_level": 0, "sb": "yes", "hessian_approximation": "limited-memory"})
    found = find.solve()
    print(f"{found.value(time):.4f} s with at most {np.abs(found.value(effort)).max():.1f} N m")
    _, (above, below) = plt.subplots(2, figsize=(6, 6))
    above.plot(*found.value(p)[[0, 2]], ".-")
    below.step(np.linspace(0, found.value(time), N), found.value(effort).T)
    above.set(xlabel="x [m]", ylabel="z [m]"), below.set(xlabel="time [s]", ylabel="efforts [N m]")
    plt.savefig(picture)


if __name__ == "__main__":
    main()
