# SPDX-License-Identifier: Apache-2.0
"""Published formulations of the dynamics, each written as in its paper: they test the kernels and each other."""
