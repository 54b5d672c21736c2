# SPDX-License-Identifier: Apache-2.0
"""A linkage over the range of its joints: worst and mean, pictures, and what other tools are told of it."""
