# SPDX-License-Identifier: Apache-2.0
"""The dynamics node and its services."""
