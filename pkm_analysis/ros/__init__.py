# SPDX-License-Identifier: Apache-2.0
"""The thin node that shows results in RViz; no other part of the analysis uses ROS."""
