# SPDX-License-Identifier: Apache-2.0
"""A robot's C as kernels of GPUs, on arrays that stay there: compiled by NVRTC, through CuPy.

The C is that of `export_c`, word for word, with what people of GPUs ask beside it: room to the ends of joints,
membership in a workspace, a step of a simulation. A kernel around each function asks it of one state in each thread.
"""

from __future__ import annotations

import re
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.kernels.platform_dynamics import advance
from pkm_kinematics.batch import ShapeError, gpu_rows
from pkm_kinematics.recordings_at_home import some_numbers
from pkm_runtime.codegen import Tape, trace
from pkm_runtime.codegen.c_code import CHOICES, HEAD, OPTIONS, ROWS, CCode, Part, cupy_with_gpu, launch

KERNEL = """
extern "C" __global__ void {name}_many(long long n, int mode, {arguments})
{{
    (void)mode;
{rows}
        status[i] = {name}({call});
}}
"""
BESIDE = """
{helpers}
static const double joint_unit[{joints}] = {{{units}}}; /* rad, and m of those that slide */

static int {name}_room(const double pose[7], int mode, double *room)
{{
    double actuated[{m}], joints[{joints}];
    const int status = {name}_inverse(pose, mode, actuated, joints);
    *room = status == PKM_OK || status == PKM_JOINT_LIMIT ? HUGE_VAL : NAN;
    for (int k = 0; k < {joints}; k++)
        *room = smaller(*room, smaller(joints[k] - joint_lower[k], joint_upper[k] - joints[k]) / joint_unit[k]);
    return status == PKM_JOINT_LIMIT ? PKM_OK : status;
}}

static int {name}_inside(const double pose[7], double regularity, double condition, int mode)
{{
    double actuated[{m}], joints[{joints}], margins[2];
    int status = {name}_inverse(pose, mode, actuated, joints);
    if (status == PKM_OK && !(regularity <= 0.0 && condition <= 0.0)) {{
        status = {name}_margins(pose, mode, margins);
        if (status == PKM_OK && !(margins[0] >= regularity && margins[1] >= condition))
            status = PKM_SINGULAR;
    }}
    return status;
}}
"""
STEP = """
static int {name}_step(
    const double pose[7], const double twist[6], const double effort[], double dt, int mode, double to[7],
    double moving[6])
{{
    double acceleration[6];
    int status = {name}_direct_dynamics(pose, twist, effort, mode, acceleration);
    if (status == PKM_OK) {{
{body}
        status = finish(status, moving, 6);
    }}
    status = finish(status, to, 7);
    return finish(status, moving, 6);
}}
"""
# Where the motion space turns: pose and twist are then moved to the nearest possible ones.
TURNING_STEP = """
static int NAME_step(
    const double pose[7], const double twist[6], const double effort[], double dt, int mode, double to[7],
    double moving[6])
{
    double side[SIDES], at[7], acceleration[6];HELD
    int status = NAME_direct_dynamics(pose, twist, effort, mode, acceleration);
    if (status == PKM_OK)
        status = START;
    if (status == PKM_OK) {
ADVANCED
        status = finish(finish(status, to, 7), moving, 6);
    }
    if (status == PKM_OK)
        status = platform(to, at);SOLVED
    if (status == PKM_OK)
        status = nearest_in_space(side, Q at, HUGE_VAL, FARTHEST);
    if (status == PKM_OK) {
        double wanted[6];
        for (int k = 0; k < 7; k++)
            to[k] = at[k];
        for (int k = 0; k < 6; k++)
            wanted[k] = moving[k];
        status = nearest_twist(at, side, Q wanted, moving);
    }
    status = finish(status, to, 7);
    return finish(status, moving, 6);
}
"""
HELD = """
    double found[2] = {0.0, 0.0}, turned[NEWTONS];
    struct NAME_limbs held = {0};"""
SOLVED = """
    if (status == PKM_OK)
        status = limbs(at, side, held.joints, found, turned);"""
FARTHEST = 1e-2  # rad, and of the robot's size: a step that misses the motion space by more is too long
# arrays, numbers and results of each function of C, which has the mode before the results; but for `forward`
FUNCTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "inverse": (("pose",), (), ("actuated", "joints")),
    "forward": (("actuated", "near"), (), ("pose",)),
    "jacobian": (("pose",), (), ("jacobian",)),
    "inverse_dynamics": (("pose", "twist", "acceleration"), (), ("effort",)),
    "direct_dynamics": (("pose", "twist", "effort"), (), ("acceleration",)),
    "gravity": (("pose",), (), ("effort",)),
    "margins": (("pose",), (), ("margins",)),
    "room": (("pose",), (), ("room",)),
    "inside": (("pose",), ("regularity", "condition"), ()),
    "step": (("pose", "twist", "effort"), ("dt",), ("to", "moving")),
}


def on_gpu(dynamics: Dynamics, mode: int = 0) -> GpuRobot:
    """A robot's functions on the GPU that CuPy has in use, in a working mode.

    Raises `ExportError` where there is no C of it, `ModeError`, and `UsageError` without CuPy or a GPU.
    """
    return GpuRobot(dynamics, mode)


class GpuRobot:
    """Each function takes arrays (n, ...) and returns CuPy's, the last of them the status (n,) that C returns.

    Arrays of others, torch's and JAX's among them, are taken where they are (DLPack), NumPy's are copied. Numbers are
    NaN where there is no answer.
    """

    def __init__(self, dynamics: Dynamics, mode: int, cupy: Any = None) -> None:
        dynamics.kinematics.modes.branch(mode)  # or ModeError
        self._mode, self._files = mode, CFiles(dynamics)
        self._cupy = cupy_with_gpu("functions on GPUs") if cupy is None else cupy
        m = len(dynamics.kinematics.actuated_names)
        self._shapes: dict[str, tuple[int, ...]] = {"margins": (2,), "room": (), "jacobian": (m, 6)}
        self._shapes["joints"] = (len(dynamics.kinematics.joint_names),)
        for names, n in (
            (("pose", "near", "to"), 7),
            (("twist", "acceleration", "moving"), 6),
            (("actuated", "effort"), m),
        ):
            self._shapes |= dict.fromkeys(names, (n,))

    def inverse(self, pose: Any) -> tuple[Any, ...]:
        """Positions of the drives (n, n_actuated), of all joints (n, n_joints), status, which judges their ranges."""
        return self._call("inverse", pose)

    def forward(self, actuated: Any, near: Any) -> tuple[Any, ...]:
        """The poses (n, 7) that continue `near`, status."""
        return self._call("forward", actuated, near)

    def jacobian(self, pose: Any) -> tuple[Any, ...]:
        """Rates of the drives per twist (n, n_actuated, 6), status."""
        return self._call("jacobian", pose)

    def inverse_dynamics(self, pose: Any, twist: Any, acceleration: Any) -> tuple[Any, ...]:
        """Efforts (n, n_actuated), status."""
        return self._call("inverse_dynamics", pose, twist, acceleration)

    def direct_dynamics(self, pose: Any, twist: Any, effort: Any) -> tuple[Any, ...]:
        """Accelerations of the platform (n, 6), status."""
        return self._call("direct_dynamics", pose, twist, effort)

    def gravity(self, pose: Any) -> tuple[Any, ...]:
        """Efforts (n, n_actuated) that hold the robot at rest, status."""
        return self._call("gravity", pose)

    def margins(self, pose: Any) -> tuple[Any, ...]:
        """Regularity of the worst limb, reciprocal condition of the drives (n, 2), status."""
        return self._call("margins", pose)

    def room(self, pose: Any) -> tuple[Any, ...]:
        """Distance (n,) [rad, m over the characteristic length] of joints to the ends of their ranges, status."""
        return self._call("room", pose)

    def inside(self, pose: Any, regularity: float = 0.0, condition: float = 0.0) -> tuple[Any, ...]:
        """Which poses (n,) limbs reach with joints in range and `margins` not below bounds; status says why."""
        (status,) = self._call("inside", pose, numbers=(regularity, condition))
        return status == 0, status

    def step(self, pose: Any, twist: Any, effort: Any, dt: float) -> tuple[Any, ...]:
        """Poses (n, 7) and twists (n, 6) after `dt` [s] under efforts, status; as `Dynamics.lean_step`.

        Where the motion space turns with the pose, the step is the platform's, and then moved to the nearest possible
        pose and twist; that of `lean_step` is the drives'.
        """
        return self._call("step", pose, twist, effort, numbers=(dt,))

    @cached_property
    def source(self) -> str:
        """The text that NVRTC compiles."""
        own = re.sub(r"#include .*\n", "", self._files.source())
        missing = {name: text for name, text in CHOICES.items() if f"double {name}(" not in own}
        engine = self._files.engine
        beside = BESIDE.format(
            helpers="".join(f"static double {k}(double a, double b) {{ return {v}; }}\n" for k, v in missing.items()),
            units=", ".join(str(1.0 if turns else engine.characteristic_length) for turns in engine.joint_turning),
            joints=len(engine.joint_names),
            m=self._files.robot.m,
            name=self._files.name,
        )
        return "\n".join([HEAD, self._files.header.text(), own, beside, self._step(), *map(self._kernel, FUNCTIONS)])

    def _step(self) -> str:
        files, robot = self._files, self._files.robot
        if not robot.turning:
            return STEP.format(name=files.name, body=_advance())
        q = "const REAL q[], " if robot.iterated else ""
        arguments = f"const REAL pose[7], const REAL side[], {q}const REAL twist[6], REAL nearest[6]"
        words = {"HELD": "", "SOLVED": "", "START": "sides_of(mode, side)", "Q ": "", "FARTHEST": repr(FARTHEST)}
        if robot.iterated:
            words |= {"HELD": HELD, "SOLVED": SOLVED, "Q ": "held.joints, "}
            words["START"] = "take_along(pose, mode, side, &held)"
        text = re.sub("|".join(words), lambda word: words[word[0]], TURNING_STEP)
        text = files.text(text).replace("ADVANCED", _advance())
        return f"{files.static('nearest_twist', arguments, robot.nearest_twist())}\n{text}"

    def _kernel(self, function: str) -> str:
        given, numbers, results = FUNCTIONS[function]
        before, after = ([f"{name} + {prod(self._shapes[name])} * i" for name in names] for names in (given, results))
        mode = [] if function == "forward" else ["mode"]
        arguments = [f"const double *{name}" for name in given] + [f"double {name}" for name in numbers]
        arguments += [f"double *{name}" for name in results] + ["int *status"]
        name, call = f"{self._files.name}_{function}", ", ".join([*before, *numbers, *mode, *after])
        return KERNEL.format(name=name, arguments=", ".join(arguments), rows=ROWS, call=call)

    @cached_property
    def _module(self) -> Any:
        return self._cupy.RawModule(code=self.source, options=OPTIONS)

    def _call(self, function: str, *rows: Any, numbers: tuple[float, ...] = ()) -> tuple[Any, ...]:
        cupy, (names, _, results) = self._cupy, FUNCTIONS[function]
        given = [gpu_rows(cupy, row, self._shapes[name], name) for name, row in zip(names, rows, strict=True)]
        n = len(given[0])
        if any(len(row) != n for row in given):
            raise ShapeError(f"{function}: {names} have {[len(row) for row in given]} rows")
        out = [cupy.empty((n, *self._shapes[name]), dtype=np.float64) for name in results]
        status = cupy.empty(n, dtype=np.int32)
        kernel = self._module.get_function(f"{self._files.name}_{function}_many")
        launch(kernel, n, np.int32(self._mode), *given, *map(np.float64, numbers), *out, status)
        return *out, status


def _advance() -> str:
    """C of `advance`: pose and twist after dt, from those before and the acceleration."""
    names, tape = ("pose", "twist", "acceleration"), Tape()
    arrays = [tape.inputs(k, some_numbers(n), range(n)) for k, n in enumerate((7, 6, 6))]
    dt = tape.inputs(3, np.array([1e-3]), [0])[0]
    motion = np.concatenate(arrays[:2])
    trace(advance)(motion, arrays[2], dt)
    places = [*(f"to[{k}]" for k in range(7)), *(f"moving[{k}]" for k in range(6))]
    part = Part("the step", len(tape.order), len(tape.conditions), "", list(zip(places, motion, strict=True)))
    texts = {(a, k): f"{name}[{k}]" for a, name in enumerate(names) for k in range(len(arrays[a]))}
    return "\n".join(CCode(tape, [part], texts | {(3, 0): "dt"}, {}, {}).lines({}))
