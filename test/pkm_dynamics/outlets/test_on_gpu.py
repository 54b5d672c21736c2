# SPDX-License-Identifier: Apache-2.0
"""Kernels of GPUs, from the same text compiled for the processor, with a stand-in for CuPy: Python's answers.

Where there are CuPy and a GPU, they are asked as well; where NVRTC is, it compiles the text.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench import outlets_on_gpu
from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_test import states_of
from pkm_dynamics.outlets.on_gpu import FUNCTIONS, OPTIONS, GpuRobot, on_gpu
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.solve.working_modes import ModeError
from pkm_runtime.errors import PkmError, UsageError
from test.oracles.redundant_robots import on_a_rail

from .processor import needs_compiler, processor

FEW = ("delta", "planar_redundant", "cable_8", "wrist_3ruu", "tricept", "carpal_wrist")


BESIDE = ("room", "inside", "step")  # that C has not of itself


def compare(dynamics: Dynamics, robot: GpuRobot, mode: int) -> None:
    """With Python, to 1e-12 of an answer's largest number where limbs and drives are well conditioned."""
    states = states_of(dynamics, 300 * dynamics.kinematics.n_modes, seed=5)
    rows = np.flatnonzero(states.mode == mode)
    with np.errstate(divide="ignore"):
        condition = 1.0 / np.nan_to_num(states.answers["margins"][rows]).prod(axis=1)
    drives = states.answers["inverse"][rows][:, dynamics.kinematics.engine.actuated_column]
    for name, (arguments, _, _) in FUNCTIONS.items():
        if name in BESIDE:
            continue
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


@pytest.mark.by_day("carpal_wrist")
@needs_compiler
@pytest.mark.parametrize("name", FEW)
def test_answers_are_those_of_python(name: str) -> None:
    dynamics = Dynamics(load_mechanism(name))
    robot = GpuRobot(dynamics, 0, processor())
    compare(dynamics, robot, 0)
    compare_beside(dynamics, robot, 0)


def compare_beside(dynamics: Dynamics, robot: GpuRobot, mode: int) -> None:
    """Room, membership and a step with Python: to 1e-12, where limbs and drives are well conditioned."""
    kinematics, rng = dynamics.kinematics, np.random.default_rng(2)
    states = states_of(dynamics, 300 * kinematics.n_modes, seed=6)
    rows = np.flatnonzero(states.mode == mode)
    pose, twist, effort = (states.given[name][rows] for name in ("pose", "twist", "effort"))
    pose[::3, :3] += rng.normal(size=pose[::3, :3].shape) * kinematics.engine.size * (kinematics.mobility == 6)
    at = kinematics.inverse(pose, mode=mode)
    lower, upper = kinematics.engine.ranges.limits
    unit = np.where(kinematics.engine.joint_turning, 1.0, kinematics.characteristic_length)
    wanted = (np.minimum(at.joints - lower, upper - at.joints) / unit).min(axis=1)
    room, status = (np.asarray(x) for x in robot.room(pose))
    known = np.isfinite(room) & np.isin(at.status, (0, 2))
    assert known.any() or not np.isfinite(wanted).any()
    np.testing.assert_allclose(room[known], wanted[known], rtol=1e-12, atol=1e-12)
    inside, why = (np.asarray(x) for x in robot.inside(pose))
    solved = status == 0
    np.testing.assert_array_equal(inside[solved], room[solved] >= 0.0)
    np.testing.assert_array_equal(inside == (why == 0), True)
    if not kinematics.engine.iterated:  # which Python follows farther from home
        np.testing.assert_array_equal(inside, at.status == 0)
    margins, known = (np.asarray(x) for x in robot.margins(pose))
    bound = float(np.median(margins[known == 0][:, 1]))
    strict = np.asarray(robot.inside(pose, condition=bound)[0])
    np.testing.assert_array_equal(strict, inside & (known == 0) & (np.nan_to_num(margins[:, 1], nan=-1.0) >= bound))
    assert 0 < strict.sum() < len(strict)
    well = margins.prod(axis=1) > 1e-3
    if not kinematics.constant_space:
        compare_steps_in_turning_spaces(dynamics, robot, mode)
        return
    to, moving, status = (np.asarray(x) for x in robot.step(pose, twist, effort, 1e-3))
    compared = 0
    lean = dynamics.lean_step(1e-3, mode)
    few = 15 if kinematics.engine.iterated else 100
    for k in np.flatnonzero(well & (status == 0))[:few]:
        motion, out = np.concatenate([pose[k], twist[k], np.zeros(12)]), np.zeros(6)
        step = dynamics.lean_step(1e-3, mode) if kinematics.engine.iterated else lean  # limbs follow from home
        if step(motion, np.array(effort[k]), out) == 0:
            compared += 1
            np.testing.assert_allclose(to[k], motion[:7], rtol=0.0, atol=1e-12 * np.abs(motion[:7]).max())
            np.testing.assert_allclose(moving[k], motion[7:13], rtol=0.0, atol=1e-12 * np.abs(motion[7:13]).max())
    assert compared > few // 2
    assert np.isnan(to[status != 0]).all()
    assert np.isnan(moving[status != 0]).all()


def compare_steps_in_turning_spaces(dynamics: Dynamics, robot: GpuRobot, mode: int) -> None:
    """Loops are closed and twists are possible; Python's steps, in the drives, differ by the square of their length."""
    k, rng, n = dynamics.kinematics, np.random.default_rng(4), 30
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    drives = np.asarray(k.inverse(k.home).actuated) + 0.02 * unit * rng.uniform(-1.0, 1.0, (n, len(unit)))
    pose = np.asarray(k.forward(drives, near=k.home).pose)
    twist = np.einsum("nij,nj->ni", k.at(pose).subspace, rng.normal(size=(n, k.engine.mobility)))
    effort = np.asarray(dynamics.gravity(pose).effort) * rng.uniform(0.5, 1.5, (n, len(unit)))
    off = []
    for dt in (1e-3, 0.5e-3):
        to, moving, status = (np.asarray(x) for x in robot.step(pose, twist, effort, dt))
        assert (status == 0).all()
        at = k.at(to, mode=mode)
        assert (at.residual < 1e-9 * k.engine.size).all()
        free = [np.linalg.lstsq(S, v, rcond=None)[0] for S, v in zip(at.subspace, moving, strict=True)]
        np.testing.assert_allclose(np.einsum("nij,nj->ni", at.subspace, free), moving, atol=1e-12 * abs(moving).max())
        far = []
        for one in zip(pose, twist, effort, to, moving, strict=True):
            motion = np.concatenate([*one[:2], np.zeros(12)])
            assert dynamics.lean_step(dt, mode)(motion, np.array(one[2]), np.zeros(6)) == 0
            far.append(np.abs(motion[:13] - np.concatenate(one[3:])))
        off.append(np.mean(far, axis=0).max())
    assert 3.5 < off[0] / off[1] < 4.5
    gone = np.full((2, 7), np.nan), np.zeros((2, 6)), np.zeros((2, len(unit)))
    assert all(np.isnan(x).all() for x in robot.step(*gone, 1e-3)[:2])


@pytest.mark.by_day("delta")
@needs_compiler
@pytest.mark.parametrize("name", ["delta", "tricept"])
def test_membership_is_that_of_the_analysis(name: str) -> None:
    """Limits of the platform's own branch included, at poses of which some are outside for each reason."""
    dynamics = Dynamics(load_mechanism(name))
    conditions = Analysis(dynamics.kinematics, 0).conditions()
    size = dynamics.kinematics.engine.size
    ranges = {c.name: (c.home - 0.6 * size, c.home + 0.6 * size) for c in conditions.domain.coordinates}
    membership = conditions.over(conditions.domain.within(ranges))
    points = membership.domain.lower + np.random.default_rng(0).random((2000, 3)) * np.ptp(
        membership.domain.box, axis=1
    )
    poses, known = membership.domain.poses(points)
    wanted = membership.inside(points)
    inside, why = GpuRobot(dynamics, 0, processor()).inside(np.where(known[:, None], poses, np.nan))
    np.testing.assert_array_equal(inside, wanted)
    assert 0.1 < wanted.mean() < 0.9
    assert len(set(why[~inside])) > (name == "delta")  # all that stops a Tricept here are its joints


@pytest.mark.slow
@needs_compiler
def test_figures_of_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The script for a computer with a GPU runs, and what it times is right."""
    monkeypatch.setitem(sys.modules, "cupy", processor())
    assert float(outlets_on_gpu.figure_of_states(processor(), 256, 1).rpartition(" ")[2]) < 1e-9
    lines = list(outlets_on_gpu.figures(processor(), states=256, repetitions=1))
    assert len(lines) == 1 + len(outlets_on_gpu.WORK)
    assert lines[1].startswith("delta IK + ID: ")
    assert "180 bytes each" in lines[1]
    assert all(float(line.rpartition(" ")[2]) < 1e-11 for line in lines[1:])


@needs_compiler
def test_arrays_of_others_and_other_modes() -> None:
    dynamics = Dynamics(load_mechanism("delta"))
    robot = GpuRobot(dynamics, 7, processor())
    compare(dynamics, robot, 7)
    poses = np.tile(dynamics.kinematics.home, (1000, 1))  # more than threads of a block
    poses[::2, 2] += 1.0
    other = SimpleNamespace(__dlpack__=poses.__dlpack__, __dlpack_device__=poses.__dlpack_device__)
    effort, status = robot.gravity(other)
    assert (status[::2] == 1).all()
    assert np.isnan(effort[::2]).all()
    np.testing.assert_allclose(effort[1::2], dynamics.inverse(dynamics.kinematics.at(poses[1::2], mode=7)).effort)
    assert [x.shape for x in robot.jacobian(poses[:0])] == [(0, 3, 6), (0,)]
    for bad in (poses[:, :6], poses[0], "home", None, [[1.0, 2.0], [3.0]], poses + 1j):
        with pytest.raises(ShapeError, match=r"pose: expected \(n, 7\)"):
            robot.gravity(bad)
    assert not robot.inside(poses[1::2], regularity=np.nan)[0].any()
    with pytest.raises(ShapeError, match="rows"):
        robot.forward(np.zeros((3, 3)), poses)


def test_what_cannot_be_is_refused_before_anybody_installs_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(PkmError, match="redundant joint"):
        on_gpu(Dynamics(load_mechanism(on_a_rail("delta"))))
    with pytest.raises(ModeError, match="99"):
        on_gpu(Dynamics(load_mechanism("delta")), 99)


def test_without_cupy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UsageError, match="cupy-cuda12x"):
        on_gpu(Dynamics(load_mechanism("delta")))


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(is_available=lambda: False))
    with pytest.raises(UsageError, match="CuPy finds no GPU"):
        on_gpu(Dynamics(load_mechanism("delta")))


@pytest.mark.parametrize("name", FEW)
def test_nvrtc_compiles_the_text(name: str) -> None:
    """No GPU is needed for that: `pip install nvidia-cuda-nvrtc-cu12`."""
    package = pytest.importorskip("nvidia.cuda_nvrtc", reason="NVRTC is not installed")
    nvrtc = ctypes.CDLL(str(next(Path(package.__path__[0]).glob("lib/libnvrtc.so.*"))))
    source = GpuRobot(Dynamics(load_mechanism(name)), 0, processor()).source
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
    compare_beside(dynamics, on_gpu(dynamics), 0)
