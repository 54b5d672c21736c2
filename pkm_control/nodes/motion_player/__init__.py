# SPDX-License-Identifier: Apache-2.0
"""What the motion player is made of: one run of a motion, and what is recorded of it."""
