# SPDX-License-Identifier: Apache-2.0
"""From actuator positions to the platform: along a path, tracking a motion, and naming its modes."""
