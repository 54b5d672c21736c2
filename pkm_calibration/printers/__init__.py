# SPDX-License-Identifier: Apache-2.0
"""Delta 3D printers: parameters in the firmware's words from what the firmware has measured. Lengths in mm."""
