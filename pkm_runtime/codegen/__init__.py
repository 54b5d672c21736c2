# SPDX-License-Identifier: Apache-2.0
"""Kernels as straight-line machine code, without loops, tables and branches.

A kernel is run once as plain Python on numbers that record each operation (`tape`). The recording is compiled
(`machine_code`); where other numbers would have taken another branch, the code says so and gives no result, and the
kernel itself is called instead.
"""

from pkm_runtime.codegen.machine_code import AVAILABLE, MachineCode
from pkm_runtime.codegen.tape import Recording, Tape, loose, trace

__all__ = ["AVAILABLE", "MachineCode", "Recording", "Tape", "loose", "trace"]
