# SPDX-License-Identifier: Apache-2.0
"""Streams of messages: taken without callbacks, read by the layout of their bytes, from one node alone."""
