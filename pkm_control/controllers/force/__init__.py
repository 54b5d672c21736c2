# SPDX-License-Identifier: Apache-2.0
"""Laws for a platform that touches something: impedance, admittance, and hybrid force and position control."""
