# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402 (the number of threads is set before any library reads it)
"""`python -m bench`: the suite beside its peers, in one run. `--write FILE` puts the same text into a file."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import delta, gallery, gough_stewart, scaling
from bench.sample import Sample
from bench.tables import HEADER, table
from bench.timing import REPETITIONS, pin_to_one_core

PACKAGES = ("numpy", "scipy", "numba", "pin", "mujoco", "visual-kinematics")

PREFACE = """# Benchmarks

`python -m bench --write docs/benchmarks.md` makes this page. All numbers come from one run.

All calls are made from Python, in one process on one core, without threads. All programs take turns: each of the
{repetitions} repetitions runs every program for about 2 ms. The table compares medians of the processor time. Other
load on the machine thus slows all programs alike. Times vary from machine to machine; compare the ratios.

* Peers get the positions, velocities and accelerations of all joints without cost. Ours start from the platform.
* All compute the same quantities of the same model: every body with its inertia, with rotors, without friction.
* The last column shows the agreement of the results.
* *Lean* calls take arrays and write into arrays. *Convenient* calls return objects with statuses.
* MuJoCo's loops are `connect` equalities, as rigid as MuJoCo permits.
"""


def machine() -> str:
    """Processor, system and versions."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        models = [line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0] if models else name
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} (not installed)")
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores{busy}; Python {platform.python_version()}; " + ", ".join(found)


def report(everything: bool, picture: Path | None = None) -> str:
    """The whole text; the growth of costs drawn into `picture`."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    everywhere = scaling.core_rates(available) if everything else []
    pin_to_one_core()
    computer = machine()
    robot = Sample("delta")
    parts = [PREFACE.format(repetitions=REPETITIONS), f"Machine: {computer}.", "## Delta"]
    rows = [*delta.dynamics_rows(robot), *delta.forward_rows(robot), *delta.inverse_rows(robot)]
    parts.append(table(HEADER, [row.cells() for row in rows]))
    parts.append("One core, in batches:")
    parts.append(table(["work", "rate", "asked", ""], delta.batch_rates(robot)))
    if shutil.which("gcc") or shutil.which("cc"):
        parts.append("Inverse kinematics and dynamics, compared with code generated for this robot alone:")
        parts.append(table(["code", "time per state", "ratio"], delta.distance_to_straight_line(robot)))
    robot = Sample("gough_stewart")
    rows = gough_stewart.dynamics_rows(robot)
    steps, gaps = gough_stewart.step_rows(robot)
    rows += [*steps, *gough_stewart.inverse_rows(robot)]
    parts += ["## Gough-Stewart platform, 6-UPS", table(HEADER, [row.cells() for row in rows])]
    parts += [
        "Largest gap of a loop after 200 steps of 1 ms from home, while the platform falls slowly:",
        table(["engine", "gap", "asked"], gaps),
    ]
    if everything:
        parts += [
            "## Every robot",
            "Lean calls. Robots marked *iterated* have limbs without a closed form, solved by Newton's method from\n"
            "the last configuration. Those with a configuration-dependent motion space are timed at home.",
            table(
                ["robot", "degrees of freedom", "bodies", "iterated", "IK", "IK + ID", "IK + FD", "IK + ID per body"],
                gallery.rows(),
            ),
        ]
        found = scaling.families()
        header = ["counted", "range", "lean call", "intercept", "per limb or body", "largest deviation"]
        parts += [
            "## Growth",
            "Linear fits of the time by the number of UPS legs of a platform (redundantly actuated\n"
            "above six), and by the number of bodies in each limb of a Delta with additional rods:",
            table(header, scaling.rows(found)),
        ]
        if picture:
            scaling.plot(found, picture)
            parts.append(f"![Cost by size]({picture.name})")
        parts += [
            "Limbs are independent of each other. With a core for every limb, a call could take only the time of its\n"
            "slowest limb and of the rest that needs all limbs (`LimbByLimb`; Müller 2021 prints 0.97 of 2.74 µs for\n"
            "three limbs, without the exchange). The table has times of the general kernels with inverse\n"
            "kinematics, and the time to pass one limb to a waiting thread and back. Threads cost far more than they\n"
            "could save.",
            table(["robot", "limbs", "whole", "slowest limb", "the rest", "handed to a thread"], scaling.apart_rows()),
            "Therefore cores share batches, not calls:",
            table(
                ["cores", "Delta states per second, inverse kinematics and dynamics"],
                [[str(n), f"{rate / 1e6:.2f} million"] for n, rate in everywhere],
            ),
        ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the report, besides the screen")
    parser.add_argument("--short", action="store_true", help="leave out the table of every robot")
    options = parser.parse_args()
    text = report(not options.short, options.write.with_name("cost.png") if options.write else None)
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
