# SPDX-License-Identifier: Apache-2.0
"""The C++17 header of a robot in C: its functions with spans of fixed lengths, and a status that is not ignored."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

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
