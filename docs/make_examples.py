# SPDX-License-Identifier: Apache-2.0
"""Write the pages of the numbered examples: what each is about, its picture, what it prints, and its code.

`python docs/make_examples.py [NUMBER ...]` runs the examples and writes docs/examples/NN_….md and their pictures.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
EXAMPLES = sorted((DOCS.parent / "examples").glob("[0-9][0-9]_*.py"))
PICTURES = DOCS / "pictures" / "examples"
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"


def page_of(example: Path) -> Path:
    """The page of an example."""
    return DOCS / "examples" / f"{example.stem}.md"


def head(example: Path) -> str:
    """Title, text and picture."""
    number, name = example.stem.split("_", 1)
    text = re.search(r'"""(.*?)"""', example.read_text(encoding="utf-8"), re.DOTALL)
    assert text is not None, f"{example.name} has no docstring"
    return (
        f"# {int(number)} {name.replace('_', ' ').capitalize()}\n\n{text[1].strip()}\n\n"
        f'<img src="../pictures/examples/{example.stem}.png" width="520" alt="{name.replace("_", " ")}">\n\n'
    )


def code(example: Path) -> str:
    """The code of an example as a block, and how to run it."""
    source = example.read_text(encoding="utf-8").removeprefix(LICENCE)
    return f"```python\n{source}```\n\nRun it: `./pkm python examples/{example.name}` writes the picture, too.\n"


def main() -> None:
    """Write all pages, or those of the numbers given."""
    PICTURES.mkdir(exist_ok=True)
    for example in (one for one in EXAMPLES if not sys.argv[1:] or one.name[:2] in sys.argv[1:]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(example))["main"](str(PICTURES / f"{example.stem}.png"))
        output = f"It prints\n\n```\n{printed.getvalue().rstrip()}\n```\n\n" if printed.getvalue() else ""
        page_of(example).write_text(head(example) + output + code(example), encoding="utf-8")


if __name__ == "__main__":
    main()
