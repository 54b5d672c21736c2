# SPDX-License-Identifier: Apache-2.0
"""Which error of a machine makes which error of its platform's pose, and which tolerances are worth their cost."""
