# SPDX-License-Identifier: Apache-2.0
"""Limbs carried along with the platform on a straight way from home: see `pkm_kinematics.continuing`."""

from math import atan2, cos, inf, sin, sqrt

import numpy as np

from pkm_kinematics.kernels.compiled import allocating, compiled
from pkm_kinematics.kernels.forward import shift_pose
from pkm_kinematics.kernels.positions import CONVERGED, INVALID_INPUT, JOINT_LIMIT
from pkm_kinematics.kernels.solve import check_pose, solve_pose


@compiled
def displacement(home, pose, way):
    """way (6,) = shift of the origin and rotation vector, base frame, that lead straight from one pose to another."""
    a, b, c, d = -home[3], -home[4], -home[5], home[6]
    x, y, z, w = pose[3], pose[4], pose[5], pose[6]
    way[3] = w * a + x * d + y * c - z * b
    way[4] = w * b + y * d + z * a - x * c
    way[5] = w * c + z * d + x * b - y * a
    cosine = w * d - x * a - y * b - z * c
    sine = sqrt(way[3] * way[3] + way[4] * way[4] + way[5] * way[5])
    angle = 2.0 * atan2(sine, abs(cosine))
    scale = angle / sine if sine > 0.0 else 2.0
    for r in range(3):
        way[r] = pose[r] - home[r]
        way[3 + r] *= scale if cosine >= 0.0 else -scale


@allocating
def carry_on(
    bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
    body_column, chain_column, iterated, home, poses, size, step, jump, open_on_the_way, mode, q, ways, lengths, done,
):  # fmt: skip
    """Solve the limbs in steps from `home` (7,) towards poses (n, 7), as far as whole steps lead.

    On entry q (n, n_joints) holds the joint positions at home; on return those at the part `done` (n,) of the way, -1
    where the pose is not usable. Steps have a length of at most `step`, in rad, and of `size` [m]; one does not count
    where a limb does not reach (unless its loops may be `open_on_the_way`, as little as they can), or one of the
    turning joints `iterated` (bodies) turns by more than `jump`. Also returned are the displacements `ways` (n, 6) from
    home, and their `lengths` (n,).
    """
    pose = np.empty(7)
    for k in range(q.shape[0]):
        if not check_pose(poses[k], pose):
            done[k] = -1.0
            continue
        displacement(home, pose, ways[k])
        x, y, z, u, v, w = ways[k]
        lengths[k] = max(sqrt(x * x + y * y + z * z) / size, sqrt(u * u + v * v + w * w), 1e-12)
        for i in range(2, bodies.shape[0]):
            me = state[i]
            me.q = q[k, body_column[i]]
            me.c = cos(me.q)
            me.s = sin(me.q)
        for i in range(1, chain.shape[0]):
            chain_at[i].q = q[k, chain_column[i]]
        done[k] = 0.0
        while done[k] < 1.0:
            end = min(done[k] + step / lengths[k], 1.0)
            shift_pose(home, ways[k], end, pose)
            status, _, _ = solve_pose(
                bodies, closures, blocks, state, rows, work, chain, sliding, spread, tail, tail_point, chain_at,
                pose, mode,
            )  # fmt: skip
            followed = status in (CONVERGED, JOINT_LIMIT) or (open_on_the_way and status != INVALID_INPUT)
            for i in iterated:
                followed = followed and abs(state[i].q - q[k, body_column[i]]) <= jump
            if not followed:
                break
            for i in range(2, bodies.shape[0]):
                q[k, body_column[i]] = state[i].q
            for i in range(1, chain.shape[0]):
                q[k, chain_column[i]] = chain_at[i].q
            done[k] = end


@compiled
def choose_nearest(
    reached, arrived, columns, actuators, driven, last, last_driven, turning, clearly, blocked, q, seeds
):
    """For each limb take over the joint positions of the start whose actuated joints are nearest to q (n, n_actuated).

    `reached` (1 or n, s, n_joints) are those of s starts, `arrived` (1 or n, s) tells which did not end on the way, for
    which `blocked` is added. A start replaces one before it where it is nearer by the factor `clearly`. `columns` of a
    limb's joints, its `actuators` and their columns `driven` follow each other limb by limb, up to `last` and
    `last_driven`. What is taken over is written to seeds (n, n_joints).
    """
    for k in range(q.shape[0]):
        row = k if reached.shape[0] > 1 else 0
        first = 0
        first_driven = 0
        for limb in range(last.shape[0]):
            best = inf
            chosen = -1
            for s in range(reached.shape[1]):
                far = 0.0 if arrived[row, s] else blocked
                for j in range(first_driven, last_driven[limb]):
                    a = actuators[j]
                    off = reached[row, s, driven[j]] - q[k, a]
                    if turning[a]:
                        off = atan2(sin(off), cos(off))
                    far += abs(off)
                if far < clearly * best:
                    best = far
                    chosen = s
            if chosen >= 0:
                for j in range(first, last[limb]):
                    seeds[k, columns[j]] = reached[row, chosen, columns[j]]
            first = last[limb]
            first_driven = last_driven[limb]
