# SPDX-License-Identifier: Apache-2.0
"""A robot's library for the native package, and the real controller manager with that package's plugins."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.load import expand
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.transmission.in_c import name_in_c, transmission_in_c
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels.compiled_rotations import shift_pose

PACKAGE = Path(__file__).resolve().parents[2] / "pkm_ros2_control"
TORQUE, TRAJECTORY = "computed_torque", "joint_trajectory_controller"
TYPES = {
    TORQUE: "pkm_ros2_control/ComputedTorqueController",
    TRAJECTORY: "joint_trajectory_controller/JointTrajectoryController",
    "joint_state_broadcaster": "joint_state_broadcaster/JointStateBroadcaster",
}
_PATIENCE = 60.0  # s


def robot_library(dynamics: Dynamics, folder: Path, options: Sequence[str] = ("-O2",)) -> Path:
    """Export a robot to C and compile its library into a folder."""
    files = CFiles(dynamics)
    for file, text in files.files.items():
        (folder / file).write_text(text, encoding="utf-8")
    return _library("robot", files.name, folder, options)


def pose_near_home(k: Kinematics, rng: np.random.Generator, size: float) -> np.ndarray:
    """A pose (7,) that the platform can have, `size` of the robot's size and rad about home."""
    S, pose = np.asarray(k.subspace(k.home)), np.empty(7)
    shift_pose(np.asarray(k.home), S @ rng.uniform(-size, size, S.shape[1]) * k.characteristic_length, 1.0, pose)
    return pose


def linkage_library(transmission: Transmission, folder: Path, options: Sequence[str] = ("-O2",)) -> Path:
    """The same of a linkage."""
    name = name_in_c(transmission)
    for file, text in transmission_in_c(transmission, name).items():
        (folder / file).write_text(text, encoding="utf-8")
    return _library("linkage", name, folder, options)


def _library(kind: str, name: str, folder: Path, options: Sequence[str]) -> Path:
    library = folder / f"libpkm_{kind}_{name}.so"
    words = [f'-DPKM_HEADER="{name}.h"', f"-DPKM_NAME={name}", f"-DPKM_UPPER={name.upper()}"]
    sources = [str(folder / f"{name}.c"), str(PACKAGE / "robot" / f"{kind}.c")]
    command = ["gcc", "-std=c99", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", *options, *words]
    subprocess.run([*command, f"-I{folder}", f"-I{PACKAGE / 'include'}", *sources, "-lm", "-o", library], check=True)
    return library


def description(name: str, plugin: str, **settings: object) -> str:
    """A robot of the gallery as URDF whose machine is a plugin of ros2_control with settings."""
    lines = "".join(f'<param name="{key}">{value}</param>' for key, value in settings.items())
    hardware = f"<hardware><plugin>{plugin}</plugin>{lines}</hardware>"
    return re.sub(r"<hardware>.*?</hardware>", lambda _: hardware, expand(name)[0], flags=re.DOTALL)


def simulated(name: str, library: Path, **settings: object) -> str:
    """The same, simulated by our plugin."""
    return description(name, "pkm_ros2_control/SimulatedSystem", robot=library, **settings)


def torque_parameters(library: Path, joints: Sequence[str], **settings: object) -> dict[str, Any]:
    """Parameters of computed torque, and of the trajectory controller before it, by controller."""
    return {
        TORQUE: {"robot": str(library), "joints": list(joints), **settings},
        TRAJECTORY: {
            "joints": list(joints),
            "command_joints": [f"{TORQUE}/{joint}" for joint in joints],
            "command_interfaces": ["position", "velocity", "acceleration"],
            "state_interfaces": ["position", "velocity"],
        },
    }


@contextmanager
def manager(
    folder: Path,
    namespace: str,
    rate: float,
    controllers: Mapping[str, Mapping[str, Any]],
    types: Mapping[str, str],
    priority: int = 0,
) -> Iterator[Callable[..., None]]:
    """The controller manager in a namespace; yields what has its spawner load and activate controllers.

    Args:
        folder: for parameters and output.
        namespace: of all nodes; somebody publishes `robot_description` in it.
        rate: of the manager [Hz].
        controllers: parameters by name.
        types: of the controllers, by name.
        priority: of its loop; 0: none, as in tests, where FIFO threads beside Python's would starve them.
    """
    from ament_index_python.packages import get_package_prefix

    own = {"update_rate": round(rate), "thread_priority": priority, "lock_memory": priority > 0}
    own |= {name: {"type": kind} for name, kind in types.items()}
    nodes = {"controller_manager": own, **controllers}
    file = folder / "parameters.yaml"
    # JSON is YAML, and has no aliases, which ROS cannot read
    file.write_text(json.dumps({f"/**/{name}": {"ros__parameters": node} for name, node in nodes.items()}, indent=1))
    programs = Path(get_package_prefix("controller_manager")) / "lib" / "controller_manager"
    place = ["--ros-args", "-r", f"__ns:={namespace}"]
    with (folder / "manager.log").open("wb") as output:
        command = [str(programs / "ros2_control_node"), *place, "--params-file", str(file)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:

            def spawn(*names: str) -> None:
                words = ["--param-file", str(file), "--controller-manager-timeout", str(_PATIENCE), *place]
                command = [str(programs / "spawner"), *names, "--activate-as-group", *words]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * _PATIENCE)
                if done.returncode != 0:
                    raise RuntimeError(done.stdout + done.stderr + (folder / "manager.log").read_text())

            yield spawn
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
