# SPDX-License-Identifier: Apache-2.0
"""Keep-out places about a robot, its tools, and their files."""
