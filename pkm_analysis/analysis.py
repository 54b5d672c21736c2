# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: the class that users start from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from pkm_analysis.analysed_robot import Robot
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range
from pkm_analysis.maps.loci import Loci, loci
from pkm_analysis.maps.map import Map, quantity_map
from pkm_analysis.maps.statistics import Statistics, statistics
from pkm_analysis.regions.grid_graph import GridGraph
from pkm_analysis.regions.path import Path, box_of, find_path
from pkm_analysis.regions.regions import Regions, regions
from pkm_analysis.requirements.drive_quantities import Assumed
from pkm_analysis.requirements.membership import Membership, over_orientations
from pkm_analysis.requirements.quantities import Requirement, find_quantity, quantities, requirement
from pkm_analysis.requirements.quantity import Quantity
from pkm_analysis.workspace.workspace import Workspace, workspace
from pkm_description import Mechanism
from pkm_kinematics import Kinematics
from pkm_runtime.describable import Describable
from pkm_runtime.sweeps import Sweeps

ANY: Range = (-1.0, 1.0)  # placeholder until the range is found


class Analysis(Describable):
    """Questions about a robot as a whole: workspaces, maps, loci of singularities, regions, paths.

    Arguments that methods share: `vary` names the task coordinates that vary, by default the robot's degrees of
    degree of freedom, of more than three the first three. `ranges` are their ends [m, rad] by name, the workspace's
    extent by default; `hold` are values of the others [m, rad], home's by default. `requirements` are bounds such as
    "type2 > 0.2 rad/m", added to what limbs and joints allow. `joint_limits=False` and `platform_limits=False` ignore
    the limits in the description. All methods raise `AnalysisError` for a faulty question, or one without an answer
    such as an empty workspace.

    Args:
        robot: its description, or its kinematics.
        mode: number of a working mode; home's by default.
        stiffness: of its drives [N m/rad or N/m], for natural frequencies.
        sweeps: where many poses are computed, all cores by default; `Sweeps(scheduler="tcp://host:8786")` for a
            cluster.
        sensors: largest errors of the drives' sensors [rad, m], one for each or one for all, for errors of pose.

    Raises:
        PkmError: `robot` is neither.
        ModeError: no such working mode.
    """

    _internal: ClassVar[frozenset[str]] = frozenset({"robot"})

    def __init__(
        self,
        robot: Mechanism | Kinematics,
        mode: int | None = None,
        stiffness: float | None = None,
        sweeps: Sweeps | None = None,
        sensors: Sequence[float] = (),
    ) -> None:
        self.robot = Robot(robot, mode, sweeps)
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
        """A bound on a quantity, such as "type2 > 0.2 rad/m"."""
        return requirement(self.robot, text, self.assumed)

    def conditions(
        self,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
    ) -> Membership:
        """The conditions of a workspace, over ranges that do not matter.

        Raises:
            AnalysisError: a coordinate is unknown, named twice, or held outside its limits; or a requirement is
                unreadable.
        """
        names = [c.name for c in self.robot.coordinates.free[:3]] if vary is None else list(vary)
        found = [self.robot.coordinates.find(name).name for name in names]
        twice = next((name for name, one in zip(names, found, strict=True) if found.count(one) > 1), None)
        if twice is not None:
            raise AnalysisError(f"coordinate {twice}", "it is named twice", "name each that varies once")
        domain = Domain(self.robot.coordinates, dict.fromkeys(names, ANY), hold)
        if platform_limits:
            domain.check_held()
        return Membership(self.robot, domain, self._bounds(requirements), joint_limits, platform_limits)

    def _bounds(self, requirements: Iterable[str | Requirement]) -> list[Requirement]:
        return [self.requirement(one) if isinstance(one, str) else one for one in requirements]

    def workspace(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
        tolerance: float | None = None,
        resolution: int | None = None,
    ) -> Workspace:
        """The robot's workspace; with more than three degrees of freedom, at the orientation that is held.

        Args:
            tolerance: largest error of the border [m]; None: 1/500 of the extent, or less so that the error is about
                1/100 of the size; twice that where poses take long.
            resolution: nodes along each coordinate of the grid on which parts of the workspace are found.
        """
        conditions = self.conditions(vary, hold, requirements, joint_limits, platform_limits)
        return workspace(conditions, self._named(ranges), tolerance, resolution)

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
            resolution: nodes along each coordinate of the first grid.
        """
        bounds = self._bounds(requirements)
        conditions = over_orientations(self.robot, kind, angles, steps, bounds)
        return workspace(conditions, self._named(ranges), tolerance, resolution)

    def map(
        self,
        quantity: str | Quantity,
        ranges: Mapping[str, Range] | None = None,
        *,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        resolution: int | None = None,
    ) -> Map:
        """A quantity over a slice or a volume of the workspace, with the loci of singularities there.

        Args:
            vary: one to three coordinates; by default those with a range, or the first two degrees of freedom.
            resolution: nodes along the longest coordinate.
        """
        what = self.quantity(quantity) if isinstance(quantity, str) else quantity
        names = list(ranges or [c.name for c in self.robot.coordinates.free[:2]]) if vary is None else list(vary)
        return quantity_map(self.conditions(names, hold, requirements), what, self._named(ranges), resolution)

    def sweep(
        self,
        quantity: str | Quantity,
        ranges: Mapping[str, Range] | None = None,
        *,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        poses: int = 1_000_000,
        seed: int | None = None,
    ) -> Statistics:
        """Statistics of a quantity over very many poses, none of which is stored.

        Args:
            vary: by default the degrees of freedom, of more than three those with a range.
            poses: how many.
            seed: of random poses; None for a grid.
        """
        what = self.quantity(quantity) if isinstance(quantity, str) else quantity
        names = list(ranges) if vary is None and ranges and len(ranges) > 3 else vary
        return statistics(self.conditions(names, hold, requirements), what, self._named(ranges), int(poses), seed)

    def _named(self, ranges: Mapping[str, Range] | None) -> dict[str, Range]:
        """Ranges by the full names of their coordinates."""
        named = self.robot.coordinates.named(ranges or {})
        return {name: (float(a), float(b)) for name, (a, b) in named.items()}

    def loci(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        resolution: int | None = None,
    ) -> Loci:
        """Singularities of all types as surfaces over three coordinates, where the limbs reach.

        Args:
            resolution: nodes along each coordinate.
        """
        return loci(self.conditions(vary, hold), self._named(ranges), resolution)

    def regions(
        self,
        ranges: Mapping[str, Range] | None = None,
        *,
        modes: Iterable[int] | None = None,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
        resolution: int | None = None,
    ) -> Regions:
        """The singularity-free regions of working modes, and which of them touch.

        Bounds on margins among the requirements keep regions away from singularities.

        Args:
            modes: numbers of working modes; this analysis' own by default. `ModeError` for an unknown one.
            resolution: nodes along each coordinate.
        """
        numbers = [self.robot.mode or 0] if modes is None else list(modes)
        found = []
        for mode in numbers:
            same = mode == (self.robot.mode or 0)
            of_mode = self if same else self._in_mode(mode)
            found.append(of_mode.conditions(vary, hold, requirements, joint_limits, platform_limits))
        return regions(found, self._named(ranges), resolution)

    def _in_mode(self, mode: int) -> Analysis:
        stiffness, sensors = self.assumed
        return Analysis(self.robot.kinematics, mode or None, stiffness, self.robot.sweeps, sensors)

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
            start: task coordinates [m, rad] by name; home's for degrees of freedom not named.
            end: likewise.
            margins: bounds that hold along the path, such as "margin > 0.2".
            ranges: where to search [m, rad], by name; by default around both ends, with as much room again.
            resolution: nodes along each coordinate.
        """
        vary = [c.name for c in self.robot.coordinates.free]
        box, ends = box_of(self.robot.coordinates, vary, start, end, ranges or {})
        conditions = self.conditions(vary, ends.held, margins, joint_limits)
        graph = GridGraph(conditions.over(conditions.domain.within(box)), resolution)
        return find_path(graph, ends.start, ends.end)
