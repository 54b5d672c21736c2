# SPDX-License-Identifier: Apache-2.0
"""`pkm resume`: continue the paused motion."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Go on with the motion that was paused; after a jog, the platform first moves
back to the path."""

parser, main = plain("resume", _WHAT, lambda link: link.resume())

if __name__ == "__main__":
    raise SystemExit(main(None))
