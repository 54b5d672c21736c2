# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the kinematics: free functions on constant record tables and a scratch workspace.

Arrays are float64, in C order, in base axes and SI units (m, rad, s, N) unless a file says otherwise. `model`, `data`
and `choice` are those of `model_and_data.py`; `bodies`, `closures`, `block`, `state` and `rows` records of
`records.py`.
"""

from pkm_runtime.kernels import PURPOSES

PURPOSES.update(
    {
        "pkm_kinematics": ("for the kinematics of every robot", 26.0),
        "pkm_kinematics.kernels.path": ("for following the readings of the drives", 25.0),
        "pkm_kinematics.kernels.rates.motion_space": ("for the platform's motion space", 12.0),
        "pkm_kinematics.assembly": ("for all assembly modes of hexapods and their like", 6.0),
    }
)
