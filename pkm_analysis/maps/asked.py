# SPDX-License-Identifier: Apache-2.0
"""What was asked, as every answer about a quantity begins with it."""

from __future__ import annotations

from typing import Any

from pkm_analysis.requirements.membership import Membership
from pkm_analysis.requirements.quantity import Quantity


def asked(membership: Membership, quantity: Quantity) -> dict[str, Any]:
    """What was asked, for JSON.

    Args:
        membership: the conditions, over the domain.
        quantity: that was asked for.

    Returns:
        Robot, quantity with its unit and meaning, domain, and requirements.
    """
    domain = membership.domain
    return {
        "robot": membership.robot.name,
        "quantity": quantity.name,
        "unit": quantity.unit,
        "meaning": quantity.meaning,
        "domain": domain.in_words(),
        "coordinates": list(domain.labels),
        "units": list(domain.units),
        "requirements": [str(one) for one in membership.requirements],
    }
