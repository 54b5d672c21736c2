# SPDX-License-Identifier: Apache-2.0
"""From one working mode to another."""
