# SPDX-License-Identifier: Apache-2.0
"""Compiled: positions of every body at a platform pose."""
