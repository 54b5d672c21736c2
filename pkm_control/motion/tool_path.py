# SPDX-License-Identifier: Apache-2.0
"""The motion of the platform where a tool's point, instead of the platform's origin, follows a path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_control.motion.rounded_path import PathSample, RoundedPath
from pkm_control.motion.timed_curve import TimedCurve
from pkm_control.space.tool import Tool
from pkm_description.mechanism import Array


class ToolPath:
    """The path of the platform that leads a tool along a path of its own, with the same parameters."""

    def __init__(self, tool: Tool, path: RoundedPath) -> None:
        self._tool = tool
        self._path = path
        self.corners = path.corners

    def segment(self, s: Array) -> NDArray[np.int64]:
        """As `Path.segment`."""
        return self._path.segment(s)

    def breaks(self) -> Array:
        """As `Path.breaks`."""
        return self._path.breaks()

    def sample(self, s: Array) -> PathSample:
        """The path of the platform at parameters (n,); its speed is that of the tool's point."""
        found = self._path.sample(s)
        return PathSample(*self._tool.platform_motion(found.pose, found.first, found.second), found.first[:, :3])


class ToolCurve:
    """The motion of the platform that leads a tool along a curve with times."""

    def __init__(self, tool: Tool, curve: TimedCurve) -> None:
        self._tool = tool
        self._curve = curve
        self.duration = curve.duration

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Pose (n, 7), twist (n, 6) and acceleration (n, 6) of the platform, base frame, at times (n,) [s]."""
        return self._tool.platform_motion(*self._curve.sample(times))
