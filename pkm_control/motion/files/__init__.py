# SPDX-License-Identifier: Apache-2.0
"""Motion files: read, found among the shipped ones, made for a robot that has none, and sampled."""
