# SPDX-License-Identifier: Apache-2.0
"""Answers to service requests: whatever a request brings about, it gets one, and the node goes on."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from pkm_description.errors import PkmError, shortened
from pkm_description.ros import messages
from pkm_interfaces.msg import SolveStatus

INTERNAL_ERROR = 9  # as in SolveStatus.msg, whose constants are as old as the last build of pkm_interfaces


def answered(node: Node, response: Any, solve: Callable[[], None]) -> Any:
    """The response that `solve` has filled in, or with a status and the reason.

    That is INVALID_INPUT where the request cannot be answered, INTERNAL_ERROR where it is we who failed.

    Args:
        node: in whose log errors of ours go.
        response: with a field `status`.
        solve: fills the response in.

    Returns:
        The response.
    """
    try:
        solve()
    except PkmError as error:
        response.status = messages.status(SolveStatus.INVALID_INPUT, str(error))
    except Exception as error:  # one that nobody thought of
        node.get_logger().error(traceback.format_exc())
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        response.status = messages.status(INTERNAL_ERROR, reason)
    return response
