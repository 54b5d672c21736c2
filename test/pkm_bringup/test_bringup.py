# SPDX-License-Identifier: Apache-2.0
"""The declaration of nodes and settings, and the processes that the runner makes of it."""

from __future__ import annotations

import importlib.util
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from pkm_bringup import bringup, runner, warm_kernels
from pkm_bringup.bringup import NodeSpec
from pkm_bringup.command_line.measured import drives_warning, forget_measured, reported_fault
from pkm_bringup.runner import (
    Gate,
    ProcessGroup,
    forked,
    main,
    read_settings,
    ros_arguments,
    say_killed,
    write_parameters,
)
from pkm_bringup.start import HELD_BACK, NODES
from pkm_client import NoRobotError, Robot
from pkm_description import DescriptionError, PkmError, load_mechanism, mechanism_from_urdf, robot_names
from pkm_description.urdf import robot_cache
from pkm_dynamics.dynamics import shared_dynamics


def started(command: list[str]) -> subprocess.Popen[bytes]:
    """A process in place of a node: in a group of its own, and open to Ctrl-C even where who runs the tests is not."""

    def open_to_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=open_to_interrupts)


ALL_NODES = (*bringup.NODES, bringup.DESCRIPTION)


def test_nodes_name_settings_and_modules_that_exist() -> None:
    settings = {setting.name for setting in bringup.SETTINGS}
    for node in ALL_NODES:
        assert set(node.parameters.values()) <= settings
        assert importlib.util.find_spec(node.module) is not None


def test_launch_files_start_the_robots_that_they_name() -> None:
    for name in robot_names():
        text = (Path(__file__).parents[2] / "launch" / f"{name}.launch.py").read_text()
        assert f'bring_up(robot="{name}")' in text
        assert text.splitlines()[1].startswith(f'"""A robot of the gallery: `ros2 launch pkm_control {name}.launch.py`')


def test_executables_are_entry_points() -> None:
    setup = (Path(__file__).parents[2] / "setup.py").read_text()
    for node in ALL_NODES:
        assert f'"{node.executable} = pkm_bringup.start:node"' in setup
        assert node.executable in NODES


def test_settings_explain_themselves() -> None:
    for setting in bringup.SETTINGS:
        assert len(setting.description) > 10
        assert not setting.choices or setting.default in setting.choices


def test_values_choose_the_nodes() -> None:
    together = {n.name for n in bringup.nodes(bringup.defaults(joystick="true"))}
    assert together == {n.name for n in bringup.NODES} - {"hardware", "controller"}  # which are in one process
    alone = ({"hardware": "none"}, "controller"), ({"controller": "none"}, "hardware")
    for values, name in alone:
        names = {n.name for n in bringup.nodes(bringup.defaults(**values))}
        assert name in names
        assert "control" not in names
    managed = {n.name for n in bringup.nodes({**bringup.defaults(), bringup.MANAGED: "true"})}
    assert {"hardware", "controller"} <= managed  # whose commands go through the controller manager
    assert "control" not in managed
    assert "joystick" not in {n.name for n in bringup.nodes(bringup.defaults())}
    bare = bringup.defaults(hardware="none", controller="none", page="false")
    assert {n.name for n in bringup.nodes(bare)} == {"kinematics", "dynamics"}
    with pytest.raises(KeyError, match="colour"):
        bringup.defaults(colour="red")


def test_parameters_have_the_type_of_the_default() -> None:
    hardware = next(n for n in bringup.NODES if n.name == "hardware")
    parameters = bringup.parameters(hardware, bringup.defaults(rate="500"))
    assert parameters["rate"] == 500.0
    assert isinstance(parameters["rate"], float)
    assert parameters["use_sim_time"] is False
    with pytest.raises(ValueError, match="rate is 'fast'"):
        bringup.parameters(hardware, bringup.defaults(rate="fast"))


def test_ros_arguments_carry_namespace_and_parameters() -> None:
    controller = next(n for n in bringup.NODES if n.name == "controller")
    words = ros_arguments(controller, bringup.defaults(namespace="cell_2", controller="pd_gravity"))
    assert "__ns:=/cell_2" in words
    assert 'law:="pd_gravity"' in words
    assert "joint_commands:=hardware/joint_commands" in words


@pytest.mark.parametrize("name", ["\U0001f600.csv", 'ü"\\$x\t.csv'])
def test_a_file_may_have_any_name(name: str) -> None:
    """ROS reads it as YAML: emoji ended the nodes."""
    player = next(spec for spec in bringup.nodes(bringup.defaults(motion=name)) if spec.name == "motion_player")
    words = ros_arguments(player, bringup.defaults(motion=name))
    rclpy = importlib.import_module("rclpy")
    context = rclpy.Context()
    rclpy.init(args=words, context=context)
    try:
        node = importlib.import_module("rclpy.node").Node("player", context=context, start_parameter_services=False)
        assert node.declare_parameter("motion", "").value == name
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def test_runner_reads_settings() -> None:
    values = read_settings(["my.urdf.xacro", "--rate", "500", "--page", "false", "--stay"])
    assert (values["robot"], values["rate"], values["page"], values["stay"]) == (
        "my.urdf.xacro",
        "500",
        "false",
        "true",
    )
    assert values["motion"] == "auto"


STUBBORN = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def test_stopping_ends_even_a_stubborn_process() -> None:
    group = ProcessGroup(patience=(0.5, 2.0, 2.0))
    group.start(NodeSpec("stubborn"), started([sys.executable, "-c", STUBBORN]))
    process = group.processes["stubborn"]
    time.sleep(0.5)
    group.stop()
    assert process.poll() == -signal.SIGTERM


def test_who_asks_twice_does_not_wait(capfd: pytest.CaptureFixture[str]) -> None:
    """A node that ends slowly is named after a second; a second Ctrl-C goes on to the next signal at once."""
    group = ProcessGroup(patience=(30.0, 2.0, 2.0))
    group.start(NodeSpec("stubborn"), started([sys.executable, "-c", STUBBORN]))
    time.sleep(0.5)
    group.ask_to_stop()
    threading.Timer(1.5, group.ask_to_stop).start()
    began = time.monotonic()
    group.stop()
    assert 1.0 < time.monotonic() - began < 5.0
    assert group.processes["stubborn"].poll() == -signal.SIGTERM
    assert "waiting for stubborn to end; Ctrl-C: at once" in capfd.readouterr().err


SLOW = """
import signal, time
def end(*_):
    time.sleep(1.5)
    raise SystemExit(0)
signal.signal(signal.SIGINT, end)
time.sleep(60)
"""


def test_what_a_terminal_sends_and_a_launch_hands_on_is_one_wish() -> None:
    group = ProcessGroup(patience=(30.0, 2.0, 2.0))
    group.start(NodeSpec("slow"), started([sys.executable, "-c", SLOW]))
    time.sleep(0.5)
    group.ask_to_stop()
    threading.Timer(0.3, group.ask_to_stop).start()
    group.stop()
    assert group.processes["slow"].poll() == 0


INTERRUPTED_IMPORT = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "pkm_kinematics.ros.kinematics_node":
            os.kill(os.getpid(), signal.{number})
sys.meta_path.insert(0, Interrupting())
sys.argv[0] = "bin/kinematics_node"
from pkm_bringup.start import node
raise SystemExit(node())
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_who_ends_a_node_while_libraries_are_loaded_ends_it_well(number: str) -> None:
    program = INTERRUPTED_IMPORT.format(number=number)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60.0)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_signal_that_a_launch_holds_back_ends_a_node_before_python_could_answer_it() -> None:
    command = [*HELD_BACK, sys.executable, "-m", "pkm_bringup.start", "control_node"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while "SigBlk:\t0000000000004002" not in Path(f"/proc/{process.pid}/status").read_text():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60.0)
    assert (process.returncode, output) == (0, b"")


def test_a_closed_terminal_ends_the_run_in_order(tmp_path: Path) -> None:
    """Words for who is gone do not keep the runner from waiting until its nodes have ended."""
    program = f"""
import signal, subprocess, sys, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pkm_bringup.bringup import NodeSpec
from pkm_bringup.runner import ProcessGroup
slow = "import signal, time, pathlib; signal.signal(signal.SIGINT, lambda *_: (time.sleep(2.0), " \
    "pathlib.Path('{tmp_path}/report').write_text('x'), exit(0)));\\nwhile True: time.sleep(0.1)"
group = ProcessGroup()
group.start(NodeSpec("slow"), subprocess.Popen([sys.executable, "-c", slow], start_new_session=True))
signal.signal(signal.SIGHUP, group.ask_to_stop)
print("up", flush=True)
code = group.wait()
group.stop()
raise SystemExit(code)
"""
    terminal, end = os.openpty()
    process = subprocess.Popen([sys.executable, "-c", program], stdin=end, stdout=end, stderr=end, close_fds=True)
    os.close(end)
    assert b"up" in os.read(terminal, 100)
    time.sleep(0.5)
    os.close(terminal)
    process.send_signal(signal.SIGHUP)  # as the kernel does for the session of a terminal
    assert process.wait(timeout=20.0) == 0
    assert (tmp_path / "report").exists()


def test_a_leader_that_was_still_starting_is_known() -> None:
    group = ProcessGroup()
    asleep = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); time.sleep(60)"
    group.start(NodeSpec("leader", leads=True), started([sys.executable, "-c", asleep]))
    time.sleep(0.5)
    assert not group.leader_was_cut_off()
    group.stop()
    assert group.leader_was_cut_off()


@pytest.mark.parametrize(
    ("nodes", "hardware", "simulate", "warned"),
    [
        (("hardware", "controller"), "servos", "false", True),
        (("hardware", "controller"), "servos", "true", False),
        (("hardware", "controller"), "simulated", "false", False),
        (("page",), "servos", "false", False),
    ],
)
def test_drives_whose_node_had_to_be_killed_may_be_on(
    nodes: tuple[str, ...], hardware: str, simulate: str, warned: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    deaf = "import signal; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]; print('up', flush=True); signal.pause()"
    process = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
    group = ProcessGroup(patience=(0.1, 0.1, 5.0))
    group.start(NodeSpec("control", holds=nodes), process)
    assert process.stdout is not None
    with process.stdout as said:
        said.readline()
        group.stop()
    forget_measured()
    try:
        say_killed(group, {"hardware": hardware, "simulate": simulate})
        assert "control did not end and had to be killed" in capfd.readouterr().err
        assert ("cut their power" in drives_warning()) == warned
    finally:
        forget_measured()


def test_the_leader_ends_the_run() -> None:
    group = ProcessGroup()
    group.start(NodeSpec("sleeper"), started([sys.executable, "-c", "import time; time.sleep(60)"]))
    group.start(NodeSpec("leader"), started([sys.executable, "-c", "raise SystemExit(3)"]), leads=True)
    assert group.wait() == 3
    group.stop()
    assert all(p.poll() is not None for p in group.processes.values())


def test_while_the_leader_writes_its_report_the_others_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "node_that_reports.py").write_text(
        "import time\n"
        "from pkm_bringup.command_line.measured import say_measured\n"
        "def main():\n"
        "    say_measured()\n"
        "    time.sleep(1.5)\n"
        "    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(NODES, "leader_node", "node_that_reports")
    gate, group = Gate(), ProcessGroup()
    other = started(["sleep", "60"])  # Python may miss a signal while it starts
    ended: list[float] = []
    watch = threading.Thread(target=lambda: (other.wait(), ended.append(time.monotonic())))
    watch.start()
    group.start(NodeSpec("hardware"), other)
    group.start(NodeSpec("leader"), forked(NodeSpec("leader"), [], gate), leads=True)
    try:
        gate.open()
        assert group.wait() == 3
        assert time.monotonic() - ended[0] > 0.5
    finally:
        group.stop()
        watch.join()
        forget_measured()
    assert not capfd.readouterr().err.count("hardware ended")  # which would be a fault at any other time


def test_an_unexpected_end_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    group = ProcessGroup()
    group.start(NodeSpec("broken"), started([sys.executable, "-c", "raise SystemExit(7)"]))
    assert group.wait() == 7
    assert "broken ended with code 7" in capfd.readouterr().err
    assert reported_fault() == "broken ended with code 7"
    forget_measured()
    assert reported_fault() == ""


def test_a_node_that_is_killed_ends_the_run_with_one() -> None:
    group = ProcessGroup()
    killed = started(["sleep", "60"])
    group.start(NodeSpec("killed"), killed)
    killed.kill()
    assert group.wait() == 1
    assert reported_fault() == "killed ended with code -9"
    forget_measured()


def test_a_picture_does_not_end_the_run(capfd: pytest.CaptureFixture[str]) -> None:
    page = next(node for node in bringup.NODES if node.name == "page")
    group = ProcessGroup()
    group.start(page, started([sys.executable, "-c", "raise SystemExit(7)"]))
    group.start(NodeSpec("leader"), started([sys.executable, "-c", "import time; time.sleep(1)"]), leads=True)
    assert group.wait() == 0
    assert capfd.readouterr().err.count("page ended with code 7; going on without it") == 1


def test_which_nodes_end_the_run_is_declared() -> None:
    ends = {node.name: (node.stops_run(0), node.stops_run(1)) for node in ALL_NODES}
    assert ends.pop("page") == ends.pop("joystick") == (False, False)
    assert ends.pop("motion_player") == (False, True)
    assert set(ends.values()) == {(True, True)}
    assert all(node.stops_run(0, leads=True) for node in ALL_NODES)


NODE_THAT_ENDS = """
import os, sys
def main():
    print(os.getsid(0) == os.getpid(), *sys.argv, flush=True)
    {how}
"""


@pytest.mark.parametrize(("how", "code"), [("return 0", 0), ("raise SystemExit(5)", 5), ("raise KeyError('x')", 1)])
def test_a_forked_node_is_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], how: str, code: int
) -> None:
    (tmp_path / f"node_{code}.py").write_text(NODE_THAT_ENDS.format(how=how))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(NODES, "n_node", f"node_{code}")
    gate = Gate()
    process = forked(NodeSpec("n"), ["--ros-args", "-p", "rate:=3"], gate)
    assert process.pid != os.getpid()
    time.sleep(0.2)
    assert process.poll() is None, "the gate was not open yet"
    gate.open()
    while (ended := process.poll()) is None:
        time.sleep(0.01)
    assert ended == process.poll() == code
    told = capfd.readouterr()
    assert told.out.strip() == "True n_node --ros-args -p rate:=3"
    assert ("KeyError" in told.err) == (code == 1)


def processor_time_of_children() -> float:
    """Of those that have ended [s]."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nonsense"], "no such robot"),
        (["dlta"], "did you mean delta"),
        (["delta", "--motion", "nonsense"], "give a CSV file or one of"),
        (["delta", "--motion", "pick_and_plac"], "did you mean pick_and_place?"),
        (["delta", "--rate", "fast"], "rate is 'fast', not a number from 10 to 10000"),
        (["delta", "--rate", "nan"], "rate is 'nan'"),
        (["delta", "--cycles", "0"], "cycles is '0', not a number from 1 to 1000000"),
        (["delta", "--cycles", "2.5"], "cycles is '2.5', not an integer such as 20"),
        (["delta", "--xacro-args", "a=b"], "write name:=value"),
        (["delta", "--report", "/proc/x"], "report '/proc/x' cannot be written to"),
        (["delta", "--report", "/dev/null"], "report '/dev/null' cannot be written to"),
        (["delta", "--host", "foo.bar.invalid"], "cannot listen on host 'foo.bar.invalid'"),
        (["delta", "--host", "203.0.113.1"], "cannot listen on host '203.0.113.1'"),
        (["delta", "--motion", "none", "--no-stay"], "nothing to do"),
        (["delta", "--namespace", "a/b//c!"], "namespace is 'a/b//c!'"),
        (["delta", "--frame-prefix", "a b"], "not a valid frame"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    options: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner.gc, "disable", lambda: None)
    monkeypatch.setattr(runner, "set_up_discovery", lambda: None)
    monkeypatch.setattr(runner, "only_one", lambda _: pytest.fail("it begins to run"))
    assert main(options) == 2
    said = capfd.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_wrong_options_are_told_at_once() -> None:
    began = processor_time_of_children()
    command = [sys.executable, "-m", "pkm_bringup.runner", "delta", "--motion", "pick_and_plac"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert processor_time_of_children() - began < 3.0  # a third of a second on a quiet computer
    assert done.returncode == 2
    assert "did you mean pick_and_place?" in done.stderr


def test_a_clock_that_stamps_cannot_tell_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Each node ended with a traceback, `cannot publish data`."""
    monkeypatch.setattr(time, "time", lambda: 2**31 + 86_400.0)
    assert main(["delta", "--motion", "none"]) == 2
    said = "this computer's clock says 20 January 2038: ROS 2 has no times after 19 January 2038; set it"
    assert capsys.readouterr().err == f"pkm run: {said}\n"
    with pytest.raises(NoRobotError, match=said):
        Robot.connect(timeout=1.0)


def test_without_a_motion_the_robot_stays() -> None:
    assert read_settings(["delta", "--motion", "none"])["stay"] == "true"
    assert read_settings(["delta", "--motion", "none", "--no-stay"])["stay"] == "false"
    assert read_settings(["delta"])["stay"] == "false"
    bringup.check(bringup.defaults(motion="none", stay="false", controller="none"))


def test_looking_at_the_place_of_the_report_leaves_nothing(tmp_path: Path) -> None:
    bringup.check(bringup.defaults(report=str(tmp_path / "a" / "b"), page="false"))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "kept").mkdir()
    bringup.check(bringup.defaults(report=str(tmp_path / "kept"), page="false"))
    assert (tmp_path / "kept").is_dir()


def test_a_host_whose_name_nobody_tells_is_given_up_within_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: time.sleep(3.0) or [(0,) * 5])
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"not known after 0\.8 s"):
        bringup.check(bringup.defaults(host="foo.bar"))
    assert time.monotonic() - began < 2.9  # not those 3 s


def test_files_are_expanded_before_nodes_start(capfd: pytest.CaptureFixture[str]) -> None:
    values = bringup.defaults(robot="five_bar", xacro_args="joint_states_topic:=here")
    text = bringup.description(values)
    assert "xacro:" not in text
    assert mechanism_from_urdf(text).name == "five_bar"
    assert ">here<" in text
    with pytest.raises(DescriptionError, match="name:=value"):
        bringup.description(bringup.defaults(xacro_args="payload=6"))
    assert main(["no_such_robot"]) == 2
    assert "no such robot" in capfd.readouterr().err


def test_a_second_run_on_the_same_topics_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would command the other's machine; a namespace or a domain of its own keeps them apart."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("ROS_DOMAIN_ID", "5")
    with runner.only_one(""):
        with pytest.raises(PkmError, match=f"process {os.getpid()}, domain 5, namespace '/'.*--namespace"):
            runner.only_one("/")
        runner.only_one("other").close()
        monkeypatch.setenv("ROS_DOMAIN_ID", "6")
        runner.only_one("").close()
        monkeypatch.setenv("ROS_DOMAIN_ID", "5")
    runner.only_one("").close()


def strange(path: Path, kind: str) -> None:
    """What somebody may put where the file of a run is to be."""
    if kind == "link":
        (path.parent / "victim").write_text("precious")
        path.symlink_to(path.parent / "victim")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_of_ours_is_named_and_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    runner.only_one("").close()
    (file,) = tmp_path.iterdir()
    file.unlink()
    strange(file, kind)
    with pytest.raises(PkmError, match=f"{file} cannot be used"):
        runner.only_one("")
    if kind == "link":
        assert (tmp_path / "victim").read_text() == "precious"


def test_what_a_lock_says_is_believed_only_where_it_is_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with runner.only_one(""):
        (file,) = tmp_path.iterdir()
        file.write_bytes(b"\x1b]0;mellon\x07\xff" * 100_000)
        with pytest.raises(PkmError, match="process unknown") as caught:
            runner.only_one("")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_the_shared_temporary_folder_is_not_where_runs_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime folder that others can write to is passed over, and so is what they put into the temporary one."""
    shared, cache = tmp_path / "shared", tmp_path / "cache"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(shared))
    with runner.only_one(""), pytest.raises(PkmError, match=f"process {os.getpid()}"):
        runner.only_one("")
    assert not [*shared.iterdir()]
    folder = cache / "pkm_control"
    folder.chmod(0o777)  # nor is that safe: then one of our own in the temporary folder
    runner.only_one("").close()
    (own,) = shared.iterdir()
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)
    with pytest.raises(PkmError, match=r"others can write there.*XDG_RUNTIME_DIR"):
        runner.only_one("")


def test_a_simulated_machine_has_the_patience_of_its_computer() -> None:
    (controller,) = (node for node in bringup.NODES if node.name == "controller")
    assert bringup.parameters(controller, bringup.defaults())["stale_periods"] == 100
    assert bringup.parameters(controller, bringup.defaults(rate="50"))["stale_periods"] == 10
    assert "stale_periods" not in bringup.parameters(controller, bringup.defaults(hardware="none"))


def test_long_texts_reach_a_node_by_a_file(tmp_path: Path) -> None:
    text = '<robot name="ü">\n' + " \"'{}: \\\t" * 20_000 + "</robot>"
    file = write_parameters(tmp_path / "parameters.yaml", robot_description=text)
    assert yaml.safe_load(file.read_text(encoding="utf-8"))["/**"]["ros__parameters"]["robot_description"] == text


def test_nodes_die_with_a_killed_runner(tmp_path: Path) -> None:
    (tmp_path / "node_that_sleeps.py").write_text("import time\n\ndef main():\n    time.sleep(60)\n")
    script = (
        f"import sys, time; sys.path.insert(0, {str(tmp_path)!r});"
        "from pkm_bringup.runner import Gate, bringup, forked; gate = Gate(); gate.open();"
        "bringup.start.NODES['node_node'] = 'node_that_sleeps';"
        "print(forked(bringup.NodeSpec('node'), [], gate).pid, flush=True); time.sleep(60)"
    )
    running = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    child = int(running.stdout.readline())
    time.sleep(0.3)
    running.kill()
    running.wait()
    deadline = time.monotonic() + 5.0
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split(")")[1]:
        assert time.monotonic() < deadline, "the node outlived its runner"
        time.sleep(0.05)


def test_what_is_to_be_compiled_is_compiled_by_another_process_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(robot_cache, "folders", lambda: (tmp_path,))
    values = bringup.defaults(motion="circle")
    text, specs = bringup.description(values), [spec for spec in bringup.nodes(values) if spec.needed]
    done = tmp_path / "done"
    monkeypatch.setattr(warm_kernels, "load", lambda *_: done.write_text(str(os.getpid())))
    warm_kernels.compile_apart(text, specs, values)
    assert done.read_text() != str(os.getpid())
    done.unlink()
    warm_kernels.compile_apart(text, specs, values)
    assert not done.exists()
    warm_kernels.compile_apart(text, specs, bringup.defaults(controller="pd_gravity"))
    assert done.exists()
    done.unlink()
    monkeypatch.setattr(warm_kernels, "load", lambda *_: done.write_text("begun") and 1 / 0)
    for _ in range(2):  # what failed is not noted as done
        warm_kernels.compile_apart("no robot", specs, values)
        warm_kernels.compile_apart(text + " ", specs, values)
        assert done.exists()
        done.unlink()


def test_warming_up_notes_what_a_run_needs() -> None:
    """The text that is noted is the text that a run asks for."""
    assert load_mechanism("delta").urdf == bringup.description(bringup.defaults())


def test_a_hidden_payload_is_of_a_simulated_machine() -> None:
    nodes = {node.name: node for node in bringup.NODES}
    values = bringup.defaults(hidden_payload="2")
    bringup.check(values)
    assert bringup.parameters(nodes["hardware"], values)["hidden_payload"] == 2.0
    notes = bringup.parameters(nodes["motion_player"], values)["notes"]
    assert "payload 2 kg, which the controller does not know of" in notes
    with pytest.raises(ValueError, match="hidden_payload is what a simulated machine carries"):
        bringup.check(bringup.defaults(hidden_payload="2", hardware="loopback", controller="position"))
    with pytest.raises(ValueError, match="hidden_payload is '-1'"):
        bringup.check(bringup.defaults(hidden_payload="-1"))


def test_a_machine_file_of_another_robot_is_refused_before_anything_starts() -> None:
    file = str(Path(__file__).parents[2] / "docs" / "examples" / "hobby_hexapod_machine.yaml")
    values = bringup.defaults(hardware="servos", hardware_file=file, controller="position", rate="50", motion="none")
    bringup.check(values)
    with pytest.raises(PkmError, match="limb4_arm: the robot has no such actuator"):
        warm_kernels.load(shared_dynamics(load_mechanism("delta")), bringup.nodes(values), values)
