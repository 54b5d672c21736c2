# SPDX-License-Identifier: Apache-2.0
"""Work in chunks: on the cores of one computer or of a cluster, stored so that it can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_analysis.late import late

if TYPE_CHECKING:
    from pkm_analysis.sweeps.sweeps import Sweeps, duration

__all__ = ["Sweeps", "duration"]

__getattr__ = late(
    __name__,
    {
        "pkm_analysis.sweeps.sweeps": ("Sweeps", "duration"),
    },
)
