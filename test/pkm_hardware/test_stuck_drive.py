# SPDX-License-Identifier: Apache-2.0
"""A drive that takes goals and stays where it is, by the simulated device's own state."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from pkm_control.loop import requests
from pkm_control.loop.followed_motion import Motion
from pkm_control.loop_settings import ControllerSettings, MachineSettings
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_control.operator_interface import Mode, Outcome
from pkm_control.robot_loop import build_robot_loop
from pkm_runtime.fixed_rate import FixedRateLoop

from .benches import BENCHES, wait_until


def test_a_motion_whose_way_back_departs_as_well_ends(tmp_path: Path) -> None:
    """A drive that is stuck: the platform went to and fro on the way back to its path for ever, without a word."""
    with BENCHES["dynamixel"](tmp_path, silence="1.0") as bench:
        file = str(tmp_path / "machine.yaml")
        settings = ControllerSettings(law="position", rate=100.0, machine_file=file)
        robot = bench.kinematics.mechanism.urdf
        loop = build_robot_loop(robot, MachineSettings(kind="dynamixel", file=file), settings)
        assert wait_until(lambda: loop.configure() == "", 10.0)
        assert loop.enable() == ""
        pace = FixedRateLoop(100.0)

        def moved(by: float, duration: float, most: float) -> Motion:
            here = np.array(loop.follower.hold)
            there = here + by * np.eye(7)[2]
            way = PointTrajectory(np.array([0.0, duration]), np.array([here, there]), *np.zeros((2, 2, 6)))
            assert loop.follower.check.refusal(way) == ""
            motion = Motion(way, loop.follower.time)
            requests.follow(loop.follower, motion)
            until = time.monotonic() + most
            while motion.outcome is None and time.monotonic() < until:
                loop.period(pace.wait())
            return motion

        pace.restart()
        for _ in range(20):
            loop.period(pace.wait())
        assert moved(-0.0036, 0.5, 5.0).outcome is Outcome.SUCCESSFUL
        bus, follow = bench.bus, bench.bus._set
        bus._set = lambda one, address, values: 0 if (one, address) == (3, 116) else follow(one, address, values)
        motion = moved(0.005, 0.2, 5.0)
        assert motion.outcome is Outcome.PATH_TOLERANCE_VIOLATED
        assert "from where it should be" in motion.reason
        for _ in range(50):
            loop.period(pace.wait())
        assert loop.last.action.mode is Mode.HOLDING
        assert loop.shut_down() == ""
