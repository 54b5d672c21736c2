# SPDX-License-Identifier: Apache-2.0
"""Files of surfaces that the browser page and RViz show around the robot."""
