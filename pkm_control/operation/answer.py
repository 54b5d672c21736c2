# SPDX-License-Identifier: Apache-2.0
"""What an operator hears."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """Whether something is done, and what there is to say about it: why not, where it is not."""

    success: bool
    message: str = ""
