# SPDX-License-Identifier: Apache-2.0
"""The client's way to a robot that runs over ROS."""
