# SPDX-License-Identifier: Apache-2.0
"""Every robot by the real controller_manager: one loop per drive, or our controller through a forward controller.

`python -m bench.ros2_control_stack --write docs/ros2_control_stack.md` makes the table, row by row, and needs a
sourced ROS 2 installation with ros2_control in which this suite is built. Each cell is a launch of its own. Cells that
are done are kept in a journal, so a run that was ended goes on where it was; `--minutes` ends it in time, `--robots`,
`--ways` and `--rates` choose, `--failed` tries those again that failed or were slow. The logs of what failed are beside
the journal.

What fails, or is slow, while others have much of the computer says nothing of the loops, and what was stopped on the
way says nothing at all: such cells are told apart, and tried again.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from bench.fairness import Fairness
from bench.joint_loops import NATURAL_FREQUENCY, RATES, path_beside_home
from bench.running import running
from bench.tables import table
from pkm_bringup.ros2_control import FORWARD
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.ros.motion_messages import duration_message, trajectory_message
from pkm_description import load_mechanism, robot_names
from pkm_description.mechanism import Array
from pkm_description.ros import messages, topics
from pkm_description.ros.polled import PolledSubscription
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState
from pkm_kinematics import Kinematics
from pkm_runtime.errors import PkmError

JOURNAL = Path("reports/ros2_control_stack.jsonl")
WAYS = {  # launch arguments
    "JTC, effort": {"controllers": "joint_trajectory_controller"},
    "JTC, position": {"controllers": "joint_trajectory_controller", "command_interface": "position"},
    "platform controller": {"controllers": FORWARD, "motion": "none"},
}
_MARK = "<!-- measured -->"
_PATIENCE = 240.0  # s, for a stack to be ready: kernels of a robot that has not run yet are compiled
_HOLD = 2.0  # s, at home
_STAY = 0.5  # s, to the first point that a trajectory controller is given: where it stands, so that it shows a jump
_POINTS = 50  # a second, of the trajectory that is sent
_ROUNDING = 1e-7  # rad or m
_LOOK_EVERY = 0.02  # s
_KEPT = 0.95  # of a rate
_ENDS = 30.0  # s, until a launch that is interrupted has ended
_TRIES = 3  # of a cell that says nothing


_BUSY = "not measured: "


@dataclass(frozen=True)
class Seen:
    """What a launch came to: largest errors of a driven joint [rad or m] while held, on the way and in the end.

    `rate`: of the commands that the machine got [Hz]. `why_not`: the reason where it was refused, or failed.
    """

    held: float = np.nan
    moved: float = np.nan
    ended: float = np.nan
    rate: float = np.nan
    unit: str = ""
    why_not: str = ""

    def __str__(self) -> str:
        """For a cell of the table."""
        if self.why_not:
            return self.why_not
        numbers = ", ".join("0" if value <= _ROUNDING else f"{1e3 * value:.2g}" for value in self.errors)
        return f"{numbers} {self.unit}; {self.rate:.0f} Hz"

    @property
    def failed(self) -> bool:
        """Whether it was begun and not done."""
        return self.why_not.startswith("failed")

    @property
    def says_nothing(self) -> bool:
        """Whether the computer was not there for it, or nobody told of an error."""
        return self.why_not.startswith(_BUSY) or not (self.why_not or np.isfinite(self.errors).all())

    @property
    def errors(self) -> tuple[float, float, float]:
        """While held, on the way, in the end."""
        return self.held, self.moved, self.ended

    def kept(self, rate: float) -> bool:
        """Whether it went well: refused before anything moved, or measured at nearly the rate that was asked for."""
        return not self.failed and (bool(self.why_not) or self.rate > _KEPT * rate)


Key = tuple[str, str, float]  # robot, way, rate [Hz]


class Record:
    """Keeps a stream as bytes: to read each message as it comes would cost the robot's loops their processor."""

    def __init__(self, node: Node, message_type: Any, topic: str) -> None:
        self._type = message_type
        self._queue = PolledSubscription(node, message_type, topic, topics.STREAM_RECORD, raw=True)
        self._kept: list[tuple[bytes, float]] = []

    def look(self) -> None:
        self._kept += self._queue.take_all(most=100000)

    def forget(self) -> None:
        self._kept = []

    def newest(self) -> Any | None:
        """The newest message, or None."""
        return deserialize_message(self._kept[-1][0], self._type) if self._kept else None

    def messages(self) -> list[Any]:
        """All that are kept."""
        return [deserialize_message(one, self._type) for one, _ in self._kept]

    def rate(self) -> float:
        """Messages a second, by when they were published [Hz]."""
        times = [when for _, when in self._kept]
        return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


class Client:
    """Hears a launched robot and moves it.

    Args:
        kinematics: of the robot.
        namespace: in which it runs.
        session: of the processes that were launched.

    `fairness` looks on from the start, and anew from `begin` on: to start takes all that is there.
    """

    def __init__(self, kinematics: Kinematics, namespace: str, session: int) -> None:
        self.kinematics, self.mechanism = kinematics, kinematics.mechanism
        self.names = list(self.kinematics.actuated_names)
        self.home = np.asarray(self.kinematics.inverse(self.kinematics.home).actuated)
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = Node("bench", context=self.context, namespace=namespace)
        self.errors: list[Array] = []  # of the driven joints, against the trajectory controller's reference
        self.states = Record(self.node, JointState, topics.HARDWARE_STATES)
        self.commands = Record(self.node, JointState, topics.HARDWARE_COMMANDS)
        self.controller = Record(self.node, ControllerState, topics.CONTROLLER_STATE)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        threading.Thread(target=self._spin, daemon=True).start()
        self._jacobian = kinematics.at(kinematics.home).inverse_jacobian  # here, and not while something moves
        self._session = session
        self.fairness = Fairness(session)

    def _spin(self) -> None:
        with suppress(ExternalShutdownException):
            self.executor.spin()

    def look(self, seconds: float = 0.0) -> None:
        """Record for a while [s]."""
        until = time.monotonic() + seconds
        while True:
            self.fairness.look()
            for record in (self.states, self.commands, self.controller):
                record.look()
            if time.monotonic() >= until:
                return
            time.sleep(_LOOK_EVERY)

    def begin(self) -> None:
        self.forget()
        self.fairness = Fairness(self._session)

    def forget(self) -> None:
        """Let what was recorded go."""
        self.errors = []
        for record in (self.states, self.commands, self.controller):
            record.forget()

    def commanded(self) -> bool:
        newest = self.commands.newest()
        values = () if newest is None else newest.effort or newest.position
        self.commands.forget()
        return bool(len(values)) and bool(np.all(np.isfinite(values)))

    def positions(self) -> Array:
        """Of the driven joints (k, n_actuated) in the states that are kept.

        Raises:
            PkmError: there are none.
        """
        states = self.states.messages()
        if not states:
            raise PkmError("the machine is silent")
        return np.array([messages.joint_values(one, self.names, what="state") for one in states])

    def off(self) -> float:
        """Largest error of a driven joint on the way, as the trajectory controller, or ours, told of it.

        NaN where nobody did: ours does not while no readings come. None at all is told by who is not on the way yet.
        """
        errors = list(self.errors)
        for message in self.controller.messages():
            parts = message.position_error, message.rotation_error
            errors.append(np.abs(self._jacobian @ np.concatenate([messages.vector_of(one) for one in parts])))
        told = np.array([error for error in errors if np.isfinite(error).all()])
        return float(told.max()) if told.any() else np.nan

    def in_executor(self, call: Callable[[], Any]) -> Any:
        """Return what a call returns that is made in the thread that spins."""
        task = self.executor.create_task(call)
        self.wait(task.done)
        return task.result()

    def wait(self, condition: Callable[[], Any], patience: float = 60.0) -> None:
        """Record until a condition holds.

        Raises:
            TimeoutError: it does not come to hold in time.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if self.fairness.lost or time.monotonic() > deadline:
                raise TimeoutError("waited in vain")
            self.look(_LOOK_EVERY)

    def send(self, action_type: Any, name: str, goal: Any) -> Any:
        client = ActionClient(self.node, action_type, name)
        self.wait(client.server_is_ready)
        sent = self.in_executor(lambda: client.send_goal_async(goal, feedback_callback=self._feedback))
        self.wait(sent.done)
        if not sent.result().accepted:
            raise PkmError("the goal was not accepted")
        done = self.in_executor(sent.result().get_result_async)
        self.wait(done.done)
        return done.result().result

    def _feedback(self, message: Any) -> None:
        error = getattr(message.feedback, "error", None)  # the trajectory controller's
        if error is not None and len(error.positions):
            self.errors.append(np.abs(error.positions))

    def close(self) -> None:
        rclpy.shutdown(context=self.context)
        self.executor.shutdown(timeout_sec=2.0)


def try_out(name: str, way: str, rate: float, logs: Path | None = None) -> Seen:
    """Launch a robot, hold it, move it beside home.

    Args:
        name: of the robot.
        way: one of `WAYS`.
        rate: of machine and controller manager [Hz].
        logs: folder for the log of what fails.

    Returns:
        What was seen.
    """
    namespace = f"/{name}_{round(rate)}_{re.sub(r'[^a-z]', '', way.lower())}"
    kinematics = Kinematics(load_mechanism(name))
    course = Course.beside_home(kinematics, way)
    with launched(name, rate, namespace, WAYS[way]) as (process, log):
        client = Client(kinematics, namespace, process.pid)
        try:
            client.wait(lambda: client.commanded() or process.poll() is not None or _not_begun(log), _PATIENCE)
            ended = process.poll() is not None
            why_not = _refusal(log.read_text(encoding="utf-8")) if ended else _not_begun(log)
            seen = Seen(why_not=why_not) if why_not else _measure(client, course)
        except (TimeoutError, PkmError) as error:
            seen = Seen(why_not=f"failed: {error}{_complaint(log.read_text(encoding='utf-8'))}")
        finally:
            client.close()
        problem = client.fairness.problem(seen.kept(rate))
        if logs is not None and (problem or seen.failed):
            logs.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, logs / f"{namespace[1:]}.log")
    return Seen(why_not=f"{_BUSY}{problem}") if problem else seen


@dataclass(frozen=True, eq=False)
class Course:
    """The motion that is asked for: its action, and where the drives are in its end (n_actuated,)."""

    action: Any
    name: str
    goal: Any
    end: Array

    @staticmethod
    def beside_home(kinematics: Kinematics, way: str) -> Course | None:
        """From home to a place beside it, by the drives or by the platform; None where there is none."""
        try:
            path = path_beside_home(kinematics, _POINTS)
        except PkmError:
            return None
        still = sum(bool(np.array_equal(positions, path[0][0])) for positions, _ in path) - 1
        make = _by_platform if way == "platform controller" else _by_joints
        return make(kinematics, path[max(still, 0) :])


def _by_joints(kinematics: Kinematics, path: list[tuple[Array, Array]]) -> Course:
    from control_msgs.action import FollowJointTrajectory

    goal = FollowJointTrajectory.Goal()
    goal.trajectory.joint_names = list(kinematics.actuated_names)
    for k, (positions, rates) in enumerate(path):
        when = duration_message(_STAY + k / _POINTS)
        goal.trajectory.points.append(JointTrajectoryPoint(positions=positions, velocities=rates, time_from_start=when))
    name = "joint_trajectory_controller/follow_joint_trajectory"
    return Course(FollowJointTrajectory, name, goal, path[-1][0])


def _by_platform(kinematics: Kinematics, path: list[tuple[Array, Array]]) -> Course:
    """The same motion of the drives, told as that of the platform."""
    poses = np.array([kinematics.forward(positions).pose for positions, _ in path])
    twists = kinematics.at(poses).platform_twist(np.array([rates for _, rates in path]))
    accelerations = np.gradient(twists, 1.0 / _POINTS, axis=0)
    twists[[0, -1]] = accelerations[[0, -1]] = 0.0
    motion = MotionPoints(np.arange(len(path)) / _POINTS, poses, twists, accelerations)
    goal = FollowPlatformTrajectory.Goal(trajectory=trajectory_message(motion, kinematics.mechanism.base_link))
    return Course(FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY, goal, path[-1][0])


def _measure(client: Client, course: Course | None) -> Seen:
    if course is None:
        raise PkmError("there is no place beside home to go to")
    client.begin()
    client.look(_HOLD)
    held, rate = float(np.abs(client.positions() - client.home).max()), client.commands.rate()
    units = sorted({"mrad" if one == "rad" else "mm" for one in ActuatorLimits.of(client.mechanism).length_units})
    state = client.controller.newest()  # our controller's, where it is there
    client.forget()
    result = client.send(course.action, course.name, course.goal)
    if state is not None and state.mode == Mode.HOLDING and result.error_code == Outcome.INVALID_GOAL:
        return Seen(why_not=f"refused: {result.error_string}")
    if result.error_code:
        return Seen(why_not=f"failed: {result.error_string or result.error_code}; held within {1e3 * held:.2g}")
    client.look(0.5)  # on a busy computer what was told on the way may come after the result
    moved = client.off()
    client.states.forget()
    client.look(0.1)
    client.wait(client.states.newest, 5.0)
    ended = float(np.abs(client.positions()[-1] - course.end).max())
    return Seen(held, moved, ended, rate, " or ".join(units))


@contextmanager
def launched(
    name: str, rate: float, namespace: str, arguments: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A robot of the gallery under `ros2 launch`, and its log."""
    knobs = {"robot": name, "rate": f"{rate:g}", "namespace": namespace, "natural_frequency": f"{NATURAL_FREQUENCY:g}"}
    knobs |= {"ros2_control": "true", "rviz": "false", **arguments}
    command = ["ros2", "launch", "pkm_control", "pkm.launch.py", *(f"{key}:={value}" for key, value in knobs.items())]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output, running(command, _ENDS, output, Path(folder)) as process:
            yield process, log


def _refusal(log: str) -> str:
    """Why a launch ended by itself: refused before anything began, or failed."""
    said = [line for line in log.splitlines() if "Caught exception in launch" in line]
    if not said:
        return f"failed: the launch ended{_complaint(log)}"
    return "refused: " + re.sub(r"^.*?\): |^.*?launch.*?: ", "", said[0]).strip()


def _not_begun(log: Path) -> str:
    """Why the machine is not there, where it says so before anything moves."""
    said = [line for line in log.read_text(encoding="utf-8").splitlines() if "[hardware_node-" in line]
    errors = [line for line in said if "[ERROR]" in line]
    return f"refused by the machine: {re.sub(r'^.*]: ', '', errors[0]).strip()}" if errors else ""


def _complaint(log: str) -> str:
    """The last error in a log, for who wonders why."""
    said = [line for line in log.splitlines() if "[ERROR]" in line or "Error: " in line]
    return f" ({re.sub(r'^.*]: ', '', said[-1]).strip()})" if said else ""


def known(journal: Path) -> dict[Key, Seen]:
    """Cells of a journal."""
    cells: dict[Key, Seen] = {}
    if journal.is_file():
        for line in journal.read_text("utf-8").splitlines():
            cell = json.loads(line)
            key = cell.pop("robot"), cell.pop("way"), cell.pop("asked")
            cells[key] = Seen(**cell)
    return cells


def wanted(seen: Seen | None, rate: float, failed: bool) -> bool:
    """Whether a cell is to be measured: it was not, or said nothing, or did not go well where that is asked for."""
    return seen is None or seen.says_nothing or (failed and not seen.kept(rate))


def keep(journal: Path, key: Key, seen: Seen) -> None:
    journal.parent.mkdir(parents=True, exist_ok=True)
    name, way, rate = key
    with journal.open("a", encoding="utf-8") as out:
        out.write(json.dumps({"robot": name, "way": way, "asked": rate, **asdict(seen)}) + "\n")


def rows(cells: dict[Key, Seen], names: Sequence[str]) -> list[list[str]]:
    """Rows of the table, of the robots of which a cell is known."""
    columns = [(way, rate) for way in WAYS for rate in RATES]
    return [
        [name, *(str(cells.get((name, *column), "not measured")) for column in columns)]
        for name in names
        if any((name, *column) in cells for column in columns)
    ]


def write(page: Path, cells: dict[Key, Seen]) -> None:
    """Put what is known in place of the table of a page."""
    header = ["robot", *(f"{way}, {rate:g} Hz" for way in WAYS for rate in RATES)]
    before = page.read_text(encoding="utf-8").split(_MARK)[0]
    page.write_text(f"{before}{_MARK}\n\n{table(header, rows(cells, robot_names()))}\n", encoding="utf-8")


def main() -> None:
    """Measure, print, and write where it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=list(robot_names()), help="which; all by default")
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=WAYS, help="which; all by default")
    parser.add_argument("--rates", nargs="*", type=float, default=list(RATES), choices=RATES, help="Hz")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end")
    parser.add_argument("--failed", action="store_true", help="try those again that failed or were slow")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where cells are kept")
    parser.add_argument("--write", type=Path, help="page of the docs whose table is replaced, row by row")
    options = parser.parse_args()
    cells, until = known(options.journal), time.monotonic() + 60.0 * options.minutes
    for name in options.robots:
        for key in [(name, way, rate) for way in options.ways for rate in options.rates]:
            if time.monotonic() >= until or not wanted(cells.get(key), key[2], options.failed):
                continue
            for _ in range(_TRIES):
                cells[key] = try_out(*key, logs=options.journal.with_suffix(""))
                print(f"{name:20} {key[1]:20} {key[2]:5.0f} Hz  {cells[key]}", flush=True)
                if not cells[key].says_nothing:
                    break
            keep(options.journal, key, cells[key])
        if options.write:
            write(options.write, cells)


if __name__ == "__main__":
    main()
