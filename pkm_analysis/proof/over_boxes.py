# SPDX-License-Identifier: Apache-2.0
"""Bounds of quantities over boxes, from enclosures: of joints, regularity, errors of pose, and efforts at rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.domain import corners
from pkm_analysis.polytopes import all_signs
from pkm_analysis.proof.enclosures import Enclosure
from pkm_analysis.proof.matrices import MORE, TINY, Affine, Ball, least_norm, least_squares, less
from pkm_description.mechanism import Array
from pkm_kinematics import Configuration
from pkm_kinematics.status import closes


def joint_room(at: Configuration) -> Array:
    """Distance (n,) of the joints, the platform's branch included, from their limits; minus infinity out of reach."""
    lower, upper = at.engine.ranges.limits
    with np.errstate(invalid="ignore"):
        room = np.minimum(at.joints - lower, upper - at.joints).min(axis=-1)
    return np.where(closes(at.status), room, -np.inf)


def least_joint_room(found: Enclosure) -> Array:
    """Lower bounds (n,) of `joint_room`."""
    value, (lower, upper) = found.joints.value, found.encloser.program.limits
    with np.errstate(invalid="ignore"):
        below = np.where(np.isfinite(lower), value[..., 0] - lower, np.inf)
        above = np.where(np.isfinite(upper), upper - value[..., 1], np.inf)
    reached = np.where(found.reach[..., 0] > 0.0, np.inf, found.reach[..., 0] - TINY)
    parts = [below, above, reached, _coordinate_room(found)]
    least = np.where(found.decided, np.concatenate(parts, axis=1).min(axis=1, initial=np.inf), -np.inf)
    return np.where(_turned_alike(found, least > 0.0), least, -np.inf)


def _turned_alike(found: Enclosure, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the kinematics, too, find all corners of boxes inside: joints then have the same turns.

    They count a joint's turns on the straight way from home, which may pass a limb's base on either side: where ways
    differ in this, some of a box's corners are on each side.
    """
    alike, encloser = np.ones(len(found.boxes), dtype=np.bool_), found.encloser
    if asked.any():
        points = corners(found.boxes[asked])
        values = encloser.domain.values(points.reshape(-1, points.shape[2]))
        room = joint_room(encloser.kinematics.at(values, mode=encloser.mode)).reshape(points.shape[:2])
        alike[asked] = (room >= -1e-12).all(axis=1)
    return alike


def _coordinate_room(found: Enclosure) -> Array:
    """Distance of the coordinates from their limits (n, 2 c)."""
    engine = found.encloser.kinematics.engine
    lowest, highest = np.moveaxis(found.encloser.domain.bounds(found.boxes), -1, 0)
    chain = engine.task.chain[1:]
    lower, upper = (limit[chain["column"]] for limit in engine.ranges.limits)
    # Angles are read from poses: those nearest to home, of which three have two readings, half a turn apart.
    near = np.where(chain["prismatic"] == 1, np.inf, np.pi)
    if (chain["prismatic"] == 0).sum() == 3:
        near[int(np.argmin(chain["prismatic"]))] = 0.5 * np.pi
    lower, upper = np.maximum(lower, chain["home"] - near), np.minimum(upper, chain["home"] + near)
    rounding = 1e-15 * (np.abs(lowest) + np.abs(highest))
    return np.concatenate([lowest - lower - rounding, upper - highest - rounding], axis=1)


def least_regularity(found: Enclosure) -> Array:
    """Positive where there is no singularity of any type (n,): 1, 2, of the constraints, or inside a limb.

    With the actuators locked the closure equations determine all joints and the platform; actuator rates are bounded.
    """
    bounded = np.isfinite(found.joints.rate[:, : found.encloser.program.n_actuated]).all(axis=(1, 2, 3))
    return np.where(bounded, found.closure_system.regularity(), -np.inf)


def most_error(found: Enclosure, errors: Array, turning: bool) -> Array:
    """Upper bounds (n,) of the platform's error of orientation [rad] or position [m], to first order.

    `errors` (m,) are the largest of the sensors; of their signs the worst combination counts.
    """
    twists = found.encloser.twists
    part = twists[3:] if turning else twists[:3]
    moved = Ball.exactly(part) @ least_squares(found.rates, Affine.constant(np.diag(errors), found.half))
    sums = moved @ Ball.exactly(all_signs(len(errors)))
    return np.asarray(np.sqrt((sums.magnitude**2).sum(axis=-2)).max(axis=-1) * MORE)


def efforts_over(found: Enclosure, middle: Array) -> Ball:
    """Efforts (n, m) that hold the weight at rest: of least norm about `middle` (m,), over boxes."""
    energy = found.energy
    weight = Affine.of(energy.centre_rate[:, 0, :, None], energy.bend[:, 0, :, :, None], found.half)
    if not middle.any():
        return least_norm(found.rates, weight)[..., 0]
    missing = less(weight, found.rates.T, middle[:, None])
    return (least_norm(found.rates, missing) + Ball.exactly(middle[:, None]))[..., 0]


def least_spare(found: Enclosure, least: Array, most: Array) -> Array:
    """Lower bounds (n,) of the distance of efforts at rest from the ends of their ranges, `least` to `most` (m,).

    Redundant ones are distributed as by the controller: least norm within their ranges, and where the least norm itself
    is within these, it is that. Of winches, which only pull, it is proved that tensions within the ranges exist: their
    middle plus the missing part by least norm (Pott, Bruckmann and Mikelsons, "Closed-form force distribution for
    parallel wire robots", 2009). The size of the controller's own tensions is not proved, as the set of those at the
    ends of their ranges changes from pose to pose.
    """
    ends = np.where(np.isfinite(least), least, most), np.where(np.isfinite(most), most, least)
    tau = efforts_over(found, np.where((least >= 0.0) | (most <= 0.0), 0.5 * (ends[0] + ends[1]), 0.0))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.minimum(tau.lower - least, most - tau.upper).min(axis=-1))


def most_effort(found: Enclosure, least: Array, most: Array) -> Array:
    """Upper bounds (n,) of the largest effort at rest; infinite where ranges may change how drives share."""
    tau = efforts_over(found, np.zeros(len(least)))
    within = ((tau.lower >= least) & (tau.upper <= most)).all(axis=-1)
    return np.where(within, tau.magnitude.max(axis=-1), np.inf)
