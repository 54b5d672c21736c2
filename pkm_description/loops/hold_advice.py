# SPDX-License-Identifier: Apache-2.0
"""Remedies for drives that do not hold a platform, by its kind of motion."""

from __future__ import annotations

WEAK_ADVICE = {
    "3T": "of a Delta: rods that lean more, by a smaller platform, a wider base or a home nearer to it",
    "3T3R": "of a hexapod, hobby ones too: legs that lean more, by a lower home or a base wider than the platform, and "
    "joints in pairs, near to each other on the platform and each with its legs to two pairs of the base",
}
"""How drives hold a platform better that they hold weakly, by its motion."""


def hold_advice(motion: str) -> str:
    """Remedy for a motion such as `3T3R`, to follow "change the geometry: "."""
    if "T" not in motion:
        return (
            "the drives hold a platform that only turns by moments, so that the line along which a rod pushes must "
            "pass beside the centre of rotation, and no two rods may give moments about the same axis. An ankle needs "
            "its rods on both sides, left and right: in front of or behind the ankle they pitch the foot together, and "
            "one against the other they roll it"
        )
    return {
        "2T": "the two limbs may not push along the same line: the bars to the platform must stand at an angle",
        "3T": "the limbs push along lines that may not all be parallel to one plane: give a Delta's limbs other "
        "directions around the base, or a platform that is smaller than the base so that the rods incline",
        "2T1R": "the lines along which three limbs push in the plane may neither meet in one point nor be parallel: "
        "the base and platform triangles may not be similar with their joints in the same order and direction",
        "3T3R": "the joint centres of a Gough-Stewart platform may not be similar polygons on circles of base and "
        "platform: bring pairs of legs together on the base and other pairs on the platform. In other robots of six "
        "degrees of freedom, no line may meet all lines along which rods push",
    }.get(motion, "the lines along which drives push may not depend on each other: other joint centres or directions")
