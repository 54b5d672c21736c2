# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.periods tricept tripod_3prs delta`: how long a period of controller and simulated machine takes.

One process on one core, computed torque on the first two seconds of the default motion; reading, observer, law, guard
and a machine's step of 1 ms. A busy computer shows in the last column, not in the first two.
"""

from __future__ import annotations

import gc
import sys
import time

import numpy as np

from pkm_control.controllers.controller import Reference
from pkm_control.run.main_job import Robot, planned
from pkm_description import load_mechanism
from pkm_dynamics.dynamics import shared_dynamics

RATE = 1000.0  # Hz
LONGEST = 2.0  # s
WARM = 200  # periods before any count


def periods(name: str) -> np.ndarray:
    """Times of the periods of a robot [s]."""
    mechanism = load_mechanism(name)
    dynamics = shared_dynamics(mechanism)
    robot = Robot(mechanism, RATE, dynamics.kinematics, dynamics)
    robot.start()
    job, times = planned(mechanism, "auto").job, []
    gc.disable()
    for trajectory in (job.approach, job.cycle, job.cycle):
        for wanted in np.arange(0.0, min(trajectory.duration, LONGEST), 1.0 / RATE):
            at = trajectory.sample(np.array([wanted]))
            reference = Reference(at.pose[0], at.twist[0], at.acceleration[0])
            begun = time.perf_counter()
            done = robot.period(wanted, reference, 1.0 / RATE)
            times.append(time.perf_counter() - begun)
            if done is None:
                raise SystemExit(f"{name}: {robot.fault}")
        if trajectory.duration > LONGEST:
            break  # what comes next begins elsewhere
    gc.enable()
    return np.array(times[WARM:])


def main() -> None:
    """Print a line for each robot."""
    for name in sys.argv[1:]:
        fast, middle, slow = 1e6 * np.percentile(periods(name), (1, 50, 99))
        print(f"{name}: {fast:.0f} µs at best (1 %), median {middle:.0f} µs, 99 % below {slow:.0f} µs", flush=True)


if __name__ == "__main__":
    main()
