# SPDX-License-Identifier: Apache-2.0
"""One object per method; each file is named after what it reads a locked limb as."""
