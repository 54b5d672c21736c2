# SPDX-License-Identifier: Apache-2.0
"""One control period: the fixed-rate loop, observer, follower, guard."""
