# SPDX-License-Identifier: Apache-2.0
"""Objects say what they are: printed, by joint name, in `dir`, and in the errors for what was meant otherwise."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from pkm_description import Mechanism, PkmError, load_mechanism
from pkm_description.mechanism import Inertial
from pkm_description.urdf.urdf_plus import parse
from pkm_dynamics import Accelerations, Dynamics, Efforts, InverseDerivatives, Reactions
from pkm_kinematics import Configuration, ForwardSolution, Kinematics, Motion, ShapeError, Singularity, Status
from pkm_kinematics.forward.along_path import AssemblyModes
from pkm_kinematics.solve.working_modes import ModeError

# degrees of freedom, their kind, limbs, working modes, and how the limbs are solved, from what is published of these
# robots
KNOWN = {
    "delta": ("3 degrees of freedom (3T), 3 limbs, 3 actuated joints", "working modes: 8"),
    "gough_stewart": ("6 degrees of freedom (3T3R), 6 limbs, 6 actuated joints", "working modes: 1"),
    "five_bar": ("2 degrees of freedom (2T), 2 limbs, 2 actuated joints", "working modes: 4"),
    "agile_eye": ("3 degrees of freedom (3R), 3 limbs, 3 actuated joints", "working modes: 8"),
    "tripod_3prs": ("3 degrees of freedom (1T2R), 3 limbs, 3 actuated joints", "working modes: 8"),
    "quattro": ("4 degrees of freedom (3T1R), 4 limbs, 4 actuated joints", "n_modes searches for them"),
    "cable_8": ("6 degrees of freedom (3T3R), 8 limbs, 8 actuated joints", "working modes: 1"),
}
UNITS = {"gough_stewart": "m", "tripod_3prs": "m", "cable_8": "m"}  # of the actuated joints; rad for the others


@pytest.fixture(params=KNOWN)
def named(request, of_gallery):
    """One robot of each kind, anew: what was searched for before is not known to it."""
    kinematics = Kinematics(of_gallery[request.param].kinematics.mechanism)
    return request.param, kinematics, Dynamics(kinematics)


def test_robots(named):
    name, kinematics, dynamics = named
    first, modes = KNOWN[name]
    for kind, robot in (("Mechanism", kinematics.mechanism), ("Kinematics", kinematics), ("Dynamics", dynamics)):
        assert str(robot).splitlines()[0] == f"{kind} {name}: {first}"
        assert repr(robot) == f"<{kind} {name}: {first}>"
        assert len(str(robot).splitlines()) <= 14
        for joint in kinematics.actuated_names:
            assert joint in str(robot)
        for coordinate in kinematics.task.names:
            assert coordinate in str(robot)
        limits = kinematics.mechanism.joint_named[kinematics.actuated_names[0]].limits
        assert f"{limits.lower:.4g} to {limits.upper:.4g} {UNITS.get(name, 'rad')}, at most " in str(robot)
    assert modes in str(kinematics)
    for limb in kinematics.mechanism.limbs:
        assert limb.name in str(kinematics.mechanism)


def test_how_limbs_are_solved(of_gallery):
    assert "limb1, limb2, limb3: in closed form" in str(of_gallery["delta"].kinematics)
    quattro = str(of_gallery["quattro"].kinematics)
    assert "limb2, limb3, limb4: in closed form" in quattro
    assert "limb1, articulated platform: by iteration" in quattro  # the first half plate turns with its first limb
    assert "limb1, limb2, limb3: by iteration" in str(of_gallery["wrist_3ruu"].kinematics)
    assert "limb1, limb2, limb3: in closed form" in str(of_gallery["carpal_wrist"].kinematics)


def test_printing_searches_for_nothing(of_gallery):
    """The working modes of limbs solved by iteration are searched for; when they are known, they are said."""
    kinematics = Kinematics(of_gallery["quattro"].kinematics.mechanism)
    assert "n_modes searches" in str(kinematics)
    assert "_home_choices" not in vars(kinematics.modes)
    assert f"working modes: {kinematics.n_modes}" in str(kinematics)


def test_solutions_by_name(named):
    """What is printed and what `by_name` says are the arrays, joint by joint."""
    name, k, d = named
    ik = k.inverse(k.home)
    assert list(ik.by_name()) == list(k.actuated_names)
    assert list(ik.by_name("joints")) == list(k.joint_names)
    assert list(ik.by_name("joints").values()) == ik.joints.tolist()
    assert list(ik.by_name().values()) == ik.actuated.tolist()
    fk = k.forward(ik.actuated)
    assert list(fk.by_name("actuated").values()) == fk.actuated.tolist()
    assert np.abs(fk.actuated - ik.actuated).max() < 1e-8
    assert {n: fk.by_name("joints")[n] for n in k.actuated_names} == fk.by_name()
    twist = 0.1 * k.subspace(k.home)[:, 0]
    motion = k.motion(k.home, twist)
    assert list(motion.by_name("velocities").values()) == motion.velocities.tolist()
    assert list(motion.by_name("actuated_accelerations").values()) == motion.actuated_accelerations.tolist()
    efforts = d.inverse(k.home)
    assert list(efforts.by_name().items()) == list(zip(k.actuated_names, efforts.effort.tolist(), strict=True))
    unit = UNITS.get(name, "rad")
    for solution, units in ((ik, unit), (fk, unit), (motion, f"{unit}/s^2"), (efforts, {"m": "N", "rad": "N m"}[unit])):
        text = str(solution)
        assert "CONVERGED: solved" in text.splitlines()[0]
        assert len(text.splitlines()) <= 10
        for joint in k.actuated_names:
            assert joint in text
        assert f" {units}" in text


def test_values_printed_are_those(delta):
    k = delta.kinematics
    pose = k.home + np.array([0.1, -0.05, 0.02, 0, 0, 0, 0])
    ik = k.inverse(pose)
    for name, value in ik.by_name().items():
        assert f"{name} {value:.6g} rad" in str(ik)
    fk = k.forward(ik.actuated)
    assert f"xyz 0.1 -0.05 {pose[2]:.6g} m" in str(fk)


def test_a_limit_of_nothing_has_no_sign():
    """`-0`, which `${-radians(0)}` writes, is 0 to a reader."""
    urdf = re.sub(r'lower="-3.6" upper="3.6"', 'lower="-0.0" upper="3.6"', load_mechanism("five_bar").urdf)
    (joint,) = [joint for joint in parse(urdf).joints if joint.name == "left_arm"]
    assert joint.in_words().startswith("revolute, 0 to 3.6 rad")


def test_batches_give_counts(delta):
    k = delta.kinematics
    poses = np.tile(k.home, (4, 5, 1))
    poses[1, 2, 2] = -3.0
    poses[3, :2, 0] = np.nan
    ik = k.inverse(poses)
    assert str(ik).splitlines()[0] == (
        "Configuration (home) of shape (4, 5): 17 CONVERGED, 1 UNREACHABLE, 2 INVALID_INPUT"
    )
    assert f"reason(7): {ik.reason(7)}" in str(ik)
    assert len(str(ik).splitlines()) == 2
    assert ik.by_name()["limb1_arm"].shape == (4, 5)
    assert (ik.by_name("joints")["limb2_arm"][0] == ik.joints[0, :, k.joint_names.index("limb2_arm")]).all()
    assert "of shape (0,): nothing" in str(k.inverse(poses[0, :0]))
    assert "of shape (4, 5): 17 CONVERGED" in str(delta.dynamics.inverse(poses))
    assert "of shape (4, 5)" not in str(k.inverse(k.home))
    assert "margins of shape (4, 5)" in str(k.singularity(poses))


def test_what_went_wrong_is_said(delta):
    k = delta.kinematics
    far = k.home + np.array([0, 0, -5, 0, 0, 0, 0])
    for solution in (k.inverse(far), k.motion(far, np.zeros(6)), delta.dynamics.inverse(far)):
        assert "UNREACHABLE: no configuration of the limbs reaches this pose" in str(solution)
        assert "nan" not in str(solution)
    low = k.inverse([0, 0, -1.42])
    assert low.status == Status.JOINT_LIMIT
    assert "JOINT_LIMIT: joint 'platform_z' at -1.42 m is outside" in str(low)
    assert "limb1_arm 1.34" in str(low)  # the configuration is there all the same
    turning = k.motion(k.home, [0, 0, 0, 0.1, 0, 0])
    assert "INVALID_INPUT" in repr(turning)
    assert "outside the platform's motion space" in turning.reason()


def test_lists_of_modes(delta):
    k = delta.kinematics
    modes = k.forward_all(k.inverse(k.home).actuated)
    assert str(modes).splitlines()[0] == "AssemblyModes 2 by method 'spheres': every real one"
    assert str(modes).splitlines()[1].startswith("  +1: xyz 0 0 -0.84994")
    assert len(str(modes).splitlines()) == 3
    assert "<Configuration (+++) CONVERGED: solved>" in repr(k.inverse_all(k.home))


def test_by_name_of_what_is_not_there(delta):
    with pytest.raises(PkmError, match=r"no array 'rates' of joints; there are actuated, joints"):
        delta.kinematics.inverse(delta.kinematics.home).by_name("rates")


def test_dir_has_the_names_for_users(delta):
    k, d = delta.kinematics, delta.dynamics
    for thing in (k, d, k.mechanism, k.inverse(k.home), d.inverse(k.home), k.forward_all(np.zeros(3))):
        assert not [name for name in dir(thing) if name.startswith("_")]
        for name in dir(thing):
            getattr(thing, name)  # nothing is promised that is not there
    assert {"inverse", "forward", "home", "actuated_names", "n_modes", "singularity"} <= set(dir(k))
    assert not {"engine", "tables", "modes"} & set(dir(k))
    assert not {"robot", "with_friction"} & set(dir(d))
    assert {"limbs", "joint_named", "mobility", "home"} <= set(dir(k.mechanism))
    assert {"by_name", "reason", "status", "joints"} <= set(dir(k.inverse(k.home)))
    assert k.engine is not None  # still there for who knows


@pytest.mark.parametrize(
    ("what", "name", "instead"),
    [
        (
            "kinematics",
            "jacobian",
            r"at\(pose\).task_jacobian has .* at\(pose\).inverse_jacobian .* at\(pose\).forward_jacobian",
        ),
        ("kinematics", "fk", r"forward\(actuated, near=pose\)"),
        ("dynamics", "forward_dynamics", r"direct\(pose, twist, effort\)"),
        ("mechanism", "dof", r"mobility\.platform"),
        ("answer", "q", "actuated are the drives' positions"),
        ("answer", "success", "ok says whether"),
    ],
)
def test_names_that_people_try_say_what_to_ask(what, name, instead, delta):
    k = delta.kinematics
    asked = {"kinematics": k, "dynamics": delta.dynamics, "mechanism": k.mechanism, "answer": k.inverse(k.home)}[what]
    with pytest.raises(AttributeError, match=f"^{type(asked).__name__} has no attribute '{name}': .*{instead}"):
        getattr(asked, name)
    assert not hasattr(asked, name)
    assert name not in dir(asked)


def test_what_is_asked_instead_is_there(delta):
    """Every name that a hint gives is one of the object, or of the objects that it names."""
    k, d = delta.kinematics, delta.dynamics
    for asked in (k, d, k.mechanism, k.inverse(k.home)):
        known = {
            *dir(asked),
            *dir(k),
            *dir(k.at(k.home)),
            *dir(d),
            *dir(k.mechanism),
            *dir(k.mechanism.mobility),
            *dir(Inertial),
            "pose",
        }
        hints = [text for kind in type(asked).__mro__ for text in vars(kind).get("_elsewhere", {}).values()]
        assert hints
        for text in hints:
            assert set(re.findall(r"\w+_\w+|\w+(?=\()|(?<=\.)\w+", text)) <= known | ELSEWHERE, text


ELSEWHERE = {"Kinematics", "Dynamics", "pkm_kinematics", "pkm_dynamics", "limits", "mass"}

ANSWERS = (
    *(Configuration, ForwardSolution, Motion, Singularity, Mechanism),
    *(Efforts, Accelerations, Reactions, InverseDerivatives),
)


@pytest.mark.parametrize("kind", [*ANSWERS, Kinematics, Dynamics, AssemblyModes], ids=lambda kind: kind.__name__)
def test_half_made_objects_introduce_themselves(kind):
    made = kind.__new__(kind)
    assert repr(made) == f"<{kind.__name__}, incomplete>"
    assert str(made) == repr(made)
    assert "__init__" not in dir(made)


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", [None, np.nan, np.full(7, np.nan), np.array(17), "text"], ids=str)
def test_objects_that_hold_nonsense_introduce_themselves(kind, value):
    made = kind(**dict.fromkeys((field.name for field in dataclasses.fields(kind) if field.init), value))
    assert kind.__name__ in repr(made)
    assert kind.__name__ in str(made)


EXPECTED = (
    r"pose: expected an array of shape \(\.\.\., 7\) for x y z qx qy qz qw, or \(\.\.\., 3\) for platform_x, .*, got "
)


@pytest.mark.parametrize(
    ("pose", "came"),
    [
        ("home", r"the text 'home'; home is spelled `k\.home`"),
        (None, "None"),
        ([1, 2], r"an array of shape \(2,\)"),
        (0.5, r"the single number 0\.5"),
        (object(), "an object of type object"),
        ({"x": 1.0}, "an object of type dict"),
        (["a"] * 7, "an object of type list: could not convert"),
        ([[1.0], [1.0, 2.0]], "an object of type list"),
    ],
    ids=("word", "nothing", "two", "number", "object", "dict", "letters", "ragged"),
)
def test_what_is_no_pose(pose, came, delta):
    for call in (delta.kinematics.inverse, delta.kinematics.singularity, delta.dynamics.inverse):
        with pytest.raises(ShapeError, match=EXPECTED + came):
            call(pose)


def test_other_wrong_arguments(delta):
    k, d = delta.kinematics, delta.dynamics
    with pytest.raises(ShapeError, match=r"twist: expected an array of shape \(\.\.\., 6\), got the text 'x'"):
        d.inverse(k.home, "x", 0)
    with pytest.raises(ShapeError, match=r"acceleration: expected .*, got the single number 0"):
        d.inverse(k.home, None, 0)
    with pytest.raises(ShapeError, match=r"q: expected an array of shape \(\.\.\., 3\), got None"):
        k.forward(None)
    with pytest.raises(ShapeError, match="seed: expected"):
        k.inverse(k.home, seed="home")
    for mode in ("home", 0.5):
        with pytest.raises(ModeError, match=f"no working mode {mode!r}: the robot has 8"):
            k.inverse(k.home, mode=mode)
    with pytest.raises(PkmError, match=r"payload: expected an Inertial.*, got an object of type float"):
        d.inverse(k.home, payload=2.0)
    with pytest.raises(PkmError, match="mechanism: expected what load_mechanism returns, got the text 'delta'"):
        Kinematics("delta")
    with pytest.raises(PkmError, match="mechanism: expected what load_mechanism returns"):
        Dynamics(None)
