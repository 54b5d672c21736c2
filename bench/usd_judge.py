# SPDX-License-Identifier: Apache-2.0
"""Our MJCF as others turn it into USD: `python -m bench.usd_judge mujoco_usd_converter [ROBOT...]`.

The converter (`pip install mujoco-usd-converter`, in an environment of its own) makes USD of a robot's MJCF, without
our remark and drawn at home, since its USD says no positions; both are read, and efforts compared there.

With the Python of an environment in its place that has Newton (`pip install newton[importers]`), Newton opens our USD.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from bench.timing import words
from pkm_description import load_mechanism
from pkm_description.formats.mjcf_export import export_mjcf
from pkm_description.formats.usd import to_usd
from pkm_description.gallery import robot_names
from pkm_dynamics import Dynamics


def drawn_at_home(text: str) -> str:
    """MJCF whose bodies stand at zero as its keyframe wants them, without keyframe and remarks."""
    spec = mujoco.MjSpec.from_string(text)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    for body in spec.bodies[1:]:
        parent = body.parent.id
        back, position, turn = np.empty(4), np.empty(3), np.empty(4)
        mujoco.mju_negQuat(back, data.xquat[parent])
        mujoco.mju_rotVecQuat(position, data.xpos[body.id] - data.xpos[parent], back)
        mujoco.mju_mulQuat(turn, back, data.xquat[body.id])
        body.pos, body.quat = position, turn
    for one in (*spec.keys, *spec.texts, *spec.numerics):
        spec.delete(one)
    return str(spec.to_xml())


def error(converter: str, name: str) -> float:
    """Largest difference of efforts, relative to the largest."""
    mechanism = load_mechanism(name)
    given = {"platform": mechanism.platform_link, "base": mechanism.base_link}
    text = drawn_at_home(export_mjcf(mechanism))
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


# By Newton's own Python: how far its loops are open where it begins [m], and how many it has.
IN_NEWTON = """
import sys, newton, numpy as np
builder = newton.ModelBuilder()
builder.add_usd(sys.argv[1])
model = builder.finalize(device="cpu")
state = model.state()
newton.eval_fk(model, model.joint_q, model.joint_qd, state)
places, loops, gap = state.body_q.numpy(), model.joint_articulation.numpy() < 0, 0.0
def at(body, p):
    if body < 0:
        return p
    v, w = places[body, 3:6], places[body, 6]
    t = 2.0 * np.cross(v, p)
    return places[body, :3] + p + w * t + np.cross(v, t)
for j in np.flatnonzero(loops):
    ends = [at(getattr(model, f"joint_{one}").numpy()[j], getattr(model, f"joint_X_{one[0]}").numpy()[j, :3])
            for one in ("parent", "child")]
    gap = float(np.maximum(gap, np.linalg.norm(ends[0] - ends[1])))
print(f"{loops.sum()} loops, open by {gap:.1e} m")
"""


def opened(python: str, name: str) -> str:
    """What Newton makes of our USD, by the Python that has it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.usda"
        file.write_text(to_usd(load_mechanism(name))[0])
        done = subprocess.run([python, "-c", IN_NEWTON, file], capture_output=True, text=True, check=False)
    return (done.stdout if done.returncode == 0 else done.stderr).splitlines()[-1]


if __name__ == "__main__":
    given = words(__doc__)
    newton = Path(given[0]).name.startswith("python")
    for robot in given[1:] or (robot_names() if newton else ("five_bar", "planar_3rrr", "gough_stewart")):
        print(f"{robot}: {opened(given[0], robot) if newton else format(error(given[0], robot), '.1e')}")
