# SPDX-License-Identifier: Apache-2.0
"""Compiled: evaluations at one pose, for very many poses."""
