# SPDX-License-Identifier: Apache-2.0
"""Maps of any quantity over a slice, with the loci of singularities in them."""
