# SPDX-License-Identifier: Apache-2.0
"""The files of a robot in C: source, header, test with expected numbers, build file, read-me."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.load import contents_of
from pkm_description.rotations import pose_distance
from pkm_dynamics.dynamics import Dynamics
from pkm_dynamics.export_c.c_parts import (
    CLOSED_STEPS,
    CMAKE,
    FOR_GCC,
    JOINTS_ALONG,
    MOVED_START,
    OPEN_STEPS,
    README,
    START_BY_JOINT,
    TURNING_STEPS,
    C,
    LimbPlaces,
    arc_tangent_in_c,
    forward_tables,
)
from pkm_dynamics.export_c.c_test import states_of, test_source
from pkm_dynamics.export_c.headers import (
    LIMBS,
    PROTOTYPES,
    STATUSES,
    TAKEN,
    Header,
    Scalar,
    cpp_header,
    stays_open,
    wrapped,
)
from pkm_dynamics.export_c.recorded_robot import STRAIGHT, RecordedFunction, RecordedRobot
from pkm_kinematics.forward.along_path import CLEARLY
from pkm_kinematics.kernels.path.carry_on import BEYOND, FAR, JUMP, SHORT, SHORTEST, STEP
from pkm_kinematics.kernels.path.follow import CONTRACTION
from pkm_kinematics.kernels.position.closures import CLOSED, DEPENDENT
from pkm_kinematics.kernels.position.positions import AT_REST, NEXT, ROUNDED, ROUNDING
from pkm_kinematics.kernels.position.solve_poses import INSIDE
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.solve import engine
from pkm_kinematics.solve.coupler_curve import CouplerCurve
from pkm_kinematics.solve.possible_twists import ROUNDED as AJAR
from pkm_kinematics.solve.working_modes import showing
from pkm_kinematics.status import Status, closes
from pkm_runtime.codegen.c_code import CHOICES, KEEPS_NAN, LONG, identifier, quoted
from pkm_runtime.optional import release

# Of the robot's size: between poses on the way of a platform with one degree of freedom, from which limbs are found
BETWEEN = 0.05
MANY = 256  # working modes: joints at home are no table of these then
# Of the operations of a step that serves every pose: one in more is not written before it.
WORTH = 0.9


class CFiles:
    """All files of one robot, by name; `single` makes floats of doubles."""

    def __init__(self, dynamics: Dynamics, single: bool = False) -> None:
        self.robot = RecordedRobot(dynamics, single, turns=True)
        self.dynamics, self.kinematics, self.engine = dynamics, dynamics.kinematics, dynamics.kinematics.engine
        self.single, self.scalar = single, Scalar(single)
        name = identifier(self.kinematics.mechanism.name)
        self.name = f"{name}_robot" if TAKEN.fullmatch(name) else name
        self.n_modes = self.kinematics.n_modes
        self.header = Header(self.robot, self.name, self.scalar)
        self.counts: dict[str, Counter[str]] = {}

    @property
    def files(self) -> dict[str, str]:
        """Text of each file."""
        name, header, source = self.name, self.header.text(), self.source()
        states = states_of(self.dynamics)
        plus_plus = cpp_header(name, self.scalar.real, [*PROTOTYPES, *self.header.near_prototypes], STATUSES)
        contents = contents_of(header, source, plus_plus)
        return {
            f"{name}.h": header.replace('_CONTENTS ""', f'_CONTENTS "{contents}" /* digests of .h, .c and .hpp */'),
            f"{name}.hpp": plus_plus,
            f"{name}.c": source,
            f"{name}_test.c": test_source(name, states, self.engine.actuated_column, self.single, self.robot.iterated),
            "CMakeLists.txt": re.sub(r"\bNAME|(?<=_)NAME", name, CMAKE),
            "README.md": self.read_me(),
        }

    def read_me(self) -> str:
        """What the files are, in a page."""
        k = self.kinematics
        return README.format(
            name=self.name,
            upper=self.name.upper(),
            robot=k.mechanism.name,
            release=release(),
            digest=self.header.digest,
            what=k.mechanism.coordinates_in_words(),
            modes=self.n_modes,
            drives=", ".join(k.actuated_names),
            real=self.scalar.real,
            build=self.build_line,
        )

    @property
    def build_line(self) -> str:
        """How the test is built and run."""
        return f"cmake -S . -B build && cmake --build build && build/{self.name}_test"

    # -- source -------------------------------------------------------------------------------------------------------

    def source(self) -> str:
        """Text of the source."""
        r = self.robot
        plain, given = "const REAL pose[7], const REAL side[], ", "q" if r.iterated else "start"
        forward = self._forward()
        moves = r.iterated or self.robot.moves_into_space or "platform(" in forward
        parts = [
            f"/* Made by pkm export {release()} from the description with digest {self.header.digest}. */",
            f'{FOR_GCC}{KEEPS_NAN}#include "{self.name}.h"\n\n#include <float.h>\n#include <math.h>\n'
            + ("" if self.single else C["WIDE"]),
            self._limits(),
            self._torn(),
            *([self.static("platform", "const REAL pose[7], REAL at[7]", r.platform())] if moves else ()),
            *(self._iteration() if r.iterated else [self._into_space()]),
            self.static("positions", f"{plain}const REAL {given}[], REAL joints[]", r.inverse()),
            self.text(C["WITHIN"] + "\n" + (C["SOLVED"] if r.iterated else self._inverse()) + C["JOINTS_WITHIN"]),
            *([self.text(self._from_home("inverse"))] if r.iterated else []),
        ]
        effort = "REAL effort[]"
        if r.one_way:
            effort += ", REAL null[]"
            parts.append(self.text(C["SHARE"]))
        moving = "const REAL pose[7], const REAL twist[6], "
        inverse = f"{moving}const REAL acceleration[6],\n    const REAL side[], {effort}"
        direct = f"{moving}const REAL effort[], const REAL side[],\n    REAL acceleration[6]"
        arguments, call = f"{plain}const REAL start[], REAL actuated[]", "pose, side, start_of_mode[mode], actuated"
        alone = () if r.iterated else (("drives", arguments, call, "M", r.inverse(drives=True)),)
        for name, arguments, call, n, function in (
            ("jacobian", plain + "REAL jacobian[]", "pose, side, jacobian", "6 * M", r.jacobian()),
            ("inverse_dynamics", inverse, "pose, twist, acceleration, side, effort", "M", r.inverse_dynamics(True)),
            ("direct_dynamics", direct, "pose, twist, effort, side, acceleration", "6", r.direct_dynamics()),
            ("gravity", plain + effort, "pose, side, effort", "M", r.inverse_dynamics(False)),
            ("margins", plain + "REAL margins[]", "pose, side, margins", "2", r.margins()),
            *alone,
        ):
            if r.iterated:
                arguments = arguments.replace("const REAL side[],", "const REAL side[], const REAL q[],")
            parts.append(self.static(f"{name}_at", arguments, function))
            parts.append(self._public(name, call, n))
        parts += [self.text(C["DRIVES_NEAR"] + self._from_home("drives"))] if r.iterated else []
        parts.append(forward)
        used = {name for name in CHOICES if any(f"{name}(" in text for text in parts)}
        texts = [f"static REAL {name}(REAL a, REAL b)\n{{\n    return {CHOICES[name]};\n}}\n" for name in sorted(used)]
        if any("angle_at(" in text for text in parts):
            texts.append(self.text(arc_tangent_in_c(self.scalar.number, 5 if self.single else 13)))
        return "\n".join([*parts[:2], *map(self.scalar.typed, texts), *parts[2:]])

    def _names(self, table: str, names: Sequence[str]) -> str:
        texts = wrapped(", ".join(map(quoted, names)), "    ")
        return f"const char *const {self.name}_{table}[{len(names)}] = {{\n{texts}\n}};\n"

    def _limits(self) -> str:
        k, engine = self.kinematics, self.engine
        lower, upper = np.full(len(k.joint_names), -np.inf), np.full(len(k.joint_names), np.inf)
        for rows in (engine.tables.bodies[2:], engine.task.chain[1:]):
            lower[rows["column"]], upper[rows["column"]] = rows["lower"], rows["upper"]
        rates = [k.mechanism.joint_named[name].limits.velocity for name in k.actuated_names]
        real, table = "const REAL", self.scalar.table
        labels = ", ".join(f'"{k.mode_label(mode)}"' for mode in range(self.n_modes))
        tables = [
            f"const char *const {self.name}_mode_labels[{self.n_modes}] = {{\n{wrapped(labels, '    ')}\n}};\n",
            table(real, f"{self.name}_home", k.home),
            table("const int", f"{self.name}_actuated_joint", engine.actuated_column),
            table(real, f"{self.name}_lower", lower),
            table(real, f"{self.name}_upper", upper),
            table(real, f"{self.name}_largest_rate", rates),
            table(real, f"{self.name}_largest_effort", k.mechanism.largest_effort),
            "" if self.robot.turning else table(real, f"{self.name}_motions", self.robot.subspace.ravel()),
            self._names("joint_names", k.joint_names),
            self._names("drive_names", k.actuated_names),
        ]
        lower, upper = engine.ranges.limits
        tables += [
            "/* The same ranges with room for rounding, and which joints may be a turn further. */\n"
            + table("static " + real, "joint_lower", lower),
            table("static " + real, "joint_upper", upper),
            table("static const int", "joint_wraps", engine.ranges.turned_freely),
            self._starts(),
        ]
        if self.robot.one_way:
            least, most = k.mechanism.effort_range
            tables += [table("static " + real, "effort_lower", least)]
            tables += [table("static " + real, "effort_upper", most)]
        return self.scalar.typed("\n".join(filter(None, tables)))

    @cached_property
    def torn(self) -> list[bool]:
        """Which working modes tear a gear that loops imply in others, beside home."""
        if not self.engine.gears:
            return [False] * self.n_modes
        closes = (Status.CONVERGED, Status.JOINT_LIMIT)
        return [self.kinematics.inverse(self.robot.pose, mode=k).status not in closes for k in range(self.n_modes)]

    def _words_of_iteration(self, iterated: int) -> dict[str, str]:
        """Bounds and sizes of the templates, of a robot with so many iterated blocks."""
        size = float(self.engine.tables.blocks["size"][0])
        exact = self.engine.positions.exact / self.engine.size if self.engine.divided else CLOSED
        return {
            "OFF_SPACE": "into_space(side, q, at)" if self.robot.moves_into_space else "PKM_NOT_CONNECTED",
            "ENOUGH": "HUGE_VAL" if self.robot.turning else "CLOSED",
            "ROUNDING": self.scalar.number(1e-6 if self.single else ROUNDING),
            "ROUNDED": self.scalar.number(1e-4 if self.single else ROUNDED),
            "AT_REST": self.scalar.number(1e-5 if self.single else AT_REST),
            "CLOSED": self.scalar.number(1e-4 if self.single else CLOSED),
            "EXACT": self.scalar.number(1e-4 if self.single else exact),
            "NEXT": self.scalar.number(NEXT),
            "LONGEST": self.scalar.number(STEP),
            "SHORT": self.scalar.number(SHORT * STEP),
            "SHORT_PART": self.scalar.number(SHORTEST),
            "CLOSED_PART": self.scalar.number(engine.SHORTEST / (engine.SHORTER * STEP)),
            "ROUND_PART": self.scalar.number(engine.ROUND / (engine.SHORTER * STEP)),
            "JUMP": self.scalar.number(JUMP),
            "FAR": self.scalar.number(FAR),
            "QUARTER": self.scalar.number(CONTRACTION),
            "NEWTONS": str(iterated),
            "DIVIDED": str(int(self.engine.divided)),
            "SIZE": self.scalar.number(size),
            "TWO": self.scalar.number(2.0),
        }

    @property
    def starts_by_joint(self) -> bool:
        """Whether a joint at home is found by bits of the working mode: modes are too many for a table."""
        return self.robot.iterated and not self.robot.turning and self.n_modes > MANY

    @property
    def _curve(self) -> CouplerCurve | None:
        return self.engine.from_home.curve(self.engine.home_joints) if self.robot.turning else None

    def _reach(self) -> list[str]:
        """The function that leads the limbs from home to a pose, with tables."""
        k, size, curve = self.kinematics, self.engine.size, self._curve
        if curve is None:
            start = START_BY_JOINT if self.starts_by_joint else "start_of_mode[mode][k]"
            begin = C["BEGIN"].replace("START", start)
            return [C["ALONG"], begin, C["TURNING_REACH" if self.robot.turning else "FOLLOW"]]
        apart: list[NDArray[Any]] = []
        for pose in curve.poses:  # which has most of them twice, as it goes to both sides
            if not apart or pose_distance(pose, np.array(apart), size).min() > BETWEEN * size:
                apart.append(pose)
        there = k.inverse(np.array(apart))
        known = closes(there.status)
        tables = [("pose_on_way", 7, there.pose[known]), ("joints_on_way", len(k.joint_names), there.joints[known])]
        text = C["CURVE_REACH"].replace("POINTS", str(int(known.sum())))
        return [*(self.scalar.rows(f"{name}[{len(rows)}][{width}]", rows) for name, width, rows in tables), text]

    def _starts(self) -> str:
        rows = np.array([self.kinematics.modes.start(mode) for mode in range(self.n_modes)])
        if not self.starts_by_joint:
            return (
                "/* Joints at home in each working mode: turning joints take the turn nearest to these. */\n"
                + self.scalar.rows(f"start_of_mode[{rows.shape[0]}][{rows.shape[1]}]", rows)
            )
        lowest, values = zip(*map(_by_bits, rows.T), strict=True)
        table, counts = self.scalar.table, [len(some) for some in values]
        return (
            "/* Joints at home: those of each joint, by some bits of the working mode. */\n"
            + table("static const REAL", "start_of_joint", np.concatenate(values))
            + table("static const int", "first_start", np.cumsum([0, *counts[:-1]]))
            + table("static const int", "lowest_bit", lowest)
            + table("static const int", "bits_of_mode", [count - 1 for count in counts])
        )

    def _torn(self) -> str:
        """The helpers; working modes that tear a gear are refused."""
        if not any(self.torn):
            return self.text(C["HELPERS"].replace("TORN", ""))
        table = self.scalar.table("static const int", "tears_a_gear", self.torn)
        refused = "    if (tears_a_gear[mode])\n        return PKM_UNREACHABLE;\n"
        return table + "\n" + self.text(C["HELPERS"].replace("TORN", refused))

    def static(self, name: str, arguments: str, function: RecordedFunction) -> str:
        """C of a recorded function."""
        body = self._body(name, arguments, function)
        ordered = "IN_ORDER " if self.counts[name].total() > LONG else ""
        return f"static {ordered}int {name}({self.scalar.typed(arguments)})\n{{\n{body}\n}}\n"

    def _body(self, name: str, arguments: str, function: RecordedFunction) -> str:
        code = function.code(self.single)
        self.counts[name] = code.counts
        text = "\n".join(code.lines(self.robot.titles)).strip("\n")
        text = re.sub(r"\batan2f?\(", "angle_at(", text)
        unused = [
            a for a in re.findall(r"(\w+)(?:\[\d*\])?(?:,|$)", arguments) if not re.search(rf"(?<!->)\b{a}\b", text)
        ]
        text = "".join(f"    (void){a};\n" for a in unused) + text
        return f"{text}\n    return {'PKM_OK' if function.regular else 'PKM_SINGULAR'};"

    def _public(self, name: str, call: str, n: str) -> str:
        arguments, out = dict(PROTOTYPES)[name], call.rsplit(", ", 1)[1]
        shared, null = "", ""
        if name in ("inverse_dynamics", "gravity") and self.robot.one_way:
            null, call = ", null[M * FREE]", f"{call}, null"
            shared = "    if (status == PKM_OK)\n        status = share(null, effort);\n"
        if name == "drives":
            shared = "    for (int a = 0; a < M && status == PKM_OK; a++)\n"
            shared += "        within(&actuated[a], NAME_actuated_joint[a]);\n"
        head, solve, alone = self.header.head(name, arguments), "sides_of(mode, side)", ""
        again = C["MOVED"].format(f"{name}_at({call.replace('pose', 'at')})") if self.robot.moves_into_space else ""
        if self.robot.iterated:
            solve = "take_along(pose, mode, side, limbs)"
            call = call.replace("pose", "limbs->pose").replace("side", "side, limbs->joints")
            alone = self._from_home(name)
            head, again = self.header.head(f"{name}_near", f"{arguments}, {LIMBS}"), ""
        return self.text(
            f"{head}\n{{\n    REAL side[SIDES]{', at[7]' if again else ''}{null};\n    int status = {solve};\n"
            f"    if (status == PKM_OK)\n        status = {name}_at({call});\n"
            f"{again}{shared}    return finish(status, {out}, {n});\n}}\n{alone}"
        )

    def _inverse(self) -> str:
        again = C["MOVED"].format("positions(at, side, start_of_mode[mode], q)") if self.robot.moves_into_space else ""
        return C["INVERSE"].replace("AGAIN", again).replace("AT;", ", at[7];" if again else ";")

    def _from_home(self, name: str) -> str:
        """A function without the limbs of its twin: they start from home."""
        arguments = dict(PROTOTYPES)[name]
        given = ", ".join(re.findall(r"(\w+)(?:\[\d*\])?(?:,|$)", arguments))
        return (
            f"\n{self.header.head(name, arguments)}\n{{\n    struct NAME_limbs limbs = {{0}};\n"
            f"    return NAME_{name}_near({given}, &limbs);\n}}\n"
        )

    def _forward(self) -> str:
        robot = self.robot
        step = robot.newton_step()
        if not step.regular:
            return self.text(C["NO_FORWARD"])
        places = LimbPlaces(self.engine.tables, robot.m, len(self.kinematics.joint_names))
        q = "const REAL q[], " if robot.iterated else ""
        arguments = f"const REAL pose[7], const REAL side[], {q}const REAL goal[], REAL left[]"
        to = arguments.replace(q, f"{q}REAL next[], ") if q else arguments
        text = (
            C["FORWARD"]
            .replace("LIMB_ERRORS", self._body("limb_errors", arguments, robot.limb_errors()))
            .replace("NEWTON_STEP", self._body("newton_step", to + ", struct step *step", step))
        )
        text = self._with_quick_step(text, to + ", struct step *step")
        by_rates, rates = robot.turning or robot.m > robot.n, 6 if robot.turning else robot.m
        text = text.replace("TRACK\n", self._track_graph() if robot.turning else C["TRACK"])
        for word, c in (OPEN_STEPS if robot.turning or robot.iterated else CLOSED_STEPS).items():
            text = text.replace(word, c)
        for word, c in TURNING_STEPS.items():
            text = text.replace(word, c if robot.turning else "")
        text = self._along(text)
        at = text.index("/* Newton's method from `pose`")
        if robot.iterated:
            text += "\n" + C["FORWARD_NEAR"]
            tried = self.scalar.table("static const int", "tried_mode", showing(self.kinematics.modes))
            text = text[:at] + tried + "\n" + C["NEAREST"] + "\n" + text[at:]
        text = text[:at] + (C["SAME_SIDE_BY_RATES"] if by_rates else C["SAME_SIDE"]) + "\n" + text[at:]
        constants = {
            "COMBINATIONS": str(len(showing(self.kinematics.modes)) if robot.iterated else 2**places.most),
            "RATES": str(rates * robot.n if by_rates else 1),
            "ROWS": str(rates),
            "LIMBS": str(len(self.engine.tables.limbs)),
            "LENGTH": self.scalar.number(self.engine.characteristic_length),
            "QUARTER": self.scalar.number(0.25),
            "STRAIGHT": self.scalar.number(STRAIGHT),
            "NEARLY": self.scalar.number(0.9),
            "SIXTH": self.scalar.number(1.0 / 6.0),
            "ROUNDED": self.scalar.number(1e-4 if self.single else 1e-9),
            "EXACT": self.scalar.number(1e-6 if self.single else 1e-13),
            "SHORTEST": self.scalar.number(1e-4),
            "TENTH": self.scalar.number(0.1),
            "CLEARLY": self.scalar.number(CLEARLY),
            "BEYOND": self.scalar.number(BEYOND),
        }
        text = text.replace("NEAREST_SIDE", "" if robot.iterated else C["NEAREST_SIDE"])
        hidden = max(places.branches) > 1  # branches that drives do not show
        text = text.replace("OUT_OF_RANGES", C["OUT_OF_RANGES"] if hidden else "")
        text = text.replace("OF_RANGES", ", q[JOINTS], out[LIMBS] = {ZERO}" if hidden else "")
        for name, value in constants.items():
            text = re.sub(rf"\b{name}\b", value, text)
        return self.text("\n".join([*forward_tables(self.robot, self.scalar, places), text]))

    def _with_quick_step(self, text: str, arguments: str) -> str:
        """The forward kinematics with a quick step before the one that serves every pose, where it is quicker."""
        quick = None if self.robot.turning else self.robot.newton_step(quick=True)
        body = self._body("quick_step", arguments, quick) if quick and quick.regular else ""
        if not body or self.counts["quick_step"].total() > WORTH * self.counts["newton_step"].total():
            return text.replace("QUICK_STEP", "")
        given = ", ".join(re.findall(r"(\w+)(?:\[\d*\])?(?:,|$)", arguments))
        both = C["QUICK_STEP"].replace("ARGUMENTS", arguments).replace("GIVEN", given).replace("BODY", body)
        return text.replace("static int newton_step(", "static int sure_step(").replace("QUICK_STEP", both)

    def _track_graph(self) -> str:
        """The way on all joints, where the motion space turns."""
        robot, bodies = self.robot, self.engine.tables.bodies
        turns = [*(bodies["prismatic"][i] == 0 for i in robot.passive), 0, 0, 0, 1, 1, 1]
        tables = [
            self.scalar.table("static const int", "passive", bodies["column"][robot.passive]),
            self.scalar.table("static const int", "graph_turns", turns),
        ]
        text = C["TRACK_GRAPH"].replace("GRAPH\n", self._body("graph", "pose, q, gap, J", robot.graph()) + "\n", 1)
        words = {
            "EQUATIONS": str(int(self.engine.tables.closures["rows"].sum())),
            "UNKNOWNS": str(len(turns)),
            "PASSIVE": str(len(robot.passive)),
            "IDLE": str(self.kinematics.mechanism.mobility.idle),
            "DEPENDENT": self.scalar.number(1e-5 if self.single else DEPENDENT),
            "SINGULAR_BELOW": f"{self.name.upper()}_SINGULAR_BELOW",
            "CLOSED": self.scalar.number(1e-4 if self.single else CLOSED),
            "SIZE": self.scalar.number(float(self.engine.size)),
        }
        for word, value in words.items():
            text = re.sub(rf"\b{word}\b", value, text)
        known = robot.iterated and self._curve is None  # to `_reach`
        return "\n".join([*tables, *([] if known else [C["ALONG"]]), text])

    def _iteration(self) -> list[str]:
        robot, bodies, blocks = self.robot, self.engine.tables.bodies, self.engine.tables.blocks
        size = float(blocks["size"][0])
        iterated = [b for b in range(len(blocks)) if blocks["solver"][b] != CLOSED_FORM]
        turns, units = np.zeros(len(self.kinematics.joint_names)), np.ones(len(self.kinematics.joint_names))
        for b in iterated:
            for i in range(blocks["start"][b], blocks["start"][b] + blocks["count"][b]):
                slides = bodies["prismatic"][i] == 1
                turns[bodies["column"][i]], units[bodies["column"][i]] = not slides, size if slides else 1.0
        columns = [max(int(c), 0) for c in bodies["column"]]
        parts = [
            self.scalar.table("static const int", "column", columns),
            self.scalar.table("static const REAL", "unit_of_joint", units),
            *([self.scalar.table("static const int", "newton_turns", turns)] if self._curve is None else []),
            C["NEWTON"],
        ]
        lines = []
        for b, block in enumerate(blocks):
            arguments = "const REAL pose[7], const REAL side[], REAL q[]"
            if b in iterated:
                arguments = (
                    "const REAL pose[7], const REAL side[], const REAL q[], REAL step[], REAL *gap, REAL *turned"
                )
                call = f"newton(block_{b}, pose, side, q, {block['start']}, {block['count']}, found"
                lines.append(
                    f"    if ({call}, &turned[{iterated.index(b)}]) != PKM_OK)\n        return PKM_NOT_CONNECTED;"
                )
            elif robot.turning:
                arguments += ", REAL *gap"
                lines.append(f"    if (block_{b}(pose, side, q, &gap) != PKM_OK)\n        return PKM_UNREACHABLE;")
                lines.append("    found[1] = larger(found[1], gap);")
            else:
                lines.append(f"    if (block_{b}(pose, side, q) != PKM_OK)\n        return PKM_UNREACHABLE;")
            parts.append(self.static(f"block_{b}", arguments, robot.block(b)))
        body = "\n".join(["    REAL gap;", *lines] if any("&gap" in line for line in lines) else lines)
        parts.append(
            "/* The joints of all limbs at a pose, beginning from q. */\nstatic int limbs(const REAL pose[7],"
            " const REAL side[], REAL q[], REAL found[2], REAL turned[])\n{\n" + body + "\n    return PKM_OK;\n}\n"
        )
        arguments = "const REAL pose[7], const REAL side[], const REAL from[], REAL q[], REAL found[2]"
        parts += [self.static("carry", arguments, robot.carry()), C["WAY_TO"]]
        parts += self._reach()
        parts += [self._into_space(), C["TAKE_ALONG"].replace("FROM_THERE", "" if robot.turning else C["FROM_THERE"])]
        for word, value in self._words_of_iteration(len(iterated)).items():
            parts = [re.sub(rf"\b{word}\b", value, part) for part in parts]
        return [self.text(part) for part in parts]

    def _into_space(self) -> str:
        """The function that moves such a pose, with a step of it, or nothing."""
        if not self.robot.moves_into_space:
            return ""
        iterated, size = self.robot.iterated, self.engine.size
        given = "const REAL pose[7], const REAL side[], const REAL q[], REAL next[7], REAL *open"
        given = given if iterated else given.replace("const REAL q[], ", "")
        step = self.static("closing", given, self.robot.closing())
        words = {
            "SOLVE_AGAIN": C["SOLVE_AGAIN"] if iterated else "",
            "STAYS_OPEN": stays_open(self.robot),
            "AJAR": self.scalar.number(AJAR / CLOSED),
            "TURN": self.scalar.number(4.0 * size * size),
            "INSIDE": self.scalar.number(INSIDE),
            "SIZE": self.scalar.number(size),
        }
        text = self._along(C["INTO_SPACE"])
        for word, value in words.items():
            text = text.replace(word, value) if word == "SOLVE_AGAIN" else re.sub(rf"\b{word}\b", value, text)
        return f"{step}\n{self.text(text)}"

    def _along(self, text: str) -> str:
        for word, with_joints, without in JOINTS_ALONG:
            text = text.replace(word, with_joints if self.robot.iterated else without)
        return text if self.robot.moves_into_space else text.replace(MOVED_START, "")

    def text(self, template: str) -> str:
        """C of a template, whose words in capitals are replaced."""
        words = {
            "NAME": self.name,
            "FREE": str(self.robot.m - self.robot.n),
            "M": str(self.robot.m),
            "N": str(self.robot.n),
            "SIDES": str(max(len(self.robot.sides), 1)),
            "JOINTS": str(len(self.kinematics.joint_names)),
            "PLACES": str(len(self.kinematics.joint_names) * (3 if self.robot.turns else 1)),
            "MODES": str(self.n_modes),
            "TAU": self.scalar.number(2.0 * np.pi),
            "ZERO": self.scalar.number(0.0),
            "HALF": self.scalar.number(0.5),
            "ONE": self.scalar.number(1.0),
            "TINY": self.scalar.number(1e-30),
            "BROKEN": self.scalar.number(1e-6 if self.single else 1e-12),
            "SQRT": "sqrtf" if self.single else "sqrt",
            "NEWTONS": str(int((self.engine.tables.blocks["solver"] != CLOSED_FORM).sum())),
            **{name.upper(): name + ("f" if self.single else "") for name in ("sin", "cos", "atan2", "ceil", "floor")},
            "FABS": "fabsf" if self.single else "fabs",
            "HUGE_VAL": "HUGE_VALF" if self.single else "HUGE_VAL",
        }
        template = template.replace("NAME_", f"{self.name}_")
        for word, value in words.items():
            template = re.sub(rf"\b{word}\b", value, template)
        return self.scalar.typed(template)


def _by_bits(column: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """The lowest bit of the working mode that a joint's start (n_modes,) follows, and the starts from there on."""
    modes = np.arange(len(column))
    bits = [b for b in range(len(column).bit_length() - 1) if (column != column[modes ^ (1 << b)]).any()]
    low, width = (bits[0], bits[-1] - bits[0] + 1) if bits else (0, 0)
    return low, column[np.arange(1 << width) << low]
