# SPDX-License-Identifier: Apache-2.0
"""Positions and rates at a given platform pose: the solver, working modes, motion space, singularities."""
