# SPDX-License-Identifier: Apache-2.0
"""Very many motions that nobody should ask for, what the checks say of them, and a judge of its own.

`python -m bench.reckless --write docs/reckless.md` makes the table: `motions.py` draws, `judge.py` looks afterwards.
"""
