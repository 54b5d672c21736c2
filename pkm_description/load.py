# SPDX-License-Identifier: Apache-2.0
"""From a name, a file or a text to a checked, immutable `Mechanism` or `TreeModel`; whether exported code is of it."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pkm_description.description_error import DescriptionError
from pkm_description.formats import DOUBT, FORMATS, PARTS, USD, USD_HEAD, YAML
from pkm_description.from_urdf import mechanism_from_urdf
from pkm_description.gallery import ROBOTS, robot_path
from pkm_description.mechanism import Mechanism
from pkm_description.tree_model import TreeModel, tree_of, tree_of_robot
from pkm_description.urdf import urdf_plus, xacro_expansion
from pkm_description.urdf.robot_cache import expand_robot, find_mechanism, keep_mechanism
from pkm_description.urdf.unit_slips import in_words, suspects
from pkm_description.urdf.xml_text import check_length, read_file, read_xml, root_tag
from pkm_runtime.errors import shortened

# ROS refuses a <dynamics> without damping and friction, and with it the file
_UNDAMPED = re.compile(r"<dynamics(?=[^>]*\sspring_stiffness\b)(?![^>]*\s(?:damping|friction)\b)")
_DIGEST = re.compile(r'^#define \w+_DIGEST "(\w+)"$', re.MULTILINE)
_CONTENTS = re.compile(r'^(#define \w+_CONTENTS) "([\w ]*)".*$', re.MULTILINE)
_WRITTEN = re.compile(r"^.*Written by pkm \w+, .*\n?", re.MULTILINE)
SUFFIXES = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", *USD, *YAML)
ENDINGS = ".urdf, .xacro, .xml (MJCF), .sdf, .usda or .yaml"  # of them, for people
CORRECTIONS = "corrections"  # among the arguments of a robot: a file of corrections


def load_mechanism(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> Mechanism:
    """Load a parallel robot, checked, with its home configuration, mobility and limbs.

    Args:
        source: a robot of the gallery (`"delta"`), the path of a URDF+ file (`.xacro` is expanded), or URDF+ text.
            What other tools write (MJCF, SDF, USD, URDF with loops in their words) is read, too: docs/formats.md.
        xacro_args: values of `<xacro:arg>` arguments, by name; for other formats the bodies `platform` and `base`, and
            the `actuated` joints, separated by commas. `corrections`
            is the path of a file that says where the joints of the real machine sit: see `corrections.py`.

    DescriptionError: the robot is unusable, with the element at fault, the problem and the remedy.
    """
    arguments = dict(xacro_args or {})
    corrections = arguments.pop(CORRECTIONS, None)
    if corrections is not None:
        from pkm_description.corrections import corrected_from_file  # late: few need it

        return corrected_from_file(load_mechanism(source, arguments), corrections)
    text, origin, notes = expand_told(source, arguments)
    mechanism = find_mechanism(text, origin) if origin else None
    if mechanism is None:
        try:
            mechanism = mechanism_from_urdf(text, origin)
        except DescriptionError as error:
            doubted = _doubting(error, notes)
            if not origin or Path(origin).suffix in (".urdf", ".xacro"):
                raise doubted from error.__cause__
            raise doubted.of_file(f"{origin}, as URDF+ (pkm convert)") from error.__cause__
        if origin:
            keep_mechanism(mechanism)
    return mechanism


def expand(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Plain URDF+ text of a robot, arguments as in `load_mechanism`, and the path of its file, empty for a text."""
    return expand_told(source, xacro_args)[:2]


def expand_told(
    source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None
) -> tuple[str, str, list[str]]:
    """As `expand`, and sentences about what of a file of another tool was not taken."""
    if CORRECTIONS in (xacro_args or {}):
        mechanism = load_mechanism(source, xacro_args)
        return mechanism.urdf, mechanism.source, []
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(("<", USD_HEAD)):
        check_length(source, "URDF text")
        path, text = None, source
    else:
        path = find_robot(source)
        text = USD_HEAD if path.suffix in USD else read_file(path)
    if root_tag(text) in FORMATS or text.lstrip().startswith(USD_HEAD) or (path is not None and path.suffix in YAML):
        return _from_format(path, xacro_args, text)
    if xacro_expansion.needs_expansion(text) or (path is not None and path.suffix == ".xacro"):
        given = (xacro_args or {}).items()
        of_file = {k: v for k, v in given if k not in PARTS or (v and f'name="{k}"' in text)}
        if path is None:
            text = xacro_expansion.expand_text(text.strip(), of_file)
        else:
            text = (expand_robot if path.resolve().parent == ROBOTS else xacro_expansion.expand_file)(path, of_file)
    named = {key: value for key, value in (xacro_args or {}).items() if key in PARTS}
    others = "<loop " not in text and _says_loops_otherwise(text)
    if root_tag(text) == "robot" and (others or (named and "<pkm" not in text)):
        return _from_format(path, named, text)
    return _UNDAMPED.sub('<dynamics damping="0"', text), str(path or ""), []


def _says_loops_otherwise(text: str) -> bool:
    if not any(f"<{tag}" in text for tag in ("constraint", "loop_joint", "gazebo")):
        return False
    from pkm_description.formats.urdf_dialects import is_others  # late, as below

    return is_others(text)


def xacro_arguments(text: str) -> dict[str, str]:
    """Xacro arguments by name from "name:=value name:='a value'", as in command lines and launch files."""
    try:
        pairs = [pair.partition(":=") for pair in shlex.split(text)]
    except ValueError as error:
        raise DescriptionError("xacro_args", f"'{text}' has an unclosed quotation mark", "close it") from error
    found: dict[str, str] = {}
    for name, sign, value in pairs:
        if not (name and sign):
            raise DescriptionError("xacro_args", f"'{name}{sign}{value}' is not an argument", "write name:=value")
        if found.setdefault(name, value) != value:
            raise DescriptionError("xacro_args", f"{name} is given as {found[name]} and as {value}", "leave one out")
    return found


def find_robot(source: str | os.PathLike[str]) -> Path:
    """Existing file of a robot, from a path or the gallery; `DescriptionError` where there is none."""
    if not isinstance(source, (str, os.PathLike)):
        problem = f"it is of type {type(source).__name__}, which cannot name a robot"
        remedy = f"give the name of a gallery robot, the path of a {ENDINGS} file, or the text"
        raise DescriptionError(f"source {shortened(repr(source), 60)}", problem, remedy)
    path = Path(source)
    try:
        is_file = path.is_file()
    except OSError as error:  # a name that no file can have
        raise DescriptionError(
            f"file {path}", f"it cannot be opened: {error.strerror}", f"give the path of a {ENDINGS} file"
        ) from error
    if isinstance(source, str) and len(path.parts) == 1 and not path.suffix and not is_file:
        return robot_path(source)
    if not is_file:
        problem = "it is a folder" if path.is_dir() else "it does not exist"
        raise DescriptionError(f"file {path}", problem, f"give the path of a {ENDINGS} file{_beside(path)}")
    return path


def _beside(path: Path) -> str:
    """Question after similar files in the folder of a mistyped path; empty where there are none."""
    there = {one.name: one for one in sorted(path.parent.glob("*")) if one.suffix in SUFFIXES}
    near = [str(there[name]) for name in difflib.get_close_matches(path.name, there, n=3, cutoff=0.8)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _from_format(path: Path | None, arguments: Mapping[str, str] | None, text: str) -> tuple[str, str, list[str]]:
    from pkm_description.formats.read import plus_text  # late: a tenth of this package's import, which few need

    plus, notes = plus_text(text, arguments, path)
    return plus, str(path or ""), notes


def load_model(source: str | os.PathLike[str], xacro_args: Mapping[str, str] | None = None) -> TreeModel:
    """Load any file that `load_mechanism` reads, and plain URDF, as a tree with clusters of loops.

    Task coordinates of a robot with one platform are joints of a cluster. `DescriptionError` says how open a loop is.
    """
    arguments = dict(xacro_args or {})
    text, origin, notes = expand_told(source, {"platform": "", **arguments})  # it is heard where a file names none
    try:
        description = urdf_plus.parse(text, origin, tree=True)
        root = read_xml(text, origin)
        units = [*(one for one in urdf_plus.unread(root) if one not in notes), *in_words(suspects(description, root))]
        tree = None if description.platform_link else tree_of(description, origin, text)
    except DescriptionError as error:
        doubted = _doubting(error, notes)
        raise (doubted.of_file(origin) if origin else doubted) from error.__cause__
    tree = tree or tree_of_robot(load_mechanism(source, arguments), origin)
    return replace(tree, notes=(*notes, *units, *tree.beyond()))


def _doubting(error: DescriptionError, notes: Sequence[str]) -> DescriptionError:
    """An error about a robot of another tool's file, with what is doubtful in its loops."""
    doubts = [one.removeprefix(DOUBT) for one in notes if one.startswith(DOUBT)]
    return DescriptionError(error.element, "; ".join([error.problem, *doubts]), error.remedy) if doubts else error


def digest_of(robot: Mechanism | TreeModel) -> str:
    """Digest of a robot's description: of its expanded text, without comments and the space between elements."""
    text = ET.canonicalize(robot.urdf, strip_text=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def contents_of(header: str, *others: str) -> str:
    """Digests of the files of exported code, without the lines that have them and that say who wrote the files."""
    texts = (_WRITTEN.sub("", _CONTENTS.sub(r'\1 ""', text)) for text in (header, *others))
    return " ".join(hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts)


def _described_by(arguments: Mapping[str, str]) -> list[str]:
    given = " ".join(shlex.quote(f"{name}:={value}") for name, value in arguments.items())
    return ["--xacro-args", shlex.quote(given)] if given else []


def compare_exported(file: str, arguments: Mapping[str, str], folder: str | Path) -> str:
    """One line on exported C in a folder: of this robot, as it was written, or `DescriptionError`."""
    robots: list[Mechanism | TreeModel] = []
    for load in (load_mechanism, load_model):  # a file of another tool can be both, with a text for each
        try:
            robots.append(load(file, arguments))
        except DescriptionError as error:
            refused = error
    if not robots:
        raise refused
    files = sorted([*Path(folder).glob("*.h"), *Path(folder).glob("src/*.h")])
    headers = {one: one.read_text(encoding="utf-8", errors="replace") for one in files}
    found = {one: match[1] for one, text in headers.items() if (match := _DIGEST.search(text))}
    if not found:
        problem = "it has no header of pkm export or pkm transmission"
        raise DescriptionError(str(folder), problem, "name the folder that they wrote")
    for header, digest in found.items():
        linkage = "Written by pkm transmission" in headers[header]
        of = " ".join([shlex.quote(file), *_described_by(arguments)])
        scalar = " --scalar float" if "extern const float" in headers[header] else ""
        layout = " --layout arduino" if header.parent.name == "src" and header.parent != Path(folder) else ""
        to = "linuxcnc" if header.with_name(f"{header.stem}kins.comp").exists() else "c"
        command = f"pkm transmission {of} --c" if linkage else f"pkm export {of} --to {to}{scalar}{layout} -o"
        again = f"export it again: {command} {shlex.quote(str(folder))}"
        if digest not in map(digest_of, robots):
            problem = f"it was made from another description, or other --xacro-args, than those of {robots[0].name} now"
            raise DescriptionError(str(header), problem, again)
        written = _CONTENTS.search(headers[header])
        if written is None:
            raise DescriptionError(str(header), "it does not say what was exported: an older release made it", again)
        code = [header.with_suffix(ending) for ending in (".h", ".c", ".hpp")]
        for one, known in zip(code, written[2].split(), strict=False):
            if one.suffix == ".c" and not one.exists():
                raise DescriptionError(str(one), "it is not there", again)
            if one.exists() and contents_of(one.read_text(encoding="utf-8", errors="replace")) != known:
                raise DescriptionError(str(one), "it was edited since the export", again)
    return f"{', '.join(map(str, found))}: made from this description"
