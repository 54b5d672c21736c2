# SPDX-License-Identifier: Apache-2.0
"""Bringing a robot to life: which nodes run, with and without ROS launch, and the simulated run."""
