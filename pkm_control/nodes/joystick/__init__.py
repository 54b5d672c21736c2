# SPDX-License-Identifier: Apache-2.0
"""A joystick in somebody's hand, as jogs."""
