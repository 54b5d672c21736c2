# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the dynamics, on the tables and workspaces of `pkm_kinematics`; arrays are float64, SI units."""

from pkm_runtime.kernels import PURPOSES

PURPOSES["pkm_dynamics"] = ("for the dynamics of every robot", 24.0)
