# SPDX-License-Identifier: Apache-2.0
"""The pages of the API reference: one for each room, which lists its modules; `docs/conf.py` writes them to docs/api/.

Sphinx fills them from the docstrings. A room is a package or a subpackage; what begins with an underscore is left out.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "pkm_runtime",
    "pkm_description",
    "pkm_kinematics",
    "pkm_dynamics",
    "pkm_analysis",
    "pkm_calibration",
    "pkm_hardware",
    "pkm_control",
    "pkm_client",
    "pkm_viewer",
    "pkm_bringup",
)
# What only an installation of ROS 2 has: the docstrings of the nodes are read without it.
ROS = (
    "rclpy",
    "action_msgs",
    "builtin_interfaces",
    "controller_manager_msgs",
    "diagnostic_msgs",
    "geometry_msgs",
    "launch",
    "launch_ros",
    "lifecycle_msgs",
    "nav_msgs",
    "rcl_interfaces",
    "sensor_msgs",
    "std_msgs",
    "std_srvs",
    "visualization_msgs",
    "pkm_interfaces",
)
HEAD = """\
# API reference

Made from the docstrings. Units are SI units and radians; poses are x y z qx qy qz qw, twists and wrenches linear before
angular. Most scripts need the names that the packages export, and no others:

"""


def rooms() -> dict[str, list[str]]:
    """Modules with something public in them, by the room that they are in, in the order of the packages."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py"), key=lambda path: (path.parent, path.name)):
            name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
            if file.name not in ("__init__.py", "__main__.py") and public_names(file):
                found.setdefault(name.rpartition(".")[0], []).append(name)
    return found


def public_names(file: Path) -> list[str]:
    """Public classes and functions that a module defines."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    defined = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return [node.name for node in defined if not (node.name.startswith("_") or for_compiled_code_alone(node))]


def for_compiled_code_alone(node: ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether a definition is an intrinsic of numba: no function that Python could call."""
    return any(ast.unparse(decorator).startswith("intrinsic") for decorator in node.decorator_list)


def exported(package: str) -> dict[str, str]:
    """What a package exports: name, and the module that defines it."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def purpose(room: str) -> str:
    """The docstring of a room."""
    file = ROOT.joinpath(*room.split("."), "__init__.py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def page(room: str, modules: list[str]) -> str:
    """The page of a room, in Markdown."""
    parts = [f"# {room}\n\n```{{eval-rst}}\n{purpose(room)}\n\n.. py:module:: {room}\n   :no-typesetting:\n```\n"]
    for name in modules:
        names = ", ".join(public_names(ROOT.joinpath(*name.split(".")).with_suffix(".py")))
        directive = f".. automodule:: {name}\n   :members: {names}\n   :show-inheritance:"
        parts.append(f"## {name.rpartition('.')[2]}\n\n```{{eval-rst}}\n{directive}\n```\n")
    return "\n".join(parts)


def index(found: dict[str, list[str]]) -> str:
    """The first page: what the packages export, and every room."""
    parts = [HEAD]
    for package in PACKAGES:
        names = exported(package)
        links = ", ".join(f"{{py:obj}}`{name} <{names[name]}.{name}>`" for name in sorted(names))
        parts.append(f"* `{package}`: {links}\n" if names else "")
    for package in PACKAGES:
        listed = "\n".join(room for room in found if room.split(".")[0] == package)
        parts.append(f"\n```{{toctree}}\n:caption: {package}\n:maxdepth: 1\n\n{listed}\n```\n")
    return "".join(parts)


def write(folder: Path) -> None:
    """Write the pages that are new or changed, and remove those of rooms that are gone.

    Args:
        folder: for them; made where there is none.
    """
    found = rooms()
    pages = {f"{room}.md": page(room, modules) for room, modules in found.items()} | {"index.md": index(found)}
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        if file.name not in pages:
            file.unlink()
    for name, text in pages.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
