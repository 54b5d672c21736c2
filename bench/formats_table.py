# SPDX-License-Identifier: Apache-2.0
"""Robots through formats and back: `python -m bench.formats_table` writes the table of docs/formats.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bench.timing import words
from pkm_analysis.zoo import gap_of
from pkm_description import load_mechanism
from pkm_description.formats.convert import WRITERS
from pkm_description.gallery import robot_names
from pkm_description.load import load_model
from pkm_dynamics import Dynamics

FORMATS = ("mjcf", "sdf", "urdf+constraint", "usd")
PAGE = Path(__file__).parents[1] / "docs" / "formats.md"


def errors(ours: Dynamics, kind: str) -> tuple[float, float, float]:
    """Gap of the loops that come back [m], largest error over motions of actuated joints [m or rad] and of efforts [1].

    Motions are near home, errors of efforts relative to the largest.
    """
    text = WRITERS[kind](ours.kinematics.mechanism)[0]
    theirs = Dynamics(load_mechanism(text), friction=False)
    k, random = ours.kinematics, np.random.default_rng(4)
    joints, efforts = list[float](), list[float]()
    for _ in range(5):
        coordinates = k.home_joints[[k.joint_names.index(one) for one in k.engine.task.names]]
        near = coordinates + 0.02 * k.characteristic_length * random.uniform(-1.0, 1.0, len(coordinates))
        pose = k.engine.inputs.poses_at(near[None])[0] if len(near) else k.home
        pose = pose if k.constant_space else k.nearest(pose).pose
        basis = k.subspace(pose)
        twist, acceleration = (basis @ random.uniform(-1.0, 1.0, basis.shape[1]) for _ in range(2))
        if not k.constant_space:  # a motion space that turns adds to accelerations what belongs to the twist
            twist = np.zeros(6)
        solved = k.inverse(pose), theirs.kinematics.inverse(pose)
        joints.append(float(np.abs(solved[0].actuated - solved[1].actuated).max()))
        first, second = (one.inverse(pose, twist, acceleration).effort for one in (ours, theirs))
        efforts.append(float(np.abs(first - second).max() / np.abs(first).max()))
    return gap_of(load_model(text)), max(joints), max(efforts)


def _number(x: float) -> str:
    return "–" if np.isnan(x) else f"{x:.0e}" if x else "0"


def main() -> None:
    """Write the table."""
    words(__doc__)
    rows = [f"| robot | {' | '.join(f'`{kind}`' for kind in FORMATS)} |", "|---" * (1 + len(FORMATS)) + "|"]
    for name in robot_names():
        ours = Dynamics(load_mechanism(name), friction=False)
        cells = (", ".join(_number(x) for x in errors(ours, kind)) for kind in FORMATS)
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
        print(rows[-1], flush=True)
    page = PAGE.read_text(encoding="utf-8")
    table = re.compile(r"\| robot \| `mjcf` \|.*?(?=\n\n|\Z)", re.DOTALL)
    PAGE.write_text(table.sub("\n".join(rows), page).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
