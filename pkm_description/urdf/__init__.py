# SPDX-License-Identifier: Apache-2.0
"""URDF with loops as text: xacro expanded, elements parsed and checked."""
