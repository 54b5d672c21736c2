# SPDX-License-Identifier: Apache-2.0
"""Compiled dynamics of the whole graph, with the actuators as coordinates."""
