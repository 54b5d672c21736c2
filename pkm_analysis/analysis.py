# SPDX-License-Identifier: Apache-2.0
"""What a robot can do, and how well: the class that people use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.domain import Domain, Range
from pkm_analysis.loci.loci import Loci, loci
from pkm_analysis.maps.map import Map, quantity_map
from pkm_analysis.maps.statistics import Statistics, statistics
from pkm_analysis.regions.grid_graph import GridGraph
from pkm_analysis.regions.path import Path, box_of, find_path
from pkm_analysis.regions.regions import Regions, regions
from pkm_analysis.requirements.drive_quantities import Assumed
from pkm_analysis.requirements.membership import Membership
from pkm_analysis.requirements.over_orientations import over_orientations
from pkm_analysis.requirements.quantities import find_quantity, quantities
from pkm_analysis.requirements.quantity import Quantity
from pkm_analysis.requirements.requirement import Requirement, requirement
from pkm_analysis.robot import Robot
from pkm_analysis.sweeps import Sweeps
from pkm_analysis.workspace.workspace import Workspace, workspace
from pkm_description import Mechanism
from pkm_description.introduction import Introduced
from pkm_kinematics import Kinematics

ANY: Range = (-1.0, 1.0)  # a range that stands for one that is still to be found


class Analysis(Introduced):
    """Questions about a robot as a whole.

    Args:
        robot: its description, or its kinematics.
        mode: number of a working mode; home's where None.
        stiffness: of its drives [N m/rad or N/m], which natural frequencies need.
        sweeps: where questions about many poses are answered: on all cores by default, on a cluster with
            `Sweeps(scheduler="tcp://host:8786")`.
        sensors: largest errors of the drives' sensors, one for each or one for all [rad, m], which errors of pose need.

    Raises:
        PkmError: it is neither.
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
        """What can be asked of a pose, by name, beside the positions of joints, which `quantity` knows too."""
        return quantities(self.robot, self.assumed)

    def quantity(self, name: str) -> Quantity:
        """A quantity.

        Args:
            name: of `quantities`, `joint:NAME`, or in a direction, as `force:z`.

        Returns:
            The quantity.

        Raises:
            AnalysisError: there is none of that name.
        """
        return find_quantity(self.robot, name, self.assumed)

    def requirement(self, text: str) -> Requirement:
        """A bound on a quantity.

        Args:
            text: such as "type2 > 0.2 rad/m".

        Returns:
            The requirement.

        Raises:
            AnalysisError: it cannot be read, or has no unit, or a wrong one.
        """
        return requirement(self.robot, text, self.assumed)

    def conditions(
        self,
        vary: Iterable[str] | None = None,
        hold: Mapping[str, float] | None = None,
        requirements: Iterable[str | Requirement] = (),
        joint_limits: bool = True,
        platform_limits: bool = True,
    ) -> Membership:
        """What a workspace is made of.

        Args:
            vary: task coordinates that vary; the robot's own freedoms where None, of more than three the first three.
            hold: values of others [m, rad]; home's by default.
            requirements: beside what limbs and joints allow.
            joint_limits: False to do without limits of joints.
            platform_limits: False to do without the limits that the description sets the platform.

        Returns:
            The conditions, over ranges that do not matter.

        Raises:
            AnalysisError: no such coordinate, one held outside of its limits, or a requirement that cannot be read.
        """
        names = [c.name for c in self.robot.coordinates.free[:3]] if vary is None else list(vary)
        found = [self.robot.coordinates.find(name).name for name in names]
        twice = next((name for name, one in zip(names, found, strict=True) if found.count(one) > 1), None)
        if twice is not None:
            raise AnalysisError(f"coordinate {twice}", "it is named twice", "name each that varies once")
        domain = Domain(self.robot.coordinates, dict.fromkeys(names, ANY), hold)
        if platform_limits:
            domain.check_held()
        bounds = [self.requirement(one) if isinstance(one, str) else one for one in requirements]
        return Membership(self.robot, domain, bounds, joint_limits, platform_limits)

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
        """Where the robot can be: of a robot with more than three freedoms, at the orientation that is held.

        Args:
            ranges: of coordinates [m, rad], by name; the workspace's own extent for those that are not named.
            vary: task coordinates that vary, as in `conditions`.
            hold: values of others [m, rad].
            requirements: beside what limbs and joints allow, such as "type2 > 0.2 rad/m".
            joint_limits: False to do without limits of joints.
            platform_limits: False to do without the limits that the description sets the platform.
            tolerance: how far the border may be off [m]; where None, a five-hundredth of the extent, or less so that
                the error is about a hundredth of the size; twice that where poses take long.
            resolution: nodes along each coordinate of the grid that parts of the workspace are found on.

        Returns:
            The workspace.

        Raises:
            AnalysisError: it is empty, has no end, or the question has a fault.
        """
        conditions = self.conditions(vary, hold, requirements, joint_limits, platform_limits)
        return workspace(conditions, ranges, tolerance, resolution)

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
        """The workspace of positions of a robot that can be turned there.

        Args:
            kind: "reachable" or "inclusive", positions reached in one orientation at least, of all or of a range;
                "total" or "dexterous", positions reached in every orientation of a range, or in all.
            angles: ranges [rad] of the platform's angles, by name.
            steps: values of each angle that are tried; the answer is as fine as these.
            ranges: of the positions [m], by name.
            requirements: beside what limbs and joints allow.
            tolerance: how far the border may be off [m].
            resolution: nodes along each coordinate of the first grid.

        Returns:
            The workspace.

        Raises:
            AnalysisError: it is empty, or the question has a fault.
        """
        bounds = [self.requirement(one) if isinstance(one, str) else one for one in requirements]
        return workspace(over_orientations(self.robot, kind, angles, steps, bounds), ranges, tolerance, resolution)

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
        """A quantity over a slice of the workspace, or a volume, with the loci of singularities there.

        Args:
            quantity: its name, or one of your own.
            ranges: of the coordinates that vary [m, rad], by name; as far as the workspace goes for others.
            vary: one, two or three task coordinates; those that have a range, or the robot's first two freedoms, where
                None.
            hold: values of the others [m, rad]; home's by default.
            requirements: beside what limbs and joints allow.
            resolution: nodes along the longest coordinate.

        Returns:
            The map.

        Raises:
            AnalysisError: nothing is there to be mapped, or the question has a fault.
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
        """Statistics of a quantity over very many poses, of which none is kept.

        Args:
            quantity: its name, or one of your own.
            ranges: of the coordinates that vary [m, rad], by name; as far as the workspace goes for others.
            vary: task coordinates; the robot's freedoms where None, of more than three those that have a range.
            hold: values of the others [m, rad]; home's by default.
            requirements: beside what limbs and joints allow.
            poses: how many.
            seed: of random poses; None for a grid.

        Returns:
            The statistics.

        Raises:
            AnalysisError: no pose is inside, or the question has a fault.
        """
        what = self.quantity(quantity) if isinstance(quantity, str) else quantity
        names = list(ranges) if vary is None and ranges and len(ranges) > 3 else vary
        return statistics(self.conditions(names, hold, requirements), what, self._named(ranges), int(poses), seed)

    def _named(self, ranges: Mapping[str, Range] | None) -> dict[str, Range]:
        """Ranges by the full names of their coordinates."""
        find = self.robot.coordinates.find
        return {find(name).name: (float(a), float(b)) for name, (a, b) in (ranges or {}).items()}

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
            ranges: of the coordinates [m, rad], by name; as far as the workspace reaches for those that are not named.
            vary: three task coordinates; as in `conditions` where None.
            hold: values of others [m, rad].
            resolution: nodes along each coordinate.

        Returns:
            The loci.

        Raises:
            AnalysisError: other than three coordinates, or the robot reaches nothing there.
        """
        return loci(self.conditions(vary, hold), ranges, resolution)

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

        Args:
            ranges: of coordinates [m, rad], by name; as far as the workspaces reach for those that are not named.
            modes: numbers of working modes; this analysis' own where None.
            vary: task coordinates that vary, as in `conditions`.
            hold: values of others [m, rad].
            requirements: beside what limbs and joints allow; bounds on margins keep regions away from singularities.
            joint_limits: False to do without limits of joints.
            platform_limits: False to do without the limits that the description sets the platform.
            resolution: nodes along each coordinate.

        Returns:
            The regions.

        Raises:
            AnalysisError: nowhere do all conditions hold, or the question has a fault.
            ModeError: no such working mode.
        """
        numbers = [self.robot.mode or 0] if modes is None else list(modes)
        found = []
        for mode in numbers:
            same = mode == (self.robot.mode or 0)
            of_mode = self if same else self._in_mode(mode)
            found.append(of_mode.conditions(vary, hold, requirements, joint_limits, platform_limits))
        return regions(found, ranges, resolution)

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
        """A path from one pose to another in this working mode, without a singularity, that keeps chosen margins.

        Args:
            start: task coordinates [m, rad] by name; home's for those of its freedoms that are not named.
            end: the same.
            margins: bounds that hold all along, such as "margin > 0.2".
            ranges: where a path is looked for, by name; around both ends, with as much room again, where None.
            joint_limits: False to do without limits of joints.
            resolution: nodes along each coordinate.

        Returns:
            The path, or why there is none.

        Raises:
            AnalysisError: an end that breaks a condition, or a question with a fault.
        """
        vary = [c.name for c in self.robot.coordinates.free]
        box, ends = box_of(self.robot.coordinates, vary, start, end, ranges or {})
        conditions = self.conditions(vary, ends.held, margins, joint_limits)
        graph = GridGraph(conditions.over(conditions.domain.within(box)), resolution)
        return find_path(graph, ends.start, ends.end)
