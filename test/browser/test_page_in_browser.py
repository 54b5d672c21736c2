# SPDX-License-Identifier: Apache-2.0
"""The page as people see and use it, in a real browser with software rendering, for robots of every kind.

The robot behind it is one that jumps to where it is sent; `test/ros/test_page_on_robot.py` is the whole system.
"""

from __future__ import annotations

import colorsys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.ndimage import binary_opening

from pkm_analysis.layer_file import Sheet, write_layer
from pkm_description import load_mechanism
from pkm_description.urdf.visuals import visuals_of
from pkm_kinematics import Kinematics
from pkm_viewer.jog_space import Coordinate
from pkm_viewer.operations import Motion
from pkm_viewer.panels.controls import EMERGENCY_STOP, LOST
from pkm_viewer.panels.jog_panel import handle_ends
from test.conftest import VARIED

from .conftest import DESKTOP, FOLDED, PHONE, FakeRobot, Page, started_chromium
from .page_driver import SLOW

pytestmark = pytest.mark.slow  # a browser with software rendering beside other tests takes its time

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ROBOTS = (  # from a hexapod of 15 cm to a cable robot of 4 m
    *VARIED,
    "wrist_3ups_s",
    "delta_rr",
    str(EXAMPLES / "hobby_hexapod.urdf.xacro"),
)
FOLD = (DESKTOP[0] - 12, 7)  # where the panel with the controls is folded, and unfolded again
PANEL_BUTTON = """(() => {
  const one = [...document.querySelectorAll('button')].find(
    e => e.textContent.trim() === 'Emergency stop' && e.id !== 'emergency-stop');
  one.scrollIntoView({block: 'center'});
  const box = one.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
SHEET = np.s_[round(0.4 * PHONE[1]) :, 120:]  # of the phone's page, where the controls are
GREEN, RED = "rgb(46, 125, 50)", "rgb(198, 40, 40)"  # of bars
MAGENTA = np.array((230, 0, 230, 255), dtype=np.uint8)  # which no robot has
_HUE = 0.07  # of a turn: how far the light may shift a colour


@pytest.fixture(scope="module", params=ROBOTS, ids=lambda robot: Path(robot).name.partition(".")[0])
def page(request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page of each robot in turn, in a browser of its own: one keeps the pictures of pages that it has left."""
    with started_chromium() as browser:
        robot = FakeRobot(Kinematics(load_mechanism(request.param)))
        browser.size(*DESKTOP)
        yield Page(browser, robot)
        robot.viewer.close()


def robot_in(page: Page) -> tuple[np.ndarray, np.ndarray]:
    """The picture, and where in it the robot is seen: what changes when the robot is hidden, and back when it is not.

    viser lowers the resolution while it is slow, and raises it later: then every line in the picture changes, and it is
    looked at again.
    """
    frames = page.robot.viewer.scene.frames.values()

    def differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.asarray(np.abs(one.astype(int) - other).max(axis=2) > 12)

    for _ in range(8):
        page.robot.step()
        with_robot = page.still()
        for frame in frames:
            frame.visible = False
        without = page.still()
        for frame in frames:
            frame.visible = True
        again = page.still()
        if differ(with_robot, again).mean() < 1e-3:
            return again, binary_opening(differ(again, without), np.ones((3, 3)))
    raise AssertionError("the picture does not come to rest")


def hues(colours: np.ndarray) -> np.ndarray:
    """Hues (n,), 0 to 1, of colours (n, 3), 0 to 255; NaN of those that have hardly any."""
    found = [colorsys.rgb_to_hsv(*(colour / 255.0)) for colour in colours]
    return np.array([hue if saturation > 0.35 and value > 0.2 else np.nan for hue, saturation, value in found])


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_robot_is_seen_whole_by_its_colours(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    page.tick("Handles in the picture")
    picture, seen = robot_in(page)
    if size == PHONE:
        seen[SHEET] = False  # its scroll bar comes and goes
    page.tick("Handles in the picture")
    height, width, _ = picture.shape
    assert (width, height) == size
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    left, top, right, bottom = page.canvas()
    assert 0.004 < seen.sum() / ((right - left) * (bottom - top)) < 0.7
    assert max(np.ptp(rows) / (bottom - top), np.ptp(columns) / (right - left)) > 0.25  # not a spot somewhere
    assert columns[0] > max(left, 0)  # nothing is cut off
    assert columns[-1] < min(right, width) - 1
    assert rows[0] > max(top, 0)
    wanted = {tuple(round(255 * c) for c in visual.colour[:3]) for visual in visuals_of(page.robot.mechanism)[0]}
    bright = hues(np.array(sorted(wanted), dtype=float))
    shown = hues(picture[seen][:: max(1, seen.sum() // 4000)].astype(float))
    for hue in bright[np.isfinite(bright)]:
        apart = np.abs(shown - hue)
        assert np.nanmin(np.minimum(apart, 1.0 - apart)) < _HUE, f"no part of hue {hue:.2f} is seen"
    assert np.isfinite(shown).mean() > 0.02  # it is not grey on grey


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_handles_are_within_the_picture(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    page.robot.go_home()
    left, top, right, bottom = page.canvas()
    lowest = SHEET[0].start if size == PHONE else bottom
    ends = handle_ends(page.robot.space, page.robot.viewer.scene.size)
    assert len(ends)
    for end in ends:
        x, y = page.seen_at(end)
        assert left < x < right
        assert top < y < lowest


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_bars_and_plots_show_what_is_measured(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    robot = page.robot
    robot.go_home()
    names = robot.kinematics.actuated_names
    if size == PHONE:
        page.press("Measured", "[role=button]")  # it is folded there
    robot.wait(lambda: "Distance to singularities" in page.text())
    robot.wait(lambda: all(page.text().count(name) >= 2 for name in names))  # its position and its effort
    bars = """[...document.querySelectorAll('[title^="at most"]')].map(
      e => getComputedStyle(e.children[1].children[0]).backgroundColor + e.children[1].children[0].style.width)"""
    limited = int(np.isfinite(robot.limits).sum())
    for share, colour in ((0.3, GREEN), (0.99, RED)):
        robot.effort_share = share

        def shown(share: float = share, colour: str = colour) -> bool:
            rows = page.browser.run(bars)
            return len(rows) == limited and set(rows) == {f"{colour}{100 * share:.0f}%"}

        robot.wait(shown)
    robot.effort_share = None
    for title in ("Efforts [", "Tracking error ["):
        drawn = f"""(() => {{
          const plot = [...document.querySelectorAll('.uplot')].find(
            e => e.querySelector('.u-title')?.textContent.startsWith({title!r}));
          if (!plot) return null;
          plot.scrollIntoView({{block: 'center'}});
          const box = plot.getBoundingClientRect(), canvas = plot.querySelector('canvas');
          if (box.width < 100 || box.left < -1 || box.right > innerWidth + 1 || !canvas.width) return null;
          const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
          return data.reduce((sum, value, k) => (sum * 31 + value) % 1000003, 7);
        }})()"""
        before = robot.wait(lambda drawn=drawn: page.browser.run(drawn))
        robot.wait(lambda drawn=drawn, before=before: page.browser.run(drawn) not in (None, before))  # it moves on
    if size == PHONE:
        page.press("Measured", "[role=button]")
        robot.wait(lambda: "Distance to singularities" not in page.text())


def test_nothing_runs_over_on_a_phone(page: Page) -> None:
    page.resize(PHONE)
    page.robot.wait(lambda: page.find("Stop", "button"))
    assert page.browser.run("document.documentElement.scrollWidth") <= PHONE[0]
    outside = """[...document.querySelectorAll('button, input')].filter(e => {
      const box = e.getBoundingClientRect();
      return box.width > 0 && (box.left < -1 || box.right > innerWidth + 1);
    }).length"""
    assert page.browser.run(outside) == 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_slider_moves_its_coordinate(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    robot, space = page.robot, page.robot.space
    parasitic = not robot.kinematics.constant_space
    for one in space.independent:
        robot.go_home()
        at = one.home + 0.3 * (one.high - one.home)
        scale, unit = (1e3, "mm") if one.slides else (180.0 / np.pi, "deg")
        page.type(f"{one.name.removeprefix('platform_')} [{unit}]", f"{scale * at:.6g}")
        others = [other.index for other in space.independent if other is not one]
        home = np.array([other.home for other in space.all])
        tolerance = 0.3 * (at - one.home) if parasitic else 0.01 * (one.high - one.low)

        def there(one: Coordinate = one, at: float = at, tolerance: float = tolerance) -> bool:
            return bool(abs(space.coordinates(robot.pose, robot.joints)[one.index] - at) <= tolerance)

        robot.wait(there)
        reached = space.coordinates(robot.pose, robot.joints)
        if not parasitic:
            np.testing.assert_allclose(reached[others], home[others], atol=1e-9)


def test_the_picture_moves_where_the_robot_is(page: Page) -> None:
    page.resize(DESKTOP)
    robot = page.robot
    robot.go_home()
    before, where = robot_in(page)
    one = max(robot.space.independent, key=lambda c: c.high - c.low)
    coordinates = np.array([c.home for c in robot.space.all])
    coordinates[one.index] += 0.35 * (one.high - one.home)
    target = robot.space.target(coordinates, robot.joints)
    assert not target.problem
    robot.jog_to(target.pose)
    robot.step()
    after = page.still()
    left, top, right, bottom = page.canvas()
    free = np.zeros(where.shape, dtype=bool)
    free[top:bottom, left:right] = True
    changed = (np.abs(after.astype(int) - before).max(axis=2) > 12) & free
    assert changed.sum() > 0.03 * where.sum()
    rows, columns = (np.flatnonzero(where.any(axis=axis)) for axis in (1, 0))
    around = np.zeros_like(where)
    margin = 150
    around[max(rows[0] - margin, 0) : rows[-1] + margin, max(columns[0] - margin, 0) : columns[-1] + margin] = True
    assert changed[around].sum() > 0.9 * changed.sum()


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_control_does_what_it_says(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    robot = page.robot
    robot.go_home()
    robot.calls.clear()
    page.choose("Motion", "circle")
    page.type("Cycles", "7")
    time.sleep(0.5)  # until what was typed is sent
    page.press("Start")
    robot.wait(lambda: robot.last("play"))
    assert robot.last("play") == ("play", "circle", 7)
    robot.wait(lambda: "play is done" in page.text() and "tracking" in page.text())
    page.press("Pause")
    robot.wait(lambda: robot.last("pause") and "paused" in page.text())
    page.press("Resume")
    robot.wait(lambda: robot.last("resume"))
    page.type("Speed [%]", "40")
    robot.wait(lambda: robot.last("speed") == ("speed", pytest.approx(0.4)))
    robot.wait(lambda: "40 %" in page.text())
    robot.speed = 1.0  # somebody else sets it back
    robot.wait(lambda: "100 %" in page.text())
    page.press("Stop")
    robot.wait(lambda: robot.last("stop"))
    robot.mode = "STOPPED"
    page.press("Recover")
    robot.wait(lambda: robot.last("recover"))
    robot.wait(lambda: not page.find("Recover", "button"))


def test_the_emergency_stop_says_when_nobody_hears_it(page: Page) -> None:
    text = "document.getElementById('emergency-stop')?.textContent"
    page.robot.wait(lambda: page.browser.run(text) == EMERGENCY_STOP)
    until = time.monotonic() + SLOW
    while page.browser.run(text) != LOST:  # the robot's process does nothing
        assert time.monotonic() < until
        time.sleep(0.1)
    page.robot.wait(lambda: page.browser.run(text) == EMERGENCY_STOP)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_emergency_stop_is_always_in_view(page: Page, size: tuple[int, int]) -> None:
    """Over the picture, however far the panel is scrolled or folded; and by the key Escape."""
    page.resize(size)
    robot = page.robot
    robot.machine = "active"
    robot.wait(lambda: page.find("Disable drives", "button"))
    at = """(() => {
      const one = document.getElementById('emergency-stop'), box = one.getBoundingClientRect();
      const x = box.x + box.width / 2, y = box.y + box.height / 2;
      return document.elementFromPoint(x, y) === one ? [x, y] : null;
    })()"""
    left, top, right, bottom = page.canvas()
    for control in ("Disable drives", "Start"):
        page.find(control, "button")  # scrolls there
        x, y = page.browser.run(at)
        assert left < x < right
        assert top < y < bottom

    def reset() -> None:
        robot.wait(lambda: robot.last("emergency stop"))
        robot.wait(lambda: "fault" in page.text() and page.find("Reset", "button"))
        assert not page.find("Enable drives", "button")
        page.press("Reset")
        robot.wait(lambda: robot.last("reset") and "inactive" in page.text())
        page.press("Enable drives")
        robot.wait(lambda: robot.last("enable"))
        robot.wait(lambda: page.find("Disable drives", "button"))
        robot.calls.clear()

    robot.calls.clear()
    page.browser.click(x, y)
    reset()
    page.browser.key("Escape")
    reset()
    page.browser.click(*page.browser.run(PANEL_BUTTON))
    reset()
    page.robot.wait(lambda: page._clicked("Motion", "input"))
    page.browser.key("Escape")
    reset()
    page.press("Disable drives")
    robot.wait(lambda: robot.last("disable") and page.find("Enable drives", "button"))
    robot.machine = "active"
    if size == DESKTOP:
        page.browser.click(*FOLD)
        robot.wait(lambda: page.find("Start", "button") is None)
        robot.calls.clear()
        page.browser.click(*page.browser.run(at))
        robot.wait(lambda: robot.last("emergency stop"))
        robot.machine = "active"
        page.browser.click(*FOLD)
        robot.wait(lambda: page.find("Start", "button"))


def test_a_phone_shows_the_robot_until_the_controls_are_asked_for(page: Page) -> None:
    with started_chromium() as phone:
        phone.size(*PHONE)
        other = Page(phone, page.robot)
        page.robot.wait(lambda: 0 < other.sheet_height() < FOLDED)
        assert other.find("Start", "button") is None
        assert other.browser.run("document.getElementById('emergency-stop') !== null")
        other.tap_head_of_sheet()
        page.robot.wait(lambda: other.sheet_height() > 2 * FOLDED)
        assert other.find("Start", "button")


def test_what_runs_is_shown_where_it_could_be_chosen(page: Page) -> None:
    page.resize(DESKTOP)
    robot = page.robot
    robot.go_home()
    field = "[...document.querySelectorAll('input')].map(e => e.value).join('|')"
    robot.mode, robot.motion = "TRACKING", Motion("tilts", 23, "tilts.csv", 1)
    robot.wait(lambda: "tilts.csv, 23 cycles" in page.text())
    robot.wait(lambda: "tilts|" in page.browser.run(field) and "23" in page.browser.run(field).split("|"))
    page.choose("Motion", "circle")
    time.sleep(1.0)
    robot.step()
    assert "circle|" in page.browser.run(field)  # what somebody wants next is left alone
    panels = robot.viewer._panels()
    assert panels
    for _, jog in panels:
        robot.wait(lambda jog=jog: not any(gizmo.visible for gizmo in jog._gizmos))  # of no use while a motion runs
    robot.go_home()
    for _, jog in panels:
        assert all(gizmo.visible for gizmo in jog._gizmos)


def test_a_working_mode_is_asked_for_and_the_refusal_is_told(page: Page) -> None:
    page.resize(DESKTOP)
    robot = page.robot
    robot.go_home()
    robot.viewer.show_modes(["+", "-"], "+")
    page.choose("Working mode", "-")
    robot.wait(lambda: robot.last("mode"))
    assert robot.last("mode") == ("mode", "-")
    robot.wait(lambda: "every way to - crosses a singularity" in page.text())
    robot.viewer.show_modes(["+"], "+")
    robot.wait(lambda: not page.find("Working mode", "input"))


def test_an_arrow_in_the_picture_moves_the_platform_along_it(page: Page) -> None:
    robot, space = page.robot, page.robot.space
    page.resize(DESKTOP)
    robot.go_home()
    axes = np.flatnonzero(space.translations)
    if not axes.size:
        assert space.rotations == (True, True, True)  # it has rings instead
        return
    page.still()
    before = len(robot.calls)
    axis = np.eye(3)[axes[0]]
    scale = 0.16 * robot.viewer.scene.size
    start, end = (page.seen_at(robot.pose[:3] + share * scale * axis) for share in (0.7, 1.0))
    page.browser.drag(start, end)
    robot.wait(lambda: len(robot.calls) > before)
    moved = robot.pose[:3] - robot.kinematics.home[:3]
    assert moved @ axis > 1e-3 * scale
    assert np.linalg.norm(moved - (moved @ axis) * axis) < 1e-6 + 0.3 * abs(moved @ axis) * (not robot.rigid)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_recording_is_downloaded(page: Page, size: tuple[int, int]) -> None:
    page.resize(size)
    robot = page.robot
    robot.go_home()
    page.open_folder("Record", "Download")
    page.press("Begin")
    robot.wait(lambda: len(robot.viewer.capture) > 5)
    page.press("End")
    robot.wait(lambda: not robot.viewer.capture.running)
    page.press("Download")
    file = robot.wait(lambda: next(page.browser.downloads.glob("*.csv"), None))  # a second one may get a number
    assert file.name.startswith(robot.mechanism.name)
    time.sleep(0.3)
    rows = file.read_text().splitlines()
    file.unlink()
    assert rows[0].startswith("time [s],mode,x [m]")
    assert len(rows) == len(robot.viewer.capture) + 1
    assert all(len(row.split(",")) == len(rows[0].split(",")) for row in rows)


def test_two_pages_at_once_say_which_one_commands(page: Page) -> None:
    """Both show the robot and may command; each says which it is, and where the last command came from."""
    page.resize(DESKTOP)
    robot = page.robot
    robot.go_home()
    assert "This is page" not in page.text()
    with started_chromium() as other_browser:
        other_browser.size(*DESKTOP)
        other = Page(other_browser, robot)
        robot.wait(lambda: "This is page 1 of 2, of which all may command." in page.text())
        robot.wait(lambda: "This is page 2 of 2, of which all may command." in other.text())
        page.press("Start")
        robot.wait(lambda: all("tracking" in one.text() and "play is done" in one.text() for one in (page, other)))
        robot.wait(lambda: "The last command came from this one." in page.text())
        robot.wait(lambda: "The last command came from page 1." in other.text())
        other.press("Stop")
        robot.wait(lambda: robot.last("stop") and all("holding" in one.text() for one in (page, other)))
        robot.wait(lambda: "The last command came from page 2." in page.text())
    robot.wait(lambda: "This is page" not in page.text())


def test_the_page_has_reported_no_error(page: Page) -> None:
    bad = [
        event
        for event in page.browser.events
        if event["method"] == "Runtime.exceptionThrown"
        or (event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
    ]
    assert not bad


def test_a_layer_is_seen_and_switched(page: Page, tmp_path: Path) -> None:
    """A ball about the platform, of a colour that no robot has, in a folder of its own."""
    home = np.array(page.robot.kinematics.home[:3])
    ball = trimesh.creation.icosphere(2, 0.1 * page.robot.viewer.scene.size)
    sheet = Sheet(
        "border", np.asarray(ball.vertices) + home, np.asarray(ball.faces), np.tile(MAGENTA, (len(ball.vertices), 1))
    )

    def coloured() -> float:
        shown = hues(page.still()[::3, ::3].reshape(-1, 3).astype(float))
        return float((np.abs(shown - 5.0 / 6.0) < _HUE).mean())

    page.resize(DESKTOP)
    page.robot.go_home()
    before = coloured()  # a ring of the handles may come near to that colour
    page.robot.viewer.show_layers([write_layer(tmp_path / "ball.glb", "workspace", "1", "base", [sheet])])
    page.open_folder("Layers", "workspace: border", "input[type=checkbox]")

    page.robot.wait(lambda: coloured() > before + 0.002)
    page.tick("workspace: border")
    page.robot.wait(lambda: coloured() < before + 2e-4)
    page.tick("workspace: border")
    page.robot.wait(lambda: coloured() > before + 0.002)
    page.tick("workspace: border")  # for the tests that follow
    page.robot.wait(lambda: coloured() < before + 2e-4)
