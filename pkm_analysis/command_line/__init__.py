# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse ROBOT [TASK]`: its tasks, imported on demand."""
