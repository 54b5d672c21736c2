# SPDX-License-Identifier: Apache-2.0
"""`pkm recover`: recover the robot from a stop."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Lead the robot out of a stop: find its platform again, or move it back inside
the limits at low speed."""

parser, main = plain("recover", _WHAT, lambda link: link.recover())

if __name__ == "__main__":
    raise SystemExit(main(None))
