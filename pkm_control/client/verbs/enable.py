# SPDX-License-Identifier: Apache-2.0
"""`pkm enable`: enable the drives."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Have the drives of the running robot follow commands. The platform is held where it
is; nothing else moves."""

parser, main = plain("enable", _WHAT, lambda link: link.enable(), "hardware/enable")

if __name__ == "__main__":
    raise SystemExit(main(None))
