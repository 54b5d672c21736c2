# SPDX-License-Identifier: Apache-2.0
"""Requests to a running controller, without ROS: motions are checked and admitted, an operator is answered."""
