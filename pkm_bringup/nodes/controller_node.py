# SPDX-License-Identifier: Apache-2.0
"""The controller as a ROS node: motions by action or by topic, services for an operator, states as topics.

Its loop is one of two. Together with the hardware node (`control_node`) it is that of machine and controller, in a
process of its own. Alone, as under ros2_control, it runs in a thread here: measured states come as a topic, and
commands go out as one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from geometry_msgs.msg import InertiaStamped
from lifecycle_msgs.msg import State
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory

from pkm_bringup.bringup import CONTROLLER
from pkm_bringup.nodes.controller_services import ConveyorTopics, MeasurementService, OperatorServices
from pkm_bringup.nodes.controller_thread import ControllerThread
from pkm_bringup.nodes.node_parts import declare_settings
from pkm_bringup.nodes.shared_loop import SharedLoop
from pkm_control.controllers.controller import encoder_noise
from pkm_control.controllers.force_task import read_force_file
from pkm_control.keep_out import KeepOuts, read_keep_outs
from pkm_control.loop import requests
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.loop.goal_queue import START_DELAY, START_TOLERANCE, GoalQueue, GoalRequest
from pkm_control.loop.jogging import Jog
from pkm_control.loop.operator import Operator
from pkm_control.loop.running_loop import Controls, RunningLoop, Situation
from pkm_control.loop_settings import ControllerSettings
from pkm_control.motion.compensation import read_compliance
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.operator_interface import DAMPING, IMPEDANCE, NATURAL_FREQUENCY, POSITION, Mode, Outcome
from pkm_control.ros import motion_messages
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_description.ros import diagnostics, topics
from pkm_description.ros.parameters import declare
from pkm_description.ros.periodic import OwnThread
from pkm_description.ros.process import run_node
from pkm_description.ros.raw_rows import RowPublisher, joint_rows
from pkm_description.ros.robot_description import RobotDescription
from pkm_dynamics.dynamics import shared_dynamics
from pkm_hardware.make_machine import limits_by_file
from pkm_interfaces.action import FollowPlatformTrajectory
from pkm_interfaces.msg import ControllerState, Outputs, PlatformReference, PlatformTrajectory
from pkm_runtime.errors import PkmError

_PARAMETERS = {"delay": "command_delay", "machine_file": "hardware_file"}  # of settings that are called otherwise
_NEARLY = 0.8  # of a natural frequency that was logged: a lower one is logged anew
_LOOK_EVERY = 0.05  # s, at goals, whether they are over
_TELL_EVERY = 0.2  # s, goals how they go


class ControllerNode(Node):
    """The ROS interface of a control loop, which holds the platform while no motion is given."""

    def __init__(self, shared: SharedLoop | None = None) -> None:
        super().__init__("controller")
        self._shared = shared
        self._declare()
        self._controls = Controls()
        self._goals: list[tuple[Any, GoalRequest, Future]] = []
        self._stopped = False  # when that was last logged
        self._logged_frequency = 0.0  # rad/s: the lowered natural frequency that was logged last
        self._gains = NATURAL_FREQUENCY, DAMPING  # that the loop has
        self._next_state = self._next_feedback = 0.0
        self._set: dict[str, float] = {}  # outputs
        self._outputs_set = 0
        self._space: KeepOuts | None = None
        forward_to = self._value("forward_to")
        kind, topic = (Float64MultiArray, forward_to) if forward_to else (JointState, topics.JOINT_COMMANDS)
        self._commands = self.create_publisher(kind, topic, topics.STREAM_OUT)
        self._forwarded = self.create_publisher(JointState, topics.FORWARDED_COMMANDS, topics.STREAM_OUT)
        self._reference = self.create_publisher(PlatformReference, topics.PLATFORM_REFERENCE, topics.STREAM_OUT)
        self._state = self.create_publisher(ControllerState, topics.CONTROLLER_STATE, topics.STREAM_OUT)
        self._outputs = self.create_publisher(Outputs, topics.OUTPUTS, topics.LATCHED)
        self._payload = self.create_publisher(InertiaStamped, topics.PAYLOAD, topics.LATCHED)
        self._limits = self.create_publisher(JointTrajectory, topics.ACTUATOR_LIMITS, topics.LATCHED)
        self._conveyors = ConveyorTopics(self, self._value("conveyor_file"))
        self._alone = None if shared else ControllerThread(self, self._controls, self._priority, self.publish)
        self._description = RobotDescription(self, self._build, self._busy)
        self._controls.problem = self._description.problem

        def start_settings() -> tuple[float, float]:
            return self._value("start_delay"), self._value("start_tolerance")

        self._queue = GoalQueue(self._controls, start_settings, self._refuse)
        self._operator = OperatorServices(self, self._controls, Operator(self._controls, self._queue.withdraw_waiting))
        file = Path(self._value("measurement_file"))
        self._measurements = MeasurementService(self, self._controls, file, self._operator.beside)
        if forward_to:
            self.create_subscription(State, topics.COMMANDERS_STATE, self._hear_commanders, topics.LATCHED)
        self.create_subscription(PlatformTrajectory, topics.PLATFORM_TRAJECTORY, self._take, topics.EVENTS)
        multi_dof = topics.MULTI_DOF_TRAJECTORY
        self.create_subscription(MultiDOFJointTrajectory, multi_dof, self._take_multi_dof, topics.EVENTS)
        self._server = ActionServer(
            self,
            FollowPlatformTrajectory,
            topics.FOLLOW_TRAJECTORY,
            execute_callback=self._execute,
            goal_callback=self._offered,
            cancel_callback=self._cancel,
            goal_service_qos_profile=topics.MANY_AT_ONCE,  # the usual ten answers are fewer than a burst of goals asks
            result_service_qos_profile=topics.MANY_AT_ONCE,
        )
        self._telling = OwnThread(self, _LOOK_EVERY, self._slowly)
        self._diagnostics = diagnostics.Diagnostics(self, self._report, self._description)

    def _declare(self) -> None:
        self._priority = declare_settings(self, CONTROLLER)["realtime_priority"]
        declare(
            self, "stale_periods", 10, "periods without a state after which efforts fall back", (1, 10000), fixed=True
        )
        declare(self, "hold_time", 0.03, "silence after which held gravity becomes zero, s", (0.0, 60.0), fixed=True)
        declare(self, "abort_after", 1.0, "silence after which a motion is given up, s", (0.001, 60.0), fixed=True)
        delay = 1.0 if self._shared is None else 0.0  # the way over ROS is one
        declare(self, "command_delay", delay, "periods from a state to its efforts' effect", (0.0, 20.0), fixed=True)
        text = "topic of a forward controller of ros2_control that takes the commands; empty: they go to the machine"
        declare(self, "forward_to", "", text, fixed=True)
        text = "distance from the reference at which torque is disabled, m; 0: a fifth of the characteristic length"
        declare(self, "following_error", 0.0, text, (0.0, 100.0), fixed=True)
        declare(self, "start_delay", START_DELAY, "from a motion to be run at once to its beginning, s", (0.0, 10.0))
        declare(self, "start_tolerance", START_TOLERANCE, "largest jump at a motion's start, m and rad", (0.0, 1.0))
        declare(self, "state_rate", 100.0, "rate of controller_state, Hz", (0.1, 2000.0))

    def _value(self, name: str) -> Any:
        return self.get_parameter(name).value

    @property
    def settings(self) -> ControllerSettings:
        """The controller's settings by the parameters."""
        names = (field.name for field in fields(ControllerSettings))
        return ControllerSettings(**{name: self._value(_PARAMETERS.get(name, name)) for name in names})

    def _used_gains(self) -> tuple[float, float]:
        """Natural frequency, as far as rate and delay permit it, and damping; warns where that is less than asked."""
        asked, damping, settings = self._value("natural_frequency"), self._value("damping"), self._settings
        wanted = settings.rate
        rate = self._alone.rate if self._alone is not None else wanted
        used = settings.usable_frequency(asked, damping, rate)
        known = self._alone is None or self._alone.rate_is_known
        if (
            known
            and used < asked
            and not (self._logged_frequency and _NEARLY < used / self._logged_frequency < 1.0 / _NEARLY)
        ):
            self._logged_frequency = used
            measured = "" if rate == wanted else f", which the readings have of {wanted:g} Hz,"
            self.get_logger().warning(
                f"natural_frequency is lowered from {asked:g} to {used:.3g} rad/s: "
                f"{rate:.4g} Hz{measured} with a delay of {0.5 + settings.delay:g} periods carry no more"
            )
        elif used == asked:
            self._logged_frequency = 0.0
        return used, damping

    # The robot

    def _build(self, mechanism: Mechanism) -> None:
        dynamics = shared_dynamics(mechanism)
        limits = limits_by_file(mechanism, self._value("hardware_file"))
        space = read_keep_outs(self._value("keep_out_file"))
        force = read_force_file(self._value("force_file"))
        compliance = read_compliance(self._value("compliance_file"), dynamics.kinematics)

        soft = self.settings.law == IMPEDANCE

        def noise() -> Array:
            return encoder_noise(limits, *self._gains)

        def planning(mode: int) -> tuple[CurveCheck, Jog]:
            check = CurveCheck(dynamics, limits, mode, space, compliance, noise=noise, soft=soft)
            return check, Jog(check)

        def reference(stamp: Any, numbers: Any) -> PlatformReference:
            return motion_messages.reference_message(numbers, stamp, mechanism.base_link)

        self._mechanism, self._space, self._settings = mechanism, space, self.settings
        self._command_rows = self._streams(mechanism)
        self._reference_rows = RowPublisher(
            self._reference, reference, 19 + 3 * len(dynamics.kinematics.redundant_names)
        )
        self._set, self._outputs_set = {}, 0
        self.tell_outputs(0.0)
        self.tell_payload(0.0, None)
        self._limits.publish(motion_messages.limits_message(limits))
        self._gains = self._used_gains()
        if self._alone is not None:
            frame, repeated = force.sensor_frame or mechanism.platform_link, bool(self._value("forward_to"))
            self._alone.build(mechanism, self.settings, frame, self._command_rows, repeated)
        elif self._shared is not None:
            self._shared.offer_controller(mechanism, self.settings, planning, self._priority, self)

    def attach(self, loop: RunningLoop) -> None:
        """Serve a loop from now on."""
        loop.conveyors = {one.name: one for one in self._conveyors.conveyors}
        self._controls.loop = loop

    def tell_outputs(self, at: float, name: str = "", value: float = 0.0) -> None:
        """Publish the outputs that hold from a time of the readings on [s, clock of the node]."""
        if name:
            self._set[name] = value
            self._outputs_set += 1
        self._outputs.publish(motion_messages.outputs_message(self._set, self._outputs_set, at))

    def tell_payload(self, at: float, carried: Inertial | None) -> None:
        """Publish the payload from a time of the readings on [s, clock of the node]."""
        header = Header(stamp=motion_messages.stamp_of(at), frame_id=self._mechanism.platform_link)
        self._payload.publish(InertiaStamped(header=header, inertia=motion_messages.inertia_message(carried)))

    def _streams(self, mechanism: Mechanism) -> Callable[[Any, Any], None]:
        names, field = mechanism.actuated_joints, "position" if self._value("law") == POSITION else "effort"
        if not self._value("forward_to"):
            return joint_rows(self._commands, names, field).publish
        dated = joint_rows(self._forwarded, names, field)

        def forwarded(stamp: Any, values: Any) -> None:
            if self._forwarded.get_subscription_count():
                dated.publish(stamp, values)
            self._commands.publish(Float64MultiArray(data=values))

        return forwarded

    def _busy(self) -> str:
        loop = self._shared or self._alone
        return loop.busy if loop else ""

    # What the loop does, as topics

    def publish(self, now: Situation, stamp: Any) -> None:
        """Publish what one period of the loop did, with the stamp of its reading."""
        action, loop = now.action, self._controls.ready()
        for name, at, reading in self._conveyors.hear():
            loop.tell(requests.hear_belt, name, self._loop_time(at), reading)
        if self._shared is not None and not action.withhold_command and self._commands.get_subscription_count():
            self._command_rows(stamp, action.command)
        wanted = None if action.mode is Mode.WAITING else action.reference
        if wanted is not None and self._reference.get_subscription_count():
            self._reference_rows.publish(stamp, motion_messages.reference_numbers(wanted, self._controls.kinematics))
        at = time.monotonic()
        if at >= self._next_state:
            self._next_state = at + 1.0 / self._value("state_rate")
            if self._state.get_subscription_count():  # making it takes longer than all else that is published
                commands = "position" if self._value("law") == POSITION else "effort"
                kinematics, clearance = self._controls.kinematics, self._clearance(now)
                state = motion_messages.state_message(action, stamp, kinematics, commands, clearance)
                state.since_stop, state.why_stopped = at - self._queue.stopped, self._queue.why_stopped
                self._state.publish(state)
            self._conveyors.publish(stamp)

    def _clearance(self, now: Situation) -> float:
        """Distance of the tool from the nearest keep-out volume [m]; NaN where the platform is lost."""
        if self._space is None:
            return math.inf
        return math.nan if now.action.measured is None else self._space.distance(now.action.measured.pose)

    # Motions

    def _refuse(self, problem: str) -> None:
        self.get_logger().error(f"trajectory refused: {problem}")

    def _take(self, message: PlatformTrajectory) -> None:
        self._put(message, lambda: self._points_of(message))

    def _points_of(self, message: PlatformTrajectory) -> MotionPoints:
        return motion_messages.points_of(message, self._controls.kinematics.redundant_names)

    def _take_multi_dof(self, message: MultiDOFJointTrajectory) -> None:
        read = motion_messages.points_of_multi_dof
        self._put(message, lambda: read(message, self._controls.kinematics.mechanism.platform_link))

    def _put(
        self,
        message: PlatformTrajectory | MultiDOFJointTrajectory,
        points: Callable[[], MotionPoints],
        tolerances: Tolerances | None = None,
        age: float = 0.0,
    ) -> GoalRequest:
        self._controls.problem = self._description.problem

        age_at = time.monotonic() - age
        goal = GoalRequest(lambda: points().starting(self._loop_time), tolerances or Tolerances(), age_at)
        try:
            motion_messages.require_readable(message, self._controls.kinematics.mechanism.base_link)
        except PkmError as error:
            self._queue.refuse(goal, error)
        else:
            self._queue.put(goal)
        return goal

    def _hear_commanders(self, message: State) -> None:
        commands_blocked = "the controllers of ros2_control are not active: no command is passed on"
        self._controls.commands_blocked = "" if message.id == State.PRIMARY_STATE_ACTIVE else commands_blocked

    def _loop_time(self, stamp: float) -> float:
        return stamp if self._shared is None else self._shared.loop_time(stamp)

    def _offered(self, request: Any) -> GoalResponse:
        """Reject a goal without points or sense; other checks take longer, and are in the result."""
        problem = motion_messages.tolerance_problem(request)
        if not request.trajectory.points:
            problem = "the trajectory has no points"
        if not problem:
            return GoalResponse.ACCEPT
        self._refuse(problem)
        return GoalResponse.REJECT

    async def _execute(self, handle: Any) -> FollowPlatformTrajectory.Result:
        request = handle.request
        message, tolerances = request.trajectory, motion_messages.tolerances_of(request)
        goal = self._put(message, lambda: self._points_of(message), tolerances, request.age)
        if not goal.problem:
            over: Future = Future()
            self._goals.append((handle, goal, over))
            await over
        if handle.is_cancel_requested:
            handle.canceled()
        elif goal.motion is not None and goal.motion.outcome is Outcome.SUCCESSFUL:
            handle.succeed()
        else:
            handle.abort()
        if goal.motion is not None:
            return motion_messages.result_message(goal.motion)
        outcome = Outcome.PREEMPTED if goal.withdrawn else Outcome.INVALID_GOAL
        return FollowPlatformTrajectory.Result(error_code=int(outcome), error_string=goal.problem)

    def _cancel(self, handle: Any) -> CancelResponse:
        for one, goal, _ in tuple(self._goals):
            if one.goal_id == handle.goal_id:
                self._queue.withdraw(goal)
        return CancelResponse.ACCEPT

    def _slowly(self) -> None:
        """Send feedback of goals, and pass messages to the loop: in a thread of its own."""
        loop = self._controls.loop
        if loop is None:
            return
        if (gains := self._used_gains()) != self._gains:
            self._gains = gains
            loop.tell(requests.set_gains, *gains)
        if self._shared is not None:
            self._shared.process.note_progress()
        now = self._situation()
        self._tell_of_stops(now)
        if tell := time.monotonic() >= self._next_feedback:
            self._next_feedback = time.monotonic() + _TELL_EVERY
        for waiting in tuple(self._goals):
            handle, goal, over = waiting
            if handle.is_cancel_requested:  # before it was in the list
                self._queue.withdraw(goal)
            if goal.over:
                self._goals.remove(waiting)
                over.set_result(True)
                if self.executor is not None:
                    self.executor.wake()
            elif goal.motion is not None and now is not None and tell:
                message = motion_messages.feedback_message(goal.motion, now.action, self._controls.kinematics)
                handle.publish_feedback(message)

    def _situation(self) -> Situation | None:
        try:
            return self._controls.ready().situation
        except PkmError:
            return None

    def _tell_of_stops(self, now: Situation | None) -> None:
        silent = self._shared is not None and self._shared.process.problem  # which `hardware` says
        stopped = now is not None and now.mode is Mode.STOPPED and not silent
        if stopped and not self._stopped:
            self.get_logger().error(f"stopped: {now.action.reason if now else ''}")
        elif self._stopped and now is not None and not stopped:
            self.get_logger().info(f"no longer stopped: {now.mode.name.lower()}")
        self._stopped = stopped

    def destroy_node(self) -> None:
        """End the threads before the publishers go."""
        self._operator.end()
        self._telling.end()
        if self._shared is not None:
            self._shared.end_publishing()
        if self._alone is not None:
            self._alone.end()
        self._queue.close()
        super().destroy_node()

    def _report(self) -> diagnostics.Report:
        now = self._situation()
        if self._controls.loop is None:
            return diagnostics.ERROR, self._controls.problem or self._description.problem, {}
        if self._shared is not None and self._shared.process.failure:
            return diagnostics.ERROR, self._shared.process.failure, {}
        if now is None:
            return diagnostics.WARN, "no measured state yet", {}
        if now.mode is Mode.WAITING:
            return diagnostics.WARN, now.action.reason or "no measured state yet", {}
        values = {"law": self._value("law"), "mode": now.mode.name}
        if self._alone is not None:
            self._alone.look()
            values["readings [Hz]"] = f"{self._alone.rate:.0f}"
        clearance = self._clearance(now)
        if math.isfinite(clearance):
            values["clearance [m]"] = f"{clearance:.4f}"
        silent, belts = self._conveyors.report(self.get_clock().now().nanoseconds * 1e-9)
        values |= belts
        if now.mode is Mode.STOPPED:
            return diagnostics.ERROR, now.action.reason, values
        if silent:
            return diagnostics.WARN, silent, values
        return diagnostics.OK, now.mode.name.lower(), values


main = partial(run_node, ControllerNode)
