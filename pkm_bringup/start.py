# SPDX-License-Identifier: Apache-2.0
"""Programs as launch files start them: a signal that comes while libraries are still imported ends them well.

Python answers Ctrl-C during imports with an error. Nothing runs yet, so there is nothing to be put in order.
"""

import importlib
import os
import signal
import sys

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


def _run(module: str) -> int:
    before = [(number, signal.signal(number, lambda *_: os._exit(0))) for number in (signal.SIGINT, signal.SIGTERM)]
    run = importlib.import_module(module).main
    for number, handler in before:
        signal.signal(number, handler)
    try:
        return int(run())
    finally:
        for number, _ in before:  # Python itself would take them as its default from here on
            signal.signal(number, signal.SIG_IGN)


def main() -> int:
    """Entry point of the runner."""
    return _run("pkm_bringup.runner")


def node() -> int:
    """Entry point of the executables in `NODES`, each by its own name."""
    return _run(NODES[os.path.basename(sys.argv[0]).removesuffix(".exe")])


if __name__ == "__main__":
    raise SystemExit(main())
