# SPDX-License-Identifier: Apache-2.0
"""Maps and statistics of any quantity, and loci of singularities as surfaces."""
