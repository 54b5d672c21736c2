# SPDX-License-Identifier: Apache-2.0
"""The client of a robot that runs over ROS."""
