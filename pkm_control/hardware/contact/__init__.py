# SPDX-License-Identifier: Apache-2.0
"""Contact of the platform: solids, points of the tool, the force-torque sensor, the force file."""
