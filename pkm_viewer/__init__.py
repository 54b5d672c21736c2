# SPDX-License-Identifier: Apache-2.0
"""Pictures of the running robot, as they are published and measured: the browser page, RViz, the report of a run."""
