# SPDX-License-Identifier: Apache-2.0
"""One robot's equations as straight-line machine code, without loops, tables and branches.

A kernel is run once as plain Python on numbers that record each operation (`tape`, `record_kernel`). The recording is
compiled (`machine_code`); where another motion would have taken another branch, the code says so and gives no result,
and the kernel itself is called instead.
"""

from pkm_kinematics.codegen.at_home import free_inputs, pose_inputs, rate_inputs
from pkm_kinematics.codegen.machine_code import AVAILABLE, MachineCode
from pkm_kinematics.codegen.record_kernel import loose, recorded
from pkm_kinematics.codegen.tape import Recording, Tape

__all__ = [
    "AVAILABLE",
    "MachineCode",
    "Recording",
    "Tape",
    "free_inputs",
    "loose",
    "pose_inputs",
    "rate_inputs",
    "recorded",
]
