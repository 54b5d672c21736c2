# SPDX-License-Identifier: Apache-2.0
"""Every robot of the gallery, loaded once, with its Pinocchio model and 200 random regular states, at night 1,000.

Tests that take `robot` are asked of every robot that has regular states, those that take `robot_name` of all; robots of
a kind that a test does not concern are left out by `@pytest.mark.not_for(kind, ...)`. Nothing of that is skipped, so
that a skip means that something is missing on this computer. Long tests carry the marker `slow`. A test of more robots
than `MANY` is asked of `EVERYDAY` by day and of all at night, unless it carries `every_robot`: facts of single robots.
A test with several parameters is asked of each value of each by day, and of each combination at night, unless it
carries `every_combination`: where one combination is another behaviour. `by_day(value, ...)` names the values of a
parameter that suffice by day. What is left out is asked by `pytest -m slow`, as `./pkm nightly` does. Only tests in
`CLOCKS` run again on failure.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import re
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in each other's way

import pytest

from pkm_description import load_mechanism
from pkm_description.gallery import robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics, Motion

if TYPE_CHECKING:  # engines that judge ours, which not every computer has
    from bench.engines.pinocchio_model import PinocchioRobot
    from bench.states import States

JUDGES = {
    "pinocchio": "pinocchio",
    "mujoco": "mujoco",
    "bench": "pinocchio",
    "Pynite": "Pynite",
    "casadi": "casadi",
    "jax": "jax",
}  # what is imported: what must be there

# Robots that differ: planar, turning, redundant, of cables, ..., of 15 cm to 4 m
VARIED = (
    "five_bar",
    "delta",
    "gough_stewart",
    "quattro",
    "orthoglide",
    "agile_eye",
    "tripod_3prs",
    "planar_3rrr",
    "irsbot2",
    "cable_8",
)

# Kinds of robots that some tests leave out; `test_kinds_of_robots.py` confirms that they are these and no others.
KINDS = {
    "singular everywhere": ("griffis_duffy",),  # no regular states; such robots have tests of their own
    "turning space": (  # the possible twists of the platform change with its pose
        "capaman",
        "carpal_wrist",
        "reactionless_four_bar",
        "spatial_4dof_5legs",
        "tricept",
        "tripod_3prs",
        "two_tpr",
    ),
    "fixed centre": ("agile_eye", "wrist_3ruu", "wrist_3ups_s"),  # the platform turns only
    "redundantly actuated": ("cable_8", "gough_stewart_7", "planar_redundant"),
    "modes by search": (  # assembly modes take long to list, and the list is not certified
        "capaman",
        "five_dof_3rr_rrr",
        "navaro",
        "planar_mixed",
        "pru_3",
        "reactionless_four_bar",
        "tri_scott",
        "two_tpr",
    ),
    "modes without sides": ("cable_8", "gough_stewart_7", "planar_redundant"),
    "without straight lines": (  # a limb is solved by iteration
        "capaman",
        "carpal_wrist",
        "five_dof_3rr_rrr",
        "h4",
        "irsbot2",
        "quattro",
        "reactionless_four_bar",
        "spatial_4dof_5legs",
        "tricept",
        "tripod_3prs",
        "two_tpr",
        "wrist_3ruu",
    ),
    "loaded branch": ("five_bar", "planar_redundant", "two_rpr", "wrist_3ups_s"),  # the platform's own, by reactions
}
EVERYDAY = (  # one of each kind
    "agile_eye",
    "cable_8",
    "delta",
    "five_bar",
    "gough_stewart",
    "planar_redundant",
    "quattro",
    "tripod_3prs",
)
MANY = 10  # robots: a test that names more is asked of those of every day
STATES = 200
STATES_AT_NIGHT = 1000
CLOCKS = {  # tests that a busy computer can fail, and why: these alone run a second time, which is reported
    "pkm_bringup": "runs of whole robots, in real time",
    "pkm_client": "a robot that runs in real time",
    "pkm_hardware": "drivers and devices with time-outs",
    "pkm_runtime/test_fixed_rate": "a loop's own deadlines",
    "pkm_viewer": "a page that is drawn while a robot runs",
    "browser": "a browser that has to answer",
    "ros": "nodes that answer within seconds",
}


def pytest_configure(config: pytest.Config) -> None:
    global STATES
    STATES = STATES_AT_NIGHT if _at_night(config) else STATES
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))  # each has a ROS domain of its own
    domain = int(os.environ.get("ROS_DOMAIN_ID", 1 + os.getpid() % 100)) - 1 + 37 * worker
    os.environ.update(ROS_DOMAIN_ID=str(1 + domain % 101), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    config.addinivalue_line("markers", "slow: long tests; run with -m slow")
    config.addinivalue_line("markers", "by_day(*values): of these values of a parameter by day, of all at night")
    config.addinivalue_line("markers", "every_robot: asked of all robots by day too")
    config.addinivalue_line("markers", "every_combination: asked of all combinations of its parameters by day too")
    config.addinivalue_line("markers", "not_for(*kinds): leave out the robots of these kinds")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests without Python's search for garbage, and run them with less: it took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()  # what is there lives as long as the tests
        gc.set_threshold(20_000, 10, 5)


def _at_night(config: pytest.Config) -> bool:
    return "slow" in config.getoption("markexpr")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for: slow tests, and robots that a test does not concern."""
    slow = _at_night(config)
    asked: dict[str, set[str]] = {}  # the robots of the gallery that are named by a test
    for item in items:
        asked.setdefault(item.nodeid.partition("[")[0], set()).update(_named_robots(item))
        if any(item.nodeid.startswith(f"test/{part}") for part in CLOCKS):
            item.add_marker(pytest.mark.flaky(reruns=1))
    for item in items:
        many = len(asked[item.nodeid.partition("[")[0]]) > MANY and not item.get_closest_marker("every_robot")
        named = _named_robots(item)
        if (many and named and not named & set(EVERYDAY)) or not _by_day(item):
            item.add_marker("slow")
    for item in _left_to_the_night(items):
        item.add_marker("slow")
    left_out = [item for item in items if (item.get_closest_marker("slow") and not slow) or not _concerned(item)]
    config.hook.pytest_deselected(items=left_out)
    dropped = set(left_out)
    items[:] = [item for item in items if item not in dropped]


def _by_day(item: pytest.Item) -> bool:
    """Whether the parameters of a test have one of the values that its mark `by_day` names."""
    mark = item.get_closest_marker("by_day")
    given = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return mark is None or any(value in mark.args for value in given if isinstance(value, Hashable))


def _left_to_the_night(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Combinations of parameters without which each value of each parameter is still asked."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        marked = any(item.get_closest_marker(name) for name in ("slow", "every_combination"))
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not marked and _concerned(item):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for rest in tests.values():
        asked: Counter[tuple[object, ...]] = Counter()
        values = {item: _values(item) for item in rest}
        if all(len(one) == 1 for one in values.values()):  # of one parameter each value is asked
            continue
        while rest:
            new = [sum(not asked[value] for value in values[item]) for item in rest]
            if not max(new):
                break
            worn = [sum(asked[value] for value in values[item]) for item in rest]
            asked.update(values[rest.pop(max(range(len(rest)), key=lambda k: (new[k], -worn[k], -k)))])
        yield from rest


def _values(item: pytest.Function) -> list[tuple[object, ...]]:
    """The value of each parameter of a test; those that are listed together are one."""
    given = item.callspec.params
    marks = [mark.args[0] for mark in item.iter_markers("parametrize")]
    groups = [tuple(re.findall(r"\w+", names)) if isinstance(names, str) else tuple(names) for names in marks]
    groups += [(name,) for name in given if not any(name in group for group in groups)]
    return [(group, *(id(given[name]) for name in group)) for group in groups]


class _WithoutJudge(pytest.Module):
    """A module of tests that cannot be imported here."""

    missing = ""

    def collect(self) -> list[pytest.Item | pytest.Collector]:
        pytest.skip(f"{self.missing} is not installed; ./pkm test installs it", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip a module of tests by name where the engine that judges in it is not installed."""
    imported = re.findall(rf"^(?:import|from) ({'|'.join(JUDGES)})\b", module_path.read_text(), re.MULTILINE)
    missing = [JUDGES[name] for name in imported if importlib.util.find_spec(JUDGES[name]) is None]
    if not missing:
        return None
    module = _WithoutJudge.from_parent(parent, path=module_path)
    module.missing = missing[0]
    return module


def _named_robots(item: pytest.Item) -> set[str]:
    """The robots of the gallery that the parameters of a test name."""
    given = getattr(item, "callspec", None)
    return {given.params.get(name) for name in ("robot", "robot_name", "name")} & set(_robots) if given else set()


def _concerned(item: pytest.Item) -> bool:
    """Whether a test is to be asked of the robot of its parameters."""
    kinds = {kind for mark in item.iter_markers("not_for") for kind in mark.args}
    given = item.callspec.params if isinstance(item, pytest.Function) and kinds else {}
    return not any(given.get(name) in KINDS[kind] for name in ("robot", "robot_name") for kind in kinds)


@pytest.hookimpl(optionalhook=True)  # pytest-xdist may be missing
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker ask a robot all questions (`--dist loadfile`): its states take seconds to draw.

    Tests that name no robot are kept together by file, as they are without this.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByRobot(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return worker_share(nodeid)

    return ByRobot(config, log)


def worker_share(nodeid: str) -> str:
    """What a test is kept together with: the first robot that its parameters name, or its file."""
    file, _, test = nodeid.partition("::")
    words = test.partition("[")[2].rstrip("]").split("-")
    return next((word for word in words if word in _robots), file)


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
        pytest.importorskip("pinocchio", reason="Pinocchio is not installed; ./pkm test installs it")
        from bench.engines.pinocchio_model import PinocchioRobot

        return PinocchioRobot(self.kinematics.mechanism)

    @cached_property
    def states(self) -> States:
        judge = self.judge
        from bench.states import random_states

        return random_states(self.kinematics, judge, STATES, seed=20)

    @cached_property
    def motion(self) -> Motion:
        return self.kinematics.motion(self.states.pose, self.states.twist, self.states.acceleration)

    def q(self, joints: Array) -> Array:
        """Joint values in the order of the Pinocchio model."""
        return self.judge.coordinates(self.kinematics.joint_names, joints)

    def rates(self, k: int) -> tuple[Array, Array, Array]:
        """Pinocchio's coordinates, velocities and accelerations of state k."""
        if k not in self._rates:
            q = self.q(self.states.joints[k])
            self._rates[k] = q, *self.judge.rates(q, self.states.twist[k], self.states.acceleration[k])
        return self._rates[k]

    @cached_property
    def _rates(self) -> dict[int, tuple[Array, Array, Array]]:
        return {}


_robots = {name: Robot(name) for name in robot_names()}


@pytest.fixture(params=[name for name in robot_names() if name not in KINDS["singular everywhere"]])
def robot(request: pytest.FixtureRequest) -> Robot:
    """Each robot of the gallery that has regular states."""
    found = _robots[request.param]
    assert len(found.states) == STATES
    return found


@pytest.fixture(params=robot_names())
def robot_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def kinds() -> dict[str, tuple[str, ...]]:
    """Names of the robots of each kind that tests may leave out."""
    return KINDS


@pytest.fixture
def delta() -> Robot:
    return _robots["delta"]


@pytest.fixture(scope="session")
def of_gallery() -> dict[str, Robot]:
    return _robots


# The Delta, built once


@pytest.fixture(scope="session")
def mechanism():
    return load_mechanism("delta")


@pytest.fixture(scope="session")
def kinematics(mechanism):
    return Kinematics(mechanism)


@pytest.fixture(scope="session")
def dynamics(kinematics):
    return Dynamics(kinematics)


@pytest.fixture(scope="session")
def limits(mechanism):
    return ActuatorLimits.of(mechanism)
