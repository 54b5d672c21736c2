# SPDX-License-Identifier: Apache-2.0
"""The question that answers about a quantity begin with."""

from __future__ import annotations

from typing import Any

from pkm_analysis.requirements.membership import Membership
from pkm_analysis.requirements.quantity import Quantity


def asked(membership: Membership, quantity: Quantity) -> dict[str, Any]:
    """Robot, quantity with unit and meaning, domain, and requirements, for JSON."""
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
