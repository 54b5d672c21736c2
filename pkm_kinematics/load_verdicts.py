# SPDX-License-Identifier: Apache-2.0
"""Verdicts on what a robot weighs and what its drives carry: masses, velocity limits, the weight at home."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

from pkm_description.graph import rigid_with
from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, JointType, Mechanism
from pkm_description.picture import link_poses
from pkm_description.urdf.unit_slips import FAST, FAST_SLIDE
from pkm_kinematics.kinematics import Kinematics
from pkm_kinematics.verdicts import NEAR_SINGULAR, Verdict, hold_at
from pkm_runtime.describable import alike, listed

DENSE = 1000.0  # kg/m^3, water's: robots, with the air between their limbs, have less than a third of it
LITTLE_LEFT = 0.8  # share of an effort limit: the rest is what a controller and a motion need


def of_masses(mechanism: Mechanism) -> Iterator[Verdict]:
    """Warnings of masses that look like grams, and of a platform without any; no mass at all is fine, but told."""
    total = float(sum(link.inertial.mass for link in mechanism.links))
    if total == 0.0:
        yield Verdict(
            "ok",
            "masses",
            0.0,
            "no link has a mass; efforts and a simulated machine need masses, kinematics and the position law do not",
            "give the links <inertial>",
        )
        return
    width = _width(mechanism)
    if total > DENSE * width**3:
        heaviest = max(mechanism.links, key=lambda link: link.inertial.mass)
        yield Verdict(
            "warning",
            "masses",
            total,
            f"{total:.4g} kg in a robot {width:.2g} m wide, more than a cube of water of this width: the unit "
            "looks like grams "
            f'(heaviest: <link name="{heaviest.name}">, {heaviest.inertial.mass:.4g})',
            f"write masses in kg: {heaviest.inertial.mass:g} g are {heaviest.inertial.mass / 1e3:g}; inertias in "
            "kg m^2",
        )
    yield from _of_driven_bodies(mechanism)
    rigid = rigid_with(mechanism.joints, mechanism.platform_link, mechanism.loops)
    if not any(mechanism.link_named[name].inertial.mass for name in rigid):
        yield Verdict(
            "warning",
            f'<link name="{mechanism.platform_link}">',
            0.0,
            "the platform has no mass; weight, efforts and the simulated machine omit it",
            "give it <inertial>; if masses do not matter, give none to any link",
        )


def _of_driven_bodies(mechanism: Mechanism) -> Iterator[Verdict]:
    """A warning of driven sliders and arms without mass: they move as fast as their drives, and load them most."""
    without = []
    for name in mechanism.actuated_joints:
        joint = mechanism.joint_named[name]
        moved = [
            mechanism.link_named[link].inertial for link in rigid_with(mechanism.joints, joint.child, mechanism.loops)
        ]
        if all(body.massless for body in moved) and not (joint.drive and joint.drive.armature):
            without.append(joint)
    if without:
        slides = all(joint.type is JointType.PRISMATIC for joint in without)
        one = len(without) == 1
        yield Verdict(
            "warning",
            f'<link name="{without[0].child}">',
            0.0,
            f"the {'slider' if slides else 'driven body'} of {listed(joint.name for joint in without)} has no "
            "mass: the "
            f"efforts of {'this drive' if one else 'these drives'} omit its acceleration, often the largest part",
            "give it <inertial>, or give its joint rotor_inertia and gear_ratio in <ros2_control>",
        )


def of_velocities(mechanism: Mechanism) -> Iterator[Verdict]:
    """Warnings of velocity limits of drives that look like degrees or millimetres per second."""
    for name in mechanism.actuated_joints:
        joint = mechanism.joint_named[name]
        limit = joint.limits.velocity
        if not np.isfinite(limit):
            continue
        about = f'<joint name="{name}"> <limit>'
        if joint.type is JointType.PRISMATIC and limit > FAST_SLIDE:
            meaning, remedy = f"{limit:g} m/s: the unit looks like mm/s", f"{limit:g} mm/s are {limit / 1e3:g}"
        elif joint.type is not JointType.PRISMATIC and limit > FAST:
            turns = limit * 60.0 / (2.0 * np.pi)
            meaning = f"{limit:g} rad/s, {turns:.0f} turns per minute at the joint: the unit looks like deg/s"
            remedy = f"{limit:g} deg/s are {np.radians(limit):.6g}; with a gear, divide by its ratio"
        else:
            continue
        yield Verdict("warning", about, limit, meaning, f"write velocities in m/s and rad/s: {remedy}")


def of_weight(kinematics: Kinematics) -> Iterator[Verdict]:
    """The verdict on whether the drives carry the robot at home within limits; none if weightless or singular."""
    mechanism = kinematics.mechanism
    hold = hold_at(kinematics, kinematics.home)
    if hold is None or hold.independence < NEAR_SINGULAR:
        return
    limits = np.array([mechanism.joint_named[name].limits.effort for name in kinematics.actuated_names])
    efforts = weight_at_home(kinematics, limits)
    if efforts is None or not np.abs(efforts).max() > 1e-9:
        return
    efforts[np.abs(efforts) < 1e-6 * np.abs(efforts).max()] = 0.0  # rounding
    least, most = _one_way_bounds(mechanism)
    slack = 1e-6 * float(np.abs(efforts).max())
    if np.any((efforts < least - slack) | (efforts > most + slack)):
        yield _not_held_one_way(kinematics)
        return
    own = np.where(efforts < 0.0, -mechanism.effort_range[0], mechanism.effort_range[1])  # of the side that is asked
    limits = np.where(own > 0.0, own, limits)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(np.isfinite(limits), np.abs(efforts) / limits, 0.0)
    rows = {}
    for name, effort, limit, share in zip(kinematics.actuated_names, efforts, limits, shares, strict=True):
        of = f" of {limit:.4g}" if np.isfinite(limit) else ""
        percent = f" ({share:.0%})" if np.isfinite(limit) else ", no limit"
        rows[name] = f"{effort:.3g}{of} {mechanism.joint_named[name].effort_unit}{percent}"
    largest = float(shares.max())
    if largest > 1.0:
        ending = "; the drives cannot carry the robot at home"
    elif largest > LITTLE_LEFT:
        ending = f"; more than {LITTLE_LEFT:.0%} of a limit; little is left for motions"
    else:
        ending = ""
    shared = ", evenly shared," if mechanism.mobility.redundant_actuators else ""
    yield Verdict(
        "warning" if ending else "ok",
        "weight at home",
        largest if np.isfinite(limits).any() else None,
        f"the drives carry the weight{shared} with {'; '.join(alike(rows))}{ending}",
        "use stronger drives or gears, less mass, or springs and counterweights; "
        "check units: masses are in kg, efforts at the joint in N m and N"
        if ending
        else "",
    )


# of drives that only pull or only push, the side of least effort
def _one_way_bounds(mechanism: Mechanism) -> tuple[Array, Array]:
    least, most = mechanism.effort_range
    one_way = mechanism.one_way_actuators
    return np.where(one_way & (least >= 0.0), least, -np.inf), np.where(one_way & (most <= 0.0), most, np.inf)


def _not_held_one_way(kinematics: Kinematics) -> Verdict:
    mechanism = kinematics.mechanism
    rows = {
        name: f"{least:.4g} to {most:.4g} {mechanism.joint_named[name].effort_unit}"
        for name, least, most, one_way in zip(
            kinematics.actuated_names, *mechanism.effort_range, mechanism.one_way_actuators, strict=True
        )
        if one_way
    }
    return Verdict(
        "warning",
        "weight at home",
        None,
        f"no efforts within the ranges of the drives hold the robot at home, where some only pull or only push: "
        f"{'; '.join(alike(rows))}",
        "place cables on the side that the weight pulls away from, so that all can be taut together, or move <home>",
    )


def weight_at_home(kinematics: Kinematics, limits: Array) -> Array | None:
    """Efforts (n_actuated,) [N m or N] that hold the robot still at home, by virtual work; None if home is singular.

    Redundant drives, cables pulling, keep the largest share of `limits` least; if one is infinite, by least squares.
    """
    K = kinematics.at(kinematics.home).motion_jacobian
    lift = _lift(kinematics)
    if not (np.isfinite(K).all() and np.isfinite(lift).all()):
        return None
    efforts = np.asarray(np.linalg.lstsq(K.T, lift, rcond=None)[0], dtype=np.float64)
    n = len(efforts)
    one_way = bool(kinematics.mechanism.one_way_actuators.any())
    if not (np.isfinite(limits).all() and (limits > 0.0).all()):
        limits = np.ones(n) if one_way else limits[:0]
    if n > K.shape[1] and len(limits):
        # minimise s with K^T tau = lift and |tau_i| <= s limit_i
        bounds = np.block([[np.eye(n), -limits[:, None]], [-np.eye(n), -limits[:, None]]])
        found = linprog(
            np.eye(n + 1)[n],
            A_ub=bounds,
            b_ub=np.zeros(2 * n),
            A_eq=np.column_stack([K.T, np.zeros(K.shape[1])]),
            b_eq=lift,
            bounds=[*zip(*_one_way_bounds(kinematics.mechanism), strict=True), (None, None)],
        )
        if found.success:
            efforts = np.asarray(found.x[:n], dtype=np.float64)
    return efforts


def _lift(kinematics: Kinematics) -> Array:
    """How fast the potential energy grows (n_freedoms,) [W] in each motion at home, redundant joints last."""
    mechanism = kinematics.mechanism
    names = [freedom.name for joint in mechanism.joints for freedom in freedoms(joint)]
    column = {name: k for k, name in enumerate(kinematics.joint_names)}
    order = [column[name] for name in names]
    step = 1e-6
    found = []
    S, r = kinematics.subspace(kinematics.home).T, len(kinematics.redundant_names)
    for twist in np.block([[S, np.zeros((len(S), r))], [np.zeros((r, 6)), np.eye(r)]]):
        rates = np.asarray(kinematics.motion(kinematics.home, twist).velocities)[order]
        along = step * rates / max(1.0, float(np.abs(rates).max()))
        there, back = (_potential(mechanism, mechanism.home_joints + sign * along) for sign in (1.0, -1.0))
        found.append((there - back) / (2.0 * step) * max(1.0, float(np.abs(rates).max())))
    return np.array(found)


def _potential(mechanism: Mechanism, joints: Array) -> float:
    """Potential energy of weight and springs [J] with joints (n,) in the order of `mechanism.home_joints`."""
    poses = link_poses(mechanism, joints)
    energy = 0.0
    for link in mechanism.links:
        place = poses[link.name] @ np.append(link.inertial.com, 1.0)
        energy -= link.inertial.mass * float(mechanism.gravity @ place[:3])
    for spring in mechanism.springs:
        first = poses[spring.from_link] @ np.append(spring.from_point, 1.0)
        second = poses[spring.to_link] @ np.append(spring.to_point, 1.0)
        stretch = float(np.linalg.norm(second - first)) - spring.rest_length
        energy += (0.5 * spring.stiffness * stretch + spring.preload) * stretch
    sprung = [joint for joint in mechanism.joints for _ in freedoms(joint)]
    for joint, position in zip(sprung, joints, strict=True):
        energy += 0.5 * joint.spring_stiffness * (float(position) - joint.spring_reference) ** 2
    return energy


def _width(mechanism: Mechanism) -> float:
    """How wide the robot is at home [m]: the diagonal of the box around its links' frames and centres of mass."""
    poses = link_poses(mechanism)
    points = [pose[:3, 3] for pose in poses.values()]
    points += [(poses[link.name] @ np.append(link.inertial.com, 1.0))[:3] for link in mechanism.links]
    return float(np.linalg.norm(np.ptp(points, axis=0)))
