# SPDX-License-Identifier: Apache-2.0
"""What other tools read and write: SDF, USD, and URDF with loops in others' words."""
