# SPDX-License-Identifier: Apache-2.0
"""The surfaces on which limbs with locked actuators keep a platform that only translates, read from the graph.

Along any chain of joints from base to platform, the platform's position is a sum of vectors and of slides
(`locked_graph.py`). Those that turn say where the platform can be:

| vectors that turn | slides in constant directions | the platform's position is on |
|---|---|---|
| none | any number | a point, a line or a plane |
| one, in a part of no known direction | none | a sphere |
| one, in a part that turns about u | none; one; across u | a circle; a cylinder; a plane |
| one, with a slide in its part, the part turning about u | none | a hyperboloid, a cone or a plane |
| two, in parts that share an axis, one of them turning about u | none | the torus of two hinges |
| all across u, in parts that turn about u | across u | a plane |

Each is an equation that *every* configuration of the limb satisfies, whatever its passive joints: proven by the above,
not fitted. Loops inside a limb are used only where they make directions known; a parallelogram is seen from the hinges
at its two ends. Chains of other kinds give no equation.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from pkm_description.mechanism import Array
from pkm_kinematics.assembly.geometry.surfaces import normals, point_on_surfaces
from pkm_kinematics.assembly.locked_graph import CLOSE, Chain, chains, locked_graph
from pkm_kinematics.assembly.method import HELD, MethodByRows
from pkm_kinematics.assembly.result import AssemblyPoses, poses_from

ONE = np.eye(5)[0]  # the equation 1 = 0


class Equations(NamedTuple):
    """Equations in (1, p, p.p) of the platform's origin p: linear (k, 5) and quadratic (r, 5, 5)."""

    linear: Array
    quadrics: Array


class Surfaces(MethodByRows):
    """Two or three translations, of a platform that locked limbs hold on surfaces."""

    name = "surfaces"

    @cached_property
    def recognised(self) -> bool:
        """Whether the limbs' equations hold the platform at home."""
        e = self.engine
        if e.task.subspace[3:].any() or not e.constant_space:
            return False
        linear, quadrics = self.equations(e.home_joints[e.actuated_column])
        z = np.array([1.0, *e.home[:3], e.home[:3] @ e.home[:3]])
        slopes = normals(linear, quadrics, e.home[:3])
        lengths = np.linalg.norm(slopes, axis=1)
        errors = np.concatenate([linear @ z, np.einsum("kab,a,b->k", quadrics, z, z)])
        if np.any(np.abs(errors) > CLOSE * e.size * lengths):
            return False
        values = np.linalg.svd(slopes / lengths[:, None], compute_uv=False)
        return bool(len(values) == 3 and values[-1] > HELD * values[0])

    def solve(self, q: Array) -> AssemblyPoses:
        """See `AssemblyMethod.solve`."""
        linear, quadrics = self.equations(q)
        found = point_on_surfaces(linear, quadrics, self.engine.home[:3], self.engine.size)
        return poses_from(found, np.column_stack([found.solutions, np.tile(self.engine.home[3:], (found.n_real, 1))]))

    def rows(self, q: Array, poses: Array) -> Array:
        """See `MethodByRows.rows`."""
        equations = self.equations(q)
        return np.array([normals(*equations, pose[:3]) for pose in poses])

    def equations(self, q: Array) -> Equations:
        """Equations with the actuators at q (n_actuated,), those of the platform's own branch first."""
        graph = locked_graph(self.engine, q)
        linear, quadrics = list(self._of_branch), list[Array]()
        for chain in chains(graph, graph.platform):
            for equation in surface_equations(chain, self.engine.size):
                (linear if equation.ndim == 1 else quadrics).append(equation)
        return Equations(np.array(linear).reshape(-1, 5), np.array(quadrics).reshape(-1, 5, 5))

    @cached_property
    def _of_branch(self) -> Array:
        e = self.engine
        across = np.linalg.svd(e.task.subspace[:3].T)[2][e.mobility :]
        return np.column_stack([-across @ e.home[:3], across, np.zeros(len(across))])


def surface_equations(chain: Chain, size: float) -> list[Array]:
    """Equations (5,) or (5, 5) in z = (1, p, p.p) that a chain of a robot of `size` [m] imposes on its end p."""
    offset = np.column_stack([-chain.constant, np.eye(3), np.zeros(3)])  # p - c
    square = np.array([chain.constant @ chain.constant, *(-2.0 * chain.constant), 1.0])  # |p - c|^2
    moving = {k: (v, slides) for k, (v, slides) in chain.turning.items() if np.linalg.norm(v) > CLOSE * size or slides}
    free = np.array(chain.free).reshape(-1, 3)
    if not moving:
        _, sizes, right = np.linalg.svd(free) if len(free) else (None, np.zeros(0), np.eye(3))
        return [n @ offset for n in right[int(np.sum(sizes > CLOSE)) :]]
    known = [chain.orientations[k].known[0] for k in moving if chain.orientations[k].known]
    u = _axis_of_all(moving, known)
    if u is not None and (np.abs(free @ u) < CLOSE).all():
        (vector, slides), *others = moving.values()
        circle = not others and not slides and not len(free)
        return [u @ offset, square - float(vector @ vector) * ONE] if circle else [u @ offset]
    if len(moving) == 1:
        ((vector, slides),) = moving.values()
        if known:
            return _turned_about(known[0], vector, slides, free, offset)
        return [square - float(vector @ vector) * ONE] if not slides and not len(free) else []
    if len(moving) == 2 and not len(free) and not any(slides for _, slides in moving.values()):
        return _two_hinges(chain, moving, offset, square)
    return []


Moving = dict[int, tuple[Array, list[Array]]]  # as `Chain.turning`


def _axis_of_all(moving: Moving, known: list[tuple[Array, Array]]) -> Array | None:
    """The direction (3,), base frame, about which every moving part turns, its slides across; None without one."""
    if len(known) < len(moving):
        return None
    u = known[0][1]
    if not all(np.linalg.norm(np.cross(u, in_base)) < CLOSE for _, in_base in known):
        return None
    for (direction, _), (_, slides) in zip(known, moving.values(), strict=True):
        if any(abs(direction @ slide) >= CLOSE for slide in slides):
            return None
    return u


def _turned_about(
    known: tuple[Array, Array], vector: Array, slides: list[Array], free: Array, offset: Array
) -> list[Array]:
    """Equations of a vector, or a line, that turns about a known direction, in its frame and in the base frame."""
    direction, u = known
    if len(free) == 1 and not slides:  # a circle about u that slides along a direction not across u
        along = np.eye(3) - np.outer(free[0], u) / float(u @ free[0])
        rows = along @ offset
        return [rows.T @ rows - float(vector @ vector) * np.outer(ONE, ONE)]
    if len(slides) == 1 and not len(free):  # a line, not across u, that turns about u
        height = u @ offset
        across = slides[0] / float(direction @ slides[0]) - direction  # per height
        rest = offset - np.outer(u, height)
        radial = np.outer(vector, ONE) + np.outer(across, height)
        return [rest.T @ rest - radial.T @ radial]
    return []


def _two_hinges(chain: Chain, moving: Moving, offset: Array, square: Array) -> list[Array]:
    """The end of two bars: one, A, turns about a known direction, the other, B, about an axis fixed in A.

    Seen from A, the end is a + cos b1 + sin b2 with a circle about that axis. Its square and its height along the known
    direction are linear in cosine and sine, so that cos^2 + sin^2 = 1 is a quadric in both.
    """
    keys = list(moving)
    for first, second in (keys, keys[::-1]):
        orientation, axes = chain.orientations[first], chain.shared.get((first, second))
        if not orientation.known or axes is None:
            continue
        direction, in_base = orientation.known[0]
        (a, _), (b, _) = moving[first], moving[second]
        along = float(axes[1] @ b)
        a = a + along * axes[0]
        radius = float(np.linalg.norm(b - along * axes[1]))
        x = np.cross(axes[0], np.eye(3)[int(np.argmin(np.abs(axes[0])))])
        x /= np.linalg.norm(x)
        circle = radius * np.array([x, np.cross(axes[0], x)])
        rows = np.array([square - float(a @ a + radius**2) * ONE, in_base @ offset - float(direction @ a) * ONE])
        matrix = np.array([2.0 * circle @ a, circle @ direction])
        left, sizes, _ = np.linalg.svd(matrix)
        if sizes[1] <= CLOSE * sizes[0]:  # linear in one sum of cosine and sine, or in none
            return list(left.T[int(sizes[0] > 0.0) :] @ rows)
        adjugate = np.array([[matrix[1, 1], -matrix[0, 1]], [-matrix[1, 0], matrix[0, 0]]]) @ rows
        return [adjugate.T @ adjugate - float(np.linalg.det(matrix)) ** 2 * np.outer(ONE, ONE)]
    return []
