# SPDX-License-Identifier: Apache-2.0
"""Panels beside the picture: status, limits, plots and joints for everybody; controls for those who may command."""
