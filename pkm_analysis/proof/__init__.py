# SPDX-License-Identifier: Apache-2.0
"""Proof: what holds at every pose of a box or a path, by interval arithmetic that rounds outward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pkm_runtime.late import late

if TYPE_CHECKING:
    from pkm_analysis.proof.enclosures import Domain, Encloser, Enclosure
    from pkm_analysis.proof.halving import Proof, certified_box, prove, prove_path
    from pkm_analysis.proof.motion_proof import prove_motion
    from pkm_analysis.proof.questions import read_box, read_point, read_requirement
    from pkm_analysis.proof.requirements import Accuracy, Effort, Inside, Margin, NoSingularity, Requirement

__all__ = [
    "Accuracy",
    "Domain",
    "Effort",
    "Encloser",
    "Enclosure",
    "Inside",
    "Margin",
    "NoSingularity",
    "Proof",
    "Requirement",
    "certified_box",
    "prove",
    "prove_motion",
    "prove_path",
    "read_box",
    "read_point",
    "read_requirement",
]

__getattr__ = late(
    __name__,
    {
        "pkm_analysis.proof.enclosures": ("Domain", "Encloser", "Enclosure"),
        "pkm_analysis.proof.halving": ("Proof", "certified_box", "prove", "prove_path"),
        "pkm_analysis.proof.motion_proof": ("prove_motion",),
        "pkm_analysis.proof.questions": ("read_box", "read_point", "read_requirement"),
        "pkm_analysis.proof.requirements": ("Accuracy", "Effort", "Inside", "Margin", "NoSingularity", "Requirement"),
    },
)
