# SPDX-License-Identifier: Apache-2.0
"""The motion platform of examples/: the C on this computer and on an emulated Cortex-M7, judged in double by Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_dynamics import Dynamics
from pkm_dynamics.export_c.c_files import CFiles
from pkm_kinematics import Kinematics, Status

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "motion_platform"
ROBOTS = {"hobby_hexapod": ROOT / "docs" / "examples" / "hobby_hexapod.urdf.xacro", "seat": SOURCES / "seat.urdf.xacro"}
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
CORTEX = ["-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard", "-O2", "-ffunction-sections", "-Wl,--gc-sections"]
QEMU = "qemu-system-arm -M mps2-an500 -icount shift=0 -semihosting -display none -serial null -monitor none -kernel"
WEIGHT, SPACING = 9.80665, 0.02

pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler (gcc)")


class Run:
    """What the demo printed: lines of numbers each 20 ms, and its notes."""

    def __init__(self, text: str) -> None:
        self.notes = "\n".join(line for line in text.splitlines() if line.startswith("#"))
        self.rows = np.array([line.split(",") for line in text.splitlines() if line[0] != "#"], dtype=float)
        self.time, self.asked, self.counts = self.rows[:, 0], self.rows[:, 1], self.rows[:, 2:8]
        self.force, self.rate = self.rows[:, 8:11], self.rows[:, 11:14]

    def note(self, pattern: str) -> list[float]:
        found = re.search(pattern, self.notes)
        assert found, self.notes
        return [float(x) for x in found.groups()]


class Machine:
    """One robot: its C, and what Python knows of it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.dynamics = Dynamics(load_mechanism(ROBOTS[name]))
        self.kinematics: Kinematics = self.dynamics.kinematics
        for file, text in CFiles(self.dynamics, single=True).files.items():
            (folder / file).write_text(text, encoding="utf-8")
        settings = (SOURCES / "settings.h").read_text().split(f"{name}_settings")[1].split("}};")[0]
        self.settings = {k: float(v) for k, v in re.findall(r"\.(\w+) = ([\d.]+)f", settings)}
        self.seat = np.array([float(x) for x in re.findall(r"([\d.]+)f", settings.partition(".seat")[2])])
        self.build("gcc", [*STRICT, "-O0", "-g0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "demo")

    def build(self, compiler: str, options: list[str], out: str, *more: Path) -> None:
        sources = [SOURCES / "motion_platform.c", SOURCES / "demo.c", self.folder / f"{self.name}.c", *more]
        command = [compiler, *options, f"-DROBOT={self.name}", f"-I{self.folder}", *map(str, sources), "-lm", "-o", out]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]

    def run(self, *how: str) -> Run:
        done = subprocess.run([self.folder / "demo", *how], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr[-2000:]
        return Run(done.stdout)

    def stands(self, pose: Array, part: float = 1.0) -> bool:
        """Within ranges, or half a count beyond, and as far from singularities as asked, or a part of that."""
        found = self.kinematics.inverse(pose)
        ok = found.ok or (part < 1.0 and found.status == Status.JOINT_LIMIT)
        regularity = self.kinematics.at(pose).solved(jacobian=True).regularity
        condition = self.dynamics.inverse(self.kinematics.at(pose)).condition
        return bool(ok and min(regularity, condition) >= part * self.settings["least_margin"])

    def drives(self, counts: Array) -> Array:
        return self.kinematics.inverse(self.kinematics.home).actuated + counts / self.settings["counts_per_unit"]

    def poses(self, counts: Array) -> Array:
        poses, near = [], self.kinematics.home
        for drives in self.drives(counts):
            solution = self.kinematics.forward(drives, near=near)
            assert solution.status in (Status.CONVERGED, Status.JOINT_LIMIT)  # half a count beyond an end
            near = solution.pose
            poses.append(near)
        return np.array(poses)


@pytest.fixture(scope="module", params=["hobby_hexapod", pytest.param("seat", marks=pytest.mark.slow)])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(request.param, tmp_path_factory.mktemp(request.param))


def seat_of(machine: Machine, poses: Array) -> tuple[Array, Rotation]:
    """Places of the head from home, and attitudes."""
    attitude = Rotation.from_quat(poses[:, 3:])
    return poses[:, :3] + attitude.apply(machine.seat) - machine.kinematics.home[:3] - machine.seat, attitude


@pytest.mark.slow
@pytest.mark.by_day(0)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_seat_feels_what_python_computes_of_the_counts(machine: Machine, axis: int) -> None:
    run = machine.run(("surge", "sway")[axis])
    place, attitude = seat_of(machine, machine.poses(run.counts))
    force = (place[2:] - 2.0 * place[1:-1] + place[:-2]) / SPACING**2 + [0.0, 0.0, WEIGHT]
    force = attitude[1:-1].inv().apply(force)
    rate = attitude[1:-1].inv().apply((attitude[2:] * attitude[:-2].inv()).as_rotvec()) / (2.0 * SPACING)
    # seven digits of a metre, twice differenced over 20 ms
    np.testing.assert_allclose(run.force[2:], force, atol=0.02)
    np.testing.assert_allclose(run.rate[2:], rate, atol=1e-3)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_platform_does_what_the_filters_say(machine: Machine, axis: int) -> None:
    """Where no limit is met: the place of the seat by SciPy's linear systems, the felt force by its parts."""
    run, s = machine.run(("surge", "sway")[axis]), machine.settings
    assert run.note(r"made shorter (\d+), not made (\d+)") == [0, 0]
    time = np.arange(0.0, 10.0, s["period"])
    asked = np.select([time < 0.5, time < 3.5, time < 5.0, time < 7.0], [0.0, 4.0, 0.0, -8.0], 0.0)
    asked = np.clip(s["gain"] * asked, -s["largest"], s["largest"])
    w, split = s["washout"], s["split"]
    from scipy import signal  # which takes a second to import

    filters = signal.TransferFunction([1.0, 0.0], np.polymul([1.0, split], [1.0, 2.0 * w, w * w]))
    expected = np.interp(run.time - s["period"], time, signal.lsim(filters, asked, time)[1])
    place, attitude = seat_of(machine, machine.poses(run.counts))
    count = 2.0 / s["counts_per_unit"] * (0.02 if machine.name == "hobby_hexapod" else 1.0)  # m, at the horn's end
    np.testing.assert_allclose(place[:, axis], expected, atol=0.02 * np.abs(expected).max() + count)
    np.testing.assert_allclose(np.delete(place, axis, axis=1), 0.0, atol=2.0 * count)
    at_once = np.abs(run.time - SPACING - 0.55) < 0.045
    assert 0.4 < run.force[at_once, axis].mean() / (4.0 * s["gain"]) < 1.0  # by moving
    held = np.abs(run.time - 3.4) < 0.1
    np.testing.assert_allclose(run.force[held, axis].mean(), 4.0 * s["gain"], rtol=0.15)  # by tilting
    tilting = np.abs(np.gradient(attitude.as_euler("xyz")[:, 1 - axis], SPACING))
    assert tilting.max() < 1.02 * s["tilt_rate"] + 2.0 * count / (SPACING * 0.05)


def test_limits_hold_whatever_the_vehicle_does(machine: Machine) -> None:
    run = machine.run("wild")
    shorter, not_made, steps = run.note(r"made shorter (\d+), not made (\d+), of (\d+)")
    assert 0.1 * steps < shorter
    assert not_made < 0.3 * steps
    drives = machine.drives(run.counts)
    mechanism = machine.kinematics.mechanism
    limits = [mechanism.joint_named[name].limits for name in machine.kinematics.actuated_names]
    count = 1.0 / machine.settings["counts_per_unit"]
    assert (drives >= [one.lower - count for one in limits]).all()
    assert (drives <= [one.upper + count for one in limits]).all()
    rates = np.abs(np.diff(drives, axis=0))[np.diff(run.time) < 1.5 * SPACING]
    assert (rates <= 1.01 * SPACING * np.array([one.velocity for one in limits]) + 2.0 * count).all()
    assert np.ptp(run.counts, axis=0).min() * count > 0.5 * (limits[0].upper - limits[0].lower)  # it is driven about
    for pose in machine.poses(run.counts)[::10]:
        assert machine.stands(pose, part=0.9)


def test_the_room_that_is_seen_from_home(machine: Machine) -> None:
    run, kinematics = machine.run(), machine.kinematics
    for axis, letter in enumerate("xyzRPY"):
        least, most = run.note(rf"# {letter}: (-[\d.]+) to ([\d.]+)")
        for end in (least, most):
            for part, within in ((0.995, True), (1.005, False)):
                pose = kinematics.home.copy()
                if axis < 3:
                    pose[axis] += part * end
                else:
                    turn = Rotation.from_rotvec(part * end * np.eye(3)[axis - 3])
                    pose[:3] += machine.seat - turn.apply(machine.seat)
                    pose[3:] = (turn * Rotation.from_quat(pose[3:])).as_quat()
                assert machine.stands(pose) == within, (letter, end)


needs_cortex = pytest.mark.skipif(
    not (shutil.which("qemu-system-arm") and shutil.which("arm-none-eabi-gcc")),
    reason="no qemu-system-arm, or no arm-none-eabi-gcc with newlib",
)


@pytest.mark.slow
@needs_cortex
def test_a_cortex_m7_does_the_same_and_counts_its_instructions(machine: Machine) -> None:
    script = ["-std=c99", "--specs=rdimon.specs", "-T", str(SOURCES / "mps2.ld")]
    machine.build("arm-none-eabi-gcc", [*CORTEX, *script], "demo.elf", SOURCES / "mps2.c")
    done = subprocess.run(
        [*QEMU.split(), str(machine.folder / "demo.elf")], capture_output=True, text=True, timeout=120
    )
    run, here = Run(done.stdout), machine.run()
    assert len(run.rows) == len(here.rows)
    assert np.abs(run.counts - here.counts).max() <= 1.0  # its last digits are others
    assert abs(run.note(r"two million instructions are counted as (\d+)")[0] - 2e6) < 200  # three ticks, and the call
    mean, most, back = run.note(r"mean (\d+), at most (\d+); to compute back at most (\d+)")
    print(f"{machine.name}: {mean:.0f} instructions per step, at most {most:.0f}, {back:.0f} to compute back")
    assert 5_000 < mean <= most < 15_000
    assert back < 25_000


ARDUINO = """
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
struct Port { void begin(long); int available(); int read(); void println(const char *); };
extern Port Serial;
unsigned long millis();
unsigned long micros();
void delay(unsigned long);
bool ledcAttach(uint8_t pin, uint32_t frequency, uint8_t bits);
bool ledcWrite(uint8_t pin, uint32_t duty);
"""
COMPILERS: dict[str, Callable[[], list[str]]] = {
    "g++": lambda: ["-std=c++17", "-Wall", "-Wextra", "-Werror"],
    "riscv64-unknown-elf-g++": lambda: ["-std=c++17", "-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"],
}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_sketch_compiles(compiler: str, tmp_path: Path) -> None:
    """Against declarations of what it uses of Arduino, not the real core; for the ESP32-C3's processor if possible."""
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    (tmp_path / "nothing.cpp").touch()
    specs = [option for option in COMPILERS[compiler]() if option.startswith("--specs")]
    if (
        specs
        and subprocess.run([compiler, *specs, "-E", str(tmp_path / "nothing.cpp")], capture_output=True).returncode
    ):
        pytest.skip(f"{compiler} has no picolibc (Debian: picolibc-riscv64-unknown-elf)")
    (tmp_path / "Arduino.h").write_text(ARDUINO)
    sketch = SOURCES / "motion_platform_esp32"
    options = [*COMPILERS[compiler](), f"@{sketch / 'build_opt.h'}", f"-I{tmp_path}", f"-I{SOURCES}"]
    source = str(sketch / "motion_platform_esp32.ino")
    done = subprocess.run(
        [compiler, *options, "-x", "c++", "-c", source, "-o", str(tmp_path / "sketch.o")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[:2000]
