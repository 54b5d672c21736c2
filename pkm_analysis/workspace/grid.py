# SPDX-License-Identifier: Apache-2.0
"""The workspace on a grid, and its extent: where the search for borders begins."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Coordinate, Range
from pkm_analysis.requirements.conditions import INSIDE, Membership
from pkm_analysis.requirements.grammar import shown
from pkm_description.mechanism import Array
from pkm_runtime.chunks import slices
from pkm_runtime.describable import listed

REACHES = (2.0, 4.0, 8.0, 16.0, 32.0, 0.5, 0.1, 0.02)  # of the robot's size: search distances from home, in order
COARSE = {1: 401, 2: 61, 3: 25}  # nodes along each coordinate in the search for the extent
SLOW_COARSE = {1: 81, 2: 21, 3: 9}  # the same where poses are solved by iteration
ROUNDS = 2  # the second on the box that the first found
ROWS = 1 << 20  # nodes per batch


def codes_on_grid(membership: Membership, axes: list[Array]) -> NDArray[np.int32]:
    """Codes of all nodes of a grid, one array axis per coordinate."""
    shape = tuple(len(axis) for axis in axes)
    codes = np.empty(int(np.prod(shape)), dtype=np.int32)
    for at in slices(len(codes), ROWS):
        index = np.unravel_index(np.arange(at.start, at.stop), shape)
        points = np.stack([axis[i] for axis, i in zip(axes, index, strict=True)], axis=1)
        codes[at] = membership.codes(points)
    return codes.reshape(shape)


def extent(conditions: Membership, given: Mapping[str, Range]) -> dict[str, Range]:
    """Range of a workspace along each of its coordinates, by name, with a margin; `given` ones stay.

    `AnalysisError` where it is unbounded along a coordinate, or empty wherever it was searched.
    """
    coordinates = conditions.domain.coordinates
    if all(c.name in given for c in coordinates):
        return {c.name: given[c.name] for c in coordinates}
    size = conditions.robot.kinematics.engine.size
    endless: list[Coordinate] = []
    asked: dict[str, Range] = {}
    for reach in REACHES:
        asked = {c.name: given.get(c.name, _asked(c, reach * size, conditions.platform_limits)) for c in coordinates}
        found = _box(conditions, asked)
        if found is None:
            continue
        open_ = [c for c in coordinates if c.name not in given and c.unit == "m"]
        endless = [c for c in open_ if _goes_on(c, found[c.name], asked[c.name], conditions)]
        if not endless:
            inner = {name: (max(a, asked[name][0]), min(b, asked[name][1])) for name, (a, b) in found.items()}
            return {**inner, **{c.name: given[c.name] for c in coordinates if c.name in given}}
    if endless:
        far = f"up to {shown(REACHES[4] * size, 'm')} from home no joint limit and no limb stops the robot"
        problem = f"it has no end along {listed(c.label for c in endless)}: {far}"
        raise AnalysisError("workspace", problem, "give a range, or limits of joints in the description")
    membership = conditions.over(conditions.domain.within(asked))
    middle = membership.domain.box.mean(axis=1)
    code = int(membership.codes(middle[None])[0])
    why = f"; in the middle of that: {membership.why(code, middle)}" if code else ""
    problem = f"it is empty: nowhere within {membership.domain.in_words()} do all conditions hold{why}"
    raise AnalysisError("workspace", problem, "loosen a requirement, or give ranges near to where it is thought to be")


def _asked(c: Coordinate, reach: float, limited: bool) -> Range:
    room = reach if c.unit == "m" else pi
    low, high = c.home - room, c.home + room
    if limited:
        low, high = max(low, min(c.lower, high)), min(high, max(c.upper, low))
    return (low, high) if low < high else (c.home - room, c.home + room)


def _goes_on(c: Coordinate, found: Range, asked: Range, conditions: Membership) -> bool:
    """Whether the workspace reaches an end of the searched range that is no limit of the description."""
    hard = (asked[0] <= c.lower, asked[1] >= c.upper) if conditions.platform_limits else (False, False)
    return (found[0] < asked[0] and not hard[0]) or (found[1] > asked[1] and not hard[1])


def _box(conditions: Membership, ranges: dict[str, Range]) -> dict[str, Range] | None:
    """The bounding box of the nodes inside, a step larger; None without such nodes."""
    nodes = (COARSE if conditions.robot.evaluator.quick else SLOW_COARSE)[min(len(ranges), 3)]
    box, found = dict(ranges), None
    for _ in range(ROUNDS):
        domain = conditions.domain.within(box)
        axes = domain.grid([nodes] * domain.dimension)
        inside = codes_on_grid(conditions.over(domain), axes) == INSIDE
        if not inside.any():
            return found
        found = {}
        for k, (name, axis) in enumerate(zip(ranges, axes, strict=True)):
            here = np.flatnonzero(inside.any(axis=tuple(j for j in range(inside.ndim) if j != k)))
            step = float(axis[1] - axis[0])
            found[name] = (float(axis[here[0]]) - step, float(axis[here[-1]]) + step)
            box[name] = (max(ranges[name][0], found[name][0]), min(ranges[name][1], found[name][1]))
    return found
