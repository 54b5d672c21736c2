# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.outlets [robot ...] [--write FILE]`: robots in JAX and CasADi, beside calls with NumPy's arrays.

Times are of one core, in microseconds for a state, of inverse dynamics at 100,000 states; and of its gradient, of the
sum of squares of all efforts by pose, twist and acceleration. Seconds until the first answer are of one core too.
With `--gpu`, robots on a GPU instead, one line per figure: see `bench/outlets_on_gpu.py`. That needs neither library.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import outlets_on_gpu
from bench.many_poses import poses_around_home
from bench.tables import BEGIN, END, table
from bench.timing import pin_to_one_core
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.outlets.on_casadi import on_casadi
from pkm_dynamics.outlets.on_jax import on_jax

HEADER = ["robot", "NumPy", "JAX", "gradient", "CasADi", "its Jacobian", "first answer", "first gradient"]
ROBOTS = ("five_bar", "delta", "orthoglide", "hexa", "gough_stewart")
STATES, FEWER, REPETITIONS = 100_000, 2_000, 5


def microseconds(call: Callable[[], Any], states: int) -> float:
    """Processor time of a state: the best of some repetitions."""
    best = np.inf
    for _ in range(REPETITIONS):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best / states * 1e6


def once(call: Callable[[], Any]) -> str:
    """Processor time of a first call."""
    start = time.process_time()
    call()
    return f"{time.process_time() - start:.1f} s"


def rows(names: Sequence[str]) -> Iterator[list[str]]:
    """A row of each robot."""
    import casadi  # late: a computer with a GPU need not have them
    import jax

    jax.config.update("jax_enable_x64", True)
    for name in names:
        dynamics = Dynamics(load_mechanism(name))
        S, rng = dynamics.kinematics.task.subspace, np.random.default_rng(0)
        motion = [poses_around_home(dynamics.kinematics, STATES)]
        motion += [rng.normal(size=(STATES, S.shape[1])) @ S.T for _ in range(2)]
        robot = on_jax(dynamics)
        efforts = jax.jit(robot.inverse_dynamics)
        gradient = jax.jit(jax.grad(lambda *x, robot=robot: (robot.inverse_dynamics(*x) ** 2).sum(), (0, 1, 2)))
        first = [once(lambda f=f, m=motion: jax.block_until_ready(f(*m))) for f in (efforts, gradient)]
        times = [
            microseconds(lambda d=dynamics, m=motion: d.inverse(*m), STATES),
            *(microseconds(lambda f=f, m=motion: jax.block_until_ready(f(*m)), STATES) for f in (efforts, gradient)),
        ]
        function = on_casadi(dynamics).inverse_dynamics
        few = [casadi.DM(x[:FEWER].T) for x in motion]
        for f in (function.map(FEWER), function.jacobian().map(FEWER)):
            given = few + [casadi.DM.zeros(f.size_in(k)) for k in range(3, f.n_in())]
            times.append(microseconds(lambda f=f, given=given: f(*given), FEWER))
        yield [name, *(f"{one:.2f} µs" for one in times), *first]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table, and write it into a page on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("robots", nargs="*", default=ROBOTS)
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    parser.add_argument("--gpu", action="store_true", help="time robots on a GPU")
    args = parser.parse_args(argv)
    if args.gpu:
        outlets_on_gpu.main()
        return
    pin_to_one_core()
    text = table(HEADER, list(rows(args.robots)))
    print(text)
    if args.write:
        before, _, rest = args.write.read_text(encoding="utf-8").partition(BEGIN)
        args.write.write_text(before + BEGIN + text + "\n" + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
