# SPDX-License-Identifier: Apache-2.0
"""Compiled: the platform pose for given actuator positions, along paths that keep the mode."""
