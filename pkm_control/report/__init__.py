# SPDX-License-Identifier: Apache-2.0
"""What was recorded and measured of a run."""
