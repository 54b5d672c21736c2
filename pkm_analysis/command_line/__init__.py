# SPDX-License-Identifier: Apache-2.0
"""The command `pkm analyse ROBOT [TASK]`: one module for each task, imported when it is asked for."""
