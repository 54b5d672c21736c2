# SPDX-License-Identifier: Apache-2.0
"""Passive joints, in a folder that is initially closed."""

from __future__ import annotations

from collections.abc import Mapping

from pkm_description.mechanism import Mechanism
from pkm_viewer.page_server import PageServer
from pkm_viewer.panels import markup
from pkm_viewer.panels.distance_bars import written


class JointsPanel:
    """Values and limits of the passive joints with one degree of freedom, limb after limb."""

    def __init__(self, server: PageServer, mechanism: Mechanism) -> None:
        driven = {*mechanism.actuated_joints, *mechanism.platform_chain}
        self._joints = [joint for joint in mechanism.joints if joint.type.dof == 1 and joint.name not in driven]
        self._html = None
        if self._joints:
            with server.gui.add_folder("Passive joints", expand_by_default=False):
                self._html = server.gui.add_html("")

    def show(self, positions: Mapping[str, float]) -> None:
        """Show positions by name [rad or m]."""
        if self._html is None:
            return
        rows = {}
        for joint in self._joints:
            low, high = joint.limits.lower, joint.limits.upper
            text = written(joint, positions[joint.name])
            if low > -1e6 and high < 1e6:
                text += f"  ({written(joint, low)} to {written(joint, high)})"
            rows[joint.name] = text
        self._html.content = markup.block(markup.table(rows))
