# SPDX-License-Identifier: Apache-2.0
"""Physical validity of a body's inertia.

A rigid body of positive density has a positive mass, a positive semi-definite inertia about its centre of mass, and
principal moments that obey the triangle inequality (the largest is at most the sum of the others). See Traversaro,
Brossette, Escande, Nori, "Identification of fully physical consistent inertial parameters using optimization on
manifolds", IROS 2016. Point masses and infinitely thin rods are the limits of such bodies and pass.
"""

from __future__ import annotations

import numpy as np

from pkm_description.mechanism import Inertial

# Tables are printed with few digits: a moment may miss by this part of the largest one.
ROUNDING = 1e-4

# kg m^2, kg or m: products of numbers beyond it overflow. No body has them, a slip of units does.
LARGEST = 1e50


def inertia_problem(inertial: Inertial) -> str | None:
    """Reason why no body can have an inertial, or None where it is possible."""
    if inertial.mass < 0.0:
        return f"negative mass {inertial.mass:g} kg"
    largest = max(inertial.mass, float(np.abs(inertial.com).max()), float(np.abs(inertial.inertia).max()))
    if largest > LARGEST:
        return f"{largest:.3g} is too large for the mass, centre of mass or inertia of a body"
    if not inertial.inertia.any():
        return None  # massless, or a point mass
    if inertial.mass == 0.0:
        return "inertia without mass"
    moments = np.linalg.eigvalsh(inertial.inertia)
    slack = ROUNDING * float(np.abs(moments).max())
    text = ", ".join(f"{value:.6g}" for value in moments)
    if moments[0] < -slack:
        return f"inertia is not positive definite (principal moments {text} kg m^2)"
    if moments[2] > moments[0] + moments[1] + slack:
        return f"principal moments {text} kg m^2 violate the triangle inequality"
    return None
