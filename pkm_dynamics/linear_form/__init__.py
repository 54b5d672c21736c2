# SPDX-License-Identifier: Apache-2.0
"""The linear form in the inertial parameters: regressor, base parameters, excitation, inertials."""
