# SPDX-License-Identifier: Apache-2.0
"""Conditions on a pose: quantities with units, bounds on them, and which condition fails first."""
