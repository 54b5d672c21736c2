# SPDX-License-Identifier: Apache-2.0
"""Dynamics of parallel robots: actuator efforts, direct dynamics, linear form."""

from pkm_dynamics.dynamics import Accelerations, Dynamics, Efforts

__all__ = ["Accelerations", "Dynamics", "Efforts"]
