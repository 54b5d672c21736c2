# SPDX-License-Identifier: Apache-2.0
"""The elements of a URDF+ text as plain data: links, beams, joints, loops, springs, couplings; and their numbers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from pkm_description.description_error import DescriptionError, or_near
from pkm_description.mechanism import (
    RIGID,
    Array,
    Beam,
    Bearing,
    Coupling,
    Inertial,
    Joint,
    JointType,
    Limits,
    Link,
    Loop,
    LoopType,
    Mimic,
    Section,
    Spring,
    frozen,
    symmetric_of,
)
from pkm_description.rotations import rotation_from_rpy, transform

ZERO_LENGTH = 1e-9
PARALLEL = 1e-6  # rad
SOFTEST = 1e6  # Pa: rubber
SOFTEST_BEARING = 2e3  # N/m: softer than rubber; bearings have 1 to 1000 N/um
THICKEST, LONGEST_BEAM = 2.0, 50.0  # m, of a beam's section, and of where its ends are
SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
LARGEST = 1e9  # of any number but a limit: beyond it, squares and products of a solver overflow
OWN_ATTRIBUTES = {  # of elements that are only ours: of them, all are known
    "spring": ("name", "stiffness", "rest_length", "preload"),
    "beam": (
        "material", "E", "G", "from", "to", "y", "radius", "inner_radius", "width", "height", "thickness",
        "A", "Iy", "Iz", "J", "Ay", "Az",
    ),
    "bearing": ("radial", "axial", "tilt", "torsion"),
}  # fmt: skip
Kind = TypeVar("Kind", JointType, LoopType)
_SECTIONS = (  # what is given, and what it may be given with
    (("radius",), ("inner_radius",)),
    (("width", "height"), ("thickness",)),
    (("A", "Iy", "Iz", "J"), ()),
)
_SHEAR = ("Ay", "Az")
_NEEDS_AXIS = {LoopType.UNIVERSAL, LoopType.REVOLUTE, LoopType.CYLINDRICAL, LoopType.PRISMATIC, LoopType.PLANAR}
# Tables are printed with few digits: a moment may miss by this part of the largest one.
ROUNDING = 1e-4
# kg m^2, kg or m: products of numbers beyond it overflow. No body has them, a slip of units does.
HEAVIEST = 1e50
# Young's and shear modulus [Pa], usual values at room temperature; carbon is a tube of mostly lengthwise fibres.
MATERIALS = {
    "steel": (210e9, 80.8e9),
    "stainless_steel": (193e9, 75e9),
    "cast_iron": (110e9, 44e9),
    "aluminium": (70e9, 26.3e9),
    "titanium": (114e9, 43e9),
    "brass": (100e9, 37e9),
    "carbon": (120e9, 5e9),
}
Numbers = tuple[float, float, float, float]  # A, Iy, Iz, J


def flag(element: ET.Element, label: str, attribute: str) -> bool:
    """A switch, off where it is left out."""
    text = element.get(attribute, "false").strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise DescriptionError(label, f'{attribute}="{text}" is neither true nor false', "write true or false")
    return text in ("true", "1")


def numbers_of(text: str, label: str, what: str, count: int, largest: float = LARGEST, finite: bool = True) -> Array:
    """So many numbers (count,) of a text; `label` and `what` name it in messages."""
    quoted = f'{what}{"=" if what else ""}"{text}"'
    try:
        values = np.array([float(part) for part in text.split()])
    except ValueError:
        remedy = f"write {count} number(s), with a point as decimal sign"
        raise DescriptionError(label, f"{quoted} is not made of numbers", remedy) from None
    if len(values) != count:
        raise DescriptionError(label, f"{quoted} has {len(values)} number(s)", f"write {count}, separated by spaces")
    if np.isnan(values).any() or (finite and np.isinf(values).any()):
        raise DescriptionError(label, f"{quoted} is not finite", "write finite numbers")
    if (np.abs(values) > largest).any():
        raise DescriptionError(label, f"{quoted} is larger than {largest:g}", "write SI units: m, rad, kg, N")
    return values


def number_of(
    element: ET.Element, attribute: str, label: str, default: float | None = None, largest: float = LARGEST
) -> float:
    """The number of an attribute, required without a default."""
    text = element.get(attribute)
    if text is None:
        if default is None:
            raise DescriptionError(label, f"attribute {attribute} is missing", f'add {attribute}="..."')
        return default
    return float(numbers_of(text, label, attribute, 1, largest)[0])


def vector_of(element: ET.Element, attribute: str, label: str, default: str = "0 0 0") -> Array:
    """The three numbers of an attribute."""
    return frozen(numbers_of(element.get(attribute, default), label, attribute, 3))


def origin_of(parent: ET.Element, label: str) -> Array:
    """Transform (4, 4) of the `<origin>` child; the identity where there is none."""
    element = parent.find("origin")
    if element is None:
        return frozen(np.eye(4))
    return frozen(pose_of(element, f"{label} <origin>"))


def pose_of(element: ET.Element, label: str) -> Array:
    """Transform (4, 4) of an element's attributes xyz and rpy."""
    return transform(vector_of(element, "xyz", label), rotation_from_rpy(vector_of(element, "rpy", label)))


def axis_of(parent: ET.Element, tag: str, label: str) -> Array | None:
    """Unit vector (3,) of the child `tag`, or None where there is none."""
    element = parent.find(tag)
    if element is None:
        return None
    if element.get("xyz") is None:
        raise DescriptionError(f"{label} <{tag}>", "attribute xyz is missing", f'write <{tag} xyz="0 0 1"/>')
    vector = vector_of(element, "xyz", f"{label} <{tag}>")
    length = float(np.linalg.norm(vector))
    if length < ZERO_LENGTH:
        raise DescriptionError(
            f"{label} <{tag}>", "its length is zero", f'write a direction, for example <{tag} xyz="0 0 1"/>'
        )
    return frozen(vector / length)


def _type(element: ET.Element, kinds: type[Kind], label: str) -> Kind:
    name = element.get("type", "")
    known = {one.value: one for one in kinds}
    if name not in known:
        raise DescriptionError(label, f"unknown type {element.get('type')!r}", f"use one of {', '.join(known)}")
    return known[name]


def link_of(element: ET.Element, accept_invalid: bool) -> Link:
    """The body of a `<link>`, its inertia checked unless `accept_invalid`."""
    name = element.get("name", "")
    label = f'<link name="{name}">'
    child = element.find("inertial")
    written = element.findall("beam")
    beams = tuple(_beam(one, f"{label} <beam>") for one in written)
    if len({tuple(sorted(one.attrib.items())) for one in written}) < len(written):
        raise DescriptionError(f"{label} <beam>", "two are identical, which would count twice", "remove one")
    if child is None:
        return Link(name, Inertial(), beams)
    mass_element, inertia_element = child.find("mass"), child.find("inertia")
    if mass_element is None:
        raise DescriptionError(label, "<inertial> has no <mass>", 'add <mass value="..."/> or remove <inertial>')
    mass = number_of(mass_element, "value", f"{label} <mass>")
    six = np.zeros(6)
    if inertia_element is not None:  # URDF wants all six; products of inertia that are left out are zero
        place = f"{label} <inertia>"
        defaults = (None, 0.0, 0.0, None, 0.0, None)
        six = np.array([number_of(inertia_element, *one) for one in zip(SIX, [place] * 6, defaults, strict=True)])
    frame = origin_of(child, f"{label} <inertial>")
    rotated = frame[:3, :3] @ symmetric_of(six) @ frame[:3, :3].T
    inertial = Inertial(mass, frozen(frame[:3, 3]), frozen(0.5 * (rotated + rotated.T)))
    problem = inertia_problem(inertial)
    if problem and not (accept_invalid and mass >= 0.0):
        published = '; for a published table with this error, write <pkm accept_invalid_inertia="true">'
        raise DescriptionError(label, problem, f"correct mass or inertia{published if mass >= 0 else ''}")
    return Link(name, inertial, beams)


def _refuse_unknown(element: ET.Element, tag: str, label: str) -> None:
    known = OWN_ATTRIBUTES[tag]
    for key in element.attrib.keys() - known:
        remedy = or_near(key, known, f"write {', '.join(known)}")
        raise DescriptionError(label, f"there is no attribute {key!r}", remedy)


def _beam(element: ET.Element, label: str) -> Beam:
    _refuse_unknown(element, "beam", label)
    y = vector_of(element, "y", label) if element.get("y") else None
    if y is not None and np.linalg.norm(y) < ZERO_LENGTH:
        raise DescriptionError(label, "the length of y is zero", 'write a direction, for example y="0 1 0"')
    material = element.get("material", "")
    if material and (element.get("E") or element.get("G")):
        raise DescriptionError(label, "it has a material, and E or G", "write the material, or E and G")
    if material and material not in MATERIALS:
        problem = f"the material {material!r} is unknown"
        raise DescriptionError(label, problem, f"write one of {', '.join(MATERIALS)}, or E and G [Pa]")
    ends = None
    if element.get("from") is not None or element.get("to") is not None:
        if element.get("from") is None or element.get("to") is None:
            raise DescriptionError(label, "it has only one end", "write both, from and to")
        ends = frozen([vector_of(element, key, label) for key in ("from", "to")])
        if np.linalg.norm(ends[1] - ends[0]) < ZERO_LENGTH:
            raise DescriptionError(label, "its length is zero", "write two different points, from and to")
        if y is not None and np.linalg.norm(np.cross(ends[1] - ends[0], y)) < PARALLEL * np.linalg.norm(
            ends[1] - ends[0]
        ) * np.linalg.norm(y):
            raise DescriptionError(label, "y is parallel to the beam", "write a direction across it")
    given = {name for needed, more in _SECTIONS for name in (*needed, *more) if element.get(name) is not None}
    areas = {name: _positive(element, name, label) for name in _SHEAR if element.get(name) is not None}
    if not given:
        if ends is not None or areas or element.get("E") is not None:
            problem = "its section is missing"
            remedy = "write radius, or width and height, or A, Iy, Iz and J; without from and to, its visuals define it"
            raise DescriptionError(label, problem, remedy)
        return Beam(None, material, None, y)
    sizes = {name: _positive(element, name, label) for name in given}
    moduli = MATERIALS[material] if material else tuple(_positive(element, name, label) for name in ("E", "G"))
    shape = next((n for n, (needed, more) in enumerate(_SECTIONS) if {*needed} <= given <= {*needed, *more}), None)
    if shape is None:
        problem = f"{', '.join(sorted(given))} do not form a section"
        remedy = "write radius (with inner_radius), or width and height (with thickness), or A, Iy, Iz and J"
        raise DescriptionError(label, problem, remedy)
    if shape == 0:
        inner = sizes.get("inner_radius", 0.0)
        if inner >= sizes["radius"]:
            problem = f"the inner radius {inner:g} is not less than the radius"
            raise DescriptionError(label, problem, "write it less than radius")
        numbers = tube(sizes["radius"], inner)
    elif shape == 1:
        width, height, thickness = sizes["width"], sizes["height"], sizes.get("thickness", 0.0)
        if 2.0 * thickness >= min(width, height):
            raise DescriptionError(label, f"walls of {thickness:g} leave no hole", "remove thickness")
        numbers = hollow_section(width, height, thickness) if thickness else rectangle(width, height)
    else:
        numbers = (sizes["A"], sizes["Iy"], sizes["Iz"], sizes["J"])
        _check_section(label, *numbers)
    E, G = moduli
    _check_beam_units(label, E, sizes if shape < 2 else {}, ends)
    if G > E:  # of isotropic materials, G is a third to half of E
        raise DescriptionError(label, f"G, {G:g} Pa, is larger than E, {E:g} Pa", "exchange them, or correct one")
    return Beam(Section(E, G, *numbers, **areas), material, ends, y)


def _check_beam_units(label: str, E: float, sizes: Mapping[str, float], ends: Array | None) -> None:
    if E < SOFTEST:
        unit, factor = ("GPa", 1e9) if E < 1e3 else ("MPa", 1e6)
        raise DescriptionError(label, f"E, {E:g} Pa, looks like {unit}", f"write E and G in Pa: {E * factor:g}")
    lengths = {**sizes, "from": 0.0, "to": 0.0}
    if ends is not None:
        lengths |= dict(zip(("from", "to"), np.linalg.norm(ends, axis=1).tolist(), strict=True))
    for name, length in lengths.items():
        if length > (LONGEST_BEAM if name in ("from", "to") else THICKEST):
            raise DescriptionError(label, f"{name}, {length:g} m, looks like mm", f"write m: {1e-3 * length:g}")


def _check_section(label: str, A: float, Iy: float, Iz: float, J: float) -> None:
    for name, value, power in (("A", A, 2), ("Iy", Iy, 4), ("Iz", Iz, 4), ("J", J, 4)):
        if value > THICKEST**power:
            problem = f"{name}, {value:g} m{power}, looks like mm{power}"
            raise DescriptionError(label, problem, f"write m{power}: {value * 1e-3**power:g}")
    if Iy + Iz > THICKEST**2 * A:  # else they may be those of a beam that stands for something else
        problem = f"no section has an A of {A:g} m2 with Iy and Iz of {Iy:g} and {Iz:g} m4"
        raise DescriptionError(label, problem, "correct one; is it in cm4 or mm4?")


def _positive(element: ET.Element, attribute: str, label: str) -> float:
    value = number_of(element, attribute, label, largest=1e15)  # moduli are large
    if not value > 0.0:
        raise DescriptionError(label, f'{attribute}="{value:g}" is not greater than zero', "write a positive number")
    return value


def _bearing(element: ET.Element, label: str) -> Bearing:
    child = element.find("bearing")
    if child is None:
        return RIGID
    place = f"{label} <bearing>"
    _refuse_unknown(child, "bearing", place)
    radial = _positive(child, "radial", place) if child.get("radial") else math.inf
    for name in ("radial", "axial"):
        value = _positive(child, name, place) if child.get(name) else math.inf
        if value < SOFTEST_BEARING:
            raise DescriptionError(place, f"{name}, {value:g} N/m, looks like N/um", f"write N/m: {1e6 * value:g}")
    return Bearing(
        radial,
        *(
            _positive(child, key, place) if child.get(key) else default
            for key, default in (("axial", radial), ("tilt", math.inf), ("torsion", math.inf))
        ),
    )


def joint_of(element: ET.Element) -> Joint:
    """The joint of a `<joint>`, without its drive."""
    name = element.get("name", "")
    label = f'<joint name="{name}">'
    kind = _type(element, JointType, label)
    axis = None if kind is JointType.FIXED else axis_of(element, "axis", label)  # exporters write one of zeros
    place, dynamics = f"{label} <dynamics>", element.find("dynamics")
    given = ET.Element("dynamics") if dynamics is None else dynamics
    sizes = {key: number_of(given, key, place, 0.0) for key in ("damping", "friction", "armature", "spring_stiffness")}
    for key, size in sizes.items():
        if size < 0.0:
            raise DescriptionError(place, f"{key} is negative", "write it >= 0")
    if sizes["spring_stiffness"] and kind.dof != 1:
        raise DescriptionError(place, f"a {kind.value} joint cannot have a spring", "write a <spring> between links")
    return Joint(
        name=name,
        type=kind,
        parent=_end(element, "parent", label, 'add <parent link="..."/>').get("link", ""),
        child=_end(element, "child", label, 'add <child link="..."/>').get("link", ""),
        origin=origin_of(element, label),
        axis=frozen((1.0, 0.0, 0.0)) if axis is None else axis,
        limits=_limits(element, kind, label),
        viscous_friction=sizes["damping"],
        coulomb_friction=sizes["friction"],
        mimic=_mimic(element, label),
        bearing=_bearing(element, label),
        spring_stiffness=sizes["spring_stiffness"],
        spring_reference=number_of(given, "spring_reference", place, 0.0),
        other_armature=sizes["armature"],
    )


def _end(element: ET.Element, tag: str, label: str, remedy: str) -> ET.Element:
    end = element.find(tag)
    if end is None or not end.get("link"):
        raise DescriptionError(label, f"no <{tag}> link", remedy)
    return end


def _limits(element: ET.Element, kind: JointType, label: str) -> Limits:
    limit = element.find("limit")
    if limit is None:
        return Limits()
    place = f"{label} <limit>"
    lower = number_of(limit, "lower", place, -np.inf, np.inf)
    upper = number_of(limit, "upper", place, np.inf, np.inf)
    velocity = number_of(limit, "velocity", place, 0.0, np.inf)
    effort = number_of(limit, "effort", place, 0.0, np.inf)
    if velocity < 0.0 or effort < 0.0:
        raise DescriptionError(place, "velocity or effort is negative", "write both as magnitudes, >= 0")
    if kind not in (JointType.REVOLUTE, JointType.PRISMATIC) or lower == upper == 0.0:
        # CAD exporters write zeros where the author stated no range.
        lower, upper = -np.inf, np.inf
    # Others write the largest number they know.
    lower, upper = -np.inf if lower < -LARGEST else lower, np.inf if upper > LARGEST else upper
    if lower > LARGEST or upper < -LARGEST:
        raise DescriptionError(place, f"the range from {lower:g} to {upper:g} is empty", "write rad or m")
    if lower > upper:
        raise DescriptionError(place, f"lower {lower:g} is above upper {upper:g}", "swap them")
    if lower == upper:
        raise DescriptionError(place, f"lower and upper are equal, both {lower:g}", 'use type="fixed"')
    return Limits(lower, upper, velocity or np.inf, effort or np.inf)


def _mimic(element: ET.Element, label: str) -> Mimic | None:
    mimic = element.find("mimic")
    if mimic is None:
        return None
    place = f"{label} <mimic>"
    joint = mimic.get("joint")
    if not joint:
        raise DescriptionError(place, "attribute joint is missing", 'write <mimic joint="..."/>')
    return Mimic(joint, number_of(mimic, "multiplier", place, 1.0), number_of(mimic, "offset", place, 0.0))


def loop_of(element: ET.Element) -> Loop:
    """The closure of a `<loop>`."""
    name = element.get("name", "")
    label = f'<loop name="{name}">'
    kind = _type(element, LoopType, label)
    sides = []
    for tag in ("predecessor", "successor"):
        end = _end(element, tag, label, f'add <{tag} link="..."><origin xyz="..."/></{tag}>')
        sides.append((end.get("link", ""), origin_of(end, f"{label} <{tag}>")))
    axis, axis2 = axis_of(element, "axis", label), axis_of(element, "axis2", label)
    if kind in _NEEDS_AXIS and axis is None:
        raise DescriptionError(label, f"a {kind.value} loop needs an axis", 'add <axis xyz="..."/>')
    if kind is LoopType.UNIVERSAL and axis2 is None:
        raise DescriptionError(
            label, "a universal loop needs a second axis", 'add <axis2 xyz="..."/> in the successor\'s loop frame'
        )
    if axis is None:
        axis = frozen((0.0, 0.0, 1.0))
    return Loop(
        name=name,
        type=kind,
        predecessor=sides[0][0],
        successor=sides[1][0],
        predecessor_frame=sides[0][1],
        successor_frame=sides[1][1],
        axis=axis,
        axis2=axis if axis2 is None else axis2,
        bearing=_bearing(element, label),
    )


def spring_label(spring: Spring) -> str:
    """How messages name a spring."""
    return f'<spring name="{spring.name}">'


def spring_of(element: ET.Element) -> Spring:
    """The spring of a `<spring>`."""
    name = element.get("name", "")
    label = f'<spring name="{name}">'
    _refuse_unknown(element, "spring", label)
    ends: list[tuple[str, Array]] = []
    for tag in ("from", "to"):
        end = _end(element, tag, label, f'add <{tag} link="..." xyz="..."/>')
        ends.append((end.get("link", ""), vector_of(end, "xyz", f"{label} <{tag}>")))
    stiffness, rest = number_of(element, "stiffness", label), number_of(element, "rest_length", label, 0.0)
    for what, value in (("stiffness", stiffness), ("rest_length", rest)):
        if value < 0.0:
            raise DescriptionError(label, f"{what} {value:g} is negative", "write it >= 0")
    return Spring(name, stiffness, *ends[0], *ends[1], rest, number_of(element, "preload", label, 0.0))


def coupling_of(element: ET.Element, joints: Sequence[Joint]) -> Coupling:
    """The coupling of a `<coupling>` of some of the joints."""
    name, terms = element.get("name", ""), []
    label = f'<coupling name="{name}">'
    leading = {joint.name for joint in joints if joint.type.dof == 1 and joint.mimic is None}
    for one in element.findall("joint"):
        joint, text = one.get("name", ""), one.get("coefficients", "")
        if joint not in leading:
            problem = f"{joint!r} is no joint with one degree of freedom of its own"
            raise DescriptionError(label, problem, "name a revolute or prismatic joint that mimics no other")
        numbers = numbers_of(text, label, "coefficients", len(text.split()))
        if not numbers.any():
            remedy = 'write coefficients="1", of powers 1, 2, ...'
            raise DescriptionError(label, f"{joint!r} has no coefficient", remedy)
        terms.append((joint, tuple(map(float, numbers))))
    if len({joint for joint, _ in terms}) != len(terms) or len(terms) < 2:
        raise DescriptionError(label, "it does not couple two or more joints", 'add <joint name="" coefficients=""/>')
    return Coupling(name, tuple(terms), number_of(element, "offset", label, 0.0))


# A body of positive density has a positive mass, a positive semi-definite inertia about its centre of mass, and moments
# of which the largest is at most the sum of the others; point masses and thin rods are limits of such bodies and pass.
# Traversaro, Brossette, Escande, Nori, "Identification of fully physical consistent inertial parameters using
# optimization on manifolds", IROS 2016.
def inertia_problem(inertial: Inertial) -> str | None:
    """Reason why no body can have an inertial, or None where it is possible."""
    if inertial.mass < 0.0:
        return f"negative mass {inertial.mass:g} kg"
    largest = max(inertial.mass, float(np.abs(inertial.com).max()), float(np.abs(inertial.inertia).max()))
    if largest > HEAVIEST:
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


def tube(radius: float, inner: float = 0.0) -> Numbers:
    """A round tube or bar."""
    bending = 0.25 * math.pi * (radius**4 - inner**4)
    return math.pi * (radius**2 - inner**2), bending, bending, 2.0 * bending


# Its torsion constant is Saint-Venant's, by the approximation in Young and Budynas, "Roark's formulas for stress and
# strain", 7th ed., table 10.1; that of thin walls, below, is Bredt's.
def rectangle(width: float, height: float) -> Numbers:
    """A solid rectangle, its width along y."""
    a, b = max(width, height), min(width, height)
    torsion = a * b**3 * (1.0 / 3.0 - 0.21 * b / a * (1.0 - b**4 / (12.0 * a**4)))
    return width * height, width * height**3 / 12.0, height * width**3 / 12.0, torsion


def hollow_section(width: float, height: float, thickness: float) -> Numbers:
    """A rectangular tube of one wall thickness, its width along y."""
    full, hole = rectangle(width, height), rectangle(width - 2.0 * thickness, height - 2.0 * thickness)
    area, iy, iz = (a - b for a, b in zip(full[:3], hole[:3], strict=True))
    wide, high = width - thickness, height - thickness
    return area, iy, iz, 2.0 * thickness * (wide * high) ** 2 / (wide + high)
