# SPDX-License-Identifier: Apache-2.0
"""A joystick as a source of jogs."""
