# SPDX-License-Identifier: Apache-2.0
"""Published formulations of the dynamics, each written as in its paper: they agree with each other and with the kernels
to rounding, test one another, and are there to be read.
"""
