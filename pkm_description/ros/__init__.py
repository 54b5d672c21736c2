# SPDX-License-Identifier: Apache-2.0
"""The ROS side that all nodes share: topics and their QoS, messages to arrays and back, the node that owns a robot."""
