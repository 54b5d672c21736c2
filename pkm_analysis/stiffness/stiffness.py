# SPDX-License-Identifier: Apache-2.0
"""Stiffness and compliance of a robot's platform at a pose, its sag, and the share of every part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.plottable import Plottable, Table
from pkm_analysis.stiffness.catenary import Catenary
from pkm_analysis.stiffness.elastic_model import (
    FREE,
    RIGID,
    SLIDE,
    ElasticModel,
    JointBetween,
    Mass,
    SpringBetween,
    Structure,
)
from pkm_analysis.stiffness.elastic_solution import ElasticSystem, Response
from pkm_analysis.stiffness.initial_stress import Buckling, Loaded, loaded
from pkm_analysis.stiffness.link_beams import DiffersError
from pkm_description.mechanism import Array, Inertial
from pkm_description.rotations import skew, transform
from pkm_dynamics import Distribution
from pkm_kinematics import Configuration, Kinematics, Status
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.describable import counted, listed, vector

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import AnalysedRobot


DIRECTIONS = ("x", "y", "z", "about x", "about y", "about z")
STIFF = 1e-12  # of the largest compliance, turns at the robot's length: what does not give way
TOGETHER = 512  # poses
SHOWN = 8  # parts in words
UNDER_LOAD = ("loaded_compliance", "loaded_stiffness", "buckling_factor", "buckling_shares", "hanging")  # keys in JSON


class Vibrations(NamedTuple):
    """Natural vibrations, the lowest first."""

    frequency: Array  # (k,) Hz
    shapes: Array  # (n_nodes, 6, k) displacements at the platform's origin, of kinetic energy one half per unit rate


@dataclass(frozen=True, eq=False, repr=False)
class Stiffness(Plottable):
    """How a robot at rest gives way at a pose; six-vectors are forces, then moments, or displacements, then turns.

    `payload` [kg] and `wrench` (6,) [N, N m] are at the platform's origin. `efforts` [N m or N] are those of the drives
    where cables have to be taut, NaN where none within their ranges hold the loads; else elasticity says them.
    """

    _picture: ClassVar[str] = "elastic_pictures.stiffness_picture"
    _internal: ClassVar[frozenset[str]] = frozenset({"system", "model"})

    robot: AnalysedRobot
    pose: Array
    payload: float
    wrench: Array
    system: ElasticSystem
    efforts: dict[str, float] | None = None

    @property
    def model(self) -> ElasticModel:
        """Nodes, beams, joints, drives."""
        return self.system.model

    @cached_property
    def _units(self) -> Response:
        return self.system.pushed(np.eye(6))

    @cached_property
    def _loads(self) -> Array:
        return self.system.weights(self.payload) + self.system.on_platform(self.wrench[:, None])

    @cached_property
    def under_load(self) -> Response:
        """Displacements and forces under weight, springs, payload and wrench."""
        return self.system.sprung(self._loads)

    @cached_property
    def _stressed(self) -> Response:
        """Of which the forces inside are those under all loads at this pose, cables taut."""
        if self.efforts is None:
            return self.system.held_here(self._loads)
        if np.isnan([*self.efforts.values()]).any():
            raise AnalysisError("tensions", "none within their ranges hold these loads", "take another pose or load")
        return self.system.under_efforts(self.efforts, self._loads)

    @property
    def tensions(self) -> dict[str, float]:
        """Of the lines, the cables that the description describes, by their joints [N]."""
        joints, efforts = self.model.joint_named, self.efforts or {}
        axes = {name: joints[name].frame[:, SLIDE] for name in self.model.lines}
        return {
            name: -float(np.sign(axes[name] @ line.along)) * efforts[name] for name, line in self.model.lines.items()
        }

    @cached_property
    def lines(self) -> dict[str, Catenary]:
        """How the lines hang, by their joints."""
        lines, gravity = self.model.lines, self.model.gravity
        return {name: lines[name].hung(tension, gravity)[0] for name, tension in self.tensions.items()}

    @cached_property
    def _loaded(self) -> Loaded:
        return loaded(self.system, self._stressed, self._loads, self.tensions)

    @cached_property
    def slack(self) -> str:
        """Why nothing is said of the stiffness under load: where cables are not taut, else nothing."""
        try:
            _ = self._loaded
        except AnalysisError as error:
            return str(error)
        return ""

    @property
    def loaded_compliance(self) -> Array:
        """`compliance` (6, 6) of the robot with the forces of all loads and springs inside: of what is added."""
        return self._loaded.compliance

    @cached_property
    def buckling(self) -> Buckling:
        """The factor of all loads, and of the forces of springs, at which the robot buckles, and how."""
        return self._loaded.buckling()

    @cached_property
    def compliance(self) -> Array:
        """Displacement (6, 6) of the platform at its origin per wrench there, base axes [m, rad per N, N m]."""
        found = self.system.displacement(self._units)
        return 0.5 * (found + found.T)

    @cached_property
    def _principal(self) -> tuple[Array, Array]:
        """Compliances in one unit, and the directions that have them; zero where nothing gives way."""
        return _principal(self.compliance, self.system.length)

    @cached_property
    def stiffness(self) -> Array:
        """Wrench (6, 6) per displacement: the inverse of `compliance` on the directions that give way.

        Along the others, `rigid`, it is infinite.
        """
        return _inverse(self._principal, self.system.length)

    @cached_property
    def loaded_stiffness(self) -> Array:
        """`stiffness` (6, 6) of the robot with the forces of weight, springs, payload and wrench inside.

        A moment keeps half to its axis and half to the platform; the loads' own directions stay.
        """
        return _inverse(_principal(self.loaded_compliance, self.system.length), self.system.length)

    @property
    def rigid(self) -> Array:
        """Wrenches (k, 6), of unit force or of unit moment at the robot's length, under which nothing gives way."""
        scale = scaling(self.system.length)
        values, vectors = self._principal
        return np.asarray((scale[:, None] * vectors[:, values == 0.0]).T)

    @cached_property
    def sag(self) -> Array:
        """Displacement (6,) of the platform under the robot's weight and springs, and the payload [m, rad]."""
        return np.asarray(self.system.displacement(self.system.sprung(self.system.weights(self.payload)))[:, 0])

    def with_rigid_drives(self) -> tuple[Array, Array]:
        """The sag (6,) under the robot's weight and springs, and `compliance` (6, 6), of the robot on rigid drives."""
        system = self.system.on_drives(RIGID)
        sag = system.displacement(system.sprung(system.weights()))[:, 0]
        return sag, system.displacement(system.pushed(np.eye(6)))

    @cached_property
    def deflection(self) -> Array:
        """Displacement (6,) of the platform under the wrench alone [m, rad]."""
        return self.compliance @ self.wrench

    @cached_property
    def shares(self) -> dict[tuple[str, str], Array]:
        """The part (6, 6) of `compliance` of each link, joint, drive and spring; they add up to it."""
        return self.system.by_part(self._units.forces)

    def share(self, direction: ArrayLike) -> dict[tuple[str, str], float]:
        """Shares of the parts in the compliance along a direction (6,) or (3,), largest first; zero if it is rigid."""
        d = np.asarray(direction, dtype=float)
        d = np.concatenate([d, np.zeros(6 - len(d))])
        scale = 1.0 / scaling(self.system.length)
        whole = float(d @ self.compliance @ d)
        soft = whole > STIFF * self._principal[0].max(initial=0.0) * float((scale * d) @ (scale * d))
        parts = {key: float(d @ part @ d) / whole if soft else 0.0 for key, part in self.shares.items()}
        return dict(sorted(parts.items(), key=lambda one: -one[1]))

    @cached_property
    def softest(self) -> tuple[Array, float]:
        """The direction (3,) in which a force moves the platform's origin farthest along it, and by how much [m/N]."""
        values, vectors = np.linalg.eigh(self.compliance[:3, :3])
        d = vectors[:, -1]
        return d * (1.0 if d[np.argmax(np.abs(d))] > 0.0 else -1.0), float(values[-1])

    @cached_property
    def vibrations(self) -> Vibrations:
        """Natural vibrations of the elastic robot: its links as masses on the nodes, drives held, without rotors.

        With springs, the forces of all loads count too, as they may be in balance; what tips over has frequency zero.
        """
        m, origin = self.model, self.model.origin
        payload = [Mass("payload", m.platform, self.payload, origin, np.zeros((3, 3)))] if self.payload else []
        masses = [*m.masses, *payload]
        if not masses:
            return Vibrations(np.zeros(0), np.zeros((len(m.nodes), 6, 0)))
        loads = np.zeros((len(m.nodes), 6, 6 * len(masses)))
        shifts, roots = [], np.zeros((6 * len(masses), 6 * len(masses)))
        for k, one in enumerate(masses):
            at = slice(6 * k, 6 * k + 6)
            shift = np.eye(6)  # of a displacement at the platform's origin to the centre of mass
            shift[:3, 3:] = -skew(one.point - origin)
            loads[one.node, :, at] = shift.T
            values, vectors = np.linalg.eigh(one.inertia)
            roots[at, at][:3, :3] = np.sqrt(one.mass) * np.eye(3)
            roots[at, at][3:, 3:] = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
            shifts.append(shift)
        sprung = bool(m.springs) and not self.slack
        nodes = self._loaded.nodes(loads) if sprung else self.system.response(loads).nodes
        moved = np.concatenate([shift @ nodes[one.node] for shift, one in zip(shifts, masses, strict=True)])
        soft = roots @ (0.5 * (moved + moved.T)) @ roots
        values, vectors = np.linalg.eigh(soft)
        real = np.abs(values) > 1e-9 * np.abs(values).max(initial=0.0)  # the others are rigid, or rods that spin
        squares, vectors = 1.0 / values[real], vectors[:, real]
        order = np.argsort(squares)
        squares, vectors = squares[order], vectors[:, order]
        return Vibrations(np.sqrt(np.maximum(squares, 0.0)) / (2.0 * np.pi), nodes @ (roots @ vectors) * squares)

    def joint_wrench(self, name: str) -> Array:
        """Wrench (6,) [N, N m] that a joint transmits under the loads: of parent or predecessor, at its point.

        Elasticity determines it in an overconstrained robot, where balance alone does not.
        """
        joints = {joint.name: k for k, joint in enumerate(self.model.joints)}
        if name not in joints:
            raise AnalysisError(f"joint {name}", "the robot has none of that name", f"there are {listed(joints)}")
        free, determined = self.system.stresses
        if determined < free:
            problem = f"rigid parts leave {free - determined} of {counted(free, 'internal load')} open"
            raise AnalysisError(f"wrench of {name}", problem, "describe sections, bearings or drives")
        return self.system.transmitted(len(self.model.beams) + joints[name], self._stressed, self._loads)

    def _summary(self) -> str:
        direction, most = self.softest
        soft = f"{_per_um(1.0 / most)} along {vector(np.round(direction, 3))}" if most > 0.0 else "rigid"
        return f"{self.robot.name} at {vector(np.round(self.pose[:3], 6))} m: softest {soft}"

    def _details(self) -> list[str]:
        C = self.compliance
        lines = ["a force or moment alone in each direction, and what gives way most:"]
        for k, name in enumerate(DIRECTIONS):
            if not self._soft[k]:
                lines.append(f"  {name}: rigid")
                continue
            stiff = _per_um(1.0 / C[k, k]) if k < 3 else f"{1e-3 / C[k, k]:.4g} N m/mrad"
            parts = list(self.share(np.eye(6)[k]).items())[:3]
            largest = ", ".join(f"{kind} {part} {100.0 * value:.3g} %" for (kind, part), value in parts)
            lines.append(f"  {name}: {stiff} ({largest})")
        loads = "weight" + " and springs" * bool(self.model.springs)
        loads += f" and a payload of {self.payload:g} kg" * bool(self.payload)
        lines.append(f"sag under {loads}: {_moved(self.sag)}")
        frequencies = self.vibrations.frequency[:5]
        if len(frequencies):
            lowest = ", ".join(f"{value:.4g}" for value in frequencies)
            lines.append(f"lowest natural frequencies, drives held: {lowest} Hz")
        if self.wrench.any():
            lines.append(f"under {vector(self.wrench[:3])} N, {vector(self.wrench[3:])} N m: {_moved(self.deflection)}")
        lines += _words_under_load(self)
        model = self.model
        lines += [f"beams {source}: {links}" for source, links in _grouped(model.sources)]
        lines += [f"rigid, for {reason}: {links}" for reason, links in _grouped(model.rigid)]
        stiff_drives = [
            one.name for one in model.joints if one.driven is not None and np.isinf(one.stiffness[one.driven])
        ]
        if stiff_drives:
            lines.append(f"rigid drives, no stiffness is described: {listed(stiff_drives)}")
        if all(_bearing_rigid(joint) for joint in model.joints):
            lines.append("joints are rigid in all that they hold, no <bearing> is described")
        if model.springs:
            pulls = [f"{s.name} {float(s.force):.4g} {'N m' if s.axis[3:].any() else 'N'}" for s in model.springs]
            lines.append(f"springs pull with {listed(pulls)}")
        free, determined = self.system.stresses
        if free:
            how = "elasticity determines" if determined == free else f"of which elasticity determines {determined}"
            lines.append(f"overconstrained: {counted(free, 'internal load')}, {how}")
        if len(self.system.held):
            lines.append("what no limb holds is held by the platform's own branch")
        return lines

    @property
    def tables(self) -> list[Table]:
        """Compliance, stiffness, and the largest shares."""
        units = [["um", "N"], ["mrad", "N m"]]
        head = ["", *(f"{'F' if k < 3 else 'M'}{'xyz'[k % 3]} [{units[k // 3][1]}]" for k in range(6))]
        factor = np.array(3 * [1e6] + 3 * [1e3])
        rows = [
            [f"{'' if k < 3 else 'about '}{'xyz'[k % 3]} [{units[k // 3][0]}]", *(f"{v:.4g}" for v in factor[k] * row)]
            for k, row in enumerate(self.compliance)
        ]
        shares = [
            [f"{kind} {name}", *(f"{100.0 * v:.3g}" for v in self._of_diagonal(part))]
            for (kind, name), part in sorted(self.shares.items(), key=lambda one: -float(np.trace(one[1][:3, :3])))
        ]
        return [
            Table("Compliance: displacement of the platform per load", head, rows),
            Table("Shares of the parts in the diagonal of the compliance [%]", ["part", *DIRECTIONS], shares),
        ]

    @property
    def _soft(self) -> NDArray[np.bool_]:
        scale = scaling(self.system.length)
        return np.asarray(scale**2 * np.diag(self.compliance) > STIFF * self._principal[0].max(initial=0.0))

    def _of_diagonal(self, part: Array) -> Array:
        whole = np.diag(self.compliance)
        some = self._soft
        return np.where(some, np.diag(part) / np.where(some, whole, 1.0), 0.0)

    def to_dict(self) -> dict[str, Any]:
        """The numbers, for JSON: docs/stiffness.md says what each key is."""
        m = self.model
        return {
            "robot": self.robot.name,
            "origin": m.origin.tolist(),
            "platform": m.platform,
            **self._plain("pose", "stiffness", "compliance", "sag", "payload", "wrench", "deflection"),
            "rigid_directions": self.rigid.tolist(),
            **(dict.fromkeys(UNDER_LOAD) if self.slack else _numbers_under_load(self)),
            "frequencies": self.vibrations.frequency[:10].tolist(),
            "softest": {"direction": self.softest[0].tolist(), "compliance": self.softest[1]},
            "shares": [
                {"kind": kind, "part": name, "compliance": part.tolist(), "of": self._of_diagonal(part).tolist()}
                for (kind, name), part in self.shares.items()
            ],
            **structure_numbers(m),
            "held": [(row * self.system.scale).tolist() for row in self.system.held],
        }


def _principal(compliance: Array, length: float) -> tuple[Array, Array]:
    scale = scaling(length)
    values, vectors = np.linalg.eigh(scale[:, None] * compliance * scale)
    values[np.abs(values) < STIFF * np.abs(values).max(initial=0.0)] = 0.0
    return values, vectors


def _inverse(principal: tuple[Array, Array], length: float) -> Array:
    scale, (values, vectors) = scaling(length), principal
    soft = values != 0.0
    part = vectors[:, soft] / values[soft] @ vectors[:, soft].T
    return np.asarray(scale[:, None] * part * scale)


def _numbers_under_load(found: Stiffness) -> dict[str, Any]:
    shares = [{"kind": kind, "part": name, "of": value} for (kind, name), value in found.buckling.shares.items()]
    lines = [
        {"joint": name, "tension": found.tensions[name], "end_tensions": list(line.tensions)}
        | {"unstretched": line.length, "sag": line.sag}
        for name, line in found.lines.items()
    ]
    compliance, stiffness = found.loaded_compliance.tolist(), found.loaded_stiffness.tolist()
    return dict(zip(UNDER_LOAD, (compliance, stiffness, finite(found.buckling.factor), shares, lines), strict=True))


def _words_under_load(found: Stiffness) -> list[str]:
    if found.slack:
        return [f"nothing is said of its stiffness under these loads: {found.slack}"]
    factor, shares, _ = found.buckling
    lines, words = list(found.lines.values()), list[str]()
    if lines:
        low, high = min(found.tensions.values()), max(found.tensions.values())
        sag = 1e3 * max(one.sag for one in lines)
        words = [f"cables under {low:.4g} to {high:.4g} N sag up to {sag:.3g} mm"]
    soft, loaded_soft = (np.linalg.eigvalsh(C[:3, :3])[-1] for C in (found.compliance, found.loaded_compliance))
    if factor > 1.0 and loaded_soft > 0.0:
        left = 100.0 * soft / loaded_soft
        words.append(f"under these loads it has {left:.4g} % of its stiffness in the direction that is softest then")
    if not np.isfinite(factor):
        return [*words, "these loads never make it buckle"]
    parts = ", ".join(f"{kind} {part} {100.0 * value:.3g} %" for (kind, part), value in list(shares.items())[:3])
    return [*words, f"it buckles {'already ' * (factor <= 1.0)}at {factor:.4g} times these loads ({parts})"]


def _bearing_rigid(joint: JointBetween) -> bool:
    held = [s for k, s in enumerate(joint.stiffness) if k != joint.driven and s != FREE]
    return bool(np.isinf(held).all())


def _grouped(about: dict[str, str]) -> list[tuple[str, str]]:
    found: dict[str, list[str]] = {}
    for link, words in about.items():
        found.setdefault(words, []).append(link)
    return [(words, listed(links)) for words, links in found.items()]


def _per_um(stiffness: float) -> str:
    return f"{1e-6 * stiffness:.4g} N/um"


def _moved(displacement: Array) -> str:
    moved, turned = (
        np.where(np.abs(part) < 1e-6, 0.0, part) for part in (1e6 * displacement[:3], 1e3 * displacement[3:])
    )
    return f"{vector(np.round(moved, 4))} um, {vector(np.round(turned, 6))} mrad"


class Stiffnesses:
    """Stiffness of one robot at many poses.

    `drives` [N m/rad or N/m] is that of the drives of which the description says none; with None these are rigid.
    """

    def __init__(self, robot: AnalysedRobot, drives: float | None = None) -> None:
        if drives is not None and not 0.0 < drives < np.inf:
            raise AnalysisError(f"stiffness {drives} of the drives", "it is not valid", "give one greater than zero")
        self.robot = robot
        self.structure = Structure(robot.mechanism, drives)
        joints = [robot.mechanism.joint_named[name] for name in robot.kinematics.actuated_names]
        self.winches = np.array([one.drive is not None and one.drive.cable is not None for one in joints])
        self.pulling = robot.mechanism.one_way_actuators | self.winches

    def at(
        self,
        pose: ArrayLike | Configuration,
        payload: float = 0.0,
        wrench: ArrayLike | None = None,
        tension: float | None = None,
    ) -> Stiffness:
        """The stiffness at a pose (7,); `AnalysisError` where the robot does not reach it, or is singular.

        `payload` [kg] and `wrench` (6,) [N, N m] are at the platform's origin; `tension` [N] is the least one of
        cables, in place of the description's.
        """
        kinematics: Kinematics = self.robot.kinematics
        given = np.zeros(6) if wrench is None else np.asarray(wrench, dtype=float)
        if given.shape != (6,) or not np.isfinite(given).all():
            raise AnalysisError(f"wrench {given.tolist()}", "it is not six finite numbers", "give forces, then moments")
        if not 0.0 <= payload < np.inf:
            raise AnalysisError(f"payload {payload}", "it is not a mass", "give kg, zero or more")
        if tension is not None and not 0.0 < tension < np.inf:
            raise AnalysisError(f"tension {tension}", "it is not valid", "give N, more than zero")
        if tension is not None and not self.pulling.any():
            raise AnalysisError(f"tension {tension:g}", f"{self.robot.name} has no cables", "leave it out")
        if not isinstance(pose, Configuration):
            pose = kinematics.at_one(pose, mode=self.robot.mode)
        status = int(pose.status)
        if not closes(np.array(status)):
            problem = f"the robot has no configuration there: {Status(status).meaning}"
            raise AnalysisError("stiffness at this pose", problem, "take a pose that it reaches")
        place = np.asarray(pose.pose, dtype=float)
        system = self._system(pose)
        efforts = self._efforts(pose, payload, given, tension) if self.pulling.any() else None
        return Stiffness(self.robot, place, float(payload), given, system, efforts)

    def _system(self, at: Configuration) -> ElasticSystem:
        return ElasticSystem(self._model(at), at.subspace, self.robot.mechanism.mobility.left_out)

    def _model(self, at: Configuration) -> ElasticModel:
        place = np.asarray(at.pose, dtype=float)
        frames = transform(place[..., :3], Rotation.from_quat(place[..., 3:]).as_matrix())
        return self.structure.model(frames, at.by_name("joints"))

    def over(self, at: Configuration, of: Callable[[ElasticSystem], Array], *shape: int) -> Array:
        """What is asked of the structure at poses (n, 7), many at once; NaN where it is singular.

        `at` are configurations that there are; `of` returns an array (..., shape) of a structure at poses (...).
        """
        n = len(at.poses)
        found = np.empty((n, *shape))
        for group in self._alike(at, np.arange(n)) if n > TOGETHER else [np.arange(n)]:
            for rows in (group[k : k + TOGETHER] for k in range(0, len(group), TOGETHER)):
                found[rows] = self._together(at.rows(rows), of, *shape)
        return found

    def _alike(self, at: Configuration, rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        # groups of these poses, each of one structure
        try:
            self._model(at.rows(rows))
        except DiffersError as error:
            return [one for part in _divided(error, len(rows)) for one in self._alike(at, rows[part])]
        except AnalysisError:  # at one of them: that one is found alone
            pass
        return [rows]

    def _together(self, at: Configuration, of: Callable[[ElasticSystem], Array], *shape: int) -> Array:
        n = len(at.poses)
        try:
            return of(self._system(at)) if n > 1 else of(self._system(at.rows(np.array([0]), ())))[None]
        except (DiffersError, AnalysisError) as error:
            found = np.full((n, *shape), np.nan)
            for part in _divided(error, n) if n > 1 else ():
                found[part] = self._together(at.rows(part), of, *shape)
            return found

    def _efforts(self, at: Configuration, payload: float, wrench: Array, tension: float | None) -> dict[str, float]:
        """What the drives push with where some pull only, a least tension of these or that of the description."""
        least, most = self.robot.mechanism.effort_range
        pays_out = self.pulling & (least < 0.0)  # with a negative effort it pulls
        most = np.where(pays_out, np.minimum(most, -(tension or 0.0)), most)
        least = np.where(self.pulling & ~pays_out, np.maximum(least, tension or 0.0), least)
        if (least > most).any():
            name = self.robot.kinematics.actuated_names[int(np.argmax(least > most))]
            raise AnalysisError(f"tension {tension:g}", f"the drive of {name} does not pull so much", "give less")
        found = self.robot.dynamics.inverse(
            at, wrench=wrench, payload=Inertial(payload), distribution=Distribution(bounds=(least, most))
        )
        return dict(zip(self.robot.kinematics.actuated_names, found.effort.tolist(), strict=True))


def _divided(error: Exception, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which of n poses are apart in structure; halves of them where that is not known."""
    here = error.here if isinstance(error, DiffersError) and len(error.here) == n else np.arange(n) < n // 2
    return np.flatnonzero(here), np.flatnonzero(~here)


def structure_numbers(m: ElasticModel) -> dict[str, Any]:
    """Nodes, beams, joints, drives, cables, springs, masses and gravity of a structure at one pose."""
    driven = [(j, j.driven) for j in m.joints if j.driven is not None]
    return {
        "nodes": [{"link": n.link, "at": n.point.tolist()} for n in m.nodes],
        "beams": [
            {
                "link": b.piece.link,
                "nodes": list(b.joins),
                "from": b.piece.start.tolist(),
                "to": b.piece.end.tolist(),
                **{name: float(getattr(b.piece.section, name)) for name in ("E", "G", "A", "Iy", "Iz", "J")},
                **{name: finite(getattr(b.piece.section, name)) for name in ("Ay", "Az")},
                "y": b.piece.y.tolist(),
                "source": b.piece.source,
            }
            for b in m.beams
        ],
        "joints": [_joint(j) for j in m.joints],
        "drives": [
            {"joint": j.name, "at": j.point.tolist(), "axis": j.twist(k).tolist(), "stiffness": finite(j.stiffness[k])}
            for j, k in driven
        ],
        "cables": [
            {
                "joint": name,
                "from": line.near.tolist(),
                "to": line.far.tolist(),
                "length": float(line.length),
                "EA": line.cable.stiffness,
                "mass": line.cable.mass,
            }
            for name, line in m.lines.items()
        ],
        "springs": [_spring(one) for one in m.springs],
        "rigid_links": dict(m.rigid),
        "masses": [
            {
                "link": one.link,
                "node": one.node,
                "mass": one.mass,
                "at": one.point.tolist(),
                "inertia": one.inertia.tolist(),
            }
            for one in m.masses
        ],
        "gravity": m.gravity.tolist(),
    }


def finite(value: float) -> float | None:
    """None where it is infinite, which JSON cannot say."""
    return float(value) if np.isfinite(value) else None


def _joint(joint: JointBetween) -> dict[str, Any]:
    held = [k for k, s in enumerate(joint.stiffness) if s != FREE and k != joint.driven]
    found = {
        "name": joint.name,
        "type": joint.type,
        "links": list(joint.links),
        "nodes": list(joint.joins),
        "at": joint.point.tolist(),
        "free": [joint.twist(k).tolist() for k, s in enumerate(joint.stiffness) if s == FREE],
        "stiffness": [{"axis": joint.twist(k).tolist(), "value": finite(joint.stiffness[k])} for k in held],
    }
    return found | ({"mimic": joint.leader, "multiplier": joint.multiplier} if joint.leader else {})


def _spring(spring: SpringBetween) -> dict[str, Any]:
    found = {
        "name": spring.name,
        "links": list(spring.links),
        "nodes": list(spring.joins),
        "at": spring.point.tolist(),
        "axis": spring.axis.tolist(),
        "stiffness": spring.stiffness,
        "force": float(spring.force),
    }
    return found if spring.length is None else found | {"length": float(spring.length)}
