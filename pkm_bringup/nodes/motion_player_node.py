# SPDX-License-Identifier: Apache-2.0
"""The main job on the running robot: plans a motion file, has the controller follow it, measures, reports, ends.

It measures independently: the reference from the controller and the readings from the machine, both as published in
every period, matched by their stamps; the pose of the platform is computed from the readings. It begins when every node
that it needs is well, and ends with an error as soon as one is not. Where it is to stay, it then plans and runs what
the service `play_motion` requests, one motion at a time.
"""

from __future__ import annotations

import contextlib
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage
from rclpy.action import ActionClient
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Header

from pkm_bringup.bringup import PLAYER
from pkm_bringup.command_line.measured import reported_fault, say_cut_off, say_measured
from pkm_bringup.main_job import Plan, planned
from pkm_bringup.nodes.motion_run import MotionRun, Order, RunStreams, loop_figures
from pkm_bringup.nodes.node_parts import declare_settings
from pkm_bringup.nodes.requested_motions import WITHIN, Planning, PlanningError, requested
from pkm_bringup.nodes.silences import Silences
from pkm_description.mechanism import Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import steady_timer
from pkm_description.ros.polled import PolledSubscription
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import LoopStatistics, PlatformReference
from pkm_interfaces.srv import PlayMotion
from pkm_runtime.errors import PkmError, shortage
from pkm_viewer.operations import MOTION_KEYS, PAGE_KEY, SEEN, SERVED
from pkm_viewer.report.recording import Run
from pkm_viewer.report.report import Report
from pkm_viewer.report.report_files import publish_report
from pkm_viewer.report.run_recorder import RunRecorder

CUT_OFF = 130  # exit code of a run whose motion was interrupted
_TICK = 0.2  # s, between two looks at what was published
_SILENT = 5.0  # s, of a node that publishes diagnostics once a second
_PATIENCE = 30.0  # s, for nodes to be ready once the motion is planned
_LOOP_PATIENCE = 2.5  # s, after the end, for loop statistics: they come once a second
_PAGE_PATIENCE = 5.0  # s, for the page, once all else is ready
_CLOCK_SET = 0.1  # s, more than a clock is led by in a run
_LASTING = 0.5  # s, of an error that ends the motion
_MOST_CYCLES = 1_000_000
_DRAWN_WITHIN = 20.0  # s that the end waits for the page of a report; its table is there before
_SHOWN = 400  # points of the path that is published
_KEPT_LOOPS = 4000  # loop statistics
_NEVER = (DiagnosticStatus.STALE, "has not been heard of")
_WELL = (DiagnosticStatus.OK, DiagnosticStatus.WARN)


class MotionPlayer(Node):
    """Runs one motion file and ends; the exit code of the process says whether all went well. Or stays, and serves."""

    def __init__(self) -> None:
        super().__init__("motion_player")
        waiting = self._declare()
        self._page = ""  # how far it is, as it says
        self._page_since = 0.0  # s, on the monotonic clock: all but the page is there; 0: not yet
        self._health = dict.fromkeys((name for name in waiting if name), _NEVER)
        self._started: set[str] = set()  # nodes that have been well
        self._silences = Silences(_SILENT)
        self._patient_since = 0.0  # s, on the monotonic clock; 0: the plan is not made yet
        self.exit_code: int | None = None
        self._failed = False  # a motion ended by a fault
        self._problem = ""  # what the last motion ended by, until another begins
        self._mechanism: Mechanism | None = None
        self._order: Order | None = None  # what is to be run next
        self._planning: Planning | None = None  # of the order, or of one whose planning took too long to wait for
        self._streams: RunStreams | None = None  # of the order, from when it is planned
        self._run: MotionRun | None = None
        self._begun = 0  # motions
        self._last: dict[str, object] = {}  # what was begun last, for the page
        self._well_at = 0.0  # s, on the monotonic clock
        self._reports = ThreadPoolExecutor(1, "report")  # of motions after which the robot stays: they take seconds
        self._drawn_by = math.inf  # s, on the monotonic clock: until then the page of a report is waited for
        self._wall_ahead = 0.0  # s, of the wall clock beyond the monotonic one when the motion began
        self._loops_at_end = -1  # how many loop statistics had come when the motion ended; -1: it has not
        self._loops: list[LoopStatistics] = []
        self._reference_in = PolledSubscription(self, PlatformReference, topics.PLATFORM_REFERENCE, topics.STREAM_IN)
        self._path = self.create_publisher(PathMessage, topics.PLANNED_PATH, topics.LATCHED)
        self.create_subscription(LoopStatistics, "hardware/loop_statistics", self._looped, topics.EVENTS)
        self.create_subscription(DiagnosticArray, topics.DIAGNOSTICS, self._diagnosed, topics.EVENTS)
        self._client = ActionClient(self, FollowPlatformTrajectory, topics.FOLLOW_TRAJECTORY)
        self._description = RobotDescription(self, self._build)
        self._timer = steady_timer(self, _TICK, self._tick)
        self._diagnostics = diagnostics.Diagnostics(self, self._report_health, self._description)
        if self._stay:  # a request waits for its answer, and others are to be refused meanwhile
            self.create_service(PlayMotion, topics.PLAY_MOTION, self._asked, callback_group=ReentrantCallbackGroup())

    def _declare(self) -> list[str]:
        given = declare_settings(self, PLAYER, report="", stay=False)
        self._motion, self._cycles, self._most = given["motion"], given["cycles"], given["most_waypoints"]
        self._report, self._rate, self._stay = given["report"], given["rate"], given["stay"]
        self._files = given["hardware_file"], given["tool_file"], given["keep_out_file"]
        self._reserve = declare(self, "reserve", 0.2, "of efforts and speeds, left by plans", (0.0, 0.9), fixed=True)
        self._notes = declare(self, "notes", [""], "conditions that the report names, in words", fixed=True)
        text = "whose motion files may be asked for, besides the shipped motions and `motion`; empty: none"
        folders = declare(self, "motion_folders", [""], text, fixed=True)
        self._folders = [folder for folder in folders if folder]
        text = "distance from the path that ends the run, m; 0: any"
        self._tolerance = declare(self, "path_tolerance", 0.02, text, (0.0, 10.0), fixed=True)
        text = "let the first motion wait for the page, for a few seconds"
        self._wait_for_page = declare(self, "wait_for_page", False, text, fixed=True)
        text = "speed of the way to a motion's start, as a share of what limits allow"
        self._first_move = declare(self, "first_move", 1.0, text, (0.01, 1.0), fixed=True)
        text = "nodes to be well before the motion begins, and while it runs"
        return list(declare(self, "wait_for", [""], text, fixed=True))

    def _build(self, mechanism: Mechanism) -> None:
        first = self._mechanism is None
        self._mechanism, self._patient_since = mechanism, 0.0
        if not first or self._motion in ("", "none"):
            return
        order = Order(self._motion, self._cycles, lambda problem: None, asked=0.0)  # any stop before it ends it
        try:
            order.plan = planned(mechanism, self._motion, self._reserve, *self._files)
        except PkmError as error:  # the robot is not to blame
            self.get_logger().error(f"the motion cannot be run: {error}")
            self.exit_code = 1
            return
        self._accept(order, order.plan)

    def _accept(self, order: Order, plan: Plan) -> None:
        for note in plan.job.cycle.notes:
            self.get_logger().info(note)
        self._show(plan)
        self._order = order
        self._streams = RunStreams(self, plan.planner.kinematics.actuated_names)

    def _tick(self) -> None:
        if self.exit_code is not None:
            return
        for name in self._silences.begun(time.monotonic()):
            if name in self._started:
                self._health[name] = DiagnosticStatus.STALE, f"has been silent for {_SILENT:g} s"
                why = "its process hangs, was stopped, or waits for a busy computer"
                self.get_logger().warning(f"{name} has been silent for {_SILENT:g} s: {why}")
            else:
                self._health[name] = DiagnosticStatus.STALE, "has not started yet"
                self.get_logger().warning(f"{name} has not started yet: it may still be building the robot, or hang")
        if self._run is not None:
            self._run.take()
            self._watch(self._run)
        elif self._mechanism is None:
            self._wait_for_robot()
        elif self._order is not None and self._streams is None and self._planning is not None:
            self._await_plan(self._order, self._planning)
        elif self._order is not None and self._streams is not None:
            self._streams.take(None)
            if self._all_nodes_are_well() and self._page_is_there():
                reference = self._reference_in.take()
                if self._streams.run and reference is not None:
                    self._begin(self._order, self._streams, reference)

    # Requests

    async def _asked(self, request: PlayMotion.Request, response: PlayMotion.Response) -> PlayMotion.Response:
        problem = self._why_not(request)
        order: Order | None = None
        if not problem:
            try:
                order, begun = self._ordered(request)
                problem = str(await begun)
            except PkmError as error:
                problem = str(error)
        response.success, response.message = not problem, problem
        if order is not None and order.plan is not None and not problem:
            response.duration = order.plan.job.cycle.duration
        return response

    def _why_not(self, request: PlayMotion.Request) -> str:
        if self._mechanism is None:
            return self._description.problem
        if self._run is not None or self._order is not None:
            return "a motion runs already; stop it first"
        if request.cycles > _MOST_CYCLES:
            return f"cycles is {request.cycles}, more than {_MOST_CYCLES}"
        ill = self._faulty_nodes()
        return f"the robot is not ready: {'; '.join(ill)}" if ill else ""

    def _ordered(self, request: PlayMotion.Request) -> tuple[Order, Future]:
        """Plan a motion, unless that is under way or done; the order, and the future of its answer."""
        assert self._mechanism is not None
        path = requested(request.motion, self._motion, self._folders)
        planning = self._planning
        if planning is not None and not planning.is_of(self._mechanism, path):
            if not planning.ended:
                raise PlanningError(f"{Path(planning.path).name} is still being planned; ask again in a while")
            planning = None
        if planning is None:
            planning = Planning(self._mechanism, path, self._most, self._reserve, self._files, self._wake)
        begun: Future = Future()
        self._planning, self._order = planning, Order(request.motion, max(1, request.cycles), begun.set_result)
        return self._order, begun

    def _wake(self) -> None:
        executor = self.executor
        if executor is not None:
            with contextlib.suppress(AttributeError):  # it has ended meanwhile
                executor.create_task(self._tick)

    def _await_plan(self, order: Order, planning: Planning) -> None:
        """Go on with a planned motion; answers come soon, and nothing moves long after its request."""
        if planning.plan is not None:
            self._planning, self._patient_since = None, 0.0
            order.plan = planning.plan
            self._accept(order, planning.plan)
        elif planning.problem:
            self._planning = self._order = None
            order.told(planning.problem)
        elif time.monotonic() - order.asked > WITHIN:
            self._order = None
            order.told(f"planning takes more than {WITHIN:g} s; it goes on: ask for the same again in a while")

    # Whether all is well

    def _wait_for_robot(self) -> None:
        """End where no robot is described; after a bad description, the right one may come yet."""
        self._patient_since = self._patient_since or time.monotonic()
        silent = not self.count_publishers(topics.ROBOT_DESCRIPTION)
        if (silent or not self._stay) and time.monotonic() - self._patient_since > _PATIENCE:
            who = "its publisher, such as robot_state_publisher, is not there; " if silent else ""
            self.get_logger().error(f"no robot after {_PATIENCE:.0f} s: {who}{self._description.problem}")
            self.exit_code = 1

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = status.name.rpartition("/")[2]
            if status.hardware_id != self.get_namespace():
                continue
            if name in self._health:
                self._health[name] = (status.level, status.message)
                if self._silences.hear(name, time.monotonic()):
                    self.get_logger().info(f"{name} is back")
                if status.level in _WELL:
                    self._started.add(name)
            self._page = next((one.value for one in status.values if one.key == PAGE_KEY), self._page)

    def _faulty_nodes(self) -> list[str]:
        ill = [f"{name} {self._reported(name)}" for name, (level, _) in self._health.items() if level not in _WELL]
        if not self._client.server_is_ready():
            ill.append("the controller does not offer its action")
        return ill

    def _all_nodes_are_well(self) -> bool:
        """Whether to begin; where a node has not become ready in good time, the run is over."""
        self._patient_since = self._patient_since or time.monotonic()  # not before the plan: making it takes its time
        ill = self._faulty_nodes()
        if ill and time.monotonic() - self._patient_since > _PATIENCE:
            problem = f"the motion does not begin after {_PATIENCE:.0f} s: {'; '.join(ill)}"
            self.get_logger().error(problem)
            self._give_up(problem)
            if any(
                reported == _NEVER for reported in self._health.values()
            ):  # it would not come for another motion either
                self.exit_code = 1
        return not ill

    def _page_is_there(self) -> bool:
        # whether a person who wants to see the first motion can, or has been waited for long enough
        if not self._wait_for_page or self._begun or self._page in (SERVED, SEEN):
            return True
        now = time.monotonic()
        if not self._page_since:
            self._page_since = now
            text = "the robot is ready; the motion begins when the page is there to be seen, in %g s at the latest"
            self.get_logger().info(text % _PAGE_PATIENCE)
        return now - self._page_since > _PAGE_PATIENCE

    def _give_up(self, problem: str) -> None:
        if self._streams is not None:
            self._streams.stop()
        if self._order is not None:
            self._order.told(problem)
        self._order = self._streams = None
        self._problem = problem
        if not self._stay:
            self.exit_code = 1

    def _report_health(self) -> diagnostics.Report:
        """How the last motion went: the page's own answer was only that it began."""
        if self._problem:
            return diagnostics.ERROR, f"the last motion failed: {self._problem}", self._last
        if self._run is not None:
            return diagnostics.OK, f"{self._run.order.motion} runs", self._last
        return diagnostics.OK, "no motion runs", self._last

    def _reported(self, name: str) -> str:
        level, message = self._health[name]
        return f"reports an error: {message}" if level == DiagnosticStatus.ERROR else message

    def _watch(self, run: MotionRun) -> None:
        """End the run when a node that it needs keeps reporting an error; the controller handles brief ones."""
        ill = [name for name, (level, _) in self._health.items() if level == DiagnosticStatus.ERROR]
        if not ill:
            self._well_at = time.monotonic()
        elif time.monotonic() - self._well_at > _LASTING:
            run.end("; ".join(f"{name}: {self._health[name][1]}" for name in ill))
        if not run.ended_at:
            return
        if self._loops_at_end < 0:
            self._loops_at_end = len(self._loops)
            self._problem = run.fault
            if run.fault:
                self.get_logger().error(run.fault)
            elif run.stopped:
                self.get_logger().info(f"the motion was ended: {run.stopped}")
        # the report follows when the machine has said how its loop ran until then, and all is in
        if len(self._loops) > self._loops_at_end or time.monotonic() - run.ended_at > _LOOP_PATIENCE:
            self._finish(run)

    def _looped(self, message: LoopStatistics) -> None:
        self._loops.append(message)
        if len(self._loops) > _KEPT_LOOPS or (self._run is None and len(self._loops) > 2):
            del self._loops[0]
            self._loops_at_end -= self._loops_at_end > 0

    # The motion

    def _begin(self, order: Order, streams: RunStreams, reference: PlatformReference) -> None:
        self._well_at = time.monotonic()
        self._begun += 1
        source = order.plan.motion.source if order.plan is not None else ""
        self._last = dict(zip(MOTION_KEYS, (order.motion, order.cycles, source, self._begun), strict=True))
        self._diagnostics.update_soon()
        self._run = MotionRun(order, self._client, streams, self._tolerance, self._first_move)
        self._order = self._streams = None
        self._problem = ""
        self._loops_at_end = -1
        run = self._run
        slowly = f" at {self._first_move:.0%} of its speed" if self._first_move < 1.0 else ""
        self.get_logger().info(f"the robot goes to the start of the motion{slowly}")
        beside = np.reshape(reference.redundant, (3, -1))[0]
        run.begin(np.append(messages.pose_of(reference.pose), beside), lambda: self._recorder(run))

    def _recorder(self, run: MotionRun) -> RunRecorder:
        kinematics, cycle, cycles = run.plan.planner.kinematics, run.plan.job.cycle, run.order.cycles
        self.get_logger().info(f"{cycles} cycles of {cycle.duration:.4f} s, {60.0 / cycle.duration:.1f} per minute")
        notes = tuple(note for note in self._notes if note)
        self._wall_ahead = time.time() - time.monotonic()
        name = kinematics.mechanism.name
        about = Run(name, run.plan.motion.source, self._rate, cycles, cycle.duration, notes, time.time())
        return RunRecorder(kinematics, ActuatorLimits.of(kinematics.mechanism), about)

    def _show(self, plan: Plan) -> None:
        cycle = plan.job.cycle
        base = plan.planner.kinematics.mechanism.base_link
        header = Header(stamp=self.get_clock().now().to_msg(), frame_id=base)
        poses = cycle.sample(np.linspace(0.0, cycle.duration, _SHOWN)).pose[:, :7]
        path = [PoseStamped(header=header, pose=messages.to_pose(pose)) for pose in poses]
        self._path.publish(PathMessage(header=header, poses=path))

    # The end

    @property
    def unfinished(self) -> bool:
        """Whether its end may take a while: a motion has begun, whose report is to be drawn."""
        return self._begun > 0

    def at_exit(self) -> None:
        """Report the completed part of a motion that is interrupted; of earlier ones only what is being drawn."""
        self._drawn_by = time.monotonic() + _DRAWN_WITHIN
        run = self._run
        begins = self._order is not None or not (self._begun or self._motion in ("", "none"))
        if self.exit_code is None and (begins or (run is not None and run.recorder is None)):
            where = "before the robot moved" if run is None else "on the way to the start of the motion"
            self.get_logger().info(f"ended {where}: nothing of the motion was run, and there is no report")
            self.exit_code = 1 if self._failed or reported_fault() else CUT_OFF
        if run is not None and run.recorder is not None and self.exit_code is None:
            fault, cut_off = reported_fault(), not run.ended_at
            if cut_off and not fault:
                run.stopped = "somebody ended the run"
            run.end(fault)
            self._stay = False
            self._finish(run)
            self.exit_code = CUT_OFF if cut_off and not fault else self.exit_code

    def _finish(self, run: MotionRun) -> None:
        code = 0 if run.completed and not run.fault else 1
        self._failed = self._failed or bool(run.fault)
        run.take(everything=True)
        run.streams.stop()
        self._run = None
        if not self._stay:
            say_measured()
        if self._stay:
            if run.recorder is not None:
                self._reports.submit(self._publish, run, run.recorder, list(self._loops))
            self.get_logger().info("the robot stays, and takes other motions; Ctrl-C ends it")
            return
        if run.recorder is not None and not self._publish(run, run.recorder, self._loops):
            code = 1
        self.exit_code = code

    def _publish(self, run: MotionRun, recorder: RunRecorder, loops: list[LoopStatistics]) -> bool:
        try:
            self._write(run, recorder, loops)
        except Exception as error:  # of a thread, too, which nobody waits for
            self.get_logger().error(f"no report: {shortage(error) or error}")
            self._failed = True
            return False
        return True

    def _write(self, run: MotionRun, recorder: RunRecorder, loops: list[LoopStatistics]) -> None:
        recording = recorder.recording((run.fault,) if run.fault else ())
        recording = replace(recording, completed=run.completed)
        if not len(recording) and not run.fault:
            self.get_logger().info("ended as the motion began: nothing of it was recorded, and there is no report")
            return
        notes = recording.run.notes
        if run.stopped:
            notes += (f"ended early: {run.stopped}",)
        set_by = time.time() - time.monotonic() - self._wall_ahead
        if abs(set_by) > _CLOCK_SET:
            notes += (
                f"the computer's clock was set by {set_by:+.1f} s meanwhile: times, rates and the loop are wrong by it",
            )
        if notes != recording.run.notes:
            recording = recording.about(recording.run.motion, notes)
        report = Report.of(recording, run.plan.planner.kinematics)
        loop = loop_figures(loops, recording.tally.first_wake, recording.tally.last_wake)
        report = replace(report, loop=loop) if loop is not None else report
        folder = Path(self._report) / self.get_namespace().strip("/")  # two robots of one kind write two reports
        publish_report(recording, report, folder if self._report else None, self._report_is_late)

    def _report_is_late(self) -> bool:
        return time.monotonic() > self._drawn_by

    def destroy_node(self) -> None:
        """End, when no report is being written any more."""
        self._drawn_by = min(self._drawn_by, time.monotonic() + _DRAWN_WITHIN)
        self._reports.shutdown(cancel_futures=True)
        if self.exit_code is None and self._failed:  # of a run that stayed after that
            self.exit_code = 1
        super().destroy_node()


def main() -> int:
    """Entry point."""
    code = run_node(MotionPlayer)
    if code == CUT_OFF:
        say_cut_off()
        return 0
    return code
