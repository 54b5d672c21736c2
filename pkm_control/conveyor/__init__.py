# SPDX-License-Identifier: Apache-2.0
"""Moving frames: a conveyor's travel by its encoder, and motions of the platform that ride on it. No ROS."""
