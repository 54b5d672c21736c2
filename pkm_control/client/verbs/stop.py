# SPDX-License-Identifier: Apache-2.0
"""`pkm stop`: end any motion, and hold."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

_WHAT = """\
End the motion or the jog that runs by a deceleration on its way; the platform
is held then."""

parser, main = plain("stop", _WHAT, lambda link: link.stop(), "stop")

if __name__ == "__main__":
    raise SystemExit(main(None))
