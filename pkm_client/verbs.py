# SPDX-License-Identifier: Apache-2.0
"""The commands for a robot that runs over ROS, as a table: `pkm move`, `pkm stop`, `pkm state`, ..."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pkm_client import options
from pkm_client.client_errors import RefusedError
from pkm_control.operator_interface import Answer
from pkm_description import command_options
from pkm_description.command_options import WRONG
from pkm_runtime.errors import PkmError, UsageError
from pkm_runtime.json_text import json_text
from pkm_runtime.local_services import AT_ONCE, elsewhere
from pkm_runtime.optional import ROS, ROS_REMEDY, need
from pkm_runtime.progress import progress
from pkm_runtime.scheduling import hurry, process_began

if TYPE_CHECKING:
    from pkm_client.backend import Result, RobotState
    from pkm_client.robot import Robot
    from pkm_client.ros.link import RosLink

_UNASKED = "nothing was asked of the robot, which goes on with what it does"
_REST, _LOOK = 2.0, 0.02  # s: within which what was cancelled comes to rest, and between two looks whether it has
_PAUSED = 1.5  # s, between two looks whether a motion is paused
_POSE = [*((name, "m") for name in "xyz"), *((name, "") for name in ("qx", "qy", "qz", "qw"))]
TIMEOUT = "longest wait for the running robot [s]"


def parser_of(word: str, description: str) -> argparse.ArgumentParser:
    """The parser of the command `pkm word`, with the options that select the robot."""
    p = options.parser(word, description)
    ros = p.add_argument_group("ROS")
    options.add(ros, "namespace")
    ros.add_argument("--timeout", type=command_options.positive, default=10.0, metavar="S", help=TIMEOUT)
    return p


def reported(word: str, act: Callable[[], str]) -> int:
    """Print what `act` returns, or why it failed; exit status 0 done, 1 not done, 2 asked wrongly, 130 interrupted."""
    try:
        text = act()
    except (PkmError, ValueError) as error:
        print(f"pkm {word}: {error}", file=sys.stderr)
        return WRONG if isinstance(error, UsageError) else 1
    except KeyboardInterrupt as interruption:
        print(f"\npkm {word}: interrupted; {str(interruption) or _UNASKED}", file=sys.stderr)
        return 130
    if text:
        print(text)
    return 0


def _waiting(given: argparse.Namespace) -> str:
    return "; ".join(filter(None, ("waiting for the running robot", elsewhere(given.namespace))))


def ask_robot(word: str, given: argparse.Namespace, act: Callable[[Robot], str]) -> int:
    """Run `act` with a `Robot`, for commands that plan, and print what it returns; exit status as `reported`."""

    own = sys.argv[1:2] == [word]  # this process is that command
    began = process_began() if own else time.monotonic()

    doing: list[Callable[[], str]] = [lambda: "loading libraries"]  # the last one: now

    def asked() -> str:
        connect = importlib.import_module("pkm_client.robot").Robot.connect
        tool_file, conveyor_file = (getattr(given, name, "") for name in ("tool_file", "conveyor_file"))
        doing.append(lambda: _waiting(given))
        robot = connect(given.namespace, given.timeout, tool_file=tool_file, conveyor_file=conveyor_file)
        robot.asked = began  # a stop since then, such as while all this was imported, ends it
        doing.append(lambda: _what_is_done(robot))
        with robot, _pauses_told(robot):
            try:
                return act(robot)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(_what_goes_on(robot)) from None

    with progress("", lambda: doing[-1]()):
        return reported(word, asked)


def _what_is_done(robot: Robot) -> str:
    with contextlib.suppress(PkmError, OSError):
        state = robot.state
        return "the robot moves" if state.moving else "paused" if state.mode.name == "PAUSED" else "planning"
    return "waiting for the robot"


@contextlib.contextmanager
def _pauses_told(robot: Robot) -> Iterator[None]:
    """Say of a motion that is waited for, once each time, that it is paused."""
    over = threading.Event()

    def watch() -> None:
        noted = False
        while not over.wait(_PAUSED):
            with contextlib.suppress(PkmError, OSError):
                paused = robot.state.mode.name == "PAUSED"
                if paused and not noted:
                    print("pkm: the robot is paused: 'pkm resume' goes on, 'pkm stop' ends it", file=sys.stderr)
                noted = paused

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _what_goes_on(robot: Robot) -> str:
    """What the robot does after an interruption, in words, once it rests or does not come to rest."""
    until = time.monotonic() + _REST
    try:
        while (state := robot.state).moving and time.monotonic() < until:
            robot.wait(_LOOK)
    except PkmError as error:
        return f"what the robot does is unknown: {error}"
    if state.moving:
        return "the robot still moves: 'pkm stop' ends that"
    where = ", ".join(f"{value:.4f}" for value in state.pose[:3])
    return f"the robot is {state.mode.name.lower()}, its platform at ({where}) m"


def ask_link(word: str, given: argparse.Namespace, act: Callable[[RosLink], str]) -> int:
    """Run `act` with a link alone, for commands without planning, which starts sooner."""

    def asked() -> str:
        need(f"pkm {word}", ROS, ROS_REMEDY)
        with progress(_waiting(given)):
            link = importlib.import_module("pkm_client.ros.link").RosLink(given.namespace, given.timeout, False)
        try:
            return act(link)
        finally:
            link.close()

    return reported(word, asked)


def ask_service(word: str, given: argparse.Namespace, service: str) -> int:
    """Ask one service alone, which starts as soon as can be."""

    waiting = _waiting(given) + ("; if it moves, cut the power of its drives" if word in AT_ONCE else "")

    def asked() -> str:
        hurry()
        need(f"pkm {word}", ROS, ROS_REMEDY)
        with progress(waiting):
            node = importlib.import_module("pkm_client.ros.client_node").ClientNode(given.namespace)
            try:
                return answered(node.trigger(service, given.timeout))
            finally:
                node.close()

    return reported(word, asked)


def answered(answer: Answer, text: str = "") -> str:
    """The answer's message, or `text` where it has none; raises `RefusedError` where the answer is no."""
    if not answer.success:
        raise RefusedError(answer.message or "it is refused")
    return answer.message or text


def in_words(result: Result) -> str:
    """One line on how a finished motion went."""
    position, rotation = 1e3 * result.max_position_error, 1e3 * result.max_rotation_error
    return f"done; at most {position:.3f} mm and {rotation:.3f} mrad from its reference"


def _placed(text: str) -> tuple[str, tuple[float, str]]:
    name, equal, value = text.rpartition("=")
    if not (name and equal):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=NUMBER, such as rail=0.3")
    return name, command_options.coordinate(value)


def _move_options(p: argparse.ArgumentParser) -> None:
    text = "the robot's task coordinates (x y z of a Delta), or x y z qx qy qz qw, base frame [m, rad] or as 20mm 5deg"
    p.add_argument("pose", type=command_options.coordinate, nargs="+", metavar="NUMBER", help=text)
    p.add_argument("--speed", type=command_options.speed, metavar="M/S", help="largest speed of the platform [m/s]")
    text = "go to the nearest pose that the platform has (of a 3-PRS, which tilts in moving); not for one out of reach"
    p.add_argument("--nearest", action=options.Switch, default=False, help=text)
    text = "position of a redundant joint beside the pose [rad or m], such as rail=0.3; the others stay, or follow"
    p.add_argument("--joint", action="append", type=_placed, default=[], metavar="NAME=NUMBER", help=text)
    text = "tool of the tool file: the pose is that of the tool, and its point moves straight"
    p.add_argument("--tool", default="", metavar="NAME", help=text)
    options.add(p, "tool_file")


def _move(robot: Robot, given: argparse.Namespace) -> str:
    from pkm_kinematics.batch import ShapeError  # which loads NumPy

    speed = math.inf if given.speed is None else given.speed
    names, joints = robot.kinematics.task.names, robot.kinematics.mechanism.joint_named
    kinds = [(name, joints[name].unit) for name in names]
    numbers = [*zip(kinds if len(given.pose) == len(kinds) else _POSE, given.pose, strict=False)]
    numbers += [((name, joints[name].unit), value) for name, value in given.joint if name in joints]
    for (name, kind), (_, unit) in numbers:
        if unit not in ("", kind):
            raise RefusedError(f"{name} is in {kind or 'no unit'}, not in a unit of {unit}")
    pose, beside = [value for value, _ in given.pose], {name: value for name, (value, _) in given.joint}
    try:
        task = robot.move_to(pose, speed, nearest=given.nearest, tool=given.tool, redundant=beside)
    except ShapeError:
        listed = ", ".join(f"{name} [{unit}]" for name, unit in kinds)
        own = f"{len(names)} numbers, {listed}, or " if names else ""
        raise RefusedError(f"give {own}7 numbers, x y z [m] qx qy qz qw, not {len(given.pose)}") from None
    return in_words(task.result())


def _follow_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("motion", metavar="FILE|NAME", help=options.MOTION)
    p.add_argument("--times", type=command_options.count, default=1, metavar="N", help="number of runs of the motion")
    options.add(p, "tool_file")
    belt = p.add_argument_group("conveyor")
    belt.add_argument("--on", default="", metavar="NAME", help="the conveyor that carries the object")
    at = "travel of the belt when the object was at the conveyor's origin [m]; now without"
    belt.add_argument("--at", type=command_options.length, metavar="M", help=at)
    options.add(belt, "conveyor_file")


def _follow(robot: Robot, given: argparse.Namespace) -> str:
    return in_words(robot.follow(given.motion, given.times, on=given.on, at=given.at).result())


def _jog_options(p: argparse.ArgumentParser) -> None:
    text = "three numbers: velocity of its origin along x, y and z [m/s], or such as 20mm/s"
    p.add_argument("linear", type=command_options.velocity, nargs=3, metavar="VELOCITY", help=text)
    text = "three numbers: angular velocity about x, y and z [rad/s], or such as 5deg/s"
    p.add_argument(
        "--angular", type=command_options.turn_rate, nargs=3, default=(0.0, 0.0, 0.0), metavar="RATE", help=text
    )
    text = "duration with the acceleration, to which the deceleration adds [s]"
    p.add_argument("--seconds", type=command_options.positive, default=1.0, metavar="S", help=text)


def _jog(robot: Robot, given: argparse.Namespace) -> str:
    before = robot.state.pose
    reason = robot.jog(given.linear, given.angular, given.seconds).result().reason
    after, words = robot.state.pose, []
    turned = 2.0 * math.acos(min(1.0, abs(sum(a * b for a, b in zip(before[3:], after[3:], strict=True)))))
    for rates, way, scale, unit in (
        (given.linear, math.dist(before[:3], after[:3]), 1e3, "mm"),
        (given.angular, turned, math.degrees(1.0), "deg"),
    ):
        asked = math.hypot(*rates) * given.seconds
        words += [f"{scale * way:.3f} {unit} of {scale * asked:.3f} {unit}"] if asked else []
    moved = f"moved by {' and '.join(words)}"
    return f"{moved}: {reason}" if reason else moved


def _mode_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("label", nargs="?", metavar="LABEL", help="label of the working mode, such as +-; for -- give -- --")


def _read_mode(p: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    end = words.index("--") if "--" in words else len(words)
    before, after = words[:end], words[end + 1 :]
    if end < len(words) and not after:
        p.error("'--' ends the options, and no label follows; the working mode -- is 'pkm mode -- --'")
    labels = [word for word in before if re.fullmatch(r"[+-]+", word)]  # which argparse takes for options
    given = p.parse_args([word for word in before if word not in labels])
    labels += [*([] if given.label is None else [given.label]), *after]
    if len(labels) > 1:
        p.error(f"unrecognized arguments: {' '.join(labels[1:])}")
    given.label = labels[0] if labels else None
    return given


def _mode(robot: Robot, given: argparse.Namespace) -> str:
    if given.label is not None:
        robot.change_working_mode(given.label)
    return f"working mode {robot.working_mode}"


def _speed_options(p: argparse.ArgumentParser) -> None:
    p.add_argument("fraction", type=float, metavar="FRACTION", help="0 to 1; 0 halts motions on their paths")


def _speed(link: RosLink, given: argparse.Namespace) -> str:
    return answered(link.operator.set_speed(given.fraction), f"motions run at {given.fraction + 0.0:.0%} of their plan")


def _state_options(p: argparse.ArgumentParser) -> None:
    p.add_argument_group("output").add_argument("--json", action="store_true", help="print the state as JSON")


def as_json(state: RobotState) -> str:
    """The state as JSON, with null for NaN."""
    return json_text({**asdict(state), "mode": state.mode.name})


def _state(link: RosLink, given: argparse.Namespace) -> str:
    state = link.state()
    return as_json(state) if given.json else str(state)


@dataclass(frozen=True)
class Verb:
    """A command `pkm word`: its options, and the service that it asks or what it does, with a `Robot` if it plans."""

    word: str
    description: str
    act: Callable[[Any, argparse.Namespace], str] = lambda *_: ""
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    plans: bool = False
    service: str = ""
    read: Callable[[argparse.ArgumentParser, list[str]], argparse.Namespace] = argparse.ArgumentParser.parse_args

    def parser(self) -> argparse.ArgumentParser:
        """The command line."""
        p = parser_of(self.word, self.description)
        self.options(p)
        return p

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Entry point: exit status 0 done, 1 refused or ended early, 130 interrupted."""
        given = self.read(self.parser(), list(sys.argv[1:] if arguments is None else arguments))
        if self.plans:
            return ask_robot(self.word, given, lambda robot: self.act(robot, given))
        if self.service:
            return ask_service(self.word, given, self.service)
        return ask_link(self.word, given, lambda link: self.act(link, given))


_ALL = (
    Verb(
        "move",
        "Move the platform to a pose, straight where the robot can, and wait for the end; Ctrl-C ends it on its path.",
        _move,
        _move_options,
        plans=True,
    ),
    Verb(
        "follow",
        "Move to the start of a motion file, run it, and wait for the end; Ctrl-C ends it on its path.",
        _follow,
        _follow_options,
        plans=True,
    ),
    Verb(
        "jog",
        "Steer the platform at a velocity for some time; it comes to rest before borders. Ctrl-C ends it.",
        _jog,
        _jog_options,
        plans=True,
    ),
    Verb("pause", "Halt the motion that runs on its path; 'pkm resume' goes on with it.", service=AT_ONCE["pause"]),
    Verb(
        "resume",
        "Go on with the motion that was paused; after a jog, the platform first moves\nback to the path.",
        service="resume",
    ),
    Verb(
        "stop",
        "End the motion or the jog that runs by a deceleration on its way; the platform\nis held then.",
        service=AT_ONCE["stop"],
    ),
    Verb(
        "estop",
        "Emergency stop: turn the drives of the running robot off at once. They stay off until\n"
        "`pkm reset` and `pkm enable`.",
        service=AT_ONCE["estop"],
    ),
    Verb(
        "enable",
        "Have the drives of the running robot follow commands. The platform is held where it\nis; nothing else moves.",
        service="hardware/enable",
    ),
    Verb(
        "disable",
        "Turn the drives of the running robot off. What moves ends at once, and brakes close;\n"
        "a machine without brakes sinks under its weight.",
        service=AT_ONCE["disable"],
    ),
    Verb(
        "reset",
        "Lead the machine out of a fault. Nothing moves: its drives stay off until `pkm enable`.",
        service="hardware/reset",
    ),
    Verb(
        "speed",
        "Run motions, the present one and those to come, at a fraction of their planned speed.",
        _speed,
        _speed_options,
    ),
    Verb(
        "recover",
        "Lead the robot out of a stop: find its platform again, or move it back inside\nthe limits at low speed.",
        service="recover",
    ),
    Verb(
        "mode",
        "Go to the same pose in another working mode, and wait for the end; or, without one, say in which the robot "
        "is.\n'pkm stop' halts on the way; to go on, or back, ask again for either mode.",
        _mode,
        _mode_options,
        plans=True,
        read=_read_mode,
    ),
    Verb("state", "Say what the robot does now, and where its platform and its drives are.", _state, _state_options),
)
VERBS = {verb.word: verb for verb in _ALL}
