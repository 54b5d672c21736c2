# SPDX-License-Identifier: Apache-2.0
"""One prefix for all frame names of a robot, so that several of one kind share one tree of frames."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from pkm_description.description_error import DescriptionError
from pkm_description.urdf.xml_text import read_xml

_REFERENCES = ("link", "reference", "base_link", "platform_link")  # attributes that name a link


def prefix_frames(text: str, prefix: str) -> str:
    """Rename the links of a robot, wherever its description names them. Joints keep their names.

    Publishers and users of frames (robot_state_publisher, RViz, our nodes) read them from the description, and so
    agree. The prefix has letters, digits, `_` and `/`, such as "left/"; empty, it changes nothing.
    """
    if not prefix:
        return text
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_/]*", prefix):
        raise DescriptionError(
            "frame_prefix", f"{prefix!r} is not a valid frame prefix", "use letters, digits, _ and /, as in left/"
        )
    root = read_xml(text, "robot description")
    links = [(link, link.get("name", "")) for link in root.findall("link")]
    names = {name for _, name in links}
    for element in root.iter():
        for attribute in _REFERENCES:
            if element.get(attribute) in names:
                element.set(attribute, prefix + element.get(attribute, ""))
    for link, name in links:
        link.set("name", prefix + name)
    return ET.tostring(root, encoding="unicode")
