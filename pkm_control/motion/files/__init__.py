# SPDX-License-Identifier: Apache-2.0
"""Motions as files: read, found among those that come along, made for a robot that has none, and sampled."""
