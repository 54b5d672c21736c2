# SPDX-License-Identifier: Apache-2.0
"""What the limbs say of many poses at once: by straight-line code where a robot has it, else by kernels."""
