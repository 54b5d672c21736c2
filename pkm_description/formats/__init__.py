# SPDX-License-Identifier: Apache-2.0
"""Files of other tools: SDF, USD, MJCF, and URDF with loops in others' words; here, how they are told from ours."""

FORMATS = ("mujoco", "sdf")  # root elements of other formats
USD = (".usd", ".usda", ".usdc", ".usdz")  # files, of which some are no text
USD_HEAD = "#usda"
YAML = (".yaml", ".yml")  # files of loops beside a URDF file
DOUBT = "doubt: "  # begins a sentence about a loop that is said where the robot turns out to be none
PARTS = ("platform", "base", "actuated")  # what a user may name of a file of others
