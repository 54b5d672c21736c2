# SPDX-License-Identifier: Apache-2.0
"""An independent frame program on the numbers that are written as JSON, and on nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from Pynite import FEModel3D

from pkm_analysis import Analysis
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from test.oracles.sprung_robots import sprung

ROBOTS = ("delta", "gough_stewart", "orthoglide", "planar_3rrr", "tripod_3prs", "agile_eye", "quattro", "cable_8")
SPRUNG = ("sprung delta", "sprung gough_stewart", "sprung orthoglide")


def member(beam: dict) -> tuple[Array, float]:
    """Stiffness (12, 12) of a beam in the base frame, by PyNite, and how far its y is off."""
    frame = FEModel3D()
    frame.add_node("a", *beam["from"])
    frame.add_node("b", *beam["to"])
    frame.add_material("m", beam["E"], beam["G"], 0.3, 0.0)
    frame.add_section("s", beam["A"], beam["Iy"], beam["Iz"], beam["J"])
    frame.add_member("plain", "a", "b", "m", "s")
    _, y, z = np.array(frame.members["plain"].T())[:3, :3]
    wanted = np.array(beam["y"])
    turn = float(np.degrees(np.arctan2(wanted @ z, wanted @ y)))
    frame.add_member("turned", "a", "b", "m", "s", rotation=turn)
    found = frame.members["turned"]
    return np.array(found.T().T @ found.ke() @ found.T()), float(np.abs(np.array(found.T())[1, :3] - wanted).max())


def to_point(start: list, end: list) -> Array:
    """Displacement (6, 6) of a point of a rigid node per displacement of the node."""
    arm = np.subtract(end, start)
    cross = np.array([[0, -arm[2], arm[1]], [arm[2], 0, -arm[0]], [-arm[1], arm[0], 0]])
    return np.block([[np.eye(3), -cross], [np.zeros((3, 3)), np.eye(3)]])


def compliance_and_sag(told: dict) -> tuple[Array, Array]:
    """Compliance (6, 6) of the platform, and its sag (6,), from what the JSON tells."""
    nodes, size = told["nodes"], 6 * len(told["nodes"])
    K, rows = np.zeros((size, size)), [*np.eye(size)[:6]]  # node 0 is the ground
    for beam in told["beams"]:
        k, off = member(beam)
        assert off < 1e-9
        B = np.zeros((12, size))
        for end, (node, point) in enumerate(zip(beam["nodes"], (beam["from"], beam["to"]), strict=True)):
            B[6 * end : 6 * end + 6, 6 * node : 6 * node + 6] = to_point(nodes[node]["at"], point)
        K += B.T @ k @ B
    relative = {}
    for joint in told["joints"]:
        B = np.zeros((6, size))
        for sign, node in zip((-1.0, 1.0), joint["nodes"], strict=True):
            B[:, 6 * node : 6 * node + 6] += sign * to_point(nodes[node]["at"], joint["at"])
        relative[joint["name"]] = B, joint["free"]
    held = [
        (relative[joint["name"]][0], one["axis"], one["value"])
        for joint in told["joints"]
        for one in joint["stiffness"]
    ]
    lines = {one["joint"]: one["length"] / one["EA"] for one in told["cables"]}
    for drive in told["drives"]:
        soft = lines.get(drive["joint"], 0.0) + (1.0 / drive["stiffness"] if drive["stiffness"] else 0.0)
        held.append((relative[drive["joint"]][0], drive["axis"], 1.0 / soft if soft else None))
    for B, axis, value in held:
        row = np.array(axis) @ B
        if value is None:
            rows.append(row)
        else:
            K += value * np.outer(row, row)
    springs = []
    for spring in told["springs"]:
        B = np.zeros((6, size))
        for sign, node in zip((-1.0, 1.0), spring["nodes"], strict=True):
            B[:, 6 * node : 6 * node + 6] += sign * to_point(nodes[node]["at"], spring["at"])
        springs.append((np.array(spring["axis"]) @ B, spring))
        K += spring["stiffness"] * np.outer(springs[-1][0], springs[-1][0])
    driven = {drive["joint"]: drive["axis"] for drive in told["drives"]}
    for joint in told["joints"]:
        if "mimic" in joint:
            B, free = relative[joint["name"]]
            leader, axes = relative[joint["mimic"]]
            axis = axes[0] if axes else driven[joint["mimic"]]
            rows.append(np.array(free[0]) @ B - joint["multiplier"] * np.array(axis) @ leader)
    P = np.zeros((6, size))
    P[:, 6 * told["platform"] : 6 * told["platform"] + 6] = to_point(nodes[told["platform"]]["at"], told["origin"])
    rows += [np.array(row) @ P for row in told["held"]]
    _, values, Vt = np.linalg.svd(np.array(rows))
    Z = Vt[int((values > 1e-9 * values[0]).sum()) :].T  # what rigid joints allow
    reduced = Z.T @ K @ Z
    scale = 1.0 / np.sqrt(np.maximum(np.diag(reduced), 1e-9 * np.diag(reduced).max()))
    values, vectors = np.linalg.eigh(scale[:, None] * reduced * scale)
    some = values > 1e-13 * values[-1]  # the others are idle: rods that spin
    V = P @ Z @ (scale[:, None] * vectors[:, some])
    assert np.abs(P @ Z @ (scale[:, None] * vectors[:, ~some])).max(initial=0.0) < 1e-5
    load = np.zeros(size)
    for one in told["masses"]:
        place = to_point(nodes[one["node"]]["at"], one["at"])
        load[6 * one["node"] : 6 * one["node"] + 6] += place[:3].T @ (one["mass"] * np.array(told["gravity"]))
    for row, spring in springs:
        load -= spring["force"] * row
    moved = (Z @ (scale[:, None] * vectors[:, some])).T
    return V / values[some] @ V.T, V / values[some] @ (moved @ load)


@pytest.mark.slow
def test_a_frame_program_agrees_of_every_robot(robot_name: str) -> None:
    if robot_name not in ("griffis_duffy", "h4"):  # singular at home
        test_a_frame_program_has_the_same_compliance_and_sag(robot_name)


@pytest.mark.by_day("planar_3rrr", "tripod_3prs")
@pytest.mark.parametrize("name", ROBOTS + SPRUNG)
def test_a_frame_program_has_the_same_compliance_and_sag(name: str) -> None:
    robot = sprung(name.split()[1]) if name in SPRUNG else load_mechanism(name)
    found = Analysis(robot, stiffness=None if name == "delta" else 3e5).stiffness()
    told = json.loads(json.dumps(found.to_dict()))
    scale = np.array(3 * [1.0] + 3 * [found.system.length])
    matrix, sag = compliance_and_sag(told)
    ours, theirs = (scale[:, None] * C * scale for C in (np.array(told["compliance"]), matrix))
    assert np.abs(scale * (sag - told["sag"])).max() <= 1e-8 * np.abs(scale * told["sag"]).max()
    assert np.abs(ours - theirs).max() <= 1e-8 * np.abs(ours).max()
