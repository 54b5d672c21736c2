# SPDX-License-Identifier: Apache-2.0
"""Work in chunks: on the cores of one computer or of a cluster, stored so that it can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_runtime.late import late

if TYPE_CHECKING:
    from pkm_runtime.sweeps.sweeps import Sweeps, duration

__all__ = ["Sweeps", "duration"]

__getattr__ = late(
    __name__,
    {
        "pkm_runtime.sweeps.sweeps": ("Sweeps", "duration"),
    },
)
