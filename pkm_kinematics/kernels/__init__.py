# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels of the kinematics: free functions on constant record tables and a scratch workspace.

Arrays are float64, in C order, in base axes and SI units (m, rad, s, N) unless a file says otherwise. `model`, `data`
and `choice` are those of `model_and_data.py`; `bodies`, `closures`, `block`, `state` and `rows` records of
`records.py`.
"""
