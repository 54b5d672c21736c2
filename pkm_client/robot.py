# SPDX-License-Identifier: Apache-2.0
"""A running robot as a script uses it: the same methods for a simulation in this process and for a robot over ROS."""

from __future__ import annotations

import importlib
import math
import numbers
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pkm_client.backend import Listeners, Result, RobotState, Task
from pkm_client.client_errors import MotionEndedError, NoRobotError, RefusedError
from pkm_client.simulated import SimulatedBackend, SimulatedGoal
from pkm_control.conveyor.boarding import Boarding
from pkm_control.conveyor.conveyor import BeltState
from pkm_control.loop.followed_motion import Tolerances
from pkm_control.loop.goal_queue import START_TOLERANCE
from pkm_control.loop.jogging import FASTEST, RENEWAL, jog_speeds
from pkm_control.loop.requests import PAUSED
from pkm_control.loop_settings import Setup
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.motion_space_paths import possible_poses, tilts_by_itself
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.point_trajectory import MotionPoints
from pkm_control.motion.trajectory import Trajectory
from pkm_control.operator_interface import NO_FURTHER, TOOK_OVER, Answer, Mode, Outcome, unready_to_jog
from pkm_control.tool import Tool, read_tools, tool_named
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Inertial, Mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_hardware.machine_kinds import USUAL_RESERVE
from pkm_kinematics import Configuration, ForwardSolution, Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_runtime.optional import ROS, ROS_REMEDY, need

if TYPE_CHECKING:
    from pkm_client.ros.ros_backend import RosBackend, RosGoal

Backend: TypeAlias = "SimulatedBackend | RosBackend"  # calls may come from any thread; errors are `NoRobotError`
Goal: TypeAlias = "SimulatedGoal | RosGoal"
Leg = tuple[Trajectory, int]  # a plan, and how often it is run
Plan = list[Leg] | MotionPoints  # legs one after the other, or a motion on a conveyor

_LOOK = 0.01  # s, between two looks at the robot
_RENEW = 0.05  # s, between two twists of a jog
_BEGIN = 0.5  # s, within which a jog is seen to begin
_REST = 15.0  # s, within which the platform comes to rest
_UNSEEN = 1.0  # s without readings, after which nothing goes on: `abort_after` of the controller
_SAME_MODE = 0.02  # rad, and of the characteristic length: by more the actuators of two modes differ
_THERE = 1e-9  # m and rad: nearer than that there is nothing to move
_HARDLY = 1e-3  # share of a jog that the platform can follow, as a 3-PRS sideways
_ROS_BACKEND = "pkm_client.ros.ros_backend"


class Robot:
    """A robot that runs: `Robot.simulated("delta")` makes one, `Robot.connect()` finds one that runs over ROS.

    Poses are (7,), x y z qx qy qz qw in the base frame, or the robot's task coordinates, as `Kinematics.inverse` takes
    them: three numbers for a Delta. Methods that move (`move_to`, `follow`, `jog`) wait for the end; with `block=False`
    they return the task as soon as the motion has begun. Any method raises `RefusedError`, with the reason, for what
    the robot cannot do, or the planner's error where there is no such motion; nothing has moved then.

    Its calls may come from several threads. A motion that is asked for while another runs is planned first; then the
    running one ends on its path, as PREEMPTED, and the new one begins where that came to rest.

    Args:
        reserve: fraction of the actuators' speeds and efforts that plans leave to the controller.
        tool_file: path of the file of its tools, empty: none; `ConfigurationError` where it cannot be used.
    """

    def __init__(self, backend: Backend, reserve: float = USUAL_RESERVE, tool_file: str = "") -> None:
        self._backend = backend
        self._reserve = reserve
        self._tool_file = tool_file
        self._listeners = Listeners()
        backend.on_output = self._listeners.put
        self.asked: float | None = None  # s, monotonic clock: when all it is told was asked for; None: when it is told
        self._turn = threading.Lock()  # of the motion that is being begun
        self._mode = 0  # the working mode in which the robot was seen last
        self._planners: dict[int, MotionPlanner] = {}  # by working mode
        self._boardings: dict[int, Boarding] = {}

    @staticmethod
    def simulated(
        robot: str | os.PathLike[str] | Mechanism = "delta", realtime: bool = True, setup: Setup | None = None
    ) -> Robot:
        """Simulate a robot in this process, without ROS: machine, controller and guard as in `pkm simulate`.

        `robot` is a name in the gallery, a file, or a mechanism; `setup` has rate, law, payload and more. Without
        `realtime` time runs as fast as it can while somebody waits for the robot. PkmError: there is no such robot, it
        cannot be controlled, or a file of the setup cannot be used.
        """
        mechanism = robot if isinstance(robot, Mechanism) else load_mechanism(robot)
        setup = setup or Setup()
        read_tools(setup.tool_file)
        return Robot(SimulatedBackend(mechanism, setup, realtime), setup.reserve, setup.tool_file)

    @staticmethod
    def connect(
        namespace: str = "",
        timeout: float = 10.0,
        reserve: float = USUAL_RESERVE,
        ready: bool = True,
        tool_file: str = "",
        conveyor_file: str = "",
    ) -> Robot:
        """Find a robot that runs over ROS (`pkm run`, a launch file); the caller needs no node, executor or context.

        Args:
            timeout: time allowed for finding it [s], with `ready` also for the first reading of the machine.
            reserve: fraction of the actuators' speeds and efforts that plans leave to the controller.
            tool_file: path of the file of its tools; empty: none.
            conveyor_file: path of the controller's file of conveyors, for motions that ride on one.

        Raises:
            NoRobotError: none answers there.
            NotInstalledError: there is no ROS in this environment.
            ConfigurationError: a file cannot be used.
        """
        read_tools(tool_file)
        need("a robot over ROS", ROS, ROS_REMEDY)
        backend = importlib.import_module(_ROS_BACKEND).RosBackend(namespace, timeout, ready, conveyor_file)
        return Robot(backend, reserve, tool_file)

    # -- what it is, and does ---------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """The robot's description."""
        return self._backend.mechanism

    @cached_property
    def kinematics(self) -> Kinematics:
        """The library's kinematics of this robot."""
        return shared_dynamics(self.mechanism).kinematics

    @property
    def _planner(self) -> MotionPlanner:
        if self._mode not in self._planners:
            dynamics = shared_dynamics(self.mechanism)
            limits = self._backend.limits
            self._planners[self._mode] = MotionPlanner(dynamics, limits, reserve=self._reserve, mode=self._mode)
        return self._planners[self._mode]

    @property
    def _boarding(self) -> Boarding:
        if self._mode not in self._boardings:
            dynamics = shared_dynamics(self.mechanism)
            check = CurveCheck(dynamics, self._backend.limits, self._mode)
            self._boardings[self._mode] = Boarding(self._planner, check)
        return self._boardings[self._mode]

    def belt(self, name: str) -> BeltState:
        """Travel [m] and speed [m/s] now of a conveyor of the conveyor file; `ConveyorError` where it has none such."""
        return self._backend.belt(name)[1]

    @property
    def state(self) -> RobotState:
        """A snapshot of the robot, not older than the call."""
        return self._backend.state()

    @property
    def outputs(self) -> dict[str, float]:
        """Values that motions have set the machine's outputs to, by name; outputs that none has set are left out."""
        return self._backend.outputs

    @property
    def payload(self) -> Inertial | None:
        """The platform's payload as the controller knows it, platform frame; None: nothing."""
        return self._backend.payload

    def on_output(self, listener: Callable[[str, float], None]) -> Callable[[], None]:
        """Call a listener, in a thread, with name and value of each output that changes; the result removes it."""
        return self._listeners.add(listener)

    def solve_ik(self, pose: ArrayLike, tool: str = "") -> Configuration:
        """Joint positions at a pose, in the present working mode; `by_name()` has those of the actuated joints.

        `pose` is (7,) or task coordinates, base frame; the tool's where one is named. RefusedError: the platform cannot
        be there. ShapeError: an array of the wrong shape. ToolError: there is no such tool.
        """
        state = self.state
        there = self._beside(self._pose(pose, tool), _whole(state.reference, state))
        solution = self.kinematics.inverse(there, mode=self._mode_of(state))
        if not solution.ok:
            raise RefusedError((f"with tool '{tool}' there: " if tool else "") + solution.reason())
        return solution

    def tool_pose(self, tool: str) -> Array:
        """Measured pose (7,) of a tool, base frame; `ToolError` where there is no such tool."""
        return self._tool(tool).on_platform(self.state.pose)

    def solve_fk(self, positions: Mapping[str, float] | ArrayLike) -> ForwardSolution:
        """Pose (7,) for positions of the actuated joints: on home's branch, in another mode on the present pose's.

        `positions` are by joint name, or (n_actuated,) [rad or m]. RefusedError: no such pose, or a joint is missing.
        """
        names = self.kinematics.actuated_names
        if isinstance(positions, Mapping):
            missing = [name for name in names if name not in positions]
            if missing:
                raise RefusedError(f"no position of {', '.join(missing)}")
            positions = [positions[name] for name in names]
        state = self.state
        near = state.pose if self._mode_of(state) else None
        solution = self.kinematics.forward(np.asarray(positions, dtype=np.float64), near=near)
        if not solution.ok:
            raise RefusedError(solution.reason())
        return solution

    # -- motions ----------------------------------------------------------------------------------------------------

    def move_to(
        self,
        pose: ArrayLike,
        speed: float = math.inf,
        *,
        nearest: bool = False,
        block: bool = True,
        tool: str = "",
        redundant: Mapping[str, float] = MappingProxyType({}),
    ) -> Task:
        """Go to a pose, in a straight line where the robot can, as fast as its limits allow.

        RefusedError: it does not begin, with the reason; nothing has moved. PkmError: it cannot be planned; with
        `block`, too: it ended early, as `Task.result` says.

        Args:
            pose: (7,) or task coordinates, base frame.
            speed: upper bound on the speed of the platform's origin, or of the tool's point [m/s].
            nearest: go to the nearest pose that the platform has (of a 3-PRS); not for one out of reach.
            tool: the tool whose pose it is and whose point moves straight; empty: the platform.
            redundant: positions [rad or m] of joints beside the pose (`kinematics.redundant_names`), by name, such as
                {"rail": 0.3}; others stay where they are, or follow the platform from there.
        """
        self._require_redundant(redundant, nearest)
        if not isinstance(speed, numbers.Real) or not speed > 0.0:
            raise RefusedError(f"the speed is {speed!r}; give a number greater than zero [m/s], or leave it out")
        there = self._pose(pose, tool)
        if not _is_somewhere(there) or abs(np.linalg.norm(there[3:]) - 1.0) > 1e-6:
            raise RefusedError(f"the pose is not finite, beyond {FASTEST:g} m, or its quaternion is not of unit length")
        if nearest and not self.kinematics.inverse(there, mode=self._mode_of(self.state)).ok:
            found = self.kinematics.nearest(there)
            if not found.ok:
                remedy = "give one within reach; 'pkm analyse ROBOT workspace' finds it"
                raise RefusedError(f"no feasible pose near that one: {found.reason()}; {remedy}")
            there = np.array(found.pose)

        def legs(here: Array) -> list[Leg]:
            return self._way(here, self._beside(there, here, redundant), speed, tool)

        return self._move(legs, block)

    def follow(
        self,
        motion: str | os.PathLike[str],
        cycles: int = 1,
        *,
        on: str = "",
        at: float | None = None,
        block: bool = True,
    ) -> Task:
        """Go to the start of a motion file, and run it; errors as `move_to`.

        Args:
            motion: path of the file, name of a shipped motion, or "auto": the one that suits the robot.
            cycles: repetitions; more than one adds a straight way back where the end is not the start.
            on: the conveyor that carries the object, for a file in the frame of a conveyor.
            at: `belt(on).travel` at the instant when the object was at the conveyor's origin [m]; None: now.

        RefusedError: it does not begin, with the reason; nothing has moved.
        """
        if cycles != int(cycles) or cycles < 1:
            raise RefusedError(f"cycles is {cycles}; give an integer greater than zero")
        file = motion_named(os.fspath(motion), self.kinematics, self._tool_file)
        if on:
            return self._move(self._ride(file, cycles, on, at), block)
        plan: list[Trajectory] = []

        def legs(here: Array) -> list[Leg]:
            if not plan:
                planner = self._planner_from(here)
                plan.append(planner.plan_closed(file) if cycles > 1 else planner.plan(file))
            return [*self._way(here, plan[0].start, math.inf), (plan[0], int(cycles))]

        return self._move(legs, block)

    def jog(
        self,
        linear: Sequence[float] = (0.0, 0.0, 0.0),
        angular: Sequence[float] = (0.0, 0.0, 0.0),
        seconds: float = 1.0,
        *,
        block: bool = True,
    ) -> Task:
        """Move the platform at a twist for some seconds of the robot's clock, then to rest; it stops before limits.
        The seconds begin with the motion and include the acceleration; the deceleration follows.

        `linear` [m/s] and `angular` [rad/s], (3,) each, are in base axes. RefusedError: a motion runs, the robot is
        stopped, or a number makes no sense. A limit that ended it, or lowered its speed, is no error but the `reason`
        of the result.
        """
        twist = np.array((*linear, *angular), dtype=np.float64)
        if twist.shape != (6,) or not (np.abs(twist) <= FASTEST).all():
            most = f"of at most {FASTEST:g}"
            raise RefusedError(f"a jog takes three numbers {most} for the linear velocity, and three for the angular")
        if not (math.isfinite(seconds) and seconds > 0.0):
            raise RefusedError(f"seconds is {seconds}; give a number greater than zero")
        self._require_possible(twist)
        asked, state = self._asked_now(), self.state
        if state.mode in (Mode.WAITING, Mode.STOPPED):
            raise RefusedError(unready_to_jog(state.mode, state.reason))
        _require(self._backend.steer(twist, asked))
        task = Task(lambda task: self._jog(task, twist, seconds, asked), self._backend.waiting)
        if block:
            task.result()
        return task

    def set_speed(self, fraction: float) -> None:
        """Run motions, present and later, at a fraction of their planned speed: 0 (halt) to 1, else `RefusedError`."""
        if not isinstance(fraction, numbers.Real):
            raise RefusedError(f"the fraction is {fraction!r}; give a number from 0 to 1")
        _require(self._backend.operator.set_speed(float(fraction)))

    def pause(self) -> None:
        """Halt the motion on its path, and wait until it is at rest; `RefusedError` where no motion runs."""
        _require(self._backend.operator.pause())
        self._until_rest()

    def resume(self) -> None:
        """Continue the paused motion, `RefusedError` where there is none; after a jog, first move back to the path."""
        _require(self._backend.operator.resume())

    def stop(self) -> None:
        """End any motion on its path, and wait until it is at rest; `RefusedError` where the controller cannot."""
        _require(self._backend.operator.stop())
        self._until_rest()

    def enable(self) -> None:
        """Enable the drives, and hold the platform where it is; `RefusedError` with the reason where they cannot be."""
        _require(self._backend.operator.enable())

    def disable(self) -> None:
        """Disable the drives, which ends any motion at once; `RefusedError` where they cannot be reached."""
        _require(self._backend.operator.disable())

    def emergency_stop(self) -> None:
        """Disable the drives at once, until `reset` and `enable`; `RefusedError` where they cannot be reached."""
        _require(self._backend.operator.emergency_stop())

    def reset(self) -> None:
        """Clear a fault of the machine; `RefusedError` where it persists. The drives stay disabled until `enable`."""
        _require(self._backend.operator.reset())

    def recover(self) -> str:
        """Find the platform's pose again after a stop, or move it slowly back inside the limits; return which."""
        answer = self._backend.operator.recover()
        _require(answer)
        self._until_rest()
        return answer.message

    @property
    def working_mode(self) -> str:
        """Label of the robot's present working mode, as `Kinematics.mode_label` gives it."""
        return self.kinematics.mode_label(self._mode_of(self.state))

    def change_working_mode(self, label: str, *, block: bool = True) -> str:
        """Go to the same pose in another working mode, in which motions and `solve_ik` are solved from then on.

        `label` is such as "+-", as `Kinematics.mode_label` gives it; of a halted change (`stop`), either mode continues
        it. The text returned says how long it takes and how far the platform leaves its place meanwhile. RefusedError:
        there is no way, or no such mode, with the reason; with `block`, too: it was halted.
        """
        answer = self._backend.operator.change_working_mode(label)
        _require(answer)
        if not block:
            return answer.message
        with self._backend.waiting():
            state = self._until_rest(math.inf)
        if state.mode is not Mode.HOLDING:
            raise RefusedError(f"it was halted: {state.reason or state.mode.name.lower()}")
        return answer.message

    def wait(self, seconds: float) -> None:
        """Let seconds pass on the robot's clock; `RefusedError` for a number that is no duration."""
        if not (math.isfinite(seconds) and seconds >= 0.0):
            raise RefusedError(f"seconds is {seconds}; give zero or more")
        self._backend.wait(seconds)

    def close(self) -> None:
        """Release the robot: a simulated one ends, one over ROS stays as it is."""
        self._backend.close()

    def __enter__(self) -> Robot:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _mode_of(self, state: RobotState) -> int:
        """Return the working mode that a state shows, and note it; the last one where it shows none."""
        k = self.kinematics
        if not state.known or state.mode is Mode.TRACKING or not np.isfinite(state.pose).all():
            return self._mode
        if missing := [name for name in k.actuated_names if name not in state.positions]:
            raise NoRobotError(f"another robot runs here now, without {', '.join(missing)}: connect anew")
        read = np.array([state.positions[name] for name in k.actuated_names])
        for mode in dict.fromkeys((self._mode, *range(k.n_modes))):
            off = np.asarray(k.inverse(_whole(state.pose, state), mode=mode).actuated) - read
            turned = np.remainder(off + np.pi, 2.0 * np.pi) - np.pi
            off = np.where(k.engine.actuated_turning, turned, off / k.characteristic_length)
            if np.abs(off).max() < _SAME_MODE:
                self._mode = mode
                break
        return self._mode

    def _tool(self, name: str) -> Tool:
        return tool_named(name, read_tools(self._tool_file))

    def _pose(self, pose: ArrayLike, tool: str = "") -> Array:
        """The platform's pose (7,) for its own or a tool's pose; with task coordinates the tool keeps its attitude."""
        k, whole = self.kinematics, pose
        if np.shape(pose) == (3,) and tilts_by_itself(k):  # such as a Delta as it was built, of which one says x y z
            whole = np.concatenate([np.asarray(pose, dtype=np.float64), k.home[3:]])
        there = np.array(k.engine.inputs.one_pose(whole), dtype=np.float64)
        if np.shape(pose) == (len(k.task.names),):
            _require_radians(k, np.asarray(pose, dtype=np.float64))
        used = self._tool(tool) if tool else None
        if used is not None:
            if np.shape(pose) != (7,):
                there = np.concatenate([there[:3], used.on_platform(there)[3:]])
            there = used.of_platform(there)
        return possible_poses(k, there[None], used)[0] if _is_somewhere(there) else there

    def _require_possible(self, twist: Array) -> None:
        k, state = self.kinematics, self.state
        if not twist.any() or not state.known or not np.isfinite(state.pose).all():
            return
        scaled = np.array([1.0, 1.0, 1.0, *np.full(3, k.characteristic_length)])
        space = np.asarray(k.subspace(_whole(state.pose, state)))[:6] * scaled[:, None]
        if np.linalg.norm(space.T @ (scaled * twist)) < _HARDLY * np.linalg.norm(scaled * twist):
            names = f"; its coordinates are {', '.join(k.task.names)}" if k.task.names else ""
            raise RefusedError(f"the platform cannot move in that direction, or hardly at all{names}")

    def _require_redundant(self, redundant: Mapping[str, float], nearest: bool) -> None:
        names = self.kinematics.redundant_names
        for name, value in redundant.items():
            if name not in names:
                raise RefusedError(f"'{name}' is no redundant joint; there are {', '.join(names) or 'none'}")
            if not isinstance(value, numbers.Real) or not math.isfinite(value):
                raise RefusedError(f"{name} is {value!r}; give a finite number [rad or m]")
        if redundant and nearest:
            raise RefusedError("'nearest' keeps redundant joints where they are; give their positions, or nearest")
        if redundant and not self.state.redundant:
            raise RefusedError(
                f"it is not known where {', '.join(redundant)} is: {self.state.reason or 'no reading came'}"
            )

    def _beside(self, pose: Array, other: Array, redundant: Mapping[str, float] = MappingProxyType({})) -> Array:
        """A pose (7,) or (7 + r,) with redundant joints where `other` has them: commanded, or following from there."""
        inputs = self.kinematics.engine.inputs
        if len(other) == 7:
            return pose
        whole = inputs.beside(pose[None], inputs.offset(other))[0].copy()
        for name, value in redundant.items():
            whole[7 + self.kinematics.redundant_names.index(name)] = value
        return whole

    def _planner_from(self, here: Array) -> MotionPlanner:
        beside = None if len(here) == 7 else self.kinematics.engine.inputs.offset(here)
        return self._planner.carrying(self.payload, beside)

    def _way(self, here: Array, there: Array, speed: float, tool: str = "") -> list[Leg]:
        here, there = self._beside(here, there), self._beside(there, here)
        if np.abs(np.append(displacement_between(here, there), there[7:] - here[7:])).max() < _THERE:
            return []
        planner = self._planner_from(here)
        return [(planner.between(here, there, speed, self._tool(tool) if tool else None), 1)]

    def _ride(self, file: MotionFile, cycles: int, on: str, at: float | None) -> Callable[[Array], MotionPoints]:
        if cycles != 1:
            raise RefusedError(f"cycles is {cycles}; a conveyor carries an object past only once")
        conveyor, belt = self._backend.belt(on)
        there = belt.travel if at is None else float(at)
        if at is not None and not math.isfinite(there):
            raise RefusedError(f"at is {at}; give the belt's travel when the object was at the origin [m]")

        def look() -> BeltState:
            return self._backend.belt(on)[1]

        return lambda here: self._boarding.plan(file, conveyor, look, there, here[:7], self.payload)

    def _move(self, legs: Callable[[Array], Plan], block: bool) -> Task:
        asked = self._asked_now()
        with self._turn:
            state = self.state
            self._mode_of(state)
            plan = legs(_place_of(state))  # before anything that runs is ended for it
            took_over = state.moving
            if took_over:
                state, asked = self._take_over()
            if block and state.speed == 0.0:
                raise RefusedError("the speed override is 0, so the motion would not begin: raise it, or do not wait")
            if took_over:
                plan = legs(_place_of(state))
            if isinstance(plan, MotionPoints):
                only = self._begin(plan, asked)
                task = Task(lambda task: self._wait_for(task, only, 0.0, 1.0, Result()), self._backend.waiting)
            else:
                first = self._begin_from(_place_of(state), plan[0], asked) if plan else None
                task = Task(partial(self._run, plan=plan, first=first, asked=asked), self._backend.waiting)
        if block:
            task.result()
        return task

    def _asked_now(self) -> float:
        return time.monotonic() if self.asked is None else self.asked

    def _begin_from(self, here: Array, leg: Leg, asked: float) -> Goal:
        try:
            return self._begin(MotionPoints.of(*leg), asked)
        except RefusedError:
            if np.abs(displacement_between(here[:7], _place_of(self.state)[:7])).max() < START_TOLERANCE:
                raise
        raise RefusedError("the platform was moved while this was planned: ask again")

    def _begin(self, motion: MotionPoints, asked: float) -> Goal:
        goal = self._backend.begin(motion, Tolerances(), asked)
        try:
            begun = goal.wait_begun()
        except KeyboardInterrupt:
            goal.cancel()
            raise
        if not begun:
            result = goal.wait()
            raise RefusedError(result.reason) if result.outcome is Outcome.INVALID_GOAL else MotionEndedError(result)
        return goal

    def _run(self, task: Task, plan: list[Leg], first: Goal | None, asked: float) -> Result:
        total = sum(leg.duration * cycles for leg, cycles in plan)
        result, done = Result(), 0.0
        for number, (leg, cycles) in enumerate(plan):
            goal = first if number == 0 and first is not None else self._begin(MotionPoints.of(leg, cycles), asked)
            part = leg.duration * cycles / total
            result = self._wait_for(task, goal, done, part, result)
            done += part
        return result

    @staticmethod
    def _wait_for(task: Task, goal: Goal, done: float, part: float, before: Result) -> Result:
        """Wait for the end of a leg; `part` is its share of the motion, `done` that of the legs before."""
        task.cancel_motion, task.progress_of = goal.cancel, lambda: done + part * goal.share
        if task.cancelled:
            goal.cancel()
        result = goal.wait()
        if result.outcome is not Outcome.SUCCESSFUL:
            raise MotionEndedError(result)
        return replace(
            result,
            max_position_error=max(result.max_position_error, before.max_position_error),
            max_rotation_error=max(result.max_rotation_error, before.max_rotation_error),
        )

    def _take_over(self) -> tuple[RobotState, float]:
        """Bring the running motion to rest; return the state there, and when that was asked for [s, monotonic]."""
        _require(self._backend.operator.take_over())
        asked = time.monotonic()
        return self._until_rest(), asked

    def _until_rest(self, longest: float = _REST) -> RobotState:
        """The state at rest, within `longest` [s]; while readings are missing, what moves may go on soon."""
        left, unseen = longest, 0.0
        while (state := self.state).moving or (state.mode is Mode.STOPPED and unseen < _UNSEEN):
            if left <= 0.0:
                raise RefusedError(f"the platform does not come to rest within {longest:g} s")
            self._backend.wait(_LOOK)
            left -= _LOOK
            unseen = 0.0 if state.moving else unseen + _LOOK
        return state

    def _jog(self, task: Task, twist: Array, seconds: float, asked: float) -> Result:
        backend = self._backend
        first = begun = backend.time
        reason, seen, answer, late = "", False, Answer(True), 0.0
        task.progress_of = lambda: (backend.time - begun) / seconds
        while (passed := backend.time - begun) < seconds and not task.cancelled:
            answer = backend.steer(twist, asked)
            if not answer.success:
                break
            begun = begun if seen else backend.time  # before it moves, no time counts
            backend.wait(min(_RENEW, seconds - passed) if seen else _LOOK)
            state = self.state
            late = max(late, backend.time - begun - passed)
            seen = seen or state.mode is Mode.JOGGING
            reason = state.reason if state.mode is Mode.JOGGING and state.reason else reason
            if reason.startswith(NO_FURTHER):
                break
            if not seen and backend.time - first > _BEGIN:
                raise RefusedError(f"the controller did not accept the jog; it is {state.mode.name.lower()}")
        backend.steer(np.zeros(6), asked)
        if answer.success:
            self._until_rest()
        state = self.state
        lost = state.mode in (Mode.WAITING, Mode.STOPPED)
        if seen and (lost or not answer.success):
            why = TOOK_OVER if state.mode is Mode.TRACKING else answer.message or state.reason
            raise MotionEndedError(Result(Outcome.STATE_LOST if lost else Outcome.PREEMPTED, why))
        _require(answer)
        halted = f"it halted as twists came {late:.2g} s apart, on a busy computer" if late > RENEWAL else ""
        return Result(reason="; ".join(words for words in (self._limited(twist), reason, halted) if words))

    def _limited(self, twist: Array) -> str:
        """What a jog takes of a twist (6,) that is faster than jogs are; empty where it is not."""
        speeds = np.linalg.norm(twist.reshape(2, 3), axis=1)
        most, units = jog_speeds(self.kinematics), ("m/s", "rad/s")
        return "; ".join(
            f"jogs go at {limit:.3g} {unit} at most, not {speed:.4g}"
            for speed, limit, unit in zip(speeds, most, units, strict=True)
            if speed > limit
        )


def _place_of(state: RobotState) -> Array:
    if state.mode is Mode.PAUSED:
        raise RefusedError(f"the controller is paused: {state.reason}" if state.reason else PAUSED)
    if not state.known:
        raise RefusedError(f"the controller is {state.mode.name.lower()}: {state.reason or 'no reading has arrived'}")
    return _whole(state.reference, state)


def _require_radians(kinematics: Kinematics, coordinates: Array) -> None:
    """Refuse task coordinates (k,) that look like degrees: more than half a turn, outside the coordinate's range."""
    for name, value in zip(kinematics.task.names, coordinates, strict=True):
        joint = kinematics.mechanism.joint_named[name]
        outside = not joint.limits.lower <= value <= joint.limits.upper
        if joint.unit == "rad" and outside and abs(value) > math.pi:
            raise RefusedError(f"{name} is {value:g} rad: if this is in degrees, give {math.radians(value):.4g}")


def _whole(pose: Array, state: RobotState) -> Array:
    """A pose (7,) with the redundant joints (r,) of a state behind it, where it tells them."""
    return np.append(pose, list(state.redundant.values()))


def _is_somewhere(pose: Array) -> bool:
    return bool((np.abs(pose) <= FASTEST).all())


def _require(answer: Answer) -> None:
    if not answer.success:
        raise RefusedError(answer.message or "it is refused")
