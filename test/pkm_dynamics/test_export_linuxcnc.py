# SPDX-License-Identifier: Apache-2.0
"""Robots as kinematics of LinuxCNC: round trips through the module, as halcompile or stand-ins compile it."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.linuxcnc_trips import (
    ANOTHER,
    BACK,
    GENHEXKINS,
    NO_JOINTS,
    begins,
    compiled,
    drawn,
    genhex_pins,
    trips,
    trips_program,
)
from pkm_bringup.command_line.export_robot import main
from pkm_description import load_mechanism
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_dynamics.export_c.machines import linuxcnc_files
from pkm_dynamics.export_c.recorded_function import ExportError

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler (gcc)")

# what a component's C asks of LinuxCNC's headers: the shape of a pose, and words that here do nothing
KINEMATICS_H = """
typedef struct { struct { double x, y, z; } tran; double a, b, c, u, v, w; } EmcPose;
typedef unsigned long KINEMATICS_FORWARD_FLAGS, KINEMATICS_INVERSE_FLAGS;
typedef enum { KINEMATICS_BOTH = 4 } KINEMATICS_TYPE;
#define FUNCTION(name) void name(void)
#define KINS_NOT_SWITCHABLE
#define EXPORT_SYMBOL(name) extern int name##_is_exported
int rtapi_app_main(void) { return 0; }
"""


def compiled_by_stand_ins(files: CFiles, folder: Path) -> Path:
    for name, text in {**files.files, **linuxcnc_files(files)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "kinematics.h").write_text(KINEMATICS_H)
    source = folder / f"{files.name}kins.c"
    source.write_text((folder / f"{files.name}kins.comp").read_text().partition("\n;;\n")[2])
    options = ["-std=gnu99", "-O0", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC", "-I."]
    module = folder / f"{files.name}kins.so"
    command = ["gcc", *options, source.name, "-lm", "-o", module.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return module


needs_halcompile = pytest.mark.skipif(not shutil.which("halcompile"), reason="no halcompile (linuxcnc-uspace-dev)")


@pytest.mark.by_day("delta")
@pytest.mark.parametrize(
    ("robot", "compiler"),
    [
        *((robot, compiled_by_stand_ins) for robot in ("hexa", "delta", "linear_delta")),
        pytest.param("gough_stewart", compiled_by_stand_ins, marks=pytest.mark.slow),
        pytest.param("delta", compiled, marks=[needs_halcompile, pytest.mark.slow]),
    ],
)
def test_poses_come_back(robot: str, compiler: Callable[[CFiles, Path], Path], tmp_path: Path) -> None:
    files = CFiles(Dynamics(load_mechanism(robot)))
    kinematics, rng = files.kinematics, np.random.default_rng(5)
    module = compiler(files, tmp_path)
    rows = np.hstack([1000.0 * kinematics.home[:3] + rng.uniform(-50.0, 50.0, (2000, 3)), np.zeros((2000, 3))])
    if robot in ("gough_stewart", "hexa"):
        rows[:, 3:] = rng.uniform(-10.0, 10.0, (2000, 3))
    for begin in begins(kinematics, rows).values():
        codes, _ = trips(trips_program(tmp_path), module, rows, begin)
        assert np.mean(codes == NO_JOINTS) < 0.2  # out of reach, or of a joint's range
        assert (codes[codes != NO_JOINTS] == BACK).all()


@pytest.mark.slow
@needs_halcompile
@pytest.mark.skipif(not GENHEXKINS.exists(), reason="no genhexkins (linuxcnc-uspace)")
def test_where_genhexkins_loses_poses(tmp_path: Path) -> None:
    """Begun at home, where its Newton's method diverges: ours refuses a few, finds no other pose, loses none nearby."""
    files = CFiles(Dynamics(load_mechanism("gough_stewart")))
    rows = drawn(files.kinematics, 5000)
    program, ours = trips_program(tmp_path), compiled(files, tmp_path)
    lost = {}
    for where, begin in begins(files.kinematics, rows).items():
        theirs, _ = trips(program, GENHEXKINS, rows, begin, genhex_pins(files.kinematics.mechanism))
        mine, _ = trips(program, ours, rows, begin)
        assert not (mine == ANOTHER).any()
        assert np.mean(theirs == BACK) > 0.4  # it has the same robot
        lost[where] = np.mean(theirs != BACK), np.mean(mine != BACK)
    assert lost["the last period"][1] == 0.0
    assert lost["home"][1] < 0.03
    assert lost["home"][0] > 10.0 * lost["home"][1]


def test_what_the_ini_file_has() -> None:
    files = CFiles(Dynamics(load_mechanism("delta")))
    text = linuxcnc_files(files)["delta.ini"]
    assert not re.search(r"=.*#", text)  # LinuxCNC takes what follows for the value
    ini = configparser.ConfigParser()
    ini.read_string(text)
    assert ini["KINS"] == {"kinematics": "deltakins", "joints": "3"}
    assert ini["TRAJ"]["coordinates"] == "XYZ"
    limits = files.kinematics.mechanism.joint_named["limb1_arm"].limits
    np.testing.assert_allclose(float(ini["JOINT_0"]["max_limit"]), np.rad2deg(limits.upper), atol=1e-6)
    np.testing.assert_allclose(float(ini["TRAJ"]["home"].split()[2]), 1000.0 * files.kinematics.home[2], atol=1e-6)
    step = 1e-6  # m: how far the fastest arm turns when the platform goes down by that
    pose = files.kinematics.home - [0, 0, step, 0, 0, 0, 0]
    turned = files.kinematics.inverse(pose).actuated - files.kinematics.inverse(files.kinematics.home).actuated
    fastest = 1000.0 * limits.velocity / (np.abs(turned).max() / step)
    np.testing.assert_allclose(float(ini["AXIS_Z"]["max_velocity"]), fastest, rtol=1e-4)


def test_what_a_description_does_not_bound_is_left_to_the_user() -> None:
    text = re.sub(r'velocity="[\d.]+"', 'velocity="0"', load_mechanism("delta").urdf)
    ini = linuxcnc_files(CFiles(Dynamics(load_mechanism(text))))["delta.ini"]
    assert "inf" not in ini
    assert "\n# yours: MAX_VELOCITY =\n" in ini


@pytest.mark.slow
def test_what_linuxcnc_cannot_have_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dynamics = Dynamics(load_mechanism("five_bar"))
    with pytest.raises(ExportError, match=r"five_bar.*--scalar"):
        linuxcnc_files(CFiles(dynamics, single=True))
    assert main(["five_bar", "--to", "linuxcnc", "-o", str(tmp_path)]) == 0
    assert "COORDINATES = " in (tmp_path / "five_bar.ini").read_text()
    assert main(["tricept", "--to", "linuxcnc", "-o", str(tmp_path)]) == 2
    assert "tricept" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["delta", "--to", "linuxcnc"])


def test_what_others_wrote_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written beside a foreign file; what was exported may be exported again."""
    command = ["five_bar", "--to", "linuxcnc", "-o", str(tmp_path)]
    mine = tmp_path / "CMakeLists.txt"
    mine.write_text("project(mine)\n")
    assert main(command) == 2
    assert "CMakeLists.txt: it is there, and was not written" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["CMakeLists.txt"]
    mine.unlink()
    assert main(command) == main(command) == 0
    assert "add_library" in mine.read_text()
    assert main([*command[:-1], str(mine)]) == 2
    assert "name another place" in capsys.readouterr().err
    for ignored in (["--scalar", "float"], ["--layout", "arduino"]):
        with pytest.raises(SystemExit):
            main(["five_bar", *ignored])
