# SPDX-License-Identifier: Apache-2.0
"""Singularity-free regions: what a working mode falls into, which regions touch, and paths within one."""
