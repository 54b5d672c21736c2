# SPDX-License-Identifier: Apache-2.0
"""Who may command from the page, and that nothing else of what a browser sends has an effect."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

viser = pytest.importorskip("viser")

from websockets.sync.client import connect  # noqa: E402

from pkm_control.operator_interface import Answer  # noqa: E402
from pkm_viewer.jog_space import JogSpace  # noqa: E402
from pkm_viewer.operations import Readings  # noqa: E402
from pkm_viewer.page_server import (  # noqa: E402
    free_port,
    is_admitted,
    may_operate,
)
from pkm_viewer.panels.controls import DISABLE, EMERGENCY_STOP, ENABLE, RESET  # noqa: E402
from pkm_viewer.viewer import RobotViewer  # noqa: E402

CAMERA: dict[str, Any] = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [1.0, 0.0, 0.0],
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
    "fov": 0.8,
    "near": 0.01,
    "far": 100.0,
    "image_height": 800,
    "image_width": 640,
}
GIZMO = {
    "type": "TransformControlsUpdateMessage",
    "name": "/jog/move",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [0.0, 0.0, -0.8],
    "owner": "0",
}


@pytest.mark.parametrize(
    ("policy", "remote", "local", "may"),
    [
        ("local", "127.0.0.1", "127.0.0.1", True),
        ("local", "127.3.2.1", "127.0.0.1", True),
        ("local", "::1", "::1", True),
        ("local", "::ffff:127.0.0.1", "::ffff:127.0.0.1", True),
        ("local", "192.168.1.7", "192.168.1.7", True),  # this computer, by its other address
        ("local", "192.168.1.8", "192.168.1.7", False),
        ("local", "::ffff:192.168.1.8", "::ffff:192.168.1.7", False),
        ("local", "fe80::2%eth0", "fe80::1%eth0", False),
        ("local", "", "", False),
        ("local", "localhost", "localhost", False),  # a name is no address
        ("everyone", "192.168.1.8", "192.168.1.7", True),
        ("nobody", "127.0.0.1", "127.0.0.1", False),
        ("", "127.0.0.1", "127.0.0.1", False),
    ],
)
def test_who_may_command(policy: str, remote: str, local: str, may: bool) -> None:
    assert may_operate(policy, remote, local) is may


class Input:
    """An input of viser, as far as it is looked at."""

    def __init__(self, value: Any, **props: Any) -> None:
        self._impl = type("State", (), {"value": value, "props": type("Props", (), props)()})()


INPUTS = {
    "slider": Input(50.0, min=0.0, max=100.0),
    "button": Input(False),
    "choice": Input("a", options=("a", "b")),
    "off": Input(1.0, min=0.0, max=2.0, disabled=True),
    "hidden": Input(False, visible=False),
    "text": Input("a text"),
}


def admitted(message: Any, operates: bool = True) -> bool:
    return is_admitted(msgspec.msgpack.encode(message), operates, INPUTS.get)


def update(number: Any, updates: Any) -> dict[str, Any]:
    return {"type": "GuiUpdateMessage", "uuid": number, "updates": updates}


def test_everybody_may_look_around() -> None:
    assert admitted(CAMERA, operates=False)
    for field in CAMERA:
        assert not admitted({name: value for name, value in CAMERA.items() if name != field}, operates=False)
    for nonsense in ("x", None, [], [1.0], ["a"] * 4, [1.0] * 5, float("nan"), [float("inf")] * 4, 1e300, True, {}):
        assert not admitted({**CAMERA, "wxyz": nonsense})
        assert not admitted({**CAMERA, "other": nonsense})


def test_only_who_may_command_gives_values_that_an_input_can_have() -> None:
    good = [update("slider", {"value": 40.0}), update("slider", {"value": 40}), update("choice", {"value": "b"})]
    good += [update("button", {"value": True}), GIZMO]
    for message in good:
        assert admitted(message)
        assert not admitted(message, operates=False)
    for value in (-1.0, 101, float("nan"), float("inf"), "40", None, [1], True, 1e308):
        assert not admitted(update("slider", {"value": value}))
    for value in ("c", 1, None, ["a"], "a" * 3000):
        assert not admitted(update("choice", {"value": value}))
    for value in ("yes", 1, None):
        assert not admitted(update("button", {"value": value}))
    assert not admitted(update("off", {"value": 1.5}))
    assert not admitted(update("hidden", {"value": True}))
    assert not admitted(update("text", {"value": "<script>"}))  # there is none on the page
    assert not admitted(update("nobody's", {"value": 1.0}))


def test_only_who_may_command_gives_commands_by_a_key() -> None:
    commands = {"stop": SimpleNamespace(disabled=False), "off": SimpleNamespace(disabled=True)}

    def taken(message: Any, operates: bool = True) -> bool:
        return is_admitted(msgspec.msgpack.encode(message), operates, INPUTS.get, commands.get)

    stop = {"type": "CommandTriggerMessage", "uuid": "stop"}
    assert taken(stop)
    assert not taken(stop, operates=False)
    for wrong in ({"uuid": "off"}, {"uuid": "slider"}, {"uuid": ["stop"]}, {"uuid": None}, {"value": 1}):
        assert not taken({**stop, **wrong})


@pytest.mark.parametrize(
    "message",
    [
        update("slider", {"props": {"min": -1e9}}),
        update("slider", {"value": 1.0, "removed": True}),
        update("slider", {"update_cb": []}),
        update("slider", {}),
        update("slider", []),
        update(["slider"], {"value": 1.0}),
        {**update("slider", {"value": 1.0}), "excluded_self_client": 3},
        {**GIZMO, "position": [0.0, 0.0, float("nan")]},
        {**GIZMO, "position": [0.0, 0.0]},
        {**GIZMO, "name": 7},
        {"type": "ShareUrlRequest"},
        {"type": "FileTransferStartUpload", "source_component_uuid": "slider"},
        {"type": "GuiFormDirtyMessage", "uuid": "slider"},
        {"type": "RemoveSceneNodeMessage", "name": "/robot"},
        {"type": ["GuiUpdateMessage"]},
        {"type": None},
        {},
        [],
        "text",
        7,
        None,
    ],
    ids=str,
)
def test_all_else_is_dropped(message: Any) -> None:
    assert not admitted(message)


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x91" * 3000, b"\x81" * 100, b"x" * 100_000])
def test_what_cannot_be_read_is_dropped(raw: bytes) -> None:
    assert not is_admitted(raw, True, INPUTS.get)


# The same with a server


class Robot:
    """Notes what it is asked."""

    motions = ("auto",)

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments)) or Answer(True)


class Browser:
    """Speaks to a page as a browser does, and keeps what it is sent."""

    def __init__(self, viewer: RobotViewer) -> None:
        address = viewer.url.replace("http", "ws")
        self.socket = connect(address, origin=viewer.url, subprotocols=[f"viser-v{viser.__version__}"], max_size=None)
        self.send(CAMERA)

    def send(self, message: Any) -> None:
        self.socket.send(msgspec.msgpack.encode(message))


def until(condition: Any, patience: float = 30.0) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(params=["local", "nobody"])
def served(
    request: pytest.FixtureRequest, mechanism: Any, kinematics: Any
) -> Iterator[tuple[RobotViewer, Robot, bool]]:
    robot = Robot()
    joints = dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True))
    viewer = RobotViewer(mechanism, free_port("127.0.0.1", 8700), joints, operate=request.param)
    viewer.operate(robot, JogSpace(kinematics))
    yield viewer, robot, request.param == "local"
    viewer.close()


def test_a_browser_gets_controls_only_where_it_may_command(served: tuple[RobotViewer, Robot, bool]) -> None:
    viewer, robot, may = served
    browser = Browser(viewer)
    until(viewer.server.get_clients)
    (client,) = viewer.server.get_clients().values()
    assert viewer.server.may_operate(client.client_id) is may
    if may:
        until(viewer._panels)
    inputs = client.gui._gui_input_handle_from_uuid
    assert bool(inputs) is may

    def texts() -> list[str]:
        shown = [one for one in client.gui._container_handle_from_uuid["root"]._children.values() if one.visible]
        return [one.content for one in shown]

    if not may:
        until(texts)  # in a thread of its own, after the browser is listed
        assert ["may watch" in text for text in texts()] == [True]
    assert not viewer.server.gui._gui_input_handle_from_uuid  # nothing that is everybody's can be changed
    before = viewer._joints.copy()
    browser.send(GIZMO)
    for number in list(inputs):
        browser.send(update(number, {"removed": True}))
    if may:
        stop = next(one for one in inputs.values() if getattr(one, "label", "") == "Stop")
        browser.send(update(stop._impl.uuid, {"value": True}))
        until(lambda: ("stop",) in robot.calls)
    else:
        browser.socket.send(b"\x00 no message")
        browser.send({"type": "RemoveSceneNodeMessage", "name": "/robot"})
        browser.send({**CAMERA, "position": [7.0, 7.0, 7.0]})  # what comes last was read after all the others
        until(lambda: np.allclose(client.camera.position, 7.0))
        assert robot.calls == []
    assert all(not one._impl.removed for one in inputs.values())
    np.testing.assert_array_equal(viewer._joints, before)


class Stuck(Robot):
    """A robot whose answers do not come, but to an emergency stop, which asks for none."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: Any) -> Answer:
            self.calls.append(name)
            if name != "emergency_stop_at_once":
                self.free.wait(60.0)
            return Answer(True)

        return ask


@pytest.mark.parametrize("way", ["button", "key"])
def test_an_emergency_stop_waits_for_no_other_answer(way: str, mechanism: Any, kinematics: Any) -> None:
    """More requests hang than viser has threads; before the controls that take kernels are there, as well."""
    robot = Stuck()
    viewer = RobotViewer(mechanism, free_port("127.0.0.1", 8700), operate="local")
    try:
        viewer.attend(robot)
        browser = Browser(viewer)
        until(lambda: viewer._power)
        (client,) = viewer.server.get_clients().values()
        inputs = {one.label: number for number, one in client.gui._gui_input_handle_from_uuid.items()}
        assert list(inputs) == [EMERGENCY_STOP, ENABLE, DISABLE, RESET]
        viewer.show(Readings(machine="inactive"))
        for _ in range(40):
            browser.send(update(inputs[ENABLE], {"value": True}))
        until(lambda: robot.calls.count("enable") >= 8 and client.gui._thread_executor._work_queue.qsize() > 0)
        (key,) = client.gui._command_handle_from_uuid
        stop = update(inputs[EMERGENCY_STOP], {"value": True})
        browser.send(stop if way == "button" else {"type": "CommandTriggerMessage", "uuid": key})
        until(lambda: "emergency_stop_at_once" in robot.calls, 5.0)
    finally:
        robot.free.set()
        viewer.close()


def test_what_makes_sense_for_the_machine_is_offered(mechanism: Any) -> None:
    viewer = RobotViewer(mechanism, free_port("127.0.0.1", 8700), operate="local")
    try:
        viewer.attend(Robot())
        browser = Browser(viewer)
        until(lambda: viewer._power)
        (client,) = viewer.server.get_clients().values()
        for state, offered in (
            ("", []),
            ("unconfigured", [ENABLE]),
            ("inactive", [ENABLE]),
            ("active", [DISABLE]),
            ("fault", [RESET]),
        ):
            viewer._next_texts = 0.0
            viewer.show(Readings(machine=state))
            shown = [one.label for one in client.gui._gui_input_handle_from_uuid.values() if one.visible]
            assert shown == [EMERGENCY_STOP, *offered]
            assert state in viewer.status.content
        browser.socket.close()
    finally:
        viewer.close()


def test_a_client_that_is_none_may_nothing(served: tuple[RobotViewer, Robot, bool]) -> None:
    viewer = served[0]
    assert not viewer.server.may_operate(None)
    assert not viewer.server.may_operate(12345)
