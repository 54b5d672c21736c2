# SPDX-License-Identifier: Apache-2.0
"""Proof: what holds at every pose of a box or a path, by interval arithmetic that rounds outward."""

from pkm_analysis.proof.enclosures import Domain, Encloser, Enclosure
from pkm_analysis.proof.motion_proof import prove_motion
from pkm_analysis.proof.prove import Proof, certified_box, prove, prove_path
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
]
