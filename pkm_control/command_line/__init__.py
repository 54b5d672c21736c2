# SPDX-License-Identifier: Apache-2.0
"""What the commands `pkm ...` share: options of the same name and meaning everywhere, completion, their reference."""
