# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of readings and commands, and what is applied where they fail."""
