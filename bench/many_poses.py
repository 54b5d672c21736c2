# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402 (the number of threads is set before any library reads it)
"""`python -m bench.many_poses [ROBOT ...]`: poses a second and core, in sweeps over very many of them.

Counted in processor time, for poses around home, a part of them out of reach: reach and limits of all joints; the same
with the margins from singularities of all types.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

from time import process_time

import numpy as np

from bench.timing import pin_to_one_core, words
from pkm_analysis.analysed_robot import PoseEvaluator
from pkm_analysis.kernels.pose_quantities import HOLD, LIMIT, REACH, REGULARITY, TYPE1, TYPE2
from pkm_description import load_mechanism, robot_names
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose

LIMITS = (REACH, LIMIT)
ALL = (REACH, LIMIT, TYPE1, TYPE2, HOLD, REGULARITY)
QUICK, SLOW = 1 << 17, 200  # poses of a repetition
REPETITIONS = 5
AROUND = 0.15  # of the robot's size, and rad


def poses_around_home(kinematics: Kinematics, n: int) -> Array:
    """Poses (n, 7) in a motion space that does not turn."""
    rng, space = np.random.default_rng(0), kinematics.task.subspace
    some = np.empty((min(n, 4096), 7))
    for pose in some:
        turn = rng.uniform(-AROUND, AROUND, space.shape[1]) * max(kinematics.engine.size, 1e-3)
        shift_pose(np.array(kinematics.home), space @ turn, 1.0, pose)
    return np.resize(some, (n, 7))


def rate(evaluator: PoseEvaluator, poses: Array, wanted: tuple[int, ...]) -> float:
    """Poses a second of processor time: the best of some repetitions."""
    evaluator.numbers(poses[:64], wanted)
    best = np.inf
    for _ in range(REPETITIONS):
        start = process_time()
        evaluator.numbers(poses, wanted)
        best = min(best, process_time() - start)
    return len(poses) / best


def main() -> None:
    """Print the table of some robots, of all without names."""
    chosen = words(__doc__) or robot_names()
    pin_to_one_core()
    print("| robot | reach and limits [1/s] | and all margins [1/s] | in closed form |\n|---|---|---|---|")
    for name in chosen:
        kinematics = Kinematics(load_mechanism(name))
        if not kinematics.engine.constant_space:
            continue
        evaluator = PoseEvaluator(kinematics)
        poses = poses_around_home(kinematics, QUICK if evaluator.quick else SLOW)
        rates = (rate(evaluator, poses, wanted) for wanted in (LIMITS, ALL))
        cells = " | ".join(f"{one:,.0f}" for one in rates)
        print(f"| `{name}` | {cells} | {'yes' if evaluator.quick else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
