# SPDX-License-Identifier: Apache-2.0
"""A motion that cannot be run ends the player with an error that is not laid at the robot's door."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import Log
from rclpy.node import Node

from pkm_bringup.nodes import motion_player_node, requested_motions
from pkm_bringup.nodes.motion_player_node import MotionPlayer
from pkm_bringup.nodes.motion_run import MotionRun, Order
from pkm_bringup.nodes.silences import Silences
from pkm_control.operator_interface import Outcome
from pkm_description import load_mechanism
from pkm_description.ros import topics
from pkm_interfaces.srv import PlayMotion
from pkm_viewer.operations import OPENING, PAGE_KEY, SEEN

from .conftest import Graph

MOTIONS = {
    "a hole": ("x [m], y [m], z [m]\n0, 0, -0.85\n0, , -0.85\n", "line 3, column 'y': is empty"),
    "time backwards": (
        "x [m], y [m], z [m], time [s]\n0, 0, -0.85, 0\n0, 0.05, -0.85, 0.5\n0, 0, -0.85, 0.4\n",
        "does not come after",
    ),
    "not a number": ("x [m], y [m], z [m]\n0, 0, nan\n0, 0, -0.85\n", "is nan"),
    "unknown column": ("x [m], y [m], z [m], wobble [m]\n0, 0, -0.85, 1\n", "unknown column"),
    "out of reach": ("x [m], y [m], z [m]\n0, 0, -0.85\n0, 0, -2.85\n", "the platform cannot be at"),
}


@pytest.mark.parametrize("case", MOTIONS)
def test_a_motion_that_cannot_be_run_is_told(graph: Graph, tmp_path: Path, case: str) -> None:
    text, reason = MOTIONS[case]
    path = tmp_path / "motion.csv"
    path.write_text(text)
    told = graph.listen(Log, "/rosout")
    graph.describe(load_mechanism("delta").urdf)
    player = graph.start(MotionPlayer, motion=str(path))
    graph.wait(lambda: player.exit_code is not None)
    assert player.exit_code == 1
    graph.wait(lambda: any("the motion cannot be run" in log.msg and reason in log.msg for log in told))
    assert not any("the robot description cannot be used" in log.msg for log in told)


def diagnose(graph: Graph, publisher: Any, **levels: bytes) -> None:
    status = [
        DiagnosticStatus(level=level, name=f"{graph.namespace}/{name}", message="as told", hardware_id=graph.namespace)
        for name, level in levels.items()
    ]
    publisher.publish(DiagnosticArray(status=status))


def test_a_node_that_is_not_well_keeps_the_motion_from_beginning(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion_player_node, "_PATIENCE", 1.0)
    told = graph.listen(Log, "/rosout")
    publisher = graph.client.create_publisher(DiagnosticArray, topics.DIAGNOSTICS, topics.EVENTS)
    player = graph.start(MotionPlayer, wait_for=["hardware", "dynamics"])
    graph.wait(lambda: publisher.get_subscription_count() > 0)
    diagnose(graph, publisher, hardware=DiagnosticStatus.ERROR, dynamics=DiagnosticStatus.OK)
    graph.describe(load_mechanism("delta").urdf)
    graph.wait(lambda: player.exit_code is not None)
    assert player.exit_code == 1
    graph.wait(lambda: any("hardware reports an error: as told" in log.msg for log in told))
    assert not any("dynamics" in log.msg and "does not begin" in log.msg for log in told)


def test_a_node_that_builds_the_robot_is_not_said_to_be_stopped(graph: Graph) -> None:
    """A busy computer takes long for it; only what has been well can be told from what has not started."""
    told = graph.listen(Log, "/rosout")
    publisher = graph.client.create_publisher(DiagnosticArray, topics.DIAGNOSTICS, topics.EVENTS)
    player = graph.start(MotionPlayer, wait_for=["hardware", "dynamics"], stay=True)
    player._silences = Silences(0.5)
    graph.wait(lambda: publisher.get_subscription_count() > 0)
    diagnose(graph, publisher, hardware=DiagnosticStatus.STALE, dynamics=DiagnosticStatus.OK)
    graph.wait(lambda: any(log.msg.startswith("dynamics has been silent for") for log in told))
    graph.wait(lambda: any(log.msg.startswith("hardware has not started yet") for log in told))
    assert not any(log.msg.startswith(("hardware has been silent", "dynamics has not started")) for log in told)


@pytest.mark.parametrize("stay", [True, False])
@pytest.mark.parametrize("malformed", [True, False])
def test_a_robot_that_never_comes_ends_the_player(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, stay: bool, malformed: bool
) -> None:
    """By the name of who should describe it. Where somebody describes one that cannot be used, who stays waits on."""
    monkeypatch.setattr(motion_player_node, "_PATIENCE", 1.0)
    told = graph.listen(Log, "/rosout")
    if malformed:
        graph.describe("<robot")
    player = graph.start(MotionPlayer, stay=stay)
    if stay and malformed:
        graph.wait(lambda: any("cannot be used" in log.msg for log in told))
        time.sleep(2.0)
        assert player.exit_code is None
        return
    graph.wait(lambda: player.exit_code is not None, 20.0)
    assert player.exit_code == 1
    reason = "cannot be used" if malformed else "robot_state_publisher"
    graph.wait(lambda: any("no robot after" in log.msg and reason in log.msg for log in told))


# A player that stays


def play(graph: Graph, motion: str, cycles: int = 1) -> PlayMotion.Response:
    return graph.call(PlayMotion, topics.PLAY_MOTION, PlayMotion.Request(motion=motion, cycles=cycles))


def test_a_player_that_stays_answers_what_it_cannot_run(graph: Graph, tmp_path: Path) -> None:
    player = graph.start(MotionPlayer, motion="none", stay=True, wait_for=["hardware"])
    assert "description" in play(graph, "auto").message
    graph.describe(load_mechanism("five_bar").urdf)
    graph.wait(lambda: player._mechanism is not None)
    answer = play(graph, "auto")
    assert not answer.success
    assert "hardware has not been heard of" in answer.message
    player._health.clear()
    assert "does not offer" in play(graph, "auto").message
    player._client.server_is_ready = lambda: True  # the rest is told before anything is sent
    strange = ("", "x" * 5000, "\x1b[2J", "../circle", "none", "no_such_motion")
    for name in (*strange, str(tmp_path), "/dev/zero", "/etc/passwd"):
        assert "is no motion that may be asked for" in play(graph, name).message
    assert "more than" in play(graph, "auto", 2_000_000_000).message
    assert player.exit_code is None


SECRET = "root:$6$mellon"
FILES = {
    "shadow.csv": (f"{SECRET}:1:0:99999:7:::\n", "names no column of a motion"),
    "number.csv": ("6666\n1\n2\n", "the header row is missing"),
    "comments.csv": (f"# frame: {SECRET}\n# path: {SECRET}\n# limit mellon: 1\n[x]\n", "names no column of a motion"),
    "far.csv": ("x [m], y [m], z [m]\n0, 0, 0\n0, 0.05, -9\n", "the platform cannot be at"),
    "large.csv": (" " * 20_000_000, "larger than 10 MB"),
    "stops.csv": (
        "# frame: home\nx [m], y [m], z [m]\n" + "\n".join(f"0, {k % 2 / 100}, 0" for k in range(30_000)),
        "30000 waypoints; at most 500 may be asked for, 10000 where they have times",
    ),
    "recorded.csv": (
        "# frame: home\nx [m], y [m], z [m], time [s]\n" + "\n".join(f"0, 0, 0, {k}" for k in range(30_000)),
        "30000 waypoints; at most 500",
    ),
    "untimed.csv": (
        "# frame: home\nx [m], y [m], z [m]\n" + "\n".join(f"0, {k % 2 / 100}, 0" for k in range(501)),
        "501 waypoints; at most 500",
    ),
}


def ready(graph: Graph, **parameters: Any) -> Any:
    """A player whose robot is there, and whose requests are looked at; nothing answers what it would send."""
    player = graph.start(MotionPlayer, stay=True, **parameters)
    graph.describe(load_mechanism("five_bar").urdf)
    graph.wait(lambda: player._mechanism is not None)
    player._client.server_is_ready = lambda: True
    return player


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_asked_for_is_refused_soon_and_not_quoted(graph: Graph, tmp_path: Path, name: str) -> None:
    text, reason = FILES[name]
    inside, outside = tmp_path / "motions", tmp_path / "private"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / name).write_text(text)
    (inside / "link.csv").symlink_to(outside / name)
    ready(graph, motion="none", motion_folders=[str(inside)])
    for asked in (name, str(inside / name)):
        began = time.monotonic()
        answer = play(graph, asked)
        assert not answer.success
        assert reason in answer.message
        assert "mellon" not in answer.message
        assert "6666" not in answer.message
        assert time.monotonic() - began < 2.0
    for asked in ("link.csv", str(outside / name), f"../private/{name}", str(inside), str(outside / "not_there.csv")):
        assert "is no motion that may be asked for" in play(graph, asked).message


def test_the_motion_of_the_run_may_be_asked_for(graph: Graph, tmp_path: Path) -> None:
    own, other = tmp_path / "own.csv", tmp_path / "other.csv"
    for file in (own, other):
        file.write_text("x [m], y [m], z [m]\n0, 0, 0\n0, 0.05, -9\n")
    player = ready(graph, motion="none")
    player._motion = str(own)
    assert "the platform cannot be at" in play(graph, str(own)).message
    assert "the platform cannot be at" in play(graph, str(tmp_path / "." / "own.csv")).message
    assert "is no motion" in play(graph, str(other)).message


def test_planning_that_takes_long_is_told_and_begins_nothing_unasked(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    planned = requested_motions.planned

    def slowly(*given: Any) -> Any:
        release.wait(20.0)
        return planned(*given)

    monkeypatch.setattr(requested_motions, "planned", slowly)
    player = ready(graph, motion="none")
    began = time.monotonic()
    answer = play(graph, "circle")
    assert not answer.success
    assert "planning takes more than" in answer.message
    assert time.monotonic() - began < 2.0
    assert "circle is still being planned" in play(graph, "tilts").message
    release.set()
    graph.wait(lambda: player._planning.ended)
    time.sleep(0.2)
    assert player._order is None  # planned, and not begun
    future = graph._clients[topics.PLAY_MOTION].call_async(PlayMotion.Request(motion="circle"))
    graph.wait(lambda: player._streams is not None, 2.0)  # ready to begin, as soon as the robot is heard
    assert not future.done()


@pytest.mark.parametrize(
    ("outcome", "fault", "stopped"),
    [
        (Outcome.PREEMPTED, "", "the operator stopped it"),
        (Outcome.PATH_TOLERANCE_VIOLATED, "PATH_TOLERANCE_VIOLATED: the operator stopped it", ""),
    ],
)
def test_what_somebody_stops_is_no_fault(outcome: Outcome, fault: str, stopped: str) -> None:
    begun: list[str] = []
    run = MotionRun(Order("auto", 1, begun.append, plan=SimpleNamespace()), None, None, 0.0)
    result = SimpleNamespace(error_code=int(outcome), error_string="the operator stopped it")
    went_on: list[bool] = []
    run._done(SimpleNamespace(result=lambda: SimpleNamespace(result=result)), lambda: went_on.append(True))
    assert run.ended_at > 0.0
    assert (run.fault, run.stopped, went_on) == (fault, stopped, [])
    assert len(begun) == 1
    assert begun[0]  # who asked for it hears that it did not run to its end


@pytest.mark.parametrize("wrong", ["nothing", "fault", "report"])
def test_the_exit_code_tells_of_what_went_wrong_in_a_run_that_stayed(
    graph: Graph, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recording(faults: tuple[str, ...]) -> None:
        raise OSError("No space left on device")

    player = graph.start(MotionPlayer, motion="none", stay=True)
    recorder = SimpleNamespace(recording=recording) if wrong == "report" else None
    run = MotionRun(Order("circle", 1, lambda _: None, plan=SimpleNamespace()), None, SimpleNamespace(), 0.0)
    run.take, run.streams.stop, run.recorder = lambda everything: None, lambda: None, recorder
    run.completed, run.fault = wrong != "fault", "it fell" if wrong == "fault" else ""
    player._finish(run)
    player.at_exit()
    assert player.exit_code is None
    monkeypatch.setattr(Node, "destroy_node", lambda _: None)
    player.destroy_node()
    assert player.exit_code == (None if wrong == "nothing" else 1)


def test_an_end_waits_only_so_long_for_the_page_of_a_report(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table is there. On a busy computer launch would end the player by force."""
    monkeypatch.setattr(motion_player_node, "_DRAWN_WITHIN", 0.2)
    player = graph.start(MotionPlayer, motion="none", stay=True)
    drawing = player._reports.submit(lambda: [time.sleep(0.01) for _ in iter(player._report_is_late, True)])
    time.sleep(0.5)
    assert not drawing.done()
    player.at_exit()
    drawing.result(10.0)


def test_a_stop_before_the_motion_of_a_launch_begins_ends_it(graph: Graph) -> None:
    """It said that nothing moved, and a few seconds later the robot did."""
    graph.describe(load_mechanism("delta").urdf)
    begun = time.monotonic()
    player = graph.start(MotionPlayer, motion="circle")
    graph.wait(lambda: player._order is not None)
    assert player._order.asked < begun  # a stop since then ends a motion: see `GoalQueue`


def test_a_motion_that_another_took_over_is_not_done(graph: Graph) -> None:
    player = graph.start(MotionPlayer, motion="none", stay=False)
    streams = SimpleNamespace(stop=lambda: None)
    for completed in (False, True):
        run = MotionRun(Order("circle", 1, lambda _: None, plan=SimpleNamespace()), None, streams, 0.0)
        run.take, run.stopped, run.completed = lambda everything: None, "", completed
        player._finish(run)
        assert player.exit_code == (0 if completed else 1)


def test_who_ends_the_run_is_not_told_that_the_robot_stays(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    told = graph.listen(Log, "/rosout")
    player = graph.start(MotionPlayer, motion="none", stay=True)
    player._timer.cancel()
    notes: list[tuple[str, ...]] = []

    class OneRow:
        run = SimpleNamespace(notes=("a",), motion="circle")

        def __len__(self) -> int:
            return 1

        def about(self, motion: str, notes_: tuple[str, ...]) -> None:
            notes.append(notes_)
            raise ValueError("nothing moved")

    recording = OneRow()
    monkeypatch.setattr(motion_player_node, "replace", lambda one, **_: one)
    run = MotionRun(Order("circle", 1, lambda _: None, plan=SimpleNamespace()), None, SimpleNamespace(), 0.0)
    run.take, run.streams.stop = lambda everything: None, lambda: None
    run.recorder = SimpleNamespace(recording=lambda faults: recording)
    player._run = run
    player._wall_ahead = time.time() - time.monotonic() - 3600.0
    player.at_exit()
    assert player.exit_code == 130
    assert notes[0][:2] == ("a", "ended early: somebody ended the run")
    assert notes[0][2].startswith("the computer's clock was set by +3600.0 s meanwhile")
    graph.wait(lambda: any("no report: nothing moved" in log.msg for log in told))
    assert not any("stays" in log.msg for log in told)


@pytest.mark.parametrize("fault", ["", "controller ended with code -9"], ids=["asked", "died"])
def test_the_death_of_a_node_is_a_fault_of_the_run(graph: Graph, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(motion_player_node, "reported_fault", lambda: fault)
    player = graph.start(MotionPlayer, motion="none", stay=True)
    player._timer.cancel()
    run = MotionRun(Order("circle", 1, lambda _: None, plan=SimpleNamespace()), None, SimpleNamespace(), 0.0)
    run.take, run.streams.stop, run.recorder = lambda everything: None, lambda: None, SimpleNamespace()
    player._publish = lambda *_: None
    player._run = run
    player.at_exit()
    assert (run.fault, run.stopped) == (fault, "" if fault else "somebody ended the run")
    assert player.exit_code == (1 if fault else 130)


@pytest.mark.parametrize("fault", ["", "controller ended with code -9"], ids=["asked", "died"])
def test_who_ends_the_run_before_it_begins_is_told_that_nothing_was_run(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(motion_player_node, "reported_fault", lambda: fault)
    told = graph.listen(Log, "/rosout")
    graph.describe(load_mechanism("delta").urdf)
    player = graph.start(MotionPlayer, motion="circle", wait_for=["hardware"])
    graph.wait(lambda: player._order is not None)
    player.at_exit()
    graph.wait(lambda: any("nothing of the motion was run, and there is no report" in log.msg for log in told))
    assert player.exit_code == (1 if fault else 130)


def test_the_first_motion_waits_for_the_page_but_not_for_long(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(motion_player_node, "_PAGE_PATIENCE", 0.5)
    told = graph.listen(Log, "/rosout")
    publisher = graph.client.create_publisher(DiagnosticArray, topics.DIAGNOSTICS, topics.EVENTS)
    player = graph.start(MotionPlayer, motion="none", stay=True, wait_for_page=True)
    graph.wait(lambda: publisher.get_subscription_count() > 0)
    assert not player._page_is_there()
    graph.wait(lambda: any("begins when the page is there" in log.msg for log in told))
    graph.wait(player._page_is_there)  # nobody comes
    player._page_since = 0.0
    assert not player._page_is_there()

    def page(progress: str) -> None:
        values = [KeyValue(key=PAGE_KEY, value=progress)]
        status = DiagnosticStatus(name=f"{graph.namespace}/page", hardware_id=graph.namespace, values=values)
        publisher.publish(DiagnosticArray(status=[status]))
        graph.wait(lambda: player._page == progress)

    page(OPENING)
    player._page_since = 0.0
    assert not player._page_is_there()
    page(SEEN)
    assert player._page_is_there()
    player._page, player._begun = "", 1
    assert player._page_is_there()  # later motions are asked for by who sees the page, or does not want it


def test_requests_are_answered_while_a_report_is_written(graph: Graph) -> None:
    player = ready(graph, motion="none")
    release, begun = threading.Event(), threading.Event()

    def write(*_: object) -> None:
        begun.set()
        assert release.wait(30.0)

    player._write = write
    ended = SimpleNamespace(completed=True, fault="", recorder=object(), take=lambda **_: None)
    ended.streams = SimpleNamespace(stop=lambda: None)
    try:
        player._finish(ended)
        assert begun.wait(10.0)
        assert "is no motion that may be asked for" in play(graph, "no_such_motion").message
        assert not release.is_set()
    finally:
        release.set()
