# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the inverse dynamics by complex steps: what they are, and the equations for complex numbers."""
