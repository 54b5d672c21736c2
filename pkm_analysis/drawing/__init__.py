# SPDX-License-Identifier: Apache-2.0
"""Pictures of workspaces and maps, with the robot to scale."""
