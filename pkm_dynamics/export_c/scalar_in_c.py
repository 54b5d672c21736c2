# SPDX-License-Identifier: Apache-2.0
"""Numbers and tables as C, of doubles or of floats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Scalar:
    """How numbers are written; `single` makes floats of doubles."""

    def __init__(self, single: bool) -> None:
        self.single, self.real = single, "float" if single else "double"

    def number(self, x: float) -> str:
        """A number in C."""
        if not np.isfinite(x):
            return ("-" if x < 0 else "") + "INFINITY"
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
