# SPDX-License-Identifier: Apache-2.0
"""What a linkage does to a joint: an ankle, a knee, a leg between its motors and what a simulator calls its joints."""
