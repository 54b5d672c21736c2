# SPDX-License-Identifier: Apache-2.0
"""What a robot with displaced joints would have measured, beside what was measured, and the derivative of that.

At each row the drives say where the robot stands; that configuration is solved with the displaced loops, and what is
measured follows from it. Where drives are more than degrees of freedom, no configuration goes with all their readings:
it is then the one nearest to readings and measurements together, and what it leaves over is what calibrates, as for a
cable robot whose line lengths alone were read (variable projection: Golub and Pereyra, 1973).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_calibration.measurements import SIGMA, UNITS, MeasurementError, Measurements
from pkm_description.mechanism import Array
from pkm_description.rotations import rotation_from_rpy, rpy_from_rotation, skew, transform
from pkm_kinematics.geometric_parameters import GeometricParameter, GeometricParameters
from pkm_kinematics.graph_model import CLOSED, RANK, GraphModel, Placed, States, joined, rotation_vectors
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_runtime.chunks import map_chunks, slices
from pkm_runtime.errors import PkmError

OPEN = 1e-4  # of the robot's length: a loop open by more has no configuration
INNER = 30  # iterations of a configuration that readings determine only together
SETTLED = 1e-10  # of a dimensionless step
PIECES = 8  # of the way from home to a configuration
NEARLY = 1e-4  # a dimensionless step on this way that need not be taken
ROWS = 500  # of the measurements at a time, by which the memory is bounded


EXPECTED = {
    "m": 1e-3,
    "rad": 5e-3,
    "1": 1e-3,
}  # errors of a machine as people build them: scales of parameters
ASTRAY = 0.05  # of the robot's size: measurements this far from the drawing are not of this robot, or not in this frame
WEAK = 3.0  # times the error that is expected: measurements that are not further astray may be of a weak robot
ALIGNED = 0.3  # of the misfit: a measuring frame that leaves less was meant
SWAPPED = 0.3  # of the misfit: columns that leave less when exchanged were swapped
OTHERS = 10.0  # times the error that is expected of a joint: readings this far from the drawing are another joint's
SCALED = {"positions": ("x", "y", "z"), "distances": ("distance",)}  # kinds that one instrument measures
SOME = 6  # rows by which drives are judged that contradict each other
AWAY = 20.0  # of the robot's size, or rad: no drive is that far from home
MIRRORED = 0.5  # of what a measuring frame leaves: exchanged columns that leave less are the cause


class MeasuredRobot:
    """Measurements of a robot as residuals over its geometric parameters.

    What was measured comes as numbers, `rows` (m,) to which they belong, `kinds` (m,) and standard deviations `sigma`
    (m,) [m, rad]. `frame` (4, 4) is the measuring frame in the base frame; predictions are made in it.
    """

    def __init__(
        self,
        parameters: GeometricParameters,
        measured: Measurements,
        frame: Array | None = None,
        nominal: States | None = None,
    ) -> None:
        self.parameters, self.measured = parameters, measured
        self.mechanism = parameters.mechanism
        refuse_redundant(self.mechanism.redundant_joints, "calibration")
        self.model = parameters.model
        self.frame = np.eye(4) if frame is None else frame
        self.drives = self.model.columns_of(self.mechanism.actuated_joints)
        self.redundant = len(self.drives) > self.mechanism.mobility.platform
        self.nominal = self._nominal() if nominal is None else nominal
        self._list()

    def _list(self) -> None:
        one, n = self.measured, len(self.measured)
        kinds, rows, sigma = [], [], []

        def add(kind: str, unit: str, there: NDArray[np.bool_]) -> None:
            at = np.flatnonzero(there)
            rows.append(at)
            kinds.extend([kind] * len(at))
            wide = one.of_z[at] if kind == "z" and one.of_z is not None else one.sigma.get(kind, SIGMA[unit])
            sigma.append(np.broadcast_to(wide, len(at)))

        if self.redundant:
            for k, name in enumerate(self.mechanism.actuated_joints):
                add(name, self._unit(int(self.drives[k])), np.ones(n, dtype=bool))
        for name, values in one.joints.items():
            add(name, self._unit(self.model.column[name]), np.isfinite(values))
        for axis, name in enumerate("xyz"):
            add(name, "m", np.isfinite(one.position[:, axis]))
        for name in ("yaw", "pitch", "roll"):
            add(name, "rad", np.isfinite(one.attitude[:, 0, 0]))
        add("distance", "m", np.isfinite(one.distance))
        self.kinds, self.rows, self.sigma = np.array(kinds), np.concatenate(rows), np.concatenate(sigma)

    def _unit(self, column: int) -> str:
        return "m" if self.model.slides[column] else "rad"

    # -- configurations ---------------------------------------------------------------------------------------------

    @cached_property
    def _unmoved(self) -> GraphModel:
        return self.model.drawing()

    def _nominal(self) -> States:
        """Configurations of the drawing at the readings of the drives, followed from home."""
        if self.redundant:
            return self._nearest_to_drives(self._unmoved.home(len(self.measured)), self.measured.drives)
        states, closes = followed(self._unmoved, self.drives, self.measured.drives)
        open_ = np.flatnonzero(~closes)
        if len(open_):
            lines = ", ".join(str(self.measured.lines[k]) for k in open_[:5])
            raise PkmError(
                f"{self.measured.source}, line {lines}{' and more' if len(open_) > 5 else ''}: the drawing has "
                f"no configuration for these drive readings; {self._other_unit()}"
            )
        return states

    def _other_unit(self) -> str:
        """What may be wrong with the readings of the drives: a unit or two columns, where all then stand."""
        slides = np.asarray(self.model.slides, dtype=bool)[self.drives]
        for unit, factor, kind in (("deg", math.pi / 180.0, ~slides), ("mm", 1e-3, slides)):
            scaled = np.where(kind, factor, 1.0) * self.measured.drives
            if kind.any() and followed(self._unmoved, self.drives, scaled)[1].all():
                return f"in {unit} all readings have one: write [{unit}] in the header"
        found = [
            (float(np.nan_to_num(_miss(_points(there), there.measured.position))), names)
            for names, there in _with_drives_exchanged(self)
        ]
        if found and min(found)[0] < ASTRAY * self.model.length:
            return f"columns {min(found)[1]} look swapped: swap their names"
        return "is this another robot, another zero, or another unit?"

    @staticmethod
    def standing(parameters: GeometricParameters, measured: Measurements) -> tuple[States | None, NDArray[np.bool_]]:
        """Configurations of the drawing at the readings, None for redundant drives, and where (n,) there are such."""
        mechanism = parameters.mechanism
        drives = parameters.model.columns_of(mechanism.actuated_joints)
        if len(drives) > mechanism.mobility.platform:
            return None, np.ones(len(measured), dtype=bool)
        return followed(parameters.model.drawing(), drives, measured.drives)

    def _nearest_to_drives(self, states: States, wanted: Array) -> States:
        model = self._unmoved
        states, _ = model.closed(states)
        start = states.q[:, self.drives].copy()
        for piece in range(1, PIECES + 1):
            target = start + piece / PIECES * (wanted - start)
            for _ in range(INNER):
                placed = model.placed(states)
                J = model.closure(placed)[1]
                N = self._motions(model, J)
                miss = (target - states.q[:, self.drives]) / model.scale[self.drives]
                along = np.einsum("nij,nj->ni", np.linalg.pinv(N[:, self.drives]), miss)
                step = np.einsum("nij,nj->ni", N, along)
                states, _ = model.closed(states.moved(step * model.scale))
                if np.abs(step).max(initial=0.0) < (1e-9 if piece == PIECES else NEARLY):
                    break
        return states

    @staticmethod
    def _motions(model: GraphModel, J: Array) -> Array:
        """Bases (n, size + 6, k) of what the loops allow, dimensionless; all of the same dimension."""
        width = model.size + (6 if model.free_platform else 0)
        if model.regular:
            found = np.zeros((len(J), model.size + 6, width - J.shape[1]))
            found[:, :width] = np.linalg.qr(np.swapaxes(J[:, :, :width], 1, 2), mode="complete")[0][:, :, J.shape[1] :]
            return found
        _, s, Vt = np.linalg.svd(J[:, :, :width])
        ranks = (s > 1e-6 * s[:, :1]).sum(axis=1)
        found = np.zeros((len(J), model.size + 6, width - int(ranks.max())))
        found[:, :width] = np.swapaxes(Vt[:, int(ranks.max()) :], 1, 2)
        return found

    # -- residuals --------------------------------------------------------------------------------------------------

    @property
    def groups(self) -> NDArray[np.int64]:
        """The row of the measurements to which each residual of `residuals` belongs."""
        if not self.redundant:
            return self.rows
        counts = np.bincount(self.rows, minlength=len(self.measured)) - self.mechanism.mobility.platform
        return np.repeat(np.arange(len(counts)), np.maximum(counts, 0))

    def residuals(
        self, displacements: Array, chosen: Sequence[GeometricParameter], start: States, by_instrument: bool = False
    ) -> tuple[Array, Array, States]:
        """Residuals over their standard deviations (m,), derivative (m, k) by parameters, and the configurations.

        `displacements` (n_places, 6) are those of the model, `start` configurations nearby. NaN where a row has no
        configuration. Of a robot with redundant drives, what its configurations leave over. With `by_instrument`, the
        last eight columns are by a twist of the measuring frame at the base's origin, base axes, and by `SCALED`.
        """
        n = len(self.measured)
        self.model.displace(displacements)
        if n <= ROWS:
            return self._residuals(chosen, start, by_instrument)
        pieces = [np.arange(k, min(k + ROWS, n)) for k in range(0, n, ROWS)]
        parts = [MeasuredRobot(self.parameters, self.measured.rows(at), self.frame, start.rows(at)) for at in pieces]
        found = list(map_chunks(lambda one: one._residuals(chosen, one.nominal, by_instrument), parts))
        r, J = (np.concatenate([one[k] for one in found]) for k in (0, 1))
        if not self.redundant:  # `rows` has all of a kind, then those of the next
            kinds = np.concatenate([one.kinds for one in parts])
            rows = np.concatenate([at[one.rows] for at, one in zip(pieces, parts, strict=True)])
            place = {kind: k for k, kind in enumerate(dict.fromkeys(self.kinds.tolist()))}
            order = np.lexsort((rows, np.array([place[kind] for kind in kinds.tolist()])))
            r, J = r[order], J[order]
        return r, J, joined([one[2] for one in found])

    def _residuals(
        self, chosen: Sequence[GeometricParameter], start: States, by_instrument: bool
    ) -> tuple[Array, Array, States]:
        states, closes = self.stand(start)
        placed = self.model.placed(states)
        values, by_joint, by_twist = self._observed(placed, states)
        if self.redundant:
            C = self.model.closure(placed)[1]
            by = self.parameters.closure_by(placed, chosen)
            rates = -self.model.least_steps(C, by, RANK) * self.model.scale[:, None]
            twists = rates[:, self.model.size :]
            if not self.model.free_platform:
                own = placed.at_origin(placed.twists_of(self.model.platform))
                twists = self.parameters.platform_by(placed, chosen) + own @ rates
        else:
            rates, twists = self.parameters.sensitivity(states, chosen)
            closes &= np.isfinite(rates).all(axis=(1, 2))
        J = np.einsum("ms,msk->mk", by_joint, rates[self.rows, : self.model.size])
        J += np.einsum("mi,mik->mk", by_twist, twists[self.rows])
        if by_instrument:
            J = np.hstack((J, self._by_frame(placed, by_twist), self._by_scales()))
        values[~closes[self.rows]] = np.nan
        r, J = values / self.sigma, J / self.sigma[:, None]
        if self.redundant:
            N = self._motions(self.model, C)
            A = self._by_row(self._along(placed, N, by_joint, by_twist) / self.sigma[:, None], r)[0]
            r, J = self._left_over(A, r, J)
        return r, J, states

    def _by_frame(self, placed: Placed, by_twist: Array) -> Array:
        """Derivative (m, 6) by a twist of the measuring frame: as if the platform moved the other way."""
        moved = np.broadcast_to(np.eye(6), (len(self.measured), 6, 6)).copy()
        moved[:, :3, 3:] = -skew(placed.platform[:, :3, 3])
        J = -np.einsum("mi,mij->mj", by_twist, moved[self.rows])
        J[self.kinds == "distance"] = 0.0
        return J

    def _by_scales(self) -> Array:
        """Derivative (m, 2) by the share by which each of `SCALED` is too long."""
        read = np.zeros(len(self.kinds))
        columns = dict(zip("xyz", self.measured.position.T, strict=True)) | {"distance": self.measured.distance}
        for kind, values in columns.items():
            at = self.kinds == kind
            read[at] = values[self.rows[at]]
        return np.column_stack([np.where(np.isin(self.kinds, kinds), read, 0.0) for kinds in SCALED.values()])

    def misses(self, displacements: Array, start: States) -> Array:
        """Predicted minus measured (m,) [m, rad], as in `kinds` and `rows`."""
        self.model.displace(displacements)
        states = self.stand(start)[0]
        return self._observed(self.model.placed(states), states)[0]

    @property
    def points(self) -> Array:
        """Measured points (k, 3) in the base frame, of rows whose whole position was measured."""
        position = self.measured.position[self._whole]
        return np.asarray(position @ self.frame[:3, :3].T + self.frame[:3, 3])

    def arrows(self, displacements: Array, start: States) -> Array:
        """Predicted minus measured positions (k, 3), base axes, of the same rows."""
        self.model.displace(displacements)
        platform = self.stand(start)[0].platform[self._whole]
        predicted = platform[:, :3, 3] + np.einsum("nij,nj->ni", platform[:, :3, :3], self.measured.point[self._whole])
        return np.asarray(predicted - self.points)

    @property
    def _whole(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.measured.position).all(axis=1))

    def _left_over(self, A: Array, r: Array, J: Array) -> tuple[Array, Array]:
        """Residuals and derivatives across what a change of the configurations takes up."""
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=len(self.measured))
        at_row = np.split(order, np.cumsum(counts)[:-1])
        k = A.shape[2]
        groups = np.repeat(np.arange(len(counts)), np.maximum(counts - k, 0))
        found_r, found_J = np.empty(len(groups)), np.empty((len(groups), J.shape[1]))
        for length in np.unique(counts):
            rows = np.flatnonzero(counts == length)
            at = np.array([at_row[row] for row in rows])
            across = np.swapaxes(np.linalg.qr(A[rows, :length], mode="complete")[0][:, :, k:], 1, 2)
            there = np.isin(groups, rows)
            found_r[there] = np.einsum("nij,nj->ni", across, r[at]).ravel()
            found_J[there] = (across @ J[at]).reshape(-1, J.shape[1])
        return found_r, found_J

    def stand(self, start: States) -> tuple[States, NDArray[np.bool_]]:
        """The configurations of the model, near given ones, and where (n,) the loops close."""
        model = self.model
        if not self.redundant:
            states, gap = model.closed(start, self.drives)
            return states, np.asarray(gap < OPEN * model.length)
        states, gap = model.closed(start)
        for _ in range(INNER):
            placed = model.placed(states)
            values, by_joint, by_twist = self._observed(placed, states)
            N = self._motions(model, model.closure(placed)[1])
            along = self._along(placed, N, by_joint, by_twist)
            A, r = self._by_row(along / self.sigma[:, None], values / self.sigma)
            step = np.einsum("nij,nj->ni", N, -np.einsum("nij,nj->ni", np.linalg.pinv(A), r))
            states, gap = model.closed(states.moved(step * model.scale))
            if np.abs(step).max(initial=0.0) < SETTLED:
                break
        return states, np.asarray(gap < OPEN * model.length)

    def _along(self, placed: Placed, N: Array, by_joint: Array, by_twist: Array) -> Array:
        model = self.model
        step = N * model.scale[:, None]
        twists = step[:, model.size :]
        if not model.free_platform:
            twists = placed.at_origin(placed.twists_of(model.platform)) @ step
        return np.asarray(
            np.einsum("ms,msk->mk", by_joint, step[self.rows, : model.size])
            + np.einsum("mi,mik->mk", by_twist, twists[self.rows])
        )

    def _by_row(self, J: Array, values: Array) -> tuple[Array, Array]:
        """Residuals and derivatives by rows of the measurements, padded with zeros: (n, most, k) and (n, most)."""
        n = len(self.measured)
        order = np.argsort(self.rows, kind="stable")
        counts = np.bincount(self.rows, minlength=n)
        most = int(counts.max(initial=1))
        at = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        A, r = np.zeros((n, most, J.shape[1])), np.zeros((n, most))
        A[self.rows[order], at], r[self.rows[order], at] = J[order], values[order]
        return A, r

    def _observed(self, placed: Placed, states: States) -> tuple[Array, Array, Array]:
        """Residuals (m,), and their derivatives by joint coordinates (m, size) and the platform's twist (m, 6)."""
        one, model = self.measured, self.model
        values, joints, twists = [], [], []

        def add(there: NDArray[np.bool_], value: Array, by_twist: Array | None, column: int = -1) -> None:
            at = np.flatnonzero(there)
            values.append(value[at])
            J = np.zeros((len(at), model.size))
            if column >= 0:
                J[:, column] = 1.0
            joints.append(J)
            twists.append(np.zeros((len(at), 6)) if by_twist is None else by_twist[at])

        n = len(one)
        if self.redundant:
            for k, column in enumerate(self.drives):
                add(np.ones(n, dtype=bool), states.q[:, column] - one.drives[:, k], None, int(column))
        for name, reading in one.joints.items():
            column = model.column[name]
            miss = states.q[:, column] - reading
            if not model.slides[column]:
                miss = np.arctan2(np.sin(miss), np.cos(miss))
            add(np.isfinite(reading), miss, None, column)
        frame = placed.platform
        arm = np.einsum("nij,nj->ni", frame[:, :3, :3], one.point)
        at = frame[:, :3, 3] + arm
        back = self.frame[:3, :3].T
        seen = (at - self.frame[:3, 3]) @ back.T
        by_point = np.concatenate((np.broadcast_to(np.eye(3), (n, 3, 3)), -skew(arm)), axis=2)
        by_seen = back @ by_point
        for axis in range(3):
            add(np.isfinite(one.position[:, axis]), seen[:, axis] - one.position[:, axis], by_seen[:, axis])
        known = np.isfinite(one.attitude[:, 0, 0])
        turn = np.zeros((n, 3))
        if known.any():
            wanted = self.frame[:3, :3] @ one.attitude[known]
            turn[known] = rotation_vectors(frame[known, :3, :3] @ np.swapaxes(wanted, 1, 2))
        for axis in (2, 1, 0):
            rows = np.zeros((n, 6))
            rows[:, 3 + axis] = 1.0
            add(known, turn[:, axis], rows)
        apart = at - one.origin
        length = np.linalg.norm(apart, axis=1)
        along = apart / np.maximum(length, 1e-12)[:, None]
        add(np.isfinite(one.distance), length - one.distance, np.einsum("ni,nij->nj", along, by_point))
        return np.concatenate(values), np.concatenate(joints), np.concatenate(twists)


def followed(model: GraphModel, drives: NDArray[np.int64], wanted: Array) -> tuple[States, NDArray[np.bool_]]:
    """Configurations at positions (n, k) of the drives, led there from home in pieces, and where loops close."""
    if len(wanted) > ROWS:
        parts = list(map_chunks(partial(followed, model, drives), (wanted[at] for at in slices(len(wanted), ROWS))))
        return joined([one for one, _ in parts]), np.concatenate([closes for _, closes in parts])
    states = model.home(len(wanted))
    start, gap = states.q[:, drives], np.zeros(len(wanted))
    for piece in range(1, PIECES + 1):
        states.q[:, drives] = start + piece / PIECES * (wanted - start)
        states, gap = model.closed(states, drives, CLOSED if piece == PIECES else NEARLY)
    return states, np.asarray(gap < 1e-6 * model.length)


# -- the frame in which it was measured; units and columns that are not what the file says -----------------------------


def measuring_frame(robot: MeasuredRobot, notes: list[str]) -> Array:
    """The measuring frame in the base frame: the base's own where measurements fit the drawing in it.

    Raises `MeasurementError` where no frame makes them fit, with what else does.
    """
    measured, size = robot.measured, robot.model.length
    whole = np.isfinite(robot.measured.position).all(axis=1)
    predicted = _points(robot)
    miss = _miss(predicted, measured.position)
    if miss < ASTRAY * size or np.isnan(miss):
        _check_distances(robot, predicted)
        return np.eye(4)
    if whole.sum() >= 4:
        frame = _aligned(predicted[whole], measured.position[whole])
        left = _miss((predicted - frame[:3, 3]) @ frame[:3, :3], measured.position)
        if left < ALIGNED * miss and left < ASTRAY * size:
            # Exchanged drives or axes mirror a flat cloud of points, which a turned frame nearly fits.
            names = _swapped_axes(predicted, measured.position, min(SWAPPED * miss, ASTRAY * size))
            if names := names or _swapped_drives(robot, min(SWAPPED * miss, MIRRORED * left)):
                raise MeasurementError(measured.source, *_swapped(miss, names))
            turn = np.degrees(np.arccos(np.clip(0.5 * (np.trace(frame[:3, :3]) - 1.0), -1.0, 1.0)))
            away = ", ".join(f"{1e3 * value:.1f}" for value in frame[:3, 3])
            notes.append(
                f"the measuring frame is not the base frame: it is at ({away}) mm in the base frame, rotated by "
                f"{turn:.2f} deg; found "
                "from the measurements"
            )
            for order in _orders(robot):
                notes.append(
                    f"WARNING: they fit the base's own frame as well, with the drives in the order {', '.join(order)}: "
                    "if the instrument was not turned like this, the columns of the drives are exchanged"
                )
            beside = _beside(robot, predicted)
            if np.linalg.norm(beside) < size and _miss(_points(robot, beside), measured.position) < ASTRAY * size:
                point = ", ".join(f"{1e3 * value:.1f}" for value in beside)
                notes.append(
                    f"WARNING: they fit the base's frame as well, if they are of a point that is ({point}) mm beside "
                    "that in the file, in the platform's frame: if it was a tool's, give point_x, point_y, point_z"
                )
            return frame
    if miss < WEAK * _expected_miss(robot):
        return np.eye(4)
    raise MeasurementError(measured.source, *_why(robot, predicted, miss))


def _expected_miss(robot: MeasuredRobot) -> float:
    """Error of the position [m], in the median over the rows, that is expected of a machine: weak robots make more."""
    chosen = robot.parameters.identifiable()
    twists = robot.parameters.sensitivity(robot.nominal, chosen)[1]
    each = twists[:, :3] * np.array([EXPECTED[one.unit] for one in chosen])
    return float(np.median(np.linalg.norm(each, axis=(1, 2))))


def _points(robot: MeasuredRobot, beside: Array | float = 0.0) -> Array:
    platform = robot.nominal.platform
    return np.asarray(platform[:, :3, 3] + np.einsum("nij,nj->ni", platform[:, :3, :3], robot.measured.point + beside))


def _beside(robot: MeasuredRobot, predicted: Array) -> Array:
    apart = np.einsum("nji,nj->ni", robot.nominal.platform[:, :3, :3], robot.measured.position - predicted)
    return np.asarray(np.nanmedian(apart, axis=0))


def _miss(predicted: Array, measured: Array) -> float:
    """Median distance of what was measured from what was predicted, in the components that were."""
    there = np.isfinite(measured).any(axis=1)
    if not there.any():
        return float("nan")
    apart = np.nan_to_num(measured - predicted)[there]
    return float(np.median(np.linalg.norm(apart, axis=1)))


def _aligned(predicted: Array, measured: Array) -> Array:
    """The frame (4, 4) in which measured points are nearest to predicted ones (Kabsch, 1976)."""
    a, b = predicted - predicted.mean(axis=0), measured - measured.mean(axis=0)
    U, _, Vt = np.linalg.svd(a.T @ b)
    sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))])
    R = U @ sign @ Vt
    return transform(predicted.mean(axis=0) - R @ measured.mean(axis=0), R)


def _why(robot: MeasuredRobot, predicted: Array, miss: float) -> tuple[str, str]:
    measured, problem = robot.measured, _far(miss)
    there = np.isfinite(measured.position)
    spread = float(np.nanstd(np.where(there, predicted, np.nan))), float(np.nanstd(measured.position))
    for name, factor in (("mm", 1e-3), ("cm", 1e-2), ("inches", 0.0254), ("m", 1e3)):
        if abs(np.log(max(spread[1], 1e-12) * factor / max(spread[0], 1e-12))) < 0.2:
            return (
                f"{problem}; their spread is {spread[1] / spread[0]:.3g} times that of the drawing",
                f"the unit looks like {name}: write it in the first line, as in 'x [{name.removesuffix('ches')}]'",
            )
    slides = np.asarray(robot.model.slides, dtype=bool)[robot.drives]
    for unit, kind in (("deg", ~slides), ("mm", slides)):
        if kind.any() and _miss_with(robot, np.where(kind, UNITS[unit], 1.0) * measured.drives) < SWAPPED * miss:
            return problem, f"the unit of the drives looks like {unit}: write [{unit}] in the header"
    if names := _swapped_columns(robot, predicted, miss):
        return _swapped(miss, names)
    return problem, "check the robot, the frame (base) and the point (point_x, point_y, point_z)"


def _far(miss: float) -> str:
    return f"the median deviation of the positions from the drawing is {1e3 * miss:.3g} mm"


def _swapped(miss: float, names: str) -> tuple[str, str]:
    return _far(miss), f"columns {names} look swapped: swap their names"


def swapped(robot: MeasuredRobot) -> list[str]:
    """In words, which columns look swapped: measurements of positions then fit the drawing far better."""
    if slips := _attitude_slips(robot):
        return slips
    rows = np.flatnonzero(np.isfinite(robot.measured.position).sum(axis=1) > 1)  # heights alone tell little
    several = MeasuredRobot(robot.parameters, robot.measured.rows(rows), robot.frame, robot.nominal.rows(rows))
    predicted = _points(several)
    miss = _miss(predicted, several.measured.position)
    names = _swapped_columns(several, predicted, miss) if len(rows) else ""
    return [": ".join(_swapped(miss, names))] if names else []


def _attitude_slips(robot: MeasuredRobot) -> list[str]:
    # As `swapped`, of two angles, or of their unit.
    rows = np.flatnonzero(np.isfinite(robot.measured.attitude).all(axis=(1, 2)))
    angles = np.array([rpy_from_rotation(one)[::-1] for one in robot.measured.attitude[rows]]).reshape(-1, 3)

    def miss(angles: Array) -> float:
        found = robot.frame[:3, :3] @ np.array([rotation_from_rpy(one[::-1]) for one in angles])
        return float(np.median(np.linalg.norm(found - robot.nominal.platform[rows, :3, :3], axis=(1, 2))))

    if not len(rows):
        return []
    tried = [(miss(np.radians(angles)), "the unit of the angles looks like deg: write it in the first line, [deg]")]
    for one, other in combinations(range(3), 2):
        names = " and ".join(("yaw", "pitch", "roll")[k] for k in (one, other))
        tried.append((miss(_exchanged(angles, one, other)), f"columns {names} look swapped: swap their names"))
    least, remedy = min(tried)
    return [remedy] if least < SWAPPED * min(miss(angles), miss(0.0 * angles)) else []  # not by being small


def _swapped_columns(robot: MeasuredRobot, predicted: Array, miss: float) -> str:
    return _swapped_axes(predicted, robot.measured.position, SWAPPED * miss) or _swapped_drives(robot, SWAPPED * miss)


def _swapped_axes(predicted: Array, position: Array, below: float) -> str:
    """Names of two axes whose columns, exchanged, leave a median deviation below this [m], or none."""
    for one, other in combinations(range(3), 2):
        if _miss(predicted, _exchanged(position, one, other)) < below:
            return f"{'xyz'[one]} and {'xyz'[other]}"
    return ""


def _swapped_drives(robot: MeasuredRobot, below: float) -> str:
    drives = robot.mechanism.actuated_joints
    if robot.redundant:
        robot = _some(robot)
    for one, other in combinations(range(len(drives)), 2):
        if _miss_in_order(robot, _exchanged(np.arange(len(drives))[None], one, other)[0]) < below:
            return f"{drives[one]} and {drives[other]}"
    return ""


def _miss_in_order(robot: MeasuredRobot, order: Sequence[int] | NDArray[np.int64]) -> float:
    return _miss_with(robot, robot.measured.drives[:, list(order)])


def _miss_with(robot: MeasuredRobot, drives: Array) -> float:
    """`_miss` in the base's frame with other readings (n, k) of the drives; infinite where it cannot stand."""
    measured = replace(robot.measured, drives=drives)
    states, stands = MeasuredRobot.standing(robot.parameters, measured)
    if not stands.all():
        return float("inf")
    try:
        return _miss(_points(MeasuredRobot(robot.parameters, measured, nominal=states)), measured.position)
    except PkmError:
        return float("inf")


def _orders(robot: MeasuredRobot) -> Iterator[list[str]]:
    """Orders of the drives in which the measurements fit the base's frame: a symmetrical robot, turned or mirrored."""
    n, some = len(robot.drives), _some(robot) if robot.redundant else robot
    cycles = [np.roll(np.arange(n), -shift) for shift in range(1, n)]
    pairs = [_exchanged(np.arange(n)[None], one, other)[0] for one, other in combinations(range(n), 2)]
    for order in {tuple(order.tolist()): order for order in (*cycles, *pairs)}:
        if _miss_in_order(some, order) < ASTRAY * robot.model.length:
            yield [robot.mechanism.actuated_joints[k] for k in order]


def check_drives(parameters: GeometricParameters, measured: Measurements) -> None:
    """Raise `MeasurementError` where redundant drives contradict each other, but not in another unit or order."""
    robot = _some(MeasuredRobot(parameters, measured, nominal=parameters.model.drawing().home(len(measured))))
    some, now = robot.measured, _contradiction(robot, robot.measured.drives)
    if now < OTHERS:
        return
    drives, slides = robot.mechanism.actuated_joints, np.asarray(robot.model.slides, dtype=bool)[robot.drives]
    tried = []
    for unit, kind in (("mm", slides), ("cm", slides), ("in", slides), ("deg", ~slides)):
        if kind.any() and (np.isinf(now) or unit == "deg"):
            remedy = f"the unit of the drives looks like {unit}: write [{unit}] in the header"
            tried.append((_contradiction(robot, np.where(kind, UNITS[unit], 1.0) * some.drives), remedy))
    if not np.isinf(now):
        for one, other in combinations(range(len(drives)), 2):
            remedy = f"columns {drives[one]} and {drives[other]} look swapped: swap their names"
            tried.append((_contradiction(robot, _exchanged(some.drives, one, other)), remedy))
    least, remedy = min(tried, default=(np.inf, ""))
    problem = "no configuration of the drawing is near the readings of its drives"
    if not np.isinf(now):
        problem = f"the drives' readings contradict each other by {now:.3g} times what is expected of a machine"
    if least < SWAPPED * now and not np.isinf(least):
        raise MeasurementError(measured.source, problem, remedy)
    if now * EXPECTED["m"] > ASTRAY * robot.model.length:
        raise MeasurementError(measured.source, problem, "is this another robot, another zero, or another unit?")


def _some(robot: MeasuredRobot) -> MeasuredRobot:
    rows = np.unique(np.linspace(0, len(robot.measured) - 1, SOME).astype(np.int64))
    return MeasuredRobot(robot.parameters, robot.measured.rows(rows), robot.frame, robot.nominal.rows(rows))


def _contradiction(robot: MeasuredRobot, readings: Array) -> float:
    # Sum of the drives' median deviations from the nearest configurations, over what is expected of them.
    home, slides = robot.nominal, np.asarray(robot.model.slides, dtype=bool)[robot.drives]
    scales = robot.model.scale[robot.drives]
    if np.median(np.abs(readings - home.q[:, robot.drives]) / scales) > AWAY:
        return np.inf
    states = robot._nearest_to_drives(home.moved(np.zeros((len(readings), robot.model.size + 6))), readings)
    away = np.median(np.abs(states.q[:, robot.drives] - readings), axis=0)
    return float((away / np.where(slides, EXPECTED["m"], EXPECTED["rad"])).sum())


def check_sensors(robot: MeasuredRobot) -> None:
    """Raise `MeasurementError` where readings of passive joints fit the drawing once two columns are exchanged."""
    measured, joints, now = robot.measured, robot.measured.joints, _sensors_miss(robot)
    if now < OTHERS:
        return
    tried = []
    for one, other in combinations(joints, 2):
        turned = replace(measured, joints={**joints, one: joints[other], other: joints[one]})
        miss = _sensors_miss(MeasuredRobot(robot.parameters, turned, robot.frame, robot.nominal))
        tried.append((miss, f"{one} and {other}"))
    if not np.isfinite(measured.position).any():  # which tells exchanged drives
        tried += [(_sensors_miss(there), names) for names, there in _with_drives_exchanged(robot)]
    miss, names = min(tried, default=(np.inf, ""))
    if miss < SWAPPED * now:
        problem = f"the readings of joints deviate from the drawing by {now:.3g} times what is expected of a machine"
        raise MeasurementError(measured.source, problem, f"columns {names} look swapped: swap their names")


def _sensors_miss(robot: MeasuredRobot) -> float:
    """Sum of the passive joints' median deviations from the drawing, over what is expected of them."""
    total = 0.0
    for name, reading in robot.measured.joints.items():
        column = robot.model.column[name]
        miss, slides = robot.nominal.q[:, column] - reading, robot.model.slides[column]
        away = np.abs(miss if slides else np.arctan2(np.sin(miss), np.cos(miss)))[np.isfinite(reading)]
        total += float(np.median(away)) / EXPECTED["m" if slides else "rad"] if len(away) else 0.0
    return total


def _with_drives_exchanged(robot: MeasuredRobot) -> Iterator[tuple[str, MeasuredRobot]]:
    """Two drives, and the robot that stands at all rows with their columns exchanged."""
    drives = robot.mechanism.actuated_joints
    for one, other in combinations(range(len(drives)), 2):
        turned = replace(robot.measured, drives=_exchanged(robot.measured.drives, one, other))
        states, there = MeasuredRobot.standing(robot.parameters, turned)
        if there.all():
            yield f"{drives[one]} and {drives[other]}", MeasuredRobot(robot.parameters, turned, nominal=states)


def _exchanged(columns: NDArray[Any], one: int, other: int) -> NDArray[Any]:
    order = np.arange(columns.shape[1])
    order[[one, other]] = other, one
    return columns[:, order]


def _check_distances(robot: MeasuredRobot, predicted: Array) -> None:
    measured = robot.measured
    there = np.isfinite(measured.distance)
    if not there.any():
        return
    lengths = np.linalg.norm(predicted - measured.origin, axis=1)[there]
    ratio = float(np.median(measured.distance[there] / np.maximum(lengths, 1e-12)))
    if not 0.8 < ratio < 1.25:
        near = 500.0 < ratio < 2000.0
        hint = "the unit looks like mm: write 'distance [mm]'" if near else "give the start point: from_x, ..."
        raise MeasurementError(measured.source, f"distances are {ratio:.3g} times those of the drawing", hint)
    now = _distance_miss(robot)
    if now < WEAK * _expected_miss(robot):
        return
    tried = []
    for one, other in combinations(range(3), 2):
        turned = replace(measured, origin=_exchanged(measured.origin, one, other))
        names = f"from_{'xyz'[one]} and from_{'xyz'[other]}"
        tried.append((_distance_miss(MeasuredRobot(robot.parameters, turned, nominal=robot.nominal)), names))
    if not robot.redundant:
        tried += [(_distance_miss(there), names) for names, there in _with_drives_exchanged(robot)]
    miss, names = min(tried)
    if miss < SWAPPED * now:
        problem = f"the median deviation of the distances from the drawing is {1e3 * now:.3g} mm"
        raise MeasurementError(measured.source, problem, f"columns {names} look swapped: swap their names")


def _distance_miss(robot: MeasuredRobot) -> float:
    away = np.linalg.norm(_points(robot) - robot.measured.origin, axis=1) - robot.measured.distance
    return float(np.nanmedian(np.abs(away)))
