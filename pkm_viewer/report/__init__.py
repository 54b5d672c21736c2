# SPDX-License-Identifier: Apache-2.0
"""Recordings and figures of a run."""
