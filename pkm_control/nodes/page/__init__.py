# SPDX-License-Identifier: Apache-2.0
"""Requests of the page's node to the other nodes; the page itself is `pkm_control.view`."""
