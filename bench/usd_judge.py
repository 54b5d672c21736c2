# SPDX-License-Identifier: Apache-2.0
"""Our MJCF as others turn it into USD: `python -m bench.usd_judge mujoco_usd_converter [ROBOT...]`.

The converter (`pip install mujoco-usd-converter`, in an environment of its own) makes USD of a robot's MJCF, without
our remark; both are read, and efforts compared at home as MuJoCo draws it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from bench.timing import words
from pkm_description import load_mechanism
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_dynamics import Dynamics


def error(converter: str, name: str) -> float:
    """Largest difference of efforts, relative to the largest."""
    mechanism = load_mechanism(name)
    given = {"platform": mechanism.platform_link, "base": mechanism.base_link}
    text = re.sub("<(custom|keyframe)>.*?</\\1>", "", export_mjcf(mechanism), flags=re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{name}.xml"
        source.write_text(text)
        subprocess.run([converter, source, Path(folder) / "usd"], check=True, capture_output=True)
        theirs = Dynamics(load_mechanism(Path(folder) / "usd" / f"{name}.usda", given), friction=False)
    ours = Dynamics(load_mechanism(text, given), friction=False)
    home, random = ours.kinematics.home, np.random.default_rng(1)
    joints = dict(zip(ours.kinematics.joint_names, ours.kinematics.home_joints, strict=True))
    seed = [joints[one] for one in theirs.kinematics.joint_names]  # both may close their loops in another mode
    basis = ours.kinematics.subspace(home)
    twist, acceleration = (basis @ random.uniform(-1.0, 1.0, basis.shape[1]) for _ in range(2))
    places = ours.kinematics.at(home), theirs.kinematics.inverse(home, seed=seed)
    first, second = (
        one.inverse(at, twist, acceleration).effort for one, at in zip((ours, theirs), places, strict=True)
    )
    return float(np.abs(first - second).max() / np.abs(first).max())


if __name__ == "__main__":
    given = words(__doc__)
    for robot in given[1:] or ("five_bar", "planar_3rrr", "gough_stewart"):
        print(f"{robot}: {error(given[0], robot):.1e}")
