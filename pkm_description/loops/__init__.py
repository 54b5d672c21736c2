# SPDX-License-Identifier: Apache-2.0
"""The loops of a description in plain NumPy, once when it is loaded: closed at home, freedoms and limbs counted."""
