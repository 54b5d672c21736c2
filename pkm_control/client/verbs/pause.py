# SPDX-License-Identifier: Apache-2.0
"""`pkm pause`: halt the motion on its path."""

from __future__ import annotations

from pkm_control.client.verbs.verb import plain

parser, main = plain(
    "pause", "Halt the motion that runs on its path; 'pkm resume' goes on with it.", lambda link: link.pause()
)

if __name__ == "__main__":
    raise SystemExit(main(None))
