# SPDX-License-Identifier: Apache-2.0
"""Speed of the suite beside its peers: `python -m bench`."""
