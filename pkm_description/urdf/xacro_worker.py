# SPDX-License-Identifier: Apache-2.0
"""Expands one xacro file or text in a process of its own, started by `xacro_expansion`.

xacro evaluates Python expressions, which may take forever and all memory; a process can be ended. Task on standard
input and answer on standard output are JSON. It imports nothing but xacro, so that it starts fast.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import io
import json
import os
import re
import resource
import sys
import xml.parsers.expat
from collections.abc import Iterable, Iterator
from typing import Any

import xacro
from xacro import substitution_args

MEMORY = 2 << 30  # bytes
MANY = 10  # arguments, which a message does not list


class Arguments(dict[str, str]):
    """Values of arguments, recording the names that the file asks for; xacro itself ignores unknown ones silently."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()
        self.defaults: dict[str, str] = {}

    def __setitem__(self, name: str, value: str) -> None:
        """Set the default of an argument that has no value."""
        self.defaults[name] = value
        super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        """Whether there is a value, asked where an argument is declared or used."""
        self.asked.add(str(name))
        return super().__contains__(name)

    def unknown(self, given: dict[str, str], path: str | None) -> str:
        """What is wrong with the names given to the file of a path; empty where nothing is."""
        for name in given:
            if name not in self.asked:
                near = meant_by(name, path) or difflib.get_close_matches(name, self.asked, n=1)
                names = ", ".join(sorted(self.asked)) if len(self.asked) < MANY else "many: pkm check FILE --args"
                hint = f"did you mean {near[0]}?" if near else f"it has {names or 'none'}"
                return f"it has no argument '{name}'; {hint}"
        return ""


def meant_by(name: str, path: str | None) -> list[str]:
    """The argument whose comment in the file has the name, as that of a printer's firmware, with the comment."""
    if path is None:
        return []
    with open(path, encoding="utf-8") as file:
        arguments = re.findall(r"<xacro:arg\s+name=\"(\w+)\"[^>]*/>[ \t]*<!--\s*(.*?)\s*-->", file.read())
    return [f"{one} ({meaning})" for one, meaning in arguments if re.search(rf"\b{re.escape(name)}\b", meaning)][:1]


def main() -> None:
    """Answer a task, see `xacro_expansion`, with {text} or {problem, remedy}."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # what expressions print is no part of the answer
        task = json.load(sys.stdin)
        for kind, bound in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, task["patience"])):
            hard = resource.getrlimit(kind)[1]
            if hard == resource.RLIM_INFINITY or hard > bound:
                resource.setrlimit(kind, (bound, hard))
        json.dump(expanded(task), answer)


def expanded(task: dict[str, Any]) -> dict[str, Any]:
    """Answer to a task; `defaults` of the arguments that were given no value, and the `files` that were read."""
    find_package(task["package"], task["directory"])
    find_includes(os.path.join(task["directory"], "pkm_description"))
    explain_values()
    # xacro reports warnings and the place of an error on stderr: that belongs into our message.
    messages = io.StringIO()
    arguments = Arguments(task["arguments"])
    with contextlib.redirect_stderr(messages):
        try:
            if task["text"] is None:
                document = xacro.process_file(task["path"], mappings=arguments)
            else:
                xacro.init_stacks(task["path"])
                document = xacro.parse(task["text"])
                xacro.process_doc(document, mappings=arguments)
            text = document.toprettyxml(indent="  ")
        except xml.parsers.expat.ExpatError as error:
            return {
                "problem": f"it is not well-formed XML: {error}",
                "remedy": "correct the XML (and declare xmlns:xacro in <robot>)",
            }
        except MemoryError:
            return {"problem": "its expansion takes too much memory", "remedy": "correct the xacro expression"}
        except Exception as error:  # xacro raises whatever the evaluated expression raised
            messages.truncate(0)
            messages.seek(0)
            xacro.print_location()
            place = " ".join(messages.getvalue().split())
            first = first_cause(error)
            own = isinstance(first, UnknownPackageError)  # which xacro tells twice, with its class
            what = " ".join(str(first if own else error).split()) or repr(error)
            problem = f"xacro cannot expand it: {what} ({place})"
            return {"problem": problem, "remedy": remedy_of(first)}
    unknown = arguments.unknown(task["arguments"], task["path"])
    if unknown:
        remedy = "correct the name of the argument; pkm check ROBOT --args lists them with their meaning"
        return {"problem": unknown, "remedy": remedy}
    if len(text) > task["longest"]:
        return {"problem": f"it expands to {len(text)} characters", "remedy": f"stay below {task['longest']}"}
    files = [path for path in (task["path"], *xacro.all_includes) if path is not None]
    return {"text": text, "defaults": arguments.defaults, "files": files}


class ImpossibleError(ValueError):
    """An expression has no value for its numbers, given by `names`."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        super().__init__(text)
        self.names = names


def first_cause(error: Any) -> Any:
    """What an error of xacro's wraps."""
    while getattr(error, "exc", None) is not None:
        error = error.exc
    return error


def remedy_of(first: Any) -> str:
    """Remedy for what xacro met."""
    if isinstance(first, ImpossibleError):
        names = ", ".join(first.names)
        return (
            f"these numbers do not fit together; change {'one of ' if len(first.names) > 1 else ''}{names or 'them'} "
            "(the root of a negative number is a rod or leg that is shorter than what it has to span)"
        )
    if isinstance(first, FileNotFoundError):
        return (
            "give the path of the include relative to the file that has it, or absolute; the limbs that come along are "
            "$(find pkm_control)/pkm_description/limbs/NAME.xacro"
        )
    message = str(first)
    if isinstance(first, UnknownNameError):
        near = f"did you mean {first.near}? Else " if first.near else ""
        return f'{near}write <xacro:property name="{first.name}" value="..."/> above the place where it is used'
    if isinstance(first, UnknownPackageError):
        near = f"did you mean $(find {first.near})? Else " if first.near else ""
        return f"{near}source the workspace in which the package is installed, or give the path of the file"
    if message.startswith("Undefined property to forward: "):
        name = message.rpartition(" ")[2]
        return (
            f'write <xacro:property name="{name}" value="..."/> before the macro is called; docs/description.md '
            "has all that the macros of the limbs take"
        )
    if message.startswith("Undefined parameters"):
        return "give these attributes where the macro is called"
    if message.startswith("unknown macro name"):
        return "write the macro above the place where it is called, or <xacro:include> the file that has it"
    return "correct the xacro expression"


class UnknownNameError(NameError):
    """An expression uses an unknown name; `near` is a similar known one, if any."""

    def __init__(self, text: str, name: str, near: str) -> None:
        super().__init__(text)
        self.name, self.near = name, near


def unknown_name(error: NameError, symbols: Any) -> UnknownNameError:
    """The same error, with the name and its probable meaning."""
    name = str(error).partition("'")[2].partition("'")[0]
    known: list[str] = []
    while isinstance(symbols, dict):
        known += [key for key in symbols if isinstance(key, str)]
        symbols = getattr(symbols, "parent", None)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    return UnknownNameError(str(error), name, near[0] if near else "")


def explain_values() -> None:
    """Make an expression without a value, such as the root of a negative number, tell its numbers."""
    original = xacro.safe_eval

    def explained(expression: str, symbols: Any, others: Any = None) -> Any:
        try:
            return original(expression, symbols, others)
        except NameError as error:
            raise unknown_name(error, symbols if others is None else others) from error
        except (ValueError, ZeroDivisionError, OverflowError) as error:
            tree = ast.parse(expression.strip(), mode="eval")
            named = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
            values = {}
            for name in dict.fromkeys(node.id for node in sorted(named, key=lambda node: node.col_offset)):
                with contextlib.suppress(Exception):
                    values[name] = float(symbols[name])
            values.pop("pi", None)
            what = str(error)
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and len(call.args) == 1:
                    inner = ast.unparse(call.args[0])
                    with contextlib.suppress(Exception):
                        value = float(original(inner, symbols, others))
                        try:
                            original(f"{call.func.id}({value!r})", symbols, others)
                        except ValueError:
                            what = f"{call.func.id}({inner}) is {call.func.id} of {value:.4g}, which has no value"
                            break
            listed = ", ".join(f"{name} = {value:.6g}" for name, value in values.items())
            raise ImpossibleError(f"{what}{', with ' if listed else ''}{listed}", tuple(values)) from error

    xacro.safe_eval = explained


def find_includes(package: str) -> None:
    """Let a copied robot of the gallery find its includes by their file names."""
    original = xacro.abs_filename_spec

    def find(spec: str) -> str:
        path = str(original(spec))
        if os.path.isabs(spec) or os.path.exists(path):
            return path
        folder, name = os.path.split(spec)
        for room in {"": ("robots", "limbs"), "../limbs": ("limbs",)}.get(folder, ()):
            shipped = os.path.join(package, room, name)
            if os.path.exists(shipped):
                return shipped
        return path

    xacro.abs_filename_spec = find


class UnknownPackageError(Exception):
    """`$(find name)` of a package that is not there; `near` is one that is."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"$(find {name}): no package '{name}' is installed")
        self.near = "".join(difflib.get_close_matches(name, known, n=1))


def _installed_packages() -> Iterator[str]:
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        with contextlib.suppress(OSError):
            yield from os.listdir(os.path.join(prefix, "share", "ament_index", "resource_index", "packages"))


def find_package(name: str, directory: str) -> None:
    """Let `$(find name)` mean a directory where no ament index knows this package: a source tree, or a wheel."""
    original = substitution_args._eval_find

    def find(package: str) -> str:
        if package == name:
            return directory
        try:
            return str(original(package))
        except (ImportError, LookupError, OSError):  # no index, or the package is not in it
            raise UnknownPackageError(package, [name, *_installed_packages()]) from None

    substitution_args._eval_find = find
    substitution_args._eval_dict["find"] = find


if __name__ == "__main__":
    main()
