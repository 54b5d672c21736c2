# SPDX-License-Identifier: Apache-2.0
"""Whether loops can close at all, by the lengths of their bodies: a test without search.

Between the points about which its joints turn, a loop is a closed polygon with sides as long as the bodies, or as
slides let them be. It closes only if no side is longer than all others together. Axis directions and ranges of turning
joints are ignored: a loop that passes need not close, one that fails cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import scipy  # whose parts load when they are first used

from pkm_description.mechanism import Array, Joint, JointType, Link, Loop, LoopType
from pkm_description.rotations import inverse_transform

TURNING = (LoopType.SPHERICAL, LoopType.UNIVERSAL, LoopType.REVOLUTE, LoopType.FIXED)  # cut joints that do not slide
MOST_SLIDES = 6  # in one side; beyond, their corners are too many to be worth the while


@dataclass(frozen=True)
class Gap:
    """A loop that cannot close: one of its sides is at least `needed` long [m], all the others at most `available`."""

    loop: str
    needed: float
    available: float
    side: tuple[str, ...]  # links that the long side is made of
    others: tuple[str, ...]  # links of the other sides

    def in_words(self) -> str:
        """What is too long and what too short."""
        one = len(self.side) == 1
        others = f"{', '.join(self.others)} {'spans' if len(self.others) == 1 else 'together span'}"
        return (
            f'in <loop name="{self.loop}"> {" and ".join(self.side)} {"spans" if one else "span"} at least '
            f"{self.needed:.4g} m between joints, while {others} at most {self.available:.4g} m"
        )


@dataclass
class _Side:
    """A side of the polygon: a vector from joint to joint, which slides can lengthen along directions of its frame."""

    links: list[str]
    start: Array
    frame: Array = field(default_factory=lambda: np.eye(4))  # of the link where the walk is, in the side's frame
    slides: list[tuple[Array, float, float]] = field(default_factory=list)
    end: Array = field(default_factory=lambda: np.zeros(3))

    def ended(self, end: Array) -> _Side:
        self.end = end
        return self

    def span(self) -> tuple[float, float]:
        """Least and greatest length."""
        rigid = self.end - self.start
        if not self.slides:
            return float(np.linalg.norm(rigid)), float(np.linalg.norm(rigid))
        directions = np.column_stack([a for a, _, _ in self.slides])
        lower, upper = (np.array([s[k] for s in self.slides]) for k in (1, 2))
        wide = lower < upper
        fixed = rigid + directions[:, ~wide] @ lower[~wide]
        least = float(np.linalg.norm(fixed))
        if wide.any():
            nearest = scipy.optimize.lsq_linear(directions[:, wide], -fixed, (lower[wide], upper[wide]))
            least = float(np.sqrt(2.0 * nearest.cost))
        if not (np.isfinite(lower) & np.isfinite(upper)).all() or len(self.slides) > MOST_SLIDES:
            return least, np.inf
        corners = product(*zip(lower, upper, strict=True))
        return least, max(float(np.linalg.norm(rigid + directions @ np.array(corner))) for corner in corners)


def unclosable(
    links: Sequence[Link],
    joints: Sequence[Joint],
    loops: Sequence[Loop],
    base: str,
    placed: tuple[str, Array] | None,
    allowance: float,
) -> Iterator[Gap]:
    """Gaps of the loops that no joint positions close.

    `placed` is the platform link with its home pose (4, 4) in the base frame, if described; `allowance` [m] is for
    rounded numbers.
    """
    carrier = {joint.child: joint for joint in joints}

    def path(link: str) -> list[Joint]:
        found: list[Joint] = []
        while link in carrier and len(found) <= len(links):
            found.append(carrier[link])
            link = carrier[link].parent
        return found[::-1]

    for loop in loops:
        if loop.type not in TURNING:
            continue
        first, second = path(loop.predecessor), path(loop.successor)
        shared = 0
        while shared < min(len(first), len(second)) and first[shared] is second[shared]:
            shared += 1
        branches = [first[shared:], second[shared:]]
        if placed is not None and shared == 0:
            branches = [_with_placed(branch, path(placed[0]), base, *placed) for branch in branches]
        if any(joint.type in (JointType.PLANAR, JointType.FLOATING) for branch in branches for joint in branch):
            continue
        gap = _gap(loop, list(_sides(loop, *branches)), allowance)
        if gap is not None:
            yield gap


def _with_placed(branch: list[Joint], path: list[Joint], base: str, platform: str, pose: Array) -> list[Joint]:
    """A branch from the base with a fixed joint for the path to the platform, whose pose is known."""
    if not path or branch[: len(path)] != path:
        return branch
    return [Joint("home", JointType.FIXED, base, platform, pose, np.zeros(3)), *branch[len(path) :]]


def _sides(loop: Loop, up: Sequence[Joint], down: Sequence[Joint]) -> Iterator[_Side]:
    """Sides of a loop's polygon: from its cut joint up one branch, down the other, and back."""
    side = _Side([loop.predecessor], loop.predecessor_frame[:3, 3].copy())
    for joint in reversed(up):
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            yield side.ended(side.frame[:3, 3].copy())
            side = _Side([joint.parent], joint.origin[:3, 3].copy())
            continue
        if joint.type is JointType.PRISMATIC:
            side.slides.append((-side.frame[:3, :3] @ joint.axis, joint.limits.lower, joint.limits.upper))
        side.frame = side.frame @ inverse_transform(joint.origin)
        side.links.append(joint.parent)
    for joint in down:
        side.frame = side.frame @ joint.origin
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            yield side.ended(side.frame[:3, 3].copy())
            side = _Side([joint.child], np.zeros(3))
            continue
        if joint.type is JointType.PRISMATIC:
            side.slides.append((side.frame[:3, :3] @ joint.axis, joint.limits.lower, joint.limits.upper))
        side.links.append(joint.child)
    yield side.ended((side.frame @ loop.successor_frame)[:3, 3])


def _gap(loop: Loop, sides: list[_Side], allowance: float) -> Gap | None:
    """The side too long for the others, if there is one."""
    spans = [side.span() for side in sides]
    for k, (least, _) in enumerate(spans):
        available = sum(most for other, (_, most) in enumerate(spans) if other != k)
        if least > available + allowance:
            others = [link for i, side in enumerate(sides) if i != k and spans[i][1] > 0.0 for link in side.links]
            ends = tuple(dict.fromkeys((sides[k].links[0], sides[k].links[-1])))
            return Gap(loop.name, least, available, ends, tuple(dict.fromkeys(others)))
    return None
