# SPDX-License-Identifier: Apache-2.0
"""The simulated machine: direct dynamics, drives, end stops, brakes and encoders."""
