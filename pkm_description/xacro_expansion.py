# SPDX-License-Identifier: Apache-2.0
"""Expansion of xacro files and texts to plain URDF+ text, with or without a ROS installation."""

from __future__ import annotations

import contextlib
import io
import threading
import xml.parsers.expat
from collections.abc import Iterator, Mapping
from pathlib import Path

from pkm_description.errors import DescriptionError

PACKAGE = "pkm_control"
XACRO_NAMESPACE = "http://www.ros.org/wiki/xacro"

# xacro keeps the file stack, the macros and the arguments in module globals: one expansion at a time.
_lock = threading.Lock()


def needs_expansion(text: str) -> bool:
    """True where the text uses xacro."""
    return XACRO_NAMESPACE in text or "<xacro:" in text


def expand_file(path: Path, arguments: Mapping[str, str] | None = None) -> str:
    """Expand the xacro file at `path`; includes are resolved relative to the file that includes.

    Raises `DescriptionError` naming the file where xacro or the XML parser refuses it.
    """
    return _expand(str(path.resolve()), None, arguments)


def expand_text(text: str, arguments: Mapping[str, str] | None = None) -> str:
    """Expand xacro text; relative includes are resolved from the working directory."""
    return _expand(None, text, arguments)


def _expand(path: str | None, text: str | None, arguments: Mapping[str, str] | None) -> str:
    import xacro

    element = f"file {path}" if path else "xacro text"
    given = {name: str(value) for name, value in (arguments or {}).items()}
    # xacro reports warnings and the place of an error on stderr: that belongs into our message.
    messages = io.StringIO()
    with _lock, _package_lookup(), contextlib.redirect_stderr(messages):
        try:
            if path is not None:
                document = xacro.process_file(path, mappings=given)
            else:
                xacro.init_stacks(None)
                document = xacro.parse(text)
                xacro.process_doc(document, mappings=given)
            return str(document.toprettyxml(indent="  "))
        except xml.parsers.expat.ExpatError as error:
            raise DescriptionError(
                element, f"not well-formed XML: {error}", "correct the XML (and declare xmlns:xacro in <robot>)"
            ) from error
        except Exception as error:  # xacro raises whatever the evaluated expression raised
            messages.truncate(0)
            messages.seek(0)
            xacro.print_location()
            place = " ".join(messages.getvalue().split())
            raise DescriptionError(
                element,
                f"xacro cannot expand it: {str(error).strip() or repr(error)} ({place})",
                "correct the xacro expression",
            ) from error


@contextlib.contextmanager
def _package_lookup() -> Iterator[None]:
    """Let `$(find pkm_control)` work where no ament index knows this package: a source tree or an installed wheel."""
    from xacro import substitution_args

    original = substitution_args._eval_find

    def find(package: str) -> str:
        if package == PACKAGE:
            # The directory that holds `pkm_description/`, whichever way the package was installed.
            return str(Path(__file__).resolve().parents[1])
        try:
            return str(original(package))
        except ImportError as error:
            raise substitution_args.SubstitutionException(
                f"$(find {package}) needs a ROS installation (ament_index_python)"
            ) from error

    substitution_args._eval_find = find
    substitution_args._eval_dict["find"] = find
    try:
        yield
    finally:
        substitution_args._eval_find = original
        substitution_args._eval_dict["find"] = original
