# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.round_trips [robot ...] [--poses N]`: pose to joints to pose, at random poses in every working mode.

Poses are drawn all over the box that the platform's own branch allows, singular neighbourhoods and joint limits
included; robots whose motion space turns with the pose get random actuator positions instead, and poses outside the
box are left out. For these, and where limbs are solved by iteration, poses lie at random places of the ways from home
to anywhere in the box, as what cannot be reached takes longest. Each pose that the limbs reach in one of the working
modes, taken in turn, is solved for its joints, and those for the pose again, from a start that is a little off. A trip
ends in one of these ways:

* *back*: the same pose to 1e-9 m and rad;
* *amplified*: another pose, but one whose actuated joints differ by less than 1e-12 rad or m, next to a singularity of
  type 2, which makes as much of rounding;
* *refused*: status SINGULAR, at a pose whose distance from a type 2 singularity is of the order of the start's error;
* *beyond*: another pose, because the start that was a little off belongs to another: the straight way of the actuators
  back from the pose does not lead to it either, but to a singularity or elsewhere;
* *needs seed*: limbs solved by iteration know their working mode from their joints; one in ten trips of such robots
  gets none to start from, and where the actuators do not tell the mode, another is taken. With joints it came back;
* *wrong*: anything else. There are to be none.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.tables import table
from pkm_description import load_mechanism, robot_names
from pkm_description.mechanism import Array
from pkm_kinematics import Kinematics, Status
from pkm_kinematics.status import closes

BACK = 1e-9  # m plus rad
CLOSED = 1e-12  # m, and 1 for directions
ASTRAY = 1e-4  # rad, and of the characteristic length: how far off the start is
NEAR_SINGULAR = 100.0 * ASTRAY  # relative singular value: refusals must be nearer to a singularity than this
CHUNK = 4000
UNSEEDED = 10  # every such trip of a robot with iterated limbs gets no joint positions to start from
HEADER = [
    "robot", "modes", "poses", "trips", "back", "amplified", "refused", "beyond", "needs seed", "wrong", "worst error",
    "worst gap", "time per trip",
]  # fmt: skip


@dataclass
class Tally:
    """What became of the trips of one robot. Errors are of trips that came back, gaps of all closed configurations."""

    robot: str
    modes: int = 0
    poses: int = 0
    trips: int = 0
    back: int = 0
    amplified: int = 0
    refused: int = 0
    beyond: int = 0
    needs_seed: int = 0
    wrong: int = 0
    error: float = 0.0
    gap: float = 0.0
    seconds: float = 0.0
    example: str = ""

    def cells(self) -> list[str]:
        counts = [self.modes, self.poses, self.trips, self.back, self.amplified, self.refused, self.beyond]
        counts += [self.needs_seed, self.wrong]
        per_trip = 1e6 * self.seconds / max(self.trips, 1)
        return [self.robot, *map(str, counts), f"{self.error:.1e}", f"{self.gap:.1e}", f"{per_trip:.0f} µs"]


def pose_error(found: Array, expected: Array) -> Array:
    """Distance [m] plus angle [rad] between poses (n, 7), exact for small ones; NaN stays NaN."""
    turn = np.sum(found[:, 3:] * expected[:, 3:], axis=1)
    across = np.linalg.norm(found[:, 3:] - np.sign(turn)[:, None] * expected[:, 3:], axis=1)
    return np.linalg.norm(found[:, :3] - expected[:, :3], axis=1) + 4.0 * np.arcsin(np.minimum(0.5 * across, 1.0))


class Traveller:
    """Draws poses of one robot, and starts a little off them."""

    def __init__(self, kinematics: Kinematics, seed: int) -> None:
        self.kinematics = kinematics
        self.rng = np.random.default_rng(seed)
        mechanism = kinematics.mechanism
        limits = [mechanism.joint_named[name].limits for name in self._names()]
        home = dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True))
        reach = 2.0 * kinematics.characteristic_length
        centre = np.array([home[name] for name in self._names()])
        lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
        self.centre = centre
        self.low = np.where(np.isfinite(lower), lower, centre - reach)
        self.high = np.where(np.isfinite(upper), upper, centre + reach)

    def _names(self) -> tuple[str, ...]:
        k = self.kinematics
        return k.task.names if k.constant_space and k.task.names else k.actuated_names

    def poses(self, n: int) -> Array:
        """Random poses (n, 7); NaN where there is none."""
        drawn = self.rng.uniform(self.low, self.high, (n, len(self.low)))
        if self.kinematics.engine.iterated or not self.kinematics.constant_space:
            drawn = self.centre + self.rng.uniform(0.0, 1.0, (n, 1)) * (drawn - self.centre)
        k = self.kinematics
        if self._names() == k.task.names:
            return k.engine.inputs.poses_at(drawn)
        found = k.forward(drawn)
        limits = [k.mechanism.joint_named[name].limits for name in k.task.names]
        branch = found.joints[:, [k.joint_names.index(name) for name in k.task.names]]
        inside = (branch >= [x.lower for x in limits]) & (branch <= [x.upper for x in limits])
        return np.where(inside.all(axis=1, keepdims=True), found.pose, np.nan)

    def beside(self, poses: Array, joints: Array, actuated: Array) -> Array:
        """Starts (n, 7) a little off the poses, within the limbs' reach; the pose itself where there is none."""
        k = self.kinematics
        if k.constant_space:
            S = k.task.subspace
            twist = ASTRAY * (self.rng.uniform(-1.0, 1.0, (len(poses), S.shape[1])) @ S.T)
            twist[:, :3] *= k.characteristic_length
            starts = moved(poses, twist)
            reached = np.isin(k.inverse(starts, seed=joints).status, (Status.CONVERGED, Status.JOINT_LIMIT))
            return np.where(reached[:, None], starts, poses)
        unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
        off = k.forward(actuated + ASTRAY * unit * self.rng.uniform(-1.0, 1.0, actuated.shape), near=poses)
        return np.where(closes(off.status)[:, None], off.pose, poses)


def moved(poses: Array, twists: Array) -> Array:
    """Poses (n, 7) displaced by small twists (n, 6): linear, then angular, base frame."""
    half = 0.5 * twists[:, 3:]
    w = np.sqrt(1.0 - np.sum(half * half, axis=1))
    v, s = poses[:, 3:6], poses[:, 6]
    vector = w[:, None] * v + s[:, None] * half + np.cross(half, v)
    scalar = w * s - np.sum(half * v, axis=1)
    return np.column_stack([poses[:, :3] + twists[:, :3], vector, scalar])


def travel(kinematics: Kinematics, name: str, poses: int, seed: int = 0, all_modes: bool = False) -> Tally:
    """Round trips from `poses` reachable poses: each in one working mode, in turn, or in all of them."""
    started = time.process_time()
    tally = Tally(name, kinematics.n_modes)
    traveller = Traveller(kinematics, seed)
    drawn = 0
    chunk = min(CHUNK, max(2 * poses, 20))
    while tally.poses < poses:
        some = traveller.poses(chunk)
        drawn += chunk
        if drawn > 400 * poses + 100 * CHUNK:
            raise RuntimeError(f"{name}: hardly any pose of {drawn} can be reached")
        some = some[np.isfinite(some).all(axis=1)]
        reached = np.zeros(len(some), dtype=bool)
        turn = np.arange(len(some)) % kinematics.n_modes
        for mode in range(kinematics.n_modes):
            rows = np.arange(len(some)) if all_modes else np.flatnonzero(turn == mode)
            if not len(rows):
                continue
            solved = kinematics.inverse(some[rows], mode=mode)
            closed = (solved.status == Status.CONVERGED) | (solved.status == Status.JOINT_LIMIT)
            reached[rows] |= closed
            strange = ~closed & ~np.isin(solved.status, (Status.UNREACHABLE, Status.NOT_CONNECTED))
            if strange.any():
                tally.wrong += int(strange.sum())
                tally.example = tally.example or f"mode {mode}: inverse {solved.reason(int(np.argmax(strange)))}"
            tally.gap = float(np.maximum(tally.gap, solved.residual[closed].max(initial=0.0)))
            if closed.any():
                _trips(kinematics, traveller, tally, some[rows[closed]], solved.joints[closed], solved.actuated[closed])
        tally.poses += int(reached.sum())
    tally.seconds = time.process_time() - started
    return tally


def _trips(
    kinematics: Kinematics, traveller: Traveller, tally: Tally, poses: Array, joints: Array, actuated: Array
) -> None:
    starts = traveller.beside(poses, joints, actuated)
    # limbs solved by iteration know their working mode from their joints; now and then it is looked for
    blind = np.arange(len(poses)) % UNSEEDED == 0 if kinematics.engine.iterated else np.ones(len(poses), dtype=bool)
    pose, status = np.full(poses.shape, np.nan), np.zeros(len(poses), dtype=np.int64)
    if kinematics.modes.hidden:
        blind[:] = False  # branches of passive joints: here and there two of them meet the same actuator positions
    for rows, seed in ((blind, None), (~blind, joints[~blind])):
        if rows.any():
            found = kinematics.forward(actuated[rows], near=starts[rows], seed=seed)
            pose[rows], status[rows] = found.pose, found.status
    error = pose_error(pose, poses)
    back = closes(status) & (error < BACK)
    tally.trips += len(poses)
    tally.back += int(back.sum())
    tally.error = float(np.maximum(tally.error, error[back].max(initial=0.0)))
    refused = np.flatnonzero(status == Status.SINGULAR)
    refused = refused[near_singular(kinematics, poses[refused], joints[refused])]
    tally.refused += len(refused)
    back[refused] = True
    for k in np.flatnonzero(~back):
        outcome = Status(int(status[k])).name
        margin = kinematics.singularity(poses[k], seed=joints[k]).type2
        if closes(status[k]) and error[k] * margin < CLOSED:
            tally.amplified += 1
        elif closes(status[k]) and not _leads_back(kinematics, poses[k], joints[k], starts[k]):
            tally.beyond += 1
        elif kinematics.engine.iterated and blind[k] and _comes_back(kinematics, poses[k], joints[k], starts[k]):
            tally.needs_seed += 1
        else:
            tally.wrong += 1
            where = np.array2string(poses[k], precision=17, separator=", ").replace("\n", "")
            tally.example = tally.example or f"{outcome}, off by {error[k]:.3g}, at {where}, margin {margin}"


def _leads_back(kinematics: Kinematics, pose: Array, joints: Array, start: Array) -> bool:
    """True where the actuators' straight way from a configuration to where they stand at a start leads to that."""
    there = kinematics.inverse(start, seed=joints)
    found = kinematics.forward(there.actuated, near=pose, seed=joints)
    return bool(closes(found.status)) and float(pose_error(found.pose[None], start[None])[0]) < ASTRAY**2


def _comes_back(kinematics: Kinematics, pose: Array, joints: Array, start: Array) -> bool:
    """True where a trip with the joints as a seed comes back."""
    actuated = joints[kinematics.engine.actuated_column]
    found = kinematics.forward(actuated, near=start, seed=joints)
    return bool(closes(found.status)) and float(pose_error(found.pose[None], pose[None])[0]) < BACK


def near_singular(kinematics: Kinematics, poses: Array, joints: Array) -> NDArray[np.bool_]:
    """At which poses (n, 7) the inverse Jacobian is singular, or nearly, by the ratio of its singular values."""
    if not len(poses):
        return np.zeros(0, dtype=bool)
    K = kinematics.at(poses, seed=joints).motion_jacobian
    S = kinematics.subspace(poses, seed=joints) * np.repeat([1.0, kinematics.characteristic_length], 3)[:, None]
    finite = np.isfinite(K).all(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.nan_to_num(K / np.linalg.norm(S, axis=1)[:, None])
    values = np.linalg.svd(scaled, compute_uv=False)
    return np.asarray(finite & (values[:, -1] < NEAR_SINGULAR * values[:, 0]))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.round_trips", description=__doc__.split("\n")[0])
    parser.add_argument("robots", nargs="*", metavar="robot", help="robots of the gallery or files; all if none")
    parser.add_argument("--poses", type=int, default=2000, help="reachable poses per robot (default 2000)")
    parser.add_argument("--all-modes", action="store_true", help="every pose in every mode, not in one of them in turn")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = 0
    rows = []
    for name in options.robots or robot_names():
        kinematics = Kinematics(load_mechanism(name))
        travel(kinematics, name, 1)  # compiles what is not compiled yet
        tally = travel(kinematics, name, options.poses, options.seed, options.all_modes)
        rows.append(tally.cells())
        wrong += tally.wrong
        print(" | ".join(rows[-1]) + (f"\n    {tally.example}" if tally.wrong else ""), flush=True)
    print("\n" + table(HEADER, rows))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
