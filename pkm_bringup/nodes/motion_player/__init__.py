# SPDX-License-Identifier: Apache-2.0
"""The parts of the motion player: one run of a motion, and its record."""
