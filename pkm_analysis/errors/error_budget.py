# SPDX-License-Identifier: Apache-2.0
"""First-order errors of the platform's pose: how much every parameter, sensor, clearance and growth contributes.

Exact derivatives of the closed loops by each source (`pkm_kinematics/graph_model.py`). A clearance lets its joint's two
parts move apart along the force between them: by the principle of virtual work the pose follows, and it jumps where a
leg's force changes from pull to push (Parenti-Castelli and Venanzi, 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.errors.tolerances import NORMAL, Tolerances
from pkm_analysis.plottable import Plottable, Table
from pkm_description.mechanism import Array, Joint, JointType, Loop, LoopType, Mechanism
from pkm_kinematics.geometric_parameters import GeometricParameter, GeometricParameters
from pkm_kinematics.graph_model import ORIGIN, SUCCESSOR, GraphModel, States, rotation_vectors
from pkm_kinematics.status import closes
from pkm_runtime.describable import listed

DIRECTIONS = 64  # from which the worst case is sought
LISTED = 12  # sources in the words
SPREAD = 0.25  # rad, and of the robot's size: of the configurations where no pose is named
FIRST_ORDER = 0.2  # rad
OPPOSITE = 0.5  # cosine of what points the other way
PLAY = "clearance of "
GEOMETRY, SENSORS, CLEARANCE, THERMAL = "geometry", "sensors", "clearance", "thermal"


@dataclass(frozen=True, eq=False)
class Source:
    """Something that may be wrong: its twists (n, 6) of the platform at n poses per unit, and by how much `size`.

    `one_way`: its sign is known, as that of thermal growth. `cost` is that of its coarsest grade.
    """

    name: str
    kind: str
    unit: str
    size: float
    twists: Array
    one_way: bool = False
    cost: float = 1.0

    @property
    def effects(self) -> Array:
        """Twists (n, 6) of the platform at its largest error."""
        return np.asarray(self.size * self.twists)


class Jump(NamedTuple):
    """Between the configurations `after` and the next, the force in `joints` changes from pull to push, or back."""

    after: int
    twist: Array  # (6,) by which their play moves the platform
    joints: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBudget(Plottable):
    """Errors of a pose at n configurations, and what makes them.

    `worst` (n, 2) are the largest position error [m] and rotation [rad] that the tolerances allow together, `expected`
    (n, 2) the root of the mean square, `systematic` (n, 6) what has a known sign. `sources` are in the order of what
    they contribute to the mean square of the position error where it is largest.
    """

    _picture: ClassVar[str] = "proof_pictures.budget_picture"

    robot: str
    poses: Array  # (n, 7)
    sources: tuple[Source, ...]
    worst: Array
    expected: Array
    systematic: Array
    distribution: str
    along: bool = False  # the configurations follow each other, as in a motion

    def _summary(self) -> str:
        n, at = len(self.poses), self.at_worst
        return (
            f"{self.robot}: at most {1e3 * self.worst[at, 0]:.4g} mm and {np.degrees(self.worst[:, 1].max()):.4g} deg, "
            f"expected {1e3 * self.expected[at, 0]:.4g} mm, {n} configuration{'s' if n > 1 else ''}"
        )

    @property
    def at_worst(self) -> int:
        """The configuration with the largest position error."""
        return int(np.argmax(self.worst[:, 0]))

    def shares(self, turning: bool = False) -> Array:
        """Part (k,) of each source in the mean square of the position error, or rotation, where it is worst."""
        squares = np.array(
            [(one.effects[self.at_worst, 3 * turning : 3 * turning + 3] ** 2).sum() for one in self.sources]
        )
        return np.asarray(squares / max(float(squares.sum()), 1e-300))

    @property
    def jumps(self) -> list[Jump]:
        """Where play turns over along a motion, the largest jump of the position first."""
        plays = [one for one in self.sources if one.kind == CLEARANCE] if self.along else []
        found: dict[int, list[tuple[str, Array]]] = {}
        for one in plays:
            before, after = one.twists[:-1], one.twists[1:]
            sizes = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
            for k in np.flatnonzero((before * after).sum(axis=1) < -OPPOSITE * sizes):
                step = one.effects[k + 1] - one.effects[k]
                found.setdefault(int(k), []).append((one.name.removeprefix(PLAY), step))
        jumps = [
            Jump(k, np.array([step for _, step in each]).sum(axis=0), tuple(name for name, _ in each))
            for k, each in found.items()
        ]
        return sorted(jumps, key=lambda one: -float(np.linalg.norm(one.twist[:3])))

    def _details(self) -> list[str]:
        lines = [f"worst at {self._place(self.at_worst)}; of the mean square of the position error there:"]
        shares = self.shares()
        width = max(len(one.name) for one in self.sources[:LISTED])
        for one, share in list(zip(self.sources, shares, strict=True))[:LISTED]:
            size = np.linalg.norm(one.effects[self.at_worst, :3])
            made = f"{shown_size(one.size, one.unit)} make {1e3 * size:.3g} mm"
            lines.append(f"  {100.0 * share:5.1f} %  {one.name:<{width}}  {made}")
        if len(self.sources) > LISTED:
            lines.append(f"  {100.0 * shares[LISTED:].sum():5.1f} %  the other {len(self.sources) - LISTED}")
        if np.abs(self.systematic).max() > 0.0:
            known = 1e3 * float(np.linalg.norm(self.systematic[:, :3], axis=1).max())
            lines.append(f"of known sign: up to {known:.4g} mm, which a correction takes away")
        for jump in self.jumps[:LISTED]:
            moved, turned = 1e3 * np.linalg.norm(jump.twist[:3]), np.degrees(np.linalg.norm(jump.twist[3:]))
            lines.append(
                f"play jumps by {moved:.3g} mm and {turned:.3g} deg after {self._place(jump.after)}, where the force "
                f"changes its side in {listed(jump.joints)}"
            )
        if self.worst[:, 1].max() > FIRST_ORDER:
            lines.append("WARNING: rotations too large for first order; --machines N closes the loops of machines")
        return lines

    def _place(self, k: int) -> str:
        return f"({', '.join(f'{1e3 * value:.1f}' for value in self.poses[k, :3])}) mm"

    @property
    def tables(self) -> list[Table]:
        """Every source and what it makes where the position error is worst."""
        rows = []
        for one, share in zip(self.sources, self.shares(), strict=True):
            effect = one.effects[self.at_worst]
            moved, turned = 1e3 * np.linalg.norm(effect[:3]), np.degrees(np.linalg.norm(effect[3:]))
            sizes = [f"{moved:.4g} mm", f"{turned:.3g} deg", f"{100.0 * share:.2f} %"]
            rows.append([one.name, one.kind, shown_size(one.size, one.unit), *sizes])
        return [Table("Sources of error", ["source", "kind", "tolerance", "position", "rotation", "share"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in m and rad."""
        at = self.at_worst
        return {
            **self._plain("robot", "poses", "worst", "expected", "systematic", "distribution"),
            "worst_pose": self.poses[at].tolist(),
            "sources": [
                {
                    "name": one.name,
                    "kind": one.kind,
                    "unit": one.unit,
                    "tolerance": one.size,
                    "twist_per_unit": one.twists[at].tolist(),
                    "share": float(share),
                }
                for one, share in zip(self.sources, self.shares(), strict=True)
            ],
            "jumps": [one._asdict() | {"twist": one.twist.tolist()} for one in self.jumps],
        }


def shown_size(value: float, unit: str) -> str:
    """A size in the unit that a person uses."""
    known = {"m": f"{1e3 * value:.4g} mm", "rad": f"{np.degrees(value):.4g} deg", "1": f"{100.0 * value:.4g} %"}
    return known.get(unit, f"{value:.4g} {unit}")


@dataclass(frozen=True, eq=False)
class Machine:
    """One machine: its parameters [m, rad], what its drives misread (n,), and how far (3,) each loose joint is apart.

    `play` [m] is in the axes of the joint's frame, `change` [K] by how much all bodies are warmer.
    """

    parameters: dict[str, float]
    read: Array
    play: dict[str, Array]
    change: float

    def to_dict(self) -> dict[str, Any]:
        """What is wrong with it, for JSON."""
        play = {name: apart.tolist() for name, apart in self.play.items()}
        return {"parameters": self.parameters, "readings": self.read.tolist(), "play": play, "change": self.change}


def refuse_redundant_drives(mechanism: Mechanism) -> None:
    """Raise `AnalysisError` where drives are more than degrees of freedom: no pose fits the readings of a wrong one."""
    drives, free = len(mechanism.actuated_joints), mechanism.mobility.platform
    if drives > free:
        problem = (
            f"{drives} drives hold {free} degrees of freedom: with errors no pose fits all their readings, and where "
            "the strained robot rests depends on the stiffness of drives and links, and on its load"
        )
        remedy = (
            f"take the command interfaces of those that give way, so that {free} hold; or ask for errors of the "
            "sensors alone: prove --that 'position_error < NUMBER UNIT' --sensor-error NUMBER UNIT"
        )
        raise AnalysisError(f"errors of {mechanism.name}", problem, remedy)


class ErrorModel:
    """The sources of error of a robot at configurations: of poses (n, 7), or in its workspace around home."""

    def __init__(
        self,
        robot: AnalysedRobot,
        tolerances: Tolerances,
        poses: Array | None = None,
        count: int = 50,
        wrench: Array | None = None,
    ) -> None:
        self.robot, self.tolerances = robot, tolerances
        self.mechanism = robot.mechanism
        refuse_redundant_drives(self.mechanism)
        self.parameters = GeometricParameters(self.mechanism, ideal_gears=False)
        tolerances.check_names([one.name for one in self.parameters.all], self.mechanism)
        self.states = self._at(poses) if poses is not None else self._around(count)
        self.poses = self.states.poses
        singular = np.flatnonzero(
            np.isnan(self.parameters.sensitivity(self.states, self.parameters.all[:1])[1]).any((1, 2))
        )
        if len(singular):
            place = ", ".join(f"{1e3 * value:.1f}" for value in self.poses[singular[0], :3])
            problem = (
                f"at ({place}) mm the robot is singular: its drives do not hold the platform, so errors have no bound"
            )
            raise AnalysisError(f"errors of {self.mechanism.name}", problem, "ask at poses where the drives hold it")
        self.wrench = wrench

    def _at(self, poses: Array) -> States:
        found = self.robot.kinematics.at(poses, mode=self.robot.mode)
        if not closes(found.status).all():
            k = int(np.flatnonzero(~closes(found.status))[0])
            raise AnalysisError(f"pose {k + 1}", "the robot has no configuration there", "give poses of its workspace")
        return self.parameters.model.at(found.joints, self.robot.kinematics.joint_names, found.pose)

    def _around(self, count: int) -> States:
        states = self.parameters.model.random_states(6 * count, SPREAD)
        kinematics = self.robot.kinematics
        columns = [k for k, name in enumerate(kinematics.joint_names) if name in self.parameters.model.column]
        joints = self.parameters.model.joints_of(states, kinematics.joint_names, kinematics.home_joints)
        inside = ~kinematics.engine.ranges.beyond(joints)[:, columns].any(axis=1)
        found = states.rows(np.flatnonzero(inside)[: count - 1])
        home = self.parameters.model.home()
        return States(np.concatenate((home.q, found.q)), np.concatenate((home.platform, found.platform)))

    def sources(self) -> list[Source]:
        """Everything that may be wrong, of a size above zero."""
        t, found = self.tolerances, []
        _, twists = self.parameters.sensitivity(self.states, self.parameters.all)
        for k, one in enumerate(self.parameters.all):
            size = t.of(one.name, one.unit)
            if size > 0.0 and np.abs(twists[:, :, k]).max() > 1e-9:
                found.append(Source(one.name, GEOMETRY, one.unit, size, twists[:, :, k], cost=t.cost(one.name)))
        return found + self._sensors() + self._clearances() + self._growth()

    def _sensors(self) -> list[Source]:
        found = []
        kinematics = self.robot.kinematics
        if not any(self.tolerances.sensor(name) for name in self.mechanism.actuated_joints):
            return []
        joints = self.parameters.model.joints_of(self.states, kinematics.joint_names, kinematics.home_joints)
        J = kinematics.at(self.poses, seed=joints).forward_jacobian
        for k, name in enumerate(self.mechanism.actuated_joints):
            size = self.tolerances.sensor(name)
            if size > 0.0:
                unit = self.mechanism.joint_named[name].unit
                found.append(Source(f"sensor of {name}", SENSORS, unit, size, J[:, :, k]))
        return found

    def _clearances(self) -> list[Source]:
        """Each joint's two parts apart by its clearance, along the force between them."""
        if not self.tolerances.clearance:
            return []
        reactions = self.robot.dynamics.reactions(self.poses, wrench=self.wrench)
        model, placed = self.parameters.model, self.parameters.model.placed(self.states)
        found, moves = [], []
        for k, name in enumerate(reactions.names):
            size = self.tolerances.play(name)
            joint = self.mechanism.joint_named.get(name)
            place = model.place_at.get((name, ORIGIN if joint is not None else SUCCESSOR))
            if size == 0.0 or place is None or (joint is not None and joint.actuated):
                continue
            force = reactions.wrench[:, k, :3].copy()
            if turns(joint or self.mechanism.loop_named.get(name)):  # radial: across the axis
                axis = reactions.axes[:, k, :, 2]
                force -= np.einsum("ni,ni->n", force, axis)[:, None] * axis
            length = np.linalg.norm(force, axis=1, keepdims=True)
            along = np.where(length > 1e-9, force / np.maximum(length, 1e-12), 0.0)
            frame = placed.bodies[model.links[model.places[place].link]] @ model.nominal[place]
            # A child yields against the force that holds it; a successor's frame moves against its own body.
            sign = -1.0 if joint is not None else 1.0
            found.append((name, size, sign * np.einsum("nji,nj->ni", frame[:, :3, :3], along)))  # in the place's axes
            moves += [_translated(len(model.places), {place: axis}) for axis in np.eye(3)]
        effects = self.parameters.sensitivity(self.states, moves)[1].reshape(len(self.states), 6, -1, 3)
        return [
            Source(f"{PLAY}{name}", CLEARANCE, "m", size, np.einsum("nik,nk->ni", effects[:, :, k], along), True)
            for k, (name, size, along) in enumerate(found)
        ]

    def _growth(self) -> list[Source]:
        """All bodies larger by their expansion, at once: the places on each move away from its origin."""
        t = self.tolerances
        if t.change == 0.0:
            return []
        total = self.parameters.sensitivity(self.states, [grown(self.parameters.model, t)])[1][:, :, 0]
        return [Source("growth by warmth", THERMAL, "K", t.change, total, one_way=True)] if total.any() else []

    def worst_machines(self) -> list[Machine]:
        """For each configuration, the machine that puts the position off most, to first order."""
        sources = [one for one in self.sources() if one.kind in (GEOMETRY, SENSORS)]
        effects = np.array([one.effects[:, :3] for one in sources]).reshape(len(sources), len(self.poses), 3)
        model, plays = self.parameters.model, plays_of(self.parameters.model, self.tolerances)
        moves = [_translated(len(model.places), {place: axis}) for place, _, _ in plays.values() for axis in np.eye(3)]
        loose = self.parameters.sensitivity(self.states, [*moves, grown(model, self.tolerances)])[1][:, :3]
        reach = np.array([size * across for _, across, size in plays.values()]).reshape(-1, 3, 3)
        by_play = loose[:, :, :-1].reshape(len(loose), 3, -1, 3).swapaxes(1, 2) @ reach
        warmth = self.tolerances.change * loose[:, :, -1]
        made = _farthest(effects.transpose(1, 2, 0), np.zeros_like(warmth), by_play, warmth)[1:]
        found = []
        for signs, pushes, warm in zip(*made, strict=True):
            drawn = {one.name: float(sign * one.size) for one, sign in zip(sources, signs, strict=True)}
            read = np.array([drawn.pop(f"sensor of {name}", 0.0) for name in self.mechanism.actuated_joints])
            apart = dict(zip(plays, np.einsum("kij,kj->ki", reach, pushes), strict=True))
            found.append(Machine(drawn, read, apart, self.tolerances.change if warm else 0.0))
        return found

    def displacements(self, machine: Machine) -> Array:
        """Displacements (n_places, 6) of the parts of a machine."""
        model = self.parameters.model
        total = self.parameters.displacements(machine.parameters)
        for name, (place, _, _) in plays_of(model, self.tolerances).items():
            total[place, :3] += machine.play[name]
        return np.asarray(total + machine.change * grown(model, self.tolerances).weights)

    def budget(self, along: bool = False) -> ErrorBudget:
        """The errors at the configurations, which may be those along a motion. `AnalysisError`: nothing is wrong."""
        sources = self.sources()
        if not sources:
            raise AnalysisError("tolerances", "none of them moves the platform", "give tolerances above zero")
        free = [one for one in sources if not one.one_way]
        n = len(self.poses)
        systematic = np.zeros((n, 6)) + sum(one.effects for one in sources if one.one_way)
        effects = np.array([one.effects for one in free]).reshape(-1, n, 6).transpose(1, 2, 0)
        no_play, none = np.zeros((n, 0, 3, 3)), np.zeros((n, 3))
        parts = slice(0, 3), slice(3, 6)
        worst = np.column_stack([_farthest(effects[:, p], systematic[:, p], no_play, none)[0] for p in parts])
        variance = (effects**2).sum(axis=2) / (9.0 if self.tolerances.distribution == NORMAL else 3.0)
        square = variance + systematic**2
        expected = np.sqrt(np.column_stack([square[:, :3].sum(axis=1), square[:, 3:].sum(axis=1)]))
        at = int(np.argmax(worst[:, 0]))
        sources.sort(key=lambda one: -float((one.effects[at, :3] ** 2).sum()))
        name, law = self.mechanism.name, self.tolerances.distribution
        return ErrorBudget(name, self.poses, tuple(sources), worst, expected, systematic, law, along)


def _translated(places: int, by: Mapping[int, Array]) -> GeometricParameter:
    weights = np.zeros((places, 6))
    for place, vector in by.items():
        weights[place, :3] = vector
    return GeometricParameter("", "offset", "m", weights)


def plays_of(model: GraphModel, tolerances: Tolerances) -> dict[str, tuple[int, Array, float]]:
    """Of each passive joint with clearance: its place, a projection (3, 3) on where it can go, and how far [m]."""
    found = {}
    passive = [j for j in model.joints if not j.actuated and j.type is not JointType.FIXED]
    movable: list[Joint | Loop] = [*passive, *model.loops]
    for one in movable:
        size = tolerances.play(one.name)
        axis = one.axis2 if isinstance(one, Loop) else one.axis
        across = np.eye(3) - np.outer(axis, axis) if turns(one) else np.eye(3)
        if size > 0.0:
            found[one.name] = model.place_at[one.name, SUCCESSOR if isinstance(one, Loop) else ORIGIN], across, size
    return found


def grown(model: GraphModel, tolerances: Tolerances) -> GeometricParameter:
    """All bodies larger by their expansion for 1 K, as a displacement of the places on them."""
    by = {}
    for k, place in enumerate(model.places):
        expansion = tolerances.bodies.get(place.link, tolerances.expansion)
        by[k] = expansion * model.nominal[k][:3, :3].T @ model.nominal[k][:3, 3]
    return _translated(len(model.places), by)


def turns(one: Joint | Loop | None) -> bool:
    """Whether a joint or loop is a hinge, which clearance opens across its axis."""
    if isinstance(one, Joint):
        return one.type in (JointType.REVOLUTE, JointType.CONTINUOUS)
    return one is not None and one.type in (LoopType.REVOLUTE, LoopType.CYLINDRICAL)


def _starts() -> list[Array]:
    random = np.random.default_rng(0).standard_normal((DIRECTIONS, 3))
    return [*np.eye(3), *(-np.eye(3)), *(random / np.linalg.norm(random, axis=1, keepdims=True))]


def _farthest(effects: Array, offset: Array, balls: Array, one_way: Array) -> tuple[Array, Array, Array, Array]:
    """The largest lengths (n,) of sums, and what makes them: signs (n, k), unit vectors (n, m, 3), what is used (n,).

    The sums are of an offset (n, 3), of effects (n, 3, k) with signs, of images (n, m, 3, 3) of unit vectors, and of
    `one_way` (n, 3) or nothing. A sum is largest where all of it points along it: what makes it is exchanged until
    nothing changes, from many directions.
    """
    best = np.full(len(offset), -1.0)
    found = np.ones(effects[:, 0].shape), np.zeros(balls[:, :, 0].shape), np.zeros(len(offset), dtype=bool)
    for start in _starts():
        along = np.tile(start, (len(offset), 1))
        for _ in range(20):
            signs = np.where(np.einsum("nik,ni->nk", effects, along) < 0.0, -1.0, 1.0)
            pulls = np.einsum("ni,nmij->nmj", along, balls)
            pushes = pulls / np.maximum(np.linalg.norm(pulls, axis=2, keepdims=True), 1e-300)
            used = np.einsum("ni,ni->n", along, one_way) > 0.0
            total = offset + np.einsum("nik,nk->ni", effects, signs) + np.einsum("nmij,nmj->ni", balls, pushes)
            total += used[:, None] * one_way
            size = np.linalg.norm(total, axis=1, keepdims=True)
            turned = total / np.maximum(size, 1e-300)
            if np.abs(turned - along).max(initial=0.0) < 1e-12:
                break
            along = turned
        better = size[:, 0] > best
        best[better] = size[better, 0]
        for kept, made in zip(found, (signs, pushes, used), strict=True):
            kept[better] = made[better]
    return best, *found


CHUNK = 10  # machines
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False, repr=False)
class SampledErrors(Plottable):
    """Errors (machines, n, 2) of position [m] and rotation [rad] of machines at n configurations; NaN: no closure."""

    _picture: ClassVar[str] = "proof_pictures.sampled_picture"

    robot: str
    poses: Array
    errors: Array
    expected: Array  # (n, 2) root mean squares, first order

    def _summary(self) -> str:
        at = 1e3 * self.quantile(0.95)[0]
        return f"{self.robot}: 95 % of {len(self.errors)} machines are within {at:.4g} mm everywhere"

    def quantile(self, share: float) -> Array:
        """Errors (2,) that a share of the machines does not exceed at any configuration."""
        return np.asarray(np.nanquantile(np.nanmax(self.errors, axis=1), share, axis=0))

    @property
    def rms(self) -> Array:
        """Root mean squares (n, 2) over the machines."""
        return np.asarray(np.sqrt(np.nanmean(self.errors**2, axis=0)))

    def _details(self) -> list[str]:
        ratio = self.rms[:, 0] / np.maximum(self.expected[:, 0], 1e-300)
        lines = [
            f"{100 * share:g} % within {1e3 * self.quantile(share)[0]:.4g} mm and "
            f"{np.degrees(self.quantile(share)[1]):.4g} deg"
            for share in QUANTILES
        ]
        lines.append(f"root mean square over that of first order: {ratio.min():.4f} to {ratio.max():.4f}")
        lost = int(np.isnan(self.errors).any(axis=(1, 2)).sum())
        return lines + ([f"{lost} machines cannot close their loops somewhere"] if lost else [])

    @property
    def tables(self) -> list[Table]:
        """Quantiles."""
        rows = [
            [f"{100 * s:g} %", f"{1e3 * self.quantile(s)[0]:.4g} mm", f"{np.degrees(self.quantile(s)[1]):.4g} deg"]
            for s in QUANTILES
        ]
        return [Table("Machines within", ["share", "position", "rotation"], rows)]

    def to_dict(self) -> dict[str, Any]:
        """The numbers, in m and rad."""
        return {
            **self._plain("robot", "poses", "rms", "expected"),
            "machines": len(self.errors),
            "quantiles": {f"{share:g}": self.quantile(share).tolist() for share in QUANTILES},
        }


def sampled_errors(model: ErrorModel, machines: int, seed: int = 0) -> SampledErrors:
    """Errors of machines with parameters and sensor readings at random, over all cores or the sweeps' cluster."""
    sources = [one for one in model.sources() if one.kind in (GEOMETRY, SENSORS)]
    names, sizes = [one.name for one in sources], np.array([one.size for one in sources])
    kinds = [one.kind for one in sources]
    normal = model.tolerances.distribution == NORMAL
    call = partial(_chunk, model.parameters, model.states, names, kinds, sizes, normal, seed)
    chunks = [(k, min(CHUNK, machines - k)) for k in range(0, machines, CHUNK)]
    question = repr(
        ("sampled errors", model.mechanism.urdf, names, sizes.tolist(), normal, seed, model.states.q.tolist())
    )
    parts = model.robot.sweeps.map(call, chunks, f"errors of {machines} machines", len(chunks), question)
    errors = np.concatenate(list(parts))
    variance = np.sum([one.effects**2 for one in sources], axis=0) / (9.0 if normal else 3.0)
    expected = np.sqrt(np.column_stack((variance[:, :3].sum(axis=1), variance[:, 3:].sum(axis=1))))
    return SampledErrors(model.mechanism.name, model.poses, errors, expected)


def _chunk(
    parameters: GeometricParameters,
    states: States,
    names: list[str],
    kinds: list[str],
    sizes: Array,
    normal: bool,
    seed: int,
    chunk: tuple[int, int],
) -> Array:
    first, count = chunk
    random = np.random.default_rng([seed, first])
    model = GraphModel(parameters.mechanism)
    drives = model.columns_of(parameters.mechanism.actuated_joints)
    found = np.full((count, len(states), 2), np.nan)
    for k in range(count):
        drawn = sizes * (random.standard_normal(len(sizes)) / 3.0 if normal else random.uniform(-1.0, 1.0, len(sizes)))
        values = {name: v for name, v, kind in zip(names, drawn, kinds, strict=True) if kind == GEOMETRY}
        read = dict(zip(names, drawn, strict=True))
        model.displace(parameters.displacements(values))
        start = States(states.q.copy(), states.platform)
        for column, name in zip(drives, parameters.mechanism.actuated_joints, strict=True):
            start.q[:, column] += read.get(f"sensor of {name}", 0.0)
        ends, gap = model.closed(start, drives)
        moved = np.linalg.norm(ends.platform[:, :3, 3] - states.platform[:, :3, 3], axis=1)
        turn = ends.platform[:, :3, :3] @ np.swapaxes(states.platform[:, :3, :3], 1, 2)
        turned = np.linalg.norm(rotation_vectors(turn), axis=1)
        found[k] = np.where((gap < 1e-5 * model.length)[:, None], np.column_stack((moved, turned)), np.nan)
    return found
