# SPDX-License-Identifier: Apache-2.0
"""What is not believed, not put up with, and applied instead."""
