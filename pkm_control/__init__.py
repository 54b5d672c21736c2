# SPDX-License-Identifier: Apache-2.0
"""The control of a machine: laws, motions, the loop that runs them, places to keep out of, conveyors, goals."""
