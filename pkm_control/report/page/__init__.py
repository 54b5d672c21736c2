# SPDX-License-Identifier: Apache-2.0
"""The page that a robot is judged by: drawn with matplotlib, written as PNG, PDF and HTML. Heavy: import it late."""
