# SPDX-License-Identifier: Apache-2.0
"""Singularities of all types as surfaces over a volume."""
