# SPDX-License-Identifier: Apache-2.0
"""Settings of the documentation site, which Sphinx reads: `./pkm docs` builds it into `site/`.

The pages are the Markdown files of this folder as they stand, whose links work on a git host too; the notebooks, as
they are stored; and a reference made from the docstrings, one page per room (`reference_pages.py`).
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]
os.environ["NUMBA_DISABLE_JIT"] = "1"  # kernels are read as the functions that they are; nothing is compiled

import reference_pages
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

project = "pkm_control"
author = "The pkm_control project"
copyright = author
version = release = re.search(r'version="([^"]+)"', (DOCS.parent / "setup.py").read_text(encoding="utf-8"))[1]
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["html_image"]  # pictures of a width, as git hosts know them
myst_heading_anchors = 3  # links to headings, as git hosts have them
exclude_patterns = ["pictures"]
highlight_language = "none"  # of blocks that name no language
default_role = "py:obj"  # what stands in backticks in a docstring is linked where it is a name of ours
autodoc_mock_imports = list(reference_pages.ROS)
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike")}  # not what they stand for
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
suppress_warnings = ["ref.python"]  # two rooms have a class Recording: the nearer one is linked
napoleon_use_ivar = True
napoleon_numpy_docstring = False
toc_object_entries = False  # tables of contents of every function make every page large, and slow to write

html_theme = "furo"
html_title = "Parallel robots for ROS 2"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


class NotebookParser(MystParser):
    """A notebook as a page: its text, and its code as it is stored. Nothing is executed."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Make Markdown of the cells, and a page of that."""
        cells = json.loads(inputstring)["cells"]
        parts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
        text = "\n\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in parts)
        super().parse(text, document)


def to_pages_of_the_site(app: Sphinx, page: str, source: list[str]) -> None:
    """Make of the Markdown of a page what only the site needs, so that the file is good on a git host.

    Documents of the root are put where a page includes them, and links to them lead there; notebooks get their places
    in the table of contents.
    """
    included = re.search(r"```\{include\} \.\./(\w+\.md)\n```", source[0])
    if included:
        app.env.note_dependency(str(DOCS.parent / included[1]))
        text = (DOCS.parent / included[1]).read_text(encoding="utf-8")
        text = text.replace("](docs/", "](").replace('src="docs/', 'src="')
        source[0] = source[0].replace(included[0], text)
    if page == "notebooks/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"
    for name, target in (("README", "index"), ("CONTRIBUTING", "contributing"), ("CHANGELOG", "changelog")):
        source[0] = source[0].replace(f"](../{name}.md", f"]({target}.md")


def without_substitutions(*event: Any) -> None:
    """Keep the bars of |x| from meaning anything but themselves."""
    lines = event[-1]
    lines[:] = [line.replace("|", "\\|") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """What no setting says."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    app.connect("source-read", to_pages_of_the_site)
    app.connect("autodoc-process-docstring", without_substitutions)
    reference_pages.write(DOCS / "api")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
