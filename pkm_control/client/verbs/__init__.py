# SPDX-License-Identifier: Apache-2.0
"""The commands for a robot that runs over ROS: `pkm move`, `pkm stop`, `pkm state`, ..."""
