# SPDX-License-Identifier: Apache-2.0
"""Machinery for any project: a cache of compiled kernels, recordings as machine code, sweeps, settings files.

It knows no mechanics, and imports nothing of the other packages.
"""
