# SPDX-License-Identifier: Apache-2.0
"""Nodes and parameters of a robot: the one declaration that the launch files and the runner both read.

Plain data: nothing here imports ROS. A node lists the settings of the user that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pkm_bringup import start
from pkm_bringup.command_line.outputs import check_host, check_report
from pkm_client.options import SETTING, SETTINGS, typed_value
from pkm_control.controllers.force_task import read_force_file
from pkm_control.conveyor.conveyor import read_conveyors
from pkm_control.keep_out import read_keep_outs
from pkm_control.motion.compensation import compliance_values
from pkm_control.motion.files.shipped import AUTO, NONE, find_motion
from pkm_control.operator_interface import POSITION
from pkm_control.tool import read_tools
from pkm_description.load import expand, xacro_arguments
from pkm_description.ros.transport import clock_problem
from pkm_description.urdf.xml_text import prefix_frames
from pkm_hardware.machine_file import check_kind, read_machine_file
from pkm_hardware.machine_kinds import (
    DELAY,
    FIRST_MOVE,
    KINDS,
    LOOPBACK,
    NOTE,
    RESERVE,
    SIMULATED,
    USUAL_RESERVE,
    payload_note,
    reserve_of_drives,
)

Values = Mapping[str, str]  # name of the setting -> its text, as launch arguments are
Parameter = bool | int | float | str | list[str]  # of a node


@dataclass(frozen=True)
class NodeSpec:
    """A node: its parameters (name -> setting that sets it) and remappings.

    `fixed`: parameters that follow from several settings. `wanted`: whether these values ask for the node. `holds`:
    names of the nodes, where the process has several. A node that ends by itself ends the run, unless it is not
    `needed`, or does not have to `last` and ends well. `leads`: the run is over when this node ends, in any way.
    """

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    fixed: Callable[[Values], Mapping[str, Parameter]] = lambda values: {}
    remappings: Mapping[str, str] = field(default_factory=dict)
    wanted: Callable[[Values], bool] = lambda values: True
    leads: bool = False
    needed: bool = True
    last: bool = True
    holds: tuple[str, ...] = ()

    @property
    def executable(self) -> str:
        """Name of the program."""
        return f"{self.name}_node"

    @property
    def keeps_time(self) -> bool:
        """Whether it has a loop, and a higher priority where the computer is busy."""
        return self.executable in start.LOOPS

    @property
    def module(self) -> str:
        """Name of the module with its `main`."""
        return start.NODES[self.executable]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes in the process."""
        return self.holds or (self.name,)

    def stops_run(self, code: int, leads: bool = False) -> bool:
        """Whether the run is over when this node has ended with an exit code; `leads` where the run waits for it."""
        return leads or (self.needed and (self.last or code != 0))


MANAGED = "ros2_control"  # setting of the launch files: a controller manager between machine and controller
_DESCRIPTION_PATIENCE = 30.0  # s, with the node that describes the robot
_PATIENCE = 0.1  # s, with readings of a simulated machine
ENCLAVES = "/pkm"  # of SROS 2, one for each node: config/sros2/policy.xml


def _is(name: str, *texts: str) -> Callable[[Values], bool]:
    return lambda values: values[name] in texts


def _realistic(values: Values) -> bool:
    return values["realistic"] == "true" and values["hardware"] == SIMULATED


def reserve(values: Values) -> float:
    """The share of efforts and speeds that plans leave to the controller, or to the drives that close loops."""
    if values["controller"] == POSITION and values["hardware"] == SIMULATED:
        return reserve_of_drives(float(values["rate"]))
    return RESERVE if _realistic(values) else USUAL_RESERVE


def _notes(values: Values) -> list[str]:
    law = f"{values['controller']}, {values['natural_frequency']} rad/s asked, damping {values['damping']}"
    described = [f"described with {values['xacro_args']}"] if values["xacro_args"] else []
    if values["controller"] == POSITION:
        device = f"{values['hardware']}, simulated" if values["simulate"] == "true" else values["hardware"]
        return [f"commanded by position; machine: {device}, which measures no efforts", *described]
    if values["hardware"] != SIMULATED:
        return [law, *described]
    payload = payload_note(float(values["hidden_payload"]))
    return [law, *([NOTE] if _realistic(values) else []), *described, payload]


def _of_controller(values: Values) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    if _realistic(values):
        found["command_delay"] = float(DELAY)  # periods
    if values["hardware"] == "simulated":  # where the computer stalls, this machine's time does, too
        found["stale_periods"] = max(10, round(_PATIENCE * float(values["rate"])))
    return found


def _named(*names: str, **others: str) -> Mapping[str, str]:
    return {**{name: name for name in names}, **others}


_OF_LOOP = ("hardware_file", "force_file", "rate", "realtime_priority")
HARDWARE = _named(*_OF_LOOP, "simulate", "start", "realistic", "hidden_payload", "publish_rate", machine="hardware")
CONTROLLER = _named(
    *_OF_LOOP,
    "keep_out_file",
    "conveyor_file",
    "compliance_file",
    "measurement_file",
    "fallback",
    "natural_frequency",
    "damping",
    law="controller",
)
PAGE = _named("host", "port", "operate", "browser", "motion", "layers")
PLAYER = _named(
    "motion", "cycles", "most_waypoints", "report", "rate", "stay", "hardware_file", "tool_file", "keep_out_file"
)
_MEASURED = {"actuated_joint_states": "hardware/joint_states"}
_FROM_HARDWARE = {**_MEASURED, "joint_commands": "hardware/joint_commands"}


def _one_process(values: Values) -> bool:
    """Whether machine and controller share a loop: not with a controller manager, or something else, between them."""
    managed = values.get(MANAGED) == "true"
    return values["hardware"] != "none" and values["controller"] != "none" and not managed


def _alone(values: Values) -> dict[str, Parameter]:
    delay = 1.0 + (DELAY if _realistic(values) else 0.0)  # periods: the way over ROS is one
    return {**_of_controller(values), "command_delay": delay}


NODES = (
    NodeSpec(
        "control",
        {**HARDWARE, **CONTROLLER},
        _of_controller,
        _FROM_HARDWARE,
        _one_process,
        holds=("hardware", "controller"),
    ),
    NodeSpec(
        "hardware",
        HARDWARE,
        wanted=lambda values: values["hardware"] != "none" and not _one_process(values),
    ),
    NodeSpec("kinematics", _named("publish_rate"), remappings=_MEASURED),
    NodeSpec("dynamics", _named("publish_rate")),
    NodeSpec(
        "controller",
        CONTROLLER,
        _alone,
        _FROM_HARDWARE,
        lambda values: values["controller"] != "none" and not _one_process(values),
    ),
    NodeSpec("page", PAGE, wanted=_is("page", "true"), needed=False),
    NodeSpec("joystick", wanted=_is("joystick", "true"), needed=False),
    NodeSpec(
        "motion_player",
        PLAYER,
        lambda values: {
            "notes": _notes(values),
            "motion_folders": [values["motion_folder"]],
            "reserve": reserve(values),
            "first_move": 1.0 if values["hardware"] in (SIMULATED, "none") else FIRST_MOVE,
            "wait_for_page": values["page"] == "true" and values["browser"] == "true",  # for a person
        },
        _MEASURED,
        lambda values: values["controller"] != "none" and (motion_of(values) != "none" or values["stay"] == "true"),
        leads=True,
        last=False,
    ),
)
# Publishes /robot_description where robot_state_publisher does not run; its parameter is `description(values)`
DESCRIPTION = NodeSpec("description")


def defaults(**changed: str) -> dict[str, str]:
    """The value of every setting, as text by name: `changed` or its default; KeyError: no such setting."""
    unknown = changed.keys() - SETTING.keys()
    if unknown:
        raise KeyError(f"no such setting: {', '.join(sorted(unknown))}")
    return {one.name: changed.get(one.name, one.default) for one in SETTINGS}


def nodes(values: Values) -> list[NodeSpec]:
    """The nodes that these values ask for. The description is not among them: see `DESCRIPTION`."""
    return [node for node in NODES if node.wanted(values)]


def parameters(node: NodeSpec, values: Values) -> dict[str, Parameter]:
    """The parameters of a node, typed as their defaults (else ValueError); a leader's name nodes to wait for."""
    typed: dict[str, Parameter] = {}
    for name, setting in node.parameters.items():
        text, default = values[setting], typed_value(SETTING[setting].default)
        try:
            typed[name] = text == "true" if isinstance(default, bool) else type(default)(text)
        except ValueError as error:
            kind = "an integer" if isinstance(default, int) else "a number"
            raise ValueError(f"{setting} is '{text}', not {kind} such as {default}") from error
    if "motion" in typed:
        typed["motion"] = motion_of(values)
    if node.leads:
        others = (other for other in nodes(values) if other is not node and other.needed)
        typed["wait_for"] = [name for other in others for name in other.nodes]
    if values["description"] == "other":  # which may be dead
        typed["description_patience"] = _DESCRIPTION_PATIENCE
    return {**typed, **node.fixed(values), "use_sim_time": values["use_sim_time"] == "true"}


def motion_of(values: Values) -> str:
    """The motion that a run begins with: a machine that is not simulated moves only when a motion is named."""
    motion, simulated = values["motion"], values["hardware"] in (SIMULATED, "none")
    return NONE if motion == AUTO and not simulated else motion


def check(values: Values) -> None:
    """Refuse values that no run can have, before anything is started; the robot's file is read by `description`.
    ValueError: a setting, report or host that cannot be. MotionFileError, ConfigurationError: a file that cannot.
    """
    if problem := clock_problem():
        raise ValueError(problem)
    for one in SETTINGS:
        text = values[one.name]
        if one.choices and text not in one.choices:
            raise ValueError(f"{one.name} is '{text}', not one of {', '.join(one.choices)}")
        if one.span is not None:
            number = typed_value(text)
            lowest, highest = one.span
            if isinstance(number, str | bool) or not lowest <= number <= highest:
                raise ValueError(f"{one.name} is '{text}', not a number from {lowest:.9g} to {highest:.9g}")
    if values["motion"] not in (AUTO, NONE):
        find_motion(values["motion"])
    if motion_of(values) == "none" and values["stay"] == "false" and values["controller"] != "none":
        raise ValueError(
            "motion is 'none' and the robot is not to stay, so there is nothing to do, and nothing that would end it; "
            "give a motion, or let it stay"
        )
    if not re.fullmatch(r"/*([A-Za-z_]\w*(/+[A-Za-z_]\w*)*)?/*", values["namespace"], re.ASCII):
        raise ValueError(f"namespace is '{values['namespace']}'; names of letters, digits and _, with / between them")
    _check_machine(values)
    if values["report"] and values["controller"] != "none":
        check_report(values["report"])
    if values["page"] == "true":
        check_host(values["host"])


def _check_machine(values: Values) -> None:
    kind, law = values["hardware"], values["controller"]
    if kind in KINDS and law not in (POSITION, "none"):
        raise ValueError(
            f"hardware '{kind}' takes positions, and controller '{law}' gives efforts: "
            f"--controller {POSITION} on the command line, controller:={POSITION} in a launch"
        )
    if float(values["hidden_payload"]) > 0.0 and kind != SIMULATED:
        raise ValueError(f"hidden_payload is what a simulated machine carries, and hardware is '{kind}'")
    read_force_file(values["force_file"])
    read_keep_outs(values["keep_out_file"])
    read_tools(values["tool_file"])
    read_conveyors(values["conveyor_file"])
    compliance_values(values["compliance_file"])
    if values["simulate"] == "true" and (kind not in KINDS or kind == LOOPBACK):
        devices = ", ".join(name for name in KINDS if name != LOOPBACK)
        raise ValueError(f"simulate is for the devices {devices}, and hardware is '{kind}'")
    file = read_machine_file(values["hardware_file"]) if values["hardware_file"] else None
    if kind not in KINDS:
        return
    check_kind(kind, file)
    if file is not None and kind != LOOPBACK and float(values["rate"]) > file.rate:
        raise ValueError(
            f"rate is {values['rate']} Hz, more than the {file.rate:g} Hz of {file.source}: rate:={file.rate:g}"
        )


def description(values: Values) -> str:
    """The robot's URDF+ text, files expanded; DescriptionError: no such robot, or no frame can have the prefix."""
    text = expand(values["robot"], xacro_arguments(values["xacro_args"]))[0]
    return prefix_frames(text, values["frame_prefix"])
