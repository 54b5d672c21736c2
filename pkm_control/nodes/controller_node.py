# SPDX-License-Identifier: Apache-2.0
"""The controller as a ROS node: measured states in, efforts or positions out, motions by action or by topic."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from lifecycle_msgs.msg import State
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from pkm_control.controllers.law_settings import DAMPING, LAWS, NATURAL_FREQUENCY, POSITION, highest_natural_frequency
from pkm_control.controllers.laws import make_controller
from pkm_control.controllers.weight import holding_efforts
from pkm_control.hardware.contact.force_file import read_force_file
from pkm_control.hardware.make_machine import limits_by_file
from pkm_control.loop.fixed_rate import AIR, OVERLOADED, sleep_precisely
from pkm_control.loop.follower import TrajectoryFollower
from pkm_control.loop.modes import Mode, Outcome
from pkm_control.loop.motion import Action, Tolerances
from pkm_control.loop.rehearsal import rehearse
from pkm_control.loop.scheduling import settle
from pkm_control.loop.watches.guard import guard_of
from pkm_control.loop.watches.reading_rate import ReadingRate
from pkm_control.motion.path_events import OutputEvent
from pkm_control.nodes import motion_messages
from pkm_control.nodes.conveyor_topics import ConveyorTopics
from pkm_control.nodes.operator_services import OperatorServices
from pkm_control.nodes.realtime import loop_scheduling
from pkm_control.operation.controls import Controls
from pkm_control.operation.goal_desk import START_DELAY, START_TOLERANCE, Application, GoalDesk
from pkm_control.operation.motion_points import MotionPoints
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_description.errors import PkmError
from pkm_description.mechanism import Inertial, Mechanism
from pkm_description.ros import diagnostics, messages, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import OwnThread
from pkm_description.ros.process import run_node
from pkm_description.ros.robot_description import RobotDescription
from pkm_description.ros.streams.polled import PolledSubscription
from pkm_description.ros.streams.raw_rows import RawRows, RowPublisher
from pkm_description.ros.streams.sources import Sources
from pkm_dynamics.dynamics import shared_dynamics
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, Outputs, PlatformReference, PlatformTrajectory

FALLBACKS = ("gravity", "zero")
_IN_USE = 1.0  # s since the last measured state: as long the robot is not exchanged
_NEARLY = 0.8  # of a natural frequency that was told: another is told anew
_TELL_EVERY = 0.05  # s, goals how they go
_LOOK_EVERY = 1e-4  # s, between two looks for a message that is due


class ControllerNode(Node):
    """Sends efforts, or positions, once for each measured state; holds the platform while no motion is given."""

    def __init__(self) -> None:
        super().__init__("controller")
        self._machine_state, self._unread = "", True  # what the machine last said; whether its readings have begun
        self._declare()
        self._scheduling = loop_scheduling(self)
        self._controls = Controls()
        self._lock = self._controls.lock  # of the follower, which the control thread and the executor's use
        self._goals: list[tuple[Any, Application, Future]] = []
        self._heard = -math.inf  # s, on the monotonic clock: when the last measured state came
        self._refused = ""
        self._stopped = False  # when that was last told
        self._told = 0.0  # rad/s: to what the natural frequency was lowered when that was last told
        self._next_state = 0.0
        self._max_age = self._value("stale_periods") / self._value("rate")
        self._rate = ReadingRate(self._value("rate"), max(self._max_age, 0.1))
        self._commands = self._command_publisher(self._value("forward_to"))
        self._reference = self.create_publisher(PlatformReference, topics.PLATFORM_REFERENCE, topics.STREAM_OUT)
        self._state = self.create_publisher(ControllerState, topics.CONTROLLER_STATE, topics.STREAM_OUT)
        self._outputs = self.create_publisher(Outputs, topics.OUTPUTS, topics.LATCHED)
        self._payload = self.create_publisher(InertiaStamped, topics.PAYLOAD, topics.LATCHED)
        self._conveyors = ConveyorTopics(self, self._value("conveyor_file"))
        self._description = RobotDescription(self, self._build, self._busy)
        self._controls.problem = self._description.problem
        self._desk = GoalDesk(self._controls, self._start_settings, self._refuse)
        self._operator = OperatorServices(self, self._controls)
        self._sources = Sources(self, topics.ACTUATED_JOINT_STATES, "measured states")
        self._states = PolledSubscription(
            self, JointState, topics.ACTUATED_JOINT_STATES, topics.STREAM_IN, raw=True, sources=self._sources
        )
        self.create_subscription(State, topics.MACHINE_STATE, self._machine_said, topics.LATCHED)
        self._wrenches = PolledSubscription(self, WrenchStamped, topics.FORCE_TORQUE, topics.STREAM_IN)
        self.create_subscription(PlatformTrajectory, topics.PLATFORM_TRAJECTORY, self._take, topics.EVENTS)
        multi_dof = topics.MULTI_DOF_TRAJECTORY
        self.create_subscription(MultiDOFJointTrajectory, multi_dof, self._take_multi_dof, topics.EVENTS)
        self._server = ActionServer(
            self,
            FollowPlatformTrajectory,
            topics.FOLLOW_TRAJECTORY,
            execute_callback=self._execute,
            goal_callback=self._offered,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            goal_service_qos_profile=topics.MANY_AT_ONCE,  # the usual ten answers are fewer than a burst of goals asks
            result_service_qos_profile=topics.MANY_AT_ONCE,
        )
        self._telling = OwnThread(self, _TELL_EVERY, self._slowly)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)
        self._thread.start()

    def _declare(self) -> None:
        """Declare the parameters."""
        declare(self, "law", LAWS[0], "control law", choices=LAWS, fixed=True)
        declare(self, "natural_frequency", NATURAL_FREQUENCY, "of the tracking error, rad/s", (0.1, 1000.0))
        declare(self, "damping", DAMPING, "of the tracking error; 1 is critical", (0.3, 10.0))
        declare(self, "rate", 1000.0, "rate at which measured states come, Hz", (1.0, 10000.0), fixed=True)
        declare(
            self, "stale_periods", 10, "periods without a state after which efforts fall back", (1, 10000), fixed=True
        )
        declare(self, "fallback", FALLBACKS[0], "efforts when the state is stale", choices=FALLBACKS, fixed=True)
        declare(self, "hold_time", 0.5, "silence after which held gravity becomes zero, s", (0.0, 60.0), fixed=True)
        declare(self, "abort_after", 1.0, "silence after which a motion is given up, s", (0.001, 60.0), fixed=True)
        declare(self, "command_delay", 1.0, "periods from a state to its efforts' effect", (0.0, 20.0), fixed=True)
        text = "topic of a forward controller of ros2_control that takes the commands; empty: they go to the machine"
        declare(self, "forward_to", "", text, fixed=True)
        declare(self, "hardware_file", "", "path of the machine's file, for its limits (docs/hardware.md)", fixed=True)
        text = "path of the force file: task frame and sensor of the force laws (docs/force.md)"
        declare(self, "force_file", "", text, fixed=True)
        text = "path of the file of places to keep out of, and of the tool (docs/keep_out.md)"
        declare(self, "keep_out_file", "", text, fixed=True)
        text = "distance from the reference at which the drives are let go, m; 0: a fifth of the characteristic length"
        declare(self, "following_error", 0.0, text, (0.0, 100.0), fixed=True)
        text = "path of the file of conveyors (docs/conveyor.md)"
        declare(self, "conveyor_file", "", text, fixed=True)
        declare(self, "start_delay", START_DELAY, "from a motion to be run at once to its beginning, s", (0.0, 10.0))
        declare(self, "start_tolerance", START_TOLERANCE, "largest jump at a motion's start, m and rad", (0.0, 1.0))
        declare(self, "state_rate", 100.0, "rate of controller_state, Hz", (0.1, 2000.0))

    def _command_publisher(self, forward_to: str) -> Publisher:
        """What takes the commands: the machine, or a forward controller."""
        if forward_to:
            return self.create_publisher(Float64MultiArray, forward_to, topics.STREAM_OUT)
        return self.create_publisher(JointState, topics.JOINT_COMMANDS, topics.STREAM_OUT)

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    def _delay(self) -> float:
        """From a reading to the middle of the time in which its efforts act, periods."""
        return float(0.5 + self._value("command_delay"))

    def _settings(self) -> tuple[float, float]:
        """Natural frequency, as far as rate and delay carry it, and damping."""
        asked, damping = self._value("natural_frequency"), self._value("damping")
        rate = self._rate.value
        most = highest_natural_frequency(1.0 / rate, damping, self._delay())
        if self._value("law") == POSITION:  # which has no gains
            return asked, damping
        used = min(asked, most)
        known = self._rate.settled or rate == self._value("rate")
        if known and used < asked and not (self._told and _NEARLY < used / self._told < 1.0 / _NEARLY):
            self._told = used
            measured = (
                "" if rate == self._value("rate") else f", which the readings have of {self._value('rate'):g} Hz,"
            )
            self.get_logger().warning(
                f"natural_frequency is lowered from {asked:g} to {most:.3g} rad/s: "
                f"{rate:.4g} Hz{measured} with a delay of {self._delay():g} periods carry no more"
            )
        elif used == asked:
            self._told = 0.0
        return used, damping

    def _build(self, mechanism: Mechanism) -> None:
        dynamics = shared_dynamics(mechanism)
        kinematics = dynamics.kinematics
        limits = limits_by_file(mechanism, self._value("hardware_file"))
        lead = self._delay() / self._value("rate")
        force, space = read_force_file(self._value("force_file")), read_keep_outs(self._value("keep_out_file"))

        def new_follower() -> TrajectoryFollower:
            period = 1.0 / self._value("rate")
            delay = self._value("command_delay") * period
            controller = make_controller(
                self._value("law"), dynamics, limits, period, *self._settings(), delay, force.task
            )
            guard = guard_of(
                controller.commands,
                limits,
                self._max_age,
                lambda pose: holding_efforts(dynamics, limits, pose, payload=controller.payload),
                self._value("fallback"),
                self._value("hold_time"),
            )
            return TrajectoryFollower(
                kinematics,
                controller,
                guard,
                lead,
                self._value("abort_after"),
                space,
                self._conveyors.belts(),
                following_error=self._value("following_error"),
            )

        rehearse(new_follower(), kinematics)
        follower = new_follower()
        self._tell_effects(follower)
        settle()
        with self._lock:
            if self._controls.follower is not None:
                self._controls.follower.end(Outcome.PREEMPTED, "a new robot description has come")
            self._kinematics = kinematics
            self._readings = RawRows(JointState, partial(messages.reading_of, kinematics.actuated_names), 3, 8)
            self._command, self._reference_rows = self._streams(follower)
            self._sensor_frame = force.sensor_frame or mechanism.platform_link
            if self._machine_state:
                follower.machine.hear(self._machine_state)
            self._unread = True
            self._controls.follower = follower
            self._controls.action = None

    def _tell_effects(self, follower: TrajectoryFollower) -> None:
        """Publish what motions do besides moving, from now on as it happens."""
        effects, load = follower.effects, follower.effects.on_payload

        def output(_: OutputEvent) -> None:
            self._outputs.publish(motion_messages.outputs_message(effects, follower.time))

        def payload(carried: Inertial | None) -> None:
            load(carried)
            message = InertiaStamped(inertia=motion_messages.inertia_message(carried))
            message.header.stamp = motion_messages.stamp_of(follower.time)
            message.header.frame_id = follower.controller.kinematics.mechanism.platform_link
            self._payload.publish(message)

        self._outputs.publish(motion_messages.outputs_message(effects, 0.0))
        payload(None)
        effects.on_output, effects.on_payload = output, payload

    def _streams(self, follower: TrajectoryFollower) -> tuple[Callable[[Any, Any], None], RowPublisher]:
        """What publishes commands and references of a robot in every period."""
        mechanism = follower.controller.kinematics.mechanism
        names, base_link = list(mechanism.actuated_joints), mechanism.base_link
        field = follower.controller.commands

        def command(stamp: Any, values: Any) -> JointState:
            message = JointState(name=names, **{field: values})
            message.header.stamp = stamp
            return message

        def reference(stamp: Any, numbers: Any) -> PlatformReference:
            return motion_messages.reference_message(numbers, stamp, base_link)

        def forwarded(stamp: Any, values: Any) -> None:
            self._commands.publish(Float64MultiArray(data=values))

        rows = None if self._value("forward_to") else RowPublisher(self._commands, command, len(names))
        return (
            forwarded if rows is None else rows.publish,
            RowPublisher(self._reference, reference, motion_messages.REFERENCE_NUMBERS),
        )

    def _busy(self) -> str:
        """Why no other robot can be taken now."""
        heard = time.monotonic() - self._heard < _IN_USE
        return "states of the actuated joints come; clean up the hardware first" if heard else ""

    # The control period, in a thread of its own: an executor would take longer over a message than the control does

    def _run(self) -> None:
        """Answer each measured state as it comes, and silence when none comes."""
        period = 1.0 / self._value("rate")
        heard = time.monotonic()
        slow = 0  # periods in a row that took too long
        self._scheduling.request()
        sleep_precisely()
        try:
            while not self._stop.is_set() and self.context.ok():
                message = self._states.take()
                now = time.monotonic()
                if message is not None:
                    heard = self._heard = now
                    with self._lock:
                        self._measured(message, now)
                    busy = time.monotonic() - now
                    slow = slow + 1 if busy > period else 0
                    # until the next one is due; where this computer does not keep the rate, others get a share of it
                    air = AIR * min(busy, 4.0 * period)  # no longer after a stall, which would lose the motion
                    time.sleep(air if slow > OVERLOADED else max(0.0, 0.7 * period - busy))
                elif now - heard > self._max_age:
                    heard = now
                    with self._lock:
                        self._silent(now)
                else:
                    time.sleep(_LOOK_EVERY)
        except rclpy_implementation.RCLError:
            if self.context.ok():
                raise

    def _measured(self, message: bytes, now: float) -> None:
        follower = self._controls.follower
        if follower is None:
            return
        try:
            stamp, numbers = self._readings.row(message)
            self._refused = self._sources.problem
        except PkmError as error:
            self._refused = str(error)
        if self._refused:
            self._silent(now)
            return
        if self._unread:
            self._unread = False
            if not self._machine_state and self.count_publishers(topics.MACHINE_STATE):
                follower.machine.expect(now)  # what comes faster may come first
        n = len(self._kinematics.actuated_names)
        positions, velocities = numbers[:n], numbers[n : 2 * n]
        at = stamp.sec + 1e-9 * stamp.nanosec
        self._rate.note(at)
        if follower.controller.feels:
            self._feel(follower, now)
        self._conveyors.hear(follower.belts)
        self._send(follower.update(at, now, positions, velocities), stamp)

    def _machine_said(self, message: State) -> None:
        """Note whether the drives follow commands."""
        self._machine_state = message.label
        if self._controls.follower is not None:
            self._controls.follower.machine.hear(message.label)

    def _feel(self, follower: TrajectoryFollower, now: float) -> None:
        """Hand the newest reading of the force-torque sensor on; one of another frame is none."""
        message = self._wrenches.take()
        if message is not None and message.header.frame_id in ("", self._sensor_frame):
            follower.force.hear(messages.wrench_of(message.wrench), now)

    def _silent(self, now: float) -> None:
        if self._controls.follower is not None:
            self._send(self._controls.follower.silent(now, self._refused), self.get_clock().now().to_msg())

    def _send(self, action: Action, stamp: Any) -> None:
        """Publish what one period decided."""
        self._controls.action = action
        if not action.gives_up:
            self._command(stamp, action.command)
        if action.reference is not None:
            wanted = action.reference
            self._reference_rows.publish(stamp, np.concatenate((wanted.pose, wanted.twist, wanted.acceleration)))
        now = time.monotonic()
        if now >= self._next_state:
            self._next_state = now + 1.0 / self._value("state_rate")
            commands = self._controls.ready().controller.commands
            clearance = self._clearance(action)
            self._state.publish(motion_messages.state_message(action, stamp, self._kinematics, commands, clearance))
            self._conveyors.publish(self._controls.ready().belts, stamp)

    def _clearance(self, action: Action) -> float:
        """Of the tool from the nearest place to keep out of [m]; NaN where the platform is lost."""
        follower = self._controls.follower
        if follower is None or follower.check.space is None:
            return math.inf
        return math.nan if action.measured is None else follower.check.space.distance(action.measured.pose)

    # Motions

    def _start_settings(self) -> tuple[float, float]:
        return self._value("start_delay"), self._value("start_tolerance")

    def _refuse(self, problem: str) -> None:
        self.get_logger().error(f"trajectory refused: {problem}")

    def _take(self, message: PlatformTrajectory) -> None:
        self._apply(message, lambda: motion_messages.points_of(message))

    def _take_multi_dof(self, message: MultiDOFJointTrajectory) -> None:
        def points() -> MotionPoints:
            return motion_messages.points_of_multi_dof(message, self._kinematics.mechanism.platform_link)

        self._apply(message, points)

    def _apply(
        self,
        message: PlatformTrajectory | MultiDOFJointTrajectory,
        points: Callable[[], MotionPoints],
        tolerances: Tolerances | None = None,
    ) -> Application:
        """Hand a trajectory to the desk, if it can be read at all."""
        self._controls.problem = self._description.problem
        application = Application(points, tolerances or Tolerances())
        try:
            motion_messages.require_readable(message, self._controls.kinematics.mechanism.base_link)
        except PkmError as error:
            self._desk.refuse(application, error)
        else:
            self._desk.apply(application)
        return application

    def _offered(self, request: Any) -> GoalResponse:
        """Reject a goal without points or sense; whatever else is wrong takes longer to see, and is in the result."""
        problem = motion_messages.tolerance_problem(request)
        if not request.trajectory.points:
            problem = "the trajectory has no points"
        if not problem:
            return GoalResponse.ACCEPT
        self._refuse(problem)
        return GoalResponse.REJECT

    async def _execute(self, goal: Any) -> FollowPlatformTrajectory.Result:
        request = goal.request
        message, tolerances = request.trajectory, motion_messages.tolerances_of(request)
        application = self._apply(message, lambda: motion_messages.points_of(message), tolerances)
        if not application.problem:
            over: Future = Future()
            self._goals.append((goal, application, over))
            await over
        if goal.is_cancel_requested:
            goal.canceled()
        elif application.motion is not None and application.motion.outcome is Outcome.SUCCESSFUL:
            goal.succeed()
        else:
            goal.abort()
        if application.motion is not None:
            return motion_messages.result_message(application.motion)
        outcome = Outcome.PREEMPTED if application.withdrawn else Outcome.INVALID_GOAL
        return FollowPlatformTrajectory.Result(error_code=int(outcome), error_string=application.problem)

    def _slowly(self) -> None:
        """Tell goals how they go, and the controller what its parameters are: in a thread of its own."""
        follower, action = self._controls.follower, self._controls.action
        if follower is None:
            return
        self._tell_of_stops(action)
        follower.controller.set_gains(*self._settings())
        for waiting in tuple(self._goals):
            goal, application, over = waiting
            motion = application.motion
            if goal.is_cancel_requested:
                self._desk.withdraw(application)
            if application.over:
                self._goals.remove(waiting)
                over.set_result(True)
                if self.executor is not None:
                    self.executor.wake()
            elif motion is not None and action is not None:
                goal.publish_feedback(motion_messages.feedback_message(motion, action, self._kinematics))

    def _tell_of_stops(self, action: Action | None) -> None:
        """Log when and why the platform is no longer held, and when it is again."""
        stopped = action is not None and action.mode is Mode.STOPPED
        if stopped and not self._stopped:
            self.get_logger().error(f"stopped: {action.reason if action else ''}")
        elif self._stopped and action is not None and not stopped:
            self.get_logger().info(f"no longer stopped: {action.mode.name.lower()}")
        self._stopped = stopped

    def destroy_node(self) -> None:
        """End the control thread before its publishers go."""
        self._stop.set()
        self._telling.end()
        self._desk.close()
        self._thread.join(2.0)
        super().destroy_node()

    def _report(self) -> diagnostics.Report:
        action = self._controls.action
        self._sources.look()
        if self._controls.follower is None:
            return diagnostics.ERROR, self._description.problem, {}
        if action is None or action.mode is Mode.WAITING:
            return diagnostics.WARN, action.reason if action else "no measured state yet", {}
        values = {"law": self._value("law"), "mode": action.mode.name, "readings [Hz]": f"{self._rate.value:.0f}"}
        clearance = self._clearance(action)
        if math.isfinite(clearance):
            values["clearance [m]"] = f"{clearance:.4f}"
        follower = self._controls.follower
        values |= self._conveyors.report(follower.belts, follower.time)
        if action.mode is Mode.STOPPED:
            return diagnostics.ERROR, action.reason, values
        return diagnostics.OK, action.mode.name.lower(), values


def main(args: list[str] | None = None) -> int:
    """Entry point."""
    return run_node(ControllerNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
