# SPDX-License-Identifier: Apache-2.0
"""Drivers: one small class for each kind of device, in the device's own units."""
