# SPDX-License-Identifier: Apache-2.0
"""Every robot of the gallery, loaded once, with its Pinocchio model and 1,000 random regular states.

Long tests carry the marker `slow` and run only when asked for: `pytest -m slow`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in each other's way

import pytest

from bench.engines.pinocchio_model import PinocchioRobot
from bench.states import NoRegularStatesError, States, random_states
from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_kinematics import Kinematics, Motion

# Robots that are singular at every pose: they have no regular states, and tests of their own.
SINGULAR_EVERYWHERE = {"griffis_duffy"}
STATES = 1000


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: long tests; run with -m slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow; run with -m slow"))


@dataclass(frozen=True, eq=False)
class Robot:
    """What the tests need of one robot of the gallery."""

    name: str

    @cached_property
    def kinematics(self) -> Kinematics:
        return Kinematics(load_mechanism(self.name))

    @cached_property
    def dynamics(self) -> Dynamics:
        """Without friction, which is tested on its own."""
        return Dynamics(self.kinematics, friction=False)

    @cached_property
    def judge(self) -> PinocchioRobot:
        return PinocchioRobot(self.kinematics.mechanism)

    @cached_property
    def states(self) -> States:
        return random_states(self.kinematics, self.judge, STATES, seed=20)

    @cached_property
    def motion(self) -> Motion:
        return self.kinematics.motion(self.states.pose, self.states.twist, self.states.acceleration)

    def q(self, joints: Array) -> Array:
        """Joint values in the order of the Pinocchio model."""
        return self.judge.coordinates(self.kinematics.joint_names, joints)

    def rates(self, k: int) -> tuple[Array, Array, Array]:
        """Pinocchio's coordinates, velocities and accelerations of state k."""
        return self._rates[k]

    @cached_property
    def _rates(self) -> list[tuple[Array, Array, Array]]:
        found = []
        for joints, twist, acceleration in zip(
            self.states.joints, self.states.twist, self.states.acceleration, strict=True
        ):
            q = self.q(joints)
            found.append((q, *self.judge.rates(q, twist, acceleration)))
        return found


_robots = {name: Robot(name) for name in robot_names()}


@pytest.fixture(params=robot_names())
def robot(request: pytest.FixtureRequest) -> Robot:
    """Each robot of the gallery that has regular states."""
    found = _robots[request.param]
    try:
        assert len(found.states) == STATES
    except NoRegularStatesError:
        assert found.name in SINGULAR_EVERYWHERE, f"{found.name}: no regular states near home"
        pytest.skip("singular everywhere")
    return found


@pytest.fixture
def massive(robot: Robot) -> Robot:
    """Each robot with masses."""
    if all(link.inertial.massless for link in robot.kinematics.mechanism.links):
        pytest.skip("described without masses")
    return robot


@pytest.fixture
def delta() -> Robot:
    return _robots["delta"]


@pytest.fixture(scope="session")
def of_gallery() -> dict[str, Robot]:
    """Robots by name."""
    return _robots
