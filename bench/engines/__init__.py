# SPDX-License-Identifier: Apache-2.0
"""A `Mechanism` in the hands of engines that nobody here wrote: the peers of the benchmark, the judges of the tests.

Nothing in this package calls `pkm_kinematics` or `pkm_dynamics`.
"""
