# SPDX-License-Identifier: Apache-2.0
"""A running robot in the hands of a script: the same verbs against a simulation in this process, and over ROS."""

from __future__ import annotations

import importlib
import math
import numbers
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_control.client.backend import Backend, Goal
from pkm_control.client.errors import MotionEndedError, RefusedError
from pkm_control.client.listeners import Listeners
from pkm_control.client.simulated import SimulatedBackend
from pkm_control.client.state import RobotState
from pkm_control.client.task import Result, Task
from pkm_control.conveyor.boarding import Boarding
from pkm_control.conveyor.conveyor import BeltState
from pkm_control.loop.modes import Mode, Outcome
from pkm_control.loop.motion import Tolerances
from pkm_control.loop.requests import PAUSED
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.files.default_motion import motion_named
from pkm_control.motion.files.motion_file import MotionFile
from pkm_control.motion.planning import MotionPlanner
from pkm_control.motion.trajectory import Trajectory
from pkm_control.operation.answer import Answer
from pkm_control.operation.motion_points import MotionPoints
from pkm_control.optional import ROS, ROS_REMEDY, need
from pkm_control.realism import USUAL_RESERVE
from pkm_control.run.simulate_options import Setup
from pkm_control.space.tool import Tool, read_tools, tool_named
from pkm_description import load_mechanism
from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics.dynamics import shared_dynamics
from pkm_kinematics import ForwardSolution, InverseSolution, Kinematics
from pkm_kinematics.kernels.compiled_rotations import displacement_between

Array = NDArray[np.float64]
Leg = tuple[Trajectory, int]  # a plan, and how often it is run
Plan = list[Leg] | MotionPoints  # legs one after the other, or a motion on a conveyor

_LOOK = 0.01  # s, between two looks at the robot
_RENEW = 0.05  # s, between two twists of a jog
_BEGIN = 0.5  # s, within which a jog is seen to begin
_REST = 15.0  # s, within which the platform comes to rest
_SAME_MODE = 0.02  # rad, and of the characteristic length: by more the actuators of two modes differ
_THERE = 1e-9  # m and rad: nearer than that there is nothing to move
_ROS_BACKEND = "pkm_control.client.ros.backend"


class Robot:
    """A robot that runs: `Robot.simulated("delta")` makes one, `Robot.connect()` finds one that runs over ROS.

    Poses are (7,), x y z qx qy qz qw in the base frame, or the robot's task coordinates, as `Kinematics.inverse` takes
    them: three numbers for a Delta. Verbs that move (`move_to`, `follow`, `jog`) wait for the end; with `block=False`
    they return as soon as the motion has begun. What the robot does not do is an error that says why: `RefusedError`,
    or the error of the planner where there is no such motion; nothing has moved then.

    Its calls may come from several threads. A motion that is asked for while another runs is planned first; then the
    one before ends on its path, as PREEMPTED, and the new one begins where that came to rest.

    Args:
        backend: the running robot.
        reserve: part of the actuators' speeds and efforts that plans leave to the controller.
        tool_file: path of the file of its tools; empty: none.

    Raises:
        MachineFileError: the file of tools cannot be used.
    """

    def __init__(self, backend: Backend, reserve: float = USUAL_RESERVE, tool_file: str = "") -> None:
        self._backend = backend
        self._reserve = reserve
        self._tool_file = tool_file
        self._listeners = Listeners()
        backend.on_output = self._listeners.put
        self._motion: Task | None = None  # that was begun last
        self._turn = threading.Lock()  # of the motion that is being begun
        self._mode = 0  # the working mode in which the robot was seen last
        self._planners: dict[int, MotionPlanner] = {}  # by working mode
        self._boardings: dict[int, Boarding] = {}

    @staticmethod
    def simulated(
        robot: str | os.PathLike[str] | Mechanism = "delta", realtime: bool = True, setup: Setup | None = None
    ) -> Robot:
        """Bring a robot to life in this process, without ROS: machine, controller and guard as in `pkm simulate`.

        Args:
            robot: name in the gallery, file, or what `load_mechanism` returned.
            realtime: its time passes as the clock's; otherwise as fast as it can while somebody waits for the robot.
            setup: rate, law, payload and more; the usual ones where None.

        Returns:
            The robot, which holds its home.

        Raises:
            PkmError: there is no such robot, it cannot be controlled, or a file of the setup cannot be used.
        """
        mechanism = robot if isinstance(robot, Mechanism) else load_mechanism(robot)
        setup = setup or Setup()
        read_tools(setup.tool_file)
        return Robot(SimulatedBackend(mechanism, setup, realtime), setup.reserve, setup.tool_file)

    @staticmethod
    def connect(
        namespace: str = "",
        timeout: float = 10.0,
        hardware_file: str = "",
        reserve: float = USUAL_RESERVE,
        ready: bool = True,
        tool_file: str = "",
        conveyor_file: str = "",
    ) -> Robot:
        """Find a robot that runs over ROS (`pkm run`, a launch file). No node, executor or context is asked for.

        Args:
            namespace: of its nodes.
            timeout: how long it may take to be found [s].
            hardware_file: path of the machine's file, where it has tighter limits than the description.
            reserve: part of the actuators' speeds and efforts that plans leave to the controller.
            ready: wait until the controller hears the machine, too, within that time; it may be off.
            tool_file: path of the file of its tools; empty: none.
            conveyor_file: path of the controller's file of conveyors, for motions that ride on one.

        Returns:
            The robot.

        Raises:
            NoRobotError: none answers there.
            NotInstalledError: there is no ROS in this environment.
            MachineFileError: a file cannot be used.
        """
        read_tools(tool_file)
        need("a robot over ROS", ROS, ROS_REMEDY)
        backend = importlib.import_module(_ROS_BACKEND).RosBackend(
            namespace, timeout, hardware_file, ready, conveyor_file
        )
        return Robot(backend, reserve, tool_file)

    # -- what it is, and does ---------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """The robot as it is described."""
        return self._backend.mechanism

    @cached_property
    def kinematics(self) -> Kinematics:
        """The library's, of this robot."""
        return shared_dynamics(self.mechanism).kinematics

    @property
    def _planner(self) -> MotionPlanner:
        """Of the present working mode, as far as that was seen."""
        if self._mode not in self._planners:
            dynamics = shared_dynamics(self.mechanism)
            limits = self._backend.limits
            self._planners[self._mode] = MotionPlanner(
                dynamics.kinematics, dynamics, limits, reserve=self._reserve, mode=self._mode
            )
        return self._planners[self._mode]

    @property
    def _boarding(self) -> Boarding:
        """Of the same."""
        if self._mode not in self._boardings:
            dynamics = shared_dynamics(self.mechanism)
            check = CurveCheck(dynamics.kinematics, dynamics, self._backend.limits, self._mode)
            self._boardings[self._mode] = Boarding(self._planner, check)
        return self._boardings[self._mode]

    def belt(self, name: str) -> BeltState:
        """Where a conveyor is now.

        Args:
            name: of it, in the conveyor file.

        Returns:
            Its travel [m] and speed [m/s], and why they are not known.

        Raises:
            ConveyorError: there is no such conveyor.
        """
        return self._backend.belt(name)[1]

    @property
    def state(self) -> RobotState:
        """One look at the robot, not older than the call."""
        return self._backend.state()

    @property
    def outputs(self) -> dict[str, float]:
        """What motions have set the machine's outputs to, by name; without those that none has set."""
        return self._backend.outputs

    @property
    def payload(self) -> Inertial | None:
        """What the controller knows the platform to carry, in its frame; None where that is nothing."""
        return self._backend.payload

    def on_output(self, listener: Callable[[str, float], None]) -> Callable[[], None]:
        """Be told of each output that a motion gives another value from now on.

        Args:
            listener: called with name and value, in a thread of its own, in the order of the events.

        Returns:
            Ends it.
        """
        return self._listeners.add(listener)

    def solve_ik(self, pose: ArrayLike, tool: str = "") -> InverseSolution:
        """Joint positions at a pose, in the present working mode.

        Args:
            pose: (7,), or task coordinates.
            tool: whose pose it is; the platform's where empty.

        Returns:
            The solution: `by_name()` has the positions of the actuated joints.

        Raises:
            RefusedError: the platform cannot be there, with the reason.
            ShapeError: an array of the wrong shape.
            ToolError: there is no such tool.
        """
        solution = self.kinematics.inverse(self._pose(pose, tool), mode=self._mode_of(self.state))
        if not solution.ok:
            raise RefusedError(self._with_tool(tool) + solution.reason())
        return solution

    def tool_pose(self, tool: str) -> Array:
        """Where a tool is.

        Args:
            tool: its name.

        Returns:
            Pose (7,) as measured, base frame.

        Raises:
            ToolError: there is no such tool.
        """
        return self._tool(tool).on_platform(self.state.pose)

    def solve_fk(self, positions: Mapping[str, float] | ArrayLike) -> ForwardSolution:
        """The pose for positions of the actuated joints: that which continues home, in another mode the present pose.

        Args:
            positions: by joint name, or (n_actuated,), rad or m.

        Returns:
            The solution, whose `pose` is (7,).

        Raises:
            RefusedError: there is no such pose, with the reason; or a joint is missing.
            ShapeError: an array of the wrong shape.
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
    ) -> Task:
        """Go to a pose, straight where the robot can, as fast as its limits allow.

        Args:
            pose: (7,), or task coordinates.
            speed: of the platform's origin, or the tool's point, at most [m/s].
            nearest: go to the nearest pose that the platform can take, where it cannot take this one.
            block: wait for the end.
            tool: whose pose it is, and whose point goes straight; the platform's where empty.

        Returns:
            The task, which is done where `block`.

        Raises:
            RefusedError: it does not begin, with the reason; nothing has moved for it.
            PkmError: it cannot be planned. Where `block`, too: it ended early, as `Task.result` says.
        """
        if not isinstance(speed, numbers.Real) or not speed > 0.0:
            raise RefusedError(f"the speed is {speed!r}; give a number greater than zero [m/s], or leave it out")
        there = self._pose(pose, tool)
        if not np.isfinite(there).all() or abs(np.linalg.norm(there[3:]) - 1.0) > 1e-6:
            raise RefusedError("the pose is not finite, or its quaternion is not of unit length")
        if nearest and not self.kinematics.inverse(there, mode=self._mode_of(self.state)).ok:
            found = self.kinematics.nearest(there)
            if not found.ok:
                raise RefusedError(f"no pose near to that one: {found.reason()}")
            there = np.array(found.pose)

        def legs(here: Array) -> list[Leg]:
            return self._way(here, there, speed, tool)

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
        """Go to the start of a motion file, and run it.

        Args:
            motion: path of the file, name of a shipped motion, or "auto": what suits the robot.
            cycles: how often; more than once, a straight way back is added where it ends elsewhere than it begins.
            on: the conveyor that carries the object, for a file in the frame of a conveyor.
            at: what `belt(on).travel` was when the object was at the conveyor's origin [m]; now where None.
            block: wait for the end.

        Returns:
            The task, which is done where `block`.

        Raises:
            RefusedError: it does not begin, with the reason; nothing has moved for it.
            PkmError: the file cannot be read, or planned. Where `block`, too: it ended early, as `Task.result` says.
        """
        if cycles != int(cycles) or cycles < 1:
            raise RefusedError(f"cycles is {cycles}; give a whole number greater than zero")
        file = motion_named(os.fspath(motion), self.kinematics, self._tool_file)
        if on:
            return self._move(self._ride(file, cycles, on, at), block)
        plan: list[Trajectory] = []

        def legs(here: Array) -> list[Leg]:
            if not plan:
                planner = self._planner.carrying(self.payload)
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
        """Steer the platform at a twist for some time, then come to rest; slowed down, and stopped, before borders.

        Args:
            linear: velocity of its origin (3,) [m/s], base axes.
            angular: velocity (3,) [rad/s], base axes.
            seconds: how long, on the robot's clock.
            block: wait for the end.

        Returns:
            The task, which is done where `block`. `reason` of its result says which border stopped it.

        Raises:
            RefusedError: a motion runs, or the robot is stopped; or a number makes no sense.
        """
        twist = np.array((*linear, *angular), dtype=np.float64)
        if twist.shape != (6,) or not np.isfinite(twist).all():
            raise RefusedError("a jog takes three finite numbers for the linear velocity, and three for the angular")
        if not (math.isfinite(seconds) and seconds > 0.0):
            raise RefusedError(f"seconds is {seconds}; give a number greater than zero")
        _require(self._backend.steer(twist))
        task = Task(lambda task: self._jog(task, twist, seconds), self._backend.waiting)
        if block:
            task.result()
        return task

    def set_speed(self, fraction: float) -> None:
        """Run motions, this one and those to come, at a fraction of their planned speed; 0 halts them on their paths.

        Args:
            fraction: 0 to 1.

        Raises:
            RefusedError: another number.
        """
        _require(self._backend.set_speed(float(fraction)))

    def pause(self) -> None:
        """Halt the motion on its path, and wait until it rests there.

        Raises:
            RefusedError: no motion runs.
        """
        _require(self._backend.pause())
        self._until_rest()

    def resume(self) -> None:
        """Go on with the motion that was paused; after a jog, the platform first moves back to the path.

        Raises:
            RefusedError: nothing is paused.
        """
        _require(self._backend.resume())

    def stop(self) -> None:
        """End what moves on its way, and wait until it rests; a robot at rest is stopped already.

        Raises:
            RefusedError: the controller cannot; it says why.
        """
        _require(self._backend.stop())
        self._until_rest()

    def enable(self) -> None:
        """Have the drives follow commands; the platform is held where it is.

        Raises:
            RefusedError: they cannot be enabled, with the reason.
        """
        _require(self._backend.enable())

    def disable(self) -> None:
        """Turn the drives off; what moves ends at once.

        Raises:
            RefusedError: they cannot be told, with the reason.
        """
        _require(self._backend.disable())

    def emergency_stop(self) -> None:
        """Turn the drives off at once; they stay off until `reset` and `enable`.

        Raises:
            RefusedError: they cannot be told, with the reason.
        """
        _require(self._backend.emergency_stop())

    def reset(self) -> None:
        """Lead the machine out of a fault. Nothing moves, and the drives stay off until `enable`.

        Raises:
            RefusedError: there is no fault, or it is still there, with the reason.
        """
        _require(self._backend.reset())

    def recover(self) -> str:
        """Lead the robot out of a stop: find its platform again, or move it back inside the limits at low speed.

        Returns:
            What comes of it, in words.

        Raises:
            RefusedError: nothing can be done, with the reason.
        """
        answer = self._backend.recover()
        _require(answer)
        self._until_rest()
        return answer.message

    @property
    def working_mode(self) -> str:
        """Label of the working mode in which the robot is, as `Kinematics.mode_label` gives it."""
        return self.kinematics.mode_label(self._mode_of(self.state))

    def change_working_mode(self, label: str, *, block: bool = True) -> str:
        """Go to the same pose in another working mode; motions and `solve_ik` are of that one from then on.

        Where a change was halted (`stop`), this goes on with it, or back, by the label of either mode.

        Args:
            label: of the mode, such as "+-", as `Kinematics.mode_label` gives it.
            block: wait for the end.

        Returns:
            How long it takes, and how far the platform leaves its place meanwhile, in words.

        Raises:
            RefusedError: there is no way, or no such mode, with the reason. Where `block`, too: it was halted.
        """
        answer = self._backend.change_working_mode(label)
        _require(answer)
        if not block:
            return answer.message
        with self._backend.waiting():
            while (state := self.state).moving:
                self._backend.wait(_LOOK)
        if state.mode is not Mode.HOLDING:
            raise RefusedError(f"it was halted: {state.reason or state.mode.name.lower()}")
        return answer.message

    def wait(self, seconds: float) -> None:
        """Let time pass on the robot's clock.

        Args:
            seconds: how much.

        Raises:
            RefusedError: no time.
        """
        if not (math.isfinite(seconds) and seconds >= 0.0):
            raise RefusedError(f"seconds is {seconds}; give zero or more")
        self._backend.wait(seconds)

    def close(self) -> None:
        """Let the robot go: a simulated one ends, one over ROS stays as it is."""
        self._backend.close()

    def __enter__(self) -> Robot:
        """Return itself; `close` comes at the end of the block."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Close."""
        self.close()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _mode_of(self, state: RobotState) -> int:
        """Return the working mode in which a state is, the last one where it does not tell; and note it."""
        k = self.kinematics
        if not state.known or state.mode is Mode.TRACKING or not np.isfinite(state.pose).all():
            return self._mode
        read = np.array([state.positions[name] for name in k.actuated_names])
        for mode in dict.fromkeys((self._mode, *range(k.n_modes))):
            off = np.asarray(k.inverse(state.pose, mode=mode).actuated) - read
            turned = np.remainder(off + np.pi, 2.0 * np.pi) - np.pi
            off = np.where(k.engine.actuated_turning, turned, off / k.characteristic_length)
            if np.abs(off).max() < _SAME_MODE:
                self._mode = mode
                break
        return self._mode

    def _tool(self, name: str) -> Tool:
        return tool_named(name, read_tools(self._tool_file))

    def _pose(self, pose: ArrayLike, tool: str = "") -> Array:
        """The platform's pose (7,) for one of its own or of a tool; task coordinates leave it its attitude."""
        there = np.array(self.kinematics.engine.one_pose(pose), dtype=np.float64)
        if not tool:
            return there
        used = self._tool(tool)
        if np.shape(pose) != (7,):
            there = np.concatenate([there[:3], used.on_platform(there)[3:]])
        return used.of_platform(there)

    @staticmethod
    def _with_tool(tool: str) -> str:
        return f"with tool '{tool}' there: " if tool else ""

    def _way(self, here: Array, there: Array, speed: float, tool: str = "") -> list[Leg]:
        if np.abs(displacement_between(here, there)).max() < _THERE:
            return []
        planner = self._planner.carrying(self.payload)
        return [(planner.between(here, there, speed, self._tool(tool) if tool else None), 1)]

    def _ride(self, file: MotionFile, cycles: int, on: str, at: float | None) -> Callable[[Array], MotionPoints]:
        """Return what plans a motion on a conveyor from a pose."""
        if cycles != 1:
            raise RefusedError(f"cycles is {cycles}; a conveyor carries an object by once")
        conveyor, belt = self._backend.belt(on)
        there = belt.travel if at is None else float(at)
        if at is not None and not math.isfinite(there):
            raise RefusedError(f"at is {at}; give the belt's travel when the object was at the origin [m]")

        def look() -> BeltState:
            return self._backend.belt(on)[1]

        return lambda here: self._boarding.plan(file, conveyor, look, there, here, self.payload)

    def _move(self, legs: Callable[[Array], Plan], block: bool) -> Task:
        """Begin a motion: `legs` plans it from a pose."""
        with self._turn:
            state = self.state
            self._mode_of(state)
            plan = legs(_place_of(state))  # before anything that runs is ended for it
            if block and state.speed == 0.0 and not state.moving:
                raise RefusedError("the speed override is 0, so the motion would not begin: raise it, or do not wait")
            if state.moving:
                plan = legs(self._take_over())
            if isinstance(plan, MotionPoints):
                only = self._begin(plan)
                task = Task(lambda task: self._see_off(task, only), self._backend.waiting)
            else:
                task = self._legs(plan)
            self._motion = task
        if block:
            task.result()
        return task

    def _legs(self, plan: list[Leg]) -> Task:
        """Begin legs one after the other."""
        first = self._begin(MotionPoints.of(*plan[0])) if plan else None
        return Task(lambda task: self._run(task, plan, first), self._backend.waiting)

    def _see_off(self, task: Task, goal: Goal) -> Result:
        """What the thread of a motion on a conveyor does: see to its end."""
        task.cancel_motion = goal.cancel
        if task.cancelled:
            goal.cancel()
        return self._wait_for(task, goal, 0.0, 1.0, Result())

    def _begin(self, motion: MotionPoints) -> Goal:
        """Hand a motion to the controller; return when it has begun."""
        goal = self._backend.begin(motion, Tolerances())
        if not goal.wait_begun():
            result = goal.wait()
            raise RefusedError(result.reason) if result.outcome is Outcome.INVALID_GOAL else MotionEndedError(result)
        return goal

    def _run(self, task: Task, plan: list[Leg], first: Goal | None) -> Result:
        """What the thread of a motion does: see to the end of each leg."""
        total = sum(leg.duration * cycles for leg, cycles in plan)
        result, done = Result(), 0.0
        for number, (leg, cycles) in enumerate(plan):
            goal = first if number == 0 and first is not None else self._begin(MotionPoints.of(leg, cycles))
            task.cancel_motion = goal.cancel
            if task.cancelled:
                goal.cancel()
            part = leg.duration * cycles / total
            result = self._wait_for(task, goal, done, part, result)
            done += part
        return result

    @staticmethod
    def _wait_for(task: Task, goal: Goal, done: float, part: float, before: Result) -> Result:
        """Wait for the end of a leg, which is `part` of the motion; `done` are those before."""
        task.progress_of = lambda: done + part * goal.share
        result = goal.wait()
        if task.superseded and result.outcome is Outcome.PREEMPTED:
            raise MotionEndedError(Result(Outcome.PREEMPTED, "another motion took over"))
        if result.outcome is not Outcome.SUCCESSFUL:
            raise MotionEndedError(result)
        return Result(
            result.outcome,
            result.reason,
            result.rms_position_error,
            max(result.max_position_error, before.max_position_error),
            result.rms_rotation_error,
            max(result.max_rotation_error, before.max_rotation_error),
        )

    def _take_over(self) -> Array:
        """Bring what moves to rest; return where."""
        if self._motion is not None:
            self._motion.superseded = True
        _require(self._backend.stop())
        self._until_rest()
        return _place_of(self.state)

    def _until_rest(self) -> None:
        left = _REST
        while self.state.moving:
            if left <= 0.0:
                raise RefusedError(f"the platform does not come to rest within {_REST:g} s")
            self._backend.wait(_LOOK)
            left -= _LOOK

    def _jog(self, task: Task, twist: Array, seconds: float) -> Result:
        """What the thread of a jog does."""
        backend = self._backend
        begun, reason, seen = backend.time, "", False
        task.progress_of = lambda: (backend.time - begun) / seconds
        while (passed := backend.time - begun) < seconds and not task.cancelled:
            _require(backend.steer(twist))
            backend.wait(min(_RENEW, seconds - passed))
            state = self.state
            seen = seen or state.mode is Mode.JOGGING
            reason = state.reason if state.mode is Mode.JOGGING and state.reason else reason
            if passed > _BEGIN and not seen:
                raise RefusedError(f"the controller did not take the jog; it is {state.mode.name.lower()}")
        backend.steer(np.zeros(6))
        self._until_rest()
        return Result(reason=reason)


def _place_of(state: RobotState) -> Array:
    """Where the platform is held, or its reference is; refuse where a motion cannot begin."""
    if state.mode is Mode.PAUSED:
        raise RefusedError(f"the controller is paused: {state.reason}" if state.reason else PAUSED)
    if not state.known:
        raise RefusedError(f"the controller is {state.mode.name.lower()}: {state.reason or 'no reading has come'}")
    return np.array(state.reference)


def _require(answer: Answer) -> None:
    """Raise what an answer says, where it is no."""
    if not answer.success:
        raise RefusedError(answer.message or "it is refused")
