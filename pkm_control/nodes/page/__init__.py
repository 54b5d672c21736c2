# SPDX-License-Identifier: Apache-2.0
"""What the node of the page is made of besides `pkm_control.view`: its requests to the other nodes."""
