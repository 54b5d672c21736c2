# SPDX-License-Identifier: Apache-2.0
"""Labels of modes along a motion, against the lists of all modes, and what is said when a singularity is passed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from pkm_kinematics import Status
from pkm_kinematics.forward.tracker import AssemblyModeTracker, ModeTracker
from pkm_kinematics.status import closes

WORKING = ["delta", "five_bar", "planar_3rrr", "hexaglide", "agile_eye", "par2", "tripteron", "irsbot2"]
ASSEMBLY = ["delta", "five_bar", "planar_3rrr", "agile_eye", "linear_delta"]


def near_home(kinematics, rng, n):
    """Poses that a little motion of the actuators leads to."""
    q = kinematics.home_joints[kinematics.engine.actuated_column]
    unit = np.where(kinematics.engine.actuated_turning, 1.0, kinematics.characteristic_length)
    found = kinematics.forward(q + 0.1 * unit * rng.uniform(-1.0, 1.0, (n, len(q))), seed=kinematics.home_joints)
    return found.pose[found.ok]


@pytest.mark.parametrize("name", [*WORKING, pytest.param("h4", marks=pytest.mark.slow)])
def test_working_modes_are_named_as_in_the_list_of_all(name, of_gallery):
    """Each solution of `inverse_all`, shown to a tracker that has seen nothing before."""
    k = of_gallery[name].kinematics
    seen = set()
    for pose in near_home(k, np.random.default_rng(3), 2):
        listed = [one for one in k.inverse_all(pose) if np.isfinite(one.joints).all()]
        for one in listed[:: max(1, len(listed) // 12)]:
            modes = ModeTracker(k).observe(pose, one.joints)
            assert modes.working == one.label
            assert modes.change == ""
            seen.add(one.label)
    assert len(seen) > 1


@pytest.mark.parametrize("name", ASSEMBLY)
def test_assembly_modes_have_the_sides_of_the_list_of_all(name, of_gallery):
    k = of_gallery[name].kinematics
    rng = np.random.default_rng(4)
    signs = set()
    for pose in near_home(k, rng, 3):
        for working in (0, 1, k.n_modes - 1):
            q = k.inverse(pose, mode=working).actuated
            for one in k.forward_all(q) if np.isfinite(q).all() else []:
                if one.status not in (Status.CONVERGED, Status.JOINT_LIMIT):
                    continue
                modes = ModeTracker(k).observe(one.pose, one.joints)
                assert modes.assembly[0] == one.label[0]
                if name in ("delta", "five_bar", "linear_delta"):  # two modes, one on each side
                    assert modes.assembly == one.label
                signs.add(one.label[0])
    assert signs == {"+", "-"}


@pytest.mark.not_for("modes by search", "modes without sides")  # a search takes long
def test_home_is_the_first_of_its_side(robot):
    """The numbers count from home, so that a motion from there begins in mode +1."""
    k = robot.kinematics
    modes = [m for m in k.forward_all(k.home_joints[k.engine.actuated_column]) if m.label == "+1"]
    assert np.abs(modes[0].pose[:3] - k.home[:3]).max() < 1e-6
    assert ModeTracker(k).observe(k.home, k.home_joints).assembly == "+1"


def test_a_limb_stretched_out_and_folded_the_other_way(of_gallery):
    """The first arm of a five-bar goes over to where the other working mode has it, and back: one change each way."""
    k = of_gallery["five_bar"].kinematics
    home = k.home_joints[k.engine.actuated_column]
    goal = next(one for one in k.inverse_all(k.home) if one.label == "-+").actuated
    tracker = AssemblyModeTracker(k)
    changes, labels = [], []
    way = np.concatenate([np.linspace(0.0, 1.0, 200), np.linspace(1.0, 0.0, 200)])
    for part in way:
        motion = tracker.observe(home + part * (goal - home), np.zeros(2))
        assert motion.status == Status.CONVERGED
        # the joints are those that the actuators show, on both sides
        assert np.abs(motion.joints[k.engine.actuated_column] - home - part * (goal - home)).max() < 1e-9
        labels.append(tracker.modes.working)
        changes += [tracker.modes.change] if tracker.modes.change else []
        assert tracker.modes.assembly == "+1"
    assert [labels[0], labels[199], labels[-1]] == ["++", "-+", "++"]
    assert len(changes) == 2
    assert changes[0].startswith("working mode ++ left for -+")
    assert "type 1" in changes[0]
    assert changes[1].startswith("working mode -+ left for ++")
    # where it happens the arm and the rod are in line: Gosselin and Angeles' type 1
    at = labels.index("-+")
    margins = [k.singularity(k.forward(home + way[j] * (goal - home)).pose).type1 for j in (0, at)]
    assert margins[1] < 0.15 * margins[0]


@pytest.mark.parametrize("name", ["five_bar", "planar_3rrr"])
def test_a_platform_carried_through_a_type_2_singularity(name, of_gallery):
    """From one assembly mode to one on the other side, the limbs in their working mode all the way."""
    k = of_gallery[name].kinematics
    q = k.home_joints[k.engine.actuated_column]
    listed = [one for one in k.forward_all(q) if np.isfinite(one.pose).all()]
    first = next(one for one in listed if one.label == "+1")
    tried = 0
    for last in (one for one in listed if one.label[0] == "-"):
        turn = Slerp([0.0, 1.0], Rotation.from_quat([first.pose[3:], last.pose[3:]]))
        tracker, joints, changes, modes = ModeTracker(k), first.joints, [], None
        for part in np.linspace(0.0, 1.0, 301):
            pose = np.concatenate([(1.0 - part) * first.pose[:3] + part * last.pose[:3], turn(part).as_quat()])
            solved = k.inverse(pose, seed=joints)
            if not np.isfinite(solved.joints).all():
                break  # the straight way leaves the workspace
            joints = solved.joints
            modes = tracker.observe(pose, joints)
            changes += [modes.change] if modes.change else []
        else:
            if modes.working != ModeTracker(k).observe(first.pose, first.joints).working:
                continue
            tried += 1
            assert len(changes) % 2 == 1
            assert all("type 2" in change for change in changes)
            assert modes.assembly[0] == "-"
            if name != "planar_3rrr":
                assert modes.assembly == last.label
    assert tried > 0


def test_a_limb_solved_by_iteration_is_looked_up_again(of_gallery):
    k = of_gallery["irsbot2"].kinematics
    home = k.home_joints[k.engine.actuated_column]
    goal = next(one for one in k.inverse_all(k.home) if one.label == "-+").actuated
    goal = home + np.angle(np.exp(1j * (goal - home)))
    tracker = AssemblyModeTracker(k)
    changes = []
    for part in np.linspace(0.0, 1.0, 200):
        motion = tracker.observe(home + part * (goal - home), np.zeros(2))
        changes += [tracker.modes.change] if tracker.modes.change else []
    assert any(change.startswith("working mode ++ left for -+") for change in changes)
    fresh = ModeTracker(k).observe(motion.pose, motion.joints)
    assert fresh.working == tracker.modes.working


def test_a_singular_configuration_has_no_labels(of_gallery):
    """A stretched limb has no working mode; the next configuration with one is compared with the last that had one."""
    k = of_gallery["delta"].kinematics
    tracker = ModeTracker(k)
    assert tracker.observe(k.home, k.home_joints).working == "+++"
    far = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    assert tracker.observe(far, k.home_joints) == tracker.observe(np.full(7, np.nan), k.home_joints)
    assert tracker.observe(far, k.home_joints).working == ""
    other = k.inverse(k.home, mode=3)
    modes = tracker.observe(k.home, other.joints)
    assert modes.working == other.label != "+++"
    assert modes.change.startswith("working mode +++ left for")


@pytest.mark.not_for("turning space")  # there the readings are put together from the parts
def test_a_reading_in_one_call_is_what_the_parts_give(robot):
    """Positions, twist and velocities of a tracker against `forward`, `platform_twist` and `motion`."""
    k = robot.kinematics
    rng = np.random.default_rng(6)
    home = k.home_joints[k.engine.actuated_column]
    unit = np.where(k.engine.actuated_turning, 1.0, k.characteristic_length)
    tracker, pose, joints = AssemblyModeTracker(k), k.home, k.home_joints
    for _ in range(20):
        q, rates = home + 0.05 * unit * rng.uniform(-1, 1, len(home)), unit * rng.uniform(-1, 1, len(home))
        if len(home) > k.mobility:  # positions and rates that agree with each other
            at = k.inverse(k.home)
            q, rates = at.actuated, k.at(k.home).inverse_jacobian @ k.task.subspace @ rng.uniform(-1, 1, k.mobility)
        seen = tracker.observe(q, rates)
        found = k.forward(q, near=pose, seed=joints)
        if not found.ok:
            assert seen.status != Status.CONVERGED
            continue
        assert seen.status in (Status.CONVERGED, Status.JOINT_LIMIT)
        pose, joints = found.pose, found.joints
        twist = k.at(pose, seed=joints).platform_twist(rates)
        motion = k.motion(pose, twist, seed=joints)
        assert np.abs(seen.pose - pose).max() < 1e-12
        assert np.abs(np.exp(1j * (seen.joints - motion.joints)) - 1.0).max() < 1e-10
        scale = 1.0 + np.abs(motion.velocities).max()
        assert np.abs(seen.twist - twist).max() < 1e-9 * scale
        assert np.abs(seen.velocities - motion.velocities).max() < 1e-9 * scale


def test_readings_that_lead_nowhere_are_tried_from_home_once(of_gallery, monkeypatch):
    k = of_gallery["gough_stewart"].kinematics
    asked, forward = [], k.forward
    monkeypatch.setattr(k, "forward", lambda *q, **how: asked.append(1) or forward(*q, **how))
    tracker, still = AssemblyModeTracker(k), np.zeros(6)
    good = k.inverse(k.home).actuated
    assert closes(tracker.observe(good, still).status)
    apart = np.array([0.5, -0.5, 0.5, -0.5, 0.5, -0.5])
    for noise in 1e-3 * np.random.default_rng(2).standard_normal((20, 6)):
        assert tracker.observe(good + apart + noise, still).status is Status.SINGULAR
    assert len(asked) == 1
    assert closes(tracker.observe(good, still).status)
    assert tracker.tracking
