# SPDX-License-Identifier: Apache-2.0
"""Writes docs/command_line.md from the parsers: `./pkm python docs/make_command_line.py`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from pkm_bringup.cli import COMMANDS, command

_HEAD = """\
# The command line

`./pkm COMMAND` in a clone, `pkm COMMAND` where the package is installed. Options of the same name mean the same in
every command, with the same units and defaults. This page is written by `docs/make_command_line.py`.

| exit status | means |
|---|---|
| 0 | done; the answer is yes |
| 1 | the answer is no (refuted, not usable, no path, limits exceeded), or it failed on the way |
| 2 | asked wrongly: the command line, a robot or file that cannot be used, a question without an answer |
| 3 | neither yes nor no: an undecided proof, measurements that do not explain themselves |
| 130 | interrupted |

| command | does |
|---|---|
"""
_TAIL = """
## Completion

Your shell completes commands, options, robots and motions with what `pkm completion` prints, which needs
`pip install shtab`.

```bash
pkm completion bash > ~/.local/share/bash-completion/completions/pkm
pkm completion zsh > ~/.zfunc/_pkm          # with fpath+=~/.zfunc before compinit
pkm completion fish > ~/.config/fish/completions/pkm.fish
```
"""


def reference() -> str:
    """The page: every command with its help, 100 columns wide."""
    os.environ["COLUMNS"] = "100"
    table = "".join(f"| [`{word}`](#pkm-{word}) | {what} |\n" for word, (_, what) in COMMANDS.items())
    parts = []
    for word in COMMANDS:
        lines = command(word).parser().format_help().splitlines()
        text = "\n".join(line.rstrip() for line in lines)
        parts.append(f"\n## pkm {word}\n\n```text\n{text}\n```\n")
    return _HEAD + table + "".join(parts) + _TAIL


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page to the file that is named."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("file", nargs="?", type=Path, default=Path("docs/command_line.md"))
    p.parse_args(arguments).file.write_text(reference(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
