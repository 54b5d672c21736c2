# SPDX-License-Identifier: Apache-2.0
"""Work in chunks: over the cores of this computer or of others, and kept so that it can go on."""

from pkm_analysis.sweeps.sweeps import Sweeps

__all__ = ["Sweeps"]
