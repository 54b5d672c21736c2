# SPDX-License-Identifier: Apache-2.0
"""Calibration: the parameters of the machine as it is, from measurements, with what these cannot tell."""
