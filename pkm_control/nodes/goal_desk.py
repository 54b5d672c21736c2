# SPDX-License-Identifier: Apache-2.0
"""Where trajectories are admitted: in a thread of its own, so that neither control nor services wait for a check."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pkm_control.loop.follower import CHANGING, Motion, Tolerances, TrajectoryFollower
from pkm_control.motion.point_trajectory import PointTrajectory, PointTrajectoryError
from pkm_control.nodes import motion_messages
from pkm_control.nodes.controls import Controls
from pkm_description.errors import PkmError
from pkm_description.ros import messages
from pkm_description.ros.messages import RequestError
from pkm_interfaces.msg import PlatformTrajectory
from pkm_kinematics.kernels.compiled_rotations import displacement_between

WAITING = 16  # trajectories that may wait for their turn
FARTHEST = 600.0  # s: a start later than that is taken for a mistake, such as that of another clock
_REST = 10.0  # s, within which a platform comes to rest
PAUSED = "the controller is paused: resume or stop first"
_STALL = 0.3  # s, that readings may be silent before a trajectory is refused for it
_LOOK = 0.002  # s, between two looks whether it is


@dataclass(eq=False)
class Application:
    """A trajectory that asks to be followed: the `motion` it became, or the `problem` why not, once it is `done`."""

    message: PlatformTrajectory
    tolerances: Tolerances = field(default_factory=Tolerances)
    motion: Motion | None = None
    problem: str = ""
    withdrawn: bool = False
    done: bool = False


class GoalDesk:
    """Admits trajectories one after the other.

    A trajectory that comes while the platform moves is judged first. If it can be followed, the motion before it is
    brought to rest on its path, and the new one begins from there, at rest.

    Args:
        controls: the follower.
        settings: start delay [s] and start tolerance [m and rad], asked for with each trajectory.
        report: told the problem of each trajectory that is refused.
    """

    def __init__(
        self, controls: Controls, settings: Callable[[], tuple[float, float]], report: Callable[[str], None]
    ) -> None:
        self._controls = controls
        self._settings = settings
        self._report = report
        self._queue: queue.Queue[Application | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="goals", daemon=True)
        self._thread.start()

    def apply(self, application: Application) -> None:
        """Take a trajectory, or refuse it at a glance.

        Args:
            application: with the message; its other fields tell what became of it.
        """
        try:
            follower = self._controls.ready()
            motion_messages.require_readable(application.message, self._controls.kinematics.mechanism.base_link)
            self._require_ready(follower)
            if self._queue.qsize() >= WAITING:
                raise RequestError(f"{WAITING} trajectories wait to be checked already")
        except PkmError as error:
            self._refuse(application, error)
            return
        self._queue.put(application)

    def close(self) -> None:
        """End the thread."""
        self._queue.put(None)
        self._thread.join(2.0)

    def _run(self) -> None:
        while (application := self._queue.get()) is not None:
            try:
                self._admit(application)
            except PkmError as error:
                self._refuse(application, error)
            except Exception as error:  # the desk stays open: whatever one trajectory breaks, others come
                self._refuse(application, RuntimeError(f"the check failed: {error!r}"))
            application.done = True

    def _refuse(self, application: Application, error: Exception) -> None:
        application.problem, application.done = str(error), True
        self._report(application.problem)

    def _require_free(self, follower: TrajectoryFollower, patience: float) -> None:
        until = time.monotonic() + patience  # a computer that is busy may stall readings for some periods
        while (action := self._controls.action) is None or action.reference is None:
            if time.monotonic() < until:
                time.sleep(_LOOK)
                continue
            raise PkmError(f"no measured state to start from: {action.reason if action else 'none has come'}")
        self._require_ready(follower)

    @staticmethod
    def _require_ready(follower: TrajectoryFollower) -> None:
        if follower.change is not None:
            raise PkmError(CHANGING)
        if follower.paused:
            raise PkmError(PAUSED)

    def _admit(self, application: Application) -> None:
        """Check a trajectory and have it followed; raise `PkmError` where it cannot be."""
        follower = self._controls.ready()
        self._require_free(follower, _STALL)
        delay, tolerance = self._settings()
        message = application.message
        if follower.moving:
            own = motion_messages.trajectory_of(
                message, self._controls.kinematics, messages.pose_of(message.points[0].pose), tolerance
            )
            self._require_runnable(follower, own)
            self._bring_to_rest(follower)
        pose = follower.hold
        trajectory = motion_messages.trajectory_of(message, self._controls.kinematics, pose, tolerance)
        self._require_runnable(follower, trajectory)
        braking = follower.check.braking(trajectory)
        start = motion_messages.seconds(message.header.stamp)
        with self._controls.lock:
            self._require_ready(follower)
            moved = np.abs(displacement_between(pose, follower.hold)).max() > tolerance
            if follower is not self._controls.follower or follower.moving or moved:
                raise PkmError("the platform was moved while the trajectory was checked")
            if application.withdrawn:
                raise PkmError("cancelled")
            now = follower.time
            if start != 0.0 and start < now:
                raise RequestError(f"the trajectory should have started {now - start:.3f} s ago")
            if start > now + FARTHEST:
                raise RequestError(f"the trajectory starts in {start - now:.6g} s, more than {FARTHEST:g} s ahead")
            motion = Motion(trajectory, start or now + delay, application.tolerances, braking)
            follower.follow(motion)
        application.motion = motion

    def _bring_to_rest(self, follower: TrajectoryFollower) -> None:
        with self._controls.lock:
            follower.stop("another motion took over")
        until = time.monotonic() + _REST
        while follower.moving:
            if time.monotonic() > until:
                raise PkmError("the platform does not come to rest")
            time.sleep(_LOOK)

    @staticmethod
    def _require_runnable(follower: TrajectoryFollower, trajectory: PointTrajectory) -> None:
        refusal = follower.check.refusal(trajectory)
        if refusal:
            raise PointTrajectoryError(refusal)
