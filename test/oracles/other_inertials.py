# SPDX-License-Identifier: Apache-2.0
"""A mechanism with other masses: its links' inertials replaced, in the description's text too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

import numpy as np

from pkm_description import mechanism_from_urdf
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.linear_form import ParameterSet
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


def with_parameters(mechanism: Mechanism, parameters: ParameterSet, values: Array) -> Mechanism:
    """The mechanism with the inertials of values (n,), fixed links included; rotors and friction as described."""
    carrier: dict[str, str] = {}
    for joint in mechanism.joints:
        if joint.type.dof == 0:
            carrier[joint.child] = carrier.get(joint.parent, joint.parent)
    inertials = {link: parameters.inertial_of(values, link) for link in parameters.bodies}
    inertials.update({link: Inertial() for link, body in carrier.items() if body in parameters.bodies})
    inertials.update({link: parameters.inertial_of(values, link) for link in parameters.bodies})
    return with_inertials(mechanism, inertials)


def _element(inertial: Inertial) -> ET.Element:
    element = ET.Element("inertial")
    ET.SubElement(element, "origin", xyz=" ".join(repr(float(x)) for x in inertial.com))
    ET.SubElement(element, "mass", value=repr(float(inertial.mass)))
    upper = inertial.inertia[np.triu_indices(3)]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ET.SubElement(element, "inertia", {name: repr(float(x)) for name, x in zip(names, upper, strict=True)})
    return element
