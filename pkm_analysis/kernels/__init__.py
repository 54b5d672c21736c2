# SPDX-License-Identifier: Apache-2.0
"""Compiled: what is asked of one pose, for very many poses."""
