# SPDX-License-Identifier: Apache-2.0
"""Compiled: interval arithmetic, jets of intervals, and the interpreter of recorded programs on them."""

from pkm_runtime.kernels import PURPOSES

PURPOSES["pkm_analysis.proof"] = ("for proofs", 33.0)
