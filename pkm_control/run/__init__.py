# SPDX-License-Identifier: Apache-2.0
"""Bringup: which nodes run, with and without ROS launch, and the simulated run."""
