# SPDX-License-Identifier: Apache-2.0
"""How long transmissions take: `python -m bench.linkages FILE [--joints a,b --actuators c,d]`.

A lean call in motion (positions and efforts), and states at random where every joint of a cluster has a range.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from bench.timing import interleaved, pin_to_one_core
from pkm_description import load_model
from pkm_description.tree_model import TreeModel
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.linkage.consistent_states import consistent_states

WORLDS = 4096
SWING = 0.05  # rad and m, of each joint about home
STEPS = 1000  # along it


def lean_call(t: Transmission) -> float:
    """Microseconds of a call, along a motion of small steps."""
    call, n, m = t.lean(), len(t.joints), len(t.actuators)
    phase = np.arange(float(n))
    ways = [t.home + SWING * (np.sin(phase + 2 * np.pi * k / STEPS) - np.sin(phase)) for k in range(STEPS)]
    effort, position, out = np.ones(n), np.zeros(m), np.zeros(m)

    def round_trip() -> None:
        for q in ways:
            call(q, effort, position, out)

    (found,) = interleaved(round_trip)
    return found.median / STEPS * 1e6


def states_per_second(tree: TreeModel, ranges: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Of `WORLDS` at a time, by the clock; and microseconds of a processor per state. The best of some."""
    consistent_states(tree, WORLDS, ranges)
    clocks = []
    for seed in range(30):
        begin = time.perf_counter(), time.process_time()
        consistent_states(tree, WORLDS, ranges, seed=seed)
        clocks.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    wall, processor = np.min(clocks, axis=0)
    return WORLDS / wall, processor / WORLDS * 1e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of one file."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("file")
    p.add_argument("--joints", default="")
    p.add_argument("--actuators", default="")
    p.add_argument("--states", default="", help="joints drawn within 0.15 rad of home, separated by commas")
    given = p.parse_args(arguments)
    begin = time.perf_counter()
    tree = load_model(given.file)
    print(f"{tree.name}: {len(tree.links)} links, {len(tree.clusters)} clusters, {time.perf_counter() - begin:.2f} s")
    if given.states:
        ranges = {name: (tree.home[name] - 0.15, tree.home[name] + 0.15) for name in given.states.split(",")}
        rate, cost = states_per_second(tree, ranges)
        print(f"{rate / 1e6:.2f} million consistent states a second, {cost:.2f} µs of a core each")
    joints, actuators = (tuple(filter(None, text.split(","))) for text in (given.joints, given.actuators))
    pin_to_one_core()
    print(f"lean call: {lean_call(Transmission(tree, joints, actuators)):.2f} µs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
