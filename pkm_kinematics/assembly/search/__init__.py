# SPDX-License-Identifier: Apache-2.0
"""Assembly modes by search, for robots without an all-solutions method: true modes, and no certificate."""
