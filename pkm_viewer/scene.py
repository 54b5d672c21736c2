# SPDX-License-Identifier: Apache-2.0
"""The picture: the robot from its `<visual>` elements, the floor, the light, and the paths of its platform.

The light is made of lamps alone: an environment map takes most of a software renderer's time, and shows metal white.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import trimesh

from pkm_description.mechanism import Array, Mechanism
from pkm_description.rotations import quaternion_from_rotation
from pkm_description.urdf.visuals import Visual, visuals_of
from pkm_viewer import fitting
from pkm_viewer.page_server import PageServer

_TRAIL_POINTS = 600
_TRAIL_SHARE = 1e-3  # of the robot's size, between two points of the trail
_UNSEEN = 1e-5  # of the robot's size: links that move less are left where they are
_TRAIL_EVERY = 3  # updates between two drawings of the trail
_PLANNED_COLOUR = (30, 90, 200)
_TRAIL_COLOUR = (225, 85, 15)
_SKY, _GROUND = (205, 217, 229), (242, 245, 248)  # of the background, top and bottom
_CELL_COLOUR, _SECTION_COLOUR = (176, 187, 198), (120, 134, 148)
_AXES = 0.1  # of the robot's size: the axes of its base
_FOV = 0.75  # rad, from the top to the bottom of the picture
_EYES = 4  # places that are remembered
_STICKS_OUT = 0.02  # of the robot's size: by how much a link reaches beyond all that was seen before the picture grows
_GROWS = 0.05  # of the robot's size, beyond what sticks out, so that the picture seldom changes
_DIRECTIONS = np.array([d for d in itertools.product((-1.0, 0.0, 1.0), repeat=3) if any(d)])
_DIRECTIONS /= np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)
_DARKEST = 60  # of 255: a darker part would be a hole without shape
_SHARP = 0.6  # rad: edges between facets that turn by more are seen as edges
_MESHES = (".stl", ".obj", ".ply", ".dae", ".glb", ".gltf", ".off")


class Scene:
    """Draws a robot and its surroundings; `left_out` says which visuals cannot be drawn."""

    def __init__(self, server: PageServer, mechanism: Mechanism) -> None:
        self._server = server
        self._mechanism = mechanism
        self.left_out: list[str] = []
        self.corners: dict[str, Array] = {}  # of what each link shows, (n, 3) in its frame
        self.frames: dict[str, Any] = {}
        self.trail: deque[Array] = deque(maxlen=_TRAIL_POINTS)
        self._box: tuple[Array, Array] | None = None  # in which the robot was seen first
        self._points: Array = np.empty((0, 3))  # the corners of what was seen then, and of what left that box
        self._reached: Array = np.zeros(len(_DIRECTIONS))  # how far the robot has reached in each of these [m]
        self._planned: Array = np.empty((0, 3))
        self._handles: Array = np.empty((0, 3))  # the ends of what the platform is dragged by
        self._placed_clients: dict[int, tuple[Array, int, int]] = {}
        self._eyes: dict[int, deque[Array]] = {}  # recent camera positions: a browser reports its own late
        self._shown_poses: dict[str, Array] = {}
        self._updates = 0
        self._trail_drawn: tuple[float, ...] = ()
        self._light()
        self._draw_links()
        server.on_client_connect(self._welcome)
        server.on_client_disconnect(self._on_disconnect)

    @property
    def size(self) -> float:
        """Diagonal of the robot [m]; 1 before it was shown."""
        return 1.0 if self._box is None else fitting.diagonal(*self._box)

    def show(self, poses: Mapping[str, Array]) -> None:
        """Show links at poses (4, 4) by name."""
        moved = []
        for link, frame in self.frames.items():
            pose, shown = poses[link], self._shown_poses.get(link)
            if shown is not None and np.abs(pose - shown).max() < _UNSEEN * self.size:
                continue
            self._shown_poses[link] = pose
            moved.append(link)
            frame.position = pose[:3, 3]
            frame.wxyz = np.roll(quaternion_from_rotation(pose[:3, :3]), 1)
        if self._box is None:
            self._surround(poses)
        elif moved:
            self._widen(poses, moved)

    def show_planned(self, positions: Array) -> None:
        """Draw the path (n, 3) [m] that the platform is to take; none where there are fewer than two points."""
        positions = np.asarray(positions, dtype=np.float64).reshape(-1, 3)
        self._planned = positions[np.isfinite(positions).all(axis=1)]
        self._lines("/planned", self._planned, _PLANNED_COLOUR, 2.0)
        self._fit_all()

    def hold_in_view(self, points: Array) -> None:
        """Keep points (n, 3) [m] in the picture besides the robot: the ends of the handles that drag it."""
        if np.array_equal(points, self._handles):
            return
        self._handles = np.array(points, dtype=np.float64).reshape(-1, 3)
        self._fit_all()

    def _light(self) -> None:
        scene = self._server.scene
        scene.set_up_direction("+z")
        scene.configure_environment_map(None)
        scene.configure_default_lights(enabled=False)
        scene.add_light_hemisphere("/light/sky", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.6)
        for name, direction, intensity in (("key", (0.5, -0.6, 0.9), 2.2), ("fill", (-0.8, 0.3, 0.4), 0.7)):
            scene.add_light_directional(f"/light/{name}", intensity=intensity, position=direction, cast_shadow=False)
        shares = np.linspace(0.0, 1.0, 64)[:, None, None]
        gradient = (1.0 - shares) * np.array(_SKY) + shares * np.array(_GROUND)
        scene.set_background_image(np.repeat(gradient.astype(np.uint8), 4, axis=1), format="png")

    def _draw_links(self) -> None:
        visuals, self.left_out = visuals_of(self._mechanism)
        names = [self._mechanism.base_link, *(joint.child for joint in self._mechanism.joints)]
        scene = self._server.scene
        node = {name: f"/robot/{k}_{''.join(c if c.isalnum() else '_' for c in name)}" for k, name in enumerate(names)}
        self.frames = {name: scene.add_frame(node[name], show_axes=False) for name in names}
        for k, visual in enumerate(visuals):
            try:
                shape = _shape(visual)
                own_colours = visual.shape == "mesh" and getattr(shape.visual, "kind", None) is not None
                if own_colours:
                    scene.add_mesh_trimesh(f"{node[visual.link]}/{k}", shape, cast_shadow=False, receive_shadow=False)
                else:
                    self._add_plain(f"{node[visual.link]}/{k}", shape, visual)
            except Exception as error:  # readers of meshes raise what they like
                why = f"{type(error).__name__}: {str(error)[:200]}"
                self.left_out.append(f"{visual.shape} of link {visual.link!r}: {why}")
                continue
            corners = trimesh.bounds.corners(shape.bounds)
            self.corners[visual.link] = np.vstack((self.corners.get(visual.link, np.empty((0, 3))), corners))

    def _add_plain(self, name: str, shape: trimesh.Trimesh, visual: Visual) -> None:
        *colour, opacity = (round(255 * channel) for channel in visual.colour)
        shape = trimesh.graph.smooth_shade(shape, angle=_SHARP)
        self._server.scene.add_mesh_simple(
            name,
            np.asarray(shape.vertices),
            np.asarray(shape.faces),
            color=np.array(colour) + max(0, _DARKEST - max(colour)),
            opacity=None if opacity >= 255 else opacity / 255,
            cast_shadow=False,
            receive_shadow=False,
        )

    # What surrounds the robot

    def _surround(self, poses: Mapping[str, Array]) -> None:
        """Place floor and camera to suit the robot, as large as it is in its first true configuration."""
        points = np.vstack(
            [
                *(poses[link][:3, 3] for link in self.frames),
                *(corners @ poses[link][:3, :3].T + poses[link][:3, 3] for link, corners in self.corners.items()),
            ]
        )
        self._box = points.min(axis=0), points.max(axis=0)
        self._points = np.vstack((points, _AXES * self.size * np.eye(3)))
        self._reached = (points @ _DIRECTIONS.T).max(axis=0)
        floor = fitting.floor_under(*self._box)
        self._server.scene.add_grid(
            "/floor",
            width=floor.width,
            height=floor.width,
            cell_size=floor.cell,
            section_size=5 * floor.cell,
            cell_color=_CELL_COLOUR,
            section_color=_SECTION_COLOUR,
            shadow_opacity=0.0,
            position=tuple(floor.middle),
        )
        size = self.size
        self._server.scene.add_frame("/base", axes_length=_AXES * size, axes_radius=0.0025 * size)
        camera = self._server.initial_camera
        camera.near, camera.far, camera.fov = 0.01 * size, 100.0 * size, _FOV
        eye, middle = fitting.view_of(self._shown(), _FOV, 1.0)
        camera.position, camera.look_at = tuple(eye), tuple(middle)
        self._fit_all()

    def _widen(self, poses: Mapping[str, Array], moved: Sequence[str]) -> None:
        """Step back where links leave the picture, as arms do that swing out."""
        corners = [
            self.corners[link] @ poses[link][:3, :3].T + poses[link][:3, 3] for link in moved if link in self.corners
        ]
        if not corners:
            return
        points, size = np.vstack(corners), self.size
        reached = points @ _DIRECTIONS.T
        out = np.argwhere(reached > self._reached + _STICKS_OUT * size)
        if not len(out) or not np.isfinite(points).all():
            return
        further = points[out[:, 0]] + _GROWS * size * _DIRECTIONS[out[:, 1]]
        self._points = np.vstack((self._points, further))
        self._reached = np.maximum(self._reached, (further @ _DIRECTIONS.T).max(axis=0))
        self._fit_all()

    def _shown(self) -> Array:
        return np.vstack((self._points, self._handles, self._planned))

    def _welcome(self, client: Any) -> None:
        """Place a browser's camera, and again when its picture has another size and nobody has moved it."""
        self._fit(client)
        client.camera.on_update(lambda camera: self._resized(client))

    def _on_disconnect(self, client: Any) -> None:
        self._placed_clients.pop(client.client_id, None)
        self._eyes.pop(client.client_id, None)

    def _resized(self, client: Any) -> None:
        placed = self._placed_clients.get(client.client_id)
        if placed is not None and placed[1:] != (client.camera.image_width, client.camera.image_height):
            self._fit(client)

    def _fit_all(self) -> None:
        for client in self._server.get_clients().values():
            self._fit(client)

    def _fit(self, client: Any) -> None:
        """Look at the robot and its motion, unless somebody has moved the camera."""
        if self._box is None:
            return
        camera = client.camera
        placed = self._placed_clients.get(client.client_id)
        recent = self._eyes.setdefault(client.client_id, deque(maxlen=_EYES))  # which another thread may add to: a copy
        if placed is not None and all(np.linalg.norm(camera.position - eye) > 1e-3 * self.size for eye in list(recent)):
            return
        width, height = camera.image_width, camera.image_height
        eye, middle = fitting.view_of(self._shown(), _FOV, width / max(height, 1))
        self._placed_clients[client.client_id] = (eye, width, height)
        recent.append(eye)
        camera.position, camera.look_at = tuple(eye), tuple(middle)

    # Paths

    def pass_by(self, platform: Array | None) -> None:
        """Add the platform's position, the first three numbers (n,) [m] of a pose, to its trail, where it is known."""
        if platform is None or not np.isfinite(platform).all():
            return
        position = np.array(platform[:3], dtype=np.float64)
        if not self.trail or np.linalg.norm(position - self.trail[-1]) > _TRAIL_SHARE * self.size:
            self.trail.append(position)

    def draw_trail(self) -> None:
        """Draw the trail, with every third call: each takes a new object in the browser."""
        self._updates += 1
        if len(self.trail) >= 2 and self._updates % _TRAIL_EVERY == 1:
            end = (len(self.trail), *self.trail[-1])
            if end != self._trail_drawn:
                self._trail_drawn = end
                self._lines("/trail", np.array(self.trail), _TRAIL_COLOUR, 3.0)

    def _lines(self, name: str, points: Array, colour: tuple[int, int, int], width: float) -> None:
        if len(points) < 2:
            points = np.zeros((2, 3))  # nothing to be seen
        segments = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        self._server.scene.add_line_segments(name, segments, colors=colour, thickness=width, thickness_units="screen")


def _shape(visual: Visual) -> trimesh.Trimesh:
    size = [float(value) for value in visual.size]
    if visual.shape == "box":
        shape = trimesh.creation.box(extents=size)
    elif visual.shape == "cylinder":
        shape = trimesh.creation.cylinder(radius=size[0], height=size[1])
    elif visual.shape == "sphere":
        shape = trimesh.creation.icosphere(subdivisions=2, radius=size[0])
    else:
        assert visual.mesh is not None
        if visual.mesh.suffix.lower() not in _MESHES:
            raise ValueError(f"{visual.mesh.name} is none of {', '.join(_MESHES)}")
        shape = trimesh.load_mesh(visual.mesh)
        if not len(shape.faces) or not np.isfinite(shape.vertices).all():
            raise ValueError(f"{visual.mesh.name} holds no triangles")
        shape.apply_scale(size)
    shape.apply_transform(visual.frame)
    return shape
