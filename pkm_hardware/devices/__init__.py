# SPDX-License-Identifier: Apache-2.0
"""Simulated devices on pseudo terminals, which answer as the real ones do, or fail as they do."""
