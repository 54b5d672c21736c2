# SPDX-License-Identifier: Apache-2.0
"""Pictures of results, with the robot to scale, and pages of them."""
