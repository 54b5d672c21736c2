# SPDX-License-Identifier: Apache-2.0
"""Calls of machine code (see `pkm_kinematics.recordings_at_home`) from kernels."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

ANOTHER_BRANCH = -1  # what the code returns where a comparison comes out otherwise than it was recorded


@intrinsic
def call_code(typing: Any, address: Any, *arrays: Any) -> Any:
    """In a kernel: call machine code at an address with contiguous float64 arrays, results last; its return value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType().as_pointer()
        kinds = signature.args[1]
        pointers = [
            context.make_array(kind)(context, builder, builder.extract_value(arguments[1], k)).data
            for k, kind in enumerate(kinds)
        ]
        function = ir.FunctionType(ir.IntType(64), [double] * len(pointers))
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), pointers)

    return types.int64(types.int64, types.StarArgTuple.from_types(arrays)), generate
