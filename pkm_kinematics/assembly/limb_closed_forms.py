# SPDX-License-Identifier: Apache-2.0
"""Locked limbs in closed form: each keeps two points at a distance, an angle between two directions, or a plane.

The Delta, the Gough-Stewart platform, the hexaglide and the planar 3-RRR differ in where the centres are and in how the
platform can move, which decides how many poses there are and how they are found:

| method | the platform moves by |
|---|---|
| `spheres` | three translations |
| `circles` | two translations |
| `planar` | two translations and a turn about the normal of their plane |
| `schoenflies` | three translations and a turn about one direction |
| `distances` | all six degrees of freedom |
| `angles` | three rotations |
| `planes` | three translations, each limb in a plane |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_description.rotations import transform_from_pose
from pkm_kinematics.assembly.geometry.planar_platform import planar_poses
from pkm_kinematics.assembly.geometry.rigid_body import six_distances, three_angles
from pkm_kinematics.assembly.geometry.schoenflies import positions_and_angle
from pkm_kinematics.assembly.geometry.surfaces import point_on_circles, point_on_spheres
from pkm_kinematics.assembly.method import AssemblyMethod
from pkm_kinematics.assembly.result import AssemblyPoses, SolutionSet, poses_from
from pkm_kinematics.kernels.path.assembled import distances, leg_sides
from pkm_kinematics.kernels.position.placement import place_body, set_angle
from pkm_kinematics.model.tables import Tables
from pkm_kinematics.solve.engine import Engine
from pkm_runtime.kernels.binding import Prepared, WithScratch

PARALLEL = 1e-9  # sine of the angle between directions that count as parallel


class ClosedFormMethod(AssemblyMethod):
    """Robots whose actuated joints each follow from one scalar equation, in a constant motion space."""

    freedoms: ClassVar[tuple[int, int]]  # translations and turns of the platform

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._home = transform_from_pose(engine.home)

    @property
    def recognised(self) -> bool:
        """Whether there are as many such limbs as degrees of freedom, or more, and all are of the method's kind."""
        e = self.engine
        limbs = e.tables.blocks[e.tables.blocks["actuators"] > 0]
        turns = int(np.linalg.matrix_rank(e.task.subspace[3:]))
        known = e.direct_inverse and e.constant_space and len(limbs) >= e.mobility
        return known and (e.mobility - turns, turns) == self.freedoms and self._serves(limbs)

    @abstractmethod
    def _serves(self, limbs: NDArray[Any]) -> bool:
        """Whether the blocks of actuated limbs are of the method's kind."""


def limb_distances(tables: Tables, q: Array, kernel: WithScratch | None = None) -> tuple[Array, Array, Array]:
    """Centres (k, 3) in the base frame, platform points (k, 3) in its frame, lengths (k,) between them, all in m."""
    n = len(tables.blocks)
    centres, points, lengths = np.empty((n, 3)), np.empty((n, 3)), np.empty(n)
    if kernel is None:
        k = distances(tables.model, tables.data(), q, centres, points, lengths)
    else:
        k = kernel(tables.model, q, centres, points, lengths)
    return centres[:k], points[:k], lengths[:k]


class DistanceMethod(ClosedFormMethod):
    """Each limb, once locked, keeps two points at a distance, in space or in its plane."""

    in_planes: ClassVar[bool] = False

    def _serves(self, limbs: NDArray[Any]) -> bool:
        unlike = (limbs["lift"] >= 0) | (limbs["spherical"] == 1) | ((limbs["planar"] == 1) != self.in_planes)
        return not unlike.any()

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        found, poses = self._solved(*limb_distances(self.engine.tables, q, self._distances))
        return poses_from(found, poses)

    @abstractmethod
    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        """Solutions and their poses (k, 7)."""

    def signs(self, q: Array, poses: Array, joints: Array) -> Array:
        """See `AssemblyMethod.signs`."""
        centres, points, _ = limb_distances(self.engine.tables, q, self._distances)
        signs, n = np.empty(len(poses)), self.engine.mobility
        scratch = np.empty((3, 3)), np.empty((n, n))
        self._leg_sides(centres, points, self.engine.model.subspace, np.ascontiguousarray(poses), *scratch, signs)
        return signs

    @cached_property
    def _distances(self) -> WithScratch:
        tables = self.engine.tables
        q, points, lengths = np.empty(len(self.engine.actuated_names)), np.empty((1, 3)), np.empty(1)
        return WithScratch(distances, tables.data, tables.model, q, points, points, lengths)

    @cached_property
    def _leg_sides(self) -> Callable[..., None]:
        points, poses, square = np.empty((1, 3)), np.empty((1, 7)), np.empty((1, 1))
        return Prepared(leg_sides, points, points, self.engine.model.subspace, poses, square, square, np.empty(1)).call

    def _at_home_orientation(self, positions: Array) -> Array:
        poses = np.empty((len(positions), 7))
        poses[:, :3], poses[:, 3:] = positions, self.engine.home[3:]
        return poses


class Spheres(DistanceMethod):
    """Three translations: the platform's origin is on three spheres or more."""

    name = "spheres"
    freedoms = (3, 0)

    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        found = point_on_spheres(centres - points @ self._home[:3, :3].T, lengths)
        return found, self._at_home_orientation(found.solutions)


class Schoenflies(DistanceMethod):
    """Three translations and the turn phi, counted from home, about the axis of the motion space."""

    name = "schoenflies"
    freedoms = (3, 1)

    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        axis = self.engine.task.subspace[3:, -1]
        arms = points @ self._home[:3, :3].T
        along = np.outer(arms @ axis, axis)
        found = positions_and_angle(centres, along, arms - along, np.cross(axis, arms), lengths)
        turns = Rotation.from_rotvec(np.outer(found.solutions[:, 3], axis)) * Rotation.from_quat(self.engine.home[3:])
        return found, np.column_stack([found.solutions[:, :3], turns.as_quat().reshape(-1, 4)])


class Distances(DistanceMethod):
    """All six degrees of freedom, held by six distances or more."""

    name = "distances"
    freedoms = (3, 3)

    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        found = six_distances(centres, points, lengths)
        return found, found.solutions


class PlaneMethod(DistanceMethod):
    """Robots whose limbs and platform all move in one plane; heights above it stay as they are at home."""

    in_planes = True

    def _serves(self, limbs: NDArray[Any]) -> bool:
        return super()._serves(limbs) and self._in_one_plane()

    def _in_one_plane(self) -> bool:
        """Whether the limbs have one normal, across the platform's translations, and the platform turns about it."""
        blocks, subspace = self.engine.tables.blocks, self.engine.task.subspace
        normals = np.array([self._axis_at_home(int(b["pointing"])) for b in blocks[blocks["actuators"] > 0]])
        one = bool((np.abs(np.abs(normals @ normals[0]) - 1.0) < PARALLEL).all())
        across = bool(np.abs(normals[0] @ subspace[:3]).max(initial=0.0) < PARALLEL)
        about = self.freedoms[1] == 0 or np.linalg.norm(np.cross(normals[0], subspace[3:, -1])) < PARALLEL
        return one and across and bool(about)

    @cached_property
    def _normal(self) -> Array:
        blocks = self.engine.tables.blocks
        return self._axis_at_home(int(blocks["pointing"][blocks["actuators"] > 0][0]))

    @cached_property
    def _frame(self) -> Array:
        first = np.linalg.svd(self._normal[None])[2][1]
        return np.array([first, np.cross(self._normal, first)])

    def _axis_at_home(self, body: int) -> Array:
        """Axis (3,) of a body's joint at home, base frame; fixed in space where the limb is planar."""
        bodies = self.engine.tables.bodies
        R = np.eye(3)
        chain = [body]
        while bodies["parent"][chain[-1]] > 1:
            chain.append(int(bodies["parent"][chain[-1]]))
        for i in reversed(chain):
            R = R @ bodies["rotation"][i]
            if i != body and not bodies["prismatic"][i]:
                R = R @ Rotation.from_euler("z", bodies["home"][i]).as_matrix()
        axis: Array = R[:, 2]
        return axis

    def _in_space(self, xy: Array) -> Array:
        return xy @ self._frame + self._normal * (self._normal @ self._home[:3, 3])


class Circles(PlaneMethod):
    """Two translations: the platform's origin is on two circles or more."""

    name = "circles"
    freedoms = (2, 0)

    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        found = point_on_circles((centres - points @ self._home[:3, :3].T) @ self._frame.T, lengths)
        return found, self._at_home_orientation(self._in_space(found.solutions))


class Planar(PlaneMethod):
    """A platform in a plane: three of its points or more on circles."""

    name = "planar"
    freedoms = (2, 1)

    def _solved(self, centres: Array, points: Array, lengths: Array) -> tuple[SolutionSet, Array]:
        turned = points @ self._home[:3, :3].T  # the platform as it stands at home; phi counts from there
        found = planar_poses(centres @ self._frame.T, turned @ self._frame.T, lengths)
        turns = Rotation.from_rotvec(np.outer(found.solutions[:, 2], self._normal))
        quaternions = (turns * Rotation.from_quat(self.engine.home[3:])).as_quat().reshape(-1, 4)
        return found, np.column_stack([self._in_space(found.solutions[:, :2]), quaternions])


class Angles(ClosedFormMethod):
    """Three rotations about the platform's origin: each limb keeps the angle of two directions."""

    name = "angles"
    freedoms = (0, 3)

    def _serves(self, limbs: NDArray[Any]) -> bool:
        return not (limbs["planar"] == 1).any()

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        found = three_angles(*self.limb_angles(q))
        centres = np.tile(self.engine.home[:3], (found.n_real, 1))
        return poses_from(found, np.column_stack([centres, found.solutions]))

    def limb_angles(self, q: Array) -> tuple[Array, Array, Array]:
        """Unit vectors (k, 3) of base and platform, each in its frame, and cosines (k,) of angles kept by locked limbs.

        A limb that keeps a distance between two points keeps their angle seen from the centre of rotation.
        """
        tables, centre = self.engine.tables, self.engine.home[:3]
        state, blocks = driven_state(tables, q)
        if not (blocks["spherical"] == 1).all():
            centres, points, lengths = limb_distances(tables, q)
        base, platform, cosines = [], [], []
        for k, block in enumerate(blocks):
            closure = tables.closures[block["closure_start"]]
            if block["spherical"]:
                pointing = tables.bodies[block["pointing"]]
                base.append(state["R"][pointing["parent"]] @ pointing["rotation"][:, 2])
                platform.append(closure["successor_rotation"][:, 2])
                cosines.append(float(closure["predecessor_rotation"][2, 2]))
            else:
                a, b = centres[k] - centre, points[k]
                la, lb = float(np.linalg.norm(a)), float(np.linalg.norm(b))
                base.append(a / la)
                platform.append(b / lb)
                cosines.append((la**2 + lb**2 - lengths[k] ** 2) / (2.0 * la * lb))
        return np.array(base), np.array(platform), np.array(cosines)


class Planes(ClosedFormMethod):
    """Three translations, each limb lifted into a plane with the platform (Tripteron): one pose, linear equations."""

    name = "planes"
    freedoms = (3, 0)

    def _serves(self, limbs: NDArray[Any]) -> bool:
        return bool((limbs["lift"] >= 0).all())

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        normals, heights = self.limb_planes(q)
        point = np.linalg.lstsq(normals, heights, rcond=None)[0]
        return AssemblyPoses(np.array([[*point, *self.engine.home[3:]]]), np.ones(1, dtype=np.int64), 1, True)

    def limb_planes(self, q: Array) -> tuple[Array, Array]:
        """Unit normals (k, 3), base frame, and heights (k,) [m] of the planes of limbs with actuators at q."""
        tables, R = self.engine.tables, self._home[:3, :3]
        state, blocks = driven_state(tables, q)
        normals, heights = [], []
        for block in blocks:
            lift = int(block["lift"])
            state["q"][lift] = q[tables.bodies["actuator"][lift]]
            place_body(tables.model.bodies, state, lift)
            normal = state["R"][lift] @ tables.bodies["rotation"][block["driver"]][:, 2]
            arm = R @ tables.closures["successor_point"][block["closure_start"]]
            normals.append(normal)
            heights.append(float(normal @ (state["p"][lift] - arm)) + float(block["offset"]))
        return np.array(normals), np.array(heights)


def driven_state(tables: Tables, q: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """State of a workspace with the first body of every actuated block placed at q (n_actuated,), and those blocks."""
    state = tables.data().state
    blocks = tables.blocks[tables.blocks["actuators"] > 0]
    for block in blocks:
        i = int(block["start"])
        value = float(q[tables.bodies["actuator"][i]]) if tables.bodies["actuator"][i] >= 0 else 0.0
        set_angle(state, i, value)
        place_body(tables.model.bodies, state, i)
    return state, blocks
