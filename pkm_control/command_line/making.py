# SPDX-License-Identifier: Apache-2.0
"""Progress of what may have to compile kernels, which else would tell of themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pkm_control.command_line.progress import progress
from pkm_kinematics.kernels.kept import COMPILING

KERNELS = "loading kernels"  # and what is compiled of them is told beside


@contextlib.contextmanager
def making(what: str) -> Iterator[None]:
    """`progress` of what may compile kernels."""
    COMPILING.told_elsewhere = True
    try:
        with progress(what, COMPILING.in_words):
            yield
    finally:
        COMPILING.told_elsewhere = False
