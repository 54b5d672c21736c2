# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: the class that users start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from pkm_analysis.analysed_robot import AnalysedRobot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.balance import Balance, balance, described, read_candidates
from pkm_analysis.domain import Domain, Range
from pkm_analysis.maps import Map, Statistics, quantity_map, statistics
from pkm_analysis.proof.halving import Proof, Settings, certified_box, prove, prove_motion, prove_path
from pkm_analysis.regions.grid_graph import GridGraph
from pkm_analysis.regions.loci import Loci, loci
from pkm_analysis.regions.path import Path, box_of, find_path
from pkm_analysis.regions.regions import Regions, regions
from pkm_analysis.requirements.conditions import Membership, over_orientations
from pkm_analysis.requirements.quantities import Assumed, find_quantity, quantities, requirement
from pkm_analysis.requirements.quantity import Quantity, Requirement
from pkm_analysis.stiffness.stiffness import Stiffness, Stiffnesses
from pkm_analysis.workspace.largest import Tilt, tilt
from pkm_analysis.workspace.workspace import Workspace, workspace
from pkm_description import Mechanism
from pkm_description.mechanism import Array, Inertial
from pkm_kinematics import Kinematics
from pkm_runtime.describable import Describable
from pkm_runtime.sweeps import Sweeps

if TYPE_CHECKING:
    from typing import Unpack

ANY: Range = (-1.0, 1.0)  # placeholder until the range is found


class Where(TypedDict, total=False):
    """What varies, what is held, and what is required, see `Analysis`."""

    vary: Iterable[str] | None
    hold: Mapping[str, float] | None
    requirements: Iterable[str | Requirement]
    joint_limits: bool
    platform_limits: bool


class Analysis(Describable):
    """Questions about a robot as a whole: workspaces, maps, loci of singularities, regions, paths, proofs.

    Arguments that methods share: `vary` names the task coordinates that vary, by default the robot's degrees of
    freedom, of more than three the first three. `ranges` are their ends [m, rad] by name, the workspace's extent by
    default; `hold` are values of the others [m, rad], home's by default. `requirements` are bounds such as
    "type2 > 0.2 rad/m", added to what limbs and joints allow. `joint_limits=False` and `platform_limits=False` ignore
    the limits in the description. `resolution` counts nodes along each coordinate of a grid. All methods raise
    `AnalysisError` for a faulty question, or one without an answer such as an empty workspace.

    Args:
        mode: number of a working mode, home's by default; `ModeError` where there is none.
        stiffness: of its drives [N m/rad or N/m], for natural frequencies, and where the description says none.
        sweeps: all cores by default; `Sweeps(scheduler="tcp://host:8786")` for a cluster.
        sensors: largest errors of the drives' sensors [rad, m], one for each or one for all, for errors of pose.
        gpu: what limbs say of many poses is computed by a GPU, through CuPy, to the same answers. `UsageError` without
            CuPy or GPU, `AnalysisError` where a GPU has no code of the robot.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"robot"})

    def __init__(
        self,
        robot: Mechanism | Kinematics,
        mode: int | None = None,
        stiffness: float | None = None,
        sweeps: Sweeps | None = None,
        sensors: Sequence[float] = (),
        gpu: bool = False,
    ) -> None:
        self.robot = AnalysedRobot(robot, mode, sweeps, gpu)
        self.assumed = Assumed(stiffness, tuple(float(e) for e in sensors))

    def _summary(self) -> str:
        return self.robot.mechanism._summary()

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """Quantities of a pose by name; joint positions come in addition, see `quantity`."""
        return quantities(self.robot, self.assumed)

    def quantity(self, name: str) -> Quantity:
        """A quantity of `quantities`, a joint's position as `joint:NAME`, or one along a direction as `force:z`."""
        return find_quantity(self.robot, name, self.assumed)

    def requirement(self, text: str) -> Requirement:
        """A bound on a quantity, such as "type2 > 0.2 rad/m"; "inside" or "no singularity"."""
        return requirement(self.robot, text, self.assumed)

    def _wanted(self, requirements: str | Requirement | Iterable[str | Requirement]) -> tuple[Requirement, ...]:
        each = (requirements,) if isinstance(requirements, str | Requirement) else requirements
        return tuple(self.requirement(one) if isinstance(one, str) else one for one in each)

    def conditions(
        self,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
    ) -> Membership:
        """The conditions of a workspace, over ranges that do not matter; `AnalysisError` for a faulty question."""
        task = self.robot.coordinates
        names = [task.find(name).name for name in (vary or [c.name for c in task.free[:3]])]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            problem = "it is named twice"
            raise AnalysisError(f"coordinate {task.find(twice).label}", problem, "name each that varies once")
        domain = Domain.of_ranges(task, dict.fromkeys(names, ANY), hold)
        if platform_limits:
            domain.check_held()
        return Membership(self.robot, domain, self._wanted(requirements), joint_limits, platform_limits)

    def workspace(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        tolerance: float | None = None,
        resolution: int | None = None,
        **where: Unpack[Where],
    ) -> Workspace:
        """The robot's workspace; with more than three degrees of freedom, at the orientation that is held.

        `tolerance` is the largest error of the border [m], by default 1/500 of the extent, or less so that the error is
        about 1/100 of the size; twice that where poses take long.
        """
        return workspace(self.conditions(**where), self._named(ranges), tolerance, resolution)

    def positions(
        self,
        kind: str,
        angles: Mapping[str, Range] | None = None,
        *,
        steps: int = 13,
        ranges: Mapping[str, Range] | None = None,
        requirements: Iterable[str | Requirement] = (),
        tolerance: float | None = None,
        resolution: int | None = None,
    ) -> Workspace:
        """The workspace of positions, judged over orientations.

        Args:
            kind: "reachable" or "inclusive": at least one orientation is reached, of all or of a range; "total" or
                "dexterous": every orientation is reached, of a range or of all.
            angles: ranges [rad] of the platform's angles, by name.
            steps: values tried of each angle; they bound the precision of the answer.
            tolerance: largest error of the border [m].
        """
        conditions = over_orientations(self.robot, kind, angles, steps, self._wanted(requirements))
        return workspace(conditions, self._named(ranges), tolerance, resolution)

    def stiffness(
        self,
        at: Mapping[str, float] | ArrayLike | None = None,
        *,
        payload: float = 0.0,
        wrench: ArrayLike | None = None,
        tension: float | None = None,
    ) -> Stiffness:
        """How the robot gives way at a pose, its links as beams; see docs/stiffness.md.

        Drives without a stiffness in the description have this analysis', or are rigid.

        Args:
            at: task coordinates [m, rad] by name, home's where not named; or a pose (7,).
            payload: mass at the platform's origin [kg].
            wrench: on the platform at its origin (6,) [N, N m].
            tension: least one of cables [N], in place of the description's.
        """
        pose = self.pose_at(at or {}) if at is None or isinstance(at, Mapping) else np.asarray(at, dtype=float)
        return self.stiffnesses.at(pose, payload, wrench, tension)

    def pose_at(self, values: Mapping[str, float]) -> Array:
        """The pose (7,) at values of task coordinates, home's where not named; NaN where none follows from home."""
        task, engine = self.robot.coordinates, self.robot.kinematics.engine
        if not values:
            return engine.home
        if engine.constant_space:
            return np.asarray(task.poses(task.point(values)[None])[0][0])
        named = task.named(values)
        names = [*named, *(c.name for c in task.free if c.name not in named)][: engine.mobility]
        domain = Domain.of_ranges(task, dict.fromkeys(names, ANY), None)
        point = np.array([named.get(c.name, c.home) for c in domain.coordinates])
        poses, known = domain.poses(point[None])
        return np.asarray(np.where(known[0], poses[0], np.nan))

    @cached_property
    def stiffnesses(self) -> Stiffnesses:
        """The same at many poses, the structure made once."""
        return Stiffnesses(self.robot, self.assumed.stiffness)

    def balance(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        springs: str | FilePath | None = None,
        rest: Range | None = None,
        move: float = 0.0,
        payload: float = 0.0,
        resolution: int | None = None,
        **where: Unpack[Where],
    ) -> Balance:
        """How large the efforts are that hold the robot still, and which springs leave least of them; docs/balance.md.

        Args:
            springs: file of springs and counterweights to be sized; None: the description's springs are.
            rest: least and largest rest length [m], of springs of which nothing else is said.
            move: how far ends may move along each axis [m], where nothing else is said.
            payload: mass at the platform's origin [kg].
        """
        mechanism = self.robot.mechanism
        own = described(mechanism, rest, move)
        chosen = None if springs is None else read_candidates(springs, mechanism, rest or (0.0, 0.0), move)
        carried = Inertial(payload) if payload else None
        return balance(self.conditions(**where), self._named(ranges), chosen, carried, resolution, own)

    def tilt(self, directions: int = 72, **where: Unpack[Where]) -> Tilt:
        """How far the platform can tilt in so many directions, from the attitude at home, or one that is held."""
        held = {**self.robot.coordinates.named(where.pop("hold", None) or {})}
        where["vary"] = [c.name for c in self.robot.coordinates.free]
        return tilt(self.conditions(**where), held, directions)

    def _quantity(self, quantity: str | Quantity) -> Quantity:
        return self.quantity(quantity) if isinstance(quantity, str) else quantity

    def map(
        self,
        quantity: str | Quantity,
        ranges: Mapping[str, Range] | None = None,
        *,
        resolution: int | None = None,
        **where: Unpack[Where],
    ) -> Map:
        """A quantity over a slice or a volume of the workspace, with the loci of singularities there.

        One to three coordinates vary, by default those with a range, or the first two degrees of freedom.
        """
        where["vary"] = where.get("vary") or list(ranges or [c.name for c in self.robot.coordinates.free[:2]])
        return quantity_map(self.conditions(**where), self._quantity(quantity), self._named(ranges), resolution)

    def sweep(
        self,
        quantity: str | Quantity,
        ranges: Mapping[str, Range] | None = None,
        *,
        poses: int = 1_000_000,
        seed: int | None = None,
        **where: Unpack[Where],
    ) -> Statistics:
        """Statistics of a quantity over very many poses, none of which is stored; on a grid, or at random by `seed`.

        By default the degrees of freedom vary, of more than three those with a range.
        """
        if ranges and len(ranges) > 3:
            where.setdefault("vary", list(ranges))
        return statistics(self.conditions(**where), self._quantity(quantity), self._named(ranges), int(poses), seed)

    def _named(self, ranges: Mapping[str, Range] | None) -> dict[str, Range]:
        return {name: (float(a), float(b)) for name, (a, b) in self.robot.coordinates.named(ranges or {}).items()}

    def loci(
        self, ranges: Mapping[str, Range] | None = None, *, resolution: int | None = None, **where: Unpack[Where]
    ) -> Loci:
        """Singularities of all types as surfaces over three coordinates, where the limbs reach."""
        return loci(self.conditions(**where), self._named(ranges), resolution)

    def regions(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        modes: Iterable[int] | None = None,
        resolution: int | None = None,
        **where: Unpack[Where],
    ) -> Regions:
        """The singularity-free regions of working modes, this analysis' own by default, and which of them touch.

        Bounds on margins among the requirements keep regions away from singularities. `ModeError` for an unknown mode.
        """
        own = self.robot.mode or 0
        each = [self if mode == own else self._in_mode(mode) for mode in ((own,) if modes is None else modes)]
        return regions([one.conditions(**where) for one in each], self._named(ranges), resolution)

    def _in_mode(self, mode: int) -> Analysis:
        stiffness, sensors = self.assumed
        gpu = self.robot.cupy is not None
        return Analysis(self.robot.kinematics, mode or None, stiffness, self.robot.sweeps, sensors, gpu)

    def path(
        self,
        start: Mapping[str, float],
        end: Mapping[str, float],
        *,
        margins: Iterable[str | Requirement] = (),
        ranges: Mapping[str, Range] | None = None,
        joint_limits: bool = True,
        resolution: int | None = None,
    ) -> Path:
        """A singularity-free path between two poses in this working mode, or the reason why there is none.

        Args:
            start: task coordinates [m, rad] by name, as `end`; home's for degrees of freedom not named.
            margins: bounds that hold along the path, such as "margin > 0.2".
            ranges: where to search [m, rad], by name; by default around both ends, with as much room again.
        """
        vary = [c.name for c in self.robot.coordinates.free]
        box, first, last, held = box_of(self.robot.coordinates, vary, start, end, ranges or {})
        conditions = self.conditions(vary, held, margins, joint_limits)
        return find_path(GridGraph(conditions.over(conditions.domain.within(box)), resolution), first, last)

    def prove(
        self,
        that: str | Requirement | Iterable[str | Requirement],
        ranges: Mapping[str, Range],
        hold: Mapping[str, float] | None = None,
        **settings: Unpack[Settings],
    ) -> Proof:
        """Whether requirements such as "inside" or "margin > 0.2" hold at every pose of a box, by intervals.

        `ranges` of the box are in m and rad, by name; what is not named is held, at home by default.
        """
        return prove(self.robot, self.box(ranges, hold), self._wanted(that), **settings)

    def box(self, ranges: Mapping[str, Range], hold: Mapping[str, float] | None = None) -> Domain:
        """A box of poses [m, rad] by name; what is not named is held, at home if `hold` has nothing else."""
        task = self.robot.coordinates
        held = {name: (value, value) for name, value in task.named(hold or {}).items()}
        ends = {**{c.name: (c.home, c.home) for c in task.all}, **held, **self._named(ranges)}
        return Domain.of_box(task, list(ends.values()))

    def prove_path(
        self, that: str | Requirement | Iterable[str | Requirement], waypoints: ArrayLike, **settings: Unpack[Settings]
    ) -> Proof:
        """Whether requirements hold along a path that is straight in task coordinates between waypoints.

        `waypoints` are task coordinates (n, c) [m, rad], two or more.
        """
        return prove_path(self.robot, waypoints, self._wanted(that), **settings)

    def prove_motion(
        self,
        that: str | Requirement | Iterable[str | Requirement],
        poses: ArrayLike,
        radii: ArrayLike,
        **settings: Unpack[Settings],
    ) -> Proof:
        """Whether requirements hold along a path of straight lines between poses (n, 7), with rounded corners.

        Within `radii` (n,) [m] before and after each pose the path may leave its lines; they are zero at both ends.
        """
        return prove_motion(self.robot, poses, radii, self._wanted(that), **settings)

    def certified_box(
        self,
        that: str | Requirement | Iterable[str | Requirement],
        bounds: ArrayLike,
        tolerance: float = 0.005,
        most_boxes: int = 4000,
    ) -> tuple[Array, Proof]:
        """The largest proved box (c, 2), of those that shrink towards the centre of a given one, and its proof.

        Args:
            bounds: (c, 2) of the task coordinates [m, rad], such as of a box found by sampling.
            tolerance: of its sides, relative to those given.
            most_boxes: limit for each proof.
        """
        return certified_box(self.robot, bounds, self._wanted(that), tolerance, most_boxes)
