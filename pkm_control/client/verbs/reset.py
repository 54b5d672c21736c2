# SPDX-License-Identifier: Apache-2.0
"""`pkm reset`: clear a fault of the machine; drives stay disabled."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Lead the machine out of a fault. Nothing moves: its drives stay off until `pkm enable`."""

parser, main = plain("reset", _WHAT, lambda link: link.reset(), "hardware/reset")

if __name__ == "__main__":
    raise SystemExit(main(None))
