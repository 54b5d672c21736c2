# SPDX-License-Identifier: Apache-2.0
"""Pictures of the running robot: the browser page and RViz."""
