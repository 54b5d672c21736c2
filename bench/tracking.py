# SPDX-License-Identifier: Apache-2.0
"""How well each control law tracks on each robot, with a machine that is and is not what the controller believes.

`python -m bench.tracking --write docs/tracking.md` makes the table. Cells that are done are kept in a journal, so a run
that was ended goes on where it was; `--minutes` ends it in time, `--robots` chooses.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from bench.pressing import PRESS, SLIDE, Pressing, pressing
from bench.tables import table
from pkm_bringup.main_job import Plan, planned, run_motion
from pkm_control.controllers.controller import Controller
from pkm_control.loop.control_loop import ControlLoop, Period, switch_on
from pkm_control.loop.platform_locator import PlatformObserver
from pkm_control.operator_interface import (
    ADMITTANCE,
    DAMPING,
    EFFORT_LAWS,
    HYBRID,
    IMPEDANCE,
    NATURAL_FREQUENCY,
    POSITION,
    highest_natural_frequency,
)
from pkm_control.robot_loop import make_controller
from pkm_description import load_mechanism, robot_names
from pkm_description.mechanism import Inertial, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.dynamics import shared_dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_hardware.machine import CommandMode
from pkm_hardware.machine_kinds import HEAVIER, RESERVE
from pkm_hardware.simulated.drive_parts import realistic_encoder
from pkm_hardware.simulated.simulated_machine import SimulatedMachine, heavier
from pkm_hardware.simulated.surroundings import Surroundings
from pkm_kinematics.kernels.compiled_rotations import displacement_between
from pkm_runtime.errors import PkmError

EXACT, HEAVY, PAYLOAD, ENCODERS, LATE = "exact", "inertia", "payload", "encoders", "delay"
MACHINES = (EXACT, HEAVY, PAYLOAD, ENCODERS, LATE)
LAWS = (*EFFORT_LAWS, IMPEDANCE, ADMITTANCE, POSITION, HYBRID)
PERIOD = 1e-3  # s
LONGEST = 2.0  # s, of a cycle
RESERVE_UNKNOWN = 1.0 - (1.0 - RESERVE) / 1.5  # for half as much again to accelerate and to carry
JOURNAL = Path("reports/tracking.jsonl")
_LOST, _TURNED = 0.5, 0.5  # of the characteristic length, and rad: an error that is no tracking any more

PREFACE = """# Tracking

Every control law on every robot, at 1 kHz, with {rate:g} rad/s and critical damping, lowered to what the delay allows.
The motion is one cycle of the robot's default motion, or its first {longest:g} s, planned to {left:.0%} of efforts and
speeds. `python -m bench.tracking --write docs/tracking.md` makes this page; {done} of {all} cells were run{missing}.

Each cell has RMS and maximum of the position error [mm], then of the orientation error [mrad] if the platform rotates:
the reference compared with the pose from the readings. *s*: an actuator saturated. *refused*: with the reason, before
anything moved. **lost**: the platform deviated by more than {lost:.0%} of the characteristic length or {turned:g} rad,
or the machine stopped.

| machine | unknown to the controller |
|---|---|
| exact | nothing |
| inertia | links are a fifth heavier |
| payload | half the mass of the platform link on the platform (1 kg if it has none) |
| encoders | steps and noise of [a realistic machine](control.md#a-realistic-machine) |
| delay | commands act one period late; the controller knows the delay |

`impedance` is a spring of 2 kN/m, which yields to unknown loads. `position` commands the position loops of the drives,
which carry the actual weight of the machine, so hidden masses have little effect; saturation of these drives is
not marked. `hybrid` presses on a plane with {press:g} N, along the axis with the most freedom, and slides on
it by {slide:.0%} of the characteristic length, there and back in all its other degrees of freedom at once. Its errors
are those beside the pressed axis while it slides, followed by the force error, RMS and maximum.

An unknown payload needs a reserve: motions with the payload are planned to {less:.0%}. Planned to {left:.0%}, like the
others, they saturate the drives of gough_stewart, which loses its platform under `pd_gravity` and `position`: a
platform on legs rotates away if one of them gives less than its commanded effort. This cannot be detected before it
moves; `following_error` ends it.
"""


@dataclass(frozen=True)
class Cell:
    """What came of a law on a machine: RMS and maximum of position [m] and orientation [rad], or why not."""

    robot: str
    law: str
    machine: str
    position: tuple[float, float] = (0.0, 0.0)
    rotation: tuple[float, float] = (0.0, 0.0)
    saturated: bool = False
    refused: str = ""
    lost: str = ""
    force: tuple[float, float] | None = None  # N: RMS and maximum of the error of what is pressed with

    def __str__(self) -> str:
        """For the table."""
        if self.refused or self.lost:
            return f"refused: {self.refused}" if self.refused else f"**lost**: {self.lost}{' *s*' * self.saturated}"
        parts = [f"{_fine(1e3 * self.position[0])}, {_fine(1e3 * self.position[1])}"]
        if self.rotation[1] > 1e-7:
            parts.append(f"{_fine(1e3 * self.rotation[0])}, {_fine(1e3 * self.rotation[1])}")
        if self.force is not None:
            parts.append(f"{_fine(self.force[0])}, {_fine(self.force[1])} N")
        return "; ".join(parts) + (" *s*" if self.saturated else "")


def try_out(name: str, law: str, kind: str) -> Cell:
    """Run a cycle.

    Args:
        name: of the robot, in the gallery.
        law: one of `LAWS`.
        kind: of the machine, one of `MACHINES`.

    Returns:
        What came of it.
    """
    if law == HYBRID:
        return _press(name, kind)
    mechanism = _robot(name)
    try:
        plan: Plan = planned(mechanism, "auto", RESERVE_UNKNOWN if kind == PAYLOAD else RESERVE)
        loop = _loop(mechanism, law, kind)
        switch_on(loop)
    except (PkmError, ValueError) as error:
        return Cell(name, law, kind, refused=str(error))
    errors: list[tuple[float, float]] = []

    def watch(period: Period) -> None:
        action = period.action
        assert action.measured is not None
        assert action.reference is not None
        error = displacement_between(action.measured.pose, action.reference.pose)
        errors.append((float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))))

    lost = loop.kinematics.characteristic_length * _LOST
    for trajectory in (plan.job.approach, plan.job.cycle):
        errors.clear()
        recording = run_motion(
            loop,
            trajectory,
            watch=watch,
            recorded=False,
            stopped=lambda: bool(errors) and (_strays(errors[-1], lost) or len(errors) * PERIOD >= LONGEST),
        )
        if recording.faults:
            return Cell(name, law, kind, lost=recording.faults[0])
        if errors and _strays(errors[-1], lost):
            away = f"{1e3 * errors[-1][0]:.0f} mm, {errors[-1][1]:.2f} rad astray"
            return Cell(name, law, kind, saturated=_saturated(loop.controller), lost=away)
    found = np.array(errors)
    rms, most = np.sqrt(np.mean(found**2, axis=0)), found.max(axis=0)
    return Cell(name, law, kind, (rms[0], most[0]), (rms[1], most[1]), _saturated(loop.controller))


def _loop(mechanism: Mechanism, law: str, kind: str, pressed: Pressing | None = None) -> ControlLoop:
    """A law on a machine of a kind.

    Raises:
        PkmError, ValueError: it is refused.
    """
    dynamics = shared_dynamics(mechanism)
    delay = 1 if kind == LATE else 0
    highest = highest_natural_frequency(PERIOD, DAMPING, 0.5 + delay)
    rate = min(NATURAL_FREQUENCY, highest)
    task, limits = (pressed.task if pressed else None), ActuatorLimits.of(mechanism)
    controller = make_controller(law, dynamics, limits, PERIOD, rate, DAMPING, delay * PERIOD, task)
    machine = machine_of(mechanism, kind, law)
    if pressed:
        machine.surround(pressed.surroundings)
    return ControlLoop.of(machine, controller, 1.0 / PERIOD)


def _press(name: str, kind: str) -> Cell:
    """Try hybrid control, which needs something to press on."""
    mechanism = _robot(name)
    try:
        pressed = pressing(shared_dynamics(mechanism).kinematics, PERIOD)
        loop = _loop(mechanism, HYBRID, kind, pressed)
    except (PkmError, ValueError) as error:
        return Cell(name, HYBRID, kind, refused=str(error))
    machine, law, observer = loop.machine, loop.controller, PlatformObserver(loop.kinematics)
    machine.configure()
    machine.activate()
    lost = loop.kinematics.characteristic_length * _LOST
    errors, forces = [], []
    for wanted in pressed.references:  # which no motion of points has: what is pressed with is part of them
        state = machine.read()
        measured = observer.observe(state.positions, state.velocities)
        if measured is None or state.wrench is None:
            return Cell(name, HYBRID, kind, lost=machine.fault or observer.reason or "no wrench")
        measured = law.felt_by(measured, state.wrench)
        law.advance(PERIOD)
        machine.write(law.command(wanted, measured))
        machine.step(PERIOD)
        error = pressed.across(displacement_between(measured.pose, wanted.pose))
        errors.append((float(np.linalg.norm(error[:3])), float(np.linalg.norm(error[3:]))))
        forces.append(abs(float(measured.wrench @ pressed.normal) - PRESS))
        if _strays(errors[-1], lost):
            return Cell(name, HYBRID, kind, lost=f"{1e3 * errors[-1][0]:.0f} mm, {errors[-1][1]:.2f} rad astray")
    found = np.column_stack([np.array(errors), forces])[pressed.slides :]
    rms, most = np.sqrt(np.mean(found**2, axis=0)), found.max(axis=0)
    by = [(float(a), float(b)) for a, b in zip(rms, most, strict=True)]
    return Cell(name, HYBRID, kind, by[0], by[1], _saturated(loop.controller), force=by[2])


def _saturated(controller: Controller) -> bool:
    """Whether an effort was cut to the limit by the law; drives that take positions do not tell."""
    return bool(controller.saturations.sum()) and controller.commands == "effort"


@lru_cache(maxsize=1)
def _robot(name: str) -> Mechanism:
    """Return the same object for all cells of a robot: its dynamics are compiled and its motion planned once."""
    return load_mechanism(name)


@lru_cache(maxsize=1)
def _heavy(mechanism: Mechanism) -> Dynamics:
    return Dynamics(heavier(mechanism, HEAVIER))


def machine_of(mechanism: Mechanism, kind: str, law: str) -> SimulatedMachine:
    limits = ActuatorLimits.of(mechanism)
    dynamics = _heavy(mechanism) if kind == HEAVY else shared_dynamics(mechanism)
    platform = next(link for link in mechanism.links if link.name == mechanism.platform_link)
    machine = SimulatedMachine(
        dynamics,
        limits,
        command_mode=CommandMode.POSITION if law == POSITION else CommandMode.EFFORT,
        encoder=realistic_encoder(limits) if kind == ENCODERS else None,
        payload=Inertial(mass=0.5 * platform.inertial.mass or 1.0) if kind == PAYLOAD else None,
        delay=1 if kind == LATE else 0,
    )
    if law == ADMITTANCE:
        machine.surround(Surroundings())  # a force-torque sensor, and nothing to touch
    return machine


def _strays(error: tuple[float, float], lost: float) -> bool:
    return not (error[0] < lost and error[1] < _TURNED)


def _fine(value: float) -> str:
    return "0" if value < 5e-5 else f"{value:.2g}" if value < 100.0 else f"{value:.0f}"


def of_robot(job: tuple[str, tuple[tuple[str, str], ...], float, Path]) -> list[Cell]:
    """Cells of a robot, until a time [s, of the clock]; each is in the journal as soon as it is done."""
    name, wanted, until, journal = job
    cells = []
    for law, kind in wanted:
        if time.time() >= until:
            break
        cells.append(try_out(name, law, kind))
        with journal.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(cells[-1])) + "\n")
    return cells


def known(journal: Path) -> dict[tuple[str, str, str], Cell]:
    """Cells of a journal, by robot, law and machine."""
    cells: dict[tuple[str, str, str], Cell] = {}
    if journal.is_file():
        for line in journal.read_text("utf-8").splitlines():
            cell = Cell(**json.loads(line))
            cells[cell.robot, cell.law, cell.machine] = cell
    return cells


def run(names: Sequence[str], journal: Path, minutes: float, processes: int) -> Iterator[Cell]:
    """Run what the journal does not have, each robot in one process, in which it is planned and compiled once."""
    done, until = known(journal), time.time() + 60.0 * minutes
    jobs = []
    for name in names:
        wanted = tuple((law, kind) for kind in MACHINES for law in LAWS if (name, law, kind) not in done)
        if wanted:
            jobs.append((name, wanted, until, journal))
    journal.parent.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=1) as pool:
        for cells in pool.imap_unordered(of_robot, jobs):
            yield from cells


def page(cells: dict[tuple[str, str, str], Cell], names: Sequence[str]) -> str:
    total = len(names) * len(LAWS) * len(MACHINES)
    there = [cell for key, cell in cells.items() if key[0] in names]
    without = [name for name in names if not any(cell.robot == name for cell in there)]
    missing = f"; not run: {', '.join(without)}" if without else ""
    text = PREFACE.format(
        rate=NATURAL_FREQUENCY,
        left=1.0 - RESERVE,
        less=1.0 - RESERVE_UNKNOWN,
        longest=LONGEST,
        press=PRESS,
        slide=SLIDE,
        done=len(there),
        all=total,
        missing=missing,
        lost=_LOST,
        turned=_TURNED,
    )
    for name in names:
        if name in without:
            continue
        rows = [
            [law, *(str(cells[name, law, kind]) if (name, law, kind) in cells else "not run" for kind in MACHINES)]
            for law in LAWS
        ]
        text += f"\n## {name}\n\n" + table(["law", *MACHINES], rows) + "\n"
    return text


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=list(robot_names()), help="which; all by default")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where cells are kept")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1), help="robots at once")
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args()
    for cell in run(given.robots, given.journal, given.minutes, given.processes):
        print(f"{cell.robot:20} {cell.law:16} {cell.machine:9} {cell}", flush=True)
    if given.write is not None:
        given.write.write_text(page(known(given.journal), list(robot_names())), "utf-8")


if __name__ == "__main__":
    main()
