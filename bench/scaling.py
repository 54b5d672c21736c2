# SPDX-License-Identifier: Apache-2.0
"""How the cost of a call grows with the number of limbs, of bodies in a limb, and of cores.

Two families of robots: platforms on n UPS legs (more than six are redundantly actuated), and Deltas with k parallel
rods on every arm, of which all but two are superfluous. `python -m bench.scaling --plot FILE` draws the costs. And one
call taken apart: the slowest limb and the rest beside the whole, with what it costs to hand a limb to a thread.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import cos, pi, sin, sqrt
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from bench.strange_robots import body, joint, loop
from bench.timing import interleaved
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.kernels.platform_dynamics import inverse_dynamics
from pkm_dynamics.linear_form.random_motions import random_motions
from pkm_kinematics import Kinematics
from pkm_runtime.kernels.binding import bind
from test.oracles.limb_by_limb import LimbByLimb

LEGS = (6, 8, 10, 12, 16, 20, 24)
RODS = (2, 3, 4, 6, 8)
SLIDER = 'type="prismatic"'
LIMITS = '<limit lower="-3" upper="3" effort="1000" velocity="10"/></joint>'
MASSLESS = '<link name="{}"/>'
STATES = 200_000


def on_legs(n: int) -> str:
    """A disc on n UPS legs, spread over two circles so that no two are alike."""
    parts, driven = [], []
    for k in range(n):
        base, platform = 2 * pi * k / n, 2 * pi * (k + 0.35 * (-1) ** k) / n + 0.3
        a = (0.8 * cos(base), 0.8 * sin(base), 0.05 * (k % 3))
        b = (0.4 * cos(platform), 0.4 * sin(platform), -0.04 * (k % 2))
        name = f"leg{k + 1}"
        parts += [
            MASSLESS.format(f"{name}_cross"), body(f"{name}_body", 0.5, 3.0), body(f"{name}_rod", 0.5, 1.0),
            joint(f"{name}_first", "base_link", f"{name}_cross", f"{a[0]} {a[1]} {a[2]}", axis="0 1 0"),
            joint(f"{name}_second", f"{name}_cross", f"{name}_body"),
            joint(name, f"{name}_body", f"{name}_rod", axis="1 0 0", kind=SLIDER).replace("</joint>", LIMITS),
            loop(f"{name}_ball", f"{name}_rod", "0.5 0 0", "platform", f"{b[0]} {b[1]} {b[2]}", "spherical"),
        ]  # fmt: skip
        driven.append(name)
    return robot(parts + branch("xyzcba"), driven, "0.02 0.03 0.9")


def with_rods(k: int) -> str:
    """A Delta with k rods per arm: arms 0.4 m, rods 1 m, 0.1 m beside each other."""
    parts, driven, guesses = [], [], []
    for limb in range(3):
        c, s = cos(2 * pi * limb / 3), sin(2 * pi * limb / 3)
        name = f"limb{limb + 1}"
        turned = f'xyz="{0.3 * c} {0.3 * s} 0" rpy="0 0 {2 * pi * limb / 3}"'
        parts += [body(name, 0.4, 3.0), joint(name, "base_link", name, axis="0 1 0").replace('xyz="0 0 0"', turned, 1)]
        driven.append(name)
        for rod in range(k):
            side = 0.1 * (rod - 0.5 * (k - 1))
            one = f"{name}_{rod + 1}"
            at = f"{0.1 * c - side * s} {0.1 * s + side * c} 0"
            parts += [
                MASSLESS.format(f"{one}_cross"), body(f"{one}_rod", 1.0, 0.5),
                joint(f"{one}_elbow", name, f"{one}_cross", f"0.4 {side} 0", axis="0 1 0"),
                joint(f"{one}_swing", f"{one}_cross", f"{one}_rod"),
                loop(f"{one}_ball", f"{one}_rod", "1 0 0", "platform", at, "spherical"),
            ]  # fmt: skip
            guesses.append(f'<joint name="{one}_elbow" position="2.2"/>')
    return robot(parts + branch("xyz"), driven, f"0 0 {-sqrt(1.0 - 0.6**2)}", "".join(guesses))


def branch(freedoms: str) -> list[str]:
    """Joints that carry the platform: slides along x, y, z; turns about x, y, z by the names a, b, c."""
    parts, parent = [], "base_link"
    for freedom in freedoms:
        child = "platform" if freedom == freedoms[-1] else f"at_{freedom}"
        axis = " ".join(str(int(k == "xyzabc".index(freedom) % 3)) for k in range(3))
        slides = freedom in "xyz"
        one = joint(f"platform_{freedom}", parent, child, axis=axis, **({"kind": SLIDER} if slides else {}))
        parts += [one.replace("</joint>", LIMITS) if slides else one]
        parts += [] if child == "platform" else [MASSLESS.format(child)]
        parent = child
    return parts


def robot(parts: list[str], driven: list[str], home: str, guesses: str = "") -> str:
    """URDF+ text of a robot with a disc as platform."""
    disc = '<inertial><mass value="5"/><inertia ixx="0.1" iyy="0.1" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial>'
    drives = "".join(f'<joint name="{n}"><command_interface name="effort"/></joint>' for n in driven)
    return (
        f'<robot name="scaled"><link name="base_link"/><link name="platform">{disc}</link>{"".join(parts)}'
        f'<pkm base_link="base_link" platform_link="platform"><home xyz="{home}" rpy="0 0 0">{guesses}</home></pkm>'
        f'<ros2_control name="scaled" type="system">{drives}</ros2_control></robot>'
    )


@dataclass(frozen=True)
class Cost:
    """Times of lean calls [s] of one robot: inverse kinematics, with inverse dynamics, with direct dynamics."""

    size: int  # legs, or bodies per limb
    bodies: int
    inverse_kinematics: float
    inverse_dynamics: float
    direct_dynamics: float


def measure(text: str, size: int) -> Cost:
    kinematics = Kinematics(load_mechanism(text))
    dynamics = Dynamics(kinematics, friction=False)
    some = random_motions(kinematics, 1)
    pose, twist, acceleration = some.pose[0], some.twist[0], some.acceleration[0]
    moving = np.concatenate([pose, twist, acceleration, np.zeros(6)])
    coasting = np.concatenate([pose, twist, np.zeros(12)])
    effort = np.ascontiguousarray(dynamics.inverse(pose, twist, acceleration).effort)
    q, out, a = np.empty(len(effort)), np.empty(len(effort)), np.empty(6)
    positions, inverse, direct = kinematics.lean_inverse(), dynamics.lean_inverse(), dynamics.lean_direct()
    calls: list[Callable[[], int]] = [
        lambda: positions(pose, q), lambda: inverse(moving, out), lambda: direct(coasting, effort, a),
    ]  # fmt: skip
    assert all(call() == 0 for call in calls)
    t = interleaved(*calls, repetitions=31)
    return Cost(size, len(kinematics.tables.bodies) - 1, *(x.median for x in t))


def line(costs: list[Cost], what: str) -> tuple[float, float, float]:
    """Straight line through costs by size: (cost at zero [s], slope [s], largest deviation over the value there)."""
    x, y = np.array([c.size for c in costs]), np.array([getattr(c, what) for c in costs])
    slope, start = np.polyfit(x, y, 1)
    return float(start), float(slope), float(np.abs((start + slope * x) / y - 1.0).max())


@contextmanager
def cores(n: int) -> Iterator[None]:
    """Leave this process n of the cores it may use."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(before)[:n]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def core_rates(available: int) -> list[tuple[int, float]]:
    """Delta states per second of wall clock, inverse kinematics and dynamics, on 1 to `available` cores."""
    dynamics = Dynamics(Kinematics(load_mechanism("delta")), friction=False)
    some = random_motions(dynamics.kinematics, 1000)
    motions: list[Array] = [np.tile(x, (STATES // 1000, 1)) for x in (some.pose, some.twist, some.acceleration)]
    found = []
    for n in sorted({1, *(2**k for k in range(available.bit_length())), available}):
        if n > available:
            continue
        with cores(n):
            dynamics.inverse(*motions)
            times = []
            for _ in range(7):
                start = perf_counter()
                dynamics.inverse(*motions)
                times.append(perf_counter() - start)
        found.append((n, STATES / median(times)))
    return found


@dataclass(frozen=True)
class Apart:
    """Times [s] of one inverse dynamics by the kernels, whole and limb by limb; `handed`: a limb handed to a thread."""

    robot: str
    limbs: int
    whole: float
    slowest: float
    rest: float
    handed: float


def taken_apart(name: str) -> Apart:
    """Inverse dynamics of a robot of the gallery, limb by limb (Müller 2021, section 9: 0.97 of 2.74 microseconds)."""
    dynamics = Dynamics(Kinematics(load_mechanism(name)), friction=False)
    parts, kinematics = LimbByLimb(dynamics), dynamics.kinematics
    some = random_motions(kinematics, 1)
    motion = np.concatenate([some.pose[0], some.twist[0], some.acceleration[0], np.zeros(6)])
    m = len(kinematics.actuated_names)
    J, wrenches, total, effort = np.zeros((m, 6)), np.zeros((len(parts), 6)), np.zeros(6), np.zeros(m)
    shares, rest = parts.lean_shares(), parts.lean_rest()
    whole = bind(inverse_dynamics, (dynamics.model(), kinematics.engine.data(), 0), (motion, effort))
    calls: list[Callable[[], object]] = [lambda: whole(motion, effort)]
    calls += [partial(share, motion, J, wrench) for share, wrench in zip(shares, wrenches, strict=True)]
    calls.append(lambda: rest(motion, J, wrenches, total, effort))
    assert all(call() == 0 for call in calls)
    times = [t.median for t in interleaved(*calls, repetitions=31)]
    with ThreadPoolExecutor(1) as pool:
        handed = []
        for _ in range(2000):
            start = perf_counter()
            pool.submit(calls[1]).result()
            handed.append(perf_counter() - start)
    return Apart(name, len(parts), times[0], max(times[1:-1]), times[-1], median(handed))


def apart_rows() -> list[list[str]]:
    """Lines of the table of calls taken apart."""
    lines = []
    for name in ("delta", "delta_rr", "irsbot2", "gough_stewart"):
        x = taken_apart(name)
        times = [f"{1e6 * t:.2f} µs" for t in (x.whole, x.slowest, x.rest, x.handed)]
        lines.append([name, str(x.limbs), *times])
    return lines


def families() -> dict[str, list[Cost]]:
    """Costs of both families, by what their sizes count."""
    return {
        "UPS legs": [measure(on_legs(n), n) for n in LEGS],
        "bodies per limb of a Delta": [measure(with_rods(k), 1 + 2 * k) for k in RODS],
    }


def plot(found: dict[str, list[Cost]], file: Path) -> None:
    """Draw costs by size, with the straight lines through them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(10, 4), layout="constrained")
    for ax, (counted, costs) in zip(axes, found.items(), strict=True):
        sizes = np.array([c.size for c in costs])
        for what in ("direct_dynamics", "inverse_dynamics", "inverse_kinematics"):
            start, slope, _ = line(costs, what)
            (dots,) = ax.plot(sizes, [1e6 * getattr(c, what) for c in costs], "o", label=what.replace("_", " "))
            span = np.array([0, sizes[-1]])
            ax.plot(span, 1e6 * (start + slope * span), color=dots.get_color(), linewidth=0.8)
        ax.set(xlabel=counted, ylabel="time of a call [µs]", xlim=(0, None), ylim=(0, None))
        ax.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(file, dpi=110)


def rows(found: dict[str, list[Cost]]) -> list[list[str]]:
    """Lines of the table: what is counted, the range, and the straight line through the times of each call."""
    lines = []
    for counted, costs in found.items():
        for what in ("inverse_kinematics", "inverse_dynamics", "direct_dynamics"):
            start, slope, off = line(costs, what)
            cells = [counted, f"{costs[0].size} to {costs[-1].size}", what.replace("_", " ")]
            lines.append([*cells, f"{1e6 * start:.2f} µs", f"{1e9 * slope:.0f} ns", f"{off:.0%}"])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description=__doc__.split("\n")[0])
    parser.add_argument("--plot", type=Path, help="picture to write")
    options = parser.parse_args()
    found = families()
    for cells in rows(found):
        print(" | ".join(cells))
    if options.plot:
        plot(found, options.plot)
    for cells in apart_rows():
        print("{}: {} limbs, whole {}, slowest limb {} and the rest {}; handed to a thread {}".format(*cells))
    for n, rate in core_rates(len(os.sched_getaffinity(0))):
        print(f"{n} cores: {rate / 1e6:.2f} million states per second")


if __name__ == "__main__":
    main()
