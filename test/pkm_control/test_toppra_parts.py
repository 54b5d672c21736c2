# SPDX-License-Identifier: Apache-2.0
"""toppra without pyplot: planning does not import it, and whoever plots gets it all the same."""

from __future__ import annotations

import subprocess
import sys


def said_by(program: str) -> str:
    """What a program prints in a Python of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_planning_imports_no_matplotlib_and_leaves_no_stand_in() -> None:
    program = "import sys, pkm_control.motion.planning; print([n for n in sys.modules if n.startswith('matplotlib')])"
    assert said_by(program).strip() == "[]"


def test_what_toppra_plots_with_is_pyplot_when_it_is_used() -> None:
    program = (
        "import pkm_control.motion.planning, toppra.algorithm.algorithm as a; s = a.plt.subplot;"
        "import matplotlib.pyplot as plt; print(s is plt.subplot)"
    )
    assert said_by(program).strip() == "True"


def test_a_pyplot_that_is_there_stays() -> None:
    program = (
        "import matplotlib.pyplot as plt, pkm_control.motion.planning, toppra.algorithm.algorithm as a;"
        "print(a.plt is plt)"
    )
    assert said_by(program).strip() == "True"
