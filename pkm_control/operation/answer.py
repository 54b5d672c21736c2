# SPDX-License-Identifier: Apache-2.0
"""The answer to an operator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Whether a request is done, and a message: where it is not, the reason."""

    success: bool
    message: str = ""
