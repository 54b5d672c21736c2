# SPDX-License-Identifier: Apache-2.0
"""All solutions of polynomial systems: homotopies of quadrics, roots, counts."""
