# SPDX-License-Identifier: Apache-2.0
"""Dynamics kernels of one robot recorded as straight-line code."""
