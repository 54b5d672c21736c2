# SPDX-License-Identifier: Apache-2.0
"""The exported MJCF in MuJoCo: same closures, same inertia, same efforts and accelerations as ours.

MuJoCo's solver softens constraints, so the exact comparison takes only its mass matrix, its bias forces and the
Jacobian of its equality constraints, and projects onto the null space of the latter.
"""

from __future__ import annotations

import numpy as np
import pytest

from pkm_bringup.command_line.export_robot import main
from pkm_description import DescriptionError, load_mechanism
from pkm_description.formats.mjcf_export import SMALL, export_mjcf
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics

mujoco = pytest.importorskip("mujoco")

# No small bodies stand in for anything in these.
EXACT = ("delta", "five_bar", "gough_stewart", "agile_eye", "planar_3rrr", "tripteron")


class Simulated:
    """A robot in MuJoCo at its home keyframe."""

    def __init__(self, robot: str) -> None:
        self.mechanism = load_mechanism(robot)
        self.dynamics = Dynamics(self.mechanism, friction=False)
        self.kinematics: Kinematics = self.dynamics.kinematics
        self.model = mujoco.MjModel.from_xml_string(export_mjcf(self.mechanism))
        self.model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        self.data = mujoco.MjData(self.model)
        mujoco.mj_resetDataKeyframe(self.model, self.data, 0)
        self.update()

    def update(self) -> None:
        mujoco.mj_forward(self.model, self.data)

    def address(self, joint: str) -> int:
        """Column of a joint in velocities; the same in positions, as there is no ball."""
        return int(self.model.jnt_dofadr[mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, joint)])

    def mass_matrix(self) -> Array:
        unit = np.eye(self.model.nv)
        columns = np.zeros((self.model.nv, self.model.nv))
        for k in range(self.model.nv):
            mujoco.mj_mulM(self.model, self.data, columns[k], unit[k])
        return columns

    def closures(self) -> tuple[Array, Array]:
        """Position errors and Jacobian of the equality constraints."""
        d = self.data
        equal = d.efc_type[: d.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        return d.efc_pos[: d.nefc][equal], d.efc_J.reshape(-1, self.model.nv)[: d.nefc][equal]

    def null_space(self) -> Array:
        J = self.closures()[1]
        _, values, rows = np.linalg.svd(J)
        return rows[int(np.sum(values > 1e-8 * values[0])) :].T

    def platform_jacobian(self) -> Array:
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, self.mechanism.platform_link)
        mujoco.mj_jacBody(self.model, self.data, linear, angular, body)
        return np.vstack([linear, angular])

    def selection(self) -> Array:
        S = np.zeros((len(self.kinematics.actuated_names), self.model.nv))
        for row, name in enumerate(self.kinematics.actuated_names):
            S[row, self.address(name)] = 1.0
        return S


@pytest.mark.parametrize("robot", robot_names())
def test_every_robot_of_the_gallery_closes_at_home(robot: str) -> None:
    mechanism = load_mechanism(robot)
    model = mujoco.MjModel.from_xml_string(export_mjcf(mechanism))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    equal = data.efc_type[: data.nefc] == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    assert equal.sum() >= 3
    assert np.abs(data.efc_pos[: data.nefc][equal]).max() < 1e-9
    platform = data.body(mechanism.platform_link)
    np.testing.assert_allclose(platform.xpos, mechanism.home[:3, 3], atol=1e-9)
    np.testing.assert_allclose(platform.xmat.reshape(3, 3), mechanism.home[:3, :3], atol=1e-9)
    assert model.nu == len(mechanism.actuated_joints)


@pytest.mark.parametrize("robot", robot_names())
def test_accelerations_from_rest_agree(robot: str) -> None:
    s = Simulated(robot)
    # Universal and cylindrical loops need small bodies, and massless couplers of parallelograms; else to rounding.
    added = s.model.body_mass.sum() - sum(link.inertial.mass for link in s.mechanism.links)
    assert robot not in EXACT or abs(added) < 1e-12
    relative = 100 * SMALL if abs(added) > 1e-12 else 1e-8
    N, M = s.null_space(), s.mass_matrix()
    assert N.shape[1] == s.mechanism.mobility.total
    random = np.random.default_rng(3)
    scale = max(1.0, float(np.abs(s.dynamics.gravity(s.kinematics.home).effort).max()))
    for _ in range(3):
        effort = scale * random.uniform(-2.0, 2.0, len(s.kinematics.actuated_names))
        force = s.selection().T @ effort - s.data.qfrc_bias
        rates = N @ np.linalg.solve(N.T @ M @ N, N.T @ force)
        theirs = s.platform_jacobian() @ rates
        ours = s.dynamics.direct(s.kinematics.home, np.zeros(6), effort)
        assert ours.status == 0
        np.testing.assert_allclose(ours.acceleration, theirs, rtol=0.0, atol=relative * np.abs(theirs).max())


@pytest.mark.parametrize("robot", EXACT)
def test_efforts_of_a_motion_agree(robot: str) -> None:
    """Away from home, moving: MuJoCo's recursive Newton-Euler on our joint motion, projected by its closures."""
    s = Simulated(robot)
    k = s.kinematics
    random = np.random.default_rng(8)
    length = 0.05 * k.characteristic_length
    for _ in range(5):
        coordinates = k.home_joints[[k.joint_names.index(name) for name in k.engine.task.names]]
        near = coordinates + length * random.uniform(-1.0, 1.0, len(coordinates))
        pose = k.engine.inputs.poses_at(near[None])[0]
        twist = k.subspace(pose) @ random.uniform(-1.0, 1.0, k.mobility)
        acceleration = k.subspace(pose) @ random.uniform(-5.0, 5.0, k.mobility)
        motion = k.motion(pose, twist, acceleration)
        ours = s.dynamics.inverse(pose, twist, acceleration)
        assert ours.status == motion.status == 0
        for j, name in enumerate(k.joint_names):
            at = s.address(name)
            s.data.qpos[at], s.data.qvel[at] = motion.joints[j], motion.velocities[j]
            s.data.qacc[at] = motion.accelerations[j]
        qacc = s.data.qacc.copy()
        s.update()
        gap, J = s.closures()
        assert np.abs(gap).max() < 1e-11
        assert np.abs(J @ s.data.qvel).max() < 1e-10
        assert np.abs(s.platform_jacobian() @ s.data.qvel - twist).max() < 1e-9
        N = s.null_space()
        theirs = np.linalg.lstsq((s.selection() @ N).T, N.T @ (s.mass_matrix() @ qacc + s.data.qfrc_bias), rcond=None)
        np.testing.assert_allclose(ours.effort, theirs[0], rtol=1e-8, atol=1e-8 * np.abs(theirs[0]).max())


def test_the_soft_solver_of_mujoco_comes_near() -> None:
    """What a user of the file sees: accelerations to a thousandth, and the Delta hangs still under gravity efforts."""
    s = Simulated("delta")
    s.data.ctrl[:] = s.dynamics.gravity(s.kinematics.home).effort
    s.data.ctrl[0] += 20.0
    s.update()
    theirs = s.platform_jacobian() @ s.data.qacc
    ours = s.dynamics.direct(s.kinematics.home, np.zeros(6), s.data.ctrl).acceleration
    np.testing.assert_allclose(theirs, ours, atol=1e-3 * np.abs(ours).max())
    mujoco.mj_resetDataKeyframe(s.model, s.data, 0)
    s.data.ctrl[:] = s.dynamics.gravity(s.kinematics.home).effort
    for _ in range(200):
        mujoco.mj_step(s.model, s.data)
    assert np.linalg.norm(s.data.body("platform").xpos - s.kinematics.home[:3]) < 1e-4


def test_command_line(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "five_bar.xml"
    assert main(["five_bar", "-o", str(file)]) == 0
    assert file.read_text().startswith('<mujoco model="five_bar">')
    assert main(["no_such_robot"]) == 2
    assert "no such robot" in capsys.readouterr().err


def test_a_base_that_is_the_world():
    """MuJoCo knows one world, which is the base; another body of that name is refused."""
    text = load_mechanism("five_bar").urdf
    plain = mujoco.MjModel.from_xml_string(export_mjcf(load_mechanism("five_bar")))
    moved = export_mjcf(load_mechanism(text.replace('"base_link"', '"world"')))
    assert mujoco.MjModel.from_xml_string(moved).nbody == plain.nbody - 1
    assert load_mechanism(moved).base_link == "world"
    platform = load_mechanism("five_bar").platform_link
    with pytest.raises(DescriptionError, match="reserves the name world"):
        export_mjcf(load_mechanism(text.replace(f'"{platform}"', '"world"')))
