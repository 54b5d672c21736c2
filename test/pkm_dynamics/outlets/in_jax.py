# SPDX-License-Identifier: Apache-2.0
"""Robots in JAX: Python's answers, exact derivatives of all orders, compiled and vectorised alike."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import jax
import numpy as np
import pytest
from jax import numpy as jnp

from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.recorded_robot import ExportError
from pkm_dynamics.outlets.on_jax import JaxRobot, on_jax
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.solve.working_modes import ModeError
from pkm_runtime.codegen import AVAILABLE
from pkm_runtime.errors import PkmError

from .judge import compare

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="LLVM is too old")
FEW = ("delta", "planar_redundant", "agile_eye", "cable_8", "quattro")
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


@pytest.mark.parametrize("name", FEW)
def test_answers_are_those_of_python(name: str) -> None:
    dynamics, found = robot(name)
    compare(dynamics, 0, lambda name, *rows: getattr(found, name)(*rows))


@pytest.mark.slow
def test_answers_of_every_robot(robot_name: str) -> None:
    dynamics = Dynamics(load_mechanism(robot_name))
    if not dynamics.kinematics.constant_space:
        with pytest.raises(ExportError, match=robot_name):
            on_jax(dynamics)
        return
    for mode in {0, dynamics.kinematics.n_modes - 1}:
        found = on_jax(dynamics, mode)
        compare(dynamics, mode, lambda name, *rows, found=found: getattr(found, name)(*rows))


@pytest.mark.parametrize("name", ["agile_eye", "quattro"])
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


def test_bad_input() -> None:
    dynamics, found = robot("delta")
    home = jnp.asarray(dynamics.kinematics.home)
    for pose in (home.at[2].add(1.0), home.at[0].set(jnp.nan), home * 2.0, home.at[3:].set(jnp.array([1.0, 0, 0, 0]))):
        assert jnp.isnan(found.gravity(pose)).all()
    assert jnp.isnan(jax.grad(lambda pose: found.gravity(pose)[0])(home.at[2].add(1.0))).all()
    with pytest.raises(ExportError, match=r"delta: gravity: pose is \(\.\.\., 7\)"):
        found.gravity(jnp.zeros(6))
    with pytest.raises(ModeError, match="99"):
        on_jax(dynamics, 99)


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(ExportError, match=r"tricept.*turns with the pose"):
        on_jax(Dynamics(load_mechanism("tricept")))
    jax.config.update("jax_enable_x64", False)
    dynamics, found = robot("delta")
    with pytest.raises(ExportError, match="single precision"):
        on_jax(dynamics)
    with pytest.raises(PkmError, match="in double, not float32"):
        found.gravity(dynamics.kinematics.home)
