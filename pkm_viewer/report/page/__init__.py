# SPDX-License-Identifier: Apache-2.0
"""The page of a run's report: drawn with matplotlib, written as PNG, PDF and HTML. Heavy: import it late."""
