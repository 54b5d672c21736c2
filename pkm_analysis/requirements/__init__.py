# SPDX-License-Identifier: Apache-2.0
"""What is asked of a pose: quantities with units, bounds on them, and which of all conditions fails first."""
