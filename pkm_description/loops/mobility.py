# SPDX-License-Identifier: Apache-2.0
"""Mobility: degrees of freedom of the closed mechanism, by the rank of its loop equations.

The Chebychev-Gruebler-Kutzbach count is wrong for overconstrained robots (parallelograms, translational robots with
revolute joints only), so the rank is taken numerically at general closed configurations near home; see
Gogu, "Mobility of mechanisms: a critical review", Mechanism and Machine Theory 40 (2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.joint_geometry import position_at
from pkm_description.loops.closure import RANK, ClosureModel, advance, null_space, rank
from pkm_description.loops.home import CLOSED, close
from pkm_description.mechanism import Array, Joint, JointType, Mechanism, Mobility, frozen
from pkm_description.rotations import inverse_transform, skew

SAMPLES = 4
MINOR = 0.25  # of the largest part of a direction
STRAY = 0.05  # rad, or in units of the characteristic length


@dataclass(frozen=True)
class _Freedoms:
    constraints: int
    total: int
    platform: int
    rotations: int
    left_when_locked: int  # the platform's degrees of freedom with every actuator held
    idle: int


def mobility(
    model: ClosureModel,
    home: Array,
    platform: str,
    actuated: Sequence[str],
    chain: Sequence[str] = (),
    accept_singular: bool = False,
) -> Mobility:
    """Count the degrees of freedom at a general configuration near `home` (size,), and compare with the actuators.

    Redundant actuation is allowed; `accept_singular` admits architecture singularities, robots singular everywhere
    although they have enough actuators. Raises `DescriptionError` where the platform cannot move or cannot be held.
    """
    at_home = _freedoms(model, home, platform, actuated)
    configurations = generic_configurations(model, home) or [home]
    nearby = [_freedoms(model, q, platform, actuated) for q in configurations]
    # In general position the loops have their highest rank; every sample that closed is a lower bound of it.
    generic = max(nearby, key=lambda f: (f.constraints, -f.left_when_locked))
    generic_configuration = configurations[nearby.index(generic)]
    loose = _loose(model, generic_configuration, platform, actuated)
    if generic.left_when_locked and not accept_singular:
        _check_ends(model, platform, actuated)
    _check_actuators(generic, len(configurations), actuated, platform, accept_singular, loose)
    equations = sum(6 - loop.type.dof for loop in model.loops)
    # The kind of the degrees of freedom may differ at a regular home: the legs of a robot that turn there without
    # sliding may couple the two elsewhere. Home is where the literature tells the kind.
    regular = replace(at_home, rotations=generic.rotations) == generic
    freed, size = _freed_rank(model, generic_configuration, platform, chain)
    return Mobility(
        platform=generic.platform,
        motion=_motion(at_home if regular else generic),
        total=generic.total,
        idle=generic.idle,
        gruebler=size - equations,
        redundant_constraints=equations - freed,
        left_out=size - freed - generic.total,
        actuators=len(actuated),
        singular_home=not regular,
        uncontrolled=generic.left_when_locked,
    )


def _motion(freedoms: _Freedoms) -> str:
    translations = freedoms.platform - freedoms.rotations
    return "".join(f"{count}{kind}" for count, kind in ((translations, "T"), (freedoms.rotations, "R")) if count)


def _freed_rank(model: ClosureModel, q: Array, platform: str, chain: Sequence[str]) -> tuple[int, int]:
    """Rank of the loop equations and number of coordinates with a free body for the virtual chain."""
    if not chain:
        return rank(model.closure(q)[1]), model.size
    base = next(joint.parent for joint in model.joints if joint.name == chain[0])
    floating = Joint("platform", JointType.FLOATING, base, platform, frozen(np.eye(4)), frozen((0.0, 0.0, 1.0)))
    joints = [floating] + [joint for joint in model.joints if joint.name not in chain]
    freed = ClosureModel(model.links, joints, model.loops, next(iter(model.link_index)))
    moved = np.zeros(freed.size)
    for joint in freed.free:
        if joint.name in model.slices:
            moved[freed.slices[joint.name]] = q[model.slices[joint.name]]
    target = model.pose_of(platform, q)
    origin = freed.pose_of(platform, moved)
    local = inverse_transform(origin) @ target
    moved[freed.slices["platform"]] = position_at(floating, local)
    return rank(freed.closure(moved)[1]), freed.size


def generic_configurations(
    model: ClosureModel, home: Array, within: float = CLOSED * 1e-2, samples: int = SAMPLES
) -> list[Array]:
    """Configurations (size,), closed `within` a dimensionless gap, in general position near home, if there are any."""
    random = np.random.default_rng(1)
    everything = np.ones(model.size, dtype=bool)
    found = []
    for _ in range(samples):
        motions = null_space(model.closure(home)[1])
        if motions.shape[1] == 0:
            break
        step = motions @ random.uniform(-1.0, 1.0, motions.shape[1])
        step *= STRAY / max(float(np.abs(step).max()), 1e-12)
        q, gap = close(model, model.closure, everything, advance(model, home, step))
        if gap < within:
            found.append(q)
    return found


def _freedoms(model: ClosureModel, q: Array, platform: str, actuated: Sequence[str]) -> _Freedoms:
    jacobian = model.closure(q)[1]
    motions = null_space(jacobian)
    platform_map, held = model.twist_map(platform, q), model.joint_map(actuated)
    locked = null_space(np.vstack((jacobian, held)))
    seen = np.vstack((platform_map, held))
    return _Freedoms(
        constraints=model.size - motions.shape[1],
        total=motions.shape[1],
        platform=rank(platform_map @ motions),
        rotations=rank(platform_map[3:] @ motions),
        left_when_locked=rank(platform_map @ locked),
        idle=motions.shape[1] - rank(seen @ motions),
    )


def _loose(model: ClosureModel, q: Array, platform: str, actuated: Sequence[str]) -> str:
    """Motion of the platform at held actuators in words, base axes; empty without."""
    locked = null_space(np.vstack((model.closure(q)[1], model.joint_map(actuated))))
    moves, sizes, _ = np.linalg.svd(model.twist_map(platform, q) @ locked)
    free = int((sizes > RANK).sum())
    return ", ".join(axes(move.tolist(), signed=False) for move in moves.T[:free])


def _check_ends(model: ClosureModel, platform: str, actuated: Sequence[str]) -> None:
    """Refuse a drive whose limb, of several joints, ends before it comes to the platform."""
    held = {platform} | {link for loop in model.loops for link in (loop.predecessor, loop.successor)}
    above = {joint.child: joint for joint in model.joints}
    for link in held.copy():
        while (joint := above.get(link)) is not None:
            link = joint.parent
            held.add(link)
    for joint in model.joints:
        below = [joint.child]
        for link in below:
            below += [one.child for one in model.joints if one.parent == link]
        alone = len(below) == 1 and joint.parent in held  # a wheel is no limb
        if joint.name not in actuated or joint.child in held or alone:
            continue
        raise DescriptionError(
            f'<link name="{below[-1]}">',
            f"{below[-1]} ends nowhere, so the drive {joint.name} does not act on the platform",
            "is its <loop> missing? Write one that joins it to another link, as other limbs have it",
        )


def _check_actuators(
    generic: _Freedoms, poses: int, actuated: Sequence[str], platform: str, accept_singular: bool, loose: str
) -> None:
    """Refuse a platform that its drives hold at none of the poses; `loose` is its motion there in words."""
    names = ", ".join(actuated)
    if generic.platform == 0:
        problem = "the loops leave it no degree of freedom (mobility 0)"
        remedy = "check directions of axes and types of loops: a closure removes too many degrees of freedom"
        raise DescriptionError(f"<pkm> platform_link {platform!r}", problem, remedy)
    if generic.left_when_locked == 0:
        return
    if generic.platform > len(actuated):
        raise DescriptionError(
            "<ros2_control>",
            f"wrong number of actuators: the platform has {generic.platform} degrees of freedom ({_motion(generic)}) "
            f"but {len(actuated)} joint(s) are actuated ({names})",
            "give more joints a command_interface, or remove degrees of freedom",
        )
    if accept_singular:
        return
    motion = _motion(generic)
    raise DescriptionError(
        "<ros2_control>",
        f"the actuated joints ({names}) leave the platform {generic.left_when_locked} of its "
        f"{generic.platform} degrees of freedom ({motion}), at all of {poses} poses around home; "
        f"with locked drives it still moves {loose}",
        "if a limb has no drive and another has several, actuate joints in other limbs; if each limb has "
        f"a drive, this is an architecture singularity: change the geometry: {hold_advice(motion)} "
        '(for a robot that is singular everywhere on purpose, write <pkm accept_singular="true">)',
    )


def whole_platforms(model: ClosureModel, q: Array, actuated: Sequence[str]) -> list[str]:
    """Links with all degrees of freedom that the drives hold, those with most joints and loops first."""
    ends = [link for joint in model.joints for link in (joint.parent, joint.child)]
    ends += [link for loop in model.loops for link in (loop.predecessor, loop.successor)]
    found = []
    for link in model.link_index:
        freedoms = _freedoms(model, q, link, actuated)
        if freedoms.left_when_locked == 0 and freedoms.platform + freedoms.idle == freedoms.total:
            found.append(link)
    return sorted(found, key=lambda link: -ends.count(link))


def beside_home(mechanism: Mechanism) -> Mechanism:
    """The same robot with a general home near its own; unchanged where none is found."""
    model = ClosureModel(mechanism.links, mechanism.joints, mechanism.loops, mechanism.base_link)
    home = model.reduced(mechanism.home_joints)
    found = generic_configurations(model, home)
    if not found:
        return mechanism
    q = max(found, key=lambda values: rank(model.closure(values)[1]))
    return replace(
        mechanism,
        home=frozen(model.pose_of(mechanism.platform_link, q)),
        home_joints=frozen(model.positions(q)),
    )


def check_gears(mechanism: Mechanism) -> None:
    """Refuse a mimic joint that takes a motion from the robot: solvers follow the loops, not gears."""
    # they may repeat what the loops imply, as the coupled arms of a Par2
    geared = [joint.name for joint in mechanism.joints if joint.mimic is not None]
    if not geared:
        return
    joints = [replace(joint, mimic=None) for joint in mechanism.joints]
    model = ClosureModel(mechanism.links, joints, mechanism.loops, mechanism.base_link)
    side = beside_home(mechanism)
    loose = _freedoms(model, model.reduced(side.home_joints), mechanism.platform_link, mechanism.actuated_joints)
    there = mechanism.mobility
    if loose.total <= there.total:
        return
    problem = f"the platform would have {loose.platform} degrees of freedom instead of {there.platform}"
    remedy = "remove <mimic> and drive both joints, or write the coupling as <loop>"
    if loose.platform == there.platform:
        problem = f"{loose.total - there.total} more joint(s) would move without the platform, such as rods that spin"
        remedy = "make such joints fixed, their inertia part of the rotor_inertia of the drive"
    raise DescriptionError(
        f'<joint name="{geared[0]}"> <mimic>',
        f"without {', '.join(geared)} as mimic joint(s) {problem}: the solvers use loops, not gears",
        remedy,
    )


def check_moves_mass(model: ClosureModel, home: Array, platform: str, actuated: Sequence[str]) -> None:
    """Refuse an actuated joint that can move without mass, whose effort is then meaningless.

    Massless links inside (universal crosses, virtual joints) are normal: the test is that the inertia of the closed
    mechanism, seen by platform and actuators at `home` (size,), is positive definite.
    """
    motions = null_space(model.closure(home)[1])
    poses, columns = model.forward(home)
    twists = model.twists(columns) * model.scale
    inertia = np.zeros((model.size, model.size))
    for link in model.links:
        body = link.inertial
        index = model.link_index.get(link.name)
        if index is None or body.massless:
            continue
        rotation = poses[index][:3, :3]
        com = poses[index][:3, :3] @ body.com + poses[index][:3, 3]
        linear = twists[index][:3] - skew(com) @ twists[index][3:]
        angular = twists[index][3:]
        inertia += body.mass * linear.T @ linear
        inertia += angular.T @ (rotation @ body.inertia @ rotation.T) @ angular
    for joint in model.free:
        if joint.drive is not None:
            at = model.slices[joint.name].start
            inertia[at, at] += joint.drive.armature * model.scale[at] ** 2
    projected = motions.T @ inertia @ motions
    values, vectors = np.linalg.eigh(projected)
    for value, vector in zip(values, vectors.T, strict=True):
        if value > 1e-10 * max(float(values.max(initial=0.0)), 1e-12):
            continue
        motion = motions @ vector
        for name in actuated:
            if abs(motion[model.slices[name]][0]) > 1e-3:
                child = next(joint.child for joint in model.joints if joint.name == name)
                problem = f"the actuated joint {name!r} can move without any mass"
                remedy = 'give the bodies that it moves an <inertial>, or write <pkm kinematics_only="true">'
                raise DescriptionError(f'<link name="{child}">', problem, remedy)


def axes(direction: Sequence[float], signed: bool = True) -> str:
    """A direction (6,), linear, then angular, in words: `along +x`; parts below `MINOR` of the largest are left out."""
    largest = max(abs(float(size)) for size in direction)  # not `signed`: a line without orientation
    names = [
        f"{('+' if size > 0.0 else '-') if signed else ''}{'xyz'[i % 3]}" if abs(size) > MINOR * largest else ""
        for i, size in enumerate(direction)
    ]
    parts = (("along", names[:3]), ("about", names[3:]))
    return " and ".join(f"{word} {' '.join(filter(None, part))}" for word, part in parts if any(part))


WEAK_ADVICE = {
    "3T": "for a Delta: incline the rods more, with a smaller platform, a wider base or a home nearer to the base",
    "3T3R": "for a hexapod, also hobby ones: incline the legs more, with a lower home or a base wider than the "
    "platform; "
    "place joints in pairs, close together on the platform, with the legs of each pair going to two pairs of the base",
}
"""How drives hold a platform better that they hold weakly, by its motion."""


def hold_advice(motion: str) -> str:
    """Remedy for a motion such as `3T3R`, to follow "change the geometry: "."""
    if "T" not in motion:
        return (
            "the drives hold a rotating platform by moments. The line of action of a rod must not "
            "pass through the centre of rotation, and no two rods may produce moments about the same axis. An ankle "
            "needs rods on both sides, left and right, in front of or behind the ankle: together they pitch the foot, "
            "against each other they roll it"
        )
    return {
        "2T": "the lines of action of the two limbs must differ: the bars to the platform must form an angle",
        "3T": "the lines of action of the limbs must not all be parallel to one plane: give a Delta's limbs other "
        "directions around the base, or a platform smaller than the base, so that the rods incline",
        "2T1R": "the lines of action of three limbs in the plane must not meet in one point or be parallel: "
        "base and platform must not be similar triangles with joints in the same order and direction",
        "3T3R": "the joint centres of a Gough-Stewart platform must not be similar polygons on circles of base and "
        "platform: place legs in pairs on the base, and in other pairs on the platform. In other robots of six "
        "degrees of freedom, no line may meet the lines of action of all rods",
    }.get(motion, "the lines of action of the drives must be independent: choose other joint centres or directions")
