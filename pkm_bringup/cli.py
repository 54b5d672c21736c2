# SPDX-License-Identifier: Apache-2.0
"""The command `pkm`: each subcommand has `main` and `parser` in a module, imported on demand for a fast start."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

from pkm_runtime.errors import nearest, shortage
from pkm_runtime.local_services import asked_at_once
from pkm_runtime.optional import release

COMMANDS = {  # word: module, and what it does
    "run": ("pkm_bringup.runner", "bring a robot to life over ROS: machine, kinematics, dynamics, controller, page"),
    "simulate": ("pkm_bringup.simulate_command", "the same in one process, without ROS"),
    "play": ("pkm_bringup.command_line.play", "run a motion on a machine of your own, without ROS"),
    "servo-setup": ("pkm_bringup.command_line.servo_setup", "find signs and offsets of hobby servos, one by one"),
    "move": ("pkm_client.verbs", "have a robot that runs over ROS go to a pose"),
    "follow": ("pkm_client.verbs", "have it run a motion file"),
    "jog": ("pkm_client.verbs", "steer its platform for some time"),
    "pause": ("pkm_client.verbs", "halt its motion on the path"),
    "resume": ("pkm_client.verbs", "go on with what was halted"),
    "stop": ("pkm_client.verbs", "end whatever moves, and hold"),
    "estop": ("pkm_client.verbs", "turn its drives off at once, until a reset"),
    "enable": ("pkm_client.verbs", "have its drives follow commands"),
    "disable": ("pkm_client.verbs", "turn its drives off"),
    "reset": ("pkm_client.verbs", "lead its machine out of a fault, drives off"),
    "speed": ("pkm_client.verbs", "run its motions at a fraction of their plan"),
    "recover": ("pkm_client.verbs", "lead it out of a stop"),
    "mode": ("pkm_client.verbs", "go to another working mode, or say which it is"),
    "state": ("pkm_client.verbs", "say what it does now, and where it is"),
    "cycle": ("pkm_bringup.command_line.cycle", "cycles per minute between two places, and what bounds them"),
    "check": ("pkm_kinematics.check", "say what a description means, or what is wrong with it"),
    "analyse": ("pkm_analysis.command_line.analyse", "say what a robot can do, and how well"),
    "transmission": ("pkm_analysis.transmission_range", "say what a linkage does to a joint, such as an ankle's"),
    "zoo": ("pkm_analysis.zoo", "load, check, solve and convert public files with closed loops"),
    "calibrate": ("pkm_calibration.calibrate_command", "find where the joints of a real robot, or printer, sit"),
    "identify": ("pkm_dynamics.identification.__main__", "find masses and friction from a recorded motion"),
    "export": ("pkm_bringup.command_line.export_robot", "make C, or a MuJoCo model, of a robot"),
    "convert": ("pkm_description.formats.convert", "make URDF+ of a file of another tool, or such a file of a robot"),
    "warm": ("pkm_bringup.warm_kernels", "compile kernels now rather than at first use"),
    "completion": ("pkm_bringup.command_line.completion", "print what your shell needs to complete all this"),
}

_INTERRUPTED = 130  # exit code, as shells expect it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand with its options, by default those of this process; the exit code, 2 for an unknown one."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if words else 2
    if words == ["--version"]:
        print(f"pkm {release()}")
        return 0
    if words[0] not in COMMANDS:
        hint = nearest(words[0], COMMANDS, f"choose one of {', '.join(COMMANDS)}")
        print(f"pkm: no such command as '{words[0]}'; {hint}", file=sys.stderr)
        return 2
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: threads only get in each other's way
    code = _run(words)
    if code == _INTERRUPTED:
        # Python that was interrupted in text that it executed would end by SIGINT. More text makes it forget that.
        exec("")
    return code


def _run(words: list[str]) -> int:
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # which `./pkm` holds back until here
        if (status := asked_at_once(words)) is not None:
            return status
        code = int(command(words[0]).main([_as_value(word) for word in words[1:]]))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:  # of a command that is not in the middle of a motion, or has not begun
        print(f"\npkm {words[0]}: interrupted; nothing more is done", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # a reader such as head has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is written when Python ends
        return 141
    except (OSError, MemoryError, ImportError, RuntimeError, UnicodeEncodeError) as error:
        if short := shortage(error):
            print(f"pkm {words[0]}: {short}", file=sys.stderr)
            return 1
        if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"pkm {words[0]}: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 1


def _open_streams() -> None:
    # A serial line would get the number of a closed one, and what libraries print there
    for number, name, how in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free is this one
            setattr(sys, name, os.fdopen(number, how, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # letters of names that its encoding lacks


def _as_value(word: str) -> str:
    """A word; one such as -1mm or -2:2deg with a space before it, or argparse takes it for an option."""
    return f" {word}" if re.match(r"-\.?\d", word) and not re.fullmatch(r"-\d*\.?\d*", word) else word


def command(word: str) -> Any:
    """What has `main` and `parser` of a subcommand: its module, or the verb in its module's table."""
    module = importlib.import_module(COMMANDS[word][0])
    return getattr(module, "VERBS", {}).get(word, module)


def usage() -> str:
    """The list of subcommands, as a text."""
    width = max(len(word) for word in COMMANDS)
    lines = [f"  {word:<{width}}  {what}" for word, (_, what) in COMMANDS.items()]
    end = "pkm COMMAND --help tells its options, pkm --version the version."
    return "\n".join(["usage: pkm COMMAND [options]", "", *lines, "", end])


if __name__ == "__main__":
    raise SystemExit(main())
