# SPDX-License-Identifier: Apache-2.0
"""A watch on the machine that the controller manager of ros2_control drives."""
