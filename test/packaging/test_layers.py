# SPDX-License-Identifier: Apache-2.0
"""Packages import only those below them, numerical code no ROS, and no two rooms have a file of one name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# From the lowest floor up: each imports those below it. Neighbours on one floor do not know each other.
FLOORS = (
    ("pkm_runtime",),
    ("pkm_description",),
    ("pkm_kinematics",),
    ("pkm_dynamics",),
    ("pkm_analysis", "pkm_hardware"),
    ("pkm_control", "pkm_calibration"),
    ("pkm_client", "pkm_viewer"),
    ("pkm_bringup",),
)
APART = {
    *((package, "pkm_analysis") for package in ("pkm_control", "pkm_client", "pkm_viewer")),
    *((package, "pkm_calibration") for package in ("pkm_client", "pkm_viewer")),
}
ROS = re.compile(r"rclpy|launch|launch_ros|ament_index_python|pkm_interfaces|\w+_(msgs|srvs|interfaces)")
ROS_ROOMS = {"ros", "nodes"}
ROS_FILES = {"pkm_bringup/launch_bringup.py"}  # the launch description


def packages() -> list[str]:
    return sorted(f.parent.name for f in ROOT.glob("pkm_*/__init__.py"))


def files() -> list[Path]:
    return [file for floor in FLOORS for package in floor for file in sorted((ROOT / package).rglob("*.py"))]


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of modules that are imported, anywhere in a file; not what only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        else:
            yield from imported(node)


def below(package: str) -> set[str]:
    """Packages that one may import, besides itself."""
    (rank,) = [k for k, floor in enumerate(FLOORS) if package in floor]
    return {one for floor in FLOORS[:rank] for one in floor if (package, one) not in APART}


def amiss(source: str, file: str) -> list[str]:
    """What a file of a package imports that it must not."""
    package, room = file.split("/")[0], set(file.split("/")[:-1])
    allowed = below(package) | {package}
    tops = {name.split(".")[0] for name in imported(ast.parse(source))}
    found = [f"{file} imports {name}" for name in sorted(tops) if name in known() - allowed]
    if not (room & ROS_ROOMS or file in ROS_FILES):
        found += [f"{file} imports {name}, which is of ROS" for name in sorted(tops) if ROS.fullmatch(name)]
    return found


def known() -> set[str]:
    return {package for floor in FLOORS for package in floor}


def test_every_package_has_its_floor() -> None:
    assert set(packages()) - {"pkm_interfaces"} == known()


def test_packages_import_only_those_below_them() -> None:
    found = [line for file in files() for line in amiss(file.read_text(), file.relative_to(ROOT).as_posix())]
    assert not found, "\n".join(found)


def test_no_name_of_a_file_stands_in_two_rooms() -> None:
    names = Counter(file.name for file in files() if file.name not in ("__init__.py", "__main__.py"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("file", "source", "what"),
    [
        ("pkm_hardware/machine.py", "from pkm_control.loop.guard import guard_of", "imports pkm_control"),
        ("pkm_control/loop/guard.py", "def f():\n    import pkm_analysis.maps", "imports pkm_analysis"),
        ("pkm_viewer/scene.py", "from pkm_client import Robot", "imports pkm_client"),
        ("pkm_control/loop/guard.py", "from std_msgs.msg import String", "imports std_msgs, which is of ROS"),
    ],
)
def test_an_import_upward_is_noticed(file: str, source: str, what: str) -> None:
    assert amiss(source, file) == [f"{file} {what}"]


def test_what_only_a_type_checker_sees_is_free() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkm_control.loop.guard import guard_of"
    assert amiss(source, "pkm_hardware/machine.py") == []
    assert amiss("from std_msgs.msg import String", "pkm_control/ros/motion_messages.py") == []


def test_modules_that_are_named_in_strings_exist() -> None:
    """What is imported late, by name: a module, or something that a module defines."""
    lost = []
    for file in files():
        source = file.read_text()
        told = re.search(r"\"pkm_\w+\.|\"[a-z]+_pictures\.", source)  # parsing all would take seconds
        for node in ast.walk(ast.parse(source)) if told else ():
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if re.fullmatch(r"[a-z]+_pictures\.\w+", text):
                text = f"pkm_analysis.drawing.{text}"
            if re.fullmatch(r"pkm_\w+(\.\w+)+", text) and (ROOT / text.split(".")[0] / "__init__.py").exists():
                *folder, name = text.split(".")
                place, module = ROOT.joinpath(*folder), ROOT.joinpath(*folder).with_suffix(".py")
                defined = module.exists() and re.search(rf"^(def|class) {name}\b|^{name}\b", module.read_text(), re.M)
                if not (defined or (place / name).is_dir() or (place / f"{name}.py").exists()):
                    lost.append(f"{file.relative_to(ROOT)}: {text}")
    assert not lost
