# SPDX-License-Identifier: Apache-2.0
"""Robots of the gallery with springs of every kind, put into their descriptions."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from pkm_description import load_mechanism
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Mechanism


def sprung(name: str, preload: bool = True, seed: int = 5) -> Mechanism:
    """A robot with a spring from the base to each driven link and to the platform, and with springs of four joints.

    Of the springs between links one has no free length, the others have a rest length; some have a `preload` too.
    """
    plain, random = load_mechanism(name), np.random.default_rng(seed)
    root = ET.fromstring(plain.urdf)
    size = float(np.linalg.norm(plain.home[:3, 3])) + 0.3
    ends = [plain.joint_named[joint].child for joint in plain.actuated_joints]
    ends = [link for link in ends if link != plain.platform_link] + [plain.platform_link]
    for k, link in enumerate(ends):
        stiffness = random.uniform(20.0, 200.0) / size
        spring = ET.SubElement(root, "spring", name=f"spring{k}", stiffness=repr(stiffness))
        if k:
            rest = 0.1 * size * random.uniform(0.5, 1.0)
            spring.set("rest_length", repr(rest))
            if preload and k % 2:
                spring.set("preload", repr(0.3 * stiffness * rest))
        for tag, of in (("from", plain.base_link), ("to", link)):
            ET.SubElement(spring, tag, link=of, xyz=" ".join(map(repr, (0.3 * size * random.normal(size=3)).tolist())))
    moving = [joint for joint in root.findall("joint") if _can_spring(plain, joint.get("name", ""))]
    for joint in (*moving[:2], *moving[-2:]):
        dynamics = joint.find("dynamics")
        dynamics = ET.SubElement(joint, "dynamics") if dynamics is None else dynamics
        dynamics.set("spring_stiffness", repr(random.uniform(5.0, 50.0)))
        dynamics.set("spring_reference", repr(0.2 * random.normal()))
    return load_mechanism(ET.tostring(root, encoding="unicode"))


def _can_spring(mechanism: Mechanism, name: str) -> bool:
    return len(freedoms(mechanism.joint_named[name])) == 1 and name not in mechanism.virtual_chain
