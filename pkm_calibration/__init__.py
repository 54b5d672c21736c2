# SPDX-License-Identifier: Apache-2.0
"""Calibration: where the joints of a real machine sit, from measurements."""
