# SPDX-License-Identifier: Apache-2.0
"""`pkm disable`: disable the drives."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
Turn the drives of the running robot off. What moves ends at once, and brakes close;
a machine without brakes sinks under its weight."""

parser, main = plain("disable", _WHAT, lambda link: link.disable(), "hardware/disable")

if __name__ == "__main__":
    raise SystemExit(main(None))
