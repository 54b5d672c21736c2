# SPDX-License-Identifier: Apache-2.0
"""One loop per drive, as ros2_control's trajectory controller has it, on the simulated machine of every robot.

`python -m bench.joint_loops --write docs/joint_loops.md` makes the table. The loops are written here a second time, in
a few lines, with the gains that the launch files hand to the real ones: a PID with clamped integral for efforts, none
for positions; what a command does, it does two periods after the reading that it answers, as over the topic bridge.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.tables import table
from pkm_bringup.ros2_control import effort_gains
from pkm_control.control_errors import UnequalDrivesError
from pkm_description import load_mechanism, robot_names
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode
from pkm_hardware.simulated.simulated_machine import SimulatedMachine
from pkm_kinematics import Kinematics, Status
from pkm_runtime.errors import PkmError

RATES = (1000.0, 250.0)  # Hz
INTERFACES = ("effort", "position")
NATURAL_FREQUENCY = 120.0  # rad/s, the default of the launch files
_LATE = 2  # periods
_HOLD, _MOVE, _AFTER = 1.0, 0.5, 0.5  # s
_REST, _STAY = 3.0, 1.0  # s
_ROUNDING = 1e-7  # rad or m
_STEP = 0.02  # of the characteristic length, and rad: how far the platform moves

PREFACE = """# One loop per drive

With `ros2_control:=true` the standard controllers of ros2_control close one loop per driven joint. None of them
knows that the joints belong to one robot. The table says for which robots that works. Each robot is held at home for a
second on the simulated machine, then moved by 2 % of its characteristic length in half a second, by the gains and
limits that the launch files make. The two numbers are the largest errors of a driven joint. The first is while it is
held: it sags until the integrals carry the weight. The second is while it moves. The loops here are emulated, with a
delay of two periods (`python -m bench.joint_loops --write docs/joint_loops.md`). What was seen with the real stack is
in [running_reference.md](running_reference.md#one-loop-per-drive).

By *effort* means a PID with the gains of `pkm_bringup/ros2_control.py`. A robot may be much lighter in one direction
than in another. Gains that the light one carries are then too soft for the heavy one. Where drives are redundant,
integrals push against each other. Such robots are refused by effort, with the reason. By *position* means that the
drives close the loops (`command_interface:=position`). The simulated ones know the mass matrix, as well-tuned servo
drives do.
"""


@dataclass(frozen=True)
class Tried:
    """What came of it: the largest error of a driven joint [rad or m] while held and while moved, or why not."""

    held: float = np.nan
    moved: float = np.nan
    unit: str = ""
    why_not: str = ""

    def __str__(self) -> str:
        """For a cell of the table."""
        if self.why_not:
            return f"refused: {self.why_not}"
        return f"{_fine(self.held)}, {_fine(self.moved)} {self.unit}"


def try_out(name: str, interface: str, rate: float) -> Tried:
    """Hold and move a robot of the gallery by one loop per drive.

    Args:
        name: of the robot.
        interface: what is commanded: effort or position.
        rate: of the loops [Hz].

    Returns:
        What came of it.
    """
    mechanism = load_mechanism(name)
    kinematics = Kinematics(mechanism)
    limits = ActuatorLimits.of(mechanism)
    try:
        gains = list(effort_gains(mechanism, NATURAL_FREQUENCY, rate).values()) if interface == "effort" else []
        path = path_beside_home(kinematics, rate)
    except UnequalDrivesError as error:
        return Tried(why_not=error.why)
    except PkmError as error:
        return Tried(why_not=str(error))
    mode = CommandMode.EFFORT if interface == "effort" else CommandMode.POSITION
    machine = SimulatedMachine(Dynamics(kinematics), limits, command_mode=mode)
    machine.configure()
    if machine.fault:
        return Tried(why_not=machine.fault)
    machine.activate()
    loops = Loops(list(gains), limits.effort, rate)
    sent: deque[Array | None] = deque([None] * _LATE)
    errors = []
    for wanted, rates in path:
        state = machine.read()
        errors.append(np.abs(wanted - state.positions).max())
        effort = loops.effort(wanted - state.positions, rates - state.velocities) if gains else wanted
        sent.append(effort)
        command = sent.popleft()
        if command is not None:
            machine.write(command)
        machine.step(1.0 / rate)
        if machine.fault:
            return Tried(why_not=machine.fault)
    moving = round(_HOLD * rate)
    units = sorted({"mrad" if unit == "rad" else "mm" for unit in limits.length_units})
    return Tried(float(max(errors[:moving])), float(max(errors[moving:])), " or ".join(units))


class Loops:
    """A PID for each drive, whose integral and output are clamped as those of ros2_control's.

    Args:
        gains: of each drive, as `effort_gains` makes them.
        most: efforts of the drives (n_actuated,).
        rate: of the loops [Hz].
    """

    def __init__(self, gains: Sequence[Mapping[str, float]], most: Array, rate: float) -> None:
        self._p, self._i, self._d = (np.array([gain[key] for gain in gains]) for key in "pid")
        self._most, self._rate, self._integral = most, rate, np.zeros(len(most))

    def effort(self, error: Array, rates: Array) -> Array:
        """Efforts (n_actuated,) for errors of positions and of rates."""
        effort = self._p * error + self._integral + self._d * rates
        grown = self._integral + np.where(np.abs(effort) < self._most, self._i * error / self._rate, 0.0)
        self._integral = np.clip(grown, -self._most, self._most)
        return np.clip(effort, -self._most, self._most)


def told_to_stay(name: str, rate: float, from_desired: bool) -> float:
    """How far a drive goes [rad or m] that is held at home and is told to be there in a second, by effort.

    Args:
        name: of the robot.
        rate: of the loops [Hz].
        from_desired: the trajectory controller's `interpolate_from_desired_state`. Without, the way to a goal's first
            point begins with the last command as feed-forward, and ends with none, and the integral stays as it is.

    Returns:
        The largest distance from where it was held.
    """
    mechanism = load_mechanism(name)
    kinematics = Kinematics(mechanism)
    limits = ActuatorLimits.of(mechanism)
    machine = SimulatedMachine(Dynamics(kinematics), limits, command_mode=CommandMode.EFFORT)
    machine.configure()
    machine.activate()
    loops = Loops(list(effort_gains(mechanism, NATURAL_FREQUENCY, rate).values()), limits.effort, rate)
    home, still = machine.read().positions.copy(), np.zeros(len(limits.names))
    sent: deque[Array | None] = deque([None] * _LATE)
    begun, far, rested = still, 0.0, round(_REST * rate)
    for k in range(rested + round(_STAY * rate)):
        state = machine.read()
        share = max(0.0, 1.0 - (k - rested) / (_STAY * rate)) if k >= rested and not from_desired else 0.0
        effort = loops.effort(home - state.positions, still - state.velocities) + share * begun
        if k < rested:
            begun, before = effort, state.positions.copy()
        else:
            far = float(np.maximum(far, np.abs(state.positions - before).max()))
        sent.append(np.clip(effort, -limits.effort, limits.effort))
        command = sent.popleft()
        if command is not None:
            machine.write(command)
        machine.step(1.0 / rate)
    return far


def path_beside_home(kinematics: Kinematics, rate: float) -> list[tuple[Array, Array]]:
    """Positions and rates (n_actuated,) of the drives in each period: at home, to a place beside it, and there."""
    shares = np.clip((np.arange(0.0, _HOLD + _MOVE + _AFTER, 1.0 / rate) - _HOLD) / _MOVE, 0.0, 1.0)
    shares = shares**3 * (10.0 - 15.0 * shares + 6.0 * shares**2)
    home = np.asarray(kinematics.inverse(kinematics.home).actuated)
    at_home = kinematics.home
    twist = kinematics.subspace(at_home).sum(axis=1)  # in all degrees of freedom at once
    size = float(np.hypot(np.linalg.norm(twist[:3]) / kinematics.characteristic_length, np.linalg.norm(twist[3:])))
    way = _STEP / size * (kinematics.at(at_home).inverse_jacobian @ twist)
    for sign in (1.0, -1.0):
        found = kinematics.forward(home + sign * way)
        if found.status == Status.CONVERGED:
            there = np.asarray(kinematics.inverse(found.pose).actuated)
            positions = home + shares[:, None] * (there - home)
            return list(zip(positions, np.gradient(positions, 1.0 / rate, axis=0), strict=True))
    raise PkmError("there is no place beside home to go to")


def rows() -> list[list[str]]:
    """A row for each robot: its name, and what comes of each interface at each rate."""
    return [
        [name, *(str(try_out(name, interface, rate)) for interface in INTERFACES for rate in RATES)]
        for name in robot_names()
    ]


def _fine(value: float) -> str:
    return f"{1e3 * value:.2g}" if value > _ROUNDING else "0"


def main() -> None:
    """Print the table, and write it where it is wanted."""
    parser = argparse.ArgumentParser(prog="python -m bench.joint_loops", description=__doc__)
    parser.add_argument("--write", type=Path, help="file for the table, besides the screen")
    options = parser.parse_args()
    header = ["robot", *(f"{interface}, {rate:g} Hz" for interface in INTERFACES for rate in RATES)]
    text = PREFACE + "\n" + table(header, rows()) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
