# SPDX-License-Identifier: Apache-2.0
"""Trajectories, controllers, simulated hardware and the loops that run them; `nodes` has the ROS nodes over them."""
