# SPDX-License-Identifier: Apache-2.0
"""All solutions: poses on given spheres, planes, surfaces or angles, a file for each way in which a platform moves."""
