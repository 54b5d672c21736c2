# SPDX-License-Identifier: Apache-2.0
"""What code that was exported says of the description that it was made from, and whether that is still so."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Mechanism

_DIGEST = re.compile(r'^#define \w+_DIGEST "(\w+)"$', re.MULTILINE)


def digest_of(mechanism: Mechanism) -> str:
    """Digest of a robot's description: of its expanded text, without comments and the space between elements."""
    text = ET.canonicalize(mechanism.urdf, strip_text=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compare_exported(mechanism: Mechanism, folder: str | Path) -> str:
    """One line on the code in a folder of `pkm export`: of this description, or `DescriptionError`."""
    files = sorted([*Path(folder).glob("*.h"), *Path(folder).glob("src/*.h")])
    headers = {file: file.read_text(encoding="utf-8", errors="replace") for file in files}
    found = {file: match[1] for file, text in headers.items() if (match := _DIGEST.search(text))}
    if not found:
        raise DescriptionError(str(folder), "it has no header of pkm export", "name the folder of the export")
    for file, digest in found.items():
        if digest != digest_of(mechanism):
            raise DescriptionError(
                str(file),
                f"it was made from another description than the current one of {mechanism.name}",
                f"export it again: pkm export {mechanism.name} --to c -o {folder}",
            )
    return f"{', '.join(map(str, found))}: made from this description"
