# SPDX-License-Identifier: Apache-2.0
"""Commands that run a motion in their own process, and what all commands share: completion, their reference."""
