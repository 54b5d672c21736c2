# SPDX-License-Identifier: Apache-2.0
"""The nodes of the running robot: hardware, controller, and those for people: the browser page, the motion player."""
