# SPDX-License-Identifier: Apache-2.0
"""Workspaces: a grid finds them, borders are refined to a tolerance, and border points say what stops the robot."""
