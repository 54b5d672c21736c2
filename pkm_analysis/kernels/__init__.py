# SPDX-License-Identifier: Apache-2.0
"""Compiled: evaluations at one pose, for very many poses."""

from pkm_runtime.kernels import PURPOSES

PURPOSES["pkm_analysis"] = ("for workspaces and maps", 20.0)
