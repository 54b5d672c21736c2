# SPDX-License-Identifier: Apache-2.0
"""Calibration of any robot: measurements in, corrections of its description out."""
