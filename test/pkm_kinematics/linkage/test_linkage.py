# SPDX-License-Identifier: Apache-2.0
"""Linkages of a biped solved for their joints, judged by MuJoCo's constraints, differences, and the kinematics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.load import load_model
from pkm_description.tree_model import TreeModel
from pkm_kinematics import Kinematics
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.loop_system import LinkageError
from pkm_kinematics.status import Status
from pkm_runtime.codegen.machine_code import LANES, VectorCode

BIPED = Path(__file__).parents[2] / "pkm_description" / "biped.xml"
JOINTS = [f"{side}_{name}" for side in ("left", "right") for name in ("knee", "ankle_pitch", "ankle_roll")]
SOME = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 6)) * [0.5, 0.5, 0.25, 0.5, 0.5, 0.25]


@pytest.fixture(scope="module")
def biped() -> TreeModel:
    return load_model(BIPED)


@pytest.fixture(scope="module")
def legs(biped: TreeModel) -> Linkage:
    return Linkage(biped, JOINTS, [name for name in biped.actuated_joints if "hip" not in name])


def test_muj_co_finds_the_loops_closed_and_the_rates_allowed(biped: TreeModel, legs: Linkage) -> None:
    """Gaps and the constraints' Jacobian are MuJoCo's own, from the file; idle spins of rods are at rest."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(BIPED))
    m.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    d = mujoco.MjData(m)
    found = legs.at(SOME)
    assert (found.status == Status.CONVERGED).all()
    for q, K in zip(found.q, found.K, strict=True):
        position, rates = dict(zip(legs.names, q, strict=True)), dict(zip(legs.names, K, strict=True))
        d.qpos[:] = m.qpos0
        motion = np.zeros((m.nv, 6))
        for k in range(m.njnt):
            name, at, dof = m.joint(k).name, m.jnt_qposadr[k], m.jnt_dofadr[k]
            if m.jnt_type[k] == mujoco.mjtJoint.mjJNT_HINGE and name in position:
                d.qpos[at], motion[dof] = position[name], rates[name]
            elif m.jnt_type[k] == mujoco.mjtJoint.mjJNT_BALL:
                d.qpos[at : at + 4], motion[dof : dof + 3] = _ball(
                    [position[f"{name}/x"], position[f"{name}/y"], 0.0],
                    [rates[f"{name}/x"], rates[f"{name}/y"], np.zeros(6)],
                )
        mujoco.mj_forward(m, d)
        loops = d.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert np.abs(d.efc_pos[loops]).max() < 1e-14
        assert np.abs(d.efc_J.reshape(-1, m.nv)[loops] @ motion).max() < 1e-13


def _ball(angles: list[float], rates: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's quaternion, and its angular velocities in the body, of turns about x, then y, then z."""
    from scipy.spatial.transform import Rotation

    x, y, z = (Rotation.from_rotvec(a * axis) for a, axis in zip(angles, np.eye(3), strict=True))
    whole = x * y * z
    spins = [(y * z).inv().apply([1, 0, 0]), z.inv().apply([0, 1, 0]), np.array([0.0, 0.0, 1.0])]
    return np.roll(whole.as_quat(), 1), sum(np.outer(spin, rate) for spin, rate in zip(spins, rates, strict=True))


def test_rates_are_differences(legs: Linkage) -> None:
    speed = np.random.default_rng(1).normal(size=SOME.shape)
    h = 1e-6
    now, ahead, behind = legs.at(SOME, speed), legs.at(SOME + h * speed), legs.at(SOME - h * speed)
    # error of a central difference: h^2, and rounding over h
    np.testing.assert_allclose((ahead.q - behind.q) / (2 * h), np.einsum("nij,nj->ni", now.K, speed), atol=1e-7)
    np.testing.assert_allclose((ahead.K - behind.K) / (2 * h), now.changes, atol=1e-7)


@pytest.mark.parametrize(
    "robot",
    [
        "docs/examples/ankle.urdf.xacro",
        "docs/examples/ankle_cranks.urdf.xacro",
        "wrist_3ups_s",
        "wrist_3ruu",
        "five_bar",
    ],
)
def test_joints_are_those_of_the_kinematics(robot: str) -> None:
    tree = load_model(robot)
    (cluster,) = tree.clusters
    linkage = Linkage(tree, cluster.independent, cluster.actuators)
    kinematics = Kinematics(load_mechanism(robot))
    reach = [0.03 if tree.joint_named[name].unit == "m" else 0.25 for name in cluster.independent]
    n = len(cluster.independent)
    x = linkage.home[:n] + np.random.default_rng(2).uniform(-1.0, 1.0, (20, n)) * reach
    drives = [linkage.names.index(name) for name in cluster.actuators]
    found = linkage.at(x)
    assert (found.status == Status.CONVERGED).sum() > 15
    for q, K, row in zip(found.q[found.status == 0], found.K[found.status == 0], x[found.status == 0], strict=True):
        at = kinematics.at(row)
        np.testing.assert_allclose(q[drives], at.actuated, atol=1e-12)
        # near the border of the 3-RUU's workspace rates are large, and rounding is with them
        np.testing.assert_allclose(K[drives], at.task_jacobian, rtol=1e-10, atol=1e-10)
    assert found.gap[found.status == 0].max() < 1e-14


def test_one_state_and_many_are_alike(legs: Linkage) -> None:
    many = legs.at(SOME)
    for k in (0, 7, 49):
        np.testing.assert_allclose(legs.at(SOME[k : k + 1]).q[0], many.q[k], atol=1e-14)


def test_a_fold_is_not_gone_over(biped: TreeModel) -> None:
    """The knee's rod and crank come into line: beyond, the motor has no position; before, the margin falls."""
    knee = Linkage(biped, ["left_knee"], ["left_knee_motor"])
    found = knee.at(np.linspace(0.0, -2.5, 60)[:, None])
    last = int(np.flatnonzero(found.status == Status.CONVERGED)[-1])
    assert (found.status[: last + 1] == Status.CONVERGED).all()
    assert 10 < last < 55
    assert (np.diff(found.margin[10 : last + 1]) < 0.0).all()
    assert found.margin[last] < 0.5 * found.margin[0]
    assert np.isnan(found.q[last + 1 :, 1:]).all()
    crank = found.q[: last + 1, knee.names.index("left_knee_motor")]
    assert (np.diff(crank) < 0.0).all()  # no jump to the other branch


def test_what_is_no_number_is_refused_alone(legs: Linkage) -> None:
    some = SOME[:3].copy()
    some[1, 2] = np.nan
    found = legs.at(some)
    assert found.status.tolist() == [Status.CONVERGED, Status.INVALID_INPUT, Status.CONVERGED]
    np.testing.assert_array_equal(found.q[[0, 2]], legs.at(SOME[[0, 2]]).q)


def test_what_is_too_far_is_refused_at_once(legs: Linkage) -> None:
    some = np.resize(SOME, (4, 6)).copy()
    some[:3, 1] = 1e6, -1e308, np.inf
    found = legs.at(some)
    assert found.status.tolist() == [*[Status.INVALID_INPUT] * 3, Status.CONVERGED]
    assert np.isnan(found.q[:3, 6:]).all()
    assert (legs.at(some, near=np.full(len(legs.names), np.nan)).status == Status.INVALID_INPUT).all()


def test_a_crank_turns_more_than_once(tmp_path: Path) -> None:
    """A four-bar by Grashof: after ten turns of the crank all other joints are where they began."""
    file = tmp_path / "four_bar.xml"
    body = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>'
    file.write_text(
        f"""<mujoco><worldbody>
        <body><joint name="crank" axis="0 1 0"/>{body}
          <body name="rod" pos="0 0 0.1"><joint name="rod" axis="0 1 0"/>{body}</body></body>
        <body name="rocker" pos="0.3 0 0"><joint name="rocker" axis="0 1 0"/>{body}</body></worldbody>
        <equality><connect body1="rod" body2="rocker" anchor="0.3 0 0.2"/></equality></mujoco>"""
    )
    crank = Linkage(load_model(file), ["crank"], ["rocker"])
    found = crank.at(np.array([[20.0 * np.pi], [-20.0 * np.pi]]))
    assert (found.status == Status.CONVERGED).all()
    np.testing.assert_allclose(np.cos(found.q - crank.home), 1.0, atol=1e-12)


def test_joints_that_do_not_determine_it_are_refused(biped: TreeModel) -> None:
    with pytest.raises(
        LinkageError, match=r"not determined by left_ankle_pitch: name 2, such as left_ankle_pitch, left_ankle_roll"
    ):
        Linkage(biped, ["left_ankle_pitch"], ["left_ankle_motor_a", "left_ankle_motor_b"])
    with pytest.raises(LinkageError, match="left_knee_motor depends on the others"):
        Linkage(biped, ["left_knee", "left_knee_motor"])


class _Counted:
    """Code that counts the columns that it is given."""

    def __init__(self, code: VectorCode) -> None:
        self.code, self.inputs, self.columns = code, code.inputs, 0

    def __call__(self, columns: np.ndarray, out: np.ndarray) -> None:
        self.columns += out.shape[1]
        self.code(columns, out)


def test_rows_do_not_take_the_steps_of_the_farthest(biped: TreeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows near home take what they take alone, whether another goes far or comes to no end."""
    knee, worked, found = Linkage(biped, ["left_knee"], ["left_knee_motor"]), [], []
    near = np.linspace(-0.1, 0.1, 200 * LANES)[:, None]
    for more in ([], [[-1.0]], [[-2.5]]):
        code = _Counted(knee._solve)
        with monkeypatch.context() as patched:
            patched.setitem(vars(knee), "_solve", code)
            found.append(knee.at(np.concatenate([near, np.reshape(more, (-1, 1))])).q[: len(near)])
        worked.append(code.columns)
    assert worked[1] < 1.5 * worked[0]  # all at the pace of the farthest are 4.4 times as many
    assert worked[2] < 4.0 * worked[0]  # its end is sought by ever shorter steps
    np.testing.assert_array_equal(found[1], found[0])


def test_equations_that_vanish_at_home_are_not_chosen() -> None:
    """Two arms about one centre hold a ball: two of its three equations tell, and the first does not at home."""
    arms = "".join(
        f'<link name="{child}"/><joint name="{child}" type="continuous">'
        f'<parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/></joint>'
        for child, parent, axis in (("a", "base", "0 0 1"), ("b", "a", "0 0.6 0.8"), ("c", "base", "0 1 0"))
    )
    ends = "".join(
        f'<{end} link="{link}"><origin xyz="0.2 0 0"/></{end}>'
        for end, link in (("predecessor", "b"), ("successor", "c"))
    )
    tree = load_model(
        f'<robot name="r"><link name="base"/>{arms}<loop name="ball" type="spherical">{ends}</loop></robot>'
    )
    arm = Linkage(tree, ["a"])
    found = arm.at(np.array([[0.0], [0.1], [-0.2]]))
    assert (found.status == Status.CONVERGED).all()
    assert (found.gap < 1e-15).all()
    assert found.K[0] == pytest.approx(np.array([[1.0], [-1.25], [-0.75]]), abs=1e-12)  # y: a + 0.8 b; z: 0.6 b = c
