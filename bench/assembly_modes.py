# SPDX-License-Identifier: Apache-2.0
"""How reliably and how fast all assembly modes are found: `python bench/assembly_modes.py [--geometries N]`.

For every class of robot: random geometries with the limb lengths of a random pose, so that one real solution is
known. Prints how often the answer is complete, how often the known pose is in it, the numbers of complex and real
solutions and the time of a call. Then, for Gough-Stewart platforms, compares the set with what Newton's method finds
from thousands of random poses, and says how often a single Newton run from a random pose finds the pose that was
meant.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_kinematics.assembly.geometry.planar_platform import planar_poses
from pkm_kinematics.assembly.geometry.rigid_body import six_distances, three_angles
from pkm_kinematics.assembly.geometry.schoenflies import positions_and_angle
from pkm_kinematics.assembly.geometry.surfaces import point_on_circles, point_on_spheres
from pkm_kinematics.assembly.limb_closed_forms import limb_distances
from pkm_kinematics.assembly.result import AssemblyStatus, SolutionSet

Array = NDArray[np.float64]
Case = Callable[[np.random.Generator], tuple[Callable[[], SolutionSet], Array]]
FOUND = 1e-6  # distance at which a solution is the known pose: positions relative to the robot's size, rad


def turn(phi: float) -> Array:
    """Rotation matrix (2, 2)."""
    return np.array([[np.cos(phi), -np.sin(phi)], [np.sin(phi), np.cos(phi)]])


def spheres(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """A translational robot of the Delta class."""
    centres, point = rng.normal(size=(3, 3)), rng.normal(size=3)
    return lambda: point_on_spheres(centres, np.linalg.norm(point - centres, axis=1)), point


def circles(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    centres, point = rng.normal(size=(2, 2)), rng.normal(size=2)
    return lambda: point_on_circles(centres, np.linalg.norm(point - centres, axis=1)), point


def planar(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """A 3-RRR or 3-RPR."""
    base, platform = rng.normal(size=(2, 3, 2))
    pose = np.array([*rng.normal(size=2), rng.uniform(-np.pi, np.pi)])
    lengths = np.linalg.norm(pose[:2] + platform @ turn(pose[2]).T - base, axis=1)
    return lambda: planar_poses(base, platform, lengths), pose


def spherical(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    base, platform = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.normal(size=(2, 3, 3)))
    rotation = Rotation.random(None, rng)
    cosines = np.sum(base * rotation.apply(platform), axis=1)
    return lambda: three_angles(base, platform, cosines), rotation.as_quat(canonical=True)


def schoenflies(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """Three translations and a turn about z."""
    base, platform = rng.normal(size=(2, 4, 3))
    pose = np.array([*rng.normal(size=3), rng.uniform(-np.pi, np.pi)])
    x, y, z = platform.T
    nil = np.zeros(4)
    parts = (np.column_stack(p) for p in ((nil, nil, z), (x, y, nil), (-y, x, nil)))
    fixed, cosine, sine = parts
    lengths = np.linalg.norm(pose[:3] + fixed + np.cos(pose[3]) * cosine + np.sin(pose[3]) * sine - base, axis=1)
    return lambda: positions_and_angle(base, fixed, cosine, sine, lengths), pose


def gough_stewart(rng: np.random.Generator, flat: bool = False) -> tuple[Array, Array, Array, Array]:
    """Base, platform, lengths and pose (7,) of a 6-UPS; with `flat` both are plane, the platform half as large."""
    base, platform = rng.normal(size=(2, 6, 3))
    if flat:
        base[:, 2] = platform[:, 2] = 0.0
        platform *= 0.5
    rotation, translation = Rotation.random(None, rng), rng.normal(size=3)
    lengths = np.linalg.norm(translation + rotation.apply(platform) - base, axis=1)
    return base, platform, lengths, np.append(translation, rotation.as_quat(canonical=True))


def six_legs(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """A general 6-UPS."""
    base, platform, lengths, pose = gough_stewart(rng)
    return lambda: six_distances(base, platform, lengths), pose


def six_flat_legs(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """A 6-UPS with plane base and platform."""
    base, platform, lengths, pose = gough_stewart(rng, flat=True)
    return lambda: six_distances(base, platform, lengths), pose


def octahedron(rng: np.random.Generator) -> tuple[Callable[[], SolutionSet], Array]:
    """A 6-UPS whose legs meet in pairs at three base and three platform points."""
    pairs = np.repeat(np.arange(3), 2)
    base, platform = rng.normal(size=(3, 3))[pairs], rng.normal(size=(3, 3))[np.roll(pairs, 1)]
    rotation, translation = Rotation.random(None, rng), rng.normal(size=3)
    lengths = np.linalg.norm(translation + rotation.apply(platform) - base, axis=1)
    return lambda: six_distances(base, platform, lengths), np.append(translation, rotation.as_quat(canonical=True))


CLASSES: dict[str, Case] = {
    "3 spheres (Delta)": spheres,
    "2 circles (five-bar)": circles,
    "planar 3-RRR": planar,
    "spherical 3-RRR": spherical,
    "Schoenflies 4 limbs": schoenflies,
    "6-UPS general": six_legs,
    "6-UPS plane hexagons": six_flat_legs,
    "6-UPS octahedral": octahedron,
}


def gap(solutions: Array, pose: Array) -> float:
    """Distance of the nearest solution to a pose of the same form; angles and quaternions on their circles."""
    if not len(solutions):
        return np.inf
    plain = np.abs(solutions - pose)
    if pose.size in (4, 7) and abs(np.linalg.norm(pose[-4:]) - 1.0) < 1e-9:  # a quaternion, of either sign
        mirrored = solutions.copy()
        mirrored[:, -4:] *= -1.0
        plain = np.stack([plain, np.abs(mirrored - pose)])
    else:  # an angle, or a length that will not be off by a full turn to six digits
        plain[:, -1] = np.minimum(plain[:, -1], np.abs(2.0 * np.pi - plain[:, -1]))
    return float(plain.max(axis=-1).min())


def newton_poses(base: Array, platform: Array, lengths: Array, starts: int, rng: np.random.Generator) -> list[Array]:
    """Poses (7,) that Newton's method reaches from random ones, one per start that converges."""
    reach = float(np.max(lengths) + np.max(np.linalg.norm(base, axis=1)) + np.max(np.linalg.norm(platform, axis=1)))
    rotation, translation = Rotation.random(starts, rng), rng.uniform(-reach, reach, size=(starts, 3))
    for _ in range(40):
        turned = np.einsum("nij,kj->nki", rotation.as_matrix(), platform)
        legs = translation[:, None] + turned - base
        jacobian = 2.0 * np.concatenate([legs, np.cross(turned, legs)], axis=2) + 1e-12 * np.eye(6)
        step = np.linalg.solve(jacobian, (np.sum(legs**2, axis=2) - lengths**2)[..., None])[..., 0]
        step *= np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-9))
        translation = translation - step[:, :3]
        rotation = Rotation.from_rotvec(-step[:, 3:]) * rotation
    legs = translation[:, None] + np.einsum("nij,kj->nki", rotation.as_matrix(), platform) - base
    good = np.max(np.abs(np.linalg.norm(legs, axis=2) - lengths), axis=1) < 1e-10
    return list(np.hstack([translation, rotation.as_quat(canonical=True)])[good])


def report_classes(geometries: int) -> None:
    """One line per class of robot."""
    print(f"{geometries} random geometries per class, one core, times in ms")
    print(
        f"{'class':22s} {'complete':>9s} {'known pose':>11s} {'median':>8s} {'worst':>8s}  complex solutions; most real"
    )
    for name, case in CLASSES.items():
        rng = np.random.default_rng(1)
        case(rng)[0]()  # compiles
        complete, known, times, complex_counts, most = 0, 0, [], Counter[int](), 0
        for _ in range(geometries):
            solve, pose = case(rng)
            begin = time.perf_counter()
            modes = solve()
            times.append(1e3 * (time.perf_counter() - begin))
            complete += modes.status == AssemblyStatus.COMPLETE
            known += gap(modes.solutions, pose) < FOUND
            complex_counts[modes.n_complex] += 1
            most = max(most, modes.n_real)
        counts = ", ".join(f"{count}: {often}x" for count, often in sorted(complex_counts.items()))
        print(
            f"{name:22s} {complete:>5d}/{geometries:<4d} {known:>6d}/{geometries:<4d} {np.median(times):8.2f} "
            f"{max(times):8.2f}  {counts}; {most}"
        )


def report_dietmaier(repetitions: int) -> None:
    """Dietmaier's platform, from its description."""
    kinematics = Kinematics(load_mechanism("dietmaier"))
    q = kinematics.inverse(kinematics.home).actuated
    legs = limb_distances(kinematics.tables, q)
    six_distances(*legs)
    times, counts = [], Counter[int]()
    for _ in range(repetitions):
        begin = time.perf_counter()
        modes = six_distances(*legs)
        times.append(1e3 * (time.perf_counter() - begin))
        counts[modes.n_real] += 1
    worst = float(np.max(modes.residuals))
    found = ", ".join(f"{count} real: {often}x" for count, often in counts.items())
    print(f"Dietmaier's 6-UPS, {repetitions} calls: {found}; closure {worst:.1e} m; median {np.median(times):.1f} ms")


def report_brute_force(geometries: int, starts: int) -> None:
    """Agreement with Newton's method from many random poses, and what one such run is worth."""
    rng = np.random.default_rng(2)
    same, fewer, more, outcomes = 0, 0, 0, Counter[str]()
    for _ in range(geometries):
        base, platform, lengths, pose = gough_stewart(rng)
        modes = six_distances(base, platform, lengths)
        reached = newton_poses(base, platform, lengths, starts, rng)
        distinct: list[Array] = []
        for other in reached:
            if not distinct or gap(np.array(distinct), other) > 1e-5:
                distinct.append(other)
        missed = sum(gap(modes.solutions, other) > FOUND for other in distinct)
        same += missed == 0 and len(distinct) == modes.n_real
        fewer += missed == 0 and len(distinct) < modes.n_real
        more += missed > 0
        true = sum(gap(other[None], pose) < FOUND for other in reached)
        outcomes.update({"true": true, "wrong mode": len(reached) - true, "diverged": starts - len(reached)})
    print(f"{geometries} general 6-UPS against Newton's method from {starts} random poses each:")
    print(f"  same set {same}, Newton missed some {fewer}, Newton found one that was missing {more}")
    total = sum(outcomes.values())
    shares = ", ".join(f"{name} {100 * outcomes[name] / total:.0f} %" for name in ("true", "wrong mode", "diverged"))
    print(f"  a single Newton run from a random pose: {shares}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--geometries", type=int, default=200, help="random geometries per class")
    options = parser.parse_args()
    report_dietmaier(100)
    report_classes(options.geometries)
    report_brute_force(max(1, options.geometries // 10), 5000)
