# SPDX-License-Identifier: Apache-2.0
"""Streams of messages: taken without callbacks, read by byte layout, from one node only."""
