# SPDX-License-Identifier: Apache-2.0
"""Compiled: velocities, accelerations, Jacobians and motion spaces."""
