# SPDX-License-Identifier: Apache-2.0
"""Self-explaining parameters: each with a description, bounds or choices, and whether it may change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node


def declare(
    node: Node,
    name: str,
    default: Any,
    description: str,
    bounds: tuple[float, float] | None = None,
    choices: Sequence[str] = (),
    fixed: bool = False,
) -> Any:
    """Declare a parameter and return its value, whose type is that of `default`.

    Args:
        choices: allowed texts, `ValueError` for others; a node checks later ones where it uses the value.
        fixed: read once at start, refused afterwards.
    """
    descriptor = ParameterDescriptor(description=description, read_only=fixed)
    if choices:
        descriptor.additional_constraints = "one of: " + ", ".join(choices)
    if bounds is not None and isinstance(default, float):
        descriptor.floating_point_range = [FloatingPointRange(from_value=float(bounds[0]), to_value=float(bounds[1]))]
    elif bounds is not None:
        descriptor.integer_range = [IntegerRange(from_value=int(bounds[0]), to_value=int(bounds[1]), step=1)]
    value = node.declare_parameter(name, default, descriptor).value
    if choices and value not in choices:
        raise ValueError(f"parameter '{name}' is '{value}', not one of {', '.join(choices)}")
    return value
