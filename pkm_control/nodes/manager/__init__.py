# SPDX-License-Identifier: Apache-2.0
"""Beside the controller manager of ros2_control: what watches the machine that it drives."""
