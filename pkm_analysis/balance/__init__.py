# SPDX-License-Identifier: Apache-2.0
"""Static balance: springs and counterweights that take the weight off the drives."""
