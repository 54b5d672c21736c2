# SPDX-License-Identifier: Apache-2.0
"""One all-solutions function per file: all poses on given spheres, planes, surfaces or angles."""
