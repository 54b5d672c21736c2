# SPDX-License-Identifier: Apache-2.0
"""Wrenches at the joints and on the ground, against Pinocchio's momenta and constraint forces, body by body."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest

from bench.engines.pinocchio_model import PinocchioRobot, constraint_model
from bench.strange_robots import BRANCH, GUIDE, LEFT, RIGHT, joint, loop
from bench.strange_robots import robot as described
from pkm_description import load_mechanism
from pkm_dynamics import Distribution, Dynamics
from pkm_kinematics import Kinematics, Status

FREE = Distribution()  # efforts by least squares, whether or not the drives can give them

SOME = slice(0, 200, 40)
WRENCH = np.array([5.0, -3.0, 4.0, 0.5, 0.2, -0.7])


def asked(robot):
    s = robot.states
    return s.pose[SOME], s.twist[SOME], s.acceleration[SOME]


def at(wrench, point):
    """The wrench about the base's origin."""
    return np.concatenate([wrench[:3], wrench[3:] + np.cross(point, wrench[:3])])


def needed_by_bodies(judge, q, v, vdot):
    """Wrench (6,) about the base's origin, weight included, that each of Pinocchio's bodies takes, by joint."""
    model, data = judge.model, judge.data
    pin.forwardKinematics(model, data, q, v, vdot)
    pin.updateFramePlacements(model, data)
    gravity = pin.Motion(np.array(model.gravity.linear), np.zeros(3))
    found = []
    for k in range(model.njoints):
        body, V = model.inertias[k], data.v[k]
        force = body * (data.a[k] - data.oMi[k].actInv(gravity)) + V.cross(body * V)
        found.append(data.oMi[k].act(force).vector)
    return np.array(found)


def test_every_body_is_in_balance(robot):
    """What the joints and loops bring to each body is the rate of its momentum less its weight, by Pinocchio."""
    judge, mechanism = robot.judge, robot.kinematics.mechanism
    found = robot.dynamics.reactions(*asked(robot), wrench=WRENCH, distribution=FREE)
    assert found.ok.all()
    platform = judge.model.frames[judge.platform].parentJoint
    chain = {judge.model.getJointId(name) for name in mechanism.platform_chain}
    for k, state in enumerate(range(200)[SOME]):
        needed = needed_by_bodies(judge, *robot.rates(state))
        brought = np.zeros_like(needed)
        size = np.abs(needed).max()
        for j, name in enumerate(found.names):
            moved = at(found.wrench[k, j], found.point[k, j])
            size = max(size, np.abs(moved).max())
            if name in mechanism.loop_named:
                ends = next(one for one in judge.loops if one.name == name)
                giver, taker = (judge.model.frames[f].parentJoint for f in (ends.predecessor, ends.successor))
            else:
                taker = judge.model.getJointId(name)
                giver = judge.model.parents[taker]
            brought[giver] -= moved
            brought[taker] += moved
        assert not np.abs(brought[list(chain - {platform})]).any()
        where = asked(robot)[0][k, :3]
        brought[platform] += at(found.branch[k], where) + at(WRENCH, where)
        assert np.abs(brought[1:] - needed[1:]).max() < 1e-9 * size
        on_ground = brought[0] - at(found.branch[k], where)
        assert np.abs(on_ground - found.base[k]).max() < 1e-9 * size


def test_ground_takes_the_rate_of_momentum(robot):
    """The whole robot as one system: Pinocchio's centroidal momentum, its rate, its centre of mass and its mass."""
    judge = robot.judge
    found = robot.dynamics.reactions(*asked(robot), wrench=WRENCH, distribution=FREE)
    for k, state in enumerate(range(200)[SOME]):
        rate = pin.computeCentroidalMomentumTimeVariation(judge.model, judge.data, *robot.rates(state))
        com = judge.data.com[0]
        weight = pin.computeTotalMass(judge.model) * np.array(judge.model.gravity.linear)
        outside = at(np.append(weight, np.zeros(3)), com) + at(WRENCH, asked(robot)[0][k, :3])
        expected = outside - at(rate.vector, com)
        assert np.abs(found.base[k] - expected).max() < 1e-10 * max(np.abs(expected).max(), np.abs(outside).max())


def test_along_their_axes_joints_transmit_efforts(robot):
    """Actuated joints their effort less the rotor's share; passive joints nothing; all less friction where it is."""
    mechanism = robot.kinematics.mechanism
    for dynamics in (robot.dynamics, Dynamics(robot.kinematics)):
        found = dynamics.reactions(*asked(robot), distribution=FREE)
        motion = robot.kinematics.motion(*asked(robot))
        assert found.effort == pytest.approx(dynamics.inverse(*asked(robot), distribution=FREE).effort, rel=1e-12)
        size = np.abs(found.wrench).max(axis=(1, 2))
        for name in found.names:
            if name in mechanism.loop_named:
                continue
            column = robot.kinematics.joint_names.index(name)
            one = mechanism.joint_named[name]
            rate = motion.velocities[:, column]
            expected = np.zeros(len(rate))
            if name in mechanism.actuated_joints:
                expected = found.effort[:, mechanism.actuated_joints.index(name)]
                expected = expected - one.drive.armature * motion.accelerations[:, column]
            if dynamics.friction:
                rubbing = one.coulomb_friction * np.tanh(rate / 1e-3)
                expected = expected - one.viscous_friction * rate - rubbing
            sliding = one.type.value == "prismatic"
            brought = found.along_axes(name)[:, 2 if sliding else 5]
            axis = robot.judge.data.oMi[robot.judge.model.getJointId(name)].rotation @ one.axis
            assert np.abs(brought - expected).max() < 1e-9 * size.max(), (name, axis)


def test_loops_transmit_nothing_where_they_are_free(robot):
    """A ball joint transmits no moment, a revolute none about its axis, a prismatic joint no force along it."""
    found = robot.dynamics.reactions(*asked(robot), distribution=FREE)
    size = np.abs(found.wrench).max()
    free = {"spherical": [3, 4, 5], "revolute": [5], "cylindrical": [2, 5], "prismatic": [2], "planar": [0, 1, 5]}
    for one in robot.kinematics.mechanism.loops:
        local = found.along_axes(one.name)
        if one.type.value == "universal":
            assert np.abs(local[:, 5]).max() < 1e-10 * size
        else:
            assert np.abs(local[:, free.get(one.type.value, [])]).max(initial=0.0) < 1e-10 * size


def test_redundant_stresses_are_the_redundant_constraints(robot):
    """The mobility count of the description, by another route, says how often the robot is overconstrained."""
    found = robot.dynamics.reactions(*asked(robot), distribution=FREE)
    assert (found.redundant == robot.kinematics.mechanism.mobility.redundant_constraints).all()
    if robot.kinematics.mechanism.mobility.redundant_constraints == 0:
        assert found.determinate.all()
    else:
        assert not found.determinate.all()


@dataclass(frozen=True, eq=False)
class Free:
    """Pinocchio's model of a robot with a free platform, so that its branch carries nothing, and states of it."""

    judge: PinocchioRobot
    states: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def freed(robot):
    k = robot.kinematics
    judge = PinocchioRobot(k.mechanism, free_platform=True)
    states = []
    motion = k.motion(*asked(robot))
    for i, (pose, twist, acceleration) in enumerate(zip(*asked(robot), strict=True)):
        q = judge.free_coordinates(k.joint_names, motion.joints[i], pose)
        v = judge.free_rates(k.joint_names, motion.velocities[i], pose, twist)
        vdot = judge.free_accelerations(k.joint_names, motion.accelerations[i], pose, twist, acceleration)
        states.append((q, v, vdot))
    return Free(judge, states)


# Of these, balance determines no loop: planar limbs, parallelograms, and other overconstrained robots.
UNDETERMINED = {
    "agile_eye", "delta_rr", "five_dof_3rr_rrr", "four_upu", "hay_snyman", "irsbot2", "navaro", "orthoglide", "par2",
    "planar_3rpr", "planar_3rrr", "planar_mixed", "ppa_2t", "pru_3", "quattro", "reactionless_four_bar", "three_rpc",
    "tripteron",
}  # fmt: skip


@pytest.mark.not_for("loaded branch")
def test_determinate_wrenches_are_those_of_any_solution(robot):
    """Multipliers of least norm of Pinocchio's constraints give the same forces wherever balance determines them."""
    mechanism = robot.kinematics.mechanism
    free = freed(robot)
    judge = free.judge
    found = robot.dynamics.reactions(*asked(robot), distribution=FREE)
    compared = 0
    for k, (q, v, vdot) in enumerate(free.states):
        force = pin.rnea(judge.model, judge.data, q, v, vdot).copy()
        force[judge.actuated] -= found.effort[k]
        J, _ = judge.constraints(q, v)
        multipliers = np.linalg.lstsq(J.T, force, rcond=1e-9)[0]
        rows = [6 - mechanism.loop_named[one.name].type.dof for one in judge.loops]
        parts = np.split(multipliers, np.cumsum(rows)[:-1])
        for one, part in zip(judge.loops, parts, strict=True):
            T = one.forbidden(second_axis(judge, one))
            if not found.determinate[k, found.names.index(one.name)]:
                continue
            compared += 1
            # on the successor, in the predecessor's axes, about the predecessor's point, which is where the loop closes
            local = T.T @ part
            R = judge.data.oMf[one.predecessor].rotation
            theirs = np.concatenate([R @ local[:3], R @ local[3:]])
            at_point = judge.data.oMf[one.predecessor].translation
            ours = at(found.of(one.name)[k], found.point[k, found.names.index(one.name)])
            assert np.abs(at(theirs, at_point) - ours).max() < 1e-8 * np.abs(found.wrench[k]).max()
    assert (compared == 0) == (robot.name in UNDETERMINED)


def second_axis(judge, one):
    """The successor's axis of a loop in the predecessor's frame."""
    return judge.data.oMf[one.predecessor].actInv(judge.data.oMf[one.successor]).rotation @ one.axis2


@pytest.mark.parametrize("name", ["delta", "gough_stewart"])
def test_against_pinocchio_constraint_forces(of_gallery, name):
    """The contact forces of Pinocchio's own constrained forward dynamics, whose solver stops at 1e-12."""
    robot = of_gallery[name]
    free = freed(robot)
    model, data, contacts, constraint_data, settings = constraint_model(free.judge)
    found = robot.dynamics.reactions(*asked(robot), distribution=FREE)
    for k, (q, v, _) in enumerate(free.states):
        tau = np.zeros(model.nv)
        tau[free.judge.actuated] = found.effort[k]
        pin.constraintDynamics(model, data, q, v, tau, contacts, constraint_data, settings)
        for one, contact, answer in zip(free.judge.loops, contacts, constraint_data, strict=True):
            # Pinocchio's force acts on the first joint of a contact, in its frame: here the predecessor
            R = data.oMi[contact.joint1_id].rotation @ contact.joint1_placement.rotation
            theirs = R @ answer.contact_force.linear
            assert np.abs(found.of(one.name)[k, :3] + theirs).max() < 1e-6 * np.abs(found.wrench[k]).max()


def test_the_share_does_not_depend_on_where_loops_are_cut():
    """One planar machine, its platform on a branch of its own and, again, on the left limb: the same at every joint.

    It is overconstrained, as planar machines are, so that the share is a choice.
    """
    seats = {"left": "-0.05 0 0", "right": "0.05 0 0", "guide": "0 0.05 0"}
    parts = (
        '<link name="tip"><inertial><mass value="0.3"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial></link>'
    )
    parts += LEFT + RIGHT + GUIDE
    for name, seat in seats.items():
        pinned = loop(f"{name}_pin", f"{name}_bar", "0.4 0 0", "tip")
        assert pinned in parts
        parts = parts.replace(pinned, loop(f"{name}_pin", f"{name}_bar", "0.4 0 0", "tip", seat))
    branch = BRANCH.replace('child link="tip"', 'child link="turn"') + '<link name="turn"/>'
    branch += joint("angle", "turn", "tip")
    drives = ("left_motor", "right_motor", "guide_motor")
    start = {"left_motor": 2.3, "left_elbow": -1.6, "right_motor": 0.83, "right_elbow": 1.6}
    start |= {"guide_motor": -0.7, "guide_elbow": -1.6}
    apart = described(parts + branch, drives, start=start)
    cut = loop("left_pin", "left_bar", "0.4 0 0", "tip", seats["left"])
    hinged = '<link name="seat"/>' + joint("left_pin", "left_bar", "seat", "0.4 0 0")
    hinged += joint("rigid", "seat", "tip", "0.05 0 0", kind='type="fixed"')
    hung = described(parts.replace(cut, "") + hinged, drives, start=start)
    first, second = (Dynamics(Kinematics(load_mechanism(text)), friction=False) for text in (apart, hung))
    pose = first.kinematics.home
    joints = first.kinematics.inverse(pose)
    seed = second.kinematics.home_joints.copy()
    for k, name in enumerate(second.kinematics.joint_names):
        if name in first.kinematics.joint_names:
            seed[k] = joints.joints[first.kinematics.joint_names.index(name)]
    twist = np.array([0.3, -0.2, 0.0, 0.0, 0.0, 0.7])
    acceleration = np.array([3.0, 2.0, 0.0, 0.0, 0.0, -5.0])
    load = np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6])
    a = first.reactions(pose, twist, acceleration, wrench=load)
    b = second.reactions(second.kinematics.at(pose, seed=seed), twist, acceleration, wrench=load)
    assert a.status == b.status == Status.CONVERGED
    assert a.redundant == b.redundant == 6
    assert set(a.names) == set(b.names)
    for name in a.names:
        assert at(b.of(name), b.point[b.names.index(name)]) == pytest.approx(
            at(a.of(name), a.point[a.names.index(name)]), abs=1e-8
        )
        assert a.determinate[a.names.index(name)] == b.determinate[b.names.index(name)]


def test_a_reactionless_robot_does_not_shake_its_base(of_gallery):
    """Wu and Gosselin's first mechanism: the printed numbers balance it to 1e-4 of the forces inside."""
    robot = of_gallery["reactionless_four_bar"]
    still = robot.dynamics.reactions(asked(robot)[0], distribution=FREE).base
    moving = robot.dynamics.reactions(*asked(robot), distribution=FREE)
    shaking = np.abs(moving.base - still).max(axis=1)
    inside = np.abs(moving.wrench).max(axis=(1, 2))
    assert (shaking < 1e-3 * inside).all()
    assert (inside > 10.0).all()


def test_at_rest_the_ground_carries_the_weight(delta):
    """All masses times g straight down, the load in the middle for the symmetric pose."""
    found = delta.dynamics.reactions(delta.kinematics.home)
    mass = sum(link.inertial.mass for link in delta.kinematics.mechanism.links if link.name != "base_link")
    assert found.base[:3] == pytest.approx([0.0, 0.0, -9.81 * mass], abs=1e-9 * mass)
    assert found.base[3:] == pytest.approx(np.zeros(3), abs=1e-9 * mass)
    assert found.determinate.all()
    assert np.abs(found.branch).max() < 1e-9


def test_shapes_and_statuses(delta):
    pose = np.tile(delta.kinematics.home, (2, 3, 1))
    pose[1, 2, 2] -= 5.0
    found = delta.dynamics.reactions(pose)
    n = len(found.names)
    assert found.wrench.shape == (2, 3, n, 6)
    assert found.axes.shape == (2, 3, n, 3, 3)
    assert found.base.shape == (2, 3, 6)
    assert found.status[1, 2] == Status.UNREACHABLE
    assert np.isnan(found.wrench[1, 2]).all()
    assert np.isfinite(found.wrench[found.ok]).all()
    with pytest.raises(Exception, match="no joint or loop 'elbow'"):
        found.of("elbow")
