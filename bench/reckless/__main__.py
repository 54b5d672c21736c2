# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402 (the number of threads is set before any library reads it)
"""`python -m bench.reckless --write docs/reckless.md`: reckless motions of a dozen robots, and what became of them.

Robots take turns, a part of their motions each; parts that are done are kept in a journal, so a run that was ended goes
on where it was. `--robots` and `--motions` choose, `--minutes` ends it in time.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import re
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bench.reckless.jogs import HEADING
from bench.reckless.judge import LOOKS, SHARE, Judge
from bench.reckless.motions import Course, Draw, moves
from bench.tables import table
from pkm_control.loop.jogging import Jog
from pkm_control.motion.curve_check import CurveCheck
from pkm_control.motion.point_trajectory import PointTrajectory
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.motion_limits import ActuatorLimits
from pkm_kinematics import Kinematics

ROBOTS = (
    "delta",
    "gough_stewart",
    "five_bar",
    "quattro",
    "orthoglide",
    "agile_eye",
    "tripod_3prs",
    "tricept",
    "cable_8",
    "planar_3rrr",
    "h4",
    "planar_redundant",
)
MOTIONS = 10_000  # of a robot
STREAMED = 0.03  # of them are steered, not judged whole
VERIFIED = 200  # refusals of a robot that are looked into
SEED = 7
JOURNAL = Path("reports/reckless.jsonl")
PART = 500  # motions between two lines of the journal
_STEP, _COARSE = 1e-3, 4e-3  # s, between two samples that are judged; where a limb is solved by iteration
_AGAIN = 12  # admitted motions after which all begins at home again
_NEAR = 6e-3  # s before the instant of a refusal

KINDS = (  # of refusals, by words in them
    ("range of a joint", "outside \\[|come too near the end|end of its range"),
    ("out of reach", "reach|close|usable|finite|no pose|moves? off|motion space"),
    ("type 1", "type 1"),
    ("type 2", "type 2"),
    ("passive joints", "passive joints|configuration is singular|not determined"),
    ("constraint", "constraint singularity"),
    ("jump", "jump"),
    ("speed", "velocity of"),
    ("effort", "effort"),
    ("not at rest", "not at rest"),
    ("no motion", "turns by|step 0|rotation vector"),
)


HEADER = (
    "robot",
    "motions",
    "admitted + steered",
    "refused, by reason",
    "through a limit",
    "through a singularity",
    "otherwise wrong",
    "refusals confirmed",
    "nearest to types 1, 2",
)

PREFACE = """# Reckless motions

A safety test: do the checks of motions ever accept one that leaves the range of a joint, or
meets a singularity?

The test sends random goals and streams, half of them reasonable, half of them reckless. The table shows which were
accepted, which were refused, and the verdict of an independent judge. The judge shares nothing with the checks except
the joint positions, and accepts these only if Pinocchio closes the loops with them.
`python -m bench.reckless --write docs/reckless.md` makes this page and continues with its journal until every robot
has had {motions} motions; the second column shows how many it has had. The random seeds begin at {seed}.

Goals are trajectories and are checked as a whole before anything moves: slow and far, with turns on the way, or faster
than any drive. Each begins where the last accepted one ended, so that many begin near limits. Streams are twists
and poses, as from a hand or a servo loop while the platform moves; the judge checks the references, not the
requests. Every sample (1 ms; 4 ms if a limb is solved by iteration) of the accepted motions and of every stream is
compared with the ranges of all joints, including passive ones. At {looks} instants of each, the judge computes the
inverse Jacobian again from the null space of the loops. The sign of its determinant must not change, its margins of
types 1 and 2 must stay above {share:.0%} of those at home, and the actuators must stay below their speed limits.
Samples of the refusals of every kind are examined as well. At that instant, one of these must be true: a joint is
outside its range, least squares cannot close a loop, a speed or a margin is beyond its bound, or no efforts within
bounds do the work (a linear programme).

The last column is the smallest of both margins in all accepted goals and streams, as a share of home's. *Otherwise
wrong* is a jump, a speed over its limit, or no configuration.

The checks take the margin of passive joints from the blocks in which limbs are solved. A block can be singular although
its limb is not, as with the rods of `quattro` and `h4`. There the checks refuse more than necessary, which the judge
does not confirm.
"""


@dataclass
class Tally:
    """What became of the motions of a robot."""

    robot: str
    part: int
    goals: int = 0
    admitted: int = 0
    streams: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    limit: int = 0
    singularity: int = 0
    other: int = 0
    looked_into: int = 0
    unconfirmed: int = 0
    closest: tuple[float, float, float, float] = (np.inf, np.inf, np.inf, 0.0)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def kind_of(reason: str) -> str:
    words = re.sub(r"^at [-0-9.einf]+ s: ", "", reason)
    order = ("velocity of", "effort", "not at rest", "jump", "type 1", "type 2", "constraint singularity")
    for word in order:
        if word in words:
            return next(name for name, pattern in KINDS if re.search(word, pattern) or word in pattern)
    return next((name for name, pattern in KINDS if re.search(pattern, words)), f"? {words}")


class Trial:
    """Runs motions of one robot.

    Args:
        name: of the robot, in the gallery.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kinematics = Kinematics(load_mechanism(name))
        dynamics = Dynamics(self.kinematics)
        self.check = CurveCheck(dynamics, ActuatorLimits.of(self.kinematics.mechanism))
        self.judge = Judge(self.kinematics)
        quick = self.kinematics.constant_space and not self.kinematics.engine.iterated
        self.step = _STEP if quick else _COARSE

    def run(self, part: int, motions: int, seed: int) -> Tally:
        """Run some motions, from home.

        Args:
            part: of all, a number.
            motions: how many.
            seed: of the random numbers, with the number of the part.

        Returns:
            The tally.
        """
        begun = time.perf_counter()
        self.draw = Draw(self.kinematics, seed + 1000 * part)
        self.tally = Tally(self.name, part)
        streams = round(STREAMED * motions)
        self._goals(motions - streams)
        self._streams(streams)
        self.tally.seconds = time.perf_counter() - begun
        return self.tally

    def _goals(self, count: int) -> None:
        home, tally = np.array(self.kinematics.home), self.tally
        start, since = home, 0
        refusals: Counter[str] = Counter()
        looks = max(1, VERIFIED * PART // MOTIONS)
        for _ in range(count):
            tally.goals += 1
            trajectory = self.draw.trajectory(start)
            if isinstance(trajectory, str):
                refusals[kind_of(trajectory)] += 1
                continue
            refusal = self.check.refusal(trajectory)
            if not refusal:
                tally.admitted += 1
                self._judged(Course.of(trajectory, self.step), "goal")
                since += 1
                start = home if since % _AGAIN == 0 else trajectory.poses[-1]
                continue
            kind = kind_of(refusal)
            refusals[kind] += 1
            if refusals[kind] <= max(1, looks // 4) or tally.looked_into < looks:
                self._looked_into(trajectory, refusal)
        tally.refused = dict(refusals.most_common())

    def _looked_into(self, trajectory: PointTrajectory, refusal: str) -> None:
        at = float(re.match(r"at ([-0-9.e]+) s", refusal).group(1))  # type: ignore[union-attr]
        around = np.clip(np.linspace(at - _NEAR, at + 6e-4, 14), 0.0, trajectory.cycle)
        course = Course(around, *trajectory.sample(around))
        self.tally.looked_into += 1
        if not self.judge.confirms(course, refusal):
            self.tally.unconfirmed += 1
            self._note(f"not confirmed: {refusal}")

    def _streams(self, count: int) -> None:
        jog, now = Jog(self.check), 0.0
        for k in range(count):
            if k % _AGAIN == 0:
                jog.start(np.array(self.kinematics.home))
            course = self.draw.stream(jog, now)
            now = float(course.times[-1])
            self.tally.streams += 1
            if moves(course):
                self._judged(course, "stream")

    def _judged(self, course: Course, what: str) -> None:
        breach, closest = self.judge.breach(course, self.draw.random)
        known = self.tally.closest
        self.tally.closest = (
            *(float(np.fmin(a, b)) for a, b in zip(known[:3], closest[:3], strict=True)),
            float(np.fmax(known[3], closest[3])),
        )  # type: ignore[assignment]
        if breach:
            if breach.startswith("limit"):
                self.tally.limit += 1
            elif breach.startswith(("singularity", "margin")):
                self.tally.singularity += 1
            else:
                self.tally.other += 1
            self._note(f"{what}: {breach}")

    def _note(self, text: str) -> None:
        if len(self.tally.notes) < 40:
            self.tally.notes.append(text)


def known(journal: Path) -> list[Tally]:
    """Tallies of a journal."""
    lines = journal.read_text("utf-8").splitlines() if journal.is_file() else []
    return [Tally(**json.loads(line)) for line in lines]


def total(tallies: list[Tally]) -> Tally:
    whole = Tally(tallies[0].robot, -1)
    for name in (
        "goals",
        "admitted",
        "streams",
        "limit",
        "singularity",
        "other",
        "looked_into",
        "unconfirmed",
        "seconds",
    ):
        setattr(whole, name, sum(getattr(one, name) for one in tallies))
    whole.refused = dict(sum((Counter(one.refused) for one in tallies), Counter()).most_common())
    closest = np.array([one.closest for one in tallies])
    whole.closest = (*closest[:, :3].min(axis=0).tolist(), float(closest[:, 3].max()))
    whole.notes = [note for one in tallies for note in one.notes]
    return whole


def page(tallies: list[Tally]) -> str:
    rows, robots = [], [name for name in ROBOTS if any(one.robot == name for one in tallies)]
    wholes = [total([one for one in tallies if one.robot == name]) for name in robots]
    for one in wholes:
        refused = ", ".join(f"{kind} {count}" for kind, count in one.refused.items())
        rows.append(
            [
                one.robot,
                f"{one.goals + one.streams}",
                f"{one.admitted} + {one.streams}",
                refused,
                f"{one.limit}",
                f"{one.singularity}",
                f"{one.other}",
                f"{one.looked_into - one.unconfirmed} of {one.looked_into}",
                f"{one.closest[1]:.2g}, {one.closest[2]:.2g}",
            ]
        )
    text = PREFACE.format(motions=MOTIONS, looks=LOOKS, share=SHARE, seed=SEED)
    text += "\n" + table(HEADER, rows) + "\n"
    notes = [(one.robot, *said) for one in wholes for said in _of_all_times(one.notes).most_common()]
    if notes:
        text += "\nThe judge did not agree with these motions:\n\n"
        text += "".join(f"- {robot}: {note} ({count} of those noted)\n" for robot, note, count in notes)
    return text


def _of_all_times(notes: list[str]) -> Counter[str]:
    """How often each is there, whenever it was."""
    return Counter(re.sub(r"at [-0-9.einf]+ s: ", "", note) for note in notes)


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=list(ROBOTS), help="which")
    parser.add_argument("--motions", type=int, default=MOTIONS, help="of each")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end")
    parser.add_argument("--journal", type=Path, default=JOURNAL, help="where tallies are kept")
    parser.add_argument("--write", type=Path, help="the page to write")
    given = parser.parse_args()
    done = {(one.robot, one.part) for one in known(given.journal)}
    given.journal.parent.mkdir(parents=True, exist_ok=True)
    trials: dict[str, Trial] = {}
    until = time.monotonic() + 60.0 * given.minutes
    for part in range(-(-given.motions // PART)):
        for name in given.robots:
            if (name, part) in done or time.monotonic() > until:
                continue
            trials[name] = trials.get(name) or Trial(name)
            tally = trials[name].run(part, min(PART, given.motions - part * PART), SEED)
            with given.journal.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(tally)) + "\n")
            print(tally, flush=True)
    if given.write is not None:
        rest = given.write.read_text("utf-8").partition(HEADING)[1:] if given.write.is_file() else ()
        given.write.write_text(page(known(given.journal)) + "".join(rest), "utf-8")


if __name__ == "__main__":
    main()
