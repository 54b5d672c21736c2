# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT prove`: whether something holds at every pose of a box, a straight path or a motion file."""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Sequence

import numpy as np

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.answers import Found, add_output, add_picture, answered
from pkm_analysis.command_line.predict import MOTIONS
from pkm_analysis.proof.enclosures import Domain
from pkm_analysis.proof.motion_proof import prove_motion
from pkm_analysis.proof.prove import MOST_BOXES, RESOLUTION, Proof, prove, prove_path
from pkm_analysis.proof.questions import FORMS, read_box, read_point, read_requirement
from pkm_analysis.requirements.units import in_si
from pkm_analysis.robot import Robot
from pkm_analysis.sweeps import Sweeps
from pkm_analysis.sweeps.sweeps import duration
from pkm_description import load_mechanism
from pkm_description.command_options import add_robot
from pkm_description.load import xacro_arguments

PROVED, REFUTED, NO_ANSWER, UNDECIDED = 0, 1, 2, 3


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        prog="pkm analyse ROBOT prove",
        description="Say whether something holds at every pose of a box, a straight path or a motion: proved "
        "everywhere, refuted at a pose that is named, or undecided in boxes of the stated size. Proofs are by interval "
        "arithmetic.",
        epilog="what can be asked:\n"
        + "".join(f"\n  {form}" for form in FORMS)
        + "\n\nexit code: 0 proved, 1 refuted, 3 undecided, 2 where the question has no answer",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_robot(p)
    where = p.add_mutually_exclusive_group(required=True)
    text = "ranges of task coordinates, m and rad if no unit is named; coordinates that are not named stay at home"
    where.add_argument("--box", nargs="+", metavar="NAME=LOW:HIGH", help=text)
    where.add_argument("--from", dest="start", nargs="+", metavar="NAME=VALUE", help="where a straight path begins")
    text = "a motion file (CSV), or a motion that ships: its path, straight lines with rounded corners"
    where.add_argument("--motion", metavar="MOTION", help=text)
    p.add_argument("--closed", action="store_true", help="of a motion: add a way back where it ends elsewhere")
    p.add_argument("--to", dest="end", nargs="+", metavar="NAME=VALUE", help="where it ends")
    asked = "what is to hold, see below; may be given several times (default: inside)"
    p.add_argument("--that", action="append", metavar="'REQUIREMENT'", help=asked)
    p.add_argument("--sensor-error", nargs="+", metavar=("NUMBER", "UNIT"), help="largest error of the drives' sensors")
    p.add_argument("--mode", type=int, default=0, metavar="N", help="number of the working mode (default: 0, home's)")
    p.add_argument("--resolution", type=float, default=RESOLUTION, help=f"of the sides (default: {RESOLUTION:.2g})")
    p.add_argument("--most-boxes", type=int, default=MOST_BOXES, help=f"until undecided (default: {MOST_BOXES})")
    add_output(p)
    add_picture(p)
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: the exit code says the answer."""
    command = parser()
    given = command.parse_args(arguments)
    if (given.start is None) != (given.end is None):
        command.error("a path needs both --from and --to")

    def answer(sweeps: Sweeps) -> Found:
        robot = Robot(load_mechanism(given.robot, xacro_arguments(given.xacro_args)))
        proof = _proof(given, robot, sweeps)
        status = {"proved": PROVED, "refuted": REFUTED}.get(proof.verdict, UNDECIDED)
        return Found(robot.name, " and ".join(proof.that), [proof], status=status)

    return answered("prove", given, answer, NO_ANSWER)


def _proof(given: argparse.Namespace, robot: Robot, sweeps: Sweeps) -> Proof:
    if not 0.0 < given.resolution < 1.0:
        raise AnalysisError("--resolution", f"{given.resolution:g} is no part of a side", "give one between 0 and 1")
    sensors = _sensors(robot, given.sensor_error)
    wanted = [read_requirement(robot, text, sensors) for text in given.that or ["inside"]]
    began = time.monotonic()

    def tell(share: float, boxes: int) -> None:
        left = f", {duration((time.monotonic() - began) * (1.0 - share) / share)} left" if share > 0.0 else ""
        sweeps.note = f"proved in {100.0 * share:.1f} %, {boxes} boxes{left}"

    limits = {"resolution": given.resolution, "most_boxes": given.most_boxes, "progress": tell, "sweeps": sweeps}
    coordinates = robot.coordinates
    if given.start is not None:
        ends = [read_point(coordinates, words) for words in (given.start, given.end)]
        return prove_path(robot.kinematics, np.array(ends), wanted, given.mode, **limits)
    if given.motion is not None:
        path = importlib.import_module(MOTIONS).rounded_motion(robot.kinematics, given.motion, given.closed)
        return prove_motion(robot.kinematics, path.poses, path.radii, wanted, given.mode, **limits)
    bounds = read_box(coordinates, given.box)
    return prove(robot.kinematics, Domain.of_box(bounds), wanted, given.mode, **limits)


def _sensors(robot: Robot, words: list[str] | None) -> tuple[float, ...]:
    if not words:
        return ()
    about = f"--sensor-error {' '.join(words)}"
    try:
        number = float(words[0])
    except ValueError:
        raise AnalysisError(about, "it begins with no number", "write 0.01 deg") from None
    return (in_si(number, " ".join(words[1:]), robot.actuator_unit, about),)
