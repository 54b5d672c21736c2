# SPDX-License-Identifier: Apache-2.0
"""Published formulations of the dynamics, each written as its paper writes it. What two of them say of one robot is the
same to rounding, and the same as what the kernels say: they are each other's test, and there to be read."""
