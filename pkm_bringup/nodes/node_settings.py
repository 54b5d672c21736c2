# SPDX-License-Identifier: Apache-2.0
"""Settings of a run as parameters of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from pkm_client.options import SETTING, SWITCH, typed_value
from pkm_description.ros.parameters import declare


def declare_settings(node: Node, names: Mapping[str, str], **defaults: Any) -> dict[str, Any]:
    """Declare parameters, given by the names of their settings, some with other `defaults`; their values."""
    values = {}
    for name, setting in names.items():
        one = SETTING[setting]
        default = defaults.get(name, typed_value(one.default))
        choices = () if one.choices == SWITCH else [text for text in one.choices if text != "none"]  # which has no node
        values[name] = declare(node, name, default, one.description, one.span, choices, fixed=not one.live)
    return values
