# SPDX-License-Identifier: Apache-2.0
"""Compiled dynamics of the whole graph, whose coordinates are the actuators."""
