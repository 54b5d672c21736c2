# SPDX-License-Identifier: Apache-2.0
"""Nodes and parameters of a robot: the one declaration that the launch files and the runner both read.

Plain data: nothing here imports ROS. A knob is a setting of the user; a node lists the knobs that it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pkm_bringup.command_line.outputs import check_host, check_report
from pkm_client import options
from pkm_control.controllers.force.force_file import read_force_file
from pkm_control.controllers.law_settings import DAMPING, LAWS, NATURAL_FREQUENCY, POSITION
from pkm_control.conveyor.conveyor_file import read_conveyors
from pkm_control.motion.files.shipped import AUTO, find_motion
from pkm_control.space.keep_out_file import read_keep_outs
from pkm_control.space.tool import read_tools
from pkm_description.load import expand, xacro_arguments
from pkm_description.urdf.frame_prefix import prefix_frames
from pkm_hardware.machine_file import check_kind, read_machine_file
from pkm_hardware.machine_kinds import KINDS, LOOPBACK, SIMULATED
from pkm_hardware.realism import (
    DELAY,
    FIRST_MOVE,
    NOTE,
    RESERVE,
    USUAL_RESERVE,
    payload_note,
    reserve_of_drives,
)
from pkm_runtime.fixed_rate import PRIORITY

Values = Mapping[str, str]  # name of the knob -> its text, as launch arguments are
Parameter = bool | int | float | str | list[str]  # of a node


@dataclass(frozen=True)
class Setting:
    """A launch argument: `choices` are its only texts, if any; `span` bounds a number; `group` is for the help."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()
    span: tuple[float, float] | None = None
    group: str = "ROS"


@dataclass(frozen=True)
class NodeSpec:
    """A node: its module, executable, parameters (name -> knob that sets it) and remappings.

    `fixed`: parameters that follow from several knobs. `wanted`: whether these values ask for the node. `holds`: names
    of the nodes, where the process has several. A node that ends by itself ends the run, unless it is not `needed`, or
    does not have to `last` and ends well. `leads`: the run is over when this node ends, in whichever manner.
    `keeps_time`: it has a loop, and a higher priority where the computer is busy.
    """

    name: str
    executable: str
    module: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    fixed: Callable[[Values], Mapping[str, Parameter]] = lambda values: {}
    remappings: Mapping[str, str] = field(default_factory=dict)
    wanted: Callable[[Values], bool] = lambda values: True
    leads: bool = False
    needed: bool = True
    last: bool = True
    keeps_time: bool = False
    holds: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes in the process."""
        return self.holds or (self.name,)

    def stops_run(self, code: int, leads: bool = False) -> bool:
        """Whether the run is over when this node has ended with an exit code; `leads` where the run waits for it."""
        return leads or (self.needed and (self.last or code != 0))


SWITCH = ("true", "false")
MANAGED = "ros2_control"  # the knob of the launch files that puts a controller manager between machine and controller
_DESCRIPTION_PATIENCE = 30.0  # s, with the node that describes the robot
_PATIENCE = 0.1  # s, with readings of a simulated machine
ENCLAVES = "/pkm"  # of SROS 2, one for each node: config/sros2/policy.xml

KNOBS = (
    Setting("robot", "delta", options.ROBOT, group="robot"),
    Setting("xacro_args", "", options.XACRO_ARGS, group="robot"),
    Setting(
        "motion",
        "auto",
        f"{options.MOTION}, or none; with a machine that is not simulated, auto is none",
        group="motion",
    ),
    Setting("tool_file", "", options.TOOL_FILE, group="motion"),
    Setting("motion_folder", "", "folder whose motion files may be asked for while the robot runs", group="motion"),
    Setting("most_waypoints", "500", "waypoints of a motion that may be asked for", span=(2, 1000000), group="motion"),
    Setting("cycles", "20", options.CYCLES, span=(1, 1000000), group="motion"),
    Setting("stay", "true", options.STAY, SWITCH, group="motion"),
    Setting("controller", LAWS[0], f"{options.CONTROLLER}, or none", (*LAWS, "none"), group="control"),
    Setting("rate", "1000.0", options.RATE, span=(10.0, 10000.0), group="control"),
    Setting("natural_frequency", str(NATURAL_FREQUENCY), options.FREQUENCY, span=(0.1, 1000.0), group="control"),
    Setting("damping", str(DAMPING), options.RATIO, span=(0.3, 10.0), group="control"),
    Setting("fallback", "gravity", "efforts when the measured state is stale", ("gravity", "zero"), group="control"),
    Setting(
        "hardware",
        SIMULATED,
        "who is the machine: our simulation, a driver (loopback: none at all, what is commanded is read), or nobody "
        "(yours, or ros2_control)",
        (SIMULATED, *KINDS, "none"),
        group="machine",
    ),
    Setting("hardware_file", "", options.HARDWARE_FILE, group="machine"),
    Setting("simulate", "false", options.SIMULATE, SWITCH, group="machine"),
    Setting("keep_out_file", "", options.KEEP_OUT_FILE, group="control"),
    Setting("conveyor_file", "", options.CONVEYOR_FILE, group="control"),
    Setting("force_file", "", options.FORCE_FILE, group="machine"),
    Setting("realistic", "false", options.REALISTIC, SWITCH, group="machine"),
    Setting("hidden_payload", "0.0", options.HIDDEN_PAYLOAD, span=(0.0, 1e6), group="machine"),
    Setting(
        "realtime_priority",
        str(PRIORITY),
        "SCHED_FIFO priority of the control loop, where permitted; 0: ordinary scheduling",
        span=(0, 98),
    ),
    Setting(
        "start",
        "auto",
        "who enables the drives: active, the robot itself at once; manual, somebody (pkm enable); auto, the robot "
        "itself where it is simulated, and somebody where it is not",
        ("auto", "active", "manual"),
        group="machine",
    ),
    Setting("report", "reports", options.REPORT, group="output"),
    Setting("page", "true", options.PAGE, SWITCH, group="output"),
    Setting("layers", "", options.LAYERS, group="output"),
    Setting("host", "127.0.0.1", options.HOST, group="output"),
    Setting("port", "8080", options.PORT, span=(1, 65535), group="output"),
    Setting(
        "operate",
        "local",
        "who may command from the page: browsers on this computer, everyone who reaches it, or nobody",
        ("local", "everyone", "nobody"),
        group="output",
    ),
    Setting("browser", "false", "open the page in a browser, where there is a display", SWITCH, group="output"),
    Setting(
        "joystick", "false", "steer the platform by what a node of the package joy publishes", SWITCH, group="control"
    ),
    Setting("namespace", "", "namespace of all nodes and topics"),
    Setting("frame_prefix", "", "before the name of every frame of the robot, such as left/"),
    Setting(
        "description",
        "own",
        "who publishes robot_description: a node of ours, or another (robot_state_publisher)",
        ("own", "other"),
    ),
    Setting("use_sim_time", "false", "take the time from /clock", SWITCH),
    Setting(
        "publish_rate",
        "100.0",
        "highest rate of states, references and efforts as they are published [Hz]",
        span=(1.0, 2000.0),
    ),
)


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
    """The conditions of a run for the report."""
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
    """The controller's parameters that describe the machine."""
    told: dict[str, Parameter] = {}
    if _realistic(values):
        told["command_delay"] = float(DELAY)  # periods
    if values["hardware"] == "simulated":  # where the computer stalls, this machine's time does, too
        told["stale_periods"] = max(10, round(_PATIENCE * float(values["rate"])))
    return told


_HARDWARE = {
    "machine": "hardware",
    "hardware_file": "hardware_file",
    "simulate": "simulate",
    "rate": "rate",
    "start": "start",
    "realistic": "realistic",
    "hidden_payload": "hidden_payload",
    "force_file": "force_file",
    "realtime_priority": "realtime_priority",
    "publish_rate": "publish_rate",
}
_CONTROLLER = {
    "law": "controller",
    "hardware_file": "hardware_file",
    "force_file": "force_file",
    "keep_out_file": "keep_out_file",
    "conveyor_file": "conveyor_file",
    "rate": "rate",
    "realtime_priority": "realtime_priority",
    "fallback": "fallback",
    "natural_frequency": "natural_frequency",
    "damping": "damping",
}
_FROM_HARDWARE = {"actuated_joint_states": "hardware/joint_states", "joint_commands": "hardware/joint_commands"}


def _one_process(values: Values) -> bool:
    """Whether machine and controller share a loop: not with a controller manager, or something else, between them."""
    managed = values.get(MANAGED) == "true"
    return values["hardware"] != "none" and values["controller"] != "none" and not managed


def _alone(values: Values) -> dict[str, Parameter]:
    """Further parameters of a controller whose machine is in another process."""
    delay = 1.0 + (DELAY if _realistic(values) else 0.0)  # periods: the way over ROS is one
    return {**_of_controller(values), "command_delay": delay}


NODES = (
    NodeSpec(
        "control",
        "control_node",
        "pkm_bringup.nodes.control_node",
        {**_HARDWARE, **_CONTROLLER},
        _of_controller,
        _FROM_HARDWARE,
        wanted=_one_process,
        keeps_time=True,
        holds=("hardware", "controller"),
    ),
    NodeSpec(
        "hardware",
        "hardware_node",
        "pkm_bringup.nodes.hardware_node",
        _HARDWARE,
        wanted=lambda values: values["hardware"] != "none" and not _one_process(values),
        keeps_time=True,
    ),
    NodeSpec(
        "kinematics",
        "kinematics_node",
        "pkm_kinematics.ros.kinematics_node",
        {"publish_rate": "publish_rate"},
        remappings={"actuated_joint_states": "hardware/joint_states"},
    ),
    NodeSpec("dynamics", "dynamics_node", "pkm_dynamics.ros.dynamics_node", {"publish_rate": "publish_rate"}),
    NodeSpec(
        "controller",
        "controller_node",
        "pkm_bringup.nodes.controller_node",
        _CONTROLLER,
        _alone,
        _FROM_HARDWARE,
        wanted=lambda values: values["controller"] != "none" and not _one_process(values),
        keeps_time=True,
    ),
    NodeSpec(
        "page",
        "page_node",
        "pkm_bringup.nodes.page_node",
        {
            "host": "host",
            "port": "port",
            "operate": "operate",
            "browser": "browser",
            "motion": "motion",
            "layers": "layers",
        },
        wanted=_is("page", "true"),
        needed=False,
    ),
    NodeSpec(
        "joystick",
        "joystick_node",
        "pkm_bringup.nodes.joystick_node",
        wanted=_is("joystick", "true"),
        needed=False,
    ),
    NodeSpec(
        "motion_player",
        "motion_player_node",
        "pkm_bringup.nodes.motion_player_node",
        {
            "motion": "motion",
            "cycles": "cycles",
            "most_waypoints": "most_waypoints",
            "report": "report",
            "rate": "rate",
            "stay": "stay",
            "hardware_file": "hardware_file",
            "tool_file": "tool_file",
            "keep_out_file": "keep_out_file",
        },
        lambda values: {
            "notes": _notes(values),
            "motion_folders": [values["motion_folder"]],
            "reserve": reserve(values),
            "first_move": 1.0 if values["hardware"] in (SIMULATED, "none") else FIRST_MOVE,
            "wait_for_page": values["page"] == "true" and values["browser"] == "true",  # for a person
        },
        {"actuated_joint_states": "hardware/joint_states"},
        wanted=lambda values: (
            values["controller"] != "none" and (motion_of(values) != "none" or values["stay"] == "true")
        ),
        leads=True,
        last=False,
    ),
)

DESCRIPTION = NodeSpec(
    "description",
    "description_node",
    "pkm_description.ros.description_node",
)
"""Publishes /robot_description where robot_state_publisher does not run; its parameter is `description(values)`."""


def defaults(**changed: str) -> dict[str, str]:
    """The value of every knob, as text by name: `changed` or its default; KeyError: no such knob."""
    unknown = changed.keys() - {knob.name for knob in KNOBS}
    if unknown:
        raise KeyError(f"no such knob: {', '.join(sorted(unknown))}")
    return {knob.name: changed.get(knob.name, knob.default) for knob in KNOBS}


def nodes(values: Values) -> list[NodeSpec]:
    """The nodes that these values ask for. The description is not among them: see `DESCRIPTION`."""
    return [node for node in NODES if node.wanted(values)]


def parameters(node: NodeSpec, values: Values) -> dict[str, Parameter]:
    """The parameters of a node, each of the type of its knob's default; ValueError: a value of another type. The node
    that leads the run also gets the names of the others, to wait for.
    """
    default = {knob.name: typed_value(knob.default) for knob in KNOBS}
    typed: dict[str, Parameter] = {}
    for name, knob in node.parameters.items():
        try:
            typed[name] = (
                values[knob] == "true" if isinstance(default[knob], bool) else type(default[knob])(values[knob])
            )
        except ValueError as error:
            kind = "an integer" if isinstance(default[knob], int) else "a number"
            raise ValueError(f"{knob} is '{values[knob]}', not {kind} such as {default[knob]}") from error
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
    return "none" if motion == AUTO and not simulated else motion


def check(values: Values) -> None:
    """Refuse values that no run can have, before anything is started; the robot's file is read by `description`.

    ValueError: a knob that is none of its choices, no number, or out of its span; nothing to do; a report that cannot
    be written, a host that cannot be listened on. MotionFileError, ConfigurationError: a file that cannot be used.
    """
    for knob in KNOBS:
        text = values[knob.name]
        if knob.choices and text not in knob.choices:
            raise ValueError(f"{knob.name} is '{text}', not one of {', '.join(knob.choices)}")
        if knob.span is not None:
            number = typed_value(text)
            lowest, highest = knob.span
            if isinstance(number, str | bool) or not lowest <= number <= highest:
                raise ValueError(f"{knob.name} is '{text}', not a number from {lowest:.9g} to {highest:.9g}")
    if values["motion"] not in (AUTO, "none"):
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
    """Refuse a machine whose file, law or rate does not fit it."""
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
    """The robot's URDF+ text: files are expanded here, before the nodes start, which take plain text alone.
    DescriptionError: there is no such robot, its file cannot be expanded, or no frame can have the prefix.
    """
    text = expand(values["robot"], xacro_arguments(values["xacro_args"]))[0]
    return prefix_frames(text, values["frame_prefix"])


def typed_value(text: str) -> bool | int | float | str:
    """A text as a boolean, an integer, a float, or itself."""
    if text in SWITCH:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
