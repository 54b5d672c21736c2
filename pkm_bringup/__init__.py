# SPDX-License-Identifier: Apache-2.0
"""Bringing a robot to life: its nodes, with and without ROS launch, the simulated run, and the command `pkm`."""
