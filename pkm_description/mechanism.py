# SPDX-License-Identifier: Apache-2.0
"""The description of a parallel robot as plain, immutable data: the URDF+ file, checked and indexed.

Frames follow REP 103. Lengths in m, angles in rad, masses in kg, inertias in kg m^2, efforts in N or N m.
A transform (4, 4) is homogeneous and maps coordinates of the named frame into its parent's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pkm_runtime.describable import Describable, alike, counted, listed, measure

Array = NDArray[np.float64]


class JointType(Enum):
    """Types of a tree joint, as URDF names them."""

    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    PRISMATIC = "prismatic"
    FIXED = "fixed"
    FLOATING = "floating"
    PLANAR = "planar"

    @property
    def dof(self) -> int:
        """Number of degrees of freedom of the joint."""
        return {"fixed": 0, "floating": 6, "planar": 3}.get(self.value, 1)


class LoopType(Enum):
    """Types of a loop closure (a cut joint), as URDF+ names them."""

    SPHERICAL = "spherical"
    UNIVERSAL = "universal"
    REVOLUTE = "revolute"
    CYLINDRICAL = "cylindrical"
    PRISMATIC = "prismatic"
    PLANAR = "planar"
    FIXED = "fixed"

    @property
    def dof(self) -> int:
        """Number of degrees of freedom of the cut joint."""
        return {"spherical": 3, "universal": 2, "revolute": 1, "cylindrical": 2, "prismatic": 1, "planar": 3}.get(
            self.value, 0
        )


def frozen(values: object) -> Array:
    """`values` as a read-only float array."""
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass, centre of mass (3,) and rotational inertia (3, 3) about it, both in the link frame."""

    mass: float = 0.0
    com: Array = field(default_factory=lambda: frozen(np.zeros(3)))
    inertia: Array = field(default_factory=lambda: frozen(np.zeros((3, 3))))

    @property
    def massless(self) -> bool:
        """Whether the link has neither mass nor inertia."""
        return self.mass == 0.0 and not self.inertia.any()

    @property
    def ten(self) -> Array:
        """Mass, first moments (3,) and inertia xx xy xz yy yz zz about the frame's origin (10,): what adds up."""
        com = self.com
        about_origin = self.inertia + self.mass * (com @ com * np.eye(3) - np.outer(com, com))
        return np.concatenate([[self.mass], self.mass * com, about_origin[np.triu_indices(3)]])

    @staticmethod
    def of_ten(ten: Array) -> Inertial:
        """The body of ten parameters (10,), as in `ten`; its centre of mass is the origin where it has no mass."""
        mass = float(ten[0])
        com = np.asarray(ten[1:4]) / mass if mass != 0.0 else np.zeros(3)
        shift = mass * (com @ com * np.eye(3) - np.outer(com, com))
        return Inertial(mass, frozen(com), frozen(symmetric_of(ten[4:10]) - shift))

    def in_frame(self, frame: Array) -> Inertial:
        """The same body in the frame in which its own frame is `frame` (4, 4)."""
        R = frame[:3, :3]
        return Inertial(self.mass, R @ self.com + frame[:3, 3], R @ self.inertia @ R.T)


def symmetric_of(six: Array) -> Array:
    """Matrix (3, 3) of xx xy xz yy yz zz."""
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3)] = six
    return matrix + np.triu(matrix, 1).T


@dataclass(frozen=True, eq=False)
class Section:
    """Young's and shear modulus [Pa], area [m^2], second moments about y and z, torsion constant `J` [m^4].

    `Ay` and `Az` [m^2] are the areas by which shear along the section's y and z gives way: infinite if it does not.
    """

    E: float
    G: float
    A: float
    Iy: float  # resists bending across the plane of the axis and the section's y
    Iz: float  # resists bending in that plane
    J: float
    Ay: float = np.inf
    Az: float = np.inf


@dataclass(frozen=True, eq=False)
class Beam:
    """A straight beam of a link: points and directions in the link's frame.

    Without `ends` (2, 3) it lies between the link's two joints. Without a `section` the link's visuals give it, in the
    `material` of that name, or the link is rigid without a material too. `y` (3,) is a direction of the section's y.
    """

    section: Section | None
    material: str = ""
    ends: Array | None = None
    y: Array | None = None


@dataclass(frozen=True)
class Bearing:
    """Stiffness of what a joint holds: forces `radial`, `axial` [N/m], moments `tilt`, `torsion` [N m/rad].

    Across the joint's axis and along or about it; infinite where the description says nothing.
    """

    radial: float = np.inf
    axial: float = np.inf
    tilt: float = np.inf
    torsion: float = np.inf


RIGID = Bearing()


@dataclass(frozen=True, eq=False)
class Link:
    """A body: rigid in kinematics and dynamics; `beams` say how it bends."""

    name: str
    inertial: Inertial
    beams: tuple[Beam, ...] = ()


@dataclass(frozen=True, eq=False)
class Coupling:
    """Positions of joints tied by an equation: `offset`, and c1 q + c2 q^2 + ... of each joint, add up to zero.

    `terms` are (joint, (c1, c2, ...)). Two joints tied by a straight line are a `Mimic`. Trees alone have couplings.
    """

    name: str
    terms: tuple[tuple[str, tuple[float, ...]], ...]
    offset: float = 0.0

    def at(self, position: Callable[[str], Any], unit: Callable[[str], float]) -> tuple[Any, dict[str, Any]]:
        """What is open, and its derivative by each joint's position over its `unit` [m or rad], of order one."""
        weight = 1.0 / max(max(map(abs, numbers)) * unit(name) for name, numbers in self.terms)
        open_, slopes = self.offset, {}
        for name, numbers in self.terms:
            q, value, slope = position(name), 0.0, 0.0
            for power in range(len(numbers), 0, -1):
                value = (value + numbers[power - 1]) * q
                slope = slope * q + power * numbers[power - 1]
            open_ = open_ + value
            slopes[name] = slope * (weight * unit(name))
        return open_ * weight, slopes


@dataclass(frozen=True, eq=False)
class Limits:
    """Range of a joint; infinite where the description sets none."""

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf


@dataclass(frozen=True, eq=False)
class Cable:
    """What a winch pulls with: its `stiffness` E A [N], and its `mass` [kg/m]."""

    stiffness: float
    mass: float = 0.0


@dataclass(frozen=True, eq=False)
class Drive:
    """Drive of an actuated joint.

    `gear_ratio` is motor speed over joint speed; `rotor_inertia` [kg m^2, or kg for a linear motor] is that before the
    gear, so the joint feels `armature = gear_ratio**2 * rotor_inertia`. Of a calibrated machine, the joint moves
    `gear_correction` times as far as by the ratio of its drawing, which the machine's file has. `effort_range` [N m or
    N] bounds the effort besides the joint's limit: of one sign for a cable, which pulls only. `stiffness` [N m/rad or
    N/m] is that of motor, gear and position loop, felt at the joint. A joint with a `cable` is the line from the joint
    before it to the one after it.
    """

    command_interfaces: tuple[str, ...]
    state_interfaces: tuple[str, ...] = ("position", "velocity")
    gear_ratio: float = 1.0
    gear_correction: float = 1.0
    rotor_inertia: float = 0.0
    initial_value: float | None = None
    effort_range: tuple[float, float] = (-np.inf, np.inf)
    stiffness: float = np.inf
    cable: Cable | None = None

    @property
    def armature(self) -> float:
        """Rotor inertia felt at the joint."""
        return self.gear_ratio**2 * self.rotor_inertia


@dataclass(frozen=True, eq=False)
class Mimic:
    """A geared joint: its position is `multiplier * position(joint) + offset`."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """A tree joint: `origin` (4, 4) is the child's frame in the parent at zero; `axis` (3,) a unit vector in it."""

    name: str
    type: JointType
    parent: str
    child: str
    origin: Array
    axis: Array
    limits: Limits = field(default_factory=Limits)
    viscous_friction: float = 0.0  # N m s/rad or N s/m
    coulomb_friction: float = 0.0  # N m or N
    drive: Drive | None = None
    mimic: Mimic | None = None
    bearing: Bearing = RIGID
    spring_stiffness: float = 0.0  # N m/rad or N/m, of a spring that pulls the joint to `spring_reference` [rad or m]
    spring_reference: float = 0.0
    other_armature: float = 0.0  # kg m^2 or kg, of a joint without a drive: for other tools, in no dynamics here

    @property
    def actuated(self) -> bool:
        """Whether the joint has a drive, that is a command interface."""
        return self.drive is not None

    @property
    def unit(self) -> str:
        """Unit of the position of a joint with one degree of freedom."""
        return "m" if self.type is JointType.PRISMATIC else "rad"

    @property
    def effort_unit(self) -> str:
        """Unit of the effort of a joint with one degree of freedom."""
        return "N" if self.type is JointType.PRISMATIC else "N m"

    def in_words(self) -> str:
        """Type and limits with units, as for `print`."""
        limits = self.limits
        words = [self.type.value]
        if np.isfinite(limits.lower) or np.isfinite(limits.upper):
            words.append(f"{measure(limits.lower)} to {measure(limits.upper)} {self.unit}")
        else:
            words.append(f"no end [{self.unit}]")
        most = [
            f"{value:.4g} {unit}"
            for value, unit in ((limits.velocity, f"{self.unit}/s"), (limits.effort, self.effort_unit))
            if np.isfinite(value)
        ]
        return ", ".join(words + ([f"at most {' and '.join(most)}"] if most else []))


def is_built(chain: Sequence[Joint], links: Sequence[Link]) -> bool:
    """Whether a platform's chain is a part of the robot: its links have masses, or turning joints efforts."""
    between = {joint.child for joint in chain[:-1]}
    acts = any(joint.viscous_friction or joint.coulomb_friction or joint.spring_stiffness for joint in chain)
    turning = all(joint.type is not JointType.PRISMATIC and joint.type.dof <= 1 for joint in chain)
    return (acts and turning) or any(link.name in between and not link.inertial.massless for link in links)


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop closure: the cut joint between two links of the tree.

    `predecessor_frame` and `successor_frame` (4, 4) place the loop frames in their links. `axis` (3,) is a unit vector
    in the predecessor's loop frame (revolute, cylindrical and prismatic: the joint axis; planar: the plane's normal;
    universal: its first axis), `axis2` (3,) one in the successor's loop frame: the second axis of a universal joint,
    and for the other types the direction that coincides with `axis` when the loop is closed.
    """

    name: str
    type: LoopType
    predecessor: str
    successor: str
    predecessor_frame: Array
    successor_frame: Array
    axis: Array
    axis2: Array
    bearing: Bearing = RIGID


@dataclass(frozen=True, eq=False)
class Spring:
    """A straight spring between points (3,) of two links, each in its link's frame [m].

    It pulls its ends together with `preload + stiffness (length - rest_length)` [N], and pushes where that is negative.
    With neither rest length nor preload it is a zero-free-length spring, whose force is proportional to its length.
    """

    name: str
    stiffness: float
    from_link: str
    from_point: Array
    to_link: str
    to_point: Array
    rest_length: float = 0.0
    preload: float = 0.0


@dataclass(frozen=True)
class Limb:
    """A connected part between base and platform: its links, tree joints and loops, those at its ends included."""

    name: str
    links: tuple[str, ...]
    joints: tuple[str, ...]
    loops: tuple[str, ...]
    actuated: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Mobility:
    """Degrees of freedom of the closed mechanism at a generic configuration near home, counted numerically.

    `platform` counts those of the platform, `motion` is their kind at home (`"3T1R"`: three translations, one
    rotation), `total` counts the whole mechanism's, `idle` those without effect on platform and actuators (a rod
    spinning between two spherical joints). `gruebler` is the Chebychev-Gruebler-Kutzbach count, a virtual platform
    chain taken as a free body; `redundant_constraints` are repeated loop equations (0: not overconstrained), `left_out`
    the platform's degrees of freedom by the loops alone beyond its task coordinates (a body on the tip of a planar
    five-bar turns about its pin). `singular_home`: the number at home differs from that nearby. `uncontrolled` counts
    the platform's degrees of freedom in general position with every actuator held: 0 but for robots that are singular
    everywhere, which must say so.
    """

    platform: int
    motion: str
    total: int
    idle: int
    gruebler: int
    redundant_constraints: int
    left_out: int
    actuators: int
    singular_home: bool
    uncontrolled: int = 0

    @property
    def kinematic_redundancy(self) -> int:
        """Degrees of freedom neither idle nor the platform's: as many joints are coordinates beside its pose."""
        return self.total - self.idle - self.platform

    @property
    def redundant_actuators(self) -> int:
        """Actuators beyond the degrees of freedom of platform and redundant joints."""
        return max(0, self.actuators - self.platform - self.kinematic_redundancy)


class Described(Protocol):
    """What a robot with one platform and a tree with many have in common."""

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints, in the order of the file."""

    @property
    def home_joints(self) -> Array:
        """Positions (n,) of their degrees of freedom at home [m, rad]."""

    @property
    def urdf(self) -> str:
        """The URDF+ text."""

    @property
    def source(self) -> str:
        """Where the text came from."""


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Describable):
    """A parallel robot as described. Built by `load_mechanism`, never changed.

    `joints` are in topological order. `platform_chain` names the joints from base to platform where these are the task
    coordinates, and is empty where the platform hangs on a limb alone. With masses it is a limb as well. `limbs`
    are the connected parts without base and platform and what is rigidly fixed to these. The bodies of an articulated
    platform beside `platform_link`, with their joints and loops, are `articulated_platform` and no limb. `home_joints`
    are coordinates that close every loop with the platform at `home`: one number [m or rad] per degree of freedom of
    the joints, in their order (`joint_geometry.py`). `redundant_joints` are degrees of freedom, by name, whose
    positions say with the platform's pose how the robot stands, where the pose alone does not (kinematic redundancy);
    `redundant_follow` is how far each moves with the platform's origin where nobody says otherwise, base axes.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"coordinates_in_words", "parent_joint"})
    _elsewhere: ClassVar[dict[str, str]] = {
        "dof n_dof freedoms": "mobility.platform is their number, mobility.motion their kind",
        "limits joint_limits": "joint_named[name].limits, name by name of actuated_joints",
        "mass": "each of links has its inertial.mass",
        "joint_names": "moving_joints",
        "inverse forward ik fk kinematics": "Kinematics(mechanism) of pkm_kinematics solves it",
        "dynamics": "Dynamics(mechanism) of pkm_dynamics",
    }

    name: str
    base_link: str
    platform_link: str
    gravity: Array  # (3,) m/s^2, base frame
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...]
    platform_chain: tuple[str, ...]
    limbs: tuple[Limb, ...]
    articulated_platform: Limb | None
    actuated_joints: tuple[str, ...]  # in the order of the <ros2_control> block
    home: Array  # (4, 4) platform in base frame: the description's, else found by closing the loops
    home_joints: Array  # (n,) positions of the joints' degrees of freedom at home
    mobility: Mobility
    urdf: str  # the expanded URDF+ text, as published on /robot_description
    source: str = ""  # where the text came from, for messages
    springs: tuple[Spring, ...] = ()  # between links; those of joints are the joints'
    redundant_joints: tuple[str, ...] = ()
    redundant_follow: Array = field(default_factory=lambda: frozen(np.zeros((0, 3))))  # (r, 3) m or rad per m

    def _summary(self) -> str:
        return (
            f"{self.name}: {counted(self.mobility.platform, 'degree of freedom')} ({self.mobility.motion}), "
            f"{counted(len(self.limbs), 'limb')}, {counted(len(self.actuated_joints), 'actuated joint')}"
        )

    def _details(self) -> list[str]:
        mass = sum(link.inertial.mass for link in self.links)
        lines = [
            f"{self.platform_link} on {self.base_link}: {counted(len(self.links), 'link')}, "
            f"{counted(len(self.moving_joints), 'moving joint')}, {counted(len(self.loops), 'loop')}, {mass:.4g} kg",
            f"limbs: {listed(limb.name for limb in self.limbs)}",
        ]
        if self.springs:
            lines.append(f"springs: {listed(spring.name for spring in self.springs)}")
        if self.articulated_platform is not None:
            lines.append(f"articulated platform: {listed(self.articulated_platform.joints)}")
        actuated = {name: self.joint_named[name].in_words() for name in self.actuated_joints}
        lines += ["actuated joints", *(f"  {line}" for line in alike(actuated))]
        lines.append(f"task coordinates: {self.coordinates_in_words()}")
        return lines

    @cached_property
    def virtual_chain(self) -> tuple[str, ...]:
        """The joints of the platform's chain where it only names coordinates: no bodies of the robot."""
        built = is_built([self.joint_named[name] for name in self.platform_chain], self.links)
        return () if built else self.platform_chain

    @property
    def unbuilt(self) -> tuple[str, ...]:
        """Task coordinates that are no body's; where they hold the platform they are built, as an ankle's are."""
        return () if self.mobility.left_out else self.virtual_chain

    def coordinates_in_words(self) -> str:
        """The task coordinates with their units, or their replacement."""
        chain = [joint for name in self.platform_chain if (joint := self.joint_named[name]).type.dof]
        words = listed(f"{joint.name} [{joint.unit}]" for joint in chain) or "none, a pose has x y z qx qy qz qw"
        return f"{words}; beside them {listed(self.redundant_joints)}" if self.redundant_joints else words

    @cached_property
    def link_named(self) -> dict[str, Link]:
        """Links by name."""
        return {link.name: link for link in self.links}

    @cached_property
    def joint_named(self) -> dict[str, Joint]:
        """Tree joints by name."""
        return {joint.name: joint for joint in self.joints}

    @cached_property  # infinite without limit; by default minus and plus the limit
    def effort_range(self) -> tuple[Array, Array]:
        """Least and largest efforts of the actuated joints, both (n_actuated,) [N m or N]; of one sign for a cable."""
        joints = [self.joint_named[name] for name in self.actuated_joints]
        limits = np.array([joint.limits.effort for joint in joints])
        ranges = np.array([(-np.inf, np.inf) if joint.drive is None else joint.drive.effort_range for joint in joints])
        found = np.maximum(ranges[:, 0], -limits), np.minimum(ranges[:, 1], limits)
        for one in found:
            one.setflags(write=False)
        return found

    @property
    def largest_effort(self) -> Array:
        """Efforts (n_actuated,) [N m or N] that drives can make both ways; of cables, the largest one way."""
        least, most = self.effort_range
        both = np.minimum(-least, most)
        return np.where(both > 0.0, both, np.maximum(-least, most))

    @cached_property
    def one_way_actuators(self) -> NDArray[np.bool_]:
        """Mask (n_actuated,) of the actuated joints that cannot be both pushed and pulled, as by a winch."""
        least, most = self.effort_range
        return ((least >= 0.0) & (most > 0.0)) | ((most <= 0.0) & (least < 0.0))

    @cached_property
    def loop_named(self) -> dict[str, Loop]:
        """Loop closures by name."""
        return {loop.name: loop for loop in self.loops}

    @cached_property
    def parent_joint(self) -> dict[str, Joint]:
        """Tree joint that carries each link (the base link has none)."""
        return {joint.child: joint for joint in self.joints}

    @cached_property
    def moving_joints(self) -> tuple[str, ...]:
        """Names of all tree joints that are not fixed, in topological order."""
        return tuple(j.name for j in self.joints if j.type is not JointType.FIXED)
