# SPDX-License-Identifier: Apache-2.0
"""The space about a robot: places that its tool keeps out of, and the file that names them."""
