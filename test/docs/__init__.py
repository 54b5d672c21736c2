# SPDX-License-Identifier: Apache-2.0
"""The documents: their code runs, their commands parse, their links lead somewhere, the site is complete."""
