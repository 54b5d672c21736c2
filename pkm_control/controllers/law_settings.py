# SPDX-License-Identifier: Apache-2.0
"""Names and default settings of the control laws, as plain data for user interfaces.

Nothing heavy is imported, so that launch files may read it; `pkm_control.controllers.laws` makes the controllers.
"""

from __future__ import annotations

import math

EFFORT_LAWS = COMPUTED_TORQUE, PD_GRAVITY, ADAPTIVE = "computed_torque", "pd_gravity", "adaptive"
FORCE_LAWS = IMPEDANCE, ADMITTANCE, HYBRID = "impedance", "admittance", "hybrid"  # for what is touched
POSITION = "position"  # for drives that take positions
LAWS = (*EFFORT_LAWS, *FORCE_LAWS, POSITION)  # the first is the default
NATURAL_FREQUENCY = 120.0  # rad/s, of the closed loop's tracking error
DAMPING = 1.0  # of the same; 1 is critical
PHASE_MARGIN = math.radians(30.0)  # of the loop over its delay; below, the error rings, and a wrong mass is too much


def highest_natural_frequency(period: float, damping: float = DAMPING, delay: float = 0.5) -> float:
    """Natural frequency [rad/s] up to which a delayed loop keeps `PHASE_MARGIN`; 0 where there is none.

    The loop (2 zeta omega s + omega^2) / s^2 crosses one at omega_c = omega sqrt(2 zeta^2 + sqrt(4 zeta^4 + 1)), where
    its phase is atan(2 zeta omega_c / omega) from -180 degrees; a delay tau takes omega_c tau of that away.

    Args:
        period: of control [s].
        damping: of the closed loop's tracking error; below 0.3 the margin is not there even without delay.
        delay: from a reading to the middle of the time in which its efforts act [periods]; 0.5 where they act at once.
    """
    crossing = math.sqrt(2.0 * damping**2 + math.sqrt(4.0 * damping**4 + 1.0))
    return max(0.0, (math.atan(2.0 * damping * crossing) - PHASE_MARGIN) / (crossing * delay * period))
