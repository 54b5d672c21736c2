# SPDX-License-Identifier: Apache-2.0
"""Frames that move: where a conveyor is by its encoder, and motions of the platform that ride on it. No ROS."""
