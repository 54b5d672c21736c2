# SPDX-License-Identifier: Apache-2.0
"""Tests of the page in a real browser, which is driven over its debugging protocol."""
