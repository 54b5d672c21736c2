# SPDX-License-Identifier: Apache-2.0
"""Files whose numbers have few digits: loops that repeat each other agree again, and larger gaps are told."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.formats.rounding import ENDS, settled
from pkm_description.load import expand_told
from pkm_description.loops.closure import advance
from pkm_description.tree_model import TreeModel, started_tree
from pkm_description.urdf import urdf_plus
from pkm_kinematics import Kinematics

GIVEN = {"platform": "platform", "base": "base_link"}


def _rounded(digits: int) -> str:
    text = re.sub("<custom>.*?</custom>", "", export_mjcf(load_mechanism("delta")), flags=re.DOTALL)
    return re.sub(r'(?<=["\s])-?\d+\.\d+(e-?\d+)?(?=["\s])', lambda one: f"{float(one.group()):.{digits}g}", text)


@pytest.mark.parametrize(("digits", "most"), [(7, 1e-7), (6, 1e-6)])
def test_rounded_loops_close_where_the_platform_goes(digits: int, most: float) -> None:
    text, _, notes = expand_told(_rounded(digits), GIVEN)
    (said,) = [note for note in notes if "rounded" in note]
    miss, moved = map(float, re.findall(r"by (?:up to )?(\S+) m", said))
    assert 1e-12 < miss < most
    assert 1e-12 < moved < most  # no more than the digits left out
    kinematics, drawn = Kinematics(load_mechanism(text)), Kinematics(load_mechanism("delta"))
    for step in (0.0, 0.05, 0.1):
        pose = drawn.home.copy()
        pose[:3] += [step, -0.5 * step, step]
        found, exact = kinematics.inverse(pose), drawn.inverse(pose)
        assert found.status == exact.status == 0  # it was open by 1e-9 of its size, ten times what counts as closed
        # an arm of 0.2 m and numbers that differ by `most`
        assert found.actuated == pytest.approx(exact.actuated, abs=20 * most)


@pytest.mark.slow
def test_a_gap_that_digits_do_not_explain_is_told() -> None:
    text = _rounded(17)
    place = re.search(r'<site name="limb1_a_ball[^>]* pos="(\S+)', text)
    assert place is not None
    wrong = text[: place.start(1)] + repr(float(place[1]) + 1e-4) + text[place.end(1) :]
    with pytest.raises(DescriptionError, match=r"stays open by \S+e-05 m"):
        load_mechanism(wrong, GIVEN)


def _tilted_five_bar(tilt: float) -> str:
    """A planar five-bar of hinges about z, in a tree, each of whose frames leans by about `tilt` [rad]."""
    lean = iter(np.random.default_rng(5).uniform(-tilt, tilt, (12, 2)))

    def origin(x: float, y: float, yaw: float = 0.0) -> str:
        roll, pitch = next(lean)
        return f'<origin xyz="{x} {y} 0" rpy="{roll} {pitch} {yaw}"/>'

    def hinge(name: str, parent: str, place: str) -> str:
        ends = f'<parent link="{parent}"/><child link="{name}"/>'
        return f'<joint name="to_{name}" type="continuous">{ends}{place}<axis xyz="0 0 1"/></joint>'

    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    links = "".join(f'<link name="{name}">{body}</link>' for name in ("base", "a", "b", "c", "d"))
    joints = "".join((
        hinge("a", "base", origin(0.0, 0.0, 2.0)),
        hinge("b", "a", origin(0.3, 0.0, -1.2)),
        hinge("c", "base", origin(0.4, 0.0, 1.0)),
        hinge("d", "c", origin(0.25, 0.0, 1.1)),
    ))  # fmt: skip
    ends = "".join(f'<{end} link="{link}">{origin(0.35, 0.0)}</{end}>' for end, link in zip(ENDS, "bd", strict=True))
    return (
        f'<robot name="bars">{links}{joints}<loop name="tip" type="revolute">{ends}<axis xyz="0 0 1"/></loop></robot>'
    )


def test_planar_hinges_that_lean_close_wherever_they_turn() -> None:
    """Frames of joints alone cannot: two hinges that lean on a body that hangs on the loop's predecessor stay so."""
    drawn = _tilted_five_bar(1e-8)
    text, notes = settled(drawn)
    assert "rounded" in notes[0]
    before, after = (_gaps(started_tree(urdf_plus.parse(one, "", tree=True), "", one)) for one in (drawn, text))
    assert after < 1e-14  # rounding of ten joints
    assert before > 1e-9


def _gaps(tree: TreeModel) -> float:
    """The largest gap over configurations far from home, where all equations that can be met are."""
    model, random, worst = tree.whole, np.random.default_rng(2), 0.0
    home = tree.home_of(model)
    for _ in range(20):
        q = home + random.uniform(-0.3, 0.3, model.size)
        for _ in range(30):
            gap, J = model.closure(q)
            q = advance(model, q, -np.linalg.pinv(J, rcond=1e-5) @ gap)
        worst = float(np.maximum(worst, np.abs(model.closure(q)[0]).max()))
    return worst


@pytest.mark.by_day("linear_delta")
@pytest.mark.parametrize("name", ["delta", "linear_delta"])
def test_a_machine_as_built_is_told_to_keep_its_drawing(name: str) -> None:
    """Its platform cannot stay level, as the drawing's does."""
    random, root = np.random.default_rng(0), ElementTree.fromstring(load_mechanism(name).urdf)
    for origin in root.iterfind("loop/*/origin"):
        as_built = [float(x) + 5e-4 * random.standard_normal() for x in origin.get("xyz", "0 0 0").split()]
        origin.set("xyz", " ".join(map(str, as_built)))
    with pytest.raises(DescriptionError, match=r"keep the drawing and give corrections \(pkm calibrate\)"):
        load_mechanism(ElementTree.tostring(root, encoding="unicode"))
