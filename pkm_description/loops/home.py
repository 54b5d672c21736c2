# SPDX-License-Identifier: Apache-2.0
"""Home configuration: coordinates of all joints that close all loops with the platform at its home pose.

Whether loops can close at all is tested first, by the lengths of their bodies. Between the points about which its
joints turn, a loop is a closed polygon with sides as long as the bodies, or as slides let them be. It closes only if no
side is longer than all others together. Axis directions and ranges of turning joints are ignored: a loop that passes
need not close, one that fails cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
import scipy  # whose parts load when they are first used

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import freedoms
from pkm_description.loops.closure import ClosureModel, advance
from pkm_description.mechanism import Array, Joint, JointType, Limb, Link, Loop, LoopType
from pkm_description.rotations import inverse_transform

# Loops count as closed below this gap, relative to the robot's characteristic length (and in rad).
CLOSED = 1e-9
# A best gap below this comes from rounded numbers in an overconstrained robot, not from an unreachable pose.
ROUNDED = 1e-3
NEARLY_CLOSED = 0.05  # what the parts of a machine that are not as drawn may leave open
_AS_BUILT = "; where parts are not as drawn, as they were built, keep the drawing and give corrections (pkm calibrate)"
STARTS = 60
BRANCH_STARTS = 6  # for the platform's own branch: six joints at most that hardly miss a pose that they can take
ITERATIONS = 60
WITHIN_LIMITS = 1e-6  # rad, and of the characteristic length: a joint this little outside its range is at its end
WORK = 40_000  # joints placed, all evaluations together, after which no new start is tried; a robot takes some hundreds
LONGEST = 10.0  # s, after which no new start is tried either; the slowest of the gallery takes a fraction of one
Equations = Callable[[Array], tuple[Array, Array]]
TURNING = (LoopType.SPHERICAL, LoopType.UNIVERSAL, LoopType.REVOLUTE, LoopType.FIXED)  # cut joints that do not slide
MOST_SLIDES = 6  # in one side; beyond, their corners are too many to be worth the while


@dataclass(frozen=True)
class HomeRequest:
    """The description's data on home."""

    pose: Array | None  # (4, 4) of the platform in the base frame, if named
    joints: dict[str, float]  # where the search starts [m, rad], by names of degrees of freedom
    platform: str  # name of the platform link
    drives: tuple[str, ...]  # names of the actuated joints
    path: tuple[str, ...]  # names of the joints from base to platform
    limbs: tuple[Limb, ...]  # parts that can be closed one after another where the platform stands


class _Search:
    """Work counter of one search for home, so that a description without one is refused in bounded time."""

    def __init__(self, model: ClosureModel) -> None:
        self.model = model
        self.starts = 0
        self._left = WORK
        self._began = time.thread_time()

    @property
    def seconds(self) -> float:
        """Processor time used, so that a busy computer does not give up earlier."""
        return time.thread_time() - self._began

    @property
    def goes_on(self) -> bool:
        return self._left > 0 and self.seconds < LONGEST

    def counted(self, equations: Equations, joints: int) -> Equations:
        """The same equations with counted evaluations, each of which places so many joints."""

        def evaluated(q: Array) -> tuple[Array, Array]:
            self._left -= joints
            return equations(q)

        return evaluated


def find_home(model: ClosureModel, request: HomeRequest) -> Array:
    """Coordinates (size,) that close all loops at home; `DescriptionError` where limits or bodies prevent it.

    The search starts from the named coordinates, zero for the others (or mid-range where zero is outside), and takes
    the solution nearest to them: limb by limb where the platform's pose is named, which makes the limbs independent,
    then all at once.
    """
    _check_reach(model, request)
    start = _start(model, request)
    search = _Search(model)
    if request.pose is None:
        return _home_without_pose(search, request, start)
    target = request.pose

    def equations(values: Array) -> tuple[Array, Array]:
        return stacked(model.closure(values), model.pose_error(values, request.platform, target))

    q, closes = _limb_by_limb(search, request, start, target)
    gap = _gap(equations(q)[0])
    if closes:  # a limb that stays open alone does so among the others
        q, gap = _best(search, search.counted(equations, len(model.joints)), np.ones(model.size, dtype=bool), q, start)
    _check(search, request, q, gap, "the home pose of <pkm> <home>")
    return q


def _home_without_pose(search: _Search, request: HomeRequest, start: Array) -> Array:
    model = search.model
    everything = np.ones(model.size, dtype=bool)
    if _gap(model.closure(start)[0]) < CLOSED:
        return start
    # Drives that state where they start stay there if the loops allow it; else all joints may move.
    movable = everything.copy()
    for name in request.drives:
        if name in request.joints:
            movable[model.slices[name]] = False
    q, gap = start, np.inf
    closure = search.counted(model.closure, len(model.joints))
    if movable.any() and not movable.all():
        q, gap = _best(search, closure, movable, start, start)
    if gap > CLOSED:
        q, gap = _best(search, closure, everything, start, start)
    _check(search, request, q, gap, "the zero (or initial) configuration")
    return q


def _start(model: ClosureModel, request: HomeRequest) -> Array:
    q = np.zeros(model.size)
    for joint in model.free:
        block = model.slices[joint.name]
        limits = joint.limits
        if joint.type.dof == 1 and not limits.lower <= 0.0 <= limits.upper:
            ends = [end for end in (limits.lower, limits.upper) if np.isfinite(end)]
            q[block] = sum(ends) / len(ends)
        for k, freedom in enumerate(freedoms(joint)):
            q[block.start + k] = request.joints.get(freedom.name, q[block.start + k])
    return q


def _limb_by_limb(search: _Search, request: HomeRequest, start: Array, pose: Array) -> tuple[Array, bool]:
    """Bring the platform home, then close each limb alone: coordinates (size,), False if a limb stays open."""
    model = search.model
    named = {loop.name: loop for loop in model.loops}
    carrier = next((limb for limb in request.limbs if set(limb.joints) & set(request.path)), None)
    joints, loops = (request.path, ()) if carrier is None else (carrier.joints, carrier.loops)
    others = {link for limb in request.limbs if limb is not carrier for link in limb.links}
    inner = [one for name in loops if not {(one := named[name]).predecessor, one.successor} & others]

    def carried(values: Array) -> tuple[Array, Array]:
        return stacked(model.closure(values, inner), model.pose_error(values, request.platform, pose))

    alone = search.counted(carried, len(model.placed_for(inner)) + len(request.path))
    q, gap = _best(search, alone, _columns(model, joints), start, start, BRANCH_STARTS if carrier is None else STARTS)
    if carrier is None:
        _check_branch(search, request, pose, q, gap)
    arrived = gap < CLOSED
    for limb in request.limbs:
        if limb is carrier:
            continue
        columns = _columns(model, limb.joints)
        if columns.any() and limb.loops:
            own = [named[name] for name in limb.loops]
            equations = search.counted(partial(model.closure, loops=own), len(model.placed_for(own)))
            q, gap = _best(search, equations, columns, q, start)
            if arrived and gap > ROUNDED:
                return q, False
    return q, True


def _columns(model: ClosureModel, joints: Sequence[str]) -> Array:
    mask = np.zeros(model.size, dtype=bool)
    for name in joints:
        if name in model.slices:
            mask[model.slices[name]] = True
    return mask


def _check_branch(search: _Search, request: HomeRequest, pose: Array, q: Array, gap: float) -> None:
    """Refuse a pose that the platform's own branch cannot take, which no limb can mend."""
    model, what = search.model, "the home pose of <pkm> <home>"
    if gap > ROUNDED:
        miss = model.pose_error(q, request.platform, pose)[0]
        miss[np.abs(miss) < CLOSED] = 0.0
        joints = ", ".join(request.path)
        raise DescriptionError(
            "<pkm> <home>",
            f"{what} is unreachable: the joints of the platform's branch, {joints}, deviate from it by "
            f"{np.linalg.norm(miss[:3]) * model.length:.3g} m and {np.linalg.norm(miss[3:]):.3g} rad",
            "give a home pose within reach of these joints, or add the missing joints to the platform's branch",
        )
    _check_limits(model, q, [joint for joint in model.free if joint.name in request.path], what)


def _best(
    search: _Search, equations: Equations, columns: Array, q: Array, preferred: Array, starts: int = STARTS
) -> tuple[Array, float]:
    """The solution nearest to `preferred` by Newton's method from `q` and from random starts."""
    model = search.model
    lower, upper = bounds(model)
    best, best_gap = close(model, equations, columns, q)
    if best_gap < CLOSED and _within(best, lower, upper, model.scale):
        return best, best_gap
    random = np.random.default_rng(0)
    low = np.where(np.isfinite(lower), lower, -np.pi * model.scale)
    high = np.where(np.isfinite(upper), upper, np.pi * model.scale)
    found: list[Array] = []
    for attempt in range(starts):
        # Starts spread from the neighbourhood of the preferred configuration to the whole range.
        share = min(1.0, 2.0 * (attempt + 1) / starts)
        search.starts += 1
        drawn = preferred + share * (random.uniform(low, high) - preferred)
        # Every other start is kept inside the limits: it may get stuck there, or find what others jump over.
        box = (lower, upper) if attempt % 2 else None
        candidate, gap = close(model, equations, columns, np.where(columns, drawn, q), box)
        candidate = _wrapped(model, candidate, columns)
        if gap < CLOSED and _within(candidate, lower, upper, model.scale):
            found.append(candidate)
        if len(found) >= 8 or not search.goes_on:
            break
        if not (best_gap < CLOSED and _within(best, lower, upper, model.scale)) and (gap, 0) < (best_gap, 1):
            best, best_gap = (candidate, gap) if gap < best_gap else (best, best_gap)
    if not found:
        return best, best_gap
    distance = [float(np.linalg.norm((entry - preferred) / model.scale)) for entry in found]
    nearest = found[int(np.argmin(distance))]
    return nearest, _gap(equations(nearest)[0])


def close(
    model: ClosureModel, equations: Equations, columns: Array, q: Array, box: tuple[Array, Array] | None = None
) -> tuple[Array, float]:
    """Solve equations by a damped Gauss-Newton method; returns coordinates (size,) and the largest residual.

    Steps are of minimal norm, so that undetermined coordinates stay near the start; redundant equations are harmless.
    `equations` give dimensionless residuals (m,) and their Jacobian (m, size), `columns` (size,) marks movable
    coordinates, and `box` are the limits (size,) of the iterates.
    """
    residual, jacobian = equations(q)
    gap = _gap(residual)
    damping = 1e-2
    for _ in range(ITERATIONS):
        if gap < 1e-14:
            break
        active = jacobian[:, columns]
        step = np.zeros(model.size)
        if gap > 1e-6:
            damped = active @ active.T + max(1e-12, damping * min(1.0, gap)) * np.eye(len(residual))
            step[columns] = -active.T @ np.linalg.solve(damped, residual)
        else:
            step[columns] = np.linalg.lstsq(active, -residual, rcond=1e-9)[0]
        longest = np.abs(step).max(initial=0.0)
        if longest > 0.6:
            step *= 0.6 / longest
        trial = advance(model, q, step)
        if box is not None:
            trial = np.clip(trial, *box)
        trial_residual, trial_jacobian = equations(trial)
        trial_gap = _gap(trial_residual)
        if np.linalg.norm(trial_residual) < np.linalg.norm(residual):
            stalled = np.linalg.norm(trial_residual) > 0.999 * np.linalg.norm(residual)
            q, residual, jacobian, gap = trial, trial_residual, trial_jacobian, trial_gap
            damping = max(damping * 0.2, 1e-12)
            if stalled and damping < 1e-8:
                break
        else:
            damping *= 10.0
            if gap < 1e-11 or damping > 1e6:
                break
    return q, gap


def _gap(residual: Array) -> float:
    return float(np.abs(residual).max(initial=0.0))


def stacked(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """Two sets of equations as one."""
    return np.concatenate((first[0], second[0])), np.vstack((first[1], second[1]))


def bounds(model: ClosureModel) -> tuple[Array, Array]:
    """Lower and upper limits [m, rad] (size,) of all coordinates, infinite where there are none."""
    lower, upper = np.full(model.size, -np.inf), np.full(model.size, np.inf)
    for joint in model.free:
        if joint.type.dof == 1:
            lower[model.slices[joint.name]] = joint.limits.lower
            upper[model.slices[joint.name]] = joint.limits.upper
    return lower, upper


def _within(q: Array, lower: Array, upper: Array, scale: Array) -> bool:
    slack = WITHIN_LIMITS * scale
    return bool(((q >= lower - slack) & (q <= upper + slack)).all())


def _wrapped(model: ClosureModel, q: Array, columns: Array) -> Array:
    wrapped = q.copy()
    for joint in model.free:
        for k, freedom in enumerate(freedoms(joint), start=model.slices[joint.name].start):
            if columns[k] and not freedom.slides:
                wrapped[k] = (q[k] + np.pi) % (2.0 * np.pi) - np.pi
    return wrapped


def _check_reach(model: ClosureModel, request: HomeRequest) -> None:
    """Refuse, before any search, loops whose bodies are too long or too short to close."""
    base = next(iter(model.link_index))
    placed = None if request.pose is None else (request.platform, request.pose)
    # Bodies of an overconstrained robot may be rounded: that is for the search, whose answer says so.
    gaps = list(unclosable(model.links, model.joints, model.loops, base, placed, ROUNDED * model.length))
    if not gaps:
        return
    worst = max(gaps, key=lambda gap: gap.needed - gap.available)
    others = f" ({len(gaps) - 1} more loop(s) alike)" if len(gaps) > 1 else ""
    home = "the home pose of <pkm> <home>" if request.pose is not None else "every configuration"
    raise DescriptionError(
        "<pkm> <home>" if request.pose is not None else f'<loop name="{worst.loop}">',
        f"{home} is unreachable: {worst.in_words()}{others}",
        "correct the geometry (origins, the ranges of prismatic joints) or the home pose; other start values do "
        "not help",
    )


def _check(search: _Search, request: HomeRequest, q: Array, gap: float, what: str) -> None:
    model = search.model
    if gap > CLOSED:
        worst, miss = _worst_loop(model, q)
        if gap < ROUNDED:
            raise DescriptionError(
                f'<loop name="{worst}">',
                f"it stays open by {miss:.3g} m or rad at home: the robot is overconstrained, and its numbers are "
                "rounded",
                f"write its lengths, directions and rpy angles with all digits (xacro can compute them){_AS_BUILT}",
            )
        raise DescriptionError(
            "<pkm> <home>" if request.pose is not None else f'<loop name="{worst}">',
            f'{what} is unreachable: <loop name="{worst}"> stays open by {miss:.3g} m or rad '
            f"(after {search.seconds:.1f} s and {search.starts} attempt(s))",
            "correct the geometry or the home pose, or start the search with <home><joint name= position= /></home>"
            + (_AS_BUILT if gap < NEARLY_CLOSED else ""),
        )
    _check_limits(model, q, model.free, what)


def _check_limits(model: ClosureModel, q: Array, joints: Sequence[Joint], what: str) -> None:
    lower, upper = bounds(model)
    for joint in joints:
        block = model.slices[joint.name]
        if not _within(q[block], lower[block], upper[block], model.scale[block]):
            raise DescriptionError(
                f'<joint name="{joint.name}">',
                f"its limits [{joint.limits.lower:g}, {joint.limits.upper:g}] make home unreachable: "
                f"from {what} it reaches {float(q[block][0]):.4g}",
                "widen the limits, move <home>, or start the search with <home><joint name= position= /></home>",
            )


def _worst_loop(model: ClosureModel, q: Array) -> tuple[str, float]:
    misses = [(_gap(model.closure(q, [loop])[0]), loop.name) for loop in model.loops]
    miss, name = max(misses)
    return name, miss * model.length


@dataclass(frozen=True)
class Gap:
    """A loop that cannot close: one of its sides is at least `needed` long [m], all the others at most `available`."""

    loop: str
    needed: float
    available: float
    side: tuple[str, ...]  # links that the long side is made of
    others: tuple[str, ...]  # links of the other sides

    def in_words(self) -> str:
        """What is too long and what too short."""
        one = len(self.side) == 1
        others = f"{', '.join(self.others)} {'spans' if len(self.others) == 1 else 'together span'}"
        return (
            f'in <loop name="{self.loop}"> {" and ".join(self.side)} {"spans" if one else "span"} at least '
            f"{self.needed:.4g} m between joints, while {others} at most {self.available:.4g} m"
        )


@dataclass
class _Side:
    """A side of the polygon: a vector from joint to joint, which slides can lengthen along directions of its frame."""

    links: list[str]
    start: Array
    frame: Array = field(default_factory=lambda: np.eye(4))  # of the link where the walk is, in the side's frame
    slides: list[tuple[Array, float, float]] = field(default_factory=list)
    end: Array = field(default_factory=lambda: np.zeros(3))

    def ended(self, end: Array) -> _Side:
        self.end = end
        return self

    def span(self) -> tuple[float, float]:
        rigid = self.end - self.start
        if not self.slides:
            return float(np.linalg.norm(rigid)), float(np.linalg.norm(rigid))
        directions = np.column_stack([a for a, _, _ in self.slides])
        lower, upper = (np.array([s[k] for s in self.slides]) for k in (1, 2))
        wide = lower < upper
        fixed = rigid + directions[:, ~wide] @ lower[~wide]
        least = float(np.linalg.norm(fixed))
        if wide.any():
            nearest = scipy.optimize.lsq_linear(directions[:, wide], -fixed, (lower[wide], upper[wide]))
            least = float(np.sqrt(2.0 * nearest.cost))
        if not (np.isfinite(lower) & np.isfinite(upper)).all() or len(self.slides) > MOST_SLIDES:
            return least, np.inf
        corners = product(*zip(lower, upper, strict=True))
        return least, max(float(np.linalg.norm(rigid + directions @ np.array(corner))) for corner in corners)


def unclosable(
    links: Sequence[Link],
    joints: Sequence[Joint],
    loops: Sequence[Loop],
    base: str,
    placed: tuple[str, Array] | None,
    allowance: float,
) -> Iterator[Gap]:
    """Gaps of loops that no positions close, more than `allowance` [m]; `placed` is the platform at home (4, 4)."""
    carrier = {joint.child: joint for joint in joints}

    def path(link: str) -> list[Joint]:
        found: list[Joint] = []
        while link in carrier and len(found) <= len(links):
            found.append(carrier[link])
            link = carrier[link].parent
        return found[::-1]

    for loop in loops:
        if loop.type not in TURNING:
            continue
        first, second = path(loop.predecessor), path(loop.successor)
        shared = 0
        while shared < min(len(first), len(second)) and first[shared] is second[shared]:
            shared += 1
        branches = [first[shared:], second[shared:]]
        if placed is not None and shared == 0:
            branches = [_with_placed(branch, path(placed[0]), base, *placed) for branch in branches]
        if any(joint.type in (JointType.PLANAR, JointType.FLOATING) for branch in branches for joint in branch):
            continue
        gap = _gap_of(loop, list(_sides(loop, *branches)), allowance)
        if gap is not None:
            yield gap


def _with_placed(branch: list[Joint], path: list[Joint], base: str, platform: str, pose: Array) -> list[Joint]:
    """A branch from the base with a fixed joint for the path to the platform, whose pose is known."""
    if not path or branch[: len(path)] != path:
        return branch
    return [Joint("home", JointType.FIXED, base, platform, pose, np.zeros(3)), *branch[len(path) :]]


def _sides(loop: Loop, up: Sequence[Joint], down: Sequence[Joint]) -> Iterator[_Side]:
    """Sides of a loop's polygon: from its cut joint up one branch, down the other, and back."""
    side = _Side([loop.predecessor], loop.predecessor_frame[:3, 3].copy())
    for joint in reversed(up):
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            yield side.ended(side.frame[:3, 3].copy())
            side = _Side([joint.parent], joint.origin[:3, 3].copy())
            continue
        if joint.type is JointType.PRISMATIC:
            side.slides.append((-side.frame[:3, :3] @ joint.axis, joint.limits.lower, joint.limits.upper))
        side.frame = side.frame @ inverse_transform(joint.origin)
        side.links.append(joint.parent)
    for joint in down:
        side.frame = side.frame @ joint.origin
        if joint.type in (JointType.REVOLUTE, JointType.CONTINUOUS):
            yield side.ended(side.frame[:3, 3].copy())
            side = _Side([joint.child], np.zeros(3))
            continue
        if joint.type is JointType.PRISMATIC:
            side.slides.append((side.frame[:3, :3] @ joint.axis, joint.limits.lower, joint.limits.upper))
        side.links.append(joint.child)
    yield side.ended((side.frame @ loop.successor_frame)[:3, 3])


def _gap_of(loop: Loop, sides: list[_Side], allowance: float) -> Gap | None:
    spans = [side.span() for side in sides]
    for k, (least, _) in enumerate(spans):
        available = sum(most for other, (_, most) in enumerate(spans) if other != k)
        if least > available + allowance:
            others = [link for i, side in enumerate(sides) if i != k and spans[i][1] > 0.0 for link in side.links]
            ends = tuple(dict.fromkeys((sides[k].links[0], sides[k].links[-1])))
            return Gap(loop.name, least, available, ends, tuple(dict.fromkeys(others)))
    return None
