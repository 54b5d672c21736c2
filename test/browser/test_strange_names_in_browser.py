# SPDX-License-Identifier: Apache-2.0
"""A robot, motions, modes and answers whose names are scripts: the browser shows them, and runs none."""

from __future__ import annotations

import html

import pytest

from pkm_control.operator_interface import Answer
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from pkm_viewer.operations import Motion

from .conftest import DESKTOP, FakeRobot, Page, started_chromium

pytestmark = pytest.mark.slow  # a browser with software rendering beside other tests takes its time

STRANGE = "</style></script><script>window.owned=1</script><img src=x onerror=window.owned=1>"


class StrangeRobot(FakeRobot):
    """A robot that answers in scripts."""

    motions = (STRANGE, "auto")

    def stop(self) -> Answer:
        return Answer(False, STRANGE)


def test_names_that_are_scripts_are_shown_and_not_run() -> None:
    mechanism = load_mechanism("five_bar")
    text, quoted = mechanism.urdf, html.escape(STRANGE)
    names = {mechanism.name, *(joint.name for joint in mechanism.joints), *(link.name for link in mechanism.links)}
    for name in sorted(names, key=len, reverse=True):
        for key in ("name", "link", "joint", "base_link", "platform_link", "predecessor", "successor"):
            text = text.replace(f'{key}="{name}"', f'{key}="{name}{quoted}"')
    with started_chromium() as browser:
        robot = StrangeRobot(Kinematics(load_mechanism(text)))
        robot.motion, robot.mode = Motion(STRANGE, 1, STRANGE, 1), STRANGE
        browser.size(*DESKTOP)
        page = Page(browser, robot)
        robot.viewer.status.warn(STRANGE)
        page.press("Stop")
        robot.wait(lambda: browser.run("document.body.innerText.split('window.owned=1').length > 4"))
        assert browser.run("window.owned === undefined")
        assert browser.run("document.querySelectorAll('img[src=x]').length") == 0
        robot.viewer.close()
