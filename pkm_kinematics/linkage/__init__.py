# SPDX-License-Identifier: Apache-2.0
"""Clusters of loops solved for some of their joints: of a leg, an ankle, a gripper, by code recorded for it."""
