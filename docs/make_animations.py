# SPDX-License-Identifier: Apache-2.0
"""Write the moving pictures of the README: robots on the motion that `./pkm run` gives them, in slow motion.

`python docs/make_animations.py [ROBOT ...]` plans a cycle of each within the limits of its actuators, solves inverse
kinematics along it, and draws what the joints make of it, as the gallery does, into docs/pictures/ROBOT.gif.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from few_colours import in_few_colours
from PIL import Image

from pkm_bringup.main_job import planned
from pkm_description import load_mechanism
from pkm_description.joint_geometry import home_positions
from pkm_description.mechanism import Array, Mechanism
from pkm_description.picture import View, canvas, held, link_poses, paint
from pkm_kinematics import Kinematics

PICTURES = Path(__file__).resolve().parent / "pictures"
ROBOTS = ("delta", "gough_stewart", "quattro", "agile_eye", "five_bar", "cable_8")
SIZE, FRAMES, PERIOD = 320, 32, 0.1  # pixels, pictures in a cycle, seconds for which each is shown
COLOURS = 32
CLOSED = 1e-9  # m: how far from its plan the joints may put the platform in a picture


def positions(kinematics: Kinematics, poses: Array) -> Array:
    """Positions (n, joints) as `link_poses` takes them, at platform poses (n, 7)."""
    solution = kinematics.inverse(poses)
    if not np.all(solution.ok):
        raise RuntimeError(f"{kinematics.mechanism.name} cannot follow its plan")
    columns = [kinematics.joint_names.index(name) for name in home_positions(kinematics.mechanism)]
    joints = np.asarray(solution.joints)[:, columns]
    platform = kinematics.mechanism.platform_link
    shown = np.array([link_poses(kinematics.mechanism, row)[platform][:3, 3] for row in joints])
    off = float(np.abs(shown - poses[:, :3]).max())
    if off > CLOSED:
        raise RuntimeError(f"{kinematics.mechanism.name}: the picture would be off by {off:.1e} m")
    return joints


def picture(mechanism: Mechanism, view: View, joints: Array) -> Image.Image:
    """One picture of the motion."""
    figure, axes = canvas(2 * SIZE, 4.4)  # drawn larger and reduced: lines stay smooth
    paint(axes, mechanism, view, joints)
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())  # type: ignore[attr-defined]
    return Image.fromarray(pixels[..., :3].copy()).resize((SIZE, SIZE), Image.Resampling.LANCZOS)


def write(name: str) -> str:
    """Write the moving picture of a robot.

    Args:
        name: of the robot.

    Returns:
        What was written, in a line.
    """
    mechanism = load_mechanism(name)
    plan = planned(mechanism, "auto")
    duration = plan.job.cycle.duration
    poses = plan.job.cycle.sample(np.linspace(0.0, duration, FRAMES, endpoint=False)).pose
    joints = positions(plan.planner.kinematics, poses)
    view = View(np.concatenate([held(mechanism, row) for row in joints]))
    pictures = [picture(mechanism, view, row) for row in joints]
    reduced = in_few_colours(mechanism, pictures, COLOURS)
    path = PICTURES / f"{name}.gif"
    period = max(PERIOD, duration / FRAMES)
    reduced[0].save(path, save_all=True, append_images=reduced[1:], duration=round(1000 * period), loop=0, disposal=1)
    slower = FRAMES * period / duration
    return f"{path}: {path.stat().st_size // 1000} kB, {plan.motion.source}, {slower:.1f} times slower than it runs"


if __name__ == "__main__":
    for robot in sys.argv[1:] or ROBOTS:
        print(write(robot), flush=True)
