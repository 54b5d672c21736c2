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
from pkm_analysis.zoo import motion_about_home
from pkm_description import load_model
from pkm_description.tree_model import TreeModel
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.linkage.consistent_states import consistent_states

WORLDS = 4096
SWING = 0.05  # rad and m, of each joint about home
STEPS = 1000  # along it


def lean_call(t: Transmission) -> float:
    """Microseconds of a call, along a motion of small steps."""
    call, ways = t.lean(), motion_about_home(t, SWING, STEPS)
    effort, position, out = np.ones(len(t.joints)), np.zeros(len(t.actuators)), np.zeros(len(t.actuators))

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


def table_of_joints(t: Transmission, nodes: int, reach: float) -> tuple[float, float]:
    """What a table of two joints over two motors, within `reach` [rad] of home, comes to: seconds, largest error [rad].

    Read linearly between its four nearest entries, at the middles of its meshes.
    """
    begin = time.perf_counter()
    home = t.to_actuators(t.home)
    axes = [np.linspace(x - reach, x + reach, nodes) for x in home]
    motors = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    table = t.to_joints(motors)
    took = time.perf_counter() - begin
    middle = 0.5 * (motors[1:, 1:] + motors[:-1, :-1])
    read = 0.25 * (table[1:, 1:] + table[:-1, :-1] + table[1:, :-1] + table[:-1, 1:])
    return took, float(np.nanmax(np.abs(read - t.to_joints(middle))))


def against_recording(t: Transmission, file: str, recording: str) -> str:
    """An MJCF file's own recording, with joints first and actuators last in `qpos`: how far its motors are from ours.

    And what of that its gaps do not explain: MuJoCo's own constraints, closed by all but the joints.
    """
    import mujoco

    rows = np.load(recording)["qpos"]
    n, m = len(t.joints), len(t.actuators)
    error = t.to_actuators(rows[:, :n]) - rows[:, -m:]
    model = mujoco.MjModel.from_xml_path(file)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data, gap, left = mujoco.MjData(model), 0.0, 0.0
    for row, far in zip(rows[::50], error[::50], strict=True):
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        loops = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        J, opened = data.efc_J.reshape(-1, model.nv)[loops], data.efc_pos[loops]
        gap = float(np.maximum(gap, np.abs(opened).max()))
        closing = np.linalg.lstsq(J[:, n:], -opened, rcond=None)[0][-m:]
        left = float(np.maximum(left, np.abs(far - closing).max()))
    return f"{np.abs(error).max():.2g} rad from the recording, open by {gap:.2g} m, which leaves {left:.2g} rad"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures of one file."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("file")
    p.add_argument("--joints", default="")
    p.add_argument("--actuators", default="")
    p.add_argument("--states", default="", help="joints drawn within 0.15 rad of home, separated by commas")
    p.add_argument("--table", type=int, metavar="N", help="entries along each of two motors, within 0.6 rad of home")
    p.add_argument(
        "--recording", metavar="NPZ", help="qpos of an MJCF file without meshes, joints first, actuators last"
    )
    given = p.parse_args(arguments)
    begin = time.perf_counter()
    tree = load_model(given.file)
    print(f"{tree.name}: {len(tree.links)} links, {len(tree.clusters)} clusters, {time.perf_counter() - begin:.2f} s")
    if given.states:
        ranges = {name: (tree.home[name] - 0.15, tree.home[name] + 0.15) for name in given.states.split(",")}
        rate, cost = states_per_second(tree, ranges)
        print(f"{rate / 1e6:.2f} million consistent states a second, {cost:.2f} µs of a core each")
    joints, actuators = (tuple(filter(None, text.split(","))) for text in (given.joints, given.actuators))
    if given.table:
        took, error = table_of_joints(Transmission(tree, joints, actuators), given.table, 0.6)
        print(f"a table of {given.table} x {given.table}: made in {took:.2f} s, off by up to {error:.2g} rad")
    if given.recording:
        print(against_recording(Transmission(tree, joints, actuators), given.file, given.recording))
    pin_to_one_core()
    print(f"lean call: {lean_call(Transmission(tree, joints, actuators)):.2f} µs")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
