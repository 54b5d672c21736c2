# SPDX-License-Identifier: Apache-2.0
"""Frames of a file whose numbers are rounded, moved by as little as closes its loops.

Loops that repeat each other, such as those of parallelograms and of planar linkages of hinges, agree only as far as
their numbers have digits: USD has single precision, others write six. The least displacement of joints and ends of
loops that makes them agree in several configurations is found by Gauss and Newton, with the joints eliminated.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from pkm_description.corrections import set_origin
from pkm_description.loops.closure import ClosureModel, advance
from pkm_description.loops.home import close
from pkm_description.mechanism import Array, Joint, JointType, Loop, frozen
from pkm_description.rotations import rotation_from_vector, transform
from pkm_description.tree_model import SINGLE, started_tree
from pkm_description.urdf import urdf_plus

ENDS = ("predecessor", "successor")  # of a loop: links, with a frame each
EXACT = 1e-14  # dimensionless gap that more rounds leave as it is
RANK = 2e-5  # of the largest singular value: between that of rounded dependent equations and of independent ones
SAMPLES = 12  # configurations in which loops shall agree
STARTS = 60  # of a robot with a platform, whose loader searches, too
STRAY = 0.05  # rad, and of the length: of a step between them
AGREE = 1e-10  # dimensionless: what solvers take for closed
ROUNDS = 4  # the displacements are some 1e-7 of the length: what is of second order in them is gone after two


def settled(text: str) -> tuple[str, list[str]]:
    """URDF+ text with frames moved so that its loops close, and a sentence about it; as it was where they do."""
    description = urdf_plus.parse(text, "", tree=True)
    if not description.loops:
        return text, []
    tree = started_tree(description, "", text)
    gaps, moves, root = [], [], ET.fromstring(text)
    frames = {("joint", one.name): one.origin for one in tree.joints}
    frames |= {(end, one.name): getattr(one, f"{end}_frame") for one in tree.loops for end in ENDS}
    for members, ties in tree.tied_to(tree.joint_named):
        model = tree.closures(members, ties)
        home = tree.home_of(model)
        if not model.loops:
            continue
        home, open_by, _ = _closed(model, _near(model, home, STARTS if description.platform_link else 1))
        gap = float(np.abs(open_by).max())
        if AGREE < gap < SINGLE and (found := _settled(model, home, members)) is not None:
            gaps.append(gap * model.length)
            moves.append(max(float(np.abs(frame[:3, 3]).max()) for frame in found.values()))
            for (kind, name), frame in found.items():
                where = f"loop[@name='{name}']/{kind}" if kind in ENDS else f"joint[@name='{name}']"
                for element in root.findall(where):
                    set_origin(element, frames[kind, name] @ frame)
    if not gaps:
        return text, []
    missed = f"its loops miss by {max(gaps):.2g} m at home, as its numbers are rounded: frames moved by up to "
    return ET.tostring(root, encoding="unicode"), [f"{missed}{max(moves):.2g} m close them"]


def _near(model: ClosureModel, start: Array, starts: int) -> Array:
    """Where loops close all but rounding, the first of some random starts; robots need not be drawn at home."""
    random, everything = np.random.default_rng(0), np.ones(model.size, dtype=bool)
    found, gap = close(model, model.closure, everything, start)
    for _ in range(1, starts):
        if gap < SINGLE:
            break
        found, gap = close(
            model, model.closure, everything, start + random.uniform(-1.5, 1.5, model.size) * model.scale
        )
    return found


def _held(J: Array) -> tuple[Array, int, Array]:
    """Left vectors, number of independent equations and right vectors (rows)."""
    left, sizes, right = np.linalg.svd(J)
    return left, int((sizes > RANK * max(1.0, float(sizes.max(initial=0.0)))).sum()), right


def _closed(model: ClosureModel, q: Array) -> tuple[Array, Array, Array]:
    """Coordinates near q that close the loops as far as rounding lets them; gaps and Jacobian there."""
    for _ in range(3):
        gap, J = model.closure(q)
        step = -np.linalg.pinv(J, rcond=RANK) @ gap
        q = advance(model, q, step)
        if np.abs(step).max(initial=0.0) < AGREE:
            break
    return q, gap + J @ step, J


def _settled(model: ClosureModel, home: Array, members: Collection[str]) -> dict[tuple[str, str], Array] | None:
    """Displacements (4, 4) of frames in their own axes, by what they place and its name; None where none is small."""
    random, configurations = np.random.default_rng(1), [home]
    J = model.closure(home)[1]
    for _ in range(SAMPLES):
        _, held, right = _held(J)
        step = right[held:].T @ random.uniform(-1.0, 1.0, len(right) - held)
        step *= STRAY / max(float(np.abs(step).max(initial=0.0)), STRAY)
        q, _, J = _closed(model, advance(model, configurations[-1], step))
        configurations.append(q)
    moved = {("joint", name): np.eye(4) for name in sorted(members)}
    moved |= {(end, one.name): np.eye(4) for one in model.loops for end in ENDS}
    for _ in range(ROUNDS):
        now = _displaced(model, moved)
        closed = [_closed(now, q) for q in configurations]
        configurations = [q for q, _, _ in closed]
        left = [vectors[:, held:].T for vectors, held, _ in (_held(J) for _, _, J in closed)]
        gaps = np.concatenate([rows @ gap for rows, (_, gap, _) in zip(left, closed, strict=True)])
        worst = float(np.abs(gaps).max(initial=0.0))
        if worst < EXACT:
            break
        freed, at, columns = _freed(now, moved)
        rows, whole = [], np.zeros(freed.size)
        for q, some in zip(configurations, left, strict=True):
            whole[at] = q
            rows.append(some @ freed.closure(whole)[1][:, columns])
        change = np.linalg.lstsq(np.concatenate(rows), -gaps, rcond=SINGLE)[0].reshape(-1, 6)
        for (key, frame), twist in zip(moved.items(), change, strict=True):
            moved[key] = frame @ _displacement(twist, model.length)
    far = max(float(np.abs(frame[:3, 3]).max()) for frame in moved.values()) / model.length
    return moved if worst < AGREE and far < 10.0 * SINGLE else None


def _displacement(twist: Any, length: float) -> Array:
    return transform(twist[:3] * length, rotation_from_vector(twist[3:]))


def _displaced(model: ClosureModel, moved: dict[tuple[str, str], Array]) -> ClosureModel:
    def frame(one: Joint | Loop, kind: str, origin: Array) -> Array:
        return frozen(origin @ moved.get((kind, one.name), np.eye(4)))

    joints = [replace(one, origin=frame(one, "joint", one.origin)) for one in model.joints]
    loops = []
    for one in model.loops:
        first, second = (frame(one, end, getattr(one, f"{end}_frame")) for end in ENDS)
        loops.append(replace(one, predecessor_frame=first, successor_frame=second))
    return ClosureModel(model.links, joints, loops, next(iter(model.link_index)), model.couplings)


def _freed(model: ClosureModel, moved: Collection[tuple[str, str]]) -> tuple[ClosureModel, list[int], list[int]]:
    """With a floating joint at every frame that may move; columns of the joints as they are, and of these."""
    joints, loops = [], []
    for joint in model.joints:
        if ("joint", joint.name) not in moved:
            joints.append(joint)
            continue
        name = f"{joint.name}@"
        joints.append(replace(joint, name=name, child=name, type=JointType.FLOATING, mimic=None))
        joints.append(replace(joint, parent=name, origin=frozen(np.eye(4))))
    for loop in model.loops:
        for end in ENDS:
            name = f"{loop.name}@{end}"
            place = replace(joints[0], name=name, parent=getattr(loop, end), child=name, type=JointType.FLOATING)
            joints.append(replace(place, origin=getattr(loop, f"{end}_frame"), mimic=None))
        first, second = (f"{loop.name}@{end}" for end in ENDS)
        here = frozen(np.eye(4))
        loops.append(replace(loop, predecessor=first, predecessor_frame=here, successor=second, successor_frame=here))
    freed = ClosureModel(model.links, joints, loops, next(iter(model.link_index)), model.couplings)
    names = [joint.name for joint in model.free], [f"{name}@{kind if kind in ENDS else ''}" for kind, name in moved]
    at, columns = ([k for name in some for k in range(*freed.slices[name].indices(freed.size))] for some in names)
    return freed, at, columns
