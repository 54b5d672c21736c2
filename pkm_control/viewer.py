# SPDX-License-Identifier: Apache-2.0
"""A browser page in which the whole robot moves: viser draws what yourdfpy reads from the robot's own URDF text.

Needs no screen and no ROS. Every joint of the tree is set from `joint_states`, passive ones included, so the picture
shows the loops closed as the solver closed them. The page draws the way that the platform has taken and the way it is
to take.
"""

from __future__ import annotations

import io
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import viser
import yourdfpy
from numpy.typing import NDArray
from viser.extras import ViserUrdf

from pkm_description.mechanism import Mechanism

Array = NDArray[np.float64]

_TRAIL_POINTS = 600
_TRAIL_STEP = 1e-3  # m between two points of the trail
_TRAIL_EVERY = 3  # updates between two drawings of the trail
_PLANNED_COLOUR = (60, 120, 220)
_TRAIL_COLOUR = (235, 110, 30)


class RobotViewer:
    """Serves the page at `url` from construction until `close`.

    `port` is the first one tried. `initial`: joint positions by name [rad or m] to begin with, which also tell how
    large the robot is. `planned` (n, 3) [m]: positions of the platform that the motion will pass.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        port: int = 8080,
        initial: Mapping[str, float] | None = None,
        planned: Array | None = None,
        host: str = "0.0.0.0",
    ) -> None:
        logging.getLogger("websockets").setLevel(logging.ERROR)
        self._urdf = yourdfpy.URDF.load(
            io.BytesIO(mechanism.urdf.encode()), load_meshes=True, build_scene_graph=True, force_mesh=False
        )
        self.server = viser.ViserServer(host=host, port=port, label=f"{mechanism.name} - pkm_control", verbose=False)
        self._robot = ViserUrdf(self.server, self._urdf, root_node_name="/robot")
        self._names = list(self._urdf.actuated_joint_names)
        self._configuration = np.zeros(len(self._names))
        self._index: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
        self._trail: deque[Array] = deque(maxlen=_TRAIL_POINTS)
        self._updates = 0
        self._placed = False
        if initial:
            self.update(list(initial), np.array(list(initial.values())))
        if planned is not None:
            self.show_planned(planned)
        with self.server.gui.add_folder("Platform"):
            self._position = self._text("position [mm]")
            self._error = self._text("tracking error [mm]")
            self._speed = self._text("speed [m/s]")
        with self.server.gui.add_folder("Run"):
            self._time = self._text("time [s]")
            self._effort = self._text("efforts [N m or N]")
            self._status = self._text("status")

    @property
    def url(self) -> str:
        """Address of the page on this machine."""
        return f"http://localhost:{self.server.get_port()}"

    def update(self, joint_names: Sequence[str], positions: Array, platform_pose: Array | None = None) -> None:
        """Show joint positions (n,) [rad or m] by name, and add the platform's pose (7,) to its trail.

        Names that the robot does not have, and positions that are not finite, are left out.
        """
        key = tuple(joint_names)
        if key not in self._index:
            pairs = [(i, self._names.index(name)) for i, name in enumerate(key) if name in self._names]
            sources, targets = zip(*pairs, strict=True) if pairs else ((), ())
            self._index[key] = (np.array(sources, dtype=np.int64), np.array(targets, dtype=np.int64))
        source, target = self._index[key]
        values = np.asarray(positions, dtype=np.float64)[source]
        good = np.isfinite(values)
        self._configuration[target[good]] = values[good]
        self._robot.update_cfg(self._configuration)
        if not self._placed:
            self._place_scene()
        if platform_pose is not None and np.all(np.isfinite(platform_pose)):
            self._extend_trail(np.asarray(platform_pose[:3], dtype=np.float64))
        self._updates += 1

    def show_planned(self, positions: Array) -> None:
        """Draw the way (n, 3) [m] that the platform is to take."""
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
        if self._trail:
            x, y, z = 1e3 * self._trail[-1]
            self._position.value = f"{x:.1f}  {y:.1f}  {z:.1f}"
        if time is not None:
            self._time.value = f"{time:.2f}"
        if error is not None:
            self._error.value = f"{1e3 * error:.3f}"
        if speed is not None:
            self._speed.value = f"{speed:.2f}"
        if efforts is not None:
            self._effort.value = "  ".join(f"{effort:.1f}" for effort in efforts)
        if status is not None:
            self._status.value = status

    def close(self) -> None:
        """Stop serving the page."""
        self.server.stop()

    def _place_scene(self) -> None:
        """Put the floor and the camera where they suit the robot, as large as it is in its first true configuration."""
        self._placed = True
        low, high = np.asarray(self._urdf.scene.bounds, dtype=np.float64)
        size = float(np.linalg.norm(high - low))
        centre = 0.5 * (low + high)
        floor = float(low[2] - 0.1 * (high[2] - low[2]))
        self.server.scene.set_up_direction("+z")
        self.server.scene.add_grid(
            "/floor", width=2.0, height=2.0, cell_size=0.1, section_size=0.5, position=(centre[0], centre[1], floor)
        )
        self.server.scene.add_frame("/base", axes_length=0.1 * size, axes_radius=0.002 * size)
        self.server.initial_camera.position = tuple(centre + size * np.array([0.6, -0.7, 0.2]))
        self.server.initial_camera.look_at = tuple(centre)

    def _text(self, label: str) -> Any:  # viser's stubs declare the value that one sets as read-only
        return self.server.gui.add_text(label, initial_value="", disabled=True)

    def _extend_trail(self, position: Array) -> None:
        if not self._trail or np.linalg.norm(position - self._trail[-1]) > _TRAIL_STEP:
            self._trail.append(position)
        if len(self._trail) >= 2 and self._updates % _TRAIL_EVERY == 0:
            self._lines("/trail", np.array(self._trail), _TRAIL_COLOUR, 3.0)

    def _lines(self, name: str, points: Array, colour: tuple[int, int, int], width: float) -> None:
        segments = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        self.server.scene.add_line_segments(name, segments, colors=colour, thickness=width, thickness_units="screen")
