# SPDX-License-Identifier: Apache-2.0
"""The main job on the running robot: plans a motion file, has the controller follow it, measures, reports, ends.

It measures for itself: the reference from the controller and the readings from the machine, both as published in every
period, matched by their stamps; the pose of the platform is computed from the readings.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from pkm_control.loop.fixed_rate import LoopStatistics as LoopFigures
from pkm_control.loop.follower import Outcome
from pkm_control.motion.default_motion import motion_named
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.trajectory import Trajectory
from pkm_control.nodes import motion_messages
from pkm_control.report.recording import Recording
from pkm_control.report.report import Report
from pkm_control.report.report_plot import plot
from pkm_control.run.main_job import Cycle, plan_cycle
from pkm_description.errors import PkmError
from pkm_description.mechanism import Mechanism
from pkm_description.ros import messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_dynamics import Dynamics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import LoopStatistics, PlatformReference, PlatformTrajectory
from pkm_kinematics import Kinematics

Array = NDArray[np.float64]

_EVERYTHING = 20000  # messages: twice what the queues hold
_PATIENCE = 30.0  # s, before the motion begins without a node that is not ready
_LOOP_PATIENCE = 2.5  # s, after the end, for loop statistics: they come once a second
_POINT_PERIOD = 0.004  # s between two points that the controller gets; it interpolates


class MotionPlayer(Node):
    """Runs one motion file and ends; the exit code of the process says whether all went well."""

    def __init__(self) -> None:
        super().__init__("motion_player")
        self._motion = declare(self, "motion", "auto", "motion file: a shipped one, a path, or auto", fixed=True)
        self._cycles = declare(self, "cycles", 20, "how often it is run", (1, 1000000), fixed=True)
        self._report = declare(self, "report", "", "directory for plot and table; empty: none", fixed=True)
        self._rate = declare(self, "rate", 1000.0, "rate of the controller, Hz", (1.0, 10000.0), fixed=True)
        self._tolerance = declare(
            self, "path_tolerance", 0.02, "distance from the path that ends the run, m; 0: any", (0.0, 10.0), fixed=True
        )
        self._waiting = set(declare(self, "wait_for", [""], "nodes to be ready before the motion begins", fixed=True))
        self._waiting.discard("")
        self._patient_since = 0.0  # s, on the monotonic clock; 0: the plan is not made yet
        self.exit_code: int | None = None
        self._plan: Cycle | None = None
        self._tape: _Tape | None = None
        self._recording = False
        self._ended_at = 0.0  # s, on the monotonic clock; 0: the motion has not ended
        self._loops_at_end = 0  # how many loop statistics had come by then
        self._loops: list[LoopStatistics] = []
        self._reference_in = PolledSubscription(self, PlatformReference, topics.PLATFORM_REFERENCE, topics.STREAM_IN)
        self.create_subscription(LoopStatistics, "hardware/loop_statistics", self._loops.append, topics.EVENTS)
        self.create_subscription(DiagnosticArray, topics.DIAGNOSTICS, self._diagnosed, topics.EVENTS)
        self._client = ActionClient(self, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        self._description = RobotDescription(self, self._build)
        self._timer = self.create_timer(0.05, self._tick)
        self._started = False

    def _build(self, mechanism: Mechanism) -> None:
        self._kinematics = Kinematics(mechanism)
        self._planner = MotionPlanner(self._kinematics, Dynamics(self._kinematics), ActuatorLimits.of(mechanism))
        try:
            motion = motion_named(self._motion, self._kinematics)
            self._plan = plan_cycle(self._planner, motion)
        except PkmError as error:  # the robot is not to blame
            self.get_logger().error(f"the motion cannot be run: {error}")
            self._finish(1)
            return
        self._motion_name = Path(motion.source).stem
        for note in self._plan.cycle.notes:
            self.get_logger().info(note)

    def _tick(self) -> None:
        """Take what was published since; begin as soon as everybody is there."""
        if self._tape is not None and not self._ended_at:
            self._tape.take(self._recording)
        if self._description.mechanism is None and "cannot be used" in self._description.problem:
            self._finish(1)
        elif self._ended_at:
            self._report_when_measured()
        elif self._plan is not None and not self._started and self._everybody_is_ready():
            self._tape = self._tape or _Tape(self)
            reference = self._reference_in.take()
            if self._tape.runs and reference is not None:
                self._begin(messages.pose_of(reference.pose))

    def _begin(self, here: Array) -> None:
        """Run the motion, from its start."""
        assert self._plan is not None
        self._started = True
        start = self._plan.cycle.start
        if np.linalg.norm(here[:3] - start[:3]) > 1e-6 or abs(here[3:] @ start[3:]) < 1.0 - 1e-12:
            self._go(self._planner.between(here, start), 1, self._play)
        else:
            self._play()

    def _diagnosed(self, message: DiagnosticArray) -> None:
        """Note which of the nodes that the motion waits for are well."""
        for status in message.status:
            if status.hardware_id == self.get_namespace() and status.level in (
                DiagnosticStatus.OK,
                DiagnosticStatus.WARN,
            ):
                self._waiting.discard(status.name.rpartition("/")[2])

    def _everybody_is_ready(self) -> bool:
        if not self._client.server_is_ready():
            return False
        self._patient_since = self._patient_since or time.monotonic()  # not before the plan: making it takes its time
        if self._waiting and time.monotonic() - self._patient_since > _PATIENCE:
            self.get_logger().warning(f"begin without: {', '.join(sorted(self._waiting))}")
            self._waiting.clear()
        return not self._waiting

    def _play(self) -> None:
        assert self._plan is not None
        self._recording = True
        minute = 60.0 / self._plan.cycle.duration
        self.get_logger().info(f"{self._cycles} cycles of {self._plan.cycle.duration:.4f} s, {minute:.1f} per minute")
        self._go(self._plan.cycle, self._cycles, self._done)

    def _go(self, trajectory: Trajectory, cycles: int, then: Any) -> None:
        """Send a motion to the controller, and call `then` when it is done."""
        goal = FollowPlatformTrajectory.Goal(
            trajectory=self._points(trajectory, cycles), path_position_tolerance=self._tolerance
        )
        self._client.send_goal_async(goal).add_done_callback(
            lambda sent: sent.result().get_result_async().add_done_callback(lambda done: self._ended(done, then))
        )

    def _ended(self, done: Any, then: Any) -> None:
        result = done.result().result
        if result.error_code != Outcome.SUCCESSFUL:
            self.get_logger().error(f"{Outcome(result.error_code).name}: {result.error_string}")
            self._finish(1)
            return
        then()

    def _points(self, trajectory: Trajectory, cycles: int) -> PlatformTrajectory:
        times = np.linspace(0.0, trajectory.duration, max(2, round(trajectory.duration / _POINT_PERIOD) + 1))
        base_link = self._kinematics.mechanism.base_link
        return motion_messages.trajectory_message(trajectory.sample(times), base_link, cycles)

    # The report

    def _done(self) -> None:
        assert self._tape is not None
        self._tape.take(True, _EVERYTHING)
        self._tape.stop()
        self._recording = False
        self._ended_at = time.monotonic()
        self._loops_at_end = len(self._loops)

    def _report_when_measured(self) -> None:
        """Report as soon as the machine has said how its loop ran until the end, or where it does not."""
        if len(self._loops) > self._loops_at_end or time.monotonic() - self._ended_at > _LOOP_PATIENCE:
            self._write_report()

    def _write_report(self) -> None:
        try:
            recording = self._recording_of()
            report = self._with_loop(Report.of(recording), recording.wakes)
        except (PkmError, ValueError) as error:
            self.get_logger().error(f"no report: {error}")
            self._finish(1)
            return
        print(report, flush=True)
        if self._report:
            directory = Path(self._report)
            directory.mkdir(parents=True, exist_ok=True)
            name = f"{recording.robot}_{self._motion_name}"
            plot(recording, directory / f"{name}.png")
            recording.save(directory / f"{name}.csv")
            print(f"plot: {directory / name}.png   table: {directory / name}.csv", flush=True)
        self._finish(0)

    def _recording_of(self) -> Recording:
        """Return what was published, one row for each stamp that both streams have."""
        assert self._plan is not None
        assert self._tape is not None
        names = self._kinematics.actuated_names
        # the first message with a stamp counts: while the machine waits for a command it repeats its state
        states = {motion_messages.seconds(m.header.stamp): (m, at) for m, at in reversed(self._tape.states())}
        references = {motion_messages.seconds(m.header.stamp): m for m in reversed(self._tape.references())}
        rows = [(t, references[t], *states[t]) for t in sorted(references.keys() & states.keys())]
        if not rows:
            raise PkmError("no reading of the machine has the stamp of a reference")
        reference = np.array([messages.pose_of(m.pose) for _, m, _, _ in rows])
        positions = np.array([messages.joint_values(state, names) for _, _, state, _ in rows])
        efforts = np.array([messages.joint_values(state, names, "effort") for _, _, state, _ in rows])
        moving = np.flatnonzero([np.any(messages.twist_of(m.twist)) for _, m, _, _ in rows])
        times = np.array([row[0] for row in rows])
        first = max(int(moving[0]) - 1, 0) if moving.size else 0
        end = times[first] + self._plan.cycle.duration * self._cycles + 1.0 / self._rate
        part = slice(first, int(np.searchsorted(times, end, side="right")))
        measured = self._kinematics.forward(positions[part], near=reference[part]).pose
        limits = ActuatorLimits.of(self._kinematics.mechanism)
        times = times[part]
        return Recording(
            robot=self._kinematics.mechanism.name,
            actuated_names=names,
            rate=self._rate,
            cycles=self._cycles,
            cycle_duration=self._plan.cycle.duration,
            times=times - times[0],
            reference=reference[part],
            measured=measured,
            efforts=efforts[part],
            saturated=np.abs(efforts[part]) >= limits.effort * (1.0 - 1e-9),
            wakes=np.array([row[3] for row in rows[part]]),
            effort_units=limits.effort_units,
        )

    def _with_loop(self, report: Report, wakes: Array) -> Report:
        """Return the report with the figures that the machine's loop has of the time of the run, where it has some."""
        stamps = np.array([motion_messages.seconds(one.header.stamp) for one in self._loops])
        begin = max(int(np.searchsorted(stamps, wakes[0])) - 1, 0)
        loops = self._loops[begin : int(np.searchsorted(stamps, wakes[-1])) + 1]
        if len(loops) < 2:
            return report
        first, last = loops[0], loops[-1]
        span = motion_messages.seconds(last.header.stamp) - motion_messages.seconds(first.header.stamp)
        cycles = int(last.cycles - first.cycles)
        missed = int(last.missed_deadlines - first.missed_deadlines)
        loop = LoopFigures(
            wanted_rate=1.0 / last.period,
            rate=cycles / span,
            deviation_p99=max(one.deviation_p99 for one in loops[1:]),
            deviation_max=max(one.worst_deviation for one in loops[1:]),
            wakes=cycles,
            missed=missed,
        )
        return replace(report, loop=loop, missed=missed)

    def _finish(self, code: int) -> None:
        self.exit_code = code


class _Tape:
    """The reference and the measured states as they are published, kept as bytes until somebody reads them.

    It exists only while it is needed: two streams of a thousand messages a second cost a good part of a core.
    """

    def __init__(self, node: Node) -> None:
        def stream(kind: Any, topic: str) -> PolledSubscription:
            return PolledSubscription(node, kind, topic, topics.STREAM_RECORD, raw=True)

        self.runs = False  # both streams have come
        self._streams = (
            stream(PlatformReference, topics.PLATFORM_REFERENCE),
            stream(JointState, topics.ACTUATED_JOINT_STATES),
        )
        self._kept: tuple[list[Any], list[Any]] = ([], [])
        self._heard = [False, False]

    def take(self, keep: bool, most: int = 500) -> None:
        """Take what has come since, and keep it or not."""
        for k, stream in enumerate(self._streams):
            taken = stream.take_all(most)
            self._heard[k] |= bool(taken)
            if keep:
                self._kept[k].extend(taken)
        self.runs = all(self._heard)

    def stop(self) -> None:
        """Listen no longer."""
        for stream in self._streams:
            stream.close()

    def references(self) -> list[PlatformReference]:
        """Return what the platform should have done, in the order it came."""
        return [deserialize_message(data, PlatformReference) for data, _ in self._kept[0]]

    def states(self) -> list[tuple[JointState, float]]:
        """Return the measured states, and when they were published [s, the machine's clock], in the order they came."""
        return [(deserialize_message(data, JointState), at) for data, at in self._kept[1]]


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(MotionPlayer, args)


if __name__ == "__main__":
    raise SystemExit(main())
