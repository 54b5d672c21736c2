# SPDX-License-Identifier: Apache-2.0
"""Kernels: compiled by numba, kept on disk, called with prepared arguments; here, what they are for."""

from __future__ import annotations

PURPOSES: dict[str, tuple[str, float]] = {}
"""By the beginning of modules' names: in words, and the processor time [s] of all on a computer of 2020."""


def purpose_of(module: str) -> tuple[str, float]:
    """The purpose and time [s] of a module's kernels, by the longest beginning of its name; ("", 0.0): not told."""
    known = [start for start in PURPOSES if module.startswith(start)]
    return PURPOSES[max(known, key=len)] if known else ("", 0.0)
