# SPDX-License-Identifier: Apache-2.0
"""All assembly modes of a robot: the poses that its method finds, with joint positions, a status and a label each.

With its actuators locked, a robot is a platform on which its limbs impose constraints. Which constraints, and how the
platform can move, decides how many poses there are, and how they are found.

A pose is a mode only where joint positions close the loops there with the actuators at their values. Limbs take those
nearest to home; where these have an actuator elsewhere, as in another branch or a leg turned over, positions that agree
with the actuators are searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.limb_closed_forms import Angles, Circles, Distances, Planar, Planes, Schoenflies, Spheres
from pkm_kinematics.assembly.limb_constraints import Constraints
from pkm_kinematics.assembly.limb_plates import Plates
from pkm_kinematics.assembly.limb_surfaces import Surfaces
from pkm_kinematics.assembly.method import AssemblyMethod
from pkm_kinematics.assembly.whole_search import Search, passive_positions
from pkm_kinematics.forward.along_path import AssemblyModes, ForwardSolution
from pkm_kinematics.kernels.model_and_data import SEEDED, Solved, near
from pkm_kinematics.kernels.position.chain import TAU
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.status import Status, closes

METHODS: tuple[type[AssemblyMethod], ...] = (
    # from the closed forms of the limbs and the platform's degrees of freedom
    Angles,  # 3 rotations
    Planes,  # 3 translations, each limb in a plane
    Spheres,  # 3 translations
    Circles,  # 2 translations
    Planar,  # 2 translations and the turn about their normal
    Schoenflies,  # 3 translations and a turn
    Distances,  # all six degrees of freedom
    # from the limbs' chains of joints
    Surfaces,  # 3 or 2 translations
    Plates,  # 3 translations and a turn, with plates between limbs and platform
    Constraints,  # any degrees of freedom
    # from nothing
    Search,
)


def choose_method(engine: Engine) -> AssemblyMethod:
    """The method by which all assembly modes of a robot are found."""
    return next(method for method in (each(engine) for each in METHODS) if method.recognised)


ASSEMBLED = 1e-8  # m or rad: a pose of an assembly mode gives back the actuated joint positions this well


def all_modes(method: AssemblyMethod, q: Array) -> AssemblyModes:
    """One solution per assembly mode, actuated joints at q (n_actuated,) [rad or m]; see `Kinematics.forward_all`."""
    engine = method.engine
    if not method.usable(q):
        return AssemblyModes([], method.name, False, "a joint position is not finite, or too large to close loops with")
    found = method.solve(q)
    if not len(found.poses):
        return AssemblyModes([], method.name, found.certified, found.caution)
    order = method.order(found.poses)
    poses = found.poses[order]
    seeds = _at_home(engine, q)[None] if found.joints is None else found.joints[order]
    solved = engine.positions.solve(poses, near(seeds, len(poses)))
    error = _actuator_errors(method, solved, q)
    modes = [
        k for k, far in enumerate(error.tolist()) if far < ASSEMBLED or _agree(method, q, poses[k], k, solved, error)
    ]
    engine.ranges.wrap_into_limits(solved, engine.ranges.passive_turned_freely)
    if any(times != 1 for times in found.multiplicity.tolist()):
        solved.status[(found.multiplicity[order] != 1) & closes(solved.status)] = Status.SINGULAR
    every = len(modes) == len(poses)
    labels = _labels(method.prefixes(q, *((poses, solved.q) if every else (poses[modes], solved.q[modes]))))
    answers = [
        ForwardSolution(poses[k], solved.q[k], solved.status[k], error[k], solved.iterations[k], label, engine, False)
        for k, label in zip(modes, labels, strict=True)
    ]
    unconfirmed = len(poses) - len(modes)
    if unconfirmed and found.certified and engine.iterated:  # closed forms know; iteration only fails
        caution = f"{unconfirmed} more poses satisfy the limbs' equations, but have no joint positions"
        return AssemblyModes(answers, method.name, False, caution)
    return AssemblyModes(answers, method.name, found.certified, found.caution)


def _at_home(engine: Engine, q: Array) -> Array:
    joints = engine.home_joints.copy()
    joints[engine.actuated_column] = q
    return joints


def _actuator_errors(method: AssemblyMethod, solved: Solved, q: Array) -> Array:
    """Largest difference (k,) of actuated joints from q; turning joints first take the whole turn nearest to q."""
    engine = method.engine
    columns = engine.actuated_column
    largest = method.actuator_errors(solved.q, q)
    if not all(error < np.pi for error in largest.tolist()):
        off = solved.q[:, columns] - q
        turns = TAU * np.round(off / TAU) * engine.actuated_turning
        away = np.flatnonzero(turns.any(axis=1) & closes(solved.status))
        solved.q[away[:, None], columns] -= turns[away]
        beyond = engine.ranges.beyond(solved.q[away]).any(axis=1)
        solved.status[away] = np.where(beyond, Status.JOINT_LIMIT, Status.CONVERGED)
        largest = np.abs(off - turns).max(axis=1)
    return np.asarray(largest)


def _agree(method: AssemblyMethod, q: Array, pose: Array, k: int, solved: Solved, error: Array) -> bool:
    """Put joint positions with the actuators at q into row k of `solved` and `error`; False where there are none."""
    engine = method.engine
    start = engine.inputs.in_whole_graph_at(_at_home(engine, q), pose)
    found = passive_positions(engine.whole_graph, engine.actuated_names, start)
    if found is None:
        return False
    again = engine.positions.solve(pose[None], near(found[engine.in_whole], 1, SEEDED))
    solved.q[k], solved.status[k], solved.iterations[k] = again.q[0], again.status[0], again.iterations[0]
    error[k] = _actuator_errors(method, solved.rows(slice(k, k + 1)), q)[0]
    return bool(error[k] < ASSEMBLED)


def _labels(prefixes: Sequence[str]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for prefix in prefixes:
        counts[prefix] = counts.get(prefix, 0) + 1
        yield f"{prefix}{counts[prefix]}"
