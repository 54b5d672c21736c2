# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse ROBOT [TASK]`: one module per task, imported on demand."""
