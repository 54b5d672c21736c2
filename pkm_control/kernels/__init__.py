# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the control package."""

from pkm_runtime.kernels.purposes import PURPOSES

PURPOSES["pkm_control"] = ("for the simulated machine and for planning", 13.0)
