# SPDX-License-Identifier: Apache-2.0
"""Trajectories, controllers, simulated hardware and what runs them; the ROS nodes over them are in `nodes`."""
