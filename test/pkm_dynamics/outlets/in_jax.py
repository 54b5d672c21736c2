# SPDX-License-Identifier: Apache-2.0
"""Robots in JAX: Python's answers, exact derivatives of all orders, compiled and vectorised alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pkm_description import load_mechanism
from pkm_description.load import load_model
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.recorded_function import ExportError
from pkm_dynamics.outlets.on_gpu import GpuRobot
from pkm_dynamics.outlets.on_jax import JaxRobot, on_jax
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.batch import ShapeError, as_rows
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.linkage.consistent_states import closed_states, consistent_states
from pkm_kinematics.solve.working_modes import ModeError
from pkm_runtime.codegen import AVAILABLE
from pkm_runtime.errors import PkmError

from .judge import compare
from .processor import needs_compiler, processor

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="LLVM is too old")
FEW = ("delta", "cable_8", "carpal_wrist")  # others at night
H = 1e-6


@pytest.fixture(autouse=True)
def _double() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@cache
def robot(name: str) -> tuple[Dynamics, JaxRobot]:
    dynamics = Dynamics(load_mechanism(name))
    return dynamics, on_jax(dynamics)


def beside_home(dynamics: Dynamics, part: float = 0.05) -> jax.Array:
    S, size = dynamics.kinematics.task.subspace, dynamics.kinematics.engine.size
    step = S @ np.linspace(0.5, 1.0, S.shape[1]) * np.repeat([size, 1.0], 3)
    return jnp.asarray(displace(np.array(dynamics.kinematics.home), part * step))


def displaced(pose: jax.Array, step: jax.Array) -> jax.Array:
    """A pose after a small displacement (6,), to second order."""
    w, v, s = step[3:], pose[3:6], pose[6]
    turned = jnp.append(0.5 * (s * w + jnp.cross(w, v)), -0.5 * w @ v) - 0.125 * (w @ w) * pose[3:]
    return jnp.concatenate([pose[:3] + step[:3], pose[3:] + turned])


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("name", FEW)
def test_answers_are_those_of_python(name: str) -> None:
    dynamics, found = robot(name)
    compare(dynamics, 0, lambda name, *rows: getattr(found, name)(*rows))


@pytest.mark.slow
def test_answers_of_every_robot(robot_name: str) -> None:
    dynamics = Dynamics(load_mechanism(robot_name))
    for mode in {0, dynamics.kinematics.n_modes - 1}:
        found = on_jax(dynamics, mode)
        compare(dynamics, mode, lambda name, *rows, found=found: getattr(found, name)(*rows))


@pytest.mark.slow
@pytest.mark.by_day("delta")
@pytest.mark.parametrize("name", ["delta", "agile_eye", "quattro"])
def test_derivatives_of_efforts_are_those_of_complex_steps(name: str) -> None:
    """Through the iterated limbs of a Quattro as well."""
    dynamics, found = robot(name)
    pose, S = beside_home(dynamics), jnp.asarray(dynamics.kinematics.task.subspace)
    twist, acceleration = S @ jnp.linspace(0.3, 0.5, S.shape[1]), S @ jnp.linspace(-1.0, 2.0, S.shape[1])
    wanted = dynamics.inverse_derivatives(pose, twist, acceleration)
    zero = jnp.zeros(S.shape[1])
    at = jax.jit(jax.jacfwd(lambda c: found.inverse_dynamics(displaced(pose, S @ c), twist, acceleration)))(zero)
    by_twist = jax.jit(jax.jacrev(lambda c: found.inverse_dynamics(pose, twist + S @ c, acceleration)))(zero)
    for one, other in ((at, wanted.pose), (by_twist, wanted.twist)):
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-9 * np.abs(other).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "irsbot2"])
def test_second_derivatives(name: str) -> None:
    """Of a joint and an effort, forward over backward, against differences of first ones; of iterated limbs too."""
    dynamics, found = robot(name)
    pose, S = beside_home(dynamics), jnp.asarray(dynamics.kinematics.task.subspace)

    def number(c: jax.Array) -> jax.Array:
        at = displaced(pose, S @ c)
        return found.joints(at).sum() + found.gravity(at)[0] ** 2 + found.inverse(at)[0]

    zero, gradient = jnp.zeros(S.shape[1]), jax.jit(jax.grad(number))
    hessian = jax.jit(jax.hessian(number))(zero)
    quotient = np.array([(gradient(H * e) - gradient(-H * e)) / (2 * H) for e in np.eye(len(zero))])
    np.testing.assert_allclose(hessian, quotient, rtol=0.0, atol=1e-6 * np.abs(quotient).max())
    np.testing.assert_allclose(hessian, hessian.T, rtol=0.0, atol=1e-10 * np.abs(hessian).max())


@pytest.mark.slow
@pytest.mark.by_day("planar_redundant")
@pytest.mark.parametrize("name", ["planar_redundant", "quattro"])
def test_the_forward_kinematics_undoes_the_inverse(name: str) -> None:
    dynamics, found = robot(name)
    pose, S = beside_home(dynamics, 0.02), jnp.asarray(dynamics.kinematics.task.subspace)
    home = dynamics.kinematics.home
    np.testing.assert_allclose(found.forward(found.inverse(pose), home), pose, atol=1e-10)

    def there_and_back(c: jax.Array) -> jax.Array:
        return found.forward(found.inverse(displaced(pose, S @ c)), home)

    zero = jnp.zeros(S.shape[1])
    for jacobian in (jax.jacfwd, jax.jacrev):
        wanted = jax.jacfwd(lambda c: displaced(pose, S @ c))(zero)
        np.testing.assert_allclose(jax.jit(jacobian(there_and_back))(zero), wanted, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_tpr", pytest.param("carpal_wrist", marks=pytest.mark.slow)])
def test_derivatives_where_the_motion_space_turns(name: str) -> None:
    """Of efforts at rest by the drives, against differences; steps that are impossible count for nothing."""
    dynamics, found = robot(name)
    k = dynamics.kinematics
    unit = np.where(k.engine.actuated_turning, 1.0, k.engine.size)
    drives = k.inverse(k.home).actuated + 0.02 * unit * np.linspace(0.5, 1.0, len(unit))
    pose = np.asarray(k.forward(drives, near=k.home).pose)
    S, space = np.asarray(found.motion_space(pose)), k.at(pose).subspace
    np.testing.assert_allclose(S @ np.linalg.lstsq(S, space, rcond=None)[0], space, atol=1e-10)

    def efforts(q: jax.Array) -> jax.Array:
        return found.gravity(found.forward(q, pose))

    def python(q: np.ndarray) -> np.ndarray:
        return np.asarray(dynamics.gravity(k.forward(q, near=pose).pose).effort)

    steps = H * unit * np.eye(len(unit))
    quotient = np.array([(python(drives + h) - python(drives - h)) / (2.0 * h.sum()) for h in steps]).T
    top = np.abs(quotient).max()
    assert top > 0.0
    for jacobian in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.jit(jacobian(efforts))(drives), quotient, rtol=0.0, atol=1e-6 * top)
    length = k.characteristic_length
    across = np.linalg.svd((S * np.repeat([1.0, length], 3)[:, None]).T)[2][S.shape[1] :].T
    across /= np.repeat([1.0, length], 3)[:, None]
    moved = jax.jacfwd(lambda c: found.gravity(displaced(jnp.asarray(pose), jnp.asarray(across) @ c)))
    np.testing.assert_allclose(moved(jnp.zeros(across.shape[1])), 0.0, atol=1e-9 * top)


@pytest.mark.slow
def test_second_derivatives_where_the_motion_space_turns() -> None:
    dynamics, found = robot("two_tpr")
    k = dynamics.kinematics
    drives = jnp.asarray(k.inverse(k.home).actuated) + 0.01 * k.engine.size

    def number(q: jax.Array) -> jax.Array:
        return found.gravity(found.forward(q, k.home))[0] ** 2

    gradient = jax.jit(jax.grad(number))
    hessian = jax.jit(jax.hessian(number))(drives)
    quotient = np.array([(gradient(drives + H * e) - gradient(drives - H * e)) / (2 * H) for e in np.eye(len(drives))])
    np.testing.assert_allclose(hessian, quotient, rtol=0.0, atol=1e-6 * np.abs(quotient).max())


@pytest.mark.slow
def test_compiled_and_vectorised() -> None:
    dynamics, found = robot("delta")
    poses = jnp.stack([beside_home(dynamics, part) for part in np.linspace(0.0, 0.1, 11)])
    plain = found.gravity(poses)
    np.testing.assert_array_equal(jax.jit(found.gravity)(poses), plain)
    np.testing.assert_array_equal(jax.vmap(found.gravity)(poses), plain)
    np.testing.assert_array_equal(jax.lax.map(found.gravity, poses), plain)
    assert found.gravity(poses[:0]).shape == (0, 3)
    gradient = jax.vmap(jax.grad(lambda pose, twist: found.inverse_dynamics(pose, twist, twist)[0]), (0, None))
    assert gradient(poses, jnp.zeros(6)).shape == (11, 7)
    rows = found.direct_dynamics(poses[0], jnp.zeros((4, 1, 6)), jnp.zeros((5, 3)))  # leading axes broadcast
    assert rows.shape == (4, 5, 6)


@needs_compiler
def test_arrays_share_their_memory_with_jax() -> None:
    """Of states, of a linkage, and of kernels of GPUs, which a processor runs here."""
    shared(jax.dlpack.from_dlpack, lambda x: x.unsafe_buffer_pointer(), jnp.asarray)


@needs_compiler
def test_arrays_share_their_memory_with_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    shared(torch.from_dlpack, lambda x: x.data_ptr(), torch.tensor)
    q = torch.zeros((1000, 2), dtype=torch.float64)
    assert as_rows(q, 2, "joints")[0].ctypes.data == q.data_ptr()


def shared(taken: Callable[[Any], Any], pointer: Callable[[Any], int], of: Callable[[np.ndarray], Any]) -> None:
    """Numbers of ours begin in the other library where they do here, and its own where our kernels read them."""
    tree = load_model(Path(__file__).parents[2] / "pkm_description" / "biped.xml")
    ankle = Transmission(tree, ["left_ankle_pitch", "left_ankle_roll"], ["left_ankle_motor_a", "left_ankle_motor_b"])
    for n in (1, 3, 1000):
        states = consistent_states(tree, n)
        more = closed_states(tree, states.position, states.velocity, states.acceleration)
        q = np.linspace(-0.1, 0.1, 2 * n).reshape(n, 2)
        some = ankle.to_actuator_motion(of(q), q, q)
        np.testing.assert_array_equal(some.position, ankle.to_actuators(q))
        efforts = ankle.to_joint_efforts(q, q), ankle.to_actuator_efforts(q, q), ankle.jacobian(q), ankle.armature(q)
        back = ankle.to_joint_motion(some.position, q)
        for one in (states, more):
            efforts += one.position, one.velocity, one.acceleration
        for ours in (*some, *efforts, *back[:2]):
            theirs = taken(ours)
            assert pointer(theirs) == ours.ctypes.data
            np.testing.assert_array_equal(np.asarray(theirs), ours)
    cupy = processor()
    dynamics = Dynamics(load_mechanism("delta"))
    kernels, pose = GpuRobot(dynamics, 0, cupy), of(np.tile(dynamics.kinematics.home, (1000, 1)))
    effort, status = kernels.gravity(pose)
    assert cupy.given == [pointer(pose), pointer(taken(effort)), status.ctypes.data]
    again = kernels.direct_dynamics(pose, of(np.zeros((1000, 6))), taken(effort))[0]
    assert pointer(taken(effort)) in cupy.given
    np.testing.assert_allclose(again, 0.0, atol=1e-9)


def test_bad_input() -> None:
    dynamics, found = robot("delta")
    home = jnp.asarray(dynamics.kinematics.home)
    for pose in (home.at[2].add(1.0), home.at[0].set(jnp.nan), home * 2.0, home.at[3:].set(jnp.array([1.0, 0, 0, 0]))):
        assert jnp.isnan(found.gravity(pose)).all()
    assert jnp.isnan(jax.grad(lambda pose: found.gravity(pose)[0])(home.at[2].add(1.0))).all()
    with pytest.raises(ShapeError, match=r"delta: gravity: pose is \(\.\.\., 7\)"):
        found.gravity(jnp.zeros(6))
    with pytest.raises(ShapeError, match=r"delta: forward: actuated is \(\.\.\., 3\)"):
        found.forward(jnp.zeros(2), home)
    for strange in ("home", None, [[1.0, 2.0], [3.0]], np.asarray(home) + 1j):
        with pytest.raises(ShapeError, match=r"delta: gravity: pose is \(\.\.\., 7\)"):
            found.gravity(strange)
    with pytest.raises(ShapeError, match=r"delta: direct_dynamics: leading axes \(2,\), \(\), \(3,\) do not broadcast"):
        found.direct_dynamics(jnp.tile(home, (2, 1)), jnp.zeros(6), jnp.zeros((3, 3)))
    with pytest.raises(ModeError, match="99"):
        on_jax(dynamics, 99)


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ExportError, match=r"griffis_duffy: gravity: singular near home"):
        on_jax(Dynamics(load_mechanism("griffis_duffy"))).gravity(np.zeros(7))
    jax.config.update("jax_enable_x64", False)
    dynamics, found = robot("delta")
    with pytest.raises(ExportError, match="single precision"):
        on_jax(dynamics)
    with pytest.raises(PkmError, match="in double, not float32"):
        found.gravity(dynamics.kinematics.home)
