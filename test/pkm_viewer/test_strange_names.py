# SPDX-License-Identifier: Apache-2.0
"""Names that are scripts, formulas or what steers a terminal: the page and reports show texts."""

from __future__ import annotations

import csv
import socket
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from pkm_description import Mechanism, load_mechanism
from pkm_kinematics import Kinematics
from pkm_viewer.operations import Motion, Readings

pytest.importorskip("viser", reason="viser, which shows the page, is not installed")
pytest.importorskip("matplotlib", reason="matplotlib, which draws reports, is not installed")

from dataclasses import replace

from pkm_viewer.report.page import write_page
from pkm_viewer.report.report import Report
from pkm_viewer.viewer import RobotViewer

from .test_report import made_up

STRANGE = "</style></script><script>window.owned=1</script><img src=x onerror=window.owned=1>\"'$\\frac$&amp;"
TAGS = {"script", "img", "iframe"}


class Tags(HTMLParser):
    """The elements of a page, and what is in their attributes that a browser would run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.handlers: set[str] = set()
        self.texts = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.handlers |= {name for name, _ in attrs if name.startswith("on")}

    def handle_data(self, data: str) -> None:
        self.texts += data


def strange_robot() -> Mechanism:
    """A five-bar whose names are all strange."""
    mechanism = load_mechanism("five_bar")
    text = mechanism.urdf
    quoted = STRANGE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    names = {mechanism.name, *(joint.name for joint in mechanism.joints), *(link.name for link in mechanism.links)}
    for name in sorted(names, key=len, reverse=True):
        for before in ("name", "link", "joint", "base_link", "platform_link", "predecessor", "successor"):
            text = text.replace(f'{before}="{name}"', f'{before}="{name}{quoted}"')
    return load_mechanism(text)


def test_the_panels_of_the_page_show_texts_alone() -> None:
    mechanism = strange_robot()
    assert STRANGE in mechanism.name
    assert all(STRANGE in name for name in mechanism.actuated_joints)
    k = Kinematics(mechanism)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    viewer = RobotViewer(mechanism, port, dict(zip(k.joint_names, k.home_joints.tolist(), strict=True)))
    try:
        viewer.update(k.joint_names, k.home_joints, k.home)
        n = len(k.actuated_names)
        readings = Readings(
            time=0.0, mode=STRANGE, reason=STRANGE, pose=np.array(k.home), error=0.0, rotation_error=0.0, speed=0.0,
            efforts=np.zeros(n), speed_override=1.0, distances=(1.0, 1.0, 1.0, None), units=(STRANGE,) * 4,
            limit=(STRANGE, 0.5), clearance=0.1, motion=Motion(STRANGE, 1, STRANGE, 1),
        )  # fmt: skip
        viewer.show(readings)
        viewer.status.warn(STRANGE)
        contents = [
            handle.content
            for handle in viewer.server.gui._gui_input_handle_from_uuid.values()
            if isinstance(getattr(handle, "content", None), str)
        ]
        messages = viewer.server._websock_server._broadcast_buffer.message_from_id.values()
        contents += [m.props.content for m in messages if hasattr(getattr(m, "props", None), "content")]
        told = [Tags(content) for content in contents]
        assert any(STRANGE in found.texts for found in told)
        assert not any(found.tags & TAGS or found.handlers for found in told)
    finally:
        viewer.close()


def test_the_table_of_a_report_has_a_cell_for_each_name(tmp_path: Path) -> None:
    recording = made_up()
    names = 'a b,c;"d"', "two\nlines"
    replace(recording, limits=replace(recording.limits, names=names)).save(tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {21}
    assert rows[0][-2:] == [f"velocity_{name}" for name in names]


@pytest.mark.slow
def test_the_page_of_a_report_shows_texts_alone(tmp_path: Path) -> None:
    recording = made_up()
    limits = replace(recording.limits, names=tuple(f"{name}{STRANGE}" for name in recording.limits.names))
    run = replace(recording.run, robot=STRANGE, motion=STRANGE, notes=(STRANGE,))
    recording = replace(recording, run=run, limits=limits, faults=(STRANGE,))
    report = Report.of(recording)
    files = {kind: tmp_path / f"page.{kind}" for kind in ("png", "pdf", "html")}
    write_page(recording, report, files)
    assert all(file.stat().st_size > 1000 for file in files.values())
    found = Tags(files["html"].read_text(encoding="utf-8"))
    assert not found.tags & {"script", "iframe"}
    assert not found.handlers
    assert "window.owned" in found.texts
