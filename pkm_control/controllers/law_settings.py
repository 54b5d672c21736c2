# SPDX-License-Identifier: Apache-2.0
"""What the control laws are called and the settings they start with: plain data, for whoever offers them to a user.

Nothing heavy is imported, so that launch files may read it; `pkm_control.controllers.laws` makes the controllers.
"""

from __future__ import annotations

LAWS = COMPUTED_TORQUE, PD_GRAVITY, ADAPTIVE = "computed_torque", "pd_gravity", "adaptive"  # the first is the default
NATURAL_FREQUENCY = 120.0  # rad/s, of the closed loop's tracking error
DAMPING = 1.0  # of the same; 1 is critical
