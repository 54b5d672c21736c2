# SPDX-License-Identifier: Apache-2.0
"""The browser page, as far as it can be checked without a browser: it is served, and links are where the solver says.

Where the links are is compared with the loop closures of the description: the ends of a loop must meet in the picture.
"""

import socket
import urllib.error
import urllib.request
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

viser = pytest.importorskip("viser")

import trimesh  # noqa: E402
from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

from pkm_control.operator_interface import Answer  # noqa: E402
from pkm_description import PkmError, load_mechanism, mechanism_from_urdf  # noqa: E402
from pkm_description.load import expand  # noqa: E402
from pkm_description.urdf.visuals import mesh_path, visuals_of  # noqa: E402
from pkm_kinematics import Kinematics  # noqa: E402
from pkm_viewer import page_server, viewer_process  # noqa: E402
from pkm_viewer.fitting import view_of  # noqa: E402
from pkm_viewer.jog_space import JogSpace  # noqa: E402
from pkm_viewer.operations import Readings  # noqa: E402
from pkm_viewer.page_server import PageServer, refusal  # noqa: E402
from pkm_viewer.panels import markup  # noqa: E402
from pkm_viewer.panels.asking import PageRequests  # noqa: E402
from pkm_viewer.panels.controls import RunPanel  # noqa: E402
from pkm_viewer.panels.jog_panel import JogPanel  # noqa: E402
from pkm_viewer.panels.situation import StatusPanel  # noqa: E402
from pkm_viewer.viewer import RobotViewer  # noqa: E402
from pkm_viewer.viewer_process import ViewerProcess  # noqa: E402


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@pytest.fixture
def viewer(mechanism, kinematics):
    viewer = RobotViewer(
        mechanism, free_port(), dict(zip(kinematics.joint_names, kinematics.home_joints, strict=True)), host="127.0.0.1"
    )
    yield viewer
    viewer.close()


def drawn(viewer: RobotViewer, link: str) -> np.ndarray:
    """Where the page shows a link (4, 4)."""
    frame, pose = viewer.scene.frames[link], np.eye(4)
    pose[:3, :3] = Rotation.from_quat(np.roll(frame.wxyz, -1)).as_matrix()
    pose[:3, 3] = frame.position
    return pose


def test_the_page_is_served(viewer) -> None:
    with urllib.request.urlopen(viewer.url, timeout=10) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read(2000).lower()


def test_the_loops_are_closed_in_the_picture(viewer, mechanism, kinematics) -> None:
    pose = kinematics.home.copy()
    pose[:3] += [0.1, -0.07, 0.03]
    viewer.update(kinematics.joint_names, kinematics.inverse(pose).joints, pose)
    for loop in mechanism.loops:
        ends = [
            (drawn(viewer, link) @ frame)[:3, 3]
            for link, frame in (
                (loop.predecessor, loop.predecessor_frame),
                (loop.successor, loop.successor_frame),
            )
        ]
        np.testing.assert_allclose(ends[0], ends[1], atol=1e-6, err_msg=loop.name)
    platform = drawn(viewer, mechanism.platform_link)
    np.testing.assert_allclose(platform[:3, 3], pose[:3], atol=1e-9)


def test_arms_that_swing_out_stay_in_the_picture(viewer, mechanism, kinematics) -> None:
    """Seen with the camera that a browser gets: every corner of every link, at every place that the robot was."""
    scene, box = viewer.scene, viewer.scene._box

    def outside(pose: np.ndarray) -> float:
        viewer.update(kinematics.joint_names, kinematics.inverse(pose).joints, pose)
        points = np.vstack(
            [c @ drawn(viewer, link)[:3, :3].T + drawn(viewer, link)[:3, 3] for link, c in scene.corners.items()]
        )
        eye, middle = view_of(scene._shown(), 0.75, 1.6)
        back = (eye - middle) / np.linalg.norm(eye - middle)
        right = np.cross([0.0, 0.0, 1.0], back) / np.linalg.norm(np.cross([0.0, 0.0, 1.0], back))
        seen = (points - eye) @ np.array([right, np.cross(back, right), back]).T
        across = np.abs(seen[:, :2] / -seen[:, 2:]) / (np.tan(0.375) * np.array([1.6, 1.0]))
        return float(across.max())

    for move in ([0.3, 0.0, 0.1], [-0.3, 0.2, 0.1], [0.0, 0.0, 0.3], [0.0, -0.3, 0.0], [0.0, 0.0, -0.2]):
        pose = kinematics.home.copy()
        pose[:3] += move
        assert outside(pose) < 1.0
    assert scene._box is box  # the floor and all that is scaled by the robot's size stays
    before = len(scene._points)
    assert outside(pose) < 1.0
    assert len(scene._points) == before  # nothing grows where nothing is new


def test_nonsense_does_not_move_the_picture(viewer, kinematics) -> None:
    before = viewer._joints.copy()
    viewer.update(("limb1_arm", "no_such_joint"), np.array([np.nan, 1.0]), np.full(7, np.nan))
    np.testing.assert_array_equal(viewer._joints, before)
    viewer.show(Readings(time=1.0, error=0.001, speed=2.0, efforts=np.ones(3), reason="<script>alert(1)</script>"))
    assert "&lt;script&gt;" in viewer.status.content
    assert "<script" not in viewer.status.content
    viewer.scene.show_planned(np.zeros((1, 3)))
    viewer.scene.show_planned(np.zeros((2, 3)))


def test_the_process_serves_and_ends(mechanism, kinematics) -> None:
    names, joints = tuple(kinematics.joint_names), np.array(kinematics.home_joints)
    viewer = ViewerProcess(mechanism, names, joints, free_port(), np.zeros((2, 3)))
    try:
        assert viewer.alive
        viewer.update(joints, np.array(kinematics.home), 1.0, 0.0, 0.0, np.zeros(3))
        with urllib.request.urlopen(viewer.url, timeout=10) as answer:
            assert answer.status == 200
    finally:
        viewer.close()
    assert not viewer.alive


@pytest.mark.slow
def test_a_page_that_does_not_come_says_why(mechanism, kinematics, monkeypatch) -> None:
    names = tuple(kinematics.joint_names)
    joints = np.array(kinematics.home_joints)
    arguments = (mechanism, names, joints, free_port(), np.zeros((2, 3)))
    monkeypatch.setattr(viewer_process, "_START_TIMEOUT", 0.001)
    late = ViewerProcess(*arguments)
    assert not late.alive
    assert "not there after" in late.problem
    late.close()
    monkeypatch.setattr(viewer_process, "_START_TIMEOUT", 60.0)
    refused = ViewerProcess(*arguments[:3], 0, np.zeros((2, 3)), "no.such.host.invalid")
    assert not refused.alive
    assert refused.problem == "its process ended with code 1"
    refused.close()


# Who gets in


def listening() -> dict[int, set[str]]:
    """Addresses by port on which this process's computer listens (IPv4, in the kernel's hexadecimal)."""
    found: dict[int, set[str]] = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            address, port = fields[1].split(":")
            found.setdefault(int(port, 16), set()).add(address)
    return found


def test_the_page_listens_on_this_computer_alone(mechanism) -> None:
    viewer = RobotViewer(mechanism, free_port())
    try:
        assert viewer.url == f"http://127.0.0.1:{viewer.server.get_port()}"
        assert listening()[viewer.server.get_port()] == {"0100007F"}
    finally:
        viewer.close()


def test_the_address_of_an_open_page_is_one_that_others_reach() -> None:
    server = PageServer("0.0.0.0", free_port(), "open")
    try:
        assert server.url == f"http://{socket.gethostname()}:{server.get_port()}"
        assert listening()[server.get_port()] == {"00000000"}
    finally:
        server.stop()


PROTOCOL = f"viser-v{viser.__version__}"


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null", "https://localhost"])
def test_another_page_gets_no_connection(viewer, origin: str) -> None:
    address = viewer.url.replace("http", "ws")
    with pytest.raises(InvalidStatus, match="403"):
        connect(address, origin=origin, subprotocols=[PROTOCOL])
    with connect(address, origin=viewer.url, subprotocols=[PROTOCOL]) as own:
        assert own.recv(timeout=10)


def test_a_page_by_another_name_is_not_served(viewer) -> None:
    port = viewer.server.get_port()
    request = urllib.request.Request(viewer.url, headers={"Host": f"evil.example:{port}"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=10)
    with urllib.request.urlopen(f"http://localhost:{port}", timeout=10) as answer:
        assert answer.status == 200


def test_an_open_page_answers_to_its_own_names_and_numbers() -> None:
    for name in ("192.168.1.7:8080", "[fe80::1]:8080", "localhost:8080", f"{socket.gethostname()}:8080"):
        assert refusal({"Host": name}, "0.0.0.0") == ""
        assert refusal({"Host": name, "Origin": f"http://{name}"}, "0.0.0.0") == ""
    assert refusal({"Host": "evil.example:8080"}, "0.0.0.0")
    assert refusal({"Host": "192.168.1.7:8080"}, "127.0.0.1")
    assert refusal({}, "127.0.0.1")


def test_no_browser_can_change_a_text(viewer) -> None:
    viewer.show(Readings(reason="running"))
    assert not viewer.server.gui._gui_input_handle_from_uuid  # what viser lets clients write to
    assert viewer.server.request_share_url() is None


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.1", "a b"])
def test_an_address_that_is_none_is_one_error(host: str) -> None:
    with pytest.raises(PkmError, match="cannot listen"):
        page_server.free_port(host, 8080)


def test_a_computer_without_free_ports_is_one_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(PkmError, match="cannot listen"):
            page_server.free_port("127.0.0.1", 65536)
        assert page_server.free_port("127.0.0.1", taken.getsockname()[1]) != taken.getsockname()[1]


# What cannot be drawn

PICTURES = {
    "<visual/>": "no geometry",
    "<visual><geometry/></visual>": "no geometry",
    '<visual><geometry><mesh filename="package://pkm_control/no_such.stl"/></geometry></visual>': "is not there",
    '<visual><geometry><mesh filename="package://no_such_package/a.stl"/></geometry></visual>': "not installed",
    '<visual><geometry><mesh filename="package://pkm_control/../secret.stl"/></geometry></visual>': "is outside its",
    '<visual><geometry><mesh filename="package://../a.stl"/></geometry></visual>': "not installed",
    '<visual><geometry><mesh filename="package://pkm_control/setup.py"/></geometry></visual>': "is none of",
    '<visual><geometry><mesh filename="file:///etc/passwd"/></geometry></visual>': "not in a package",
    '<visual><geometry><mesh filename="http://localhost/a.stl"/></geometry></visual>': "not in a package",
    '<visual><geometry><mesh filename="/etc/passwd"/></geometry></visual>': "no folder",
    '<visual><geometry><mesh filename="a.stl"/></geometry></visual>': "no folder",
    "<visual><geometry><mesh/></geometry></visual>": "no folder",
    '<visual><geometry><box size="1 2"/></geometry></visual>': "2 number",
    '<visual><geometry><box size="1 2 nan"/></geometry></visual>': "not finite",
    '<visual><geometry><sphere radius="-1"/></geometry></visual>': "greater than zero",
    '<visual><geometry><cylinder radius="1"/></geometry></visual>': "length",
    "<visual><geometry><cone/></geometry></visual>": "not a URDF shape",
    '<visual><origin xyz="0"/><geometry><sphere radius="1"/></geometry></visual>': "xyz",
    '<visual><origin rpy="x"/><geometry><sphere radius="1"/></geometry></visual>': "rpy",
}


def with_visuals(*elements: str) -> str:
    return (
        expand("five_bar")[0]
        .replace("</robot>", "")
        .replace('<link name="base_link">', '<link name="base_link">' + "".join(elements), 1)
        + "</robot>"
    )


def test_what_cannot_be_drawn_is_left_out_and_said() -> None:
    whole = visuals_of(load_mechanism("five_bar"))[0]
    found, left_out = visuals_of(mechanism_from_urdf(with_visuals(*PICTURES)))
    assert len(found) == len(whole) + 1  # the text that is no mesh is found out when it is read
    assert len(left_out) == len(PICTURES) - 1
    for sentence in left_out:
        assert any(word in sentence for word in PICTURES.values()), sentence
    viewer = RobotViewer(mechanism_from_urdf(with_visuals(*PICTURES)), free_port())
    try:
        assert len(viewer.left_out) == len(PICTURES)
        assert any("is none of" in sentence for sentence in viewer.left_out)
    finally:
        viewer.close()


def test_a_colour_that_is_none_is_grey() -> None:
    sphere = '<geometry><sphere radius="1"/></geometry>'
    for colour in ('<color rgba="red"/>', '<color rgba="1 1"/>', "<color/>", ""):
        element = f'<visual>{sphere}<material name="odd">{colour}</material></visual>'
        found, left_out = visuals_of(mechanism_from_urdf(with_visuals(element)))
        assert not left_out
        assert found[0].colour == (0.6, 0.6, 0.6, 1.0)


def test_meshes_come_from_the_folder_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    trimesh.creation.box(extents=(2.0, 2.0, 2.0)).export(tmp_path / "parts" / "box.stl")
    (tmp_path / "broken.stl").write_bytes(b"\xff" * 300)
    (tmp_path / "empty.obj").write_text("")
    file = tmp_path / "robot.urdf"
    meshes = ('filename="parts/box.stl" scale="0.1 0.1 0.1"', 'filename="broken.stl"', 'filename="empty.obj"')
    out = ('filename="../robot.urdf"', f'filename="{tmp_path}/parts/box.stl"')
    file.write_text(with_visuals(*(f"<visual><geometry><mesh {m}/></geometry></visual>" for m in (*meshes, *out))))
    mechanism = load_mechanism(file)
    assert sum("is outside its" in sentence for sentence in visuals_of(mechanism)[1]) == 2
    viewer = RobotViewer(mechanism, free_port())
    try:
        assert len(viewer.left_out) == 4
        corners = viewer.scene.corners["base_link"]
        assert np.isclose(np.abs(corners), 0.1).all(axis=1).any()
    finally:
        viewer.close()
    assert mesh_path("package://pkm_control/setup.py", "").is_file()


# The list of working modes


class Handle:
    """In place of a control of the page: its value, and who hears that a person has changed it."""

    def __init__(self, value: object = None, options: tuple[str, ...] = ()) -> None:
        self.value, self.options, self.visible = value, options, True
        self.heard: list = []

    def on_update(self, function) -> None:
        self.heard.append(function)

    on_click = on_update

    def choose(self, value: str) -> None:
        self.value = value
        for function in self.heard:
            function(SimpleNamespace(client_id=1))


class Gui:
    """In place of a browser's controls, by label."""

    def __init__(self) -> None:
        self.handles: dict[str, Handle] = {}

    def __getattr__(self, kind: str):
        def add(label: str, *arguments, initial_value: object = None, **_):
            options = arguments[0] if kind == "add_dropdown" else ()
            return self.handles.setdefault(label, Handle(initial_value, options))

        return (lambda *_, **__: nullcontext()) if kind == "add_folder" else add


def test_halted_on_its_way_the_robot_can_be_sent_back_to_the_old_mode() -> None:
    asked: list[str] = []
    refused: set[str] = set()

    def change(label: str) -> Answer:
        asked.append(label)
        return Answer(label not in refused, "")

    operations = SimpleNamespace(motions=("auto",), change_working_mode=change)
    for name in ("stop", "recover", "pause", "resume", "play", "set_speed"):
        setattr(operations, name, None)
    server = SimpleNamespace(may_operate=lambda client: True)
    gui = Gui()
    panel = RunPanel(SimpleNamespace(gui=gui), PageRequests(server, operations, lambda answer: None), 1.0)
    modes = gui.handles["Working mode"]
    panel.show_modes(["++", "-+"], "++")
    modes.choose("++")
    assert asked == []  # it is there
    modes.choose("-+")
    modes.choose("++")  # halted on the way: nobody has said yet that it has arrived
    modes.choose("-+")
    assert asked == ["-+", "++", "-+"]
    refused.add("++")
    modes.choose("++")
    assert modes.value == "-+"  # still on its way there
    panel.show_modes(["++", "-+"], "-+")
    modes.choose("-+")
    assert asked == ["-+", "++", "-+", "++"]


# What is shown beside the picture


@pytest.fixture
def panels(mechanism):
    made = RobotViewer(mechanism, free_port())
    yield made
    made.close()


def test_no_efforts_are_plotted_where_positions_are_commanded(panels) -> None:
    plots = panels.plots
    for k in range(4):
        plots.take(Readings(time=0.1 * k, error=1e-3))
    plots.draw()
    assert not plots._effort_plot.visible
    np.testing.assert_allclose(plots._error_plot.data[1], 1.0)  # mm
    for k in range(4, 8):
        plots.take(Readings(time=0.1 * k, error=1e-3, efforts=np.array([1.0, 2.0, 3.0])))
    plots.draw()
    assert plots._effort_plot.visible


def test_the_attitude_of_a_robot_that_turns_is_shown(panels) -> None:
    quaternion = Rotation.from_euler("ZYX", [30.0, -10.0, 5.0], degrees=True).as_quat()
    readings = Readings(pose=np.r_[0.1, 0.2, 0.3, quaternion])
    panels.status.show(readings)
    assert "100.0  200.0  300.0" in panels.status.content
    assert "roll" not in panels.status.content  # a Delta
    turning = StatusPanel(panels.server, load_mechanism("gough_stewart"), 0.0)
    turning.show(readings)
    assert "5.00  -10.00  30.00" in turning.content


def test_an_answer_that_drives_are_off_goes_when_they_are_on(panels) -> None:
    panels.status.make_room()
    for machine in ("active", "fault", "inactive", "active"):
        if machine == "fault":
            panels.status.answer(Answer(True, "emergency stop: drives are off"))
        panels.status.show(Readings(machine=machine))
        assert ("emergency stop: drives are off" in panels.status.content) is (machine != "active")


def test_what_a_silent_machine_said_before_is_not_green(panels) -> None:
    for silence in (0.0, 4.7):
        panels.status.show(Readings(mode="TRACKING", machine="active", silence=silence))
        assert ("the drives are on" in panels.status.content) is (silence == 0.0)
        assert panels.status.content.count(markup.GREEN) == (0 if silence else 2)
    assert "5 s ago" in panels.status.content


def test_black_parts_have_shades() -> None:
    ink = '<material name="ink"><color rgba="{} 1"/></material>'
    sphere = f'<visual><geometry><sphere radius="0.1"/></geometry>{ink}</visual>'
    for colour, shown in (("0 0 0", (60, 60, 60)), ("0.1 0 0.1", (60, 34, 60)), ("0.5 0 0", (128, 0, 0))):
        viewer = RobotViewer(mechanism_from_urdf(with_visuals(sphere.format(colour))), free_port())
        try:
            meshes = [one for name, one in viewer.server.scene._handle_from_node_name.items() if name.endswith("/0")]
            assert any(tuple(getattr(one, "color", ())) == shown for one in meshes), colour
        finally:
            viewer.close()


def test_a_refused_slider_names_what_was_asked() -> None:
    told: list[Answer] = []
    kinematics = Kinematics(load_mechanism("gough_stewart"))
    space = JogSpace(kinematics)
    refusing = SimpleNamespace(jog_to=lambda pose: Answer(False, "no way"))
    requests = SimpleNamespace(admits=lambda event: True, tell=told.append, operations=refusing)
    panel = object.__new__(JogPanel)
    pitch = next(one for one in space.all if one.name == "platform_pitch")
    panel._space, panel._requests, panel._rows = space, requests, {pitch.index: pitch}
    panel._coordinates, panel._joints = np.array([one.home for one in space.all]), lambda: kinematics.home_joints
    panel._moved_slider = pitch.index, 20.0
    panel._slide()
    assert told[-1].message == "pitch 20 deg: no way"
    panel._moved_slider = pitch.index, 179.0
    panel._slide()
    assert "pitch 179 deg: " in told[-1].message
