# SPDX-License-Identifier: Apache-2.0
"""Singularity-free regions: the parts of a working mode, which regions touch, and paths within one."""
