# SPDX-License-Identifier: Apache-2.0
"""What stands beside the picture: status, limits, plots and joints for everybody; controls for who may command."""
