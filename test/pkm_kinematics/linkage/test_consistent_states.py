# SPDX-License-Identifier: Apache-2.0
"""States at random, and corrected ones, judged by the loops' equations of the loader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pkm_description.load import load_model
from pkm_description.tree_model import TreeModel
from pkm_kinematics.batch import ShapeError
from pkm_kinematics.linkage.consistent_states import closed_states, consistent_states
from pkm_kinematics.linkage.linkage import Linkage
from pkm_kinematics.linkage.recorded_linkage import FARTHEST, cosine_and_sine
from pkm_kinematics.status import Status
from pkm_runtime.errors import PkmError, UsageError
from test.pkm_dynamics.outlets.processor import needs_compiler, processor

BIPED = Path(__file__).parents[2] / "pkm_description" / "biped.xml"
N = 3000


@pytest.fixture(scope="module")
def biped() -> TreeModel:
    return load_model(BIPED)


def _gaps(tree: TreeModel, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """Dimensionless gaps of all loops."""
    model = tree.closures(tree.joint_named, tree.loops)
    column = [names.index(joint.name) for joint in model.free]
    return model.closure(q[column])[0]


def test_every_loop_is_closed_in_all_three(biped: TreeModel) -> None:
    states = consistent_states(biped, N, speed=2.0, acceleration=20.0)
    assert states.position.shape == states.velocity.shape == states.acceleration.shape == (N, len(states.names))
    assert states.position.flags.c_contiguous
    h = 1e-4
    for q, v, a in list(zip(states.position, states.velocity, states.acceleration, strict=True))[::300]:
        here, ahead, behind = (_gaps(biped, states.names, q + s * v + 0.5 * s * s * a) for s in (0.0, h, -h))
        assert np.abs(here).max() < 1e-11  # a hundredth of a last correction of 1e-9
        assert np.abs(ahead - behind).max() / (2 * h) < 1e-6  # error of the difference: h^2
        assert np.abs(ahead - 2 * here + behind).max() / h**2 < 1e-4


def test_they_fill_their_ranges_alike(biped: TreeModel) -> None:
    states = consistent_states(biped, N, {"left_ankle_pitch": (-0.3, 0.1), "left_ankle_roll": (0.0, 0.2)}, seed=3)
    at = states.names.index
    for name, low, high in (("left_ankle_pitch", -0.3, 0.1), ("left_ankle_roll", 0.0, 0.2), ("left_hip", -1.0, 1.0)):
        values = states.position[:, at(name)]
        # mean and deviation of a uniform distribution, to five standard errors
        assert values.mean() == pytest.approx((low + high) / 2, abs=5 * (high - low) / np.sqrt(12 * N))
        assert values.std() == pytest.approx((high - low) / np.sqrt(12), rel=0.05)
        assert low <= values.min() <= values.max() <= high
    assert (states.position[:, at("root/z")] == biped.home["root/z"]).all()  # no limits: stays
    again = consistent_states(biped, N, {"left_ankle_pitch": (-0.3, 0.1), "left_ankle_roll": (0.0, 0.2)}, seed=3)
    np.testing.assert_array_equal(again.position, states.position)


def test_drifted_states_are_closed_again(biped: TreeModel) -> None:
    states = consistent_states(biped, 101)
    names = states.names
    free = {name for one in biped.clusters for name in one.independent}
    tied = {name for one in biped.clusters for name in one.joints}
    drift = np.array([1e-2 if name in tied - free else 0.0 for name in names])
    noise = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 101, len(names))) * drift
    found = closed_states(biped, states.position + noise[0], states.velocity + noise[1], states.acceleration + noise[2])
    np.testing.assert_allclose(found.position, states.position, atol=1e-12)
    np.testing.assert_allclose(found.velocity, states.velocity, atol=1e-11)
    np.testing.assert_allclose(found.acceleration, states.acceleration, atol=1e-10)


def test_motors_that_are_held_stay_where_they_are(biped: TreeModel) -> None:
    states = consistent_states(biped, 50)
    motors = [name for one in biped.clusters for name in one.actuators]
    stays = np.array([name in motors for name in states.names])
    noise = np.random.default_rng(0).uniform(-1e-2, 1e-2, states.position.shape)
    drifted = np.where(stays, states.position, states.position + noise)
    found = closed_states(biped, drifted, states.velocity, states.acceleration, held=motors)
    np.testing.assert_array_equal(found.position[:, stays], states.position[:, stays])
    tied = [name in {n for one in biped.clusters for n in one.joints} for name in states.names]
    np.testing.assert_allclose(found.position[:, tied], states.position[:, tied], atol=1e-10)
    with pytest.raises(PkmError, match=r"nobody.*no such moving joint"):
        closed_states(biped, drifted, states.velocity, states.acceleration, held=["nobody"])


def test_ranges_beyond_folds_are_refused_or_drawn_again(biped: TreeModel) -> None:
    some = consistent_states(biped, 500, {"left_knee": (-1.6, 0.0)})
    assert np.isfinite(some.position).all()
    with pytest.raises(UsageError, match="most random states do not close"):
        consistent_states(biped, 500, {"left_knee": (-3.0, -2.0)})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ranges": {"left_kne": (0.0, 0.1)}}, "range of left_kne, .*no such joint"),
        ({"ranges": {"left_knee": (0.1, 0.0)}}, "range of left_knee, 0.1 to 0.0"),
        ({"ranges": {"left_knee": (-np.inf, 0.0)}}, "range of left_knee, -inf"),
        ({"n": -1}, "n -1"),
        ({"speed": np.nan}, "speed nan"),
    ],
)
def test_what_cannot_be_drawn_is_named(biped: TreeModel, given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        consistent_states(biped, **{"n": 10, **given})


@pytest.mark.parametrize("far", [np.pi, 1e3, FARTHEST])
def test_cosines_and_sines_of_any_angle(far: float) -> None:
    """Three parts of pi keep all digits up to the farthest angle; four roundings of numbers below one."""
    angles = np.random.default_rng(0).uniform(-far, far, 2000)
    found = np.array([cosine_and_sine(float(x)) for x in angles])
    np.testing.assert_allclose(
        found, np.stack([np.cos(angles), np.sin(angles)], 1), rtol=0.0, atol=4.0 * np.finfo(float).epsneg
    )


def test_angles_without_digits_have_no_state(biped: TreeModel) -> None:
    states = consistent_states(biped, 8)
    q = states.position.copy()
    for name in biped.clusters[0].independent:
        q[3:, states.names.index(name)] += 2.0 * np.pi * 1e7
    found = closed_states(biped, q, states.velocity, states.acceleration)
    tied = [states.names.index(k) for k in biped.clusters[0].joints if k not in biped.clusters[0].independent]
    np.testing.assert_allclose(found.position[:3, tied], states.position[:3, tied], atol=1e-11)
    assert np.isnan(found.position[3:, tied]).all()


def test_drifted_states_of_a_wrong_shape_are_named(biped: TreeModel) -> None:
    right = np.zeros((3, len(biped.joint_named)))
    with pytest.raises(ShapeError, match="velocity: expected"):
        closed_states(biped, right, right[:, :4], right)
    with pytest.raises(ShapeError, match="2, 3, 3 rows"):
        closed_states(biped, right[:2], right, right)


def test_loops_that_close_at_home_alone_are_refused() -> None:
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    crank, rod, arm = (
        f'<body name="{name}" pos="{place}">{inertial}<joint name="{name}" axis="0 1 0"/>'
        for name, place in (("crank", "0 0 0"), ("rod", "0 0 0.2"), ("arm", "0.2 0 0"))
    )
    connect = '<connect body1="rod" body2="arm" anchor="0.2 0 0"/>'
    # The arm follows the crank one to one.
    curve = '<joint name="curve" joint1="arm" joint2="crank" polycoef="0 1 0.5 0 0"/>'
    drives = '<actuator><motor joint="crank"/></actuator>'
    text = f"<mujoco><worldbody>{crank}{rod}</body></body>{arm}</body></worldbody><equality>{connect}%s</equality>"
    ranges = {"crank": (-0.2, 0.2)}
    assert len(consistent_states(load_model(f"{text % ''}{drives}</mujoco>"), 8, ranges).position) == 8
    pytest.importorskip("mujoco")
    contradicting = load_model(f"{text % curve}{drives}</mujoco>")
    with pytest.raises(UsageError, match=r"of crank contradict each other: <.*> stays open by .*gap=") as told:
        consistent_states(contradicting, 8, ranges)
    allowed = float(str(told.value).rpartition("gap=")[2])
    assert len(consistent_states(contradicting, 8, ranges, gap=allowed).position) == 8


def test_geared_joints_follow_as_mujoco_says() -> None:
    """In cranks' loops and without one, within the ranges of both; judged by MuJoCo's own equalities."""
    mujoco = pytest.importorskip("mujoco")
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    bodies = {
        "crank": "0 0 0",
        "rod": "0 0 0.2",
        "arm": "0.2 0 0.05",
        "wheel": "0 1 0",
        "pulley": "0 2 0",
        "thumb": "0 4 0",
        "hand": "0 3 0",
    }
    at = {
        name: f'<body name="{name}" pos="{place}">{inertial}<joint name="{name}" axis="0 1 0" range="-0.3 0.3"/>'
        for name, place in bodies.items()
    }
    text = (
        f'<mujoco><compiler angle="radian"/><worldbody>{at["crank"]}{at["rod"]}</body></body>'
        + "".join(f"{at[name]}</body>" for name in ("arm", "wheel", "pulley", "hand", "thumb"))
        + '</worldbody><equality><connect body1="rod" body2="arm" anchor="0.2 0 0"/>'
        + '<joint joint1="wheel" joint2="crank" polycoef="0.05 -0.7 0 0 0"/>'
        + '<joint joint1="hand" joint2="pulley" polycoef="0.1 2 0 0 0"/>'
        '<joint joint1="thumb" joint2="hand" polycoef="-0.1 -0.5 0 0 0"/></equality>'
        + '<actuator><motor joint="crank"/><motor joint="pulley"/></actuator></mujoco>'
    )
    tree, model = load_model(text), mujoco.MjModel.from_xml_string(text)
    drawn = consistent_states(tree, 40)
    names = [model.joint(k).name for k in range(model.njnt)]
    order = [drawn.names.index(name) for name in names]
    ahead = [name in ("wheel", "hand", "thumb") for name in drawn.names]
    off = closed_states(
        tree, *(one + 0.01 * np.array(ahead) for one in (drawn.position, drawn.velocity, drawn.acceleration))
    )
    for states in (drawn, off):
        for q, v, a in zip(
            states.position[:, order], states.velocity[:, order], states.acceleration[:, order], strict=True
        ):
            data = mujoco.MjData(model)
            data.qpos[:], data.qvel[:] = q, v
            mujoco.mj_forward(model, data)
            equality = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
            J = data.efc_J.reshape(-1, model.nv)[equality]
            assert equality.sum() == 6
            assert np.abs(data.efc_pos[equality]).max() < 1e-12
            assert np.abs(J @ v).max() < 1e-10
            assert np.abs(J[3:] @ a).max() < 1e-10  # of the gears, whose derivatives are constant
    hand = drawn.position[:, drawn.names.index("hand")]
    assert -0.3 <= hand.min() < -0.2
    assert 0.2 < hand.max() <= 0.3


def test_far_states_are_those_of_the_way_from_home(biped: TreeModel) -> None:
    """Whether the first steps close, go on, or are led: the branch is that of home."""
    ankle = biped.clusters[1]
    ranges = {"left_ankle_pitch": (-0.9, 0.9), "left_ankle_roll": (-0.4, 0.4)}
    states = consistent_states(biped, 2000, ranges)
    linkage = Linkage(biped, ankle.independent, ankle.actuators)
    at = [states.names.index(name) for name in linkage.names]
    solved = linkage.at(states.position[:, at[:2]])
    assert (solved.status == Status.CONVERGED).all()
    np.testing.assert_allclose(states.position[:, at], solved.q, atol=1e-9)


def test_what_is_left_out_for_speed_lies_by_a_fold(biped: TreeModel) -> None:
    knee = Linkage(biped, biped.clusters[0].independent, biped.clusters[0].actuators)
    q = np.random.default_rng(0).uniform(-1.0, 1.0, (4000, 1))
    whole, quick = knee.at(q), knee.at(q, to_folds=False)
    closes, found = whole.status == Status.CONVERGED, quick.status == Status.CONVERGED
    assert 0.85 < closes.mean() < 0.95  # there is a fold
    assert not (found & ~closes).any()
    np.testing.assert_allclose(quick.q[found], whole.q[found], atol=1e-12)
    assert 0 < (closes & ~found).sum() < 40
    assert whole.margin[closes & ~found].max() < 0.03 < np.median(whole.margin[closes])


@needs_compiler
def test_states_of_a_gpu_are_closed(biped: TreeModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a GPU, compiled for the processor; what it cannot close is solved beside it."""
    monkeypatch.setitem(sys.modules, "cupy", processor())
    states = consistent_states(biped, 500, {"left_knee": (-1.6, 0.0)}, speed=2.0, acceleration=20.0, gpu=True)
    judged = closed_states(biped, states.position, states.velocity, states.acceleration)
    noise = np.random.default_rng(0).uniform(-1e-3, 1e-3, states.position.shape)
    tied = [name not in {k for one in biped.clusters for k in one.independent} for name in states.names]
    again = closed_states(biped, states.position + noise * tied, states.velocity, states.acceleration, gpu=True)
    for found in (states, again):
        np.testing.assert_allclose(found.velocity, judged.velocity, atol=1e-8)
        np.testing.assert_allclose(found.acceleration, judged.acceleration, atol=1e-7)
    loops = [k for k, name in enumerate(states.names) if any(name in one.joints for one in biped.clusters)]
    np.testing.assert_allclose(states.position[:, loops], judged.position[:, loops], atol=1e-10)
    np.testing.assert_allclose(again.position[:, loops], judged.position[:, loops], atol=1e-10)
    for q in states.position[::100]:
        assert np.abs(_gaps(biped, states.names, q)).max() < 1e-11
    right = np.zeros((3, len(biped.joint_named)))
    with pytest.raises(ShapeError, match="velocity: expected"):
        closed_states(biped, right, right[:, :4], right, gpu=True)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UsageError, match="cupy-cuda12x"):
        consistent_states(biped, 10, gpu=True)


def test_a_linkage_that_is_folded_at_home_is_told() -> None:
    """A parallelogram whose bars lie in one line goes on as such or crossed; beside it all is known."""
    inertial = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>'
    crank, rod, arm = (
        f'<body name="{name}" pos="{place}">{inertial}<joint name="{name}" axis="0 1 0"/>'
        for name, place in (("crank", "0 0 0"), ("rod", "0.1 0 0"), ("arm", "0.4 0 0"))
    )
    loop = '<equality><connect body1="rod" body2="arm" anchor="0.4 0 0"/></equality>'
    drive = '<actuator><motor joint="crank"/></actuator>'
    text = f"<mujoco>%s<worldbody>{crank}{rod}</body></body>{arm}</body></worldbody>{loop}{drive}</mujoco>"
    with pytest.raises(UsageError, match=r"home of crank: it is a fold.*<key>"):
        consistent_states(load_model(text % ""), 8, {"crank": (0.3, 0.7)})
    folded = Linkage(load_model(text % ""), ["crank"])
    assert np.isnan(folded.widest(folded.at(np.array([[0.0]])))[1])
    beside = load_model(text % '<keyframe><key qpos="0.5 -0.5 0.5"/></keyframe>')
    states = consistent_states(beside, 8, {"crank": (0.3, 0.7)})
    at = states.names.index
    np.testing.assert_allclose(states.position[:, at("arm")], states.position[:, at("crank")], atol=1e-12)
