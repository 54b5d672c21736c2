# SPDX-License-Identifier: Apache-2.0
"""One robot as C99: `recorded_robot` records its kernels, `c_files` writes header, source and test."""
