# SPDX-License-Identifier: Apache-2.0
"""Dynamics of parallel robots: actuator efforts, direct dynamics, linear form."""

from pkm_runtime.optional import uncollected

with uncollected():
    from pkm_dynamics.distribution import Distribution, DistributionError
    from pkm_dynamics.dynamics import Dynamics
    from pkm_dynamics.inverse_and_direct import Accelerations, Efforts
    from pkm_dynamics.inverse_derivatives import InverseDerivatives
    from pkm_dynamics.problem import Problem
    from pkm_dynamics.reactions import Reactions
    from pkm_dynamics.transmission.transmission import Transmission

__all__ = [
    "Accelerations",
    "Distribution",
    "DistributionError",
    "Dynamics",
    "Efforts",
    "InverseDerivatives",
    "Problem",
    "Reactions",
    "Transmission",
]
