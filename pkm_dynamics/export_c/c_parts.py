# SPDX-License-Identifier: Apache-2.0
"""Parts of a robot in C that are not recorded: texts of the C files beside this one, and what is put into them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import pi
from pathlib import Path

import numpy as np

from pkm_dynamics.export_c.headers import Scalar
from pkm_dynamics.export_c.recorded_function import RobotFacts
from pkm_kinematics.forward.along_path import CLEARLY
from pkm_kinematics.kernels.position.solve_poses import FARTHEST
from pkm_kinematics.kernels.records import NEWTON
from pkm_kinematics.model.tables import Tables
from pkm_runtime.codegen.machine_code import FOLD, arc_coefficients


def _texts() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob("*.c")):
        pieces = re.split(r"^//// (\w+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        found |= dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return found


C = _texts()  # by their names, which stand before them in the files
# In the forward kinematics: with limbs that are closed at every step, and with those that the platform's motion closes.
CLOSED_STEPS = {
    "AT_REST": """
            return newton_step(pose, side, Q_NEXT goal, left, &step) == PKM_OK && same_side(&first, &step);""",
    "STEP_OPEN": "",
}
OPEN_STEPS = {
    "AT_REST": """ {
            if (newton_step(pose, side, Q_NEXT goal, left, &step) != PKM_OK)
                return 0;
            for (int i = 0; i < 7 && step.open < ONE; i++)
                pose[i] = step.pose[i]; /* the little that is left */TAKE_ALL
            if (step.open < ONE)
                return same_side(&first, &step);
        }""",
    "STEP_OPEN": """
    REAL open; /* what limbs are open by, or this step: 1 where it just counts as none */ROOM_THERE""",
}
TURNING_STEPS = {
    "ROOM_THERE": """
    REAL room; /* m: the longest step that does not leap over a singularity of limbs or constraints */""",
    "IN_ROOM": " && (k == 0 || first.length < step.room || length < STRAIGHT * first.length)",
}
START_BY_JOINT = "start_of_joint[first_start[k] + ((mode >> lowest_bit[k]) & bits_of_mode[k])]"
MOVED_START = """\
    if (status != PKM_OK && into_space(side, at) == PKM_OK)
        status = positions(at, side, start_of_mode[0], q);
"""
START_JOINTS = f"""\
    int status = positions(at, side, start_of_mode[0], q);
{MOVED_START}    if (status != PKM_OK)
        return status;
"""
# Joints of iterated limbs take steps of their own; at the end their positions are read from cosines and sines.
TURN_PASSIVE = """{
            q[passive[j]] += change[j];
            turn_joint(q, passive[j]);
        }"""
NEXT_BEGIN = """
    REAL next[PLACES], from[PLACES];
    for (int i = 0; i < PLACES; i++)
        from[i] = next[i] = q[i];"""
TAKE_NEXT = """
        for (int i = 0; i < PLACES; i++)
            q[i] = next[i];"""
TAKE_ALL = """
            if (step.open < ONE) {
                for (int i = 0; i < PLACES; i++)
                    q[i] = next[i];
                read_joints(from, q);
            }"""
JOINTS_ALONG = (  # in the forward kinematics: with joints that are iterated, and without
    ("ALL_JOINTS", ", kept[PLACES]", ", q[JOINTS]"),
    ("KEEP_JOINTS", "    for (int i = 0; i < PLACES; i++)\n        kept[i] = q[i];\n", ""),
    ("START_JOINTS", "    for (int i = 0; i < PLACES; i++)\n        q[i] = kept[i];\n", START_JOINTS),
    ("TURN_PASSIVE", TURN_PASSIVE, "q[passive[j]] += change[j];"),
    ("TURN_DRIVE", "\n            turn_joint(joints, NAME_actuated_joint[a]);", ""),
    ("NEXT_IN ", "REAL next[], ", ""),
    ("NEXT_BEGIN", NEXT_BEGIN, ""),
    ("TAKE_NEXT", TAKE_NEXT, ""),
    ("TAKE_ALL", TAKE_ALL, ""),
    ("Q_NEXT ", "q, next, ", ""),
    ("Q_IN ", "const REAL q[], ", ""),
    ("Q_OUT ", "REAL q[], ", ""),
    ("Q_GIVEN ", "q, ", ""),
    ("Q goal", "q, goal", "goal"),
    ("Q next", "q, next", "next"),
    ("Q pose", "q, pose", "pose"),
    ("Q_LOCAL", "\n    REAL kept[PLACES];", ""),
    ("Q_FIRST", "\n    REAL q[PLACES] = {ZERO};", ""),
    ("Q_LAST", ", q", ""),
    ("Q_KEEP", "        for (int i = 0; i < PLACES; i++)\n            kept[i] = q[i];\n", ""),
    ("Q_BACK", "            for (int i = 0; i < PLACES; i++)\n                q[i] = kept[i];\n", ""),
)
FOR_GCC = """\
#if defined(__GNUC__) && !defined(__clang__)
/* Values stay where they are written, limb by limb: moved behind the checks, they fill the stack and the caches. */
#define IN_ORDER __attribute__((optimize("no-tree-sink")))
#if defined(__AVX__)
/* Wide registers that are in use when math.h is called cost microseconds there. */
#pragma GCC target("prefer-vector-width=128")
#endif
#else
#define IN_ORDER
#endif
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.10)
project(NAME C)
set(CMAKE_C_STANDARD 99)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library(NAME NAME.c)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
option(NATIVE "code for the processor of this computer alone" OFF)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  target_compile_options(NAME PRIVATE -fno-math-errno -fno-trapping-math $<$<BOOL:${NATIVE}>:-march=native>)
endif()
if(UNIX)
  target_link_libraries(NAME PUBLIC m)
endif()
enable_testing()
add_executable(NAME_test NAME_test.c)
target_link_libraries(NAME_test NAME)
add_test(NAME NAME_test COMMAND NAME_test)
"""
README = """\
# {robot} in C

Made by `pkm export` {release} from the description with digest `{digest}`. `pkm check ROBOT --exported .`, with the
robot's file or its name in the gallery, tells whether the description still has it. Do not edit: export again.

    {build}

compares every function with what Python answers in 1,000 states, and prints the largest error.

`{name}.h` says what the functions take and give; `{name}.hpp` has them for C++17, with spans. Numbers are `{real}`.
C99, `math.h` and nothing else, no allocation, no state: all functions may be called from several threads at once.
Their names begin with `{name}_`, whatever the options: link one export of a robot into a program, not two.

Task coordinates: {what}. Drives: {drives}. {modes} working mode(s), numbered from 0, which is home's.

    double actuated[{upper}_N_ACTUATED], effort[{upper}_N_ACTUATED];
    if ({name}_inverse({name}_home, 0, actuated, 0) == PKM_OK)
        {name}_gravity({name}_home, 0, effort);

Where there is no answer, it is NaN, and the status says why. `{name}_forward` continues `near`: called in every period
with the pose of the last, it keeps its assembly mode, or says that it cannot.
"""


def arc_tangent_in_c(number: Callable[[float], str], degree: int) -> str:
    """`arc_tangent` in C, by a series of a degree, in numbers as C writes them."""
    lines, *others = reversed([number(x) for x in arc_coefficients(degree)])
    for x in others:
        lines = f"({lines} * square\n        {x[0] if x[0] == '-' else '+'} {x.removeprefix('-')})"
    words = {"SERIES": lines[1:-1], "FOLD": number(FOLD), "LEAST": number(1e-30)}
    words |= {f"PI_{k}": number(pi / k) for k in (1, 2, 4)}
    return re.sub(r"\b(" + "|".join(words) + r")\b", lambda found: words[found[0]], C["ARC_TANGENT"])


class LimbPlaces:
    """Which limb each side (block with several branches), actuator and joint belongs to.

    `branches` counts the sides of each limb, at `most`. `of_branch` is the place of a side in the number of an attempt:
    the first branch of a limb changes slowest, as in `WorkingModes.hidden_branches`.
    """

    def __init__(self, tables: Tables, actuators: int, joints: int) -> None:
        blocks, bodies = tables.blocks, tables.bodies
        limb_of = [k for k, (a, b) in enumerate(tables.limbs) for _ in range(a, b)]
        sides = [limb_of[b] for b in range(len(blocks)) if blocks["branches"][b] > 1]
        self.of_side = sides or [0]
        seen = Counter(self.of_side)
        self.branches = [seen[limb] for limb in range(len(tables.limbs))]
        self.most = max(seen.values()) if sides else 0
        self.of_branch = [seen[limb] - 1 - self.of_side[:k].count(limb) for k, limb in enumerate(self.of_side)]
        self.of_actuator, self.of_joint = [0] * actuators, [0] * joints
        for b, block in enumerate(blocks):
            for i in range(block["start"], block["start"] + block["count"]):
                self.of_joint[bodies["column"][i]] = limb_of[b]
                if bodies["actuator"][i] >= 0:
                    self.of_actuator[bodies["actuator"][i]] = limb_of[b]


def forward_tables(robot: RobotFacts, scalar: Scalar, places: LimbPlaces) -> Iterator[str]:
    """Tables of the forward kinematics: what turns, and which limb each side, drive and joint belongs to."""
    engine, table, turning = robot.engine, scalar.table, robot.engine.actuated_turning
    yield "/* Positions beyond which numbers are too coarse to close loops with. */\n" + table(
        "static const REAL", "farthest", np.where(turning, FARTHEST, FARTHEST * engine.size)
    )
    yield table("static const int", "actuator_turns", turning)
    yield table("static const int", "limb_of_side", places.of_side)
    yield table("static const int", "limb_of_actuator", places.of_actuator)
    if robot.iterated or max(places.branches) > 1:
        yield table("static const int", "limb_of_joint", places.of_joint)
    if robot.iterated:
        bodies = engine.tables.bodies[2:]
        turning = np.zeros(len(engine.joint_names))
        turning[bodies["column"]] = bodies["prismatic"] == 0
        yield table("static const int", "turns_in_limb", turning)
        iterated = np.zeros(len(engine.joint_names))
        for block in engine.tables.blocks[engine.tables.blocks["solver"] == NEWTON]:
            iterated[engine.tables.bodies["column"][block["start"] : block["start"] + block["count"]]] = 1
        yield table("static const int", "is_iterated", iterated)
        return
    yield (
        "/* A limb with several branches tries all of them: the place of each in the number of the attempt. */\n"
        + (table("static const int", "place_of_side", places.of_branch))
    )
    clearly = [CLEARLY if count > 1 else 1.0 for count in places.branches]
    yield "/* How much nearer a branch must be than those tried before. */\n" + table(
        "static const REAL", "clearly", clearly
    )
