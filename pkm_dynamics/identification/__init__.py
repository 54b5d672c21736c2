# SPDX-License-Identifier: Apache-2.0
"""Identification of dynamic parameters: exciting trajectories, least squares, feasible estimates, validation.

`pkm identify delta recorded.csv -o parameters.yaml` does it from the command line.
"""

from pkm_dynamics.identification.estimates import Estimate, Loaded, drive_gains, estimate, feasible_estimate
from pkm_dynamics.identification.excitation import Excitation, ExcitationLimits, find_excitation
from pkm_dynamics.identification.identify import Identified, identify
from pkm_dynamics.identification.recorded import Recorded, RecordingError

__all__ = [
    "Estimate",
    "Excitation",
    "ExcitationLimits",
    "Identified",
    "Loaded",
    "Recorded",
    "RecordingError",
    "drive_gains",
    "estimate",
    "feasible_estimate",
    "find_excitation",
    "identify",
]
