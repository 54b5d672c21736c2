# SPDX-License-Identifier: Apache-2.0
"""The thin node that shows results in RViz; nothing else of the analysis knows ROS."""
