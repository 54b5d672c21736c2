# SPDX-License-Identifier: Apache-2.0
"""Signs and offsets of hobby servos, found in a dialogue that moves one servo at a time, as the file of a machine."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import yaml

from pkm_bringup.command_line.outputs import leave_terminal
from pkm_client import options
from pkm_description.joint_geometry import freedoms
from pkm_description.load import load_mechanism, xacro_arguments
from pkm_description.mechanism import Joint, Mechanism
from pkm_description.picture import link_poses
from pkm_hardware.drivers.driver import DeviceError
from pkm_hardware.drivers.serial_line import SerialLine
from pkm_hardware.drivers.servos import HIGHEST_CHANNEL, ServoDriver
from pkm_hardware.machine_file import read_machine_file
from pkm_hardware.make_machine import make_drives
from pkm_kinematics import Kinematics
from pkm_runtime.child_processes import ENDING
from pkm_runtime.errors import PkmError
from pkm_runtime.whole_files import write_whole
from pkm_runtime.yaml_section import read_yaml

TURN, STROKE = math.radians(5.0), 0.005  # rad, m: how far a servo moves
_PERIOD = 0.02  # s
_SPEED = 200.0  # us/s
_WATCHDOG = 1.0  # s, after which the board ends the pulses where this program is gone
_SMALL = 1e-4  # rad or m
# Of a machine of which nothing is known yet
_FILE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("unknown_servos.yaml").read_text())
_ANSWERS = ("channel", "offset", "sign")
Ask = Callable[[str], str]


class Servo:
    """One servo, held at a pulse [us] by a thread from `hold` on while questions are asked; others have no pulses."""

    def __init__(self, driver: ServoDriver, pulse: float) -> None:
        self._driver = driver
        self._pulse = self._target = np.array([float(pulse)])
        self._error = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)

    def hold(self) -> None:
        """Go to the pulse at once."""
        self._driver.enable(self._pulse)
        self._thread.start()

    def move_to(self, pulse: float) -> None:
        """Go there slowly; DeviceError where the board no longer answers."""
        self._target = np.array([float(pulse)])
        while self._thread.is_alive() and not np.array_equal(self._pulse, self._target):
            time.sleep(_PERIOD)
        if self._error:
            raise DeviceError(self._error)

    def release(self) -> None:
        """No pulses, even where it is asked to end meanwhile."""
        try:
            self._release()
        except KeyboardInterrupt:
            self._release()
            raise

    def _release(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._driver.disable()

    def _hold(self) -> None:
        step = _SPEED * _PERIOD
        try:
            while not self._over.wait(_PERIOD):
                self._pulse = self._pulse + np.clip(self._target - self._pulse, -step, step)
                self._driver.exchange(self._pulse)
        except Exception as error:
            self._error = str(error) or repr(error)


Servos = dict[str, dict[str, Any]]


def answered(mechanism: Mechanism, values: dict[str, Any]) -> Servos:
    """The servos of a file that lacks others; none of one that has them all, which is gone through anew."""
    given = values.get("actuators") or {}
    whole = [name for name in mechanism.actuated_joints if set(_ANSWERS) <= set(given.get(name) or {})]
    return {name: dict(given[name]) for name in whole} if len(whole) < len(mechanism.actuated_joints) else {}


def set_up(mechanism: Mechanism, values: dict[str, Any], ask: Ask, actuators: Servos, simulate: bool = False) -> None:
    """Ask about servos that `actuators` lacks; add what `values` has of them, with channels, signs and offsets."""
    line = SerialLine(str(values["port"]), int(values.get("baud", _FILE["baud"])))
    for number, name in enumerate(mechanism.actuated_joints):
        if name in actuators:
            continue
        joint = mechanism.joint_named[name]
        own = dict((values.get("actuators") or {}).get(name) or {})
        print(f"\n{name} ({joint.type.value}, {number + 1} of {len(mechanism.actuated_joints)})")
        text, taken = "  Its channel on the board", {one["channel"]: other for other, one in actuators.items()}
        own["channel"] = _channel(ask, text, own.get("channel", number))
        while own["channel"] in taken:
            print(f"  {taken[own['channel']]} is on channel {own['channel']}")
            own["channel"] = _channel(ask, text, number)
        used = {**_FILE["defaults"], **(values.get("defaults") or {}), **own}
        pulses = np.array([[float(used["pulse_min"]), float(used["pulse_max"])]])
        driver = ServoDriver(line, (own["channel"],), pulses, watchdog=_WATCHDOG)
        if simulate:
            driver.simulate(pulses.mean(axis=1))
        try:
            driver.open(np.array([float(used["pulse_zero"])]))
            _find(mechanism, joint, own, used, driver, ask)
        finally:
            driver.close()
        actuators[name] = own


def _find(
    mechanism: Mechanism, joint: Joint, own: dict[str, Any], used: dict[str, Any], driver: ServoDriver, ask: Ask
) -> None:
    turns = joint.unit == "rad"
    unit, scale = ("degrees", math.degrees(1.0)) if turns else ("mm", 1e3)
    step, zero = TURN if turns else STROKE, float(used["pulse_zero"])
    ask(f"  Enter: it goes to {zero:g} us AT ONCE, wherever it stands now, and is held there.")
    servo = Servo(driver, zero)
    try:
        servo.hold()
        own["offset"] = _offset(ask, mechanism, joint, used)
        print(f"  A positive {joint.name} {sense(mechanism, joint)}.")
        there = zero + step * float(used["pulse_per_unit"])
        answer = ""
        while answer not in ("y", "n"):
            ask(f"  Enter: it moves by {scale * step:g} {unit} and back.")
            servo.move_to(there)
            servo.move_to(zero)
            answer = ask("  Did it go there at first? y: yes, n: the other way, Enter: again ").strip().lower()[:1]
        own["sign"] = 1 if answer == "y" else -1
    finally:
        servo.release()


def sense(mechanism: Mechanism, joint: Joint) -> str:
    """Where the outer end of a joint's link goes, in words, when the joint's position grows at home."""
    moved = np.array(mechanism.home_joints)
    moved[_column(mechanism, joint)] += _SMALL
    before, after = link_poses(mechanism)[joint.child], link_poses(mechanism, moved)[joint.child]
    points = [one.origin[:, 3] for one in mechanism.joints if one.parent == joint.child]
    points += [one.predecessor_frame[:, 3] for one in mechanism.loops if one.predecessor == joint.child]
    points += [one.successor_frame[:, 3] for one in mechanism.loops if one.successor == joint.child]
    ways = [((after - before) @ point)[:3] / _SMALL for point in points]
    way = max(ways, key=np.linalg.norm, default=np.zeros(3))
    most = int(np.argmax(np.abs(way)))
    if abs(way[most]) < 1e-6:
        axis = before[:3, :3] @ joint.axis
        return f"turns right-handed about {np.round(axis, 3) + 0.0} of the base frame"
    up = {True: " (up)", False: " (down)"}[bool(way[most] > 0.0)] if most == 2 else ""
    sign = "+" if way[most] > 0.0 else "-"
    return f"moves the outer end of its link mostly along {sign}{'xyz'[most]} of the base{up}"


def _column(mechanism: Mechanism, joint: Joint) -> int:
    return [one.name for each in mechanism.joints for one in freedoms(each)].index(joint.name)


def _offset(ask: Ask, mechanism: Mechanism, joint: Joint, used: dict[str, Any]) -> float:
    unit, scale = ("degrees", math.degrees(1.0)) if joint.unit == "rad" else ("mm", 1e3)
    home, zero = float(mechanism.home_joints[_column(mechanism, joint)]), float(used["pulse_zero"])
    question = f"  Where is {joint.name} now, as the description counts it, in {unit}"
    while True:
        offset = round(_number(ask, question, scale * float(used.get("offset", 0.0))) / scale, 6)
        away = float(used["pulse_per_unit"]) * abs(home - offset)
        if zero + away <= float(used["pulse_max"]) or zero - away >= float(used["pulse_min"]):
            return offset
        print(f"  From there no pulse of its range leads home, to {round(scale * home, 2) + 0.0:g} {unit}")


def _number(ask: Ask, text: str, default: float) -> float:
    while True:
        answer = ask(f"{text}? [{default:g}] ").strip()
        try:
            number = float(answer) if answer else float(default)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        print(f"  '{answer}' is no number")


def _channel(ask: Ask, text: str, default: float) -> int:
    while not (number := _number(ask, text, default)).is_integer() or not 0.0 <= number <= HIGHEST_CHANNEL:
        print(f"  {number:g} is no channel: they are 0 to {HIGHEST_CHANNEL}")
    return int(number)


def _interrupt(number: int, _: FrameType | None) -> None:
    if number == signal.SIGHUP:
        leave_terminal()
    for other in ENDING:  # asked once more, it skips nothing
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = options.parser(
        "servo-setup",
        "Find channels, signs and offsets of hobby servos in a dialogue, and write the file of the machine. One\n"
        "servo at a time has pulses; it moves by 5 degrees (5 mm) when told. Take the rods off the arms before, or\n"
        "the platform in your hand: nothing else is held.",
    )
    options.add_robot(p)
    p.add_argument("-o", "--output", metavar="FILE", help="file to write: the hardware file, or ROBOT_machine.yaml")
    options.add(p, "hardware_file", help=options.SETTING["hardware_file"].description + "; to begin with")
    text = f"of the board (default: that of the file, or {_FILE['port']})"
    p.add_argument("--serial-port", default="", metavar="PORT", help=text)
    options.add(p, "simulate")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted."""
    given = parser().parse_args(arguments)
    output = Path(given.output or given.hardware_file or f"{Path(given.robot).name.partition('.')[0]}_machine.yaml")
    if output.exists() and str(output) != given.hardware_file:
        print(f"pkm servo-setup: {output} exists; --hardware-file {output} begins with it", file=sys.stderr)
        return 2
    if not os.access(folder := output.absolute().parent, os.W_OK):
        print(f"pkm servo-setup: {folder} cannot be written to; give another place with -o", file=sys.stderr)
        return 2
    previous = {number: signal.signal(number, _interrupt) for number in ENDING}
    try:
        return _held(given, output)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _held(given: argparse.Namespace, output: Path) -> int:
    values: dict[str, Any] = {}
    servos: Servos = {}
    try:
        mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        values = read_yaml(given.hardware_file)[1] if given.hardware_file else _FILE
        values = {**values, **({"port": given.serial_port} if given.serial_port else {})}
        servos = answered(mechanism, values)
        if servos:
            print(f"{given.hardware_file} has {', '.join(servos)}; it goes on with the others")
        set_up(mechanism, values, input, servos, given.simulate)
    except (EOFError, PkmError, DeviceError) as error:
        why = "nobody answers its questions: it needs a terminal" if isinstance(error, EOFError) else error
        print(f"\npkm servo-setup: {why}{_kept(output, values, servos)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        kept = _kept(output, values, servos) or "; nothing is written"
        print(f"\npkm servo-setup: ended, no servo has pulses{kept}", file=sys.stderr)
        return 130
    try:
        _write(output, values, servos)
        file = read_machine_file(output)
        make_drives(file.kind, Kinematics(mechanism), file)
    except PkmError as error:
        print(f"\npkm servo-setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\npkm servo-setup: ended, no servo has pulses; {output} was not checked", file=sys.stderr)
        return 130
    print(f"\n{output} is written. Next: ./pkm play {given.robot} --hardware-file {output} --dry")
    return 0


def _write(output: Path, values: dict[str, Any], servos: Servos) -> None:
    text = yaml.safe_dump(_plain({**values, "actuators": servos}), sort_keys=False)
    try:
        write_whole(output, f"# docs/hardware.md explains every key.\n{text}")
    except OSError as error:
        print(f"\n{text}")
        raise PkmError(f"{output}: {error.strerror}; its text is above") from error


def _kept(output: Path, values: dict[str, Any], servos: Servos) -> str:
    """Write the answers of a broken-off dialogue, unless the file has more; in words, if any, where they are."""
    before = read_yaml(output)[1].get("actuators") or {} if output.exists() else {}
    if set(servos) <= set(before):
        new = {name: one for name, one in servos.items() if one != before[name]}
        return f"; {output} is as it was, and the answers are: {new}" if new else ""
    try:
        _write(output, values, servos)
    except PkmError as error:
        return f"; {error}"
    return f"; {output} has {', '.join(servos)}, and --hardware-file {output} goes on from there"


def _plain(value: Any) -> Any:
    """Mappings of a file, which know their lines, as those of Python."""
    return {str(key): _plain(one) for key, one in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    raise SystemExit(main())
