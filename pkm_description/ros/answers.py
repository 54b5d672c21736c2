# SPDX-License-Identifier: Apache-2.0
"""Answers to service requests: every request gets one, whatever it causes, and the node goes on."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from pkm_description.ros import messages
from pkm_interfaces.msg import SolveStatus
from pkm_runtime.errors import PkmError, shortened

INTERNAL_ERROR = 9  # as in SolveStatus.msg, whose constants are as old as the last build of pkm_interfaces


def answered(node: Node, response: Any, solve: Callable[[], None]) -> Any:
    """The response filled in by `solve`, or with the reason of its failure in `status`.

    INVALID_INPUT for an invalid request, INTERNAL_ERROR for an error of ours, which is also logged.
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
