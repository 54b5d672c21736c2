# SPDX-License-Identifier: Apache-2.0
"""The settings of a run: one table for options of commands, launch arguments and parameters of nodes."""

from __future__ import annotations

from dataclasses import dataclass

from pkm_control.controllers.law_settings import DAMPING, LAWS, NATURAL_FREQUENCY
from pkm_control.motion.files.shipped import motion_names
from pkm_description.command_options import ROBOT, XACRO_ARGS
from pkm_hardware.machine_kinds import KINDS, SIMULATED
from pkm_runtime.scheduling import PRIORITY

SWITCH = ("true", "false")
MOTION = f"motion to run: a CSV file, {', '.join(motion_names())}, or auto (what suits the robot)"


@dataclass(frozen=True)
class Setting:
    """A setting, with its default as text.

    `takes`: its only texts, or what its text stands for; `span` bounds a number. `group` is for the help. As a
    parameter of a node, only one that is `live` may change later.
    """

    name: str
    default: str
    group: str
    takes: str | tuple[str, ...]
    description: str
    span: tuple[float, float] | None = None
    live: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Its only texts, if any."""
        return self.takes if isinstance(self.takes, tuple) else ()


SETTINGS = (
    Setting("robot", "delta", "robot", "TEXT", ROBOT),
    Setting("xacro_args", "", "robot", "TEXT", XACRO_ARGS),
    Setting(
        "motion",
        "auto",
        "motion",
        "FILE|NAME",
        f"{MOTION}, or none; with a machine that is not simulated, auto is none",
    ),
    Setting(
        "tool_file", "", "motion", "FILE", "file of the robot's tools, which motions may name (docs/motion_files.md)"
    ),
    Setting("motion_folder", "", "motion", "DIR", "folder whose motion files may be asked for while the robot runs"),
    Setting("most_waypoints", "500", "motion", "N", "waypoints of a motion that may be asked for", (2, 1000000)),
    Setting("cycles", "20", "motion", "N", "number of runs of the motion", (1, 1000000)),
    Setting("stay", "true", "motion", SWITCH, "keep the robot running when the motion is done"),
    Setting("controller", LAWS[0], "control", (*LAWS, "none"), "control law, or none"),
    Setting("rate", "1000.0", "control", "HZ", "rate of the machine and of the controller [Hz]", (10.0, 10000.0)),
    Setting(
        "natural_frequency",
        str(NATURAL_FREQUENCY),
        "control",
        "RAD/S",
        "natural frequency of the tracking error [rad/s]; lowered to what the rate carries",
        (0.1, 1000.0),
        live=True,
    ),
    Setting(
        "damping",
        str(DAMPING),
        "control",
        "RATIO",
        "damping of the tracking error; 1 is critical",
        (0.3, 10.0),
        live=True,
    ),
    Setting("fallback", "gravity", "control", ("gravity", "zero"), "efforts when the measured state is stale"),
    Setting(
        "hardware",
        SIMULATED,
        "machine",
        (SIMULATED, *KINDS, "none"),
        "who is the machine: our simulation, a driver (loopback: none at all, what is commanded is read), or nobody "
        "(yours, or ros2_control)",
    ),
    Setting(
        "hardware_file",
        "",
        "machine",
        "FILE",
        "file of the machine: port, signs, offsets, units, limits (docs/hardware.md)",
    ),
    Setting(
        "simulate",
        "false",
        "machine",
        SWITCH,
        "a simulated device in place of the servos, Dynamixels or ODrives; their driver speaks to it",
    ),
    Setting("keep_out_file", "", "control", "FILE", "file of places that the tool keeps out of (docs/keep_out.md)"),
    Setting(
        "compliance_file",
        "",
        "control",
        "FILE",
        "file of how the robot gives way, against which its platform is then led (docs/compensation.md)",
    ),
    Setting("conveyor_file", "", "control", "FILE", "file of conveyors that motions may ride on (docs/conveyor.md)"),
    Setting(
        "measurement_file",
        "measurements.csv",
        "output",
        "FILE",
        "file that measurements for a calibration are written to (docs/calibration.md)",
    ),
    Setting(
        "force_file",
        "",
        "machine",
        "FILE",
        "file of the force laws: task frame, sensor, what a simulated machine may touch (docs/force.md)",
    ),
    Setting(
        "realistic",
        "false",
        "machine",
        SWITCH,
        "machine with encoders, a delay of one period, and a fifth more inertia than its description says",
    ),
    Setting(
        "hidden_payload",
        "0.0",
        "machine",
        "KG",
        "mass that the simulated machine carries and the controller does not know of [kg]",
        (0.0, 1e6),
    ),
    Setting(
        "realtime_priority",
        str(PRIORITY),
        "ROS",
        "TEXT",
        "SCHED_FIFO priority of the control loop, where permitted; 0: ordinary scheduling",
        (0, 98),
    ),
    Setting(
        "start",
        "auto",
        "machine",
        ("auto", "active", "manual"),
        "who enables the drives: active, the robot itself at once; manual, somebody (pkm enable); auto, the robot "
        "itself where it is simulated, and somebody where it is not",
    ),
    Setting("report", "reports", "output", "DIR", "directory for the page (PNG, PDF, HTML) and the table of the run"),
    Setting("page", "true", "output", SWITCH, "show the robot in a browser page"),
    Setting(
        "layers",
        "",
        "output",
        "TEXT",
        "surfaces around the robot: .glb files of pkm analyse or folders of them, with commas between",
    ),
    Setting(
        "host",
        "127.0.0.1",
        "output",
        "ADDRESS",
        "listening address of the page; 127.0.0.1: this computer alone, 0.0.0.0: any network",
    ),
    Setting("port", "8080", "output", "PORT", "first port tried for the browser page", (1, 65535)),
    Setting(
        "operate",
        "local",
        "output",
        ("local", "everyone", "nobody"),
        "who may command from the page: browsers on this computer, everyone who reaches it, or nobody",
    ),
    Setting("browser", "false", "output", SWITCH, "open the page in a browser, where there is a display"),
    Setting("joystick", "false", "control", SWITCH, "steer the platform by what a node of the package joy publishes"),
    Setting("namespace", "", "ROS", "NAME", "namespace of all nodes and topics"),
    Setting("frame_prefix", "", "ROS", "TEXT", "before the name of every frame of the robot, such as left/"),
    Setting(
        "description",
        "own",
        "ROS",
        ("own", "other"),
        "who publishes robot_description: a node of ours, or another (robot_state_publisher)",
    ),
    Setting("use_sim_time", "false", "ROS", SWITCH, "take the time from /clock"),
    Setting(
        "publish_rate",
        "100.0",
        "ROS",
        "HZ",
        "highest rate of states, references and efforts as they are published [Hz]",
        (1.0, 2000.0),
    ),
)
SETTING = {one.name: one for one in SETTINGS}


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
