# SPDX-License-Identifier: Apache-2.0
"""The headers of a robot in C and C++17 (spans of fixed lengths), and how numbers and tables are written in C."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pkm_description.load import digest_of
from pkm_dynamics.export_c.recorded_function import SINGULAR_SINGLE
from pkm_dynamics.export_c.recorded_robot import RecordedRobot
from pkm_kinematics.kernels.regularity import SINGULAR_BELOW
from pkm_runtime.codegen.c_code import harmless
from pkm_runtime.optional import release

# Of headers of C, of targets that CMake has itself, and of what the code has itself: no names of a robot there
TAKEN = re.compile(
    "all|assert|clean|complex|ctype|effort|errno|features|fenv|float|help|install|inttypes|iso646|joint|limits|locale|"
    "math|package|setjmp|signal|stdarg|stdbool|stddef|stdint|stdio|stdlib|string|test|tgmath|time|wchar|wctype"
)


class Scalar:
    """How numbers are written; `single` makes floats of doubles."""

    def __init__(self, single: bool) -> None:
        self.single, self.real = single, "float" if single else "double"

    def number(self, x: float) -> str:
        """A number in C."""
        if not np.isfinite(x):
            return ("-" if x < 0 else "") + ("HUGE_VALF" if self.single else "HUGE_VAL")
        text = repr(float(np.float32(x)) if self.single else float(x))
        return f"{text}f" if self.single else text

    def numbers(self, values: Iterable[float], indent: str = "    ") -> str:
        """Numbers of an array in braces, several on a line."""
        lines, line = [], indent
        for text in (self.number(x) + "," for x in values):
            if len(line) + len(text) > 114:
                lines.append(line.rstrip())
                line = indent
            line += text + " "
        return "\n".join([*lines, line.rstrip().rstrip(",")])

    def table(self, kind: str, name: str, values: Sequence[float] | NDArray[Any]) -> str:
        """A constant array of one row of numbers."""
        texts = self.numbers(values) if "int" not in kind else "    " + ", ".join(str(int(v)) for v in values)
        return f"{kind} {name}[{len(values)}] = {{\n{texts}\n}};\n"

    def rows(self, name: str, rows: Iterable[NDArray[Any]]) -> str:
        """A constant table of several rows."""
        text = ",\n".join("    {\n" + self.numbers(row, " " * 8) + "\n    }" for row in rows)
        return f"static const REAL {name} = {{\n{text}\n}};\n"

    def typed(self, text: str) -> str:
        """A text whose REAL is the type."""
        return re.sub(r"\bREAL\b", self.real, text)


ARGUMENT = re.compile(r"(const )?(REAL|int|struct NAME_limbs) \*?(\w+)(?:\[(\d*)\])?")
LENGTHS = {"actuated": "n_actuated", "effort": "n_actuated", "joints": "n_joints", "jacobian": "6 * n_actuated"}


def cpp_header(
    name: str, real: str, prototypes: Iterable[tuple[str, str]], statuses: Sequence[tuple[str, int, str]]
) -> str:
    """Text of the header, for functions and statuses as in the C header."""
    prototypes = list(prototypes)
    codes = "\n".join(f"    {code.removeprefix('PKM_').lower()} = {code}," for code, _, _ in statuses)
    functions = "".join(_function(function, arguments) for function, arguments in prototypes)
    limbs = "using limbs = struct ::NAME_limbs;\n" if any("_near" in function for function, _ in prototypes) else ""
    text = HEADER.replace("CODES", codes).replace("FUNCTIONS", functions).replace("LIMBS", limbs)
    return re.sub(r"\bREAL\b", real, text.replace("NAME", name).replace("UPPER", name.upper()))


def _function(function: str, arguments: str) -> str:
    """A function, and where joints are asked for one without."""
    given, passed, without = [], [], []
    for const, kind, name, length in ARGUMENT.findall(arguments):
        if kind == "REAL":
            given.append(f"pkm::span<{const}real,\0{(length or LENGTHS[name]).replace(' ', chr(0))}> {name}")
            passed.append(f"{name}.data()")
        else:
            given.append(f"int {name}" if kind == "int" else "limbs &all")
            passed.append(name if kind == "int" else "&all")
        without += [] if name == "joints" else [given[-1]]
    texts = [_body(function, given, passed)]
    if len(without) < len(given):
        texts.append(_body(function, without, ["nullptr" if one == "joints.data()" else one for one in passed]))
    return "".join(texts)


def _body(function: str, given: Sequence[str], passed: Sequence[str]) -> str:
    name = function.removesuffix("_near")
    head = wrapped(f"inline pkm::status {name}({', '.join(given)}) noexcept", "")
    call = wrapped(f"return static_cast<pkm::status>(::NAME_{function}({', '.join(passed)}));", "    ")
    return f"\n{head}\n{{\n{call}\n}}\n"


def wrapped(text: str, indent: str) -> str:
    """Code on lines of a file that end with a comma, the first with an indent, others with one more."""
    # what stays on a line has zeros for spaces
    whole = re.sub(r"(?<!,) ", "\0", text)
    lines = textwrap.fill(whole, 116, initial_indent=indent, subsequent_indent=f"{indent}    ", break_on_hyphens=False)
    return lines.replace("\0", " ")


HEADER = """\
/* The functions of NAME.h for C++17, where lengths of arrays are checked; see there for what they do. */
#ifndef UPPER_HPP
#define UPPER_HPP

#include "NAME.h"

#include <array>
#include <cstddef>
#include <type_traits>

#ifndef PKM_SPAN
#define PKM_SPAN
namespace pkm {

/* N numbers that are somewhere else: in an array, in a std::array, or, if said so, behind a pointer. */
template <class T, std::size_t N>
class span {
    template <class U>
    using from = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>;

public:
    explicit constexpr span(T *first) noexcept : first_(first) {}
    template <class U, class = from<U>>
    constexpr span(U (&numbers)[N]) noexcept : first_(numbers) {}
    template <class U, class = from<U>>
    constexpr span(std::array<U, N> &numbers) noexcept : first_(numbers.data()) {}
    template <class U, class = from<const U>>
    constexpr span(const std::array<U, N> &numbers) noexcept : first_(numbers.data()) {}
    template <class U, class = from<U>>
    constexpr span(span<U, N> numbers) noexcept : first_(numbers.data()) {}

    constexpr T *data() const noexcept { return first_; }
    static constexpr std::size_t size() noexcept { return N; }
    constexpr T &operator[](std::size_t k) const noexcept { return first_[k]; }
    constexpr T *begin() const noexcept { return first_; }
    constexpr T *end() const noexcept { return first_ + N; }

private:
    T *first_;
};

enum class [[nodiscard]] status : int {
CODES
};

}
#endif

namespace pkm_NAME {

using real = REAL;
LIMBSinline constexpr std::size_t n_joints = UPPER_N_JOINTS, n_actuated = UPPER_N_ACTUATED;
inline constexpr int n_modes = UPPER_N_MODES;
FUNCTIONS
}

#endif
"""


STATUSES = (
    ("PKM_OK", 0, "solved"),
    ("PKM_UNREACHABLE", 1, "no limbs reach the pose in this mode, or one would be exactly stretched or folded"),
    ("PKM_JOINT_LIMIT", 2, "solved, but a joint is outside its range"),
    ("PKM_SINGULAR", 3, "singular: rates, efforts or the platform's way are not determined"),
    ("PKM_DIVERGED", 4, "drives that only pull, or only push, do not come to share the load"),
    ("PKM_INVALID_INPUT", 5, "not finite, no unit quaternion, outside the motion space, or numbers overflow"),
    ("PKM_EFFORT_LIMIT", 7, "no efforts within the bounds of drives that only pull, or only push"),
    (
        "PKM_NOT_CONNECTED",
        8,
        "limbs solved by iteration do not follow from home, or limbs' constraints are nearly dependent",
    ),
    ("PKM_NO_SUCH_MODE", 10, "no working mode of this number"),
)
PROTOTYPES = (
    ("inverse", "const REAL pose[7], int mode, REAL actuated[], REAL joints[]"),
    ("forward", "const REAL actuated[], const REAL near[7], REAL pose[7]"),
    ("jacobian", "const REAL pose[7], int mode, REAL jacobian[]"),
    (
        "inverse_dynamics",
        "const REAL pose[7], const REAL twist[6], const REAL acceleration[6], int mode, REAL effort[]",
    ),
    (
        "direct_dynamics",
        "const REAL pose[7], const REAL twist[6], const REAL effort[], int mode, REAL acceleration[6]",
    ),
    ("gravity", "const REAL pose[7], int mode, REAL effort[]"),
    ("margins", "const REAL pose[7], int mode, REAL margins[2]"),
    ("drives", "const REAL pose[7], int mode, REAL actuated[]"),
)
COMMENTS = {
    "inverse": "Positions of the actuated joints and, unless `joints` is NULL, of all joints in the order above.",
    "forward": (
        "The pose in which the platform arrives as the actuators go straight from where they are at `near`.\n"
        " * PKM_SINGULAR where the way ends at a singularity: of the drives, or of a limb, stretched or folded.\n"
        " * Joint limits are not judged: ask NAME_inverse at the pose."
    ),
    "jacobian": "Rates of the actuated joints per twist, row by row, DELTA_N_ACTUATED x 6.",
    "inverse_dynamics": "Efforts of the drives that make a motion, friction included where the description has it.",
    "direct_dynamics": "Acceleration of the platform under efforts of the drives.",
    "gravity": "Efforts of the drives that hold the robot at rest, without friction.",
    "margins": "Regularity of the worst limb, and reciprocal condition of the drives: 1 at best, 0 at a singularity.",
    "drives": "Positions of the actuated joints alone, in less time than NAME_inverse: no range is judged.",
}
TURNING = """\
 *
 * The platform has fewer degrees of freedom than six, and which twists are possible depends on the pose. Poses must be
 * possible ones, as the forward kinematics gives. Poses that miss these by less than INSIDE of the robot's size, and
 * rad, are MOVED; others are OPEN. Of a twist, what is impossible
 * must be rounding, and is taken off; an acceleration is moved to the nearest one that is possible at that twist,
 * rotations at the characteristic length; PKM_INVALID_INPUT where it misses that by more than 5 %. The Jacobian counts
 * for possible twists alone: what it gives to others has no meaning. Where the limbs' constraints are nearly dependent,
 * dynamics and margins are PKM_NOT_CONNECTED.
"""
LIMBS = "struct NAME_limbs *limbs"
FORWARD_ALONG = f"const REAL actuated[], REAL pose[7], {LIMBS}"
CARRIED_LIMBS = """
/* Limbs of this robot are solved by iteration. The functions above follow them from home in each call; those below
 * take them along from where they were in the call before, which is fastest where that is nearer than 0.015 of the
 * robot's size, and rad. `limbs` begins with all zero, and is the caller's own: one for each loop. Where they cannot be
 * taken along, or the mode is another, they come from home. NAME_forward_near continues the pose of `limbs`. */
#define DELTA_CARRIED_LIMBS 1
struct NAME_limbs {
    REAL pose[7];
    REAL joints[3 * DELTA_N_JOINTS]; /* positions, cosines, sines */
    int mode;
    int known;
};

"""


class Header:
    """Of one robot, whose functions begin with `name`."""

    def __init__(self, robot: RecordedRobot, name: str, scalar: Scalar) -> None:
        self.robot, self.name, self.scalar = robot, name, scalar
        self.digest = digest_of(robot.kinematics.mechanism)

    @property
    def near_prototypes(self) -> list[tuple[str, str]]:
        """Of robots whose limbs are iterated: functions that take them along."""
        given = [(f"{name}_near", f"{arguments}, {LIMBS}") for name, arguments in PROTOTYPES if self.robot.iterated]
        return [(n, FORWARD_ALONG if n == "forward_near" else arguments) for n, arguments in given]

    def head(self, name: str, arguments: str) -> str:
        """Beginning of a function of the header."""
        return wrapped(f"int NAME_{name}({arguments})".replace("NAME_", f"{self.name}_"), "")

    def _motions(self) -> str:
        upper = self.name.upper()
        if self.robot.turning:
            return f"#define {upper}_TURNING 1 /* its motion space turns with the pose */\n"
        declared = f"extern const {self.scalar.real} {self.name}_motions[6 * {upper}_N_FREEDOMS];"
        return f"{declared} /* 6 rows; its columns are a basis of the twists */\n"

    def _space(self) -> str:
        """The header's lines on poses and motions that are possible, where these turn with the pose."""
        if not self.robot.turning:
            return ""
        moved = "moved to the nearest one" if self.robot.moves_into_space else "taken as they are"
        text = TURNING.replace("INSIDE", f"{self.robot.inside:g}").replace("MOVED", moved)
        return text.replace("OPEN", stays_open(self.robot))

    def _prototypes(self) -> str:
        texts = "".join(f"\n/* {COMMENTS[name]} */\n{self.head(name, given)};\n" for name, given in PROTOTYPES)
        texts += CARRIED_LIMBS if self.robot.iterated else ""
        texts += "".join(f"{self.head(name, given)};\n" for name, given in self.near_prototypes)
        return self.scalar.typed(texts.replace("NAME_", f"{self.name}_").replace("DELTA", self.name.upper()))

    def text(self) -> str:
        """The whole file."""
        k, upper = self.robot.kinematics, self.name.upper()
        joints = k.joint_names
        units = ["rad" if turns else "m" for turns in self.robot.engine.joint_turning]
        named = [f"{harmless(n)} [{u}]" for n, u in zip(joints, units, strict=True)]
        order = "\n".join(f" *   {i:3d}  {n}" for i, n in enumerate(named))
        drives = "\n".join(f" *   {i:3d}  {harmless(n)}" for i, n in enumerate(k.actuated_names))
        constants = "".join(f"#define {name} {value} /* {what} */\n" for name, value, what in STATUSES)
        real = self.scalar.real
        singular = self.scalar.number(SINGULAR_SINGLE if self.scalar.single else SINGULAR_BELOW)
        return f"""\
/* Kinematics and dynamics of the robot {harmless(k.mechanism.name)}, made by pkm export {release()}.
 *
 * Every function returns a status, and writes NaN where there is no answer. Poses are x y z qx qy qz qw of the platform
 * in the base frame, twists and accelerations linear, then angular, at the platform's origin in base axes; SI units.
 * All functions are re-entrant, allocate nothing and use math.h alone. Joint limits are judged by {self.name}_inverse.
{self._space()} *
 * Joints, in their order:
{order}
 *
 * Actuated joints, in their order:
{drives}
 */
#ifndef {upper}_H
#define {upper}_H

#define {upper}_VERSION "{release()}"
#define {upper}_DIGEST "{self.digest}"
#define {upper}_CONTENTS ""
#define {upper}_N_JOINTS {len(joints)}
#define {upper}_N_ACTUATED {len(k.actuated_names)}
#define {upper}_N_MODES {k.n_modes}
#define {upper}_SINGULAR_BELOW {singular} /* margins */
#define {upper}_N_FREEDOMS {self.robot.n}

#ifndef PKM_OK
{constants}#endif

#ifdef __cplusplus
extern "C" {{
#endif

extern const char *const {self.name}_mode_labels[{upper}_N_MODES]; /* a sign for each limb with two branches */
extern const {real} {self.name}_home[7];
extern const char *const {self.name}_joint_names[{upper}_N_JOINTS];
extern const int {self.name}_actuated_joint[{upper}_N_ACTUATED]; /* which of the joints the drives are */
extern const {real} {self.name}_lower[{upper}_N_JOINTS]; /* ranges of the joints, infinite where there is no end */
extern const {real} {self.name}_upper[{upper}_N_JOINTS];
extern const {real} {self.name}_largest_rate[{upper}_N_ACTUATED]; /* of the actuated joints, rad/s or m/s */
extern const {real} {self.name}_largest_effort[{upper}_N_ACTUATED]; /* N m or N, both ways but for cables */
{self._motions()}extern const char *const {self.name}_drive_names[{upper}_N_ACTUATED]; /* of the actuated joints */
{self._prototypes()}
#ifdef __cplusplus
}}
#endif

#endif
"""


def stays_open(robot: RecordedRobot) -> str:
    """The status where limbs do not close."""
    return "PKM_NOT_CONNECTED" if robot.iterated else "PKM_UNREACHABLE"
