# SPDX-License-Identifier: Apache-2.0
"""Work in chunks: over the cores of this computer or of others, and kept so that it can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_analysis.late import late

if TYPE_CHECKING:
    from pkm_analysis.sweeps.sweeps import Sweeps, duration

__all__ = ["Sweeps", "duration"]

__getattr__ = late(
    __name__,
    {
        "duration": "pkm_analysis.sweeps.sweeps",
        "Sweeps": "pkm_analysis.sweeps.sweeps",
    },
)
