# SPDX-License-Identifier: Apache-2.0
"""A tree through a format and back: what its joints and its mass matrix have lost on the way."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pkm_description.formats.convert import WRITERS
from pkm_description.joint_geometry import freedoms
from pkm_description.load import load_model
from pkm_description.loops.closure import ClosureModel
from pkm_description.mechanism import Array, JointType, LoopType
from pkm_description.rotations import skew
from pkm_description.tree_model import SINGLE, Motions, TreeModel
from pkm_runtime.errors import PkmError

FORMATS = ("urdf+", "mjcf", "sdf", "usd", "urdf+constraint", "yaml")
AWAY = 0.02  # rad and m: how far from home they are compared
WAYS = 8  # from home that are tried
OPEN = 1e-7  # dimensionless: a file with numbers of single precision is open by less
STEPS = 30  # of Newton's method
CLOSED = 1e-13


class Difference(NamedTuple):
    """Largest differences: of positions [m or rad], mass matrix and weight (of the largest entry)."""

    joints: float
    inertia: float
    weight: float


class LostError(PkmError):
    """A tree came back with other joints."""


def there_and_back(tree: TreeModel, kind: str) -> Difference:
    """Write a tree in a format and read it; `PkmError` where it cannot be, or has lost its coordinates."""
    text = WRITERS[kind](tree)[0]
    if kind != "yaml":
        return difference(tree, load_model(text))
    if not tree.loops:
        raise LostError(f"{tree.name}: it has no loop for a file of loops")
    unsaid = [loop.name for loop in tree.loops if loop.type not in (LoopType.REVOLUTE, LoopType.SPHERICAL)]
    if unsaid := [*unsaid, *(one.name for one in tree.couplings)]:
        raise LostError(f"{tree.name}: YAML has hinges and balls alone, and no {', '.join(unsaid)}")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tree.urdf").write_text(WRITERS["urdf"](tree)[0], encoding="utf-8")
        loops = Path(folder, "tree.yaml")
        loops.write_text(text, encoding="utf-8")
        return difference(tree, load_model(loops))


def difference(tree: TreeModel, again: TreeModel) -> Difference:
    """Compare two trees beside home, in the coordinates that the first leaves free."""
    # rates of one floating joint's attitude are others than those of three turns: it is held
    held = {f.name for j in again.joints if j.type is JointType.FLOATING for f in freedoms(j) if not f.slides}
    names = _coordinates(tree, {f.name for joint in again.joints for f in freedoms(joint)}, held)
    try:
        one = _beside(tree, names, held)
    except LostError:  # it is singular all around: its tree's own coordinates, if both have the same
        names = [
            f.name for j in tree.joint_named.values() if j.mimic is None for f in freedoms(j) if f.name not in held
        ]
        one = _State(tree, names, held, tree.home)
    other = _State(again, names, held, one.at)
    joints = max(abs(x - other.at[name]) for name, x in one.at.items() if name in other.at)
    pairs = ((one.inertia, other.inertia), (one.weight, other.weight))
    return Difference(joints, *(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-300)) for a, b in pairs))


def _coordinates(tree: TreeModel, shared: set[str], held: set[str]) -> list[str]:
    """Names of shared coordinates that determine a tree: what clusters call independent, where loops are cut alike."""
    tied = {name for one in tree.clusters for name in one.joints}
    free = {name for one in tree.clusters for name in (*one.independent, *one.idle)}
    leading = [j for j in tree.joint_named.values() if j.mimic is None]
    first = [f.name for j in leading if j.name not in tied or j.name in free for f in freedoms(j) if f.name not in held]
    if set(first) <= shared:
        return first
    model = tree.whole
    there = [f.name for joint in leading for f in freedoms(joint) if f.name in shared - held]
    found, lost = Motions.of(model, tree.home_of(model)).independent(
        [*(n for n in first if n in shared), *there], there
    )
    if lost:
        raise LostError(f"{tree.name}: it has come back without {', '.join(n for n in first if n not in shared)}")
    return list(found)


def _beside(tree: TreeModel, names: Sequence[str], held: Collection[str]) -> _State:
    """A state near home where the loops close: home may be one that folds. Home where they close there alone."""
    best = None
    for k in range(WAYS):
        away = {name: tree.home[name] + AWAY * np.sin(k + 1.0 + n) for n, name in enumerate(names)}
        try:
            found = _State(tree, names, held, tree.home | away)
        except LostError:
            continue
        if best is None or found.gap < best.gap:
            best = found
    if best is None or best.gap > OPEN:
        return _State(tree, names, held, tree.home)
    return best


class _State:
    """A whole tree at positions of some coordinates: `at` [m, rad] of all, `inertia` (n, n) and `weight` (n,)."""

    def __init__(
        self, tree: TreeModel, names: Sequence[str], held: Collection[str], start: Mapping[str, float]
    ) -> None:
        model = tree.whole
        columns = [f.name for joint in model.free for f in freedoms(joint)]
        if lost := [name for name in names if name not in columns]:
            raise LostError(f"{tree.name}: it has come back without {', '.join(lost)}")
        given = [columns.index(name) for name in names]
        moving = [k for k, name in enumerate(columns) if name not in held]
        others = [k for k in moving if k not in given]
        q = np.array([start.get(name, tree.home[name]) for name in columns])
        for _ in range(STEPS):
            gap, J = model.closure(q)
            if np.abs(gap).max(initial=0.0) < CLOSED or not others:
                break
            q[others] -= np.linalg.lstsq(J[:, others], gap, rcond=1e-9)[0] * model.scale[others]
        gap, J = model.closure(q)
        self.gap = float(np.abs(gap).max(initial=0.0))
        rates = np.zeros((model.size, len(given)))  # of all coordinates, for one of each given, dimensionless
        rates[given] = np.eye(len(given))
        if others and len(J):
            rates[others], _, rank, _ = np.linalg.lstsq(J[:, others], -J[:, given], rcond=SINGLE)
        if others and (not len(J) or rank < len(others)):
            raise LostError(f"{tree.name}: {', '.join(names)} leave joints undetermined")
        rates *= model.scale[:, None]
        self.at = dict(zip(columns, map(float, q), strict=True))
        M, G = _inertia(tree, model, q)
        self.inertia, self.weight = rates.T @ M @ rates, rates.T @ G


def _inertia(tree: TreeModel, model: ClosureModel, q: Array) -> tuple[Array, Array]:
    """Mass matrix (size, size) of all bodies and rotors, and what their weight asks of each coordinate (size,)."""
    poses, columns = model.forward(q)
    twists = model.twists(columns)
    M, G = np.zeros((model.size, model.size)), np.zeros(model.size)
    for link in tree.links:
        k = model.link_index[link.name]
        R, com = poses[k][:3, :3], poses[k][:3, :3] @ link.inertial.com + poses[k][:3, 3]
        moved = twists[k][:3] - skew(com) @ twists[k][3:]
        M += link.inertial.mass * moved.T @ moved + twists[k][3:].T @ R @ link.inertial.inertia @ R.T @ twists[k][3:]
        G -= link.inertial.mass * tree.gravity @ moved
    for name in tree.actuated_joints:
        drive = tree.joint_named[name].drive
        if drive is not None:
            M[model.slices[name], model.slices[name]] += drive.armature
    return M, G
