# SPDX-License-Identifier: Apache-2.0
"""A processor in place of a GPU: kernels compiled by a C++ compiler, called as CuPy calls them, on NumPy's arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pkm_runtime.codegen.c_code import OPTIONS
from pkm_runtime.kernels.binding import empty_shareable

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++ or clang++)")
# What a GPU has of itself: here the threads run one after the other.
PROCESSOR = """\
#include <float.h>
#include <math.h>
#define __global__
static thread_local struct { int x; } blockIdx, threadIdx, blockDim, gridDim;
extern "C" void at(int block, int thread, int threads, int blocks)
{
    blockIdx.x = block, threadIdx.x = thread, blockDim.x = threads, gridDim.x = blocks;
}
"""


@cache
def compiled(code: str) -> ctypes.CDLL:
    """A library of kernels, which is loaded once where several tests ask the same robot."""
    with tempfile.TemporaryDirectory() as here:
        Path(here, "kernels.cpp").write_text(PROCESSOR + code)
        command = [str(COMPILER), "-std=c++17", "-O0", "-shared", "-fPIC", "kernels.cpp", "-o", "kernels.so"]
        subprocess.run(command, cwd=here, check=True)
        return ctypes.CDLL(str(Path(here, "kernels.so")))


def processor() -> SimpleNamespace:
    """NumPy with what the kernels are compiled and called by, as CuPy has it; `given` are pointers of the last call."""

    class Module:
        def __init__(self, code: str, options: Sequence[str]) -> None:
            assert options == OPTIONS
            self.library = compiled(code)

        def get_function(self, name: str) -> Callable[..., None]:
            function = getattr(self.library, name)

            def kernel(grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
                given = [_c(one) for one in arguments]
                found.given = [one.value for one in given if isinstance(one, ctypes.c_void_p)]
                for b in range(grid[0]):
                    for thread in range(block[0]):
                        self.library.at(b, thread, block[0], grid[0])
                        function(*given)

            return kernel

    names = (
        "asarray",
        "ascontiguousarray",
        "from_dlpack",
        "concatenate",
        "stack",
        "where",
        "flatnonzero",
        "zeros",
        "ones",
    )
    names += ("cos", "sin", "tan", "random")

    def empty(shape: int | tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
        return (
            empty_shareable((shape,) if isinstance(shape, int) else shape)
            if dtype is np.float64
            else np.empty(shape, dtype)
        )

    found = SimpleNamespace(RawModule=Module, asnumpy=np.asarray, is_available=lambda: True, empty=empty, given=[])
    for name in names:
        setattr(found, name, getattr(np, name))
    idle = SimpleNamespace(synchronize=lambda: None)
    found.cuda = SimpleNamespace(Device=lambda: idle)
    return found


def _c(one: Any) -> Any:
    if isinstance(one, np.ndarray):
        return ctypes.c_void_p(one.ctypes.data)
    kinds = {np.int64: ctypes.c_longlong, np.int32: ctypes.c_int, np.float64: ctypes.c_double}
    return kinds[type(one)](one)
