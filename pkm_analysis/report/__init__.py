# SPDX-License-Identifier: Apache-2.0
"""Results as one self-contained page."""
