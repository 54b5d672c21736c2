# SPDX-License-Identifier: Apache-2.0
"""From a mechanism's graph to the tables that kernels read: bodies, closures, blocks, closed forms, the task."""
