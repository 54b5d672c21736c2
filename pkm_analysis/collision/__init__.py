# SPDX-License-Identifier: Apache-2.0
"""How far a robot's bodies are from each other."""
