# SPDX-License-Identifier: Apache-2.0
"""The main job on the running robot: plans a motion file, has the controller follow it, measures, reports, ends.

It measures for itself: the reference from the controller and the readings from the machine, both as published in every
period, matched by their stamps; the pose of the platform is computed from the readings. It begins when every node it
waits for is well, and ends with an error as soon as one is not.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.node import Node
from sensor_msgs.msg import JointState

from pkm_control.loop.fixed_rate import LoopStatistics as LoopFigures
from pkm_control.loop.follower import Outcome
from pkm_control.motion.limits import ActuatorLimits
from pkm_control.motion.trajectory import Trajectory
from pkm_control.nodes import motion_messages
from pkm_control.report.recording import Run
from pkm_control.report.report import Report
from pkm_control.report.report_files import publish_report
from pkm_control.report.rows import Tally
from pkm_control.report.run_recorder import RunRecorder
from pkm_control.run.main_job import Plan, planned
from pkm_description.errors import PkmError
from pkm_description.mechanism import Mechanism
from pkm_description.ros import messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.raw_rows import RawRows
from pkm_description.ros.robot_description import RobotDescription
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import LoopStatistics, PlatformReference, PlatformTrajectory

Array = NDArray[np.float64]

_EVERYTHING = 20000  # messages: twice what the queues hold
_PATIENCE = 30.0  # s, for nodes to be ready once the motion is planned
_LOOP_PATIENCE = 2.5  # s, after the end, for loop statistics: they come once a second
_SETTLING = 0.2  # s, for the last readings to come
_LASTING = 0.5  # s, of an error that ends the motion
_POINT_PERIOD = 0.004  # s between two points that the controller gets; it interpolates
_WELL = (DiagnosticStatus.OK, DiagnosticStatus.WARN)


class MotionPlayer(Node):
    """Runs one motion file and ends; the exit code of the process says whether all went well."""

    def __init__(self) -> None:
        super().__init__("motion_player")
        self._motion = declare(self, "motion", "auto", "motion file: a shipped one, a path, or auto", fixed=True)
        self._cycles = declare(self, "cycles", 20, "how often it is run", (1, 1000000), fixed=True)
        self._notes = declare(self, "notes", [""], "conditions that the report names, in words", fixed=True)
        self._report = declare(self, "report", "", "directory for page and table; empty: none", fixed=True)
        self._rate = declare(self, "rate", 1000.0, "rate of the controller, Hz", (1.0, 10000.0), fixed=True)
        self._tolerance = declare(
            self, "path_tolerance", 0.02, "distance from the path that ends the run, m; 0: any", (0.0, 10.0), fixed=True
        )
        waiting = declare(
            self, "wait_for", [""], "nodes to be well before the motion begins, and while it runs", fixed=True
        )
        self._health = dict.fromkeys(
            (name for name in waiting if name), (DiagnosticStatus.STALE, "has not been heard of")
        )
        self._patient_since = 0.0  # s, on the monotonic clock; 0: the plan is not made yet
        self.exit_code: int | None = None
        self._plan: Plan | None = None
        self._streams: _Streams | None = None
        self._recorder: RunRecorder | None = None
        self._goal: Any = None  # the handle of the motion that runs
        self._well_at = 0.0  # s, on the monotonic clock
        self._fault = ""
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
        try:
            self._plan = planned(mechanism, self._motion)
            self._limits = ActuatorLimits.of(mechanism)
            self._streams = self._streams or _Streams(self, self._plan.planner.kinematics.actuated_names)
        except PkmError as error:  # the robot is not to blame
            self.get_logger().error(f"the motion cannot be run: {error}")
            self.exit_code = 1
            return
        for note in self._plan.job.cycle.notes:
            self.get_logger().info(note)

    def _tick(self) -> None:
        """Take what was published since; begin as soon as everybody is there."""
        if self.exit_code is not None:
            return
        if self._streams is not None:
            self._streams.take(self._recorder if self._records else None)
        if self._description.mechanism is None and "cannot be used" in self._description.problem:
            self.exit_code = 1
        elif self._ended_at:
            if len(self._loops) > self._loops_at_end or time.monotonic() - self._ended_at > _LOOP_PATIENCE:
                self._write_report()
        elif self._started:
            self._watch()
        elif self._streams is not None and self._everybody_is_well():
            reference = self._reference_in.take()
            if self._streams.run and reference is not None:
                self._begin(messages.pose_of(reference.pose))

    @property
    def _records(self) -> bool:
        """Whether what comes belongs to the run: the last of it comes a little after the result."""
        return not self._ended_at or time.monotonic() - self._ended_at < _SETTLING

    # Whether all is well

    def _diagnosed(self, message: DiagnosticArray) -> None:
        """Note how the nodes are that the motion needs."""
        for status in message.status:
            name = status.name.rpartition("/")[2]
            if status.hardware_id == self.get_namespace() and name in self._health:
                self._health[name] = (status.level, status.message)

    def _everybody_is_well(self) -> bool:
        """Whether to begin; where a node has not become ready in good time, the run is over."""
        self._patient_since = self._patient_since or time.monotonic()  # not before the plan: making it takes its time
        ill = [f"{name} {self._told(name)}" for name, (level, _) in self._health.items() if level not in _WELL]
        if not self._client.server_is_ready():
            ill.append("the controller does not offer its action")
        if ill and time.monotonic() - self._patient_since > _PATIENCE:
            self.get_logger().error(f"the motion does not begin after {_PATIENCE:.0f} s: {'; '.join(ill)}")
            self.exit_code = 1
        return not ill

    def _told(self, name: str) -> str:
        level, message = self._health[name]
        return f"reports an error: {message}" if level == DiagnosticStatus.ERROR else message

    def _watch(self) -> None:
        """End the run when a node that it needs goes on reporting an error; what passes, the controller deals with."""
        ill = [name for name, (level, _) in self._health.items() if level == DiagnosticStatus.ERROR]
        if not ill:
            self._well_at = time.monotonic()
        elif time.monotonic() - self._well_at > _LASTING:
            self._end("; ".join(f"{name}: {self._health[name][1]}" for name in ill))

    # The motion

    def _begin(self, here: Array) -> None:
        """Run the motion, from its start."""
        assert self._plan is not None
        self._started, self._well_at = True, time.monotonic()
        start = self._plan.job.cycle.start
        if np.linalg.norm(here[:3] - start[:3]) > 1e-6 or abs(here[3:] @ start[3:]) < 1.0 - 1e-12:
            self._go(self._plan.planner.between(here, start), 1, self._play)
        else:
            self._play()

    def _play(self) -> None:
        assert self._plan is not None
        planner, cycle = self._plan.planner, self._plan.job.cycle
        motion, robot = self._plan.motion.source, planner.kinematics.mechanism.name
        run = Run(robot, motion, self._rate, self._cycles, cycle.duration, tuple(note for note in self._notes if note))
        self._recorder = RunRecorder(planner.kinematics, self._limits, run)
        minute = 60.0 / cycle.duration
        self.get_logger().info(f"{self._cycles} cycles of {cycle.duration:.4f} s, {minute:.1f} per minute")
        self._go(cycle, self._cycles, self._end)

    def _go(self, trajectory: Trajectory, cycles: int, then: Any) -> None:
        """Send a motion to the controller, and call `then` when it is done."""
        goal = FollowPlatformTrajectory.Goal(
            trajectory=self._points(trajectory, cycles), path_position_tolerance=self._tolerance
        )

        def answered(sent: Any) -> None:
            self._goal = sent.result()
            self._goal.get_result_async().add_done_callback(lambda done: self._done(done, then))

        self._client.send_goal_async(goal).add_done_callback(answered)

    def _done(self, done: Any, then: Any) -> None:
        result = done.result().result
        if self._ended_at:
            return
        if result.error_code != Outcome.SUCCESSFUL:
            self._end(f"{Outcome(result.error_code).name}: {result.error_string}")
        else:
            then()

    def _points(self, trajectory: Trajectory, cycles: int) -> PlatformTrajectory:
        assert self._plan is not None
        times = np.linspace(0.0, trajectory.duration, max(2, round(trajectory.duration / _POINT_PERIOD) + 1))
        base_link = self._plan.planner.kinematics.mechanism.base_link
        return motion_messages.trajectory_message(trajectory.sample(times), base_link, cycles)

    # The end

    def _end(self, fault: str = "") -> None:
        """Note the end; the report follows when the machine has said how its loop ran until then, and all is in."""
        if self._ended_at:
            return
        if fault:
            self.get_logger().error(fault)
            if self._goal is not None:
                self._goal.cancel_goal_async()  # where the controller still listens, the platform holds
        self._fault = fault
        self._ended_at = time.monotonic()
        self._loops_at_end = len(self._loops)

    def wind_up(self) -> None:
        """Report what was done of a motion that somebody stops."""
        if self._recorder is not None and self.exit_code is None:
            self._end()
            self._write_report()

    def _write_report(self) -> None:
        """Print and write the report of what was done, and end."""
        code = 1 if self._fault else 0
        if self._streams is not None:
            self._streams.take(self._recorder if self._records else None, _EVERYTHING)
            self._streams.stop()
        if self._recorder is not None and self._plan is not None:
            faults = (self._fault,) if self._fault else ()
            try:
                recording = self._recorder.recording(faults)
                kinematics = self._plan.planner.kinematics
                report = self._with_loop(Report.of(recording, kinematics), recording.tally)
                name = f"{recording.run.robot}_{Path(recording.run.motion).stem}"
                publish_report(recording, report, Path(self._report) if self._report else None, name)
            except (PkmError, ValueError, OSError) as error:
                self.get_logger().error(f"no report: {error}")
                code = 1
        self.exit_code = code

    def _with_loop(self, report: Report, tally: Tally) -> Report:
        """Return the report with the figures that the machine's loop has of the time of the run, where it has some."""
        stamps = np.array([motion_messages.seconds(one.header.stamp) for one in self._loops])
        begin = max(int(np.searchsorted(stamps, tally.first_wake)) - 1, 0)
        loops = self._loops[begin : int(np.searchsorted(stamps, tally.last_wake)) + 1]
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
        return report.with_loop(loop)


class _Streams:
    """The reference and the measured states as they are published, read only while somebody records them.

    They exist only while they are needed: two streams of a thousand messages a second cost a good part of a core.
    """

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        def stream(kind: Any, topic: str) -> PolledSubscription:
            return PolledSubscription(node, kind, topic, topics.STREAM_RECORD, raw=True)

        def values(state: JointState) -> Array:
            fields = ("position", "velocity", "effort")
            return np.concatenate([messages.joint_values(state, names, field) for field in fields])

        def motion(reference: PlatformReference) -> Array:
            q = reference.pose.orientation
            place = *messages.vector_of(reference.pose.position), q.x, q.y, q.z, q.w
            rates = messages.twist_of(reference.twist), messages.twist_of(reference.acceleration)
            return np.concatenate([place, *rates])

        self.run = False  # both have come
        self._heard = [False, False]
        self._inputs = (
            stream(PlatformReference, topics.PLATFORM_REFERENCE),
            stream(JointState, topics.ACTUATED_JOINT_STATES),
        )
        self._references = RawRows(PlatformReference, motion)
        self._states = RawRows(JointState, values, groups=3, gap=8)  # the length of a sequence, padded to a double's

    def take(self, recorder: RunRecorder | None, most: int = 500) -> None:
        """Take what has come since, and give it to the recorder, where there is one."""
        now = time.time()
        references, states = (stream.take_all(most, until=now) for stream in self._inputs)
        self._heard = [self._heard[0] or bool(references), self._heard[1] or bool(states)]
        self.run = all(self._heard)
        if recorder is None:
            return
        for stamp, row in zip(*self._references.rows([data for data, _ in references]), strict=True):
            recorder.reference(int(stamp), row[:7], bool(row[7:13].any()))
        stamps, rows = self._states.rows([data for data, _ in states])
        for stamp, row, (_, published) in zip(stamps, rows, states, strict=True):
            positions, velocities, efforts = row.reshape(3, -1)
            recorder.reading(int(stamp), positions, velocities, efforts, published)
        recorder.advance()

    def stop(self) -> None:
        """Listen no longer."""
        for stream in self._inputs:
            stream.close()


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(MotionPlayer, args)


if __name__ == "__main__":
    raise SystemExit(main())
