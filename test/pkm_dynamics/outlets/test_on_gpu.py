# SPDX-License-Identifier: Apache-2.0
"""Kernels of GPUs, from the same text compiled for the processor, with a stand-in for CuPy: Python's answers.

Where there are CuPy and a GPU, they are asked as well; where NVRTC is, it compiles the text.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_test import states_of
from pkm_dynamics.export_c.recorded_robot import ExportError
from pkm_dynamics.outlets.on_gpu import FUNCTIONS, OPTIONS, GpuRobot, on_gpu
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.solve.working_modes import ModeError
from pkm_runtime.errors import UsageError

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
FEW = ("delta", "planar_redundant", "cable_8", "wrist_3ruu", "tricept")


def processor(folder: Path) -> SimpleNamespace:
    """NumPy with what the kernels are compiled and called by, as CuPy has it."""

    class Module:
        def __init__(self, code: str, options: Sequence[str]) -> None:
            assert options == OPTIONS
            (folder / "kernels.cpp").write_text(PROCESSOR + code)
            command = [str(COMPILER), "-std=c++17", "-O1", "-shared", "-fPIC", "kernels.cpp", "-o", "kernels.so"]
            subprocess.run(command, cwd=folder, check=True)
            self.library = ctypes.CDLL(str(folder / "kernels.so"))

        def get_function(self, name: str) -> Callable[..., None]:
            function = getattr(self.library, name)

            def kernel(grid: tuple[int], block: tuple[int], arguments: Sequence[Any]) -> None:
                n, mode, *arrays = arguments
                pointers = [ctypes.c_void_p(one.ctypes.data) for one in arrays]
                for b in range(grid[0]):
                    for thread in range(block[0]):
                        self.library.at(b, thread, block[0], grid[0])
                        function(ctypes.c_longlong(n), ctypes.c_int(mode), *pointers)

            return kernel

    names = ("asarray", "ascontiguousarray", "empty", "from_dlpack")
    return SimpleNamespace(RawModule=Module, **{name: getattr(np, name) for name in names})


def compare(dynamics: Dynamics, robot: GpuRobot, mode: int) -> None:
    """With Python, to 1e-12 of an answer's largest number where limbs and drives are well conditioned."""
    states = states_of(dynamics, 300 * dynamics.kinematics.n_modes, seed=5)
    rows = np.flatnonzero(states.mode == mode)
    with np.errstate(divide="ignore"):
        condition = 1.0 / np.nan_to_num(states.answers["margins"][rows]).prod(axis=1)
    drives = states.answers["inverse"][rows][:, dynamics.kinematics.engine.actuated_column]
    for name, (arguments, _) in FUNCTIONS.items():
        given = [drives if what == "actuated" else states.given[what][rows] for what in arguments]
        results = [np.asarray(x.get() if hasattr(x, "get") else x) for x in getattr(robot, name)(*given)]
        found, status, wanted = results[-2], results[-1], states.answers[name][rows]
        found, known = found.reshape(wanted.shape), np.isin(status, (0, 2))
        assert np.isnan(found[~known]).all(), name
        if name == "forward":
            found[:, 3:] *= np.where((found[:, 3:] * wanted[:, 3:]).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
        answered = np.isin(states.status[name][rows], (0, 2))
        assert not (known & ~answered).any(), name
        assert (answered & ~known).mean() < (0.1 if dynamics.kinematics.engine.iterated else 0.02), name
        well = known & (condition < 1e3)
        top = np.maximum(np.abs(wanted).max(axis=1), 1e-6 * np.nanmax(np.abs(wanted), initial=1e-300))
        assert (np.abs(found - wanted).max(axis=1) / top)[well].max(initial=0.0) < 1e-12, name
    assert well.any() or dynamics.mechanism.name == "griffis_duffy"


@needs_compiler
@pytest.mark.parametrize("name", FEW)
def test_answers_are_those_of_python(name: str, tmp_path: Path) -> None:
    dynamics = Dynamics(load_mechanism(name))
    compare(dynamics, GpuRobot(dynamics, 0, processor(tmp_path)), 0)


@needs_compiler
def test_arrays_of_others_and_other_modes(tmp_path: Path) -> None:
    dynamics = Dynamics(load_mechanism("delta"))
    robot = GpuRobot(dynamics, 7, processor(tmp_path))
    compare(dynamics, robot, 7)
    poses = np.tile(dynamics.kinematics.home, (1000, 1))  # more than threads of a block
    poses[::2, 2] += 1.0
    other = SimpleNamespace(__dlpack__=poses.__dlpack__, __dlpack_device__=poses.__dlpack_device__)
    effort, status = robot.gravity(other)
    assert (status[::2] == 1).all()
    assert np.isnan(effort[::2]).all()
    np.testing.assert_allclose(effort[1::2], dynamics.inverse(dynamics.kinematics.at(poses[1::2], mode=7)).effort)
    assert [x.shape for x in robot.jacobian(poses[:0])] == [(0, 3, 6), (0,)]
    for bad in (poses[:, :6], poses[0]):
        with pytest.raises(ShapeError, match=r"pose: expected \(n, 7\)"):
            robot.gravity(bad)
    with pytest.raises(ShapeError, match="rows"):
        robot.forward(np.zeros((3, 3)), poses)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ExportError, match="carpal_wrist"):
        GpuRobot(Dynamics(load_mechanism("carpal_wrist")), 0, None)
    with pytest.raises(ModeError, match="99"):
        GpuRobot(Dynamics(load_mechanism("delta")), 99, None)


def test_without_cupy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(UsageError, match="cupy-cuda12x"):
        on_gpu(Dynamics(load_mechanism("delta")))


@pytest.mark.parametrize("name", FEW)
def test_nvrtc_compiles_the_text(name: str) -> None:
    """No GPU is needed for that: `pip install nvidia-cuda-nvrtc-cu12`."""
    package = pytest.importorskip("nvidia.cuda_nvrtc", reason="NVRTC is not installed")
    nvrtc = ctypes.CDLL(str(next(Path(package.__path__[0]).glob("lib/libnvrtc.so.*"))))
    source = GpuRobot(Dynamics(load_mechanism(name)), 0, None).source
    program, options = ctypes.c_void_p(), [*OPTIONS, "-arch=compute_90"]
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    texts = (ctypes.c_char_p * len(options))(*(one.encode() for one in options))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), texts)
    log = ctypes.create_string_buffer(100_000)
    nvrtc.nvrtcGetProgramLog(program, log)
    assert not failed, log.value.decode()
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    made = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, made)
    assert made.value.count(b".visible .entry") == len(FUNCTIONS)


@pytest.mark.parametrize("name", FEW)
def test_on_a_gpu(name: str) -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cupy.is_available():
        pytest.skip("CuPy finds no GPU")
    dynamics = Dynamics(load_mechanism(name))
    compare(dynamics, on_gpu(dynamics), 0)
