# SPDX-License-Identifier: Apache-2.0
"""The robot that questions are about: solvers, task coordinates, working mode, and numbers of very many poses.

These come from straight-line code, four poses in each instruction, where a robot has it, else from kernels. Margins
refer to a frame of twists: unit velocities of the platform, and unit velocities that the limbs block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.body_distances import Clearance, meshes_stamp
from pkm_analysis.domain import TaskCoordinates
from pkm_analysis.kernels.pose_quantities import (
    HOLD,
    REACH,
    REGULARITY,
    TYPE1,
    TYPE2,
    UNLIMITED,
    WIDTH,
    pose_quantities,
    pose_quantities_many,
)
from pkm_description import Mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Configuration, Kinematics
from pkm_kinematics.kernels.model_and_data import Data, Model
from pkm_kinematics.kernels.position.solve_poses import take_seed
from pkm_kinematics.kernels.rates.motion_space import held_wrenches
from pkm_kinematics.kernels.records import PLATFORM
from pkm_kinematics.recordings_at_home import near_home, pose_inputs
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.robot_constants import refuse_redundant
from pkm_kinematics.solve.singularity import margins as drive_margins
from pkm_kinematics.solve.singularity import scaling
from pkm_kinematics.status import closes
from pkm_runtime.chunks import slices
from pkm_runtime.codegen import Recording, Tape, loose, trace
from pkm_runtime.codegen.c_code import GpuCode, cupy_with_gpu
from pkm_runtime.codegen.machine_code import LANES, VectorCode
from pkm_runtime.sweeps import Sweeps

SCRATCH = (8, 14, 14)  # of `pose_quantities`


CACHED, GPU_CHUNK = 4096, 1 << 20  # poses whose numbers fit the processor's cache; that keep a GPU busy
MARGINS = range(TYPE1, WIDTH)  # numbers that need velocities
OPEN = -1e-9  # REACH of a pose that iteration does not reach, however close
INDEPENDENT = 1e-6  # of unit wrenches: smaller singular values are zero
CHUNK, SLOW_CHUNK = 1 << 13, 1 << 9  # poses too few for a second core
Result = TypeVar("Result")
_ROBOTS: dict[str, AnalysedRobot] = {}  # received from other processes, the last few
_MOST = 4


def straight_quantities(
    kinematics: Kinematics, model: Model, branch: int, seed: Array, frame: TwistFrame, wanted: tuple[int, ...]
) -> Recording | None:
    """Numbers `wanted`, as of `PoseEvaluator`, of a pose, for a `straight` robot; None where home is singular.

    The model has the frame as its subspace; `seed` (n_joints,) are joint positions at home in that branch.
    """
    tape, data = Tape(), kinematics.engine.data()
    take_seed(model, data, np.array(seed))
    S = kinematics.task.subspace
    pose = pose_inputs(tape, 0, near_home(kinematics.home, S, kinematics.engine.size), S)
    out = np.zeros(WIDTH, dtype=object)
    mobility = frame.mobility if any(3 < k < WIDTH for k in wanted) else 0
    held = loose(data)
    try:
        trace(pose_quantities)(
            loose(model), held, branch, mobility, frame.ranks, pose, np.zeros(SCRATCH, dtype=object), out
        )
    except (ZeroDivisionError, ValueError):  # singular at home: numbers, not terms, divided by zero
        return None
    joints = dict(zip(kinematics.engine.body_column[2:], held.state[PLATFORM + 1 :], strict=True))
    return Recording(tape, 1, tuple(out[k] if k < WIDTH else joints[k - WIDTH].q for k in wanted))


class PoseEvaluator:
    """Numbers of `pose_quantities` for poses of a robot in one working mode. Thread-safe. Raises `ModeError`.

    Without a mode it is home's, with joints in the turns that they make on the way from home. With CuPy, or what does
    as it does, straight-line code is a GPU's.
    """

    def __init__(self, kinematics: Kinematics, mode: int | None = None, cupy: Any = None) -> None:
        self.kinematics = kinematics
        self.mode = mode
        self._cupy = cupy
        engine = kinematics.engine
        self._branch = kinematics.modes.branch(0 if mode is None else mode)
        self.start: Array = np.array(engine.home_joints if mode is None else kinematics.modes.start(mode))
        self._near = self.start if mode is None else self._in_range(self.start)
        self._codes: dict[tuple[int, ...], VectorCode | GpuCode | None] = {}
        self._constant = engine.constant_space
        self._frame = self._at_home()
        blocks = engine.model.blocks.copy()
        blocks["bend"] = np.nan  # joints near those given
        self._model: Model = engine.model.replace(subspace=self._frame.basis, blocks=blocks)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies compile their code anew, for processors."""
        return PoseEvaluator, (self.kinematics, self.mode)

    def _in_range(self, joints: Array) -> Array:
        """Limited joints in the middle of their ranges: the turn within limits is then the nearest."""
        lower, upper = self.kinematics.engine.ranges.limits
        limited = np.isfinite(lower) & np.isfinite(upper) & self.kinematics.engine.ranges.turned_freely
        middle = 0.5 * (np.where(limited, lower, 0.0) + np.where(limited, upper, 0.0))
        return np.where(limited, middle, joints)

    def _at_home(self) -> TwistFrame:
        engine = self.kinematics.engine
        space = engine.task.subspace
        if not self._constant:
            choice = self.kinematics.modes.choose(engine.home_row, None, self.mode)
            space = engine.spaces.at(engine.home_row, choice)[0][0]
            at = engine.placed(engine.home, self.start, self._branch)
        else:
            at = engine.placed(near_home(engine.home, space, engine.size), self.start, self._branch)
        return twist_frame(engine, at.model, at.data, np.nan_to_num(space))

    @cached_property
    def _home_sign(self) -> float:
        numbers = self._numbers(np.ascontiguousarray(self.kinematics.engine.home_row), (REACH, TYPE2))
        return -1.0 if numbers[1, 0] < 0.0 else 1.0

    @cached_property
    def quick(self) -> bool:
        """Whether straight-line code is used."""
        return self.kinematics.straight and self._code((REACH,)) is not None

    def numbers(self, poses: Array, wanted: Sequence[int]) -> Array:
        """Numbers (len(wanted), n) of poses (n, 7) in the motion space; where REACH is negative, others mean nothing.

        `wanted` are those of `pose_quantities`, or WIDTH + k for the position of joint k.
        """
        asked = (REACH, *(k for k in wanted if k != REACH))
        out = self._numbers(poses, asked)
        row = {k: out[at] for at, k in enumerate(asked)}
        if TYPE2 in row:
            row[TYPE2] *= self._home_sign
        return np.array([row[k] for k in wanted]) if tuple(wanted) != asked else out

    def _numbers(self, poses: Array, asked: tuple[int, ...]) -> Array:
        """`numbers`, REACH first, with the determinant's own sign."""
        code = self._code(asked) if self.kinematics.straight else None
        if code is None:
            return self.by_kernels(poses, asked)
        out = np.empty((len(asked), len(poses)))
        size = CACHED if self._cupy is None else min(GPU_CHUNK, -(-len(poses) // LANES) * LANES)
        columns = np.empty((len(code.inputs), size))
        results = np.empty((len(asked) + 1, size))
        chosen = list(code.inputs)
        for part in slices(len(poses), max(size, 1)):
            n = part.stop - part.start
            padded = -(-n // LANES) * LANES
            columns[:, :n] = poses[part].T[chosen]
            columns[:, n:padded] = columns[:, n - 1 : n]
            code(columns[:, :padded], results[:, :padded])
            out[:, part] = results[:-1, :n]
            other = np.flatnonzero((results[-1, :n] == 0.0) & ~(results[0, :n] < 0.0))
            if len(other):
                rows = other + part.start
                out[:, rows] = self.by_kernels(poses[rows], asked)
        return out

    def _code(self, asked: tuple[int, ...]) -> VectorCode | GpuCode | None:
        if asked not in self._codes:
            followed = self._model.replace(blocks=self.kinematics.engine.model.blocks)  # in the turns from home
            model = followed if self.mode is None else self._model
            fixed = (self.kinematics, model, self._branch, self._near, self._frame)
            recording = straight_quantities(*fixed, asked)
            self._codes[asked] = None if recording is None else self._compiled(recording)
        return self._codes[asked]

    def _compiled(self, recording: Recording) -> VectorCode | GpuCode:
        return VectorCode(recording) if self._cupy is None else GpuCode(recording, self._cupy)

    def by_kernels(self, poses: Array, asked: tuple[int, ...]) -> Array:
        """`_numbers` for any robot: solved, then evaluated pose by pose."""
        engine, out = self.kinematics.engine, np.full((len(poses), WIDTH), np.nan)
        at = self.kinematics.at(np.ascontiguousarray(poses), mode=self.mode)
        found = np.asarray(closes(at.status))
        joints = np.where(found[:, None], at.joints, self._near)
        margins = any(k in MARGINS for k in asked)
        mobility = self._frame.mobility if margins and self._constant else 0
        fixed = (self._model, engine.data(), self._branch, mobility, self._frame.ranks)
        pose_quantities_many(*fixed, at.pose, np.ascontiguousarray(joints), np.zeros(SCRATCH), out)
        if margins and not self._constant:
            self._turning(at, out)
        # whether a pose is reached is the solvers' answer; the kernel says by how much, and where not
        residual = np.nan_to_num(at.residual, posinf=1.0) / engine.size
        out[:, REACH] = np.where(found, np.fmax(out[:, REACH], 0.0), np.fmin(out[:, REACH], OPEN - residual))
        out[np.isnan(out[:, REACH]), REACH] = -1.0
        return np.array([out[:, k] if k < WIDTH else joints[:, k - WIDTH] for k in asked])

    def _turning(self, at: Configuration, out: Array) -> None:
        """Margins in configuration-dependent motion spaces, their bases oriented as home's: they have no own sense."""
        scales = scaling(self.kinematics.characteristic_length)[:, None]
        home = self._frame.basis[:, : self._frame.mobility] * scales
        sense = np.sign(np.linalg.det(home.T @ (np.nan_to_num(at.subspace) * scales)))
        for which, values in margins_of(at).items():
            out[:, which] = values * (sense if which == TYPE2 else 1.0)


def margins_of(at: Configuration, limbs: bool = True) -> dict[int, Array]:
    """TYPE1, TYPE2 with the sign of the determinant, HOLD and REGULARITY (n,), exact; the last two of `limbs` alone."""
    none = np.full(len(at.poses), np.nan)
    found = at.singularity if limbs else drive_margins(at.uniform_jacobian, none, none, at.engine.characteristic_length)
    return {
        TYPE1: found.type1,
        TYPE2: found.type2 * found.determinant_sign,
        HOLD: np.minimum(found.constraint_hold, UNLIMITED),
        REGULARITY: found.limb_regularity,
    }


class TwistFrame(NamedTuple):
    """A basis of twists, and what each limb blocks of them."""

    basis: Array  # (6, degrees of freedom + blocked) [m/s, rad/s], contiguous
    mobility: int  # of the platform
    ranks: NDArray[np.int64]  # (limbs,) how many of the blocked velocities each limb blocks


def twist_frame(engine: Engine, model: Model, data: Data, space: Array) -> TwistFrame:
    """The frame at the positions in `data`: unit velocities along the motion space `space` (6, f), then blocked ones.

    Those are orthonormal; the speed of a rotation is that of a point at the characteristic length.
    """
    length = engine.characteristic_length
    speeds = np.linalg.norm(space * scaling(length)[:, None], axis=0)
    free = space / np.where(speeds > 0.0, speeds, 1.0)
    blocked = 6 - engine.mobility - engine.mechanism.mobility.left_out
    ranks, wrenches = [], [np.zeros((0, 6))]
    for limb in range(len(model.limbs)):
        _, values, Vt = np.linalg.svd(held_wrenches(model, data, limb)[0], full_matrices=False)
        own = Vt[values > INDEPENDENT * max(1.0, float(values.max(initial=0.0)))]
        ranks.append(len(own))
        wrenches.append(own)
    _, _, Vt = np.linalg.svd(np.vstack(wrenches), full_matrices=True)
    held = Vt[:blocked].T / scaling(length)[:, None]
    return TwistFrame(np.ascontiguousarray(np.hstack([free, held])), space.shape[1], np.array(ranks, dtype=np.int64))


class AnalysedRobot:
    """What all analyses of a robot share.

    Args:
        mode: number of a working mode; None: home's, with joints in the turns that they make from there.
        sweeps: where many poses are computed, on all cores by default.
        gpu: what limbs say of poses is computed by a GPU, through CuPy; `AnalysisError` where it has no code of them.
    """

    def __init__(
        self,
        robot: Mechanism | Kinematics,
        mode: int | None = None,
        sweeps: Sweeps | None = None,
        gpu: bool = False,
    ) -> None:
        self.sweeps = Sweeps() if sweeps is None else sweeps
        self.kinematics = robot if isinstance(robot, Kinematics) else Kinematics(robot)
        refuse_redundant(self.kinematics.redundant_names, "analyses")
        self.mode = mode
        self.kinematics.modes.branch(mode or 0)
        self.coordinates = TaskCoordinates(self.kinematics)
        if gpu and not PoseEvaluator(self.kinematics, mode).quick:  # before anybody installs CuPy for it
            problem = "not all its limbs have a closed form, or its motion space turns with the pose"
            raise AnalysisError(f"{self.name} on a GPU", problem, "leave the GPU out")
        self.cupy = cupy_with_gpu("analyses on GPUs") if gpu else None

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is built once, however often it is sent."""
        return _built, (self.question, self.meshes, self.kinematics, self.mode)

    @cached_property
    def meshes(self) -> str:
        """A hash of the mesh files of its bodies, as they were at the first call."""
        return meshes_stamp(self.mechanism)

    @cached_property
    def question(self) -> str:
        """A hash of description, meshes, tables and working mode."""
        seal = hashlib.sha256(f"{self.mode} {self.meshes} {self.mechanism.urdf}".encode())
        for table in self.kinematics.engine.model.arrays().values():
            seal.update(table.tobytes())
        return seal.hexdigest()

    def numbers(self, poses: Array, wanted: Sequence[int]) -> Array:
        """`PoseEvaluator.numbers` (len(wanted), n) of many poses (n, 7) in the motion space, as one sweep."""
        call = partial(PoseEvaluator.numbers, self.evaluator, wanted=tuple(wanted))
        return np.concatenate(self.in_chunks(call, poses, "poses"), axis=1)

    def in_chunks(
        self,
        function: Callable[[Array], Result],
        rows: Array,
        what: str,
        question: Callable[[], str | None] = lambda: None,
        quick: bool = True,
    ) -> list[Result]:
        """Results of a function for rows (n, ...) in parts, in order; few are one call. Not `quick`: they take long."""
        size = CHUNK if quick and self.evaluator.quick else SLOW_CHUNK
        size = GPU_CHUNK if quick and self.cupy is not None else size
        if len(rows) <= size:
            return [function(rows)]
        function(rows[:1])  # compile once, before the threads
        chunks = (rows[at] for at in slices(len(rows), size))
        return list(self.sweeps.map(function, chunks, f"{len(rows)} {what}", -(-len(rows) // size), question()))

    @cached_property
    def evaluator(self) -> PoseEvaluator:
        """Numbers of many poses."""
        return PoseEvaluator(self.kinematics, self.mode, self.cupy)

    @property
    def mechanism(self) -> Mechanism:
        """The description."""
        return self.kinematics.mechanism

    @property
    def name(self) -> str:
        """Name in the description."""
        return self.mechanism.name

    @cached_property
    def dynamics(self) -> Dynamics:
        """The dynamics solver."""
        return Dynamics(self.kinematics)

    @cached_property
    def clearance(self) -> Clearance:
        """Distances between its bodies; `AnalysisError` without any, or if mesh files changed since `meshes`."""
        if meshes_stamp(self.mechanism) != self.meshes:
            problem = "its files are not those that the question was asked with"
            raise AnalysisError(f"meshes of {self.name}", problem, "have the same ones on all computers, and ask again")
        return Clearance(self.kinematics)

    @property
    def actuator_unit(self) -> str:
        """Unit of the drives' positions, "m or rad" where both occur."""
        units = {self.kinematics.engine.names.units[name] for name in self.kinematics.actuated_names}
        return units.pop() if len(units) == 1 else "m or rad"


def _built(question: str, meshes: str, kinematics: Kinematics, mode: int | None) -> AnalysedRobot:
    if question not in _ROBOTS:
        while len(_ROBOTS) >= _MOST:
            _ROBOTS.pop(next(iter(_ROBOTS)), None)
        robot = _ROBOTS[question] = AnalysedRobot(kinematics, mode, Sweeps(1))
        robot.meshes = meshes
    return _ROBOTS[question]
