# SPDX-License-Identifier: Apache-2.0
"""Loops of a description in plain NumPy, for loading: closed at home, degrees of freedom and limbs counted."""
