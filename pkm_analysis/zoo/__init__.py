# SPDX-License-Identifier: Apache-2.0
"""Public files with closed loops of others, and what becomes of each here."""
