# SPDX-License-Identifier: Apache-2.0
"""`pkm estop`: disable the drives at once, until a reset."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Emergency stop: turn the drives of the running robot off at once. They stay off until
`pkm reset` and `pkm enable`."""

parser, main = plain("estop", _WHAT, lambda link: link.emergency_stop(), "hardware/emergency_stop")

if __name__ == "__main__":
    raise SystemExit(main(None))
