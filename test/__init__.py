# SPDX-License-Identifier: Apache-2.0
"""Tests of the suite, and what they share; `oracles` holds independent judges."""
