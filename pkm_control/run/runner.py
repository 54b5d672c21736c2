# SPDX-License-Identifier: Apache-2.0
"""Runs a robot without the ROS launch system: the nodes of `bringup.py` as processes that end together.

Each node leads a process group of its own and is told by the kernel to end should this process die in any way. Ctrl-C,
SIGTERM, a node that ends unexpectedly, and the end of the motion all stop everything.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import yaml

from pkm_control.run import bringup
from pkm_description import PkmError, robot_names

_PATIENCE = (4.0, 2.0, 1.0)  # s, after SIGINT, SIGTERM and SIGKILL
_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: read the knobs, expand the robot's file, run the nodes, end them."""
    values = read_knobs(arguments)
    specs = bringup.nodes(values)
    try:
        text = bringup.description(values)
        commands = {spec.name: command_line(spec, values) for spec in specs}
    except (PkmError, ValueError) as error:
        print(f"pkm run: {error}", file=sys.stderr)
        return 2
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    group = ProcessGroup()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, group.ask_to_stop)
    with tempfile.TemporaryDirectory(prefix="pkm_") as folder:
        file = write_parameters(Path(folder) / "description.yaml", robot_description=text)
        describing = command_line(bringup.DESCRIPTION, values)
        try:
            group.start(bringup.DESCRIPTION, [*describing, "--params-file", str(file)])
            for spec in specs:
                group.start(spec, commands[spec.name], leads=spec.leads and values["stay"] != "true")
            return group.wait()
        finally:
            group.stop()


def write_parameters(file: Path, **parameters: str) -> Path:
    """Write parameters for any node to a file, as texts may be too long for a command line; return the file."""
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}, allow_unicode=True), encoding="utf-8")
    return file


def read_knobs(arguments: Sequence[str] | None = None) -> dict[str, str]:
    """Return the value of every knob from command line options."""
    parser = argparse.ArgumentParser(
        prog="pkm run",
        description="Bring a robot to life: simulated machine, kinematics, dynamics, controller, browser page, motion.",
        epilog=f"Robots of the gallery: {', '.join(robot_names())}. Ctrl-C ends everything.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for knob in bringup.KNOBS:
        default = "false" if knob.name == "stay" else knob.default
        options = {"default": default, "help": knob.description, "metavar": knob.name.upper()}
        if knob.choices:
            options["metavar"] = "{" + ",".join(knob.choices) + "}"
        if knob.name == "robot":
            parser.add_argument("robot", nargs="?", **options)  # type: ignore[arg-type]
        elif knob.choices == bringup.SWITCH:
            parser.add_argument(f"--{knob.name}", nargs="?", const="true", choices=knob.choices, **options)  # type: ignore[arg-type]
        else:
            parser.add_argument(f"--{knob.name}", choices=knob.choices or None, **options)  # type: ignore[arg-type]
    return {name: str(value) for name, value in vars(parser.parse_args(arguments)).items()}


def command_line(spec: bringup.NodeSpec, values: bringup.Values) -> list[str]:
    """Return the command that starts a node."""
    command = [sys.executable, "-m", spec.module, "--ros-args", "-r", f"__node:={spec.name}"]
    if values["namespace"]:
        command += ["-r", f"__ns:=/{values['namespace'].strip('/')}"]
    for name, other in spec.remappings.items():
        command += ["-r", f"{name}:={other}"]
    for name, value in bringup.parameters(spec, values).items():
        command += ["-p", f"{name}:={json.dumps(value)}"]
    return command


class ProcessGroup:
    """Processes that end together."""

    def __init__(self, patience: tuple[float, float, float] = _PATIENCE) -> None:
        self._patience = patience
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._specs: dict[str, bringup.NodeSpec] = {}
        self._leader = ""
        self._stopping = False

    def start(self, spec: bringup.NodeSpec, command: Sequence[str], leads: bool = False) -> None:
        """Start the process of a node. When one that `leads` ends, the run is over."""
        if self._stopping:
            return
        self._specs[spec.name] = spec
        self.processes[spec.name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_die_with_parent
        )
        if leads:
            self._leader = spec.name

    def ask_to_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Signal handler: end the run at the next look."""
        self._stopping = True

    def wait(self) -> int:
        """Return when the run is over: 0 when asked to stop or the leader ended well, else a process's exit code.

        Which nodes end the run is what `bringup.py` says of them.
        """
        running = dict(self.processes)
        while not self._stopping:
            for name, process in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[name]
                if name == self._leader:
                    return code
                if self._specs[name].stops_run(code):
                    print(f"pkm run: {name} ended with code {code}; stopping the others", file=sys.stderr, flush=True)
                    return code or 1
                if code != 0:
                    print(f"pkm run: {name} ended with code {code}; going on without it", file=sys.stderr, flush=True)
            time.sleep(0.05)
        return 0

    def stop(self) -> None:
        """End all processes: first politely, in the end for certain."""
        self._stopping = True
        for number, patience in zip((signal.SIGINT, signal.SIGTERM, signal.SIGKILL), self._patience, strict=True):
            alive = [process for process in self.processes.values() if process.poll() is None]
            for process in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + patience
            while alive and time.monotonic() < deadline:
                alive = [process for process in alive if process.poll() is None]
                time.sleep(0.02)
            if not alive:
                return


def _die_with_parent() -> None:
    """In the child, before it becomes the node: ask the kernel for SIGTERM when the parent dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
