# SPDX-License-Identifier: Apache-2.0
"""The ROS side shared by all nodes: topics and their QoS, conversion of messages, and the nodes' robot."""
