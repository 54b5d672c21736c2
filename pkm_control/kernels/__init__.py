# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the control package."""
