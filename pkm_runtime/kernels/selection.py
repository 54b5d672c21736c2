# SPDX-License-Identifier: Apache-2.0
"""Choices between numbers that recordings keep as one operation each (see `pkm_runtime.codegen`)."""

from pkm_runtime.kernels.compiled import compiled


@compiled
def select_gt(a, b, if_larger, otherwise):
    """`if_larger` where a > b, else `otherwise`: a choice without a branch, also where kernels are recorded."""
    return if_larger if a > b else otherwise


@compiled
def nan_max(a, b):
    """The larger of two errors; NaN propagates."""
    return a if a != a or b <= a else b
