# SPDX-License-Identifier: Apache-2.0
"""Kinematic redundancy: joints whose positions are coordinates of the robot beside its platform's pose.

A machine on a rail, hexapods in series, a 3-PRRR with driven slides: drives can move them while the platform stands
still, so that the pose leaves joints open. As many degrees of freedom of joints as are open become *redundant
coordinates*. All joints that carry one are redundant too, down to base or platform, so that positions of these
coordinates place bodies, and the limbs that remain are those of the robot with these bodies held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pkm_description.description_error import DescriptionError, or_near
from pkm_description.graph import platform_chain
from pkm_description.joint_geometry import freedoms
from pkm_description.loops.closure import RANK, ClosureModel, null_space, rank
from pkm_description.loops.home import CLOSED, bounds, close, stacked
from pkm_description.loops.limb_partition import LimbGraph
from pkm_description.loops.mobility import generic_configurations, whole_platforms
from pkm_description.mechanism import Array, Joint, Mobility


def redundant_joints(
    model: ClosureModel,
    home: Array,
    counted: Mobility,
    platform: str,
    actuated: Sequence[str],
    chain: Sequence[str],
    named: Sequence[str],
    structure: LimbGraph,
) -> tuple[str, ...]:
    """Names of the redundant degrees of freedom, in the order of the tree: those of joints `named`, or a choice.

    `chain` are virtual joints of the platform, which have none. Raises `DescriptionError` where the drives do not hold
    these coordinates or are more than all, those named are not such coordinates, or another platform may be meant:
    one with coordinates of its own, or of an articulated platform.
    """
    if not counted.kinematic_redundancy:
        if named:
            problem = "the platform's pose leaves no joint open: the robot has no kinematic redundancy"
            raise DescriptionError(f'<redundant joint="{named[0]}">', problem, "leave <redundant> out")
        return ()
    samples = generic_configurations(model, home) or [home]
    q = max(samples, key=lambda values: rank(model.closure(values)[1]))
    motions = null_space(model.closure(q)[1])
    _check_drives(model, counted, motions, actuated)
    if not named:
        parts = structure.limbs(model, home)[1]
        meant = {link for link in model.link_index if platform_chain(model.links, model.joints, model.loops, link)}
        meant |= set() if parts is None else set(parts.links)
        _check_platform(counted, platform, [x for x in whole_platforms(model, q, actuated) if x in meant])
    chosen = _Chosen(model, motions, model.twist_map(platform, q), model.joint_map(actuated), platform, chain)
    for name in named:
        chosen.take(name)
    while not named and (best := chosen.best()):
        chosen.add(best)
    missing = counted.kinematic_redundancy - len(chosen.names)
    if missing:
        beside = f"beside {', '.join(chosen.names)} " if chosen.names else ""
        problem = f"kinematic redundancy: {beside}{missing} of {counted.kinematic_redundancy} coordinates are missing"
        remedy = "name further joints that base, platform or another redundant joint carries, a <redundant> for each"
        raise DescriptionError("<redundant>", problem, remedy)
    return tuple(name for name in chosen.row if name in chosen.names)


def followed(named: Mapping[str, Array], redundant: str) -> Array:
    """How far (3,) a redundant degree of freedom follows the platform, per m; zero where nothing is said of it."""
    joint = redundant.split("/")[0]
    if joint != redundant and joint in named and named[joint].any():
        problem = "the joint has several degrees of freedom, and does not say which of them follows the platform"
        raise DescriptionError(f'<redundant joint="{joint}">', problem, f"name each, such as {redundant}")
    return named.get(redundant, np.zeros(3))


def home_at_rest(
    model: ClosureModel, home: Array, platform: str, redundant: Sequence[str], initial: Mapping[str, float]
) -> Array:
    """Home (size,) with driven redundant joints at `initial`, else zero; unchanged where it then stays open."""
    rows = {f.name: model.slices[joint.name].start + k for joint in model.free for k, f in enumerate(freedoms(joint))}
    held, pose, q = [rows[name] for name in redundant], model.pose_of(platform, home), home.copy()
    q[held] = [initial.get(name, 0.0) for name in redundant]
    columns = np.ones(model.size, dtype=bool)
    columns[held] = False

    def equations(values: Array) -> tuple[Array, Array]:
        return stacked(model.closure(values), model.pose_error(values, platform, pose))

    found, gap = close(model, equations, columns, q)
    lower, upper = bounds(model)
    return found if gap < CLOSED and (lower <= found).all() and (found <= upper).all() else home


def _check_drives(model: ClosureModel, counted: Mobility, motions: Array, actuated: Sequence[str]) -> None:
    total, held = counted.total - counted.idle, rank(model.joint_map(actuated) @ motions)
    if held != total or len(actuated) != total:
        raise DescriptionError(
            "<ros2_control>",
            f"kinematic redundancy: the mechanism has {total} degrees of freedom, {counted.kinematic_redundancy} more "
            f"than its platform ({counted.motion}), and {len(actuated)} drives, which hold {held} of them; redundant "
            "drives beside redundant joints are not supported",
            f"drive {total} joints that determine all others, or make joints fixed",
        )


def _check_platform(counted: Mobility, platform: str, others: Sequence[str]) -> None:
    """Refuse a platform beside a link that has all degrees of freedom, as on an H4: that one may have been meant."""
    if not others:
        return
    some = " or ".join(repr(name) for name in others[:2])
    raise DescriptionError(
        f"<pkm> platform_link {platform!r}",
        f"kinematic redundancy: the mechanism has {counted.total - counted.idle} degrees of freedom, "
        f"{counted.kinematic_redundancy} more than its platform ({counted.motion}), whose pose leaves them open",
        f"where {platform!r} is a part of an articulated platform, name as platform_link the link that has all degrees "
        f"of freedom: {some}; else name the joints whose positions count beside the pose, each by a <redundant joint>",
    )


class _Chosen:
    def __init__(
        self, model: ClosureModel, motions: Array, of_platform: Array, held: Array, platform: str, chain: Sequence[str]
    ) -> None:
        self.names: list[str] = []
        seen = np.vstack((of_platform, held)) @ motions
        V = np.linalg.svd(seen)[2]
        counting = V[: rank(seen)]  # motions without the idle ones
        self._idle = np.linalg.norm(motions @ V[rank(seen) :].T, axis=1) > RANK
        self._motions, self._seen = motions @ counting.T, of_platform @ motions @ counting.T
        self._carrier = {joint.child: joint for joint in model.joints}
        self._ground = {model.joints[0].parent, platform}
        self.row: dict[str, int] = {}  # coordinate of each degree of freedom that may be chosen
        self._joint: dict[str, Joint] = {}
        for joint in model.free:
            if joint.name in chain:
                continue
            for k, freedom in enumerate(freedoms(joint)):
                self.row[freedom.name] = model.slices[joint.name].start + k
                self._joint[freedom.name] = joint

    def take(self, name: str) -> None:
        """Add a joint, or one of its degrees of freedom; `DescriptionError` if it is no further coordinate."""
        label = f'<redundant joint="{name}">'
        meant = [one for one in self.row if name in (one, self._joint[one].name)]
        if not meant:
            raise DescriptionError(label, "no such joint", or_near(name, list(self.row), "name a moving joint"))
        for one in meant:
            if below := self._missing_below(one):
                problem = f"{below} carries it, and is not redundant itself"
                raise DescriptionError(label, problem, f"name {below} before it, or another joint")
            if not self._adds(one):
                problem = f"the platform's pose and {', '.join(self.names) or 'the other joints'} leave it no motion"
                raise DescriptionError(label, problem, "name a joint that can move while these stand still")
            self.add(one)

    def add(self, name: str) -> None:
        self._seen = np.vstack((self._seen, self._motions[self.row[name]]))
        self.names.append(name)

    def best(self) -> str:
        """The next one: driven rather than passive, of a joint with several rather than one, far out; or empty."""
        open_ = [name for name in self.row if name not in self.names and not self._missing_below(name)]
        able = [name for name in open_ if self._adds(name)]
        return min(able, key=self._order, default="")

    def _order(self, name: str) -> tuple[bool, bool, int]:
        joint = self._joint[name]
        return not joint.actuated, joint.type.dof == 1, -len(self._way(name))

    def _adds(self, name: str) -> bool:
        row = self.row[name]
        return not self._idle[row] and rank(np.vstack((self._seen, self._motions[row]))) > rank(self._seen)

    def _way(self, name: str) -> list[str]:
        """Degrees of freedom that carry one, down to base or platform, the nearest first."""
        joint = self._joint[name]
        names = [freedom.name for freedom in freedoms(joint)]
        way = names[: names.index(name)][::-1]
        while joint.parent not in self._ground:
            joint = self._carrier[joint.parent]
            way += [freedom.name for freedom in freedoms(joint)][::-1]
        return way

    def _missing_below(self, name: str) -> str:
        return next((one for one in reversed(self._way(name)) if one not in self.names), "")
