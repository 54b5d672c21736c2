# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.periods tricept tripod_3prs delta`: how long a period of controller and simulated machine takes.

One process on one core, computed torque on the first two seconds of the default motion; reading, observer, law, guard
and a machine's step of 1 ms. A busy computer shows in the last column, not in the first two.
"""

from __future__ import annotations

import time

import numpy as np

from bench.timing import words
from pkm_bringup.main_job import planned, run_motion, simulated_loop
from pkm_control.loop.control_loop import Period, switch_on
from pkm_description import load_mechanism
from pkm_dynamics.dynamics import shared_dynamics

RATE = 1000.0  # Hz
LONGEST = 2.0  # s
WARM = 200  # periods before any count


def periods(name: str) -> np.ndarray:
    """Times of the periods of a robot [s]."""
    mechanism = load_mechanism(name)
    dynamics = shared_dynamics(mechanism)
    loop = simulated_loop(mechanism, RATE, dynamics)
    switch_on(loop)
    job, stamps = planned(mechanism, "auto").job, []

    def note(_: Period) -> None:
        stamps.append(time.perf_counter())

    for trajectory in (job.approach, job.cycle):
        recording = run_motion(
            loop, trajectory, watch=note, stopped=lambda: len(stamps) > WARM + LONGEST * RATE, recorded=False
        )
        if recording.faults:
            raise SystemExit(f"{name}: {recording.faults[0]}")
    return np.diff(stamps)[WARM:]


def main() -> None:
    """Print a line for each robot."""
    for name in words(__doc__):
        fast, middle, slow = 1e6 * np.percentile(periods(name), (1, 50, 99))
        print(f"{name}: {fast:.0f} µs at best (1 %), median {middle:.0f} µs, 99 % below {slow:.0f} µs", flush=True)


if __name__ == "__main__":
    main()
