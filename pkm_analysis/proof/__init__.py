# SPDX-License-Identifier: Apache-2.0
"""Proof: what holds at every pose of a box or a path, by interval arithmetic that rounds outward."""
