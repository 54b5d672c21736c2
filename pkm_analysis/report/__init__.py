# SPDX-License-Identifier: Apache-2.0
"""What was found as one page that needs nothing else."""
