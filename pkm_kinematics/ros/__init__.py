# SPDX-License-Identifier: Apache-2.0
"""The kinematics node and its services."""
