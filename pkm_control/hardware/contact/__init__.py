# SPDX-License-Identifier: Apache-2.0
"""What a platform may touch, and the force-torque sensor that feels it: solids, points of the tool, the force file."""
