# SPDX-License-Identifier: Apache-2.0
"""The nodes of the running robot: hardware, controller, browser page, motion player."""
