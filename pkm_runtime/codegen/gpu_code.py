# SPDX-License-Identifier: Apache-2.0
"""C as kernels of GPUs, compiled by NVRTC through CuPy; and recordings as such, in the C that people get."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pkm_runtime.codegen.c_code import CHOICES, CCode, Part
from pkm_runtime.codegen.tape import Array, Recording
from pkm_runtime.errors import UsageError
from pkm_runtime.optional import optional_library

THREADS = 128  # of a block
BLOCKS = 65535  # at most; more rows than threads are taken in turns
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
ROWS = """\
    const long long stride = (long long)blockDim.x * gridDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)"""
COLUMNS = """
extern "C" __global__ void columns(long long n, const double *__restrict__ in, double *__restrict__ out)
{{
{rows} {{
        double same = 1.0;
{body}
        out[{width} * n + i] = same;
    }}
}}
"""


def cupy_with_gpu(purpose: str) -> Any:
    """CuPy; `UsageError` where it is not installed or finds no GPU."""
    cupy = optional_library("cupy", "cupy-cuda12x", purpose)
    if not cupy.is_available():
        raise UsageError(purpose, "CuPy finds no GPU", "use a computer with a GPU of NVIDIA and its driver")
    return cupy


def launch(kernel: Any, n: int, *arguments: Any) -> None:
    """Run a kernel of CuPy with a thread for each of n rows, which is its first argument."""
    if n:
        kernel((min(-(-n // THREADS), BLOCKS),), (THREADS,), (np.int64(n), *arguments))


class GpuCode:
    """A recording of one input array as a function of columns, as `VectorCode` has it, a thread for each row.

    `cupy` is CuPy, or what does as it does.
    """

    def __init__(self, recording: Recording, cupy: Any) -> None:
        self._cupy, self._width, tape = cupy, len(recording.results), recording.tape
        inputs = {term.how[2] for term in tape.needed(recording.results) if term.how[0] == "input"}
        self.inputs: tuple[int, ...] = tuple(sorted(inputs))
        texts = {(0, k): f"in[{place} * n + i]" for place, k in enumerate(self.inputs)}
        results = [(f"out[{place} * n + i]", x) for place, x in enumerate(recording.results)]
        part = Part("all results", len(tape.order), len(tape.conditions), "same = 0.0;", results)
        body = "\n".join(CCode(tape, [part], texts, {}, {}).lines({}))
        helpers = "".join(
            f"static double {name}(double a, double b) {{ return {CHOICES[name]}; }}\n" for name in CHOICES
        )
        self.source = HEAD + helpers + COLUMNS.format(rows=ROWS, body=body, width=self._width)

    @cached_property
    def _kernel(self) -> Any:
        return self._cupy.RawModule(code=self.source, options=OPTIONS).get_function("columns")

    def __call__(self, columns: Array, out: Array) -> None:
        """Fill `out` (results + 1, n) from `columns` (k, n) of `inputs`, both in the computer's memory.

        The last is 1 where all comparisons came out as recorded, else 0.
        """
        there, found = self._cupy.asarray(np.ascontiguousarray(columns)), self._cupy.empty(out.shape, dtype=np.float64)
        launch(self._kernel, columns.shape[1], there, found)
        out[:] = self._cupy.asnumpy(found)
