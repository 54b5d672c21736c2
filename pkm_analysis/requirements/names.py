# SPDX-License-Identifier: Apache-2.0
"""Names of quantities, of workspaces and of what can be proved, to detect a wrong one at once. No heavy imports."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from pkm_analysis.analysis_errors import AnalysisError

OF_LIMBS = ("reach", "joint_limits", "type1", "type2", "type2_signed", "margin", "constraint", "limb_regularity")
OF_DRIVES = (
    "isotropy",
    "smallest_transmission",
    "largest_transmission",
    "speed",
    "turning_speed",
    "force",
    "moment",
    "position_error",
    "turning_error",
    "effort_at_rest",
    "natural_frequency",
)
CLEARANCE = "clearance"
ALL = (*OF_LIMBS, *OF_DRIVES, CLEARANCE)
DIRECTED = ("speed", "turning_speed", "force", "moment")  # that may be asked for in one direction
JOINT = "joint:"
KINDS = {  # of a workspace over orientations: whether a position must be reached in every orientation of the range
    "reachable": False,
    "inclusive": False,
    "total": True,
    "dexterous": True,
}
IN_WORDS = f"{', '.join(ALL)}, {JOINT}NAME; of {', '.join(DIRECTED)} also in a direction, as force:z or force:1,0,-1"


RESOLUTION = 2.0**-14  # of the domain's sides: boxes are not halved beyond
MOST_BOXES = 20_000
FORMS = (
    "inside",
    "no singularity",
    "type1 > NUMBER UNIT",
    "type2 > NUMBER UNIT",
    "margin > NUMBER",
    "psi > NUMBER UNIT",
    "psi < NUMBER UNIT",
    "position_error < NUMBER UNIT",
    "turning_error < NUMBER UNIT",
    "effort_at_rest < NUMBER UNIT",
    "effort_at_rest < limits",
)
NAMES = tuple(dict.fromkeys(form.partition(" <")[0].partition(" >")[0] for form in FORMS))


def check_name(text: str) -> None:
    """Raise `AnalysisError` for a quantity that no robot has, alone or with a bound: "force:z > 100 N"."""
    name = re.split(r"[<>=\s]", text.strip(), maxsplit=1)[0]
    first, colon, rest = name.partition(":")
    known = name in ALL or (bool(rest) and (first in DIRECTED or first + colon == JOINT))
    if name and not known:
        raise AnalysisError(f"quantity {name}", "there is none of that name", remedy_for(name))


def check_coordinate(name: str, chain: Sequence[str]) -> None:
    """Raise `AnalysisError` for a coordinate that is none of `chain`, the joints of the platform's branch, if any."""
    labels = [label_of(joint) for joint in chain]
    if not labels or name in chain or name in labels:
        return
    near = difflib.get_close_matches(name, labels, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"choose one of: {', '.join(labels)}"
    if "=" in name:
        remedy += "; ranges are given apart, as --range NAME=A:B"
    raise AnalysisError(f"coordinate {name}", "the robot has none of that name", remedy)


def label_of(coordinate: str) -> str:
    """The short name of a task coordinate: its last part."""
    return coordinate.replace("/", "_").rpartition("_")[2]


def remedy_for(name: str) -> str:
    """What to ask for instead of an unknown name."""
    first, colon, rest = name.partition(":")
    if first in ALL and colon:
        return f"write {first} alone"
    near = difflib.get_close_matches(first, ALL, n=1)
    again = colon + rest if near and near[0] in DIRECTED else ""
    return f"did you mean {near[0]}{again}?" if near else f"choose one of {IN_WORDS}"


def check_proved(text: str) -> None:
    """Raise `AnalysisError` for a text, such as "type2 > 1 rad/m", that is none of `FORMS`."""
    name = " ".join(re.split(r"[<>=]", text, maxsplit=1)[0].split())
    if name not in NAMES and name.partition(" ")[0] not in NAMES:  # else what follows the name cannot be read
        near = difflib.get_close_matches(name, NAMES, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"write one of: {'; '.join(FORMS)}"
        raise AnalysisError(f"requirement '{text}'", f"nothing is proved of '{name}'", remedy)
