# SPDX-License-Identifier: Apache-2.0
"""A MuJoCo model as plain records with (4, 4) frames, and the reader of files that need no compiler."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pkm_description.description_error import DescriptionError, or_near
from pkm_description.mechanism import Array, Coupling, Spring
from pkm_description.rotations import inverse_transform, rotation_about, transform, transform_from_wxyz
from pkm_description.urdf.elements import numbers_of
from pkm_description.urdf.visuals import GREY, Visual

WORLD = "world"
REMARK = "pkm"  # name of the <text> in <custom> that has what MJCF has no word for
# What only MuJoCo's compiler resolves.
COMPILED_TAGS = ("include", "frame", "replicate", "attach", "composite", "flexcomp", "asset/model")
COMPILED_SETTINGS = ("inertiafromgeom", "coordinate", "settotalmass", "boundmass", "boundinertia", "balanceinertia")
# What a plain file may have; MuJoCo refuses others, and so do we: a misspelled one would go unnoticed.
SECTIONS = ("compiler", "option", "size", "statistic", "default", "custom", "asset", "visual", "worldbody", "contact",
            "equality", "tendon", "actuator", "sensor", "keyframe", "extension", "deformable")  # fmt: skip
IN_BODY = ("body", "joint", "freejoint", "inertial", "geom", "site", "camera", "light", "plugin")
OF_EQUALITY = ("name", "active", "solref", "solimp", "body1", "body2", "site1", "site2", "anchor", "relpose",
               "torquescale", "joint1", "joint2", "tendon1", "tendon2", "polycoef")  # fmt: skip
LARGEST = 1e18  # of any number
# What goes with a robot in MuJoCo and has no place in ours: where the file has it (no element: any) and MjSpec.
BESIDE = {
    "cameras": ("worldbody", ("camera",), ("cameras",)),
    "lights": ("worldbody", ("light",), ("lights",)),
    "sites": ("worldbody", ("site",), ("sites",)),
    "materials": ("asset", ("material",), ("materials",)),
    "sensors": ("sensor", (), ("sensors",)),
    "pairs and excluded pairs of contacts": ("contact", (), ("pairs", "excludes")),
    "bodies that bend": ("deformable", (), ("flexes", "skins")),
    "numbers and texts of <custom>": ("custom", (), ("numerics", "texts", "tuples")),
    "other keyframes": ("keyframe", (), ()),
}
MEDIUM = ("wind", "density", "viscosity")  # of an <option>, which push bodies that move
STOCK = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0), "margin": (0.0,)}  # of a constraint
NOT_READ = MESHES, CONTACTS, GRAVCOMP, BALL_RANGE, SHAPES, GAINS, SOFTNESS, MOCAP = (
    "meshes of",
    "contacts of geoms, which are pictures here, of",
    "gravcomp of",
    "the range of the ball",
    "shapes that are no boxes, spheres, cylinders, and those in the world, of",
    "gains of the servos",
    "how soft constraints are (solref, solimp, margin), of",
    "the mocap body",
)
DISABLED = "equalities, which a <flag> disables:"
FLAGS = ("frictionloss", "limit", "passive", "spring", "damper", "clampctrl", "actuation")  # whose numbers are read
SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2}  # numbers that the size of a geom has
INTERFACES = {"motor": "effort", "general": "effort", "position": "position", "velocity": "velocity"}
ACTUATORS = (*INTERFACES, "intvelocity", "damper", "cylinder", "muscle", "dcmotor")  # which share their defaults
OF_GENERAL = ("gaintype", "gainprm", "biastype", "biasprm", "dyntype", "actrange")
NO_LIMIT = (-np.inf, np.inf)


@dataclass
class MjcfJoint:
    """A joint: `kind` is hinge, slide, ball or free; `pos` and `axis` (3,) are in the body's frame."""

    name: str
    kind: str
    pos: Array
    axis: Array
    limits: tuple[float, float] | None = None
    effort: tuple[float, float] = NO_LIMIT  # of all its actuators together
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    reference: float = 0.0  # position at which the body stands as drawn
    stiffness: float = 0.0  # of a spring that rests at the position `rest`
    rest: float = 0.0


@dataclass
class MjcfBody:
    """A body in its parent's frame, with its inertia (3, 3) about the centre of mass in body axes."""

    name: str
    parent: str
    frame: Array
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros((3, 3)))
    joints: list[MjcfJoint] = field(default_factory=list)
    visuals: list[Visual] = field(default_factory=list)


@dataclass
class MjcfClosure:
    """An equality constraint: `kind` is connect or weld; the two frames, each in its body, coincide."""

    name: str
    kind: str
    first: str
    second: str
    first_frame: Array
    second_frame: Array


@dataclass
class MjcfGear:
    """An equality between joints: position(follower) = offset + ratio * position(leader)."""

    follower: str
    leader: str
    offset: float
    ratio: float


@dataclass
class MjcfActuator:
    """A drive of a joint: `interface` is effort, position or velocity; `doubt` is why its `force` has no range."""

    joint: str
    interface: str
    force: tuple[float, float]
    levers: dict[str, tuple[float, float]]  # of each joint: its effort per force, its rate per that of `joint`
    doubt: str = ""
    tendon: tuple[int, tuple[float, float]] = (-1, NO_LIMIT)  # which, and the range of all forces on it together


@dataclass
class MjcfModel:
    """A model; bodies in topological order, the world not among them. `home` are positions by MuJoCo's order."""

    name: str
    gravity: Array
    bodies: list[MjcfBody] = field(default_factory=list)
    closures: list[MjcfClosure] = field(default_factory=list)
    gears: list[MjcfGear] = field(default_factory=list)
    actuators: list[MjcfActuator] = field(default_factory=list)
    springs: list[Spring] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    locked: list[tuple[str, float]] = field(default_factory=list)  # joints held by equalities, and where
    home: list[float] | None = None
    notes: list[str] = field(default_factory=list)

    def tell(self, what: str, names: Sequence[str]) -> None:
        """Note what is not read, and whose it is: meshes are not drawn, for one, and their files need not be there."""
        self.notes += [f"not read: {what} {', '.join(names)}"] if names else []

    def tell_beside(self, found: Mapping[str, Sequence[str]], used: Collection[str], medium: Sequence[str]) -> None:
        """Note what is `found` of `BESIDE`, but for what is `used`, and where a medium is not followed."""
        for what, names in found.items():
            unnamed = sum(not name for name in names)
            listed = [name for name in names if name and name not in used]
            self.tell(what, listed + [f"{unnamed} without a name"] * (unnamed > 0))
        self.tell("a medium, <option>", medium)

    def tell_disabled(self, flags: Sequence[str], groups: str) -> None:
        """Note what an `<option>` disables in MuJoCo, and not here."""
        disabled = [f'<flag {flag}="disable"/>' for flag in flags] + [f'actuatorgroupdisable="{groups}"'] * bool(groups)
        self.notes += [f"not followed, and read as if enabled: {', '.join(disabled)}"] if disabled else []


class NeedsCompilerError(Exception):
    """The file uses something that only MuJoCo resolves, named by the text."""


def read(root: ET.Element) -> MjcfModel:
    """The model of a `<mujoco>` stated in full; `NeedsCompilerError` for defaults, includes and the like."""
    return _Reader(root).model


class _Reader:
    def __init__(self, root: ET.Element) -> None:
        for tag in COMPILED_TAGS:
            if root.find(f".//{tag}") is not None:
                raise NeedsCompilerError(f"<{tag}>")
        for element in root.iter():
            if "class" in element.attrib or "childclass" in element.attrib:
                raise NeedsCompilerError("classes of defaults")
        _refuse_unknown(root)
        compiler = root.find("compiler")
        settings: Mapping[str, str] = {} if compiler is None else compiler.attrib
        self.degrees = settings.get("angle", "degree") == "degree"
        self.sequence = settings.get("eulerseq", "xyz")
        if len(self.sequence) != 3 or not set(self.sequence.lower()) <= set("xyz"):
            raise DescriptionError(
                "<compiler>", f"eulerseq={self.sequence!r} is not made of three axes", "write three letters of xyz"
            )
        for name in COMPILED_SETTINGS:
            if settings.get(name, "auto") not in ("auto", "false", "0", "-1"):
                raise NeedsCompilerError(f"<compiler {name}>")
        self.defaults = {e.tag: dict(e.attrib) for group in root.findall("default") for e in group}
        option = root.find("option")
        gravity = "0 0 -9.81" if option is None else option.get("gravity", "0 0 -9.81")
        flags = {} if option is None or (flag := option.find("flag")) is None else flag.attrib
        self.skipped: dict[str, list[str]] = {what: [] for what in NOT_READ}
        self.model = MjcfModel(root.get("model", "robot"), _numbers(gravity, 3, "<option gravity>"))
        others = [flag for flag in FLAGS if flags.get(flag) == "disable"]
        self.model.tell_disabled(others, "" if option is None else option.get("actuatorgroupdisable", ""))
        if flags.get("gravity") == "disable":
            self.model.gravity = np.zeros(3)
        self.sites: dict[str, tuple[str, Array]] = {}
        self.drawn: dict[str, Array] = {WORLD: np.eye(4)}  # body frames in the world, every joint as drawn
        for world in root.findall("worldbody"):
            self._sites(world, WORLD)
            self.skipped[SHAPES] += [WORLD] * (world.find("geom") is not None)
            for element in world.findall("body"):
                self._body(element, WORLD)
        disabled = "disable" in (flags.get("equality"), flags.get("constraint"))
        equalities = [element for group in root.findall("equality") for element in group]
        self.model.tell(DISABLED, [one.get("name") or f"<{one.tag}>" for one in equalities if disabled])
        for element in equalities if not disabled else ():
            self._equality(element)
        for group in root.findall("tendon"):
            for element in group:
                self._tendon(element)
        for group in root.findall("actuator"):
            for element in group:
                self._actuator(element)
        keys = [key for group in root.findall("keyframe") for key in group.findall("key") if key.get("qpos")]
        chosen = next((key for key in keys if key.get("name") == "home"), keys[0] if keys else None)
        if chosen is not None:
            text = chosen.get("qpos", "")
            self.model.home = [float(v) for v in _numbers(text, len(text.split()), "<key>")]
        for what, names in self.skipped.items():
            self.model.tell(what, list(dict.fromkeys(names)))
        self._beside(root, {} if option is None else option.attrib, chosen)

    def _beside(self, root: ET.Element, option: Mapping[str, str], home: ET.Element | None) -> None:
        found = {}
        for what, (section, tags, _) in BESIDE.items():
            groups = [list(group.iter() if tags else group) for group in root.findall(section)]
            parts = [one for group in groups for one in group if one is not home and (not tags or one.tag in tags)]
            found[what] = [one.get("name", "") for one in parts]
        used = {e.get(key, "") for group in root.findall("equality") for e in group for key in ("site1", "site2")}
        used |= {site.get("site", "") for group in root.findall("tendon") for site in group.iter("site")}
        medium = [key for key in MEDIUM if any(float(v) for v in option.get(key, "0").split())]
        self.model.tell_beside(found, (used - {""}) | {REMARK}, medium)

    def _attributes(self, element: ET.Element) -> dict[str, str]:
        return {**self.defaults.get(element.tag, {}), **element.attrib}

    def _frame(self, given: Mapping[str, str], label: str) -> Array:
        pos = _numbers(given.get("pos", "0 0 0"), 3, label)
        turn = 1.0 if not self.degrees else np.pi / 180.0
        if "quat" in given:
            return transform_from_wxyz(pos, _direction(_numbers(given["quat"], 4, label), label))
        rotation = np.eye(3)
        if "axisangle" in given:
            values = _numbers(given["axisangle"], 4, label)
            rotation = rotation_about(_direction(values[:3], label), turn * values[3])
        elif "euler" in given:
            for letter, angle in zip(self.sequence, _numbers(given["euler"], 3, label), strict=True):
                step = rotation_about(np.eye(3)["xyz".index(letter.lower())], turn * angle)
                rotation = rotation @ step if letter.islower() else step @ rotation
        elif "xyaxes" in given:
            values = _numbers(given["xyaxes"], 6, label)
            x = _direction(values[:3], label)
            y = _direction(values[3:] - (values[3:] @ x) * x, label)
            rotation = np.column_stack([x, y, np.cross(x, y)])
        elif "zaxis" in given:
            raise NeedsCompilerError("zaxis")
        return transform(pos, rotation)

    def _body(self, element: ET.Element, parent: str) -> None:
        name = element.get("name") or f"body{len(self.model.bodies) + 1}"
        label = f'<body name="{name}">'
        if element.get("mocap") == "true" and element.find("body") is None:
            self.skipped[MOCAP].append(name)
            return
        body = MjcfBody(name, parent, self._frame(element.attrib, label))
        if name in self.drawn:
            raise DescriptionError(label, "the name is used twice", "give each body its own name")
        self.drawn[name] = self.drawn[parent] @ body.frame
        self.model.bodies.append(body)
        for joint in (*element.findall("joint"), *element.findall("freejoint")):
            body.joints.append(self._joint(joint, name, len(body.joints)))
        inertial = element.find("inertial")
        if inertial is not None:
            self._inertial(body, inertial, label)
        elif element.find("geom") is not None and (body.joints or parent != WORLD):
            raise NeedsCompilerError(f"the inertia of {label} from its geoms")
        for geom in element.findall("geom"):
            self._geom(body, geom)
        if any("mesh" in self._attributes(geom) for geom in element.findall("geom")):
            self.skipped[MESHES].append(name)
        if _number(element.attrib, "gravcomp", 0.0, label):
            self.skipped[GRAVCOMP].append(name)
        self._sites(element, name)
        for child in element.findall("body"):
            self._body(child, name)

    def _inertial(self, body: MjcfBody, element: ET.Element, label: str) -> None:
        frame = self._frame(element.attrib, f"{label} <inertial>")
        body.mass = _number(element.attrib, "mass", 0.0, label)
        if "fullinertia" in element.attrib:
            xx, yy, zz, xy, xz, yz = _numbers(element.get("fullinertia", ""), 6, label)
            inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            inertia = np.diag(_numbers(element.get("diaginertia", "0 0 0"), 3, label))
            if "diaginertia" not in element.attrib:
                self.model.notes.append(f"no moment of inertia is stated, which MuJoCo refuses: {body.name}")
        body.com = frame[:3, 3]
        body.inertia = frame[:3, :3] @ inertia @ frame[:3, :3].T

    def _joint(self, element: ET.Element, body: str, number: int) -> MjcfJoint:
        given = self._attributes(element)
        kind = "free" if element.tag == "freejoint" else given.get("type", "hinge")
        name = given.get("name") or (f"{body}_joint" + (str(number + 1) if number else ""))
        label = f'<joint name="{name}">'
        self._softness(given, name)
        if "springdamper" in given:
            raise NeedsCompilerError(f"springdamper of {label}")
        stiffness = joint_stiffness(given.get("stiffness", "0").split(), kind, label)
        turn = np.pi / 180.0 if self.degrees and kind == "hinge" else 1.0
        limits = _span(given, "", label)
        if limits and kind == "ball":
            self.skipped[BALL_RANGE].append(name)
        single = kind in ("hinge", "slide")
        axis = _numbers(given.get("axis", "0 0 1"), 3, label)
        return MjcfJoint(
            name=name,
            kind=kind,
            pos=_numbers(given.get("pos", "0 0 0"), 3, label),
            axis=_direction(axis, label),
            limits=(turn * limits[0], turn * limits[1]) if limits and single else None,
            effort=(_span(given, "actuatorfrc", label) if single else None) or NO_LIMIT,
            damping=linear(given.get("damping", "0").split(), "damping", label),
            friction=_number(given, "frictionloss", 0.0, label),
            armature=_number(given, "armature", 0.0, label),
            reference=turn * _number(given, "ref", 0.0, label),
            stiffness=stiffness,
            rest=turn * _number(given, "springref", 0.0, label),
        )

    def _softness(self, given: Mapping[str, str], name: str) -> None:
        if any(key.startswith(tuple(STOCK)) for key in given):
            self.skipped[SOFTNESS].append(name)

    def _geom(self, body: MjcfBody, element: ET.Element) -> None:
        given = self._attributes(element)
        kind = given.get("type", "sphere")
        label = f"<geom> of {body.name}"
        if kind in SIZES and "size" in given and "fromto" not in given:
            size = [float(v) for v in _numbers(given["size"], len(given["size"].split()), label)]
            if len(size) < SIZES[kind]:
                raise DescriptionError(label, f"a {kind} of {len(size)} number(s)", f"write {SIZES[kind]} as its size")
            colour = _numbers(given["rgba"], 4, f"{label} rgba") if "rgba" in given else GREY
            body.visuals.append(visual_of(body.name, kind, size, self._frame(given, label), colour))
        elif "mesh" not in given:
            self.skipped[SHAPES].append(body.name)
        if any(given.get(key, "1") != "0" for key in ("contype", "conaffinity")):
            self.skipped[CONTACTS].append(body.name)

    def _sites(self, element: ET.Element, body: str) -> None:
        for site in element.findall("site"):
            name = site.get("name")
            if name in self.sites:
                raise DescriptionError(f'<site name="{name}">', "the name is used twice", "give each site its own name")
            if name:
                self.sites[name] = (body, self._frame(self._attributes(site), f"<site> of {body}"))

    def _equality(self, element: ET.Element) -> None:
        given = self._attributes(element)
        name = given.get("name") or f"equality{len(self.model.closures) + len(self.model.gears) + 1}"
        label = f'<{element.tag} name="{name}">'
        if given.get("active") == "false":
            self.model.notes.append(f"not read: the equality {name}, which is not active")
            return
        if mocap := [given[key] for key in ("body1", "body2") if given.get(key) in self.skipped[MOCAP]]:
            self.model.tell("the equality of a mocap body,", [f"{name} (of {mocap[0]})"])
            return
        self._softness(given, name)
        if element.tag == "tendon" or (element.tag == "joint" and "joint2" not in given):
            raise NeedsCompilerError(label)
        if element.tag == "joint":
            text = given.get("polycoef", "0 1 0 0 0")
            c = [*(float(v) for v in _numbers(text, len(text.split()), label)), 0.0, 0.0]
            if any(c[2:]):
                raise NeedsCompilerError(label)
            if "joint1" not in given:
                raise DescriptionError(label, "attribute joint1 is missing", "name the joint that follows")
            self.model.gears.append(MjcfGear(given["joint1"], given["joint2"], c[0], c[1]))
            return
        if element.tag not in ("connect", "weld"):
            remedy = or_near(element.tag, ("connect", "weld"), "close loops with connect or weld")
            raise DescriptionError(label, "this constraint is not supported", remedy)
        if "site1" in given:
            ends = []
            for key in ("site1", "site2"):
                if given.get(key) not in self.sites:
                    raise DescriptionError(label, f"{key} {given.get(key)!r} is not a site", "name an existing <site>")
                ends.append(self.sites[given[key]])
            (first, first_frame), (second, second_frame) = ends
        else:
            first, second = given.get("body1", ""), given.get("body2", WORLD)
            for key, body in (("body1", first), ("body2", second)):
                if body not in self.drawn:
                    raise DescriptionError(label, f"{key} {body!r} is not a body", "name an existing <body>")
            # the second body's frame follows from the drawing, in which the constraint holds
            between = inverse_transform(self.drawn[second]) @ self.drawn[first]
            if element.tag == "connect":
                first_frame = transform(_numbers(given.get("anchor", "0 0 0"), 3, label), np.eye(3))
                second_frame = between @ first_frame
            else:
                relative = _numbers(given.get("relpose", "0 1 0 0 0 0 0"), 7, label)
                stated = np.linalg.norm(relative[3:]) > 0.0
                first_frame = transform_from_wxyz(relative[:3], relative[3:]) if stated else inverse_transform(between)
                second_frame = np.eye(4)
        self.model.closures.append(MjcfClosure(name, element.tag, first, second, first_frame, second_frame))

    def _tendon(self, element: ET.Element) -> None:
        """A tendon that is a spring between two sites; others need MuJoCo's compiler, which says what they come to."""
        given = self._attributes(element)
        name = given.get("name") or f"tendon{len(self.model.springs) + 1}"
        label = f'<{element.tag} name="{name}">'
        length = given.get("springlength", "-1").split()
        if element.tag != "spatial" or length[:1] == ["-1"]:
            raise NeedsCompilerError(label)
        ends = [(site.tag, self.sites.get(site.get("site", ""))) for site in element]
        if len(ends) != 2 or any(tag != "site" or at is None for tag, at in ends):
            raise DescriptionError(
                label, "it is not a spring between two sites", "write a <spatial> of two existing sites"
            )
        check_spring(given, length, label)
        (first, one), (second, other) = (at for _, at in ends if at is not None)
        k, rest = _number(given, "stiffness", 0.0, label), float(_numbers(length[0], 1, label)[0])
        self.model.springs.append(Spring(name, k, first, one[:3, 3], second, other[:3, 3], rest))

    def _actuator(self, element: ET.Element) -> None:
        given = self._attributes(element)
        label = f'<{element.tag} name="{given.get("name", "")}">'
        if element.tag not in INTERFACES or "tendon" in given:
            raise NeedsCompilerError(label)
        if "joint" not in given:
            raise DescriptionError(label, "only motors of joints are supported", "use <motor joint=...>")
        if given.keys() & set(OF_GENERAL) or self.defaults.keys() & set(ACTUATORS) - {element.tag}:
            raise NeedsCompilerError(label)
        interface, gear = INTERFACES[element.tag], _number(given, "gear", 1.0, label)
        self.skipped[GAINS] += [given.get("name") or given["joint"]] * (interface != "effort")
        spans = [_span(given, "force", label), _span(given, "ctrl", label) if interface == "effort" else None]
        doubt = "" if interface == "effort" else servo(interface)
        levers = {given["joint"]: (gear, 1.0)}
        self.model.actuators.append(MjcfActuator(given["joint"], interface, force_of(spans), levers, doubt))


def _refuse_unknown(root: ET.Element) -> None:
    parents = [(root, SECTIONS), *((body, IN_BODY) for tag in ("worldbody", "body") for body in root.iter(tag))]
    for parent, known in parents:
        for child in parent:
            if child.tag not in known:
                label = f"<{parent.tag}> <{child.tag}>"
                raise DescriptionError(label, "there is no such element", or_near(str(child.tag), known, "remove it"))
    for element in (one for tag in ("connect", "weld", "joint", "tendon") for one in root.findall(f"equality/{tag}")):
        for name in element.attrib:
            if name not in OF_EQUALITY:
                label = f'<{element.tag} name="{element.get("name", "")}">'
                problem = f"there is no attribute {name!r}"
                raise DescriptionError(label, problem, or_near(name, OF_EQUALITY, "remove it"))


def _span(given: Mapping[str, str], what: str, label: str) -> tuple[float, float] | None:
    if f"{what}range" not in given or given.get(f"{what}limited", "auto") == "false":
        return None
    low, high = map(float, _numbers(given[f"{what}range"], 2, label))
    return (low, high) if low < high else None


def force_of(spans: Iterable[tuple[float, float] | None]) -> tuple[float, float]:
    """Range of the force of an actuator, which stays in each of the spans."""
    low, high = NO_LIMIT
    for span in (one for one in spans if one is not None):
        low, high = (float(np.clip(end, *span)) for end in (low, high))
    return low, high


def effort_of(drives: Sequence[MjcfActuator], ranges: Mapping[str, tuple[float, float]], way: float) -> float:
    """Effort at the joint of drives that all push one way, 1 or -1, cut at tendons and at joints as MuJoCo does it."""
    forces, totals, efforts = list[float](), dict[int, float](), dict[str, float]()
    for one in drives:
        force = one.force[sum(lever * rate for lever, rate in one.levers.values()) * way > 0.0]
        forces.append(force if np.isfinite(force) else float(np.clip(force, *one.tendon[1])))
        totals[one.tendon[0]] = totals.get(one.tendon[0], 0.0) + forces[-1]
    for one, force in zip(drives, forces, strict=True):
        total = totals[one.tendon[0]]
        share = float(np.clip(total, *one.tendon[1])) / total if total and np.isfinite(total) else 1.0
        for name, (lever, _) in one.levers.items():
            efforts[name] = efforts.get(name, 0.0) + (lever * share * force if lever else 0.0)
    rates = {name: rate for one in drives for name, (_, rate) in one.levers.items()}
    return sum(rates[name] * float(np.clip(effort, *ranges.get(name, NO_LIMIT))) for name, effort in efforts.items())


def servo(interface: str) -> str:
    """Why the effort of a servo has no bounds."""
    return f"a {interface} servo without forcerange"


def visual_of(body: str, kind: str, size: Sequence[float], frame: Array, rgba: Iterable[float]) -> Visual:
    """A geom as a visual; MuJoCo's `size` has radii and half lengths, and a capsule is drawn as a cylinder."""
    shape, extent = {
        "box": ("box", 2.0 * np.array(size[:3])),
        "sphere": ("sphere", np.array(size[:1])),
    }.get(kind) or ("cylinder", np.array([size[0], 2.0 * size[1]]))
    red, green, blue, opacity = map(float, rgba)
    return Visual(body, frame, shape, extent, (red, green, blue, opacity))


def joint_stiffness(values: Sequence[str], kind: str, label: str) -> float:
    """Stiffness of a joint's spring; refused where it is none of ours."""
    number = linear(values, "stiffness", label)
    if number and kind not in ("hinge", "slide"):
        raise DescriptionError(label, f"a spring of a {kind} joint is not modelled", "remove stiffness")
    return number


def linear(values: Sequence[str], what: str, label: str) -> float:
    """A stiffness or a damping; refused where it is a polynomial."""
    numbers = _numbers(" ".join(values), max(1, len(values)), f"{label} {what}")
    if numbers[1:].any():
        depends = (
            "stiffness of its spring depends on its length" if what == "stiffness" else "damping depends on its speed"
        )
        raise DescriptionError(label, f"the {depends}", f"write one number, {what}")
    return float(numbers[0])


def check_spring(given: Mapping[str, str], length: Sequence[str], label: str) -> None:
    """Refuse a tendon that is more than a linear spring."""
    for name, why in (("damping", "dampers"), ("frictionloss", "friction of tendons"), ("armature", "masses")):
        if any(float(v) for v in given.get(name, "0").split()):
            raise DescriptionError(label, f"{why} ({name}) are not modelled", f"remove {name}")
    if len(set(length)) > 1:
        raise DescriptionError(
            label, f'its spring has a dead band, springlength="{" ".join(length)}"', "write one length"
        )


def _number(given: Mapping[str, str], name: str, default: float, label: str) -> float:
    if name not in given:
        return default
    return float(_numbers(" ".join(given[name].split()[:1]), 1, f"{label} {name}")[0])


def _direction(vector: Array, label: str) -> Array:
    length = float(np.linalg.norm(vector))
    if not 0.0 < length < np.inf:
        raise DescriptionError(label, "a direction has length zero", "write a vector with a length")
    return vector / length


def _numbers(text: str, count: int, label: str) -> Array:
    return numbers_of(text, label, "", count, LARGEST)
