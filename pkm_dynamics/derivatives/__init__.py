# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics by complex steps: their definition, and the equations in complex numbers."""
