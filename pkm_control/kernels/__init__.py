# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the control package."""

from pkm_runtime.kernels import PURPOSES

PURPOSES["pkm_control"] = ("for planning and control", 5.0)
