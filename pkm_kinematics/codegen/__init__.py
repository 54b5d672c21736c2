# SPDX-License-Identifier: Apache-2.0
"""One robot's equations recorded as straight-line machine code (see `pkm_runtime.codegen`)."""

from pkm_kinematics.codegen.at_home import free_inputs, pose_inputs, rate_inputs

__all__ = ["free_inputs", "pose_inputs", "rate_inputs"]
