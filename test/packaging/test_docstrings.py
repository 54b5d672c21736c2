# SPDX-License-Identifier: Apache-2.0
"""Docstrings in Google's style, so that a reference can be made from them.

The rule: what is not clear from one line stands in sections. `Args:` names every parameter, `Returns:` says what comes
back if that is more than a bool, `Raises:` names the errors that the body itself raises. The docstring of a class says
what its constructor takes and raises.

One line is enough for what name, types and that line make clear and that raises nothing, for a property, and for a
method that keeps the promise of the base class it overrides. It is not enough in the public face, which is what the
packages export: there only what takes nothing and raises nothing has it.

Kernels are left out: numba calls them, people call what is over them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pkm_description", "pkm_kinematics", "pkm_dynamics", "pkm_analysis", "pkm_control")
LEFT_OUT = ("/kernels/",)
SECTION = re.compile(r"^(Attributes|Args|Returns|Yields|Raises):$", re.MULTILINE)
NOTHING = ("None", "bool", "NoReturn", "Self")


def modules() -> dict[str, ast.Module]:
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    named = {file.relative_to(ROOT).as_posix(): file for file in files}
    return {name: ast.parse(file.read_text()) for name, file in named.items() if not any(x in name for x in LEFT_OUT)}


def exported() -> set[str]:
    """Names that the packages' `__init__.py` import: what users begin with."""
    trees = [ast.parse((ROOT / package / "__init__.py").read_text()) for package in PACKAGES]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names}


def methods_of(trees: dict[str, ast.Module]) -> dict[str, frozenset[str]]:
    classes = [node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)]
    return {c.name: frozenset(f.name for f in c.body if isinstance(f, ast.FunctionDef)) for c in classes}


def sections(text: str) -> dict[str, str]:
    """What each section of a docstring says; "" is what stands before them."""
    parts = SECTION.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def parameters(function: ast.FunctionDef) -> list[str]:
    a = function.args
    found = [*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x is not None)]
    return [one.arg for one in found if one.arg not in ("self", "cls") and not one.arg.startswith("_")]


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


def complaints(function: ast.FunctionDef, text: str, face: bool, inherited: frozenset[str]) -> Iterator[str]:
    """What a docstring lacks; `text` is the class's for a constructor, `inherited` the methods of its bases."""
    takes, errors = parameters(function), raised(function)
    is_property = any("property" in ast.unparse(one) for one in function.decorator_list)
    if "\n" not in text and (function.name in inherited or (not errors and not (face and takes))):
        return
    written = sections(text)
    for name in takes:
        if not re.search(rf"^ +\*{{0,2}}{name}: \S", written.get("Args", ""), re.MULTILINE):
            yield f"Args: {name}"
    gives = function.returns is not None and ast.unparse(function.returns).strip("'\"") not in NOTHING
    if gives and not is_property and not ("Returns" in written or "Yields" in written):
        yield "Returns:"
    for name in sorted(errors):
        if not re.search(rf"^ +{name}: \S", written.get("Raises", ""), re.MULTILINE):
            yield f"Raises: {name}"


def lacking(tree: ast.Module, file: str, face: set[str], methods: dict[str, frozenset[str]]) -> list[str]:
    """One line for each function of a module that lacks something."""
    found = []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_") or node.name == "main":
            continue
        seen = node.name in face
        functions = (
            [f for f in node.body if isinstance(f, ast.FunctionDef)] if isinstance(node, ast.ClassDef) else [node]
        )
        bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        inherited = frozenset[str]().union(*(methods.get(base, frozenset()) for base in bases))
        for f in functions:
            if f.name.startswith("_") and f.name != "__init__":
                continue
            text, promised = (node, frozenset[str]()) if f.name == "__init__" else (f, inherited)
            lack = ", ".join(complaints(f, ast.get_docstring(text) or "", seen, promised))
            if lack:
                found.append(f"{file}:{f.lineno} {f.name} lacks {lack}")
    return found


def test_public_docstrings_have_their_sections() -> None:
    trees = modules()
    face, methods = exported(), methods_of(trees)
    assert {"Kinematics", "Dynamics", "load_mechanism"} <= face
    found = [line for file, tree in trees.items() for line in lacking(tree, file, face, methods)]
    assert not found, "\n".join(found)


GOOD = '''
class Spring:
    """A spring that
    pulls.

    Args:
        stiffness: N/m.

    Raises:
        ValueError: it pushes.
    """

    def __init__(self, stiffness: float) -> None:
        if stiffness < 0.0:
            raise ValueError("it pushes")

    def force(self, way: float) -> float:
        """Force [N] after a way.

        Args:
            way: m.

        Returns:
            It.
        """

    @property
    def length(self) -> float:
        """Length [m]."""
'''


@pytest.mark.parametrize(
    ("whole", "cut", "word"),
    [
        (GOOD, "        stiffness: N/m.\n", "Args: stiffness"),
        (GOOD, "            way: m.\n", "Args: way"),
        (GOOD, "        Returns:\n", "Returns:"),
        (GOOD, "        ValueError: it pushes.\n", "Raises: ValueError"),
        (GOOD, "\n\n        Args:\n            way: m.\n\n        Returns:\n            It.\n        ", "Args: way"),
    ],
)
def test_what_is_lacking_is_noticed(whole: str, cut: str, word: str) -> None:
    assert cut in whole
    assert lacking(ast.parse(whole), "spring.py", {"Spring"}, {}) == []
    (line,) = lacking(ast.parse(whole.replace(cut, "")), "spring.py", {"Spring"}, {})
    assert word in line


def test_one_line_is_enough_for_clear_helpers_and_overridden_methods() -> None:
    helper = ast.parse("def half(x: float) -> float:\n    '''Half of x.'''\n    return 0.5 * x")
    assert lacking(helper, "pkm_dynamics/numbers.py", set(), {}) == []
    assert len(lacking(helper, "pkm_dynamics/numbers.py", {"half"}, {})) == 1
    refusing = ast.parse("def half(x: float) -> None:\n    '''Refuse x.'''\n    raise ValueError(x)")
    assert len(lacking(refusing, "pkm_dynamics/numbers.py", set(), {})) == 1
    law = ast.parse("class Law(Base):\n    def law(self, x: float) -> float:\n        '''The law of x.'''\n")
    assert lacking(law, "pkm_control/controllers/law.py", {"Law"}, {"Base": frozenset({"law"})}) == []
    assert len(lacking(law, "pkm_control/controllers/law.py", {"Law"}, {"Base": frozenset()})) == 1
