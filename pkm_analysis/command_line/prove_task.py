# SPDX-License-Identifier: Apache-2.0
"""`pkm analyse ROBOT prove`: whether something holds at every pose of a box, a straight path or a motion file."""

from __future__ import annotations

import argparse
import importlib
import time
from typing import TYPE_CHECKING

import numpy as np

import pkm_analysis
from pkm_analysis import proof
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.predict_task import MOTIONS
from pkm_analysis.command_line.question import add_sensor_error, plain_parser, sensor_errors
from pkm_analysis.command_line.task_answers import Found, Task, add_output, add_picture
from pkm_analysis.requirements.names import FORMS, MOST_BOXES, RESOLUTION
from pkm_runtime import sweeps as chunks

if TYPE_CHECKING:
    from pkm_analysis.analysed_robot import Robot
    from pkm_analysis.proof import Proof
    from pkm_analysis.proof.halving import Settings
    from pkm_description import Mechanism
    from pkm_runtime.sweeps import Sweeps

PROVED, REFUTED, NO_ANSWER, UNDECIDED = 0, 1, 2, 3


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = plain_parser(
        "prove",
        "Say whether something holds at every pose of a box, a straight path or a motion: proved "
        "everywhere, refuted at a pose that is named, or undecided in boxes of the stated size. Proofs are by interval "
        "arithmetic.",
        "what can be asked:\n"
        + "".join(f"\n  {form}" for form in FORMS)
        + "\n\nexit code: 0 proved, 1 refuted, 3 undecided, 2 where the question has no answer",
        None,
    )
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
    add_sensor_error(p)
    p.add_argument("--mode", type=int, default=0, metavar="N", help="number of the working mode (default: 0, home's)")
    p.add_argument("--resolution", type=float, default=RESOLUTION, help=f"of the sides (default: {RESOLUTION:.2g})")
    p.add_argument("--most-boxes", type=int, default=MOST_BOXES, help=f"until undecided (default: {MOST_BOXES})")
    add_output(p)
    add_picture(p)
    return p


def _wrong(given: argparse.Namespace) -> str:
    return "a path needs both --from and --to" if (given.start is None) != (given.end is None) else ""


def _answer(given: argparse.Namespace, mechanism: Mechanism, sweeps: Sweeps) -> Found:
    robot = pkm_analysis.Robot(mechanism)
    found = _proof(given, robot, sweeps)
    status = {"proved": PROVED, "refuted": REFUTED}.get(found.verdict, UNDECIDED)
    more = _outside(given, robot, found) if found.violated == "inside" else []
    return Found(robot.name, " and ".join(found.that), [found], more=more, status=status)


def _outside(given: argparse.Namespace, robot: Robot, found: Proof) -> list[str]:
    """One line on what stops the robot at the point of a proof; none where point tests find nothing."""
    at = found.by_name()
    conditions = pkm_analysis.Analysis(robot.kinematics, given.mode or None).conditions(
        [c.name for c in robot.coordinates.free]
    )
    around = {c.name: (at[c.name] - 1.0, at[c.name] + 1.0) for c in conditions.domain.coordinates}
    membership = conditions.over(conditions.domain.within(around))
    point = np.array([at[c.name] for c in membership.domain.coordinates])
    stopped = not membership.inside(point[None])[0]
    return [f"  there: {membership.why(int(membership.codes(point[None])[0]), point)}"] if stopped else []


def _proof(given: argparse.Namespace, robot: Robot, sweeps: Sweeps) -> Proof:
    if not 0.0 < given.resolution < 1.0:
        raise AnalysisError("--resolution", f"{given.resolution:g} is no part of a side", "give one between 0 and 1")
    if given.most_boxes < 1:
        raise AnalysisError("--most-boxes", f"{given.most_boxes} boxes prove nothing", "give one or more")
    sensors = sensor_errors(robot, given.sensor_error)
    wanted = [proof.read_requirement(robot, text, sensors) for text in given.that or ["inside"]]
    began = time.monotonic()

    def tell(share: float, boxes: int) -> None:
        left = f", {chunks.duration((time.monotonic() - began) * (1.0 - share) / share)} left" if share > 0.0 else ""
        sweeps.note = f"proved in {100.0 * share:.1f} %, {boxes} boxes{left}"

    limits: Settings = {
        "resolution": given.resolution,
        "most_boxes": given.most_boxes,
        "progress": tell,
        "sweeps": sweeps,
    }
    coordinates = robot.coordinates
    if given.start is not None:
        ends = [proof.read_point(coordinates, words) for words in (given.start, given.end)]
        return proof.prove_path(robot.kinematics, np.array(ends), wanted, given.mode, **limits)
    if given.motion is not None:
        path = importlib.import_module(MOTIONS).rounded_motion(robot.kinematics, given.motion, given.closed)
        return proof.prove_motion(robot.kinematics, path.poses, path.radii, wanted, given.mode, **limits)
    bounds = proof.read_box(coordinates, given.box)
    return proof.prove(robot.kinematics, proof.Domain.of_box(bounds), wanted, given.mode, **limits)


TASKS = {"prove": Task(parser, _answer, _wrong, NO_ANSWER)}
