# SPDX-License-Identifier: Apache-2.0
"""Machines behind the contract of ros2_control's `SystemInterface` (`machine.py`): simulated and real."""
