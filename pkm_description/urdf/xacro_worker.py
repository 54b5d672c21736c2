# SPDX-License-Identifier: Apache-2.0
"""Expands one xacro file or text, in a process of its own: see `xacro_expansion`, which starts this file.

xacro evaluates Python expressions, which may take forever and all memory; a process can be ended. It reads its task
from standard input and answers on standard output, both as JSON. It imports nothing but xacro, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import resource
import sys
import xml.parsers.expat
from typing import Any

import xacro
from xacro import substitution_args

MEMORY = 2 << 30  # bytes


class Arguments(dict[str, str]):
    """Values of arguments, with the names that the file asks for; xacro itself takes any others without a word."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        """Whether there is a value, as xacro asks where an argument is declared or used."""
        self.asked.add(str(name))
        return super().__contains__(name)

    def unknown(self, given: dict[str, str]) -> str:
        """What is wrong with the names that were given; empty where nothing is."""
        for name in given:
            if name not in self.asked:
                near = difflib.get_close_matches(name, self.asked, n=1)
                hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(self.asked)) or 'none'}"
                return f"it has no argument '{name}'; {hint}"
        return ""


def main() -> None:
    """Answer one task: {path or text, arguments, package, directory, longest} with {text} or {problem, remedy}."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # what expressions print is no part of the answer
        task = json.load(sys.stdin)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
        json.dump(expanded(task), answer)


def expanded(task: dict[str, Any]) -> dict[str, str]:
    """Return the answer to a task."""
    find_package(task["package"], task["directory"])
    # xacro reports warnings and the place of an error on stderr: that belongs into our message.
    messages = io.StringIO()
    arguments = Arguments(task["arguments"])
    with contextlib.redirect_stderr(messages):
        try:
            if task["path"] is not None:
                document = xacro.process_file(task["path"], mappings=arguments)
            else:
                xacro.init_stacks(None)
                document = xacro.parse(task["text"])
                xacro.process_doc(document, mappings=arguments)
            text = document.toprettyxml(indent="  ")
        except xml.parsers.expat.ExpatError as error:
            return {
                "problem": f"not well-formed XML: {error}",
                "remedy": "correct the XML (and declare xmlns:xacro in <robot>)",
            }
        except MemoryError:
            return {"problem": "its expansion takes too much memory", "remedy": "correct the xacro expression"}
        except Exception as error:  # xacro raises whatever the evaluated expression raised
            messages.truncate(0)
            messages.seek(0)
            xacro.print_location()
            place = " ".join(messages.getvalue().split())
            problem = f"xacro cannot expand it: {str(error).strip() or repr(error)} ({place})"
            return {"problem": problem, "remedy": "correct the xacro expression"}
    unknown = arguments.unknown(task["arguments"])
    if unknown:
        return {"problem": unknown, "remedy": "correct the name of the argument"}
    if len(text) > task["longest"]:
        return {"problem": f"it expands to {len(text)} letters", "remedy": f"stay below {task['longest']}"}
    return {"text": text}


def find_package(name: str, directory: str) -> None:
    """Let `$(find name)` mean a directory where no ament index knows this package: a source tree, or a wheel."""
    original = substitution_args._eval_find

    def find(package: str) -> str:
        if package == name:
            return directory
        try:
            return str(original(package))
        except ImportError as error:
            raise substitution_args.SubstitutionException(
                f"$(find {package}) needs a ROS installation (ament_index_python)"
            ) from error

    substitution_args._eval_find = find
    substitution_args._eval_dict["find"] = find


if __name__ == "__main__":
    main()
