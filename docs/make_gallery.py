# SPDX-License-Identifier: Apache-2.0
"""Write the gallery from the descriptions of the robots and from what the solvers find at home.

That is docs/gallery.md with its pictures, and a launch file per robot.
`python docs/make_gallery.py` writes, `--pictures` the pictures alone; `--check` only says whether the page still fits
the descriptions (the columns that come from the solvers are not compared, for these take a while).
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

import pkm_description
from pkm_description import robot_names
from pkm_description.gallery import robot_path
from pkm_description.mechanism import Mechanism

load_mechanism = functools.cache(pkm_description.load_mechanism)
DOCS = Path(__file__).resolve().parent
LAUNCH = DOCS.parent / "launch"
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "pictures"

HEAD = """# The robots of the gallery

Every robot is a file in `pkm_description/robots/` and nothing else. `python docs/make_gallery.py` writes this page.

* *Degrees of freedom* are those of the platform: T translations, R rotations.
* *Repeated* is the number of redundant loop equations (0: not overconstrained).
* *Working modes* and *assembly modes* are the real solutions of the inverse and the
  forward kinematics that the solvers find for the home pose, including solutions beyond the joint limits.

Pictures show robots at home, with the frames of base and platform (x red, y green, z blue).

| robot | | degrees of freedom | limbs | actuators | repeated | working modes | assembly modes |
|---|---|---|---|---|---|---|---|
"""


def about(name: str) -> str:
    """The comment on top of the robot's file: what it is and where it comes from, up to the first full stop."""
    comments = re.findall(r"<!--(.*?)-->", robot_path(name).read_text(encoding="utf-8"), re.DOTALL)
    text = " ".join(comments[1].split())
    # A full stop that ends a sentence; titles and initials in the parentheses before it have none.
    return re.split(r"\.(?:\s|$)", re.sub(r",?\s*\[1\]", "", text), maxsplit=1)[0]


def facts(name: str, mechanism: Mechanism) -> str:
    """The columns of a row that follow from the description alone."""
    mobility = mechanism.mobility
    return (
        f'| <img src="pictures/{name}.png" width="220" alt="{name}"> '
        f"| **`{name}`** {about(name)} | {mobility.motion} | {len(mechanism.limbs)} "
        f"| {mobility.actuators} | {mobility.redundant_constraints} |"
    )


def modes(mechanism: Mechanism) -> str:
    """The columns of a row that the solvers find: numbers of working and of assembly modes at home."""
    from pkm_kinematics import Kinematics

    kinematics = Kinematics(mechanism)
    working = len(kinematics.inverse_all(kinematics.home))
    assembly = len(kinematics.forward_all(kinematics.inverse(kinematics.home).actuated))
    return f" {working} | {assembly} |"


def launch_file(name: str) -> str:
    """The launch file of a robot: that of the Delta with another name."""
    text = (LAUNCH / "delta.launch.py").read_text(encoding="utf-8")
    return re.sub(r"Brings up .*?: `", f"Brings up the gallery's {name}: `", text).replace("delta", name)


def check() -> list[str]:
    """Robots whose row or launch file is missing, or differs from what their description says."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    stale = [name for name in robot_names() if facts(name, load_mechanism(name)) not in page]
    for name in robot_names():
        path = LAUNCH / f"{name}.launch.py"
        if name != "delta" and not (path.exists() and path.read_text(encoding="utf-8") == launch_file(name)):
            stale.append(f"{name} (launch file)")
    return stale


def still(mechanism: Mechanism, path: Path) -> None:
    """Draw a robot at home, and keep of its colours as many as the eye tells apart: a third of the bytes."""
    from few_colours import in_few_colours
    from PIL import Image

    from pkm_description.picture import draw

    draw(mechanism, path)
    with Image.open(path) as drawn:
        (reduced,) = in_few_colours(mechanism, [drawn.convert("RGB")], 96)
    reduced.save(path, optimize=True)


def write() -> None:
    """Write the page and a picture of each robot."""
    PICTURES.mkdir(exist_ok=True)
    rows = []
    for name in robot_names():
        mechanism = load_mechanism(name)
        still(mechanism, PICTURES / f"{name}.png")
        rows.append(facts(name, mechanism) + modes(mechanism))
        print(rows[-1], flush=True)
    for name in robot_names():
        if name != "delta":
            (LAUNCH / f"{name}.launch.py").write_text(launch_file(name), encoding="utf-8")
    PAGE.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        stale = check()
        print("the gallery " + (f"is stale for {', '.join(stale)}" if stale else "fits the descriptions"))
        sys.exit(1 if stale else 0)
    if "--pictures" in sys.argv[1:]:
        for robot in robot_names():
            still(load_mechanism(robot), PICTURES / f"{robot}.png")
    else:
        write()
