# SPDX-License-Identifier: Apache-2.0
"""How a robot gives way under load: links as beams, joints and drives with stiffness, by matrix structural analysis."""
