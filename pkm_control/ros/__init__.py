# SPDX-License-Identifier: Apache-2.0
"""Messages of motions, for whoever sends them and whoever follows them."""
