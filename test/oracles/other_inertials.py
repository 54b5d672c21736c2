# SPDX-License-Identifier: Apache-2.0
"""A mechanism with other masses: its links' inertials replaced, in the description's text too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

import numpy as np

from pkm_description import mechanism_from_urdf
from pkm_description.mechanism import Inertial, Mechanism
from pkm_runtime.errors import PkmError


def with_inertials(mechanism: Mechanism, inertials: Mapping[str, Inertial]) -> Mechanism:
    """The same mechanism with other inertials of some links by name; `DescriptionError` for an impossible one."""
    root = ET.fromstring(mechanism.urdf)
    links = {link.get("name"): link for link in root.iter("link") if link.get("name")}
    for name, inertial in inertials.items():
        if name not in links:
            raise PkmError(f"{mechanism.name} has no link '{name}'")
        for old in links[name].findall("inertial"):
            links[name].remove(old)
        if not inertial.massless:
            links[name].append(_element(inertial))
    return mechanism_from_urdf(ET.tostring(root, encoding="unicode"))


def _element(inertial: Inertial) -> ET.Element:
    element = ET.Element("inertial")
    ET.SubElement(element, "origin", xyz=" ".join(repr(float(x)) for x in inertial.com))
    ET.SubElement(element, "mass", value=repr(float(inertial.mass)))
    upper = inertial.inertia[np.triu_indices(3)]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ET.SubElement(element, "inertia", {name: repr(float(x)) for name, x in zip(names, upper, strict=True)})
    return element
