# SPDX-License-Identifier: Apache-2.0
"""The test that goes with a robot in C: states at random, and what Python answers there in each working mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.linear_form.random_motions import NoMotionError, random_motions
from pkm_kinematics import Status
from pkm_kinematics.batch import nans
from pkm_kinematics.kernels.compiled_rotations import displace
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW
from pkm_kinematics.status import closes

STATES = 1000
NEAR = 0.005  # rad, and of the robot's size: how far from the pose the forward kinematics begins
# Bound on the error over the largest number of an answer, for doubles and floats. Where the condition of what is solved
# is above WELL: so many roundings times that. It is that of the limbs twice, as a joint's position and its rates solve
# for it, once more for accelerations, which the rates enter; and of the drives, or of what limbs hold, which a twist
# and the acceleration that it imposes solve for.
DOUBLE, SINGLE, WELL, ROUNDINGS = 1e-12, 1e-4, 20.0, 200.0
OPEN = 1e-14  # of the robot's size: gaps that errors leave, which the answers then say no better than to these
MEANINGLESS = 0.1  # bound from which on a state is left out
ACCELERATED = ("inverse_dynamics", "direct_dynamics")  # functions with accelerations of the limbs
DRIVES = ("forward", "inverse_dynamics", "gravity", "margins")  # functions that solve for the drives


class States(NamedTuple):
    """Rows that the functions are asked, and what each answers: numbers, and a status."""

    mode: NDArray[np.int64]  # (n,)
    given: dict[str, Array]  # (n, ...) by name
    answers: dict[str, Array]  # (n, ...) by function, NaN where there is none
    status: dict[str, NDArray[np.int64]]  # (n,) by function
    at_home: int  # how many are in home's mode, since their own does not reach the pose within the joints' ranges

    def least(self, name: str) -> float:
        """Size below which an answer counts as so large: terms may balance, leaving their rounding."""
        efforts = "gravity", "inverse_dynamics"
        if name in (*efforts, "direct_dynamics"):
            return max(float(np.median(self._sizes(one))) for one in (efforts if name in efforts else (name,))) or 1e-6
        return 1e-6 * float(self._sizes(name).max()) or 1e-6

    def _sizes(self, name: str) -> Array:
        return np.nan_to_num(np.abs(self.answers[name])).max(axis=1)

    def bound(self, name: str, single: bool = False) -> Array:
        """Largest error (n,) of a function's answers; infinite where it would be `MEANINGLESS`."""
        limbs, drives = np.nan_to_num(self.answers["margins"]).T
        hold = self.given["hold"][:, 0]
        last = drives if name in DRIVES else 1.0
        with np.errstate(divide="ignore"):
            held = hold**2 if name in ACCELERATED else hold if name == "forward" else 1.0
            condition = 1.0 / (last * held * limbs ** (3 if name in ACCELERATED else 2))
        bar, eps = (SINGLE, np.finfo(np.float32).eps) if single else (DOUBLE, np.finfo(float).eps)
        rounded = ROUNDINGS * (eps + self.given["gap"][:, 0]) * condition
        bound = np.where(rounded <= WELL * ROUNDINGS * eps, bar, np.maximum(bar, rounded))
        return np.where(bound < MEANINGLESS, bound, np.inf)


def states_of(dynamics: Dynamics, n: int = STATES, seed: int = 0) -> States:
    """States of a robot at random, in its working modes in turn, and Python's answers."""
    kinematics, rng = dynamics.kinematics, np.random.default_rng(seed)
    S, m, size = kinematics.task.subspace, len(kinematics.actuated_names), kinematics.engine.size
    per_unit = S * np.repeat([size, 1.0], 3)[:, None]
    try:
        motions = random_motions(kinematics, n, seed)
        pose, twist, acceleration = motions.pose, motions.twist, motions.acceleration
    except NoMotionError:
        home = np.array(kinematics.home)
        pose = np.array([displace(home, step) for step in rng.uniform(-0.1, 0.1, (n, S.shape[1])) @ per_unit.T])
        twist, acceleration = rng.uniform(-1.0, 1.0, (2, n, S.shape[1])) @ per_unit.T
    steps = rng.uniform(-NEAR, NEAR, (n, S.shape[1])) @ per_unit.T
    near = np.array([displace(*pair) for pair in zip(pose, steps, strict=True)])
    if not kinematics.constant_space:
        units = np.where(kinematics.engine.actuated_turning, 1.0, size)
        q = kinematics.inverse(pose).actuated
        near = kinematics.forward(q + units * rng.uniform(-NEAR, NEAR, q.shape), near=pose).pose
        near = np.where(np.isfinite(near), near, pose)
    given = {
        "pose": pose,
        "twist": twist,
        "acceleration": acceleration,
        "effort": rng.normal(size=(n, m)),
        "near": near,
        "hold": np.ones((n, 1)),
        "gap": np.zeros((n, 1)),
    }
    mode, at_home = np.arange(n, dtype=np.int64) % kinematics.n_modes, 0
    iterated = kinematics.engine.iterated
    if iterated or not kinematics.constant_space:  # in home's mode where another has none, or leaves the joints' ranges
        for k in range(1, kinematics.n_modes):
            rows = np.flatnonzero(mode == k)
            if len(rows):
                codes = kinematics.inverse(pose[rows], mode=k).status
                outside = codes != Status.CONVERGED if iterated else ~closes(codes)
                mode[rows[outside]] = 0
                at_home += int(outside.sum())
    widths = {"inverse": len(kinematics.joint_names), "jacobian": 6 * m, "inverse_dynamics": m, "direct_dynamics": 6}
    widths |= {"gravity": m, "margins": 2, "forward": 7, "drives": m}
    answers = {name: nans(n, width) for name, width in widths.items()}
    status = {name: np.zeros(n, dtype=np.int64) for name in widths}
    for k in np.unique(mode):
        rows = np.flatnonzero(mode == k)
        for name, found, code in _answers(dynamics, int(k), {what: values[rows] for what, values in given.items()}):
            if name in ("hold", "gap"):
                given[name][rows, 0] = found
                continue
            if name == "scale":
                given["effort"][rows] *= found
                continue
            answers[name][rows], status[name][rows] = found, code
    return States(mode, given, answers, status, at_home)


def _answers(dynamics: Dynamics, mode: int, given: dict[str, Array]) -> Iterator[tuple[str, Array, NDArray[Any]]]:
    kinematics = dynamics.kinematics
    pose, twist, acceleration = given["pose"], given["twist"], given["acceleration"]
    at = kinematics.at(pose, mode=mode)
    known = at.solved(jacobian=True)
    yield "inverse", known.q, known.status
    closed = (known.status == Status.CONVERGED) | (known.status == Status.JOINT_LIMIT)
    regular = known.regularity > SINGULAR_BELOW
    code = np.where(closed, np.where(regular, 0, Status.SINGULAR), known.status)
    yield "jacobian", known.jacobian.reshape(len(pose), -1), code
    found = dynamics.inverse(at, twist, acceleration)
    yield "inverse_dynamics", found.effort, found.status
    if not kinematics.constant_space:  # how firmly limbs hold what the platform cannot do
        yield "hold", np.nan_to_num(np.minimum(at.singularity.constraint_hold, 1.0)), code
    left = known.residual / kinematics.engine.size
    yield "gap", np.where(closed & (left > OPEN), left, 0.0), code
    both = np.stack([known.regularity, found.condition], 1)
    yield "margins", both, code
    held = dynamics.inverse(at)
    yield "gravity", held.effort, held.status
    top = np.abs(np.nan_to_num(found.effort)).max(axis=1, keepdims=True)
    scale = np.where(top > 0.0, top, 1.0)
    yield "scale", scale, held.status
    moved = dynamics.direct(at, twist, given["effort"] * scale)
    yield "direct_dynamics", moved.acceleration, moved.status
    q = known.q[:, kinematics.engine.actuated_column]
    yield "drives", q, np.where(closed, 0, known.status)
    path = kinematics.forward(q, near=given["near"])
    # it ends where little is left to correct; a step from there leaves rounding
    again = kinematics.forward(q, near=path.pose).pose
    pose = np.where(np.isfinite(again), again, path.pose)
    yield "forward", pose, np.where(path.status == Status.JOINT_LIMIT, 0, path.status)


TEST = """\
/* Compares the robot's functions with what Python answers, state by state. The exit status is 1 where they differ. */
#include "{name}.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define STATES {states}
#define FUNCTIONS {functions}
#define LARGEST {largest!r} /* error, over the largest number of an answer */
#define WELL {well!r} /* condition above which a larger error is allowed */
#define ROUNDINGS {roundings!r} /* there: error over EPSILON and the condition */
#define MEANINGLESS {meaningless!r}
#define EPSILON {epsilon}

static const char *const names[FUNCTIONS] = {{{names}}};
static const int solves_drives[FUNCTIONS] = {{{drives_solved}}}, accelerates[FUNCTIONS] = {{{accelerated}}};
/* Status of each function, and the working mode. */
static const int expected[STATES][FUNCTIONS + 1] = {{
{codes}
}};
/* Pose, twist, acceleration, efforts, where the forward kinematics begins, how firmly limbs hold what the platform
   cannot do, what its loops leave open, of its size; answers of the functions. */
static const {real} states[STATES][{width}] = {{
{table}
}};
static double errors[FUNCTIONS][2], roundings[FUNCTIONS]; /* errors at small and large conditions */
static int solved[FUNCTIONS], large[FUNCTIONS], without[FUNCTIONS], refused[FUNCTIONS], singular[FUNCTIONS];
static int wrong[FUNCTIONS];

static {real} *actuated_of(int i, const {real} joints[], {real} actuated[])
{{
    const int known = expected[i][0] == PKM_OK || expected[i][0] == PKM_JOINT_LIMIT;
{picked}
    return actuated;
}}

/* The pose at which nothing is left to correct: the forward kinematics ends where little is, and goes on from there. */
static int settled_forward(const {real} actuated[], const {real} near[7], {real} pose[7])
{{
    {real} first[7];
    const int status = {name}_forward(actuated, near, first);
    for (int k = 0; k < 7; k++)
        pose[k] = first[k];
    return status == PKM_OK ? {name}_forward(actuated, first, pose) : status;
}}

static void compare(int f, int i, int status, const {real} found[], const {real} wanted[], int n, {real} least)
{{
    const {real} *margins = states[i] + {margins};
    const double hold = (double)states[i][{hold}], limbs = (double)margins[0];
    const double last = solves_drives[f] ? (double)margins[1] : 1.0, gap = (double)states[i][{gap}];
    const double held = accelerates[f] ? limbs * hold * hold : f == 1 ? hold : 1.0;
    const double divisor = EPSILON / (EPSILON + gap) * last * held * limbs * limbs;
    const double smallest = ROUNDINGS * EPSILON / MEANINGLESS;
    double top = (double)least, off = 0.0;
    if (status != expected[i][f] && expected[i][f] == PKM_OK) {{
        if (status == PKM_SINGULAR && !(divisor > smallest)) {{
            singular[f]++;
            return;
        }}
        /* the forward kinematics, and limbs solved by iteration, may refuse what Python reaches on another way */
        if (f == 1 || status == PKM_NOT_CONNECTED) {{
            refused[f]++;
            return;
        }}
    }}
    if (status != PKM_OK && (status == expected[i][f] || f == 1 || status == PKM_NOT_CONNECTED))
        if (status != PKM_JOINT_LIMIT) {{
            without[f]++;
            return;
        }}
    if (status != expected[i][f]) {{
        wrong[f]++;
        return;
    }}
    if (!(divisor > smallest)) {{
        singular[f]++;
        return;
    }}
    for (int k = 0; k < n; k++)
        if (fabs((double)wanted[k]) > top)
            top = fabs((double)wanted[k]);
    double sign = 1.0;
    if (f == 1) {{ /* a quaternion and its negative are one attitude */
        double product = 0.0;
        for (int k = 3; k < 7; k++)
            product += (double)found[k] * (double)wanted[k];
        sign = product < 0.0 ? -1.0 : 1.0;
    }}
    for (int k = 0; k < n; k++) {{
        const double difference = fabs((k < 3 || f != 1 ? 1.0 : sign) * (double)found[k] - (double)wanted[k]) / top;
        if (!(difference <= off))
            off = difference < HUGE_VAL ? difference : HUGE_VAL; /* also where it is not a number */
    }}
    const int well = WELL * divisor >= 1.0;
    if (!(off <= errors[f][!well]))
        errors[f][!well] = off;
    if (!well && !(off * divisor / EPSILON <= roundings[f]))
        roundings[f] = off * divisor / EPSILON;
    ++*(well ? &solved[f] : &large[f]);
}}

int main(void)
{{
    {real} found[{found}], actuated[{drives}];
    int failed = 0;
    double most[2] = {{0.0, 0.0}};
    for (int i = 0; i < STATES; i++) {{
        const {real} *s = states[i];
        const int mode = expected[i][FUNCTIONS];
{calls}
    }}
    printf("%d states{at_home}\\n", STATES);
    for (int f = 0; f < FUNCTIONS; f++) {{
        printf("%-17s largest error %.1e in %d states", names[f], errors[f][0], solved[f]);
        if (large[f])
            printf("; %.1e in %d with a condition above %.0f, %.1f roundings times it", errors[f][1], large[f], WELL,
                   roundings[f]);
        printf("; left out: %d without an answer in Python, too", without[f]);
        if (refused[f])
            printf(", %d that C refuses alone (limbs not followed, or the platform's way)", refused[f]);
        if (singular[f])
            printf(", %d too near a singularity for these numbers", singular[f]);
        printf(wrong[f] ? "; %d OF ANOTHER STATUS\\n" : "\\n", wrong[f]);
        failed = failed || !(errors[f][0] <= LARGEST) || !(roundings[f] <= ROUNDINGS);
        failed = failed || wrong[f] > 0 || refused[f] > STATES / {part};
        for (int k = 0; k < 2; k++)
            most[k] = errors[f][k] > most[k] ? errors[f][k] : most[k];
    }}
    printf("largest error %.1e", most[0]);
    if (most[1] > 0.0)
        printf("; where the condition is above %.0f, %.1e", WELL, most[1]);
    printf("\\n");
    return failed;
}}
"""
PARTS = ("pose", "twist", "acceleration", "effort", "near", "hold", "gap")  # columns of a state, before the answers
CALLS = {
    "inverse": "s + POSE, mode, actuated, found",
    "forward": "actuated_of(i, answer, actuated), s + NEAR, found",
    "jacobian": "s + POSE, mode, found",
    "inverse_dynamics": "s + POSE, s + TWIST, s + ACCELERATION, mode, found",
    "direct_dynamics": "s + POSE, s + TWIST, s + EFFORT, mode, found",
    "gravity": "s + POSE, mode, found",
    "margins": "s + POSE, mode, found",
    "drives": "s + POSE, mode, found",
}


def numbers_in_c(states: States, single: bool) -> tuple[str, dict[str, int], int]:
    """The table of states in C, one a line; where the parts of a state begin; and its width."""
    columns = [states.given[name] for name in PARTS] + [states.answers[name] for name in CALLS]
    rows = np.nan_to_num(np.hstack(columns))
    at, places = 0, {}
    for name, values in zip([*PARTS, *CALLS], columns, strict=True):
        places[name] = at
        at += values.shape[1]
    text = "f, " if single else ", "
    numbers = rows.astype(np.float32).astype(float) if single else rows
    lines = (text.join(map(repr, map(float, row))) + ("f" if single else "") for row in numbers)
    return ",\n".join(f"    {{{line}}}" for line in lines), places, at


def test_source(name: str, states: States, actuated: NDArray[np.int64], single: bool, iterated: bool) -> str:
    """Text of the test; `actuated` are the columns of the actuated joints among all."""
    table, places, width = numbers_in_c(states, single)
    codes = ",\n".join(
        "    {" + ", ".join(str(int(states.status[what][k])) for what in CALLS) + f", {mode}}}"
        for k, mode in enumerate(states.mode)
    )
    real, f = ("float", "f") if single else ("double", "")
    calls, widths = [], []
    for k, (what, arguments) in enumerate(CALLS.items()):
        n = states.answers[what].shape[1]
        for part in PARTS:
            arguments = arguments.replace(f"s + {part.upper()}", f"s + {places[part]}")
        arguments = arguments.replace("answer", f"s + {places['inverse']}")
        least = f"{states.least(what)!r}{f}"
        function = "settled_forward" if what == "forward" else f"{name}_{what}"
        calls.append(f"        compare({k}, i, {function}({arguments}), found, s + {places[what]}, {n}, {least});")
        widths.append(n)
    picked = "\n".join(
        f"    actuated[{a}] = known ? joints[{column}] : ({real})NAN;" for a, column in enumerate(actuated)
    )
    names = ", ".join(f'"{what}"' for what in CALLS)
    return TEST.format(
        name=name,
        real=real,
        states=len(states.mode),
        functions=len(CALLS),
        largest=SINGLE if single else DOUBLE,
        well=WELL,
        roundings=ROUNDINGS,
        meaningless=MEANINGLESS,
        epsilon="(double)FLT_EPSILON" if single else "DBL_EPSILON",
        drives_solved=", ".join(str(int(what in DRIVES)) for what in CALLS),
        accelerated=", ".join(str(int(what in ACCELERATED)) for what in CALLS),
        margins=places["margins"],
        hold=places["hold"],
        gap=places["gap"],
        at_home=(
            states.at_home
            and f", {states.at_home} in home's mode, as others do not reach the pose within the joints' ranges"
        )
        or "",
        names=names,
        codes=codes,
        table=table,
        width=width,
        picked=picked,
        found=max(widths),
        drives=len(actuated),
        calls="\n".join(calls),
        part=10 if iterated else 50,
    )
