# SPDX-License-Identifier: Apache-2.0
"""A robot's C as kernels of GPUs, on arrays that stay there: compiled by NVRTC, through CuPy.

The C is that of `export_c`, word for word; a kernel around each function asks it of one state in each thread.
"""

from __future__ import annotations

import re
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_kinematics.batch import ShapeError
from pkm_runtime.optional import optional_library

THREADS = 128  # of a block
BLOCKS = 65535  # at most; more states than threads are taken in turns
OPTIONS = ("-std=c++17", "-default-device", "-diag-suppress=222")  # functions are the device's; infinity is 1e308 * 10
HEAD = """\
#ifdef __CUDACC_RTC__
#define HUGE_VAL (1e308 * 10.0)
#define INFINITY HUGE_VAL
#define NAN (HUGE_VAL - HUGE_VAL)
#define NULL 0
#define DBL_DIG 15
#endif
"""
KERNEL = """
extern "C" __global__ void {name}_many(long long n, int mode, {arguments}, int *status)
{{
    (void)mode;
    const long long stride = (long long)blockDim.x * gridDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        status[i] = {name}({call});
}}
"""
# arguments and results of each function of C, between which the mode stands, except of `forward`
FUNCTIONS = {
    "inverse": (("pose",), ("actuated", "joints")),
    "forward": (("actuated", "near"), ("pose",)),
    "jacobian": (("pose",), ("jacobian",)),
    "inverse_dynamics": (("pose", "twist", "acceleration"), ("effort",)),
    "direct_dynamics": (("pose", "twist", "effort"), ("acceleration",)),
    "gravity": (("pose",), ("effort",)),
    "margins": (("pose",), ("margins",)),
}


def on_gpu(dynamics: Dynamics, mode: int = 0) -> GpuRobot:
    """A robot's functions on the GPU that CuPy has in use, in a working mode.

    Raises:
        ExportError: there is no C of it.
        ModeError: no such mode.
        UsageError: CuPy is not installed.
    """
    return GpuRobot(dynamics, mode, optional_library("cupy", "cupy-cuda12x", "functions on GPUs"))


class GpuRobot:
    """Each function takes arrays (n, ...) and returns CuPy's, the last of them the status (n,) that C returns.

    Arrays of others, torch's and JAX's among them, are taken where they are (DLPack), NumPy's are copied. Numbers are
    NaN where there is no answer. `cupy` is CuPy, or what does as it does.
    """

    def __init__(self, dynamics: Dynamics, mode: int, cupy: Any) -> None:
        dynamics.kinematics.modes.branch(mode)  # or ModeError
        self._cupy, self._mode, self._files = cupy, mode, CFiles(dynamics)
        m = len(dynamics.kinematics.actuated_names)
        self._shapes: dict[str, tuple[int, ...]] = {
            "pose": (7,),
            "near": (7,),
            "twist": (6,),
            "acceleration": (6,),
            "margins": (2,),
        }
        self._shapes |= {"actuated": (m,), "effort": (m,), "jacobian": (m, 6)}
        self._shapes["joints"] = (len(dynamics.kinematics.joint_names),)

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

    @cached_property
    def source(self) -> str:
        """The text that NVRTC compiles."""
        own = re.sub(r"#include .*\n", "", self._files.source())
        return "\n".join([HEAD, self._files.header(), own, *map(self._kernel, FUNCTIONS)])

    def _kernel(self, function: str) -> str:
        given, results = FUNCTIONS[function]
        places = [f"{name} + {prod(self._shapes[name])} * i" for name in (*given, *results)]
        if function != "forward":
            places.insert(len(given), "mode")
        arguments = [f"const double *{name}" for name in given] + [f"double *{name}" for name in results]
        name = f"{self._files.name}_{function}"
        return KERNEL.format(name=name, arguments=", ".join(arguments), call=", ".join(places))

    @cached_property
    def _module(self) -> Any:
        return self._cupy.RawModule(code=self.source, options=OPTIONS)

    def _call(self, function: str, *rows: Any) -> tuple[Any, ...]:
        cupy, (names, results) = self._cupy, FUNCTIONS[function]
        taken = [self._taken(name, row) for name, row in zip(names, rows, strict=True)]
        n = len(taken[0])
        if any(len(row) != n for row in taken):
            raise ShapeError(f"{function}: {names} have {[len(row) for row in taken]} rows")
        out = [cupy.empty((n, *self._shapes[name]), dtype=np.float64) for name in results]
        status = cupy.empty(n, dtype=np.int32)
        if n:
            kernel = self._module.get_function(f"{self._files.name}_{function}_many")
            blocks = min(-(-n // THREADS), BLOCKS)
            kernel((blocks,), (THREADS,), (np.int64(n), np.int32(self._mode), *taken, *out, status))
        return *out, status

    def _taken(self, name: str, rows: Any) -> Any:
        """Rows on the GPU, one after the other in double."""
        cupy = self._cupy
        there = cupy.from_dlpack(rows) if hasattr(rows, "__dlpack__") and not isinstance(rows, np.ndarray) else rows
        found = cupy.ascontiguousarray(cupy.asarray(there, dtype=np.float64))
        if found.shape[1:] != self._shapes[name] or found.ndim < 2:
            raise ShapeError(f"{name}: expected (n, {', '.join(map(str, self._shapes[name]))}), got {found.shape}")
        return found
