# SPDX-License-Identifier: Apache-2.0
"""Compiled: interval arithmetic, jets of intervals, and the interpreter that runs a recorded program on them."""
