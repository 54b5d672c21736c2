# SPDX-License-Identifier: Apache-2.0
"""What the platform shall do: motion files, planning under limits, trajectories."""
