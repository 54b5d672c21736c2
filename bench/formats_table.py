# SPDX-License-Identifier: Apache-2.0
"""Robots through formats and back: `python -m bench.formats_table` writes the table of docs/formats.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from bench.timing import words
from pkm_description import load_mechanism
from pkm_description.formats.convert import WRITERS
from pkm_description.gallery import robot_names
from pkm_dynamics import Dynamics

FORMATS = ("mjcf", "sdf", "urdf+constraint", "usd")
PAGE = Path(__file__).parents[1] / "docs" / "formats.md"


def errors(name: str, kind: str) -> tuple[float, float]:
    """Largest error of actuated joints [m or rad], and of efforts relative to the largest, over motions near home."""
    mechanism = load_mechanism(name)
    ours = Dynamics(mechanism, friction=False)
    theirs = Dynamics(load_mechanism(WRITERS[kind](mechanism)[0]), friction=False)
    k, random = ours.kinematics, np.random.default_rng(4)
    joints = efforts = 0.0
    for _ in range(5):
        coordinates = k.home_joints[[k.joint_names.index(one) for one in k.engine.task.names]]
        near = coordinates + 0.02 * k.characteristic_length * random.uniform(-1.0, 1.0, len(coordinates))
        pose = k.engine.inputs.poses_at(near[None])[0] if len(near) else k.home
        basis = k.subspace(pose)
        twist, acceleration = (basis @ random.uniform(-1.0, 1.0, basis.shape[1]) for _ in range(2))
        solved = k.inverse(pose), theirs.kinematics.inverse(pose)
        joints = max(joints, float(np.abs(solved[0].actuated - solved[1].actuated).max()))
        first, second = (one.inverse(pose, twist, acceleration).effort for one in (ours, theirs))
        if np.isfinite(first).all():
            efforts = max(efforts, float(np.abs(first - second).max() / np.abs(first).max()))
    return joints, efforts


def main() -> None:
    """Write the table."""
    words(__doc__)
    rows = ["| format | robots | joints | efforts |", "|---|---|---|---|"]
    for kind in FORMATS:
        found = np.array([errors(name, kind) for name in robot_names()])
        rows.append(f"| `{kind}` | {len(found)} | {found[:, 0].max():.1e} | {found[:, 1].max():.1e} |")
        print(rows[-1])
    page = PAGE.read_text(encoding="utf-8")
    table = re.compile(r"\| format \| robots \|.*?(?=\n\n|\Z)", re.DOTALL)
    PAGE.write_text(table.sub("\n".join(rows), page).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
