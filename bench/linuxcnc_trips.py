# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.linuxcnc_trips [--n 1000000] [--write FILE]`: a hexapod in LinuxCNC, beside its `genhexkins`.

Poses go to joints and back through the modules that LinuxCNC loads, as Debian's `linuxcnc-uspace` has genhexkins and
`halcompile` compiles ours. They are those that the robot reaches from home without a singularity on the straight way,
tilted by up to 60 degrees; half of them are of whole tens of mm and fives of degrees, as programs have them.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from bench.tables import table
from pkm_description import load_mechanism
from pkm_description.mechanism import Array, Mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.machines import linuxcnc_files
from pkm_kinematics import Kinematics

GENHEXKINS = Path("/usr/lib/linuxcnc/modules/genhexkins.so")
BANDS = (0.0, 15.0, 30.0, 45.0, 90.0)
BEGIN, END = "<!-- trips -->\n", "<!-- end of trips -->\n"
BACK, NO_JOINTS, REFUSED, ANOTHER = range(4)


def poses_of(rows: Array) -> Array:
    """Poses (n, 7) in m of rows in mm and degrees."""
    return np.hstack([rows[:, :3] / 1000.0, Rotation.from_euler("xyz", rows[:, 3:], degrees=True).as_quat()])


def drawn(kinematics: Kinematics, n: int, seed: int = 1) -> Array:
    """Rows (x, y, z, a, b, c) in mm and degrees, as said above."""
    rng, found = np.random.default_rng(seed), list[Array]()
    home = kinematics.home
    side = kinematics.at(home).singularity.determinant_sign
    while sum(map(len, found)) < n:
        size = min(2 * n, 50_000)
        tilt, way, yaw = np.radians([60.0, 180.0, 30.0])[:, None] * rng.uniform([[0.0], [-1.0], [-1.0]], 1.0, (3, size))
        axis = np.stack([np.cos(way), np.sin(way), np.zeros(size)], axis=1)
        turn = Rotation.from_rotvec(axis * tilt[:, None]) * Rotation.from_rotvec(np.outer(yaw, [0.0, 0.0, 1.0]))
        rows = np.hstack(
            [1000.0 * home[:3] + rng.uniform(-100.0, 100.0, (size, 3)), turn.as_euler("xyz", degrees=True)]
        )
        rows[::2] = np.round(rows[::2] / [10, 10, 10, 5, 5, 5]) * [10, 10, 10, 5, 5, 5]
        poses, good = poses_of(rows), kinematics.inverse(poses_of(rows)).ok
        vectors = Rotation.from_quat(poses[:, 3:]).as_rotvec()
        for part in (0.25, 0.5, 0.75, 1.0):
            turned = Rotation.from_rotvec(part * vectors).as_quat()
            way_there = np.hstack([home[:3] + part * (poses[:, :3] - home[:3]), turned])
            margins = kinematics.at(way_there).singularity
            good &= (margins.determinant_sign == side) & (margins.condition > 0.01)
        found.append(rows[good])
    return np.concatenate(found)[:n]


def genhex_pins(mechanism: Mechanism) -> list[str]:
    """What sets the pins of genhexkins to the joint centres of a 6-UPS robot."""
    base = [mechanism.joint_named[f"limb{i + 1}_first"].origin for i in range(6)]
    platform = [loop.successor_frame for loop in mechanism.loops]
    return [
        f"genhexkins.{where}.{i}.{letter}={1000.0 * float(frames[i][k, 3])!r}"
        for where, frames in (("base", base), ("platform", platform))
        for i in range(6)
        for k, letter in enumerate("xyz")
    ]


def compiled(files: CFiles, folder: Path) -> Path:
    """Our module, by halcompile."""
    for name, text in {**files.files, **linuxcnc_files(files)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    component = f"{files.name}kins"
    subprocess.run(["halcompile", "--compile", f"{component}.comp"], cwd=folder, check=True, capture_output=True)
    return folder / f"{component}.so"


def trips_program(folder: Path) -> Path:
    """The program that loads a module and sends poses through it."""
    program = folder / "trips"
    options = ["-std=gnu99", "-O2", "-Wall", "-Wextra", "-Werror", "-rdynamic"]
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["gcc", *options, str(source), "-ldl", "-lm", "-o", str(program)], check=True)
    return program


def trips(program: Path, module: Path, rows: Array, begin: Array, pins: Sequence[str] = ()) -> tuple[Array, float]:
    """What became of each pose, and ns per forward kinematics."""
    given = np.ascontiguousarray(np.hstack([rows, begin])).tobytes()
    done = subprocess.run([str(program), str(module), "1", *pins], input=given, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8), float(done.stderr)


def begins(kinematics: Kinematics, rows: Array) -> dict[str, Array]:
    """Where forward kinematics starts: a period of motion away, within 1 mm and 0.25 degrees; and home."""
    away = np.random.default_rng(2).uniform(-1.0, 1.0, rows.shape) * [1, 1, 1, 0.25, 0.25, 0.25]
    home = np.concatenate([1000.0 * kinematics.home[:3], np.zeros(3)])
    return {"the last period": rows + away, "home": np.tile(home, (len(rows), 1))}


def measured(robot: str, n: int) -> list[list[str]]:
    """Rows of the table: from where, tilt, poses, lost by genhexkins and by ours."""
    files = CFiles(Dynamics(load_mechanism(robot)))
    kinematics = files.kinematics
    rows = drawn(kinematics, n)
    tilt = np.degrees(np.arccos(np.clip(Rotation.from_quat(poses_of(rows)[:, 3:]).as_matrix()[:, 2, 2], -1.0, 1.0)))
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, ours = trips_program(folder), compiled(files, folder)
        for where, begin in begins(kinematics, rows).items():
            theirs = trips(program, GENHEXKINS, rows, begin, genhex_pins(kinematics.mechanism))
            mine = trips(program, ours, rows, begin)
            whole = f"all, {theirs[1] / 1000:.1f} and {mine[1] / 1000:.1f} µs"
            bands = {
                f"{low:.0f}° to {min(high, 60.0):.0f}°": (tilt >= low) & (tilt < high) for low, high in pairwise(BANDS)
            }
            for words, band in {**bands, whole: np.full(len(rows), True)}.items():
                counts = [np.sum(codes[band] == what) for codes, _ in (theirs, mine) for what in (REFUSED, ANOTHER)]
                lines.append([where, words, *map(str, [band.sum(), *counts])])
            assert not np.any(mine[0] == NO_JOINTS)
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or write it into a page."""
    p = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    p.add_argument("--n", type=int, default=1_000_000, help="poses")
    p.add_argument("--write", type=Path, metavar="FILE", help="page with the table to write anew")
    given = p.parse_args(arguments)
    header = ["begun at", "tilt", "poses", "genhexkins: refused", "another pose", "ours: refused", "another pose"]
    text = table(header, measured("gough_stewart", given.n))
    if given.write:
        page = given.write.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        given.write.write_text(head + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
