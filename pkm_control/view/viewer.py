# SPDX-License-Identifier: Apache-2.0
"""A browser page in which the whole robot moves, drawn by viser from the robot's own `<visual>` elements.

Needs no screen and no ROS. Every joint of the tree is set from `joint_states`, passive ones included, so the picture
shows the loops closed as the solver closed them. The page draws the path that the platform has taken and the one it is
to take. It shows and asks nothing: what a browser sends changes neither the picture nor its texts.
"""

from __future__ import annotations

import html
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from pkm_control.view.page_server import THIS_COMPUTER, PageServer
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Mechanism
from pkm_description.picture import link_poses
from pkm_description.urdf.visuals import Visual, visuals_of

Array = NDArray[np.float64]

_TRAIL_POINTS = 600
_TRAIL_STEP = 1e-3  # m between two points of the trail
_TRAIL_EVERY = 3  # updates between two drawings of the trail
_PLANNED_COLOUR = (60, 120, 220)
_TRAIL_COLOUR = (235, 110, 30)
_BANNER = "background:#c62828;color:white;padding:0.5em;margin:0.5em;font-weight:bold"
_MESHES = (".stl", ".obj", ".ply", ".dae", ".glb", ".gltf", ".off")


class RobotViewer:
    """Serves the page at `url` from construction until `close`; `left_out` says which visuals cannot be drawn.

    Args:
        mechanism: the robot.
        port: the first one tried.
        initial: joint positions by name [rad or m] to begin with, which also tell how large the robot is.
        planned: positions of the platform (n, 3) [m] that the motion will pass, base frame.
        host: address to listen on; this computer alone by default.

    Raises:
        PkmError: there is no such host, or no free port.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        port: int = 8080,
        initial: Mapping[str, float] | None = None,
        planned: Array | None = None,
        host: str = THIS_COMPUTER,
    ) -> None:
        logging.getLogger("websockets").setLevel(logging.ERROR)
        self._mechanism = mechanism
        self.server = PageServer(host, port, f"{mechanism.name} - pkm_control")
        self.left_out: list[str] = []
        self._corners: dict[str, Array] = {}  # of what each link shows, in its frame
        self._frames = self._draw_links()
        home = home_positions(mechanism)
        self._column = {name: k for k, name in enumerate(home)}
        self._joints = np.array(list(home.values()))
        self._index: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._trail: deque[Array] = deque(maxlen=_TRAIL_POINTS)
        self._updates = 0
        self._placed = False
        if initial:
            self.update(list(initial), np.array(list(initial.values())))
        if planned is not None:
            self.show_planned(planned)
        self._faults = ""
        self._texts = dict.fromkeys(
            ("position [mm]", "tracking error [mm]", "speed [m/s]", "time [s]", "efforts [N m or N]", "status"), ""
        )
        with self.server.gui.add_folder("Run"):
            self._table = self.server.gui.add_html("")

    @property
    def url(self) -> str:
        """Address of the page."""
        return self.server.url

    def update(self, joint_names: Sequence[str], positions: Array, platform_pose: Array | None = None) -> None:
        """Show joint positions, and add the platform's pose to its trail.

        Args:
            joint_names: those of other robots are left out.
            positions: of these joints (n,) [rad or m]; what is not finite is left out.
            platform_pose: (7,), base frame.
        """
        key = tuple(joint_names)
        if key not in self._index:
            pairs = [(i, self._column[name]) for i, name in enumerate(key) if name in self._column]
            sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
            self._index = {key: (np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))}
        source, target = self._index[key]
        values = np.asarray(positions, dtype=np.float64)[source]
        good = np.isfinite(values)
        self._joints[target[good]] = values[good]
        poses = link_poses(self._mechanism, self._joints)
        with self.server.atomic():
            for link, frame in self._frames.items():
                frame.position = poses[link][:3, 3]
                frame.wxyz = Rotation.from_matrix(poses[link][:3, :3]).as_quat()[[3, 0, 1, 2]]
        if not self._placed:
            self._place_scene(poses)
        if platform_pose is not None and np.all(np.isfinite(platform_pose)):
            self._extend_trail(np.asarray(platform_pose[:3], dtype=np.float64))
        self._updates += 1

    def show_planned(self, positions: Array) -> None:
        """Draw the path (n, 3) [m] that the platform is to take."""
        if len(positions) >= 2:
            self._lines("/planned", np.asarray(positions, dtype=np.float64), _PLANNED_COLOUR, 2.0)

    def readout(
        self,
        time: float | None = None,
        error: float | None = None,
        speed: float | None = None,
        efforts: Array | None = None,
        status: str | None = None,
    ) -> None:
        """Show numbers beside the picture: time [s], tracking error [m], speed [m/s], efforts and a line of status."""
        texts = self._texts
        if self._trail:
            x, y, z = 1e3 * self._trail[-1]
            texts["position [mm]"] = f"{x:.1f}  {y:.1f}  {z:.1f}"
        if error is not None:
            texts["tracking error [mm]"] = f"{1e3 * error:.3f}"
        if speed is not None:
            texts["speed [m/s]"] = f"{speed:.2f}"
        if time is not None:
            texts["time [s]"] = f"{time:.2f}"
        if efforts is not None:
            texts["efforts [N m or N]"] = "  ".join(f"{effort:.1f}" for effort in efforts)
        if status is not None:
            texts["status"] = status
        self._show()

    def warn(self, faults: str) -> None:
        """Show what is wrong on a red ground above the numbers; an empty text takes it away."""
        if faults != self._faults:
            self._faults = faults
            self._show()

    def _show(self) -> None:
        rows = (
            f"<tr><td>{html.escape(name)}</td><td><b>{html.escape(text)}</b></td></tr>"
            for name, text in self._texts.items()
        )
        banner = f'<div style="{_BANNER}">{html.escape(self._faults)}</div>' if self._faults else ""
        self._table.content = f'{banner}<table style="margin:0.5em;font-size:0.85em">{"".join(rows)}</table>'

    def close(self) -> None:
        """Stop serving the page."""
        self.server.stop()

    def _draw_links(self) -> dict[str, Any]:
        """Draw every visual, in a frame for each link, by the link's name; note what cannot be drawn."""
        visuals, self.left_out = visuals_of(self._mechanism)
        names = [self._mechanism.base_link, *(joint.child for joint in self._mechanism.joints)]
        scene = self.server.scene
        node = {name: f"/robot/{k}_{''.join(c if c.isalnum() else '_' for c in name)}" for k, name in enumerate(names)}
        frames = {name: scene.add_frame(node[name], show_axes=False) for name in names}
        for k, visual in enumerate(visuals):
            try:
                shape = _shape(visual)
                scene.add_mesh_trimesh(f"{node[visual.link]}/{k}", shape)
            except Exception as error:  # readers of meshes raise what they like
                self.left_out.append(
                    f"{visual.shape} of link {visual.link!r}: {type(error).__name__}: {str(error)[:200]}"
                )
                continue
            corners = trimesh.bounds.corners(shape.bounds)
            self._corners[visual.link] = np.vstack((self._corners.get(visual.link, np.empty((0, 3))), corners))
        return frames

    def _place_scene(self, poses: Mapping[str, Array]) -> None:
        """Put the floor and the camera where they suit the robot, as large as it is in its first true configuration."""
        self._placed = True
        points = np.vstack(
            [
                *(poses[link][:3, 3] for link in self._frames),
                *(corners @ poses[link][:3, :3].T + poses[link][:3, 3] for link, corners in self._corners.items()),
            ]
        )
        low, high = points.min(axis=0), points.max(axis=0)
        size = float(np.linalg.norm(high - low)) or 1.0
        centre = 0.5 * (low + high)
        floor = float(low[2] - 0.1 * (high[2] - low[2]))
        self.server.scene.set_up_direction("+z")
        self.server.scene.add_grid(
            "/floor", width=2.0, height=2.0, cell_size=0.1, section_size=0.5, position=(centre[0], centre[1], floor)
        )
        self.server.scene.add_frame("/base", axes_length=0.1 * size, axes_radius=0.002 * size)
        self.server.initial_camera.position = tuple(centre + size * np.array([0.6, -0.7, 0.2]))
        self.server.initial_camera.look_at = tuple(centre)

    def _extend_trail(self, position: Array) -> None:
        if not self._trail or np.linalg.norm(position - self._trail[-1]) > _TRAIL_STEP:
            self._trail.append(position)
        if len(self._trail) >= 2 and self._updates % _TRAIL_EVERY == 0:
            self._lines("/trail", np.array(self._trail), _TRAIL_COLOUR, 3.0)

    def _lines(self, name: str, points: Array, colour: tuple[int, int, int], width: float) -> None:
        segments = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        self.server.scene.add_line_segments(name, segments, colors=colour, thickness=width, thickness_units="screen")


def _shape(visual: Visual) -> trimesh.Trimesh:
    """Return a visual as triangles in the frame of its link."""
    size = [float(value) for value in visual.size]
    if visual.shape == "box":
        shape = trimesh.creation.box(extents=size)
    elif visual.shape == "cylinder":
        shape = trimesh.creation.cylinder(radius=size[0], height=size[1])
    elif visual.shape == "sphere":
        shape = trimesh.creation.icosphere(radius=size[0])
    else:
        assert visual.mesh is not None
        if visual.mesh.suffix.lower() not in _MESHES:
            raise ValueError(f"{visual.mesh.name} is none of {', '.join(_MESHES)}")
        shape = trimesh.load_mesh(visual.mesh)
        if not len(shape.faces) or not np.isfinite(shape.vertices).all():
            raise ValueError(f"{visual.mesh.name} holds no triangles")
        shape.apply_scale(size)
    if visual.shape != "mesh":
        shape.visual.face_colors = np.array(visual.colour)
    shape.apply_transform(visual.frame)
    return shape
