# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the kinematics: free functions on constant record tables and a scratch workspace."""
