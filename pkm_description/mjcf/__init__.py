# SPDX-License-Identifier: Apache-2.0
"""MuJoCo's description format, read into a `Mechanism` and written from one."""
