# SPDX-License-Identifier: Apache-2.0
"""Runs a robot without the ROS launch system: the nodes of `bringup.py` as processes that end together.

The robot is built here, once, and the nodes are forked from this process, so that they start with it in memory. Each
node leads a process group of its own and gets a signal from the kernel to end should this process die in any way.
Ctrl-C, SIGTERM, a node that ends unexpectedly, and the end of the motion all stop everything.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import importlib
import json
import os
import re
import signal
import stat
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import IO, Any

import yaml

from pkm_bringup import bringup
from pkm_bringup.command_line.measured import (
    drives_warning,
    forget_measured,
    is_cut_off,
    is_measured,
    say_drives_may_be_on,
    say_fault,
)
from pkm_bringup.command_line.outputs import leave_terminal
from pkm_client import options
from pkm_client.options import SETTINGS, SWITCH
from pkm_description import PkmError
from pkm_description.gallery import robot_names
from pkm_description.ros.transport import log_environment, transport_environment
from pkm_description.urdf import robot_cache
from pkm_hardware.machine_kinds import SIMULATED
from pkm_runtime.child_processes import ENDING, Child, end_with_parent, in_own_session, name_process
from pkm_runtime.optional import PAGE, PAGE_REMEDY, ROS, ROS_REMEDY, need
from pkm_runtime.progress import progress
from pkm_runtime.whole_files import is_safe, safe_folder

_PATIENCE = (30.0, 2.0, 1.0)  # s, after SIGINT (a report may be drawn, on a busy computer), SIGTERM and SIGKILL
_ANOTHER_REQUEST_AFTER = 1.0  # s: a signal this long after the first one is another request
_TELLING = 8.0  # s, for a node that disables real drives, however often the end is requested
_SOON = 1.0  # s: an end that takes longer says what it waits for
_AT_TERMINAL = ("stay", "browser")  # settings that are on by default at a terminal
CUT_OFF = 130  # exit code of an interrupted run: what shells expect


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: read the settings, expand the robot's file, run the nodes, end them."""
    gc.disable()  # what is made until the nodes run stays: a collection would find nothing
    values = read_settings(arguments)
    specs = [*([bringup.DESCRIPTION] if values["description"] == "own" else []), *bringup.nodes(values)]
    set_up_discovery()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in each other's way
    try:
        bringup.check(values)
        need("a run over ROS", ROS, ROS_REMEDY)
        if values["page"] == "true":
            need("the browser page", PAGE, f"{PAGE_REMEDY}, or leave it out with --page=false")
        text = bringup.description(values)
        words = {spec.name: ros_arguments(spec, values) for spec in specs}
        alone = only_one(values["namespace"])
        with progress("loading libraries"):  # heavy: what is wrong with the options is said before
            preparing = importlib.import_module("pkm_bringup.warm_kernels")
        preparing.compile_apart(text, [spec for spec in specs if spec.needed], values)
        dynamics = preparing.build(text)
    except (PkmError, ValueError) as error:
        return refused(error)
    except KeyboardInterrupt:
        return interrupted()
    forget_measured()
    group = ProcessGroup()
    with alone, tempfile.TemporaryDirectory(prefix="pkm_") as folder:
        file = write_parameters(Path(folder) / "description.yaml", robot_description=text)
        if bringup.DESCRIPTION.name in words:  # no node needs to wait for its topic: the text is the same for all
            for arguments_of_node in words.values():
                arguments_of_node += ["--params-file", str(file)]

        try:
            return _run(group, specs, words, values, lambda needed: preparing.prepare(dynamics, needed, values))
        except PkmError as error:
            return refused(error)
        except KeyboardInterrupt:
            return interrupted()
        finally:
            group.stop()
            if warning := drives_warning():
                print(f"pkm run: {warning}", file=sys.stderr, flush=True)


def _run(
    group: ProcessGroup,
    specs: Sequence[bringup.NodeSpec],
    words: Mapping[str, Sequence[str]],
    values: bringup.Values,
    prepare: Callable[[Sequence[bringup.NodeSpec]], None],
) -> int:
    """Start the nodes, with their arguments by name, and wait for their end; the exit code of the run."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # who starts this may have held them back: nodes inherit it
    gate = Gate()

    def start(spec: bringup.NodeSpec) -> None:
        group.start(spec, forked(spec, words[spec.name], gate), spec.leads and values["stay"] != "true")

    for spec in specs:
        if not spec.needed:  # these import libraries of their own, for seconds, while this process goes on
            start(spec)
    needed = [spec for spec in specs if spec.needed]
    prepare(needed)
    for number in ENDING:
        signal.signal(number, group.ask_to_stop)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # Ctrl-Z would freeze this process alone: nobody would hear Ctrl-C
    gc.enable()
    gate.open()
    for spec in needed:
        start(spec)
    code = group.wait()
    group.stop()
    if group.killed:
        say_killed(group, values)
        code = code or 1
    if group.leader_was_cut_off():
        return interrupted()
    return 1 if drives_warning() else code or group.code_of_leader() or (CUT_OFF if is_cut_off() else 0)


def say_killed(group: ProcessGroup, values: bringup.Values) -> None:
    """Say which nodes had to be killed; with real drives among them, the run ends with the warning of those."""
    killed = f"{', '.join(group.killed)} did not end and had to be killed"
    print(f"pkm run: {killed}", file=sys.stderr, flush=True)
    real = values["hardware"] != SIMULATED and values["simulate"] != "true"
    if real and group.killed_with_drives and not drives_warning():
        warning = importlib.import_module("pkm_hardware.machine").drives_may_be_on
        say_drives_may_be_on(warning(TimeoutError(killed)))


def only_one(namespace: str) -> IO[str]:
    """Lock out other runs on this computer with the same topics (PkmError): each would command the other's machine.
    The returned lock file must stay open as long as the run lasts. PermissionError: it belongs to another user.
    """
    domain = os.environ.get("ROS_DOMAIN_ID", "0") or "0"
    name = re.sub(r"\W+", "_", f"{domain}_{namespace.strip('/')}")
    folder, computer = runtime_folder()
    path = folder / f"pkm_run_{computer}{name}.lock"
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        file = open(os.open(path, flags, 0o600), "r+", encoding="ascii", errors="replace")  # noqa: SIM115
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            file.close()
            raise PermissionError("it is not a file of this user")
    except OSError as error:
        raise PkmError(f"{path} cannot be used ({error.strerror or error}): remove it") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        number = file.read(20).strip()
        file.close()
        raise PkmError(
            f"a robot already runs on these topics (process {number if number.isdigit() else 'unknown'}, "
            f"domain {domain}, namespace '/{namespace.strip('/')}'); end it, or give this one a "
            "--namespace or a ROS_DOMAIN_ID of its own"
        ) from error
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def runtime_folder() -> tuple[Path, str]:
    """Folder by which this user's processes, and nobody else's, find each other, and a name for this computer where
    several may share it. PkmError where others can write to each of them.
    """
    place = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    with contextlib.suppress(OSError):
        if is_safe(os.lstat(place)) and os.access(place, os.W_OK):
            return Path(place), ""
    problems = []
    temporary = Path(tempfile.gettempdir()) / f"pkm_{os.getuid()}"
    for folder in (robot_cache.folders()[-1], temporary):
        try:
            return safe_folder(folder), f"{os.uname().nodename}_"
        except OSError as error:
            problems.append(str(error))
    raise PkmError(f"there is no folder for this user's runs: {'; '.join(problems)}; set XDG_RUNTIME_DIR")


def set_up_discovery() -> None:
    """Restrict discovery to this computer, avoid shared memory, and let logs be written, unless told otherwise."""
    os.environ.update(transport_environment(os.environ) | log_environment(os.environ))


def interrupted() -> int:
    """Report that there was no run; the exit code of that."""
    print("\npkm run: ended before the robot was there; nothing was run, and there is no report", file=sys.stderr)
    return CUT_OFF


def refused(error: Exception) -> int:
    """Report why there is no run; the exit code of that."""
    print(f"pkm run: {error}", file=sys.stderr)
    return 2


def write_parameters(file: Path, **parameters: str) -> Path:
    """Write parameters for any node to a file, as texts may be too long for a command line; return the file."""
    file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}, allow_unicode=True), encoding="utf-8")
    return file


def read_settings(arguments: Sequence[str] | None = None) -> dict[str, str]:
    """The value of every setting, as text by name, from command line options, by default the process's own."""
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    given = vars(parser(at_terminal).parse_args(arguments))
    if (given["motion"] == "none" or bringup.motion_of(given) == "none") and "stay" not in options.chosen(
        parser(), arguments
    ):
        given["stay"] = True  # there is no end of a motion to wait for
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def parser(at_terminal: bool = False) -> argparse.ArgumentParser:
    """The command line: every setting an option, its name with hyphens, under the heading of its group."""
    robots = textwrap.fill(f"The robots of the gallery: {', '.join(robot_names())}.", 100)
    p = options.parser(
        "run",
        "Bring a robot to life over ROS: simulated machine, kinematics, dynamics, controller, browser page,\n"
        "motion. Ctrl-C ends everything, and reports what was done.",
        "The same settings are launch arguments, with underscores: ros2 launch pkm_control pkm.launch.py robot:=delta\n"
        f"\n{robots}",
    )
    groups = {group: p.add_argument_group(group) for group in dict.fromkeys(one.group for one in SETTINGS[2:])}
    options.add_robot(p, "delta")
    for one in SETTINGS[2:]:
        changed: dict[str, Any] = {}
        if one.name in _AT_TERMINAL:
            where = "at a terminal or without motion" if one.name == "stay" else "at a terminal"
            changed = {"default": at_terminal, "help": f"{one.description} (default: yes {where}, else no)"}
        elif one.choices != SWITCH:
            changed = {"type": str, "default": one.default}  # which `bringup.check` judges, as those of launch files
        options.add(groups[one.group], one.name, **changed)
    return p


def ros_arguments(spec: bringup.NodeSpec, values: bringup.Values) -> list[str]:
    """The arguments that a node is started with: its name, namespace, remappings and parameters."""
    arguments = ["--ros-args", *([] if spec.holds else ["-r", f"__node:={spec.name}"])]
    if os.environ.get("ROS_SECURITY_ENABLE", "").lower() == "true":
        arguments += ["--enclave", f"{bringup.ENCLAVES}/{spec.name}"]
    if values["namespace"]:
        arguments += ["-r", f"__ns:=/{values['namespace'].strip('/')}"]
    for name, other in spec.remappings.items():
        arguments += ["-r", f"{name}:={other}"]
    for name, value in bringup.parameters(spec, values).items():
        arguments += ["-p", f"{name}:={_as_yaml(value)}"]
    return arguments


def _as_yaml(value: object) -> str:
    # JSON writes letters beyond 16 bits, such as emoji, as pairs, which YAML does not know
    return re.sub(r"[^ -~]", lambda one: f"\\U{ord(one[0]):08x}", json.dumps(value, ensure_ascii=False))


class Gate:
    """Holds forked processes until it is opened here, or until this process is gone: participants of DDS that come up
    together receive each other's first announcements; another may have to wait seconds for the next.
    """

    def __init__(self) -> None:
        self._inner, self._outer = os.pipe()
        self._open = False

    def open(self) -> None:
        """Let everybody pass."""
        if not self._open:
            self._open = True
            os.close(self._outer)

    def wait(self) -> None:
        """In a forked process: wait until it is opened."""
        self.open()  # this process's own end; what counts is the parent's
        os.read(self._inner, 1)


def forked(spec: bringup.NodeSpec, arguments: Sequence[str], gate: Gate) -> Child:
    """A node in a forked process, before ROS is initialised: imported at once, it begins when the gate is open."""
    return Child(partial(_become, spec, arguments, gate, os.getpid()))


def _become(spec: bringup.NodeSpec, arguments: Sequence[str], gate: Gate, parent: int) -> int | None:
    # in the child: run the node; its exit code
    in_own_session(spec.keeps_time)
    end_with_parent(parent)
    name_process(f"pkm {spec.name}")
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.argv = [spec.executable, *arguments]
    module = importlib.import_module(spec.module)
    gc.enable()
    gate.wait()
    code: int | None = module.main()
    return code


class ProcessGroup:
    """Processes that end together."""

    def __init__(self, patience: tuple[float, float, float] = _PATIENCE) -> None:
        self._patience = patience
        self.processes: dict[str, Child] = {}
        self._specs: dict[str, bringup.NodeSpec] = {}
        self._leader = ""
        self._stopping = False
        self._asked = 0  # how often to stop
        self._asked_at = 0.0  # s, monotonic: first
        self.killed: list[str] = []  # names of processes that did not end otherwise

    def start(self, spec: bringup.NodeSpec, process: Child, leads: bool = False) -> None:
        """Add the process of a node that has just started. When one that `leads` ends, the run is over."""
        self._specs[spec.name] = spec
        self.processes[spec.name] = process
        if leads:
            self._leader = spec.name

    def code_of_leader(self) -> int:
        """Exit code of the leading node, once it has ended by itself or was asked to; else 0."""
        return max([0, *(code for code in self._codes_of_leader() if code is not None)])

    def leader_was_cut_off(self) -> bool:
        """Whether the leading node was still starting when it was asked to end, and has reported nothing."""
        return -signal.SIGINT in self._codes_of_leader()

    @property
    def killed_with_drives(self) -> bool:
        """Whether a machine's node is among them."""
        return any("hardware" in self._specs[name].nodes for name in self.killed)

    def _codes_of_leader(self) -> list[int | None]:
        return [self.processes[name].poll() for name, spec in self._specs.items() if spec.leads]

    def ask_to_stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Signal handler: end the run at the next look; the second signal, without waiting for a report."""
        if number not in (0, signal.SIGINT):
            with contextlib.suppress(OSError):  # of a closed terminal
                name = next((one.name for one in signal.Signals if one == number), f"signal {number}")
                os.write(2, f"pkm run: {name} came: the run ends\n".encode())
        if number == signal.SIGHUP:
            leave_terminal()
        self._stopping = True
        now = time.monotonic()
        # what comes within a second is one request: a launch hands on what the terminal has sent to all
        if not self._asked or now - self._asked_at > _ANOTHER_REQUEST_AFTER:
            self._asked_at = self._asked_at or now
            self._asked += 1

    def wait(self) -> int:
        """Wait until the run is over; 0 when asked to stop or the leader ended well, else an exit code."""
        running = dict(self.processes)
        while not self._stopping:
            if is_measured() and self._leader in running and len(running) > 1:
                self._signal((process for name, process in running.items() if name != self._leader), signal.SIGINT)
                running = {self._leader: running[self._leader]}
            for name, process in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[name]
                if name == self._leader and code >= 0:
                    return code
                ended = f"{name} ended with code {code}"
                if self._specs[name].stops_run(code, leads=name == self._leader):
                    print(f"pkm run: {ended}; stopping the others", file=sys.stderr, flush=True)
                    say_fault(ended)
                    return max(code, 1)
                if code != 0:
                    print(f"pkm run: {ended}; going on without it", file=sys.stderr, flush=True)
            time.sleep(0.05)
        return 0

    @staticmethod
    def _signal(processes: Iterable[Child], number: int) -> None:
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)

    def stop(self) -> None:
        """End all processes: first by request, finally by force, which a further signal hastens."""
        self._stopping = True
        asked, began, warned = self._asked, time.monotonic(), False
        for number, patience in zip((signal.SIGINT, signal.SIGTERM, signal.SIGKILL), self._patience, strict=True):
            alive = [process for process in self.processes.values() if process.poll() is None]
            if number == signal.SIGKILL:
                self.killed += [name for name, process in self.processes.items() if process in alive]
            self._signal(alive, number)
            deadline = time.monotonic() + patience
            while alive and time.monotonic() < deadline and (self._asked == asked or self._has_drives(alive, began)):
                alive = [process for process in alive if process.poll() is None]
                if alive and not warned and time.monotonic() - began > _SOON:
                    warned = True
                    names = ", ".join(name for name, process in self.processes.items() if process in alive)
                    print(f"pkm run: waiting for {names} to end; Ctrl-C: at once", file=sys.stderr, flush=True)
                time.sleep(0.02)
            asked = self._asked
            if not alive:
                return

    def _has_drives(self, alive: Sequence[Child], began: float) -> bool:
        """Whether one of them may still be disabling drives; its report is waited for."""
        names = (name for name, process in self.processes.items() if process in alive)
        return time.monotonic() - began < _TELLING and any("hardware" in self._specs[name].nodes for name in names)


if __name__ == "__main__":
    raise SystemExit(main())
