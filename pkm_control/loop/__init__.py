# SPDX-License-Identifier: Apache-2.0
"""What runs each control period: the fixed-rate loop, observer, follower, guard."""
