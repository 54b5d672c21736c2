# SPDX-License-Identifier: Apache-2.0
"""Docstrings say what name and types do not, and the public face says its units.

Nothing is said twice: an entry of `Args:`, a `Returns:` or a `Raises:` that holds no word but those of the names and
types beside it is cut. The public face, which is what the packages export, names each number and each array that it
takes, and each error that its body itself raises; the docstring of a class does so for its constructor, and may do it
for its methods.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(file.parent.name for file in ROOT.glob("pkm_*/__init__.py"))
SECTION = re.compile(r"^(Attributes|Args|Returns|Yields|Raises):$", re.MULTILINE)
ENTRY = re.compile(r"^    (\*{0,2}\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
NUMBERS = re.compile(r"\b(float|Array|NDArray|ArrayLike)\b")
ARTICLES = "a an and are at be been by for from has in is it its no not of on or that the their this to was where which"
EMPTY = frozenset([*ARTICLES.split(), "with"])
MARKED = re.compile(
    r"``.+?``|`[^`]+`(?!\w)|(?<!\S)\*[^*\s][^*]*\*(?!\w)|^ *\* ", re.DOTALL | re.MULTILINE
)  # ends as well
OPEN = re.compile(r"`|(?:^|(?<=[\s\"'(\[<{/:-]))\*{1,2}(?=[^\s\"')\]>}*])")


@cache
def modules() -> dict[str, ast.Module]:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in files}


def exported() -> set[str]:
    """Names that the packages' `__init__.py` import: what users begin with."""
    trees = [ast.parse((ROOT / package / "__init__.py").read_text()) for package in PACKAGES]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names}


def sections(text: str) -> dict[str, str]:
    """What each section of a docstring says; "" is what stands before them."""
    parts = SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def words(text: str) -> set[str]:
    """Words of a text or of a name, in lower case and without the ends of plurals."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", text)
    return {word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", apart.lower())} - EMPTY


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    a = function.args
    found = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
    return [one for one in found if one.arg not in ("self", "cls") and not one.arg.startswith("_")]


def _takes_all(handler: ast.ExceptHandler) -> bool:
    """Whether it takes every error of ours."""
    return handler.type is not None and ast.unparse(handler.type) in ("PkmError", "Exception")


def raised(node: ast.AST) -> set[str]:
    """Classes of errors that leave a body that itself makes them; inner functions apart."""
    found = set()
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Try) and any(_takes_all(handler) for handler in node.handlers):
        children = [child for child in children if child not in node.body]
    for child in children:
        if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call):
            name = ast.unparse(child.exc.func).split(".")[-1]
            found |= {name} if name[0].isupper() else set()
        elif not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            found |= raised(child)
    return found


def echoes(function: ast.FunctionDef, owner: str, text: str) -> Iterator[str]:
    """Entries of sections that say names and types again."""
    if not SECTION.search(text):
        return
    written = sections(text)
    known = words(function.name) | words(owner)
    types = {one.arg: ast.unparse(one.annotation) if one.annotation else "" for one in parameters(function)}
    for name, said in ENTRY.findall(written.get("Args", "")):
        if words(said) <= known | words(name) | words(types.get(name.lstrip("*"), "")):
            yield f"Args: {name} says nothing"
    if "Returns" in written and words(written["Returns"]) <= known | words(
        ast.unparse(function.returns) if function.returns else ""
    ):
        yield "Returns: says nothing"
    for name, said in ENTRY.findall(written.get("Raises", "")):
        if words(said) <= known | words(name) | {"raise", "wrong", "invalid"}:
            yield f"Raises: {name} says nothing"


def lacks(function: ast.FunctionDef, text: str) -> Iterator[str]:
    """Numbers, arrays and errors that a docstring of the public face does not name, nor leaves to another ("as in")."""
    if re.search(r"\b(as|as in|see) `", text, re.IGNORECASE):
        return
    for one in parameters(function):
        takes_numbers = NUMBERS.search(ast.unparse(one.annotation) if one.annotation else "")
        if takes_numbers and not re.search(rf"\b{one.arg.replace('_', '[_ ]')}\b", text, re.IGNORECASE):
            yield f"lacks {one.arg}"
    for name in sorted(raised(function)):
        if name not in text:
            yield f"lacks {name}"


def functions_of(tree: ast.Module) -> Iterator[tuple[ast.FunctionDef, str, str, str]]:
    """Each function with the name and the docstring of its class, "" where there is none, and its own."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, "", "", ast.get_docstring(node) or ""
        elif isinstance(node, ast.ClassDef):
            for f in node.body:
                if isinstance(f, ast.FunctionDef):
                    yield f, node.name, ast.get_docstring(node) or "", ast.get_docstring(f) or ""


def amiss(tree: ast.Module, file: str, face: set[str]) -> list[str]:
    """One line for each function of a module whose docstring says too little or says it twice."""
    found = []
    for f, owner, above, text in functions_of(tree):
        constructs = f.name == "__init__"
        wrong = [*echoes(f, owner, above if constructs else text)]
        if (owner or f.name) in face and (constructs or not f.name.startswith("_")) and not f.decorator_list:
            wrong += lacks(f, f"{above}\n{text}")
        if wrong:
            found.append(f"{file}:{f.lineno} {f.name}: {', '.join(wrong)}")
    return found


def test_docstrings_say_what_names_and_types_do_not() -> None:
    face = exported()
    assert {"Kinematics", "Dynamics", "load_mechanism"} <= face
    found = [line for file, tree in modules().items() for line in amiss(tree, file, face)]
    assert not found, "\n".join(found)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and the statements within it; expressions, most of a tree, have no docstrings."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from statements(child)


def test_what_docstrings_mark_ends() -> None:
    """Else the site has errors, whose building takes minutes."""
    nodes = [(file, node) for file, tree in modules().items() for node in statements(tree)]
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    texts = [(file, ast.get_docstring(node) or "") for file, node in nodes if isinstance(node, documented)]
    assert [(file, text) for file, text in texts if OPEN.search(MARKED.sub("", text))] == []


@pytest.mark.parametrize("text", ["of `Kind`s that", 'texts as "*=50", two', "of (..., *shape) numbers"])
def test_what_does_not_end_is_noticed(text: str) -> None:
    assert OPEN.search(MARKED.sub("", text))


GOOD = '''
class Spring:
    """A spring that pulls.

    Args:
        stiffness: N/m.

    Raises:
        ValueError: it pushes.
    """

    def __init__(self, stiffness: float) -> None:
        if stiffness < 0.0:
            raise ValueError("it pushes")

    def force(self, way: float) -> float:
        """Force [N] after a way [m]."""
'''


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("        stiffness: N/m.\n", "", "lacks stiffness"),
        ("stiffness: N/m.", "stiffness: of the spring.", "stiffness says nothing"),
        (" after a way [m].", ".", "lacks way"),
        ("    Raises:\n        ValueError: it pushes.\n", "", "lacks ValueError"),
        ("way [m].", "way [m].\n\n        Returns:\n            The force.\n        ", "Returns: says nothing"),
    ],
)
def test_what_is_amiss_is_noticed(old: str, new: str, word: str) -> None:
    assert old in GOOD
    assert amiss(ast.parse(GOOD), "spring.py", {"Spring"}) == []
    (line,) = amiss(ast.parse(GOOD.replace(old, new)), "spring.py", {"Spring"})
    assert word in line


def test_inside_one_line_is_enough() -> None:
    helper = ast.parse("def half(x: float) -> float:\n    '''A part.'''\n    return 0.5 * x")
    assert amiss(helper, "pkm_dynamics/numbers.py", set()) == []
    assert len(amiss(helper, "pkm_dynamics/numbers.py", {"half"})) == 1
