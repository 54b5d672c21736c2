# SPDX-License-Identifier: Apache-2.0
"""All assembly modes of a robot: which algebraic method its graph admits, and what that method needs.

With its actuators locked, a robot whose limbs have a closed form is a platform with points at given distances from
given centres. How many such poses there are, and how they are found, depends only on how the platform can move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.modes import AssemblyModes, AssemblyStatus
from pkm_kinematics.assembly.planar import point_on_circles
from pkm_kinematics.assembly.planar_platform import PlanarKind, planar_poses
from pkm_kinematics.assembly.rigid_body import poses as rigid_body_poses
from pkm_kinematics.assembly.schoenflies import positions_and_angle
from pkm_kinematics.assembly.six_distances import six_distances
from pkm_kinematics.assembly.spherical import three_angles
from pkm_kinematics.assembly.surfaces import point_on_surfaces
from pkm_kinematics.assembly.translation import point_on_spheres
from pkm_kinematics.kernels.distances import distances
from pkm_kinematics.kernels.placement import place_body, set_angle
from pkm_kinematics.pose import transform_of

if TYPE_CHECKING:
    from pkm_kinematics.forward import Forward
    from pkm_kinematics.kinematics import Kinematics

PARALLEL = 1e-9
CAUTION = {
    AssemblyStatus.POSITIVE_DIMENSIONAL: "with its actuators locked the platform can move (self-motion): the robot is "
    "singular there, and poses of multiplicity 0 are samples of that motion",
    AssemblyStatus.INCOMPLETE: "paths to solutions were lost: modes may be missing",
    AssemblyStatus.INCONSISTENT: "the lengths that the actuators set contradict each other",
}
SEARCHED = "found by search, which proves nothing about further modes"
DISTANCE_METHODS = ("spheres", "circles", "planar", "distances", "schoenflies")


@dataclass(frozen=True)
class AssemblySet:
    """All poses (k, 7) found for one set of actuated joint positions, and how far that can be trusted."""

    poses: Array
    multiplicity: NDArray[np.int64]
    n_complex: int  # finite complex solutions with multiplicity, -1 where the method does not count them
    method: str
    certified: bool  # every real solution is listed
    caution: str = ""  # why it is not certified
    joints: Array | None = None  # (k, n_joints) where the method finds them with the poses


def method_of(kinematics: Kinematics) -> str:
    """Name of the method that finds all assembly modes, from the limbs' closed forms and the platform's freedoms.

    `spheres`, `planes` (3T), `circles` (2T), `planar` (2T1R), `angles` (3R), `schoenflies` (3T1R), `distances` (6);
    `surfaces` (3T, 2T), `plates` (3T1R) and `constraints` where the limbs' chains of joints are known for what they
    demand; `search` where none applies.
    """
    method = _by_closed_forms(kinematics)
    if method == "search" and kinematics.surfaces.recognised:
        return "surfaces"
    if method == "search" and kinematics.plates.recognised:
        return "plates"
    return "constraints" if method == "search" and kinematics.locked_limbs.recognised else method


def _by_closed_forms(kinematics: Kinematics) -> str:
    tables, task = kinematics.tables, kinematics.task
    blocks = tables.blocks[tables.blocks["actuators"] > 0]
    freedoms = kinematics.mobility
    if not kinematics.direct_inverse or len(blocks) < freedoms or not kinematics.constant_space:
        return "search"
    linear, angular = task.subspace[:3], task.subspace[3:]
    turning = int(np.linalg.matrix_rank(angular)) if angular.any() else 0
    lifted, spherical, planar = (blocks["lift"] >= 0), blocks["spherical"] == 1, blocks["planar"] == 1
    if turning == freedoms == 3 and not planar.any():
        return "angles"
    if lifted.all() and turning == 0 and freedoms == 3:
        return "planes"
    if lifted.any() or spherical.any():
        return "search"
    if planar.any():
        normals = np.array([_normal(kinematics, int(b["pointing"])) for b in blocks])
        one_plane = bool((np.abs(np.abs(normals @ normals[0]) - 1.0) < PARALLEL).all())
        across = bool(np.abs(normals[0] @ linear).max(initial=0.0) < PARALLEL)
        about = turning == 0 or np.linalg.norm(np.cross(normals[0], angular[:, -1])) < PARALLEL
        known = {(2, 0): "circles", (3, 1): "planar"}
        return known.get((freedoms, turning), "search") if one_plane and across and about and planar.all() else "search"
    return {(3, 0): "spheres", (4, 1): "schoenflies", (6, 3): "distances"}.get((freedoms, turning), "search")


def _normal(kinematics: Kinematics, body: int) -> Array:
    """Axis of a limb's first pointing joint at home, base frame; fixed in space where the limb is planar."""
    bodies = kinematics.tables.bodies
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


def find_all(kinematics: Kinematics, q: Array, method: str) -> AssemblySet:
    """All poses for actuated joint positions q (n_actuated,) by an algebraic method (not `search`)."""
    tables = kinematics.tables
    home = transform_of(kinematics.home)
    if method == "angles":
        found = three_angles(*limb_angles(kinematics, q))
        poses = np.column_stack([np.tile(home[:3, 3], (found.n_real, 1)), found.solutions])
        return _answer(found, poses, method)
    if method == "planes":
        normals, heights = limb_planes(kinematics, q)
        point = np.linalg.lstsq(normals, heights, rcond=None)[0]
        return AssemblySet(np.array([[*point, *kinematics.home[3:]]]), np.ones(1, dtype=np.int64), 1, method, True)
    if method == "surfaces":
        linear, quadrics = kinematics.surfaces.at(q)
        found = point_on_surfaces(linear, quadrics, kinematics.home[:3], kinematics.engine.size)
        poses = np.column_stack([found.solutions, np.tile(kinematics.home[3:], (found.n_real, 1))])
        return _answer(found, poses, method)
    if method == "plates":
        poses, found, isolated = kinematics.plates.poses(q)
        folded = len(poses) - found.n_real
        answer = _answer(found, poses, method)
        multiplicity = np.append(found.multiplicity, np.ones(folded, dtype=np.int64))
        caution = answer.caution or ("" if isolated else "a plate can move while it is folded: modes may be missing")
        certified = answer.certified and isolated
        return AssemblySet(poses, multiplicity, found.n_complex, method, certified, caution)
    if method == "constraints":
        demands = kinematics.locked_limbs.demands(q) or []
        columns = [np.array([demand[k] for demand in demands]) for k in range(4)]
        found = rigid_body_poses(columns[0], columns[1], columns[2], columns[3])
        return _answer(found, found.solutions, method)
    centres, points, lengths = limb_distances(kinematics, q)
    if method == "schoenflies":
        return _turning_about_axis(kinematics, centres, points, lengths)
    if method == "distances":
        found = six_distances(centres, points, lengths)
        return _answer(found, found.solutions, method)
    if method == "spheres":
        found = point_on_spheres(centres - points @ home[:3, :3].T, lengths)
        poses = np.column_stack([found.solutions, np.tile(kinematics.home[3:], (found.n_real, 1))])
        return _answer(found, poses, method)
    # in a plane: coordinates along two directions across the axes, heights as at home
    pointing = int(tables.blocks["pointing"][tables.blocks["actuators"] > 0][0])
    normal = _normal(kinematics, pointing)
    frame = np.linalg.svd(normal[None])[2][1:]  # (2, 3)
    frame = np.array([frame[0], np.cross(normal, frame[0])])
    height = normal * (normal @ home[:3, 3])
    if method == "circles":
        found = point_on_circles((centres - points @ home[:3, :3].T) @ frame.T, lengths)
        poses = np.array([[*(height + xy @ frame), *kinematics.home[3:]] for xy in found.solutions])
        return _answer(found, poses.reshape(-1, 7), method)
    turned = points @ home[:3, :3].T  # the platform as it stands at home; phi counts from there
    kinds = np.full(len(points), PlanarKind.CIRCLE)
    found = planar_poses(kinds, centres @ frame.T, turned @ frame.T, lengths)
    poses = np.array(
        [
            [
                *(height + np.array([x, y]) @ frame),
                *(Rotation.from_rotvec(phi * normal) * Rotation.from_matrix(home[:3, :3])).as_quat(),
            ]
            for x, y, phi in found.solutions
        ]
    )
    return _answer(found, poses.reshape(-1, 7), method)


def _turning_about_axis(kinematics: Kinematics, centres: Array, points: Array, lengths: Array) -> AssemblySet:
    """Poses of a platform with three translations and the turn phi, from home, about the axis of its motion space."""
    home = transform_of(kinematics.home)
    axis = kinematics.task.subspace[3:, -1]
    arms = points @ home[:3, :3].T
    along = np.outer(arms @ axis, axis)
    found = positions_and_angle(centres, along, arms - along, np.cross(axis, arms), lengths)
    turns = Rotation.from_rotvec(np.outer(found.solutions[:, 3], axis)) * Rotation.from_quat(kinematics.home[3:])
    poses = np.column_stack([found.solutions[:, :3], turns.as_quat().reshape(-1, 4)])
    return _answer(found, poses, "schoenflies")


def _driven(kinematics: Kinematics, q: Array) -> tuple[NDArray[Any], NDArray[Any]]:
    """Workspace state with the first body of every actuated block placed at q, and those blocks."""
    tables = kinematics.tables
    state, _, _ = tables.workspace()
    blocks = tables.blocks[tables.blocks["actuators"] > 0]
    for block in blocks:
        i = int(block["start"])
        value = float(q[tables.bodies["actuator"][i]]) if tables.bodies["actuator"][i] >= 0 else 0.0
        set_angle(state, i, value)
        place_body(tables.bodies, state, i)
    return state, blocks


def limb_angles(kinematics: Kinematics, q: Array) -> tuple[Array, Array, Array]:
    """Unit vectors (k, 3) of the base and of the platform, and cosines (k,) of the angles that the limbs keep.

    A limb on a sphere keeps the angle between its second axis and its third; one that keeps a distance between two
    points keeps their angle seen from the centre of rotation.
    """
    tables = kinematics.tables
    state, blocks = _driven(kinematics, q)
    centre = kinematics.home[:3]
    if not (blocks["spherical"] == 1).all():
        centres, points, lengths = limb_distances(kinematics, q)
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


def limb_planes(kinematics: Kinematics, q: Array) -> tuple[Array, Array]:
    """Unit normals (k, 3) and heights (k,) of the planes in which lifts hold the platform's origin."""
    tables = kinematics.tables
    state, blocks = _driven(kinematics, q)
    R = transform_of(kinematics.home)[:3, :3]
    normals, heights = [], []
    for block in blocks:
        lift = int(block["lift"])
        state["q"][lift] = q[tables.bodies["actuator"][lift]]
        place_body(tables.bodies, state, lift)
        normal = state["R"][lift] @ tables.bodies["rotation"][block["driver"]][:, 2]
        arm = R @ tables.closures["successor_point"][block["closure_start"]]
        normals.append(normal)
        heights.append(float(normal @ (state["p"][lift] - arm)) + float(block["offset"]))
    return np.array(normals), np.array(heights)


def limb_distances(kinematics: Kinematics, q: Array) -> tuple[Array, Array, Array]:
    """Centres (k, 3) in the base frame, points (k, 3) of the platform and lengths (k,) that locked actuators leave."""
    tables = kinematics.tables
    state, _, _ = tables.workspace()
    n = int((tables.blocks["actuators"] > 0).sum())
    centres, points, lengths = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n)
    distances(tables.bodies, tables.closures, tables.blocks, state, q, centres, points, lengths)
    return centres, points, lengths


def _answer(found: AssemblyModes, poses: Array, method: str) -> AssemblySet:
    complete = found.status in (AssemblyStatus.COMPLETE, AssemblyStatus.SINGULAR)
    caution = "" if complete else CAUTION.get(found.status, "the method did not finish: modes may be missing")
    return AssemblySet(poses, found.multiplicity, found.n_complex, method, complete, caution)


def search(forward: Forward, q: Array) -> AssemblySet:
    """Poses found by search over the whole graph, with the joint positions that belong to them: true modes, not all."""
    found, engine = forward.search(q), forward.engine
    joints = np.tile(engine.home_joints, (len(found.poses), 1))
    for row, positions in zip(joints, found.positions, strict=True):
        row[:] = [positions.get(name, home) for name, home in zip(engine.joint_names, row, strict=True)]
    return AssemblySet(found.poses, found.modes.multiplicity, -1, "search", False, SEARCHED, joints)
