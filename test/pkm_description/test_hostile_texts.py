# SPDX-License-Identifier: Apache-2.0
"""Texts that are no descriptions, or take long to read: one `DescriptionError` each, soon, and nothing else.

What comes from the ROS graph is read by `mechanism_from_urdf`; names, files, xacro and MJCF are for `load_mechanism`.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pkm_description import DescriptionError, load_mechanism, mechanism_from_urdf
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.formats.read import plus_text
from pkm_description.gallery import robot_path
from pkm_description.joint_geometry import child_frame
from pkm_description.load import expand
from pkm_description.loops import closure
from pkm_description.mechanism import Array, Joint
from pkm_description.urdf.urdf_plus import PARTS
from pkm_description.urdf.xacro_expansion import expand_text
from pkm_description.urdf.xml_text import DEPTH, LETTERS, read_xml, root_tag

SOON = 5.0  # s, on a busy computer
BOUNDED = 60.0  # s: a search for a home that does not exist, on a busy computer
XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'


def refused(text: str) -> DescriptionError:
    """The error of a text, which must come soon."""
    started = time.perf_counter()
    with pytest.raises(DescriptionError) as caught:
        mechanism_from_urdf(text)
    assert time.perf_counter() - started < SOON
    assert len(str(caught.value)) < 4000
    return caught.value


# A text is data


@pytest.mark.parametrize(
    "text",
    [
        "delta",
        str(robot_path("delta")),
        "/etc/passwd",
        "",
        "\0",
        "\ud800",
        export_mjcf(load_mechanism("five_bar")),
        robot_path("five_bar").read_text(),
    ],
    ids=["a name", "a path", "a file of the system", "nothing", "a NUL", "a surrogate", "MJCF", "xacro"],
)
def test_a_text_is_neither_a_name_nor_a_path_nor_a_program(text: str) -> None:
    refused(text)


PROGRAMS = [
    "${open('%s', 'w')}",
    "${[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0](['touch', '%s'])}",
    "${(lambda: __import__('pathlib').Path('%s').touch())()}",
    "$(eval __import__('pathlib').Path('%s').touch())",
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_program_in_a_text_is_run(program: str, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    text = f'<robot {XACRO} name="{program % touched}"><link name="{program % touched}"/></robot>'
    refused(text)
    assert not touched.exists()


@pytest.mark.parametrize(
    "element", ['<xacro:include filename="%s"/>', '<xacro:property name="x" value="${xacro.load_yaml(\'%s\')}"/>']
)
def test_no_file_that_a_text_names_is_read(element: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("word: mellon")
    error = refused(f'<robot {XACRO} name="r">{element % file}<link name="a"/></robot>')
    assert "xacro" in error.problem
    assert "mellon" not in str(error)


def test_what_xacro_makes_of_a_robot_is_a_plain_text() -> None:
    text, origin = expand("five_bar")
    assert mechanism_from_urdf(text).actuated_joints == load_mechanism("five_bar").actuated_joints
    assert origin.endswith("five_bar.urdf.xacro")


# Size, depth and time

LAUGHS = (
    '<!DOCTYPE robot [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + ']><robot name="&j;"/>'
)


def test_entities_are_refused() -> None:
    assert "DOCTYPE" in refused(LAUGHS).problem
    assert "DOCTYPE" in refused('<!DOCTYPE r [<!ENTITY f SYSTEM "file:///etc/passwd">]><robot name="&f;"/>').problem
    assert root_tag(LAUGHS.replace("robot", "mujoco")) != "mujoco"


def test_long_texts_are_refused() -> None:
    assert str(LETTERS) in refused("<robot>" + " " * LETTERS + "</robot>").problem
    assert "elements" in refused("<robot>" + "<a/>" * 200_000 + "</robot>").problem
    assert "deeper" in refused("<robot>" + "<a>" * 100_000 + "</a>" * 100_000 + "</robot>").problem
    assert read_xml("<robot>" + "<a>" * (DEPTH - 1) + "</a>" * (DEPTH - 1) + "</robot>", "text").tag == "robot"


@pytest.mark.parametrize("part", ["link", "joint", "loop"])
def test_many_parts_are_refused(part: str) -> None:
    body = {
        "link": "<link name='{k}'/>",
        "joint": "<joint name='{k}' type='fixed'><parent link='a'/><child link='b'/></joint>",
        "loop": "<loop name='{k}' type='spherical'><predecessor link='a'/><successor link='b'/></loop>",
    }[part]
    text = "".join(body.format(k=k) for k in range(20_000))
    others = "<joint name='j' type='fixed'><parent link='a'/><child link='b'/></joint>" if part == "loop" else ""
    error = refused(
        f"<robot><pkm base_link='a' platform_link='b'/><link name='a'/><link name='b'/>{others}{text}</robot>"
    )
    assert part in error.problem


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('<body name="b{n}"><joint name="j{n}"/></body>', "more than 500 links"),
        ('<body name="b{n}">' + "".join(f'<joint name="j{{n}}_{k}"/>' for k in range(3)) + "</body>", "500 links"),
    ],
)
def test_bodies_of_other_formats_are_counted_before_a_tree_is_made(
    body: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("pkm_description.formats.read.tree_text")  # which takes seconds for 3,000 bodies
    bodies = "".join(body.format(n=n) for n in range(501 if "}_" not in body else 200))
    with pytest.raises(DescriptionError, match=said):
        plus_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


@pytest.mark.slow
def test_a_chain_of_as_many_links_as_are_allowed_is_answered_soon() -> None:
    count = 499
    text = "<robot><pkm base_link='l0' platform_link='l250'/>"
    text += "".join(f"<link name='l{k}'/>" for k in range(count + 1))
    text += "".join(
        f"<joint name='j{k}' type='revolute'><parent link='l{k}'/><child link='l{k + 1}'/>"
        f"<origin xyz='0.1 0 0'/><axis xyz='{k % 2} 0 {1 - k % 2}'/></joint>"
        for k in range(count)
    )
    text += f"<loop name='c' type='spherical'><predecessor link='l{count}'/><successor link='l0'/></loop>"
    text += "<ros2_control><joint name='j0'><command_interface name='effort'/></joint></ros2_control></robot>"
    started = time.perf_counter()
    with pytest.raises(DescriptionError):
        mechanism_from_urdf(text)
    assert time.perf_counter() - started < BOUNDED


def many_limbs(count: int) -> str:
    """A platform on a vertical guide that stands on so many limbs of two branches each."""
    limbs = "".join(
        f"<link name='a{k}'/><link name='c{k}'/>"
        f"<joint name='q{k}' type='revolute'><parent link='b'/><child link='a{k}'/>"
        f"<origin xyz='{0.5 + 0.01 * k} 0 0'/><axis xyz='0 1 0'/></joint>"
        f"<joint name='r{k}' type='revolute'><parent link='a{k}'/><child link='c{k}'/>"
        f"<origin xyz='0 0 1'/><axis xyz='0 1 0'/></joint>"
        f"<loop name='o{k}' type='spherical'><predecessor link='c{k}'><origin xyz='0 0 1'/></predecessor>"
        f"<successor link='p'><origin xyz='{0.5 + 0.01 * k} 0 0'/></successor></loop>"
        for k in range(count)
    )
    return (
        "<robot name='x'><link name='b'/><link name='p'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/>"
        "</inertial></link>"
        "<joint name='f' type='prismatic'><parent link='b'/><child link='p'/><axis xyz='0 0 1'/></joint>"
        f"{limbs}<pkm base_link='b' platform_link='p'><home xyz='0 0 1.5'/></pkm>"
        "<ros2_control><joint name='q0'><command_interface name='effort'/></joint></ros2_control></robot>"
    )


def test_as_many_loops_as_are_allowed_are_closed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each limb is closed without placing the joints of all others, again and again."""
    placed = 0

    def counted(joint: Joint, position: Array) -> Array:
        nonlocal placed
        placed += 1
        return child_frame(joint, position)

    monkeypatch.setattr(closure, "child_frame", counted)
    started = time.perf_counter()
    mechanism = mechanism_from_urdf(many_limbs(PARTS["loop"]))
    assert time.perf_counter() - started < BOUNDED
    assert len(mechanism.loops) == PARTS["loop"]
    assert placed < 400 * PARTS["loop"]
    assert "loops" in refused(many_limbs(PARTS["loop"] + 1)).problem


def test_what_an_error_quotes_is_cut() -> None:
    name = "x" * 1_000_000
    assert (
        "characters" in refused(f"<robot><pkm base_link='a' platform_link='b'/><link name='{name}'/></robot>").problem
    )
    wide = PLAIN.replace('base_link="', f'gravity="{name}" base_link="', 1)
    assert " ... " in refused(wide).problem


@pytest.mark.parametrize("source", ["x" * 300, "x/" * 3000, "x" * 300 + ".xacro", "\n" * 300, "a\0b"])
def test_what_can_be_no_file_is_one_error(source: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        load_mechanism(source)
    assert len(str(caught.value)) < 4000


def test_a_file_of_many_bytes_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.urdf"
    with file.open("wb") as out:
        out.truncate(5 * LETTERS)
    with pytest.raises(DescriptionError, match="bytes"):
        load_mechanism(file)
    with pytest.raises(DescriptionError, match="characters"):
        load_mechanism("<robot>" + " " * LETTERS + "</robot>")


@pytest.mark.parametrize("expression", ["9**9**9**9", "[0 for _ in range(10**12)]", "'x' * 10**9"])
def test_an_endless_expansion_ends(expression: str) -> None:
    started = time.perf_counter()
    with pytest.raises(DescriptionError) as caught:
        expand_text(f'<robot {XACRO} name="${{{expression}}}"/>', patience=0.5)
    assert time.perf_counter() - started < 0.5 + SOON
    assert "expan" in caught.value.problem


def test_a_starved_expansion_is_not_called_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = tmp_path / "late_python"
    late.write_text(f'#!/bin/sh\nsleep 1.5\nexec {sys.executable} "$@"\n', encoding="utf-8")
    late.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(late))
    assert 'name="42"' in expand_text(f'<robot {XACRO} name="${{2 * 21}}"/>', patience=1.0)


def test_many_comments_before_the_root_are_read_once() -> None:
    comments = "<!-- -->" * 200
    started = time.perf_counter()
    assert root_tag(comments + "<robot/>") == "robot"
    assert root_tag(comments + "<mujoco/>") == "mujoco"
    assert not root_tag(comments)
    assert time.perf_counter() - started < SOON


# Whatever is changed in a good text, it is a robot or one error

ODD = st.sampled_from(
    ["", " ", "0", "-1", "nan", "inf", "1e308", "-1e308", "1e-308", "0 0 0", "1e200 0 0", "1 2", "true", "base", "tip",
     "left_arm", "ü", "0x10", "1,5", "a" * 250, "${1}", "revolute", "floating", "planar", "spherical", "effort"]
)  # fmt: skip
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


def changed(text: str, draw: st.DataObject) -> str:
    """The text with up to three attributes or elements replaced, removed or doubled."""
    root = ET.fromstring(text)
    for _ in range(draw.draw(st.integers(1, 3))):
        elements = list(root.iter())
        element = elements[draw.draw(st.integers(0, len(elements) - 1))]
        kind = draw.draw(st.sampled_from(["value", "value", "value", "drop", "remove", "double", "text"]))
        if kind in ("value", "drop") and element.attrib:
            name = draw.draw(st.sampled_from(sorted(element.attrib)))
            if kind == "drop":
                del element.attrib[name]
            else:
                element.set(name, draw.draw(ODD))
        elif kind == "text":
            element.text = draw.draw(ODD)
        elif kind in ("remove", "double") and len(element):
            child = element[draw.draw(st.integers(0, len(element) - 1))]
            if kind == "remove":
                element.remove(child)
            else:
                element.append(child)
    return ET.tostring(root, encoding="unicode")


PLAIN = expand("five_bar")[0]


@QUIET
@given(st.data())
def test_a_changed_description_is_a_robot_or_one_error(data: st.DataObject) -> None:
    text = changed(PLAIN, data)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with contextlib.suppress(DescriptionError):
            mechanism_from_urdf(text)
    assert time.perf_counter() - started < BOUNDED


MUJOCO = export_mjcf(load_mechanism("five_bar"))


@QUIET
@given(st.data())
def test_a_changed_model_of_mujoco_is_a_description_or_one_error(data: st.DataObject) -> None:
    text = changed(MUJOCO, data)
    with contextlib.suppress(DescriptionError):
        plus_text(text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=200))
@example("<robot")
@example("<?xml version='1.0' encoding='utf-16'?><robot/>")
@example("<!---->")
def test_any_text_is_one_error(text: str) -> None:
    with pytest.raises(DescriptionError):
        mechanism_from_urdf(text)


@pytest.mark.parametrize(
    "body",
    [
        "<body name='b'>" * 5000 + "</body>" * 5000,
        "<body><joint axis='0 0 0'/></body>",
        "<body><joint damping=''/></body>",
        "<body><geom type='cylinder' size='1'/><inertial pos='0 0 0' mass='x'/></body>",
        "<body quat='0 0 0 0'/>",
    ],
)
def test_a_model_of_mujoco_that_lacks_something_is_one_error(body: str) -> None:
    text = "<mujoco><worldbody>{}</worldbody><equality>{}</equality><actuator>{}</actuator></mujoco>"
    with pytest.raises(DescriptionError):
        plus_text(text.format(body, "", ""))
    for equality, actuator in (
        ("<joint joint2='a'/>", ""),
        ("<joint joint1='a' joint2='b'/>", ""),
        ("", "<motor joint='nobody'/>"),
        ("", "<motor joint='nobody' gear=''/>"),
    ):
        with pytest.raises(DescriptionError):
            plus_text(text.format("<body name='b'><joint name='b'/></body>", equality, actuator), {"platform": "b"})
