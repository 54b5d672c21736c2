# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the simulated machine: what it touches, and steps of its platform."""

from pkm_runtime.kernels import PURPOSES

PURPOSES["pkm_hardware"] = ("for the simulated machine", 8.0)
