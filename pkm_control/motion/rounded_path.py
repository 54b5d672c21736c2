# SPDX-License-Identifier: Apache-2.0
"""Straight lines between platform poses, with rounded corners: a path in SE(3) that is three times differentiable.

Position and attitude follow one formula. With `d_i` the step from pose i-1 to pose i (a vector for the position, a
rotation vector for the attitude) and `b_i(s)` its share, which runs from 0 to 1,

    p(s) = p_0 + sum_i d_i b_i(s)             R(s) = R_0 Exp(phi_1 b_1(s)) Exp(phi_2 b_2(s)) ...

a product of one-parameter motions, so no Euler angle and no interpolated matrix occurs (the cumulative form of
Kim, Kim and Shin, "A general construction scheme for unit quaternion curves", 1995). Each `b_i` rises linearly; around
corner i, within `r_i` before and after it, the slope of `b_i` fades out while that of `b_i+1` fades in, both along
the smoothstep of degree five. The path leaves the corner by at most 0.16 r_i |u_i+1 - u_i|, `u` being unit directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array

RADIAN_AS_LENGTH = 0.1  # m: how far a turn of one radian counts on the path parameter, beside translation


@dataclass(frozen=True, eq=False)
class PathSample:
    """Points of a path: `pose` (n, 7), and `first`, `second` (n, 6), its derivatives by the path parameter.

    The derivatives are those of position and the (angular) rate of the attitude, base frame: twist per unit of
    parameter speed. Behind them there may be redundant joints (n, r). `led` (n, 3) is the first derivative of the point
    whose speed is limited, where that is another.
    """

    pose: Array
    first: Array
    second: Array
    led: Array | None = None


class Path(Protocol):
    """A path for a time law, over the parameter from 0 to the last of `corners`."""

    corners: Array

    def segment(self, s: Array) -> NDArray[np.int64]:
        """Numbers of the steps (n,), from 0, between two given poses, that parameters (n,) are in."""
        ...

    def breaks(self) -> Array:
        """Sorted parameters where the character of the path changes, both ends too."""
        ...

    def sample(self, s: Array) -> PathSample:
        """The path at parameters (n,)."""
        ...


class RoundedPath:
    """The straight path through poses (m + 1, 7), base frame, with rounded corners.

    Redundant joints behind the poses, (m + 1, r), go from place to place in the same shares of the way.

    Blends (m - 1,) [m] are how far before and after each inner corner it is rounded; those that meet on a segment are
    shortened in proportion. The parameter runs from 0 to `length`; it is the arc length on straight translations.
    `corners` (m + 1,) are the parameters of the poses. `ValueError`: two poses in a row are the same.
    """

    def __init__(self, poses: Array, blends: Array) -> None:
        poses = np.asarray(poses, dtype=np.float64)
        attitudes = Rotation.from_quat(poses[:, 3:7])
        self._start = poses[0, [0, 1, 2, *range(7, poses.shape[1])]]
        self._steps = np.diff(poses[:, [0, 1, 2, *range(7, poses.shape[1])]], axis=0)  # redundant joints included
        self._turns = (attitudes[:-1].inv() * attitudes[1:]).as_rotvec()  # in the attitude before the step
        self._attitudes = attitudes
        self._spans = np.hypot(
            np.linalg.norm(self._steps, axis=1), RADIAN_AS_LENGTH * np.linalg.norm(self._turns, axis=1)
        )
        if np.any(self._spans <= 0.0):
            raise ValueError(f"step {int(np.argmin(self._spans))} of the path has no length")
        self.corners = np.concatenate([[0.0], np.cumsum(self._spans)])
        self.radii = np.zeros(len(poses))
        self.radii[1:-1] = blends
        reach = self.radii[:-1] + self.radii[1:]
        shrink = np.minimum(1.0, self._spans / np.maximum(reach, 1e-300))
        self.radii[:-1] *= shrink
        self.radii[1:] *= shrink
        # where the pair of active segments changes: anywhere between two roundings
        self._borders = 0.5 * ((self.corners[1:-2] + self.radii[1:-2]) + (self.corners[2:-1] - self.radii[2:-1]))

    @property
    def length(self) -> float:
        """Largest value of the path parameter."""
        return float(self.corners[-1])

    def segment(self, s: Array) -> NDArray[np.int64]:
        """As `Path.segment`."""
        return np.clip(np.searchsorted(self.corners, s, side="right") - 1, 0, len(self._spans) - 1)

    def breaks(self) -> Array:
        """Sorted parameters where a straight line or a rounding begins or ends, 0 and `length` too."""
        found = np.unique(np.concatenate([self.corners - self.radii, self.corners + self.radii]))
        apart = 1e-6 * self.length  # closer than that, two borders are one, up to rounding
        inner = found[(found > apart) & (found < self.length - apart)]
        inner = inner[np.concatenate([[True], np.diff(inner) > apart])] if inner.size else inner
        return np.concatenate([[0.0], inner, [self.length]])

    def sample(self, s: Array) -> PathSample:
        """The path at parameters (n,) in [0, `length`]."""
        s = np.atleast_1d(np.asarray(s, dtype=np.float64))
        first = np.searchsorted(self._borders, s) if len(self._spans) > 1 else np.zeros(len(s), dtype=np.int64)
        one = self._share(first, s)
        psi = self._attitudes[first].apply(self._turns[first])  # base frame
        attitude = Rotation.from_rotvec(psi * one[0][:, None]) * self._attitudes[first]
        position = self._start + self._offset(first) + self._steps[first] * one[0][:, None]
        d1 = _with_turn(self._steps[first], psi) * one[1][:, None]
        d2 = _with_turn(self._steps[first], psi) * one[2][:, None]
        if len(self._spans) > 1:
            second = first + 1
            two = self._share(second, s)
            axis = attitude.apply(self._turns[second])
            rate = np.cross(psi * one[1][:, None], axis)
            attitude = attitude * Rotation.from_rotvec(self._turns[second] * two[0][:, None])
            position = position + self._steps[second] * two[0][:, None]
            d1 += _with_turn(self._steps[second], axis) * two[1][:, None]
            d2 += _with_turn(self._steps[second], axis) * two[2][:, None]
            d2[:, 3:6] += rate * two[1][:, None]
        return PathSample(pose=_with_turn(position, attitude.as_quat()), first=d1, second=d2)

    def _offset(self, segment: NDArray[np.int64]) -> Array:
        sums = np.vstack([0.0 * self._start, np.cumsum(self._steps, axis=0)])
        return np.asarray(sums[segment])

    def _share(self, i: NDArray[np.int64], s: Array) -> tuple[Array, Array, Array]:
        rise = _ramp(s - self.corners[i], self.radii[i])
        fall = _ramp(s - self.corners[i + 1], self.radii[i + 1])
        span = self._spans[i]
        return (rise[0] - fall[0]) / span, (rise[1] - fall[1]) / span, (rise[2] - fall[2]) / span


class PathBeside:
    """What paths share whose steps and breaks are those of another."""

    def __init__(self, path: RoundedPath) -> None:
        self._path = path
        self.corners = path.corners

    def segment(self, s: Array) -> NDArray[np.int64]:
        """As `Path.segment`."""
        return self._path.segment(s)

    def breaks(self) -> Array:
        """As `Path.breaks`."""
        return self._path.breaks()


def _with_turn(steps: Array, turns: Array) -> Array:
    """Translations, turns, redundant joints (n, m): these last ones come behind the translations in `steps`."""
    return np.hstack([steps[:, :3], turns, steps[:, 3:]])


def _ramp(x: Array, r: Array) -> tuple[Array, Array, Array]:
    """max(x, 0), smoothed over |x| < r, and its two derivatives (slope 0 before, 1 after)."""
    wide = np.maximum(r, 1e-12)
    t = np.clip((x / wide + 1.0) / 2.0, 0.0, 1.0)
    value = np.where(x >= r, x, wide * t**4 * (5.0 - 6.0 * t + 2.0 * t * t))
    slope = np.where(x >= r, 1.0, t**3 * (10.0 - 15.0 * t + 6.0 * t * t))
    curvature = np.where(np.abs(x) >= r, 0.0, 15.0 * t**2 * (1.0 - t) ** 2 / wide)
    return value, slope, curvature
