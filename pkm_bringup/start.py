# SPDX-License-Identifier: Apache-2.0
"""Programs of the nodes: a signal that comes while libraries are still imported ends them well.

Python answers Ctrl-C during imports with an error. Nothing runs yet, so there is nothing to be put in order. A launch
holds signals back (`HELD_BACK`) until a program listens to them here, and writes into the environment which process it
is (`LAUNCHER`): killed, it would leave its nodes running, with drives on. In one session with it, a loop would get no
more of a busy computer than what all nodes together get.
"""

import importlib
import os
import signal
import sys

LAUNCHER = "PKM_LAUNCHER"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
HELD_BACK = ("env", *(f"--block-signal={number.name}" for number in _SIGNALS))  # to be put before a command

NODES = {  # modules by the names of their executables, each with a `main`
    "kinematics_node": "pkm_kinematics.ros.kinematics_node",
    "dynamics_node": "pkm_dynamics.ros.dynamics_node",
    "layers_node": "pkm_analysis.ros.layers_node",
    "joystick_node": "pkm_bringup.nodes.joystick_node",
    "page_node": "pkm_bringup.nodes.page_node",
    "motion_player_node": "pkm_bringup.nodes.motion_player_node",
    "controller_node": "pkm_bringup.nodes.controller_node",
    "control_node": "pkm_bringup.nodes.control_node",
    "hardware_node": "pkm_bringup.nodes.hardware_node",
    "description_node": "pkm_description.ros.robot_description",
    "machine_watch_node": "pkm_bringup.nodes.machine_watch_node",
}
LOOPS = ("control_node", "hardware_node", "controller_node")  # those that keep time


def node() -> int:
    """Entry point of the executables in `NODES`, each by its own name."""
    return run(os.path.basename(sys.argv[0]).removesuffix(".exe"))


def run(executable: str) -> int:
    """Run a program of `NODES`, which ends with the launch that began it; its exit code."""
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(0))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    launcher = os.environ.get(LAUNCHER, "")
    if launcher == str(os.getppid()):
        processes = importlib.import_module("pkm_runtime.child_processes")
        processes.in_own_session(executable in LOOPS)
        processes.end_with_parent(int(launcher))
    if launcher and not os.path.exists(f"/proc/{launcher}"):
        return 0
    try:
        return int(importlib.import_module(NODES[executable]).main())
    finally:
        for number in _SIGNALS:  # Python itself would take them as its default from here on
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    raise SystemExit(run(sys.argv.pop(1)))
