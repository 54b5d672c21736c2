# SPDX-License-Identifier: Apache-2.0
"""The least distance between a robot's bodies, and the pair that has it.

No other module uses the collision library coal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # submodules load on first use
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.bodies import Body, bodies_of, capsule_around, pairs_of, vertices_of
from pkm_analysis.kernels.capsule_bounds import capsule_bounds
from pkm_analysis.kernels.pose_quantities import WIDTH
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Joint
from pkm_description.picture import link_poses
from pkm_description.urdf.visuals import Visual
from pkm_kinematics import Kinematics
from pkm_runtime.describable import Describable, listed
from pkm_runtime.optional import optional_library
from pkm_runtime.sweeps.chunks import slices

ROWS = 1 << 10  # poses whose bounds are in memory at once
TOUCHING = 1e-6  # of the robot's size


class ExactDistances:
    """Distances between the shapes of bodies; `AnalysisError` where coal is not installed."""

    def __init__(self, bodies: list[Body]) -> None:
        self._coal = optional_library("coal", "coal", "clearances between bodies")
        self._request = self._coal.DistanceRequest()
        self._geometry = [self._made(shape) for body in bodies for shape in body.shapes]
        self._frames = [(shape.frame[:3, :3], shape.frame[:3, 3]) for body in bodies for shape in body.shapes]

    def _made(self, shape: Visual) -> Any:
        coal, size = self._coal, [float(v) for v in shape.size]
        if shape.shape == "sphere":
            return coal.Sphere(*size)
        if shape.shape == "cylinder":
            return coal.Cylinder(*size)
        if shape.shape == "box":
            return coal.Box(*size)
        vertices, triangles = vertices_of(shape)
        mesh = coal.BVHModelOBBRSS()
        mesh.beginModel(len(triangles), len(vertices))
        mesh.addVertices(vertices)
        for triangle in triangles:
            mesh.addTriangle(*(vertices[k] for k in triangle))
        mesh.endModel()
        return mesh

    def between(self, i: int, first: tuple[Array, Array], j: int, second: tuple[Array, Array]) -> float:
        """Distance [m] of shapes i and j on bodies at (rotation, position); not positive in contact."""
        coal = self._coal
        result = coal.DistanceResult()
        placed = []
        for k, (turn, place) in ((i, first), (j, second)):
            own_turn, own_place = self._frames[k]
            placed.append(coal.Transform3s(turn @ own_turn, turn @ own_place + place))
        return float(coal.distance(self._geometry[i], placed[0], self._geometry[j], placed[1], self._request, result))


class Clearance(Describable):
    """Distances between the bodies of a robot; `AnalysisError` without coal, or two bodies that can meet.

    Bodies are links fixed to each other, with their collision geometry, or, where the description has none, their
    visuals. Excluded are pairs that a joint connects and pairs that touch at home, such as parts that run in each
    other; both are listed. Capsules around the shapes are compared first; the shapes themselves where these are not far
    enough apart.
    """

    def __init__(self, kinematics: Kinematics) -> None:
        self.kinematics = kinematics
        mechanism = kinematics.mechanism
        self.bodies, tied, self.source = bodies_of(mechanism)
        pairs = pairs_of(self.bodies, tied)
        self.tied = sorted(" and ".join(sorted(pair)) for pair in tied)
        if not pairs:
            raise AnalysisError(
                "clearance",
                f"{len(self.bodies)} bodies of the description have shapes, and none of them can meet another",
                "give links collision geometry or visuals",
            )
        self.exact = ExactDistances(self.bodies)
        counts = [len(body.shapes) for body in self.bodies]
        ends = np.cumsum(counts)
        self._spans = np.stack([ends - counts, ends], axis=1).astype(np.int64)
        self._capsules = np.array([capsule_around(s) for body in self.bodies for s in body.shapes])
        self._balls = np.array([_ball(self._capsules[a:b]) for a, b in self._spans])
        self.touching: list[str] = []
        self._set_pairs(pairs)
        rotations, places = self._at_home()
        least = TOUCHING * kinematics.engine.size
        near = [k for k in range(len(pairs)) if self._distance(k, rotations, places) < least]
        self.touching = [self.names[k] for k in near]
        self._set_pairs([pair for k, pair in enumerate(pairs) if k not in near])

    def _set_pairs(self, pairs: list[tuple[int, int]]) -> None:
        sizes = [len(self.bodies[i].shapes) * len(self.bodies[j].shapes) for i, j in pairs]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._pairs = np.array([(i, j, at) for (i, j), at in zip(pairs, starts, strict=False)], dtype=np.int64)
        self._pairs = self._pairs.reshape(-1, 3)
        self._width = int(starts[-1])
        self._shape_pairs = [
            (s, t, k) for k, (i, j) in enumerate(pairs) for s in range(*self._spans[i]) for t in range(*self._spans[j])
        ]
        self.names = [f"{self.bodies[i].name} and {self.bodies[j].name}" for i, j in pairs]

    def _summary(self) -> str:
        return f"{self.kinematics.mechanism.name}: {len(self.names)} pairs of {len(self.bodies)} bodies"

    def _details(self) -> list[str]:
        return [
            f"shapes: {self.source}",
            f"left out, tied by a joint: {listed(self.tied) or 'none'}",
            f"left out, touching at home: {listed(self.touching) or 'none'}",
        ]

    @cached_property
    def needs(self) -> tuple[int, ...]:
        """Numbers of `pose_quantities` that place the bodies: positions of the limbs' joints."""
        return tuple(WIDTH + int(c) for c in self.kinematics.engine.body_column[2:] if c >= 0)

    def _at_home(self) -> tuple[Array, Array]:
        frames = link_poses(self.kinematics.mechanism)
        of = np.array([frames[body.link] for body in self.bodies])
        return np.ascontiguousarray(of[:, :3, :3]), np.ascontiguousarray(of[:, :3, 3])

    def _distance(self, pair: int, rotations: Array, places: Array) -> float:
        """Exact distance of a pair of bodies placed by (b, 3, 3) and (b, 3)."""
        i, j, at = self._pairs[pair]
        first, second = (rotations[i], places[i]), (rotations[j], places[j])
        stop = at + len(self.bodies[i].shapes) * len(self.bodies[j].shapes)
        return min(self.exact.between(s, first, t, second) for s, t, _ in self._shape_pairs[at:stop])

    def placed(self, poses: Array, joints: Array) -> tuple[Array, Array]:
        """Rotations (n, b, 3, 3) and positions (n, b, 3) of bodies in the base frame, for platform poses (n, 7).

        `joints` (len(needs), n) [rad, m] are as in `needs`. `AnalysisError` where a body is on the platform's own
        branch.
        """
        mechanism = self.kinematics.mechanism
        n = len(poses)
        row = {self.kinematics.joint_names[number - WIDTH]: k for k, number in enumerate(self.needs)}
        home = self.kinematics.engine.home_by_name
        frames = {mechanism.base_link: (np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)))}
        turned = scipy.spatial.transform.Rotation.from_quat(poses[:, 3:]).as_matrix()
        platform = (turned, np.array(poses[:, :3]))
        if mechanism.platform_chain:
            frames[mechanism.platform_link] = platform
        for joint in mechanism.joints:
            if joint.name in mechanism.virtual_chain or joint.parent not in frames:
                continue
            values = {
                f.name: joints[row[f.name]] if f.name in row else np.full(n, home.get(f.name, 0.0))
                for f in freedoms(joint)
            }
            frames[joint.child] = _moved(frames[joint.parent], joint, values)
        missing = [body.link for body in self.bodies if body.link not in frames]
        if missing:
            raise AnalysisError("clearance", f"link {missing[0]} hangs on the platform's branch", "tie it elsewhere")
        return (
            np.ascontiguousarray(np.stack([frames[b.link][0] for b in self.bodies], axis=1)),
            np.ascontiguousarray(np.stack([frames[b.link][1] for b in self.bodies], axis=1)),
        )

    def of(self, poses: Array, joints: Array, bound: float = np.inf) -> tuple[Array, NDArray[np.int64]]:
        """Least distances (n,) [m], not positive in contact, and the pairs (n,) that have them, indices of `names`.

        `poses` (n, 7) and `joints` are as for `placed`. With a finite `bound`, distances are only on the right side of
        it.
        """
        values, pair = np.empty(len(poses)), np.zeros(len(poses), dtype=np.int64)
        for at in slices(len(poses), ROWS):
            rotations, places = self.placed(poses[at], joints[:, at])
            lower = np.empty((len(rotations), self._width))
            cut = np.full(len(rotations), bound)
            scratch = np.empty((len(self._capsules), 6)), np.empty((len(self.bodies), 3))
            fixed = (self._capsules, self._balls, self._spans, self._pairs)
            capsule_bounds(rotations, places, *fixed, cut, *scratch, lower)
            least = lower.argmin(axis=1)
            values[at] = lower[np.arange(len(lower)), least]
            pair[at] = [self._shape_pairs[k][2] for k in least]
            for row in np.flatnonzero(values[at] < bound):
                k = at.start + int(row)
                values[k], pair[k] = self._nearest(lower[row], rotations[row], places[row], bound)
        return values, pair

    def _nearest(self, lower: Array, rotations: Array, places: Array, bound: float) -> tuple[float, int]:
        """Least exact distance at one pose, smallest bounds first; the first one found below the bound."""
        best, pair = np.inf, 0
        first = int(lower.argmin())
        for k in itertools.chain([first], (k for k in _ascending(lower) if k != first)):
            if lower[k] >= min(best, bound):
                break
            s, t, of = self._shape_pairs[k]
            i, j = self._pairs[of, 0], self._pairs[of, 1]
            gap = self.exact.between(s, (rotations[i], places[i]), t, (rotations[j], places[j]))
            if gap < best:
                best, pair = gap, of
            if best < bound < np.inf:
                break
        return best, pair


def _ascending(values: Array) -> Iterator[int]:
    """Indices of values (n,) in ascending order; sorted on first use."""
    yield from (int(k) for k in np.argsort(values))


def _ball(capsules: Array) -> Array:
    """Centre and radius (4,) of a ball around capsules (s, 7)."""
    ends = np.concatenate([capsules[:, :3], capsules[:, 3:6]])
    reach = np.concatenate([capsules[:, 6], capsules[:, 6]])[:, None]
    middle = 0.5 * ((ends - reach).min(axis=0) + (ends + reach).max(axis=0))
    return np.append(middle, float((np.linalg.norm(ends - middle, axis=1) + reach[:, 0]).max()))


def _moved(parent: tuple[Array, Array], joint: Joint, values: dict[str, Array]) -> tuple[Array, Array]:
    """Frames of a joint's child at joint positions (n,) each."""
    turn, place = parent[0] @ joint.origin[:3, :3], parent[1] + parent[0] @ joint.origin[:3, 3]
    for freedom in freedoms(joint):
        axis, value = freedom.axis, values[freedom.name]
        if freedom.slides:
            place = place + (turn @ axis) * value[:, None]
        else:
            cross = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
            c, s = np.cos(value)[:, None, None], np.sin(value)[:, None, None]
            turn = turn @ (c * np.eye(3) + s * cross + (1.0 - c) * np.outer(axis, axis))
    return turn, place
