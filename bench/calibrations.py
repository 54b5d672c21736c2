# SPDX-License-Identifier: Apache-2.0
"""Calibrations of simulated machines, counted: the table of docs/calibration.md.

python -m bench.calibrations --runs 1000 --journal calibrations.csv

The journal has a line for each calibration; the same command goes on from there after it was stopped. With --gallery,
machines of every robot of the gallery; those that cannot be calibrated say why.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pkm_calibration.calibration import calibrate
from pkm_description.gallery import robot_names
from pkm_runtime.errors import PkmError
from test.pkm_calibration.simulated import NOISE, measured

ROBOTS = ("delta", "linear_delta", "gough_stewart", "hexa", "cable_8")


class Run(NamedTuple):
    """One calibration: how many of `values` are `inside` their intervals; the error on `kept` poses, over the noise."""

    robot: str
    seed: int
    refused: int
    inside: int
    values: int
    kept: float
    seconds: float


def calibrated(robot: str, seed: int) -> Run:
    """Calibrate a machine of this seed."""
    mechanism, truth, measurements = measured(robot, seed=seed)
    began = time.process_time()
    found = calibrate(mechanism, measurements)
    seconds = time.process_time() - began
    true = np.array([truth.get(one, 0.0) for one in found.estimate.names])
    low, high = found.estimate.interval95.T
    inside = int(((low <= true) & (true <= high)).sum())
    return Run(robot, seed, int(bool(found.refused)), inside, len(true), found.kept["position"] / NOISE, seconds)


def table_row(robot: str, runs: Sequence[Run]) -> str:
    """Of the table, with the 95 % interval of the share, by drawing machines again."""
    inside, values, kept, seconds = (
        np.array([getattr(one, field) for one in runs]) for field in ("inside", "values", "kept", "seconds")
    )
    drawn = np.random.default_rng(0).integers(0, len(runs), (2000, len(runs)))
    low, high = np.quantile(inside[drawn].sum(axis=1) / values[drawn].sum(axis=1), (0.025, 0.975))
    share = f"{100 * inside.sum() / values.sum():.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    errors = f"{np.median(kept):.2f}, {np.quantile(kept, 0.99):.2f}, {kept.max():.2f}"
    refused = sum(one.refused for one in runs)
    return f"| `{robot}` | {len(runs)} | {refused} | {share} | {errors} | {np.median(seconds):.1f} |"


def main() -> None:
    """Calibrate, robot after robot of each seed, and print the table."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("robots", nargs="*", metavar="ROBOT", default=ROBOTS)
    p.add_argument("--gallery", action="store_true", help="every robot of the gallery")
    p.add_argument("--runs", type=int, default=1000, help="of each robot (default: 1000)")
    p.add_argument("--journal", type=Path, metavar="FILE", help="file of the calibrations that are done")
    given = p.parse_args()
    runs: dict[tuple[str, int], Run] = {}
    if given.journal and given.journal.exists():
        for robot, *numbers in csv.reader(given.journal.read_text(encoding="utf-8").splitlines()):
            one = Run(robot, *(int(x) for x in numbers[:4]), *(float(x) for x in numbers[4:6]))
            runs[robot, one.seed] = one
    robots, reasons = robot_names() if given.gallery else given.robots, dict[str, str]()
    for seed in range(given.runs):
        for robot in robots:
            if (robot, seed) not in runs:
                try:
                    runs[robot, seed] = one = calibrated(robot, seed)
                except PkmError as error:
                    reasons[robot] = str(error)
                    continue
                if given.journal:
                    with given.journal.open("a", encoding="utf-8") as file:
                        csv.writer(file, lineterminator="\n").writerow(one)
    print("| robot | calibrations | refused | true values within their 95 % intervals | kept poses | time [s] |")
    print("|---|---|---|---|---|---|")
    for robot in robots:
        if done := [one for (name, seed), one in runs.items() if name == robot and seed < given.runs]:
            print(table_row(robot, done))
    for robot, reason in reasons.items():
        print(f"{robot}: {reason}")


if __name__ == "__main__":
    main()
