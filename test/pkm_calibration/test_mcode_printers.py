# SPDX-License-Identifier: Apache-2.0
"""Printers with Marlin and RepRapFirmware whose truth is known, simulated by the firmwares' own equations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

from pkm_calibration.calibrate_command import main
from pkm_calibration.printer_calibration import calibrate_printer
from pkm_calibration.printer_files import read_mcode

Settings = dict[str, float]
START = {"L": 270.0, "R": 120.0, "H": 300.0, "M665.X": 0.0, "M665.Y": 0.0, "M665.Z": 0.0}
MARLIN = START | {"M666.X": -0.5, "M666.Y": -0.2, "M666.Z": 0.0, "M665.A": 0.1, "M665.B": 0.0, "M665.C": -0.1}
DUET = START | {"M666.X": 0.4, "M666.Y": -0.3, "M666.Z": -0.1, "M666.A": 0.3, "M666.B": -0.2}
OFF = {"R": 0.9, "H": -0.7, "M665.X": 0.4, "M665.Y": -0.3}
HEADS = {
    "marlin": "# FIRMWARE_NAME:Marlin 2.1\n# M665 L270 R120 H300 S160 X0 Y0 Z0 A0.1 B0 C-0.1\n# M666 X-0.5 Y-0.2 Z0\n",
    "reprapfirmware": "; RepRapFirmware\nM665 L270 R120 H300 B80 X0 Y0 Z0 ; delta\nM666 X0.4 Y-0.3 Z-0.1 A0.3 B-0.2\n",
}
TRUTH = {
    "marlin": MARLIN | {n: MARLIN[n] + d for n, d in OFF.items()} | {"M666.X": 0.0, "M666.Y": -0.6, "M666.Z": -0.3},
    "reprapfirmware": DUET | {n: DUET[n] + d for n, d in OFF.items()} | {"M666.X": -0.2, "M666.Y": 0.5, "M666.Z": -0.3},
}


def carriages(s: Settings, p: np.ndarray) -> np.ndarray:
    """Heights (3,) of carriages as a firmware computes them for a nozzle at p."""
    x, y, z = p
    turned = [np.radians(s[f"M665.{one}"]) for one in "XYZ"]
    radius, sixth = s["R"], np.pi / 6.0
    towers = np.array([
        [-radius * np.cos(sixth + turned[0]), -radius * np.sin(sixth + turned[0])],
        [radius * np.cos(sixth - turned[1]), -radius * np.sin(sixth - turned[1])],
        [-radius * np.sin(turned[2]), radius * np.cos(turned[2])],
    ])  # fmt: skip
    rods = s["L"] + np.array([s.get(f"M665.{one}", 0.0) for one in "ABC"])
    up = np.sqrt(rods**2 - np.sum((towers - [x, y]) ** 2, axis=1))
    return np.asarray(z + up + 0.01 * (x * s.get("M666.A", 0.0) + y * s.get("M666.B", 0.0)))


def endstops(firmware: str, s: Settings) -> np.ndarray:
    """Heights (3,) of carriages at their endstops as the firmware believes."""
    home = carriages(s, np.array([0.0, 0.0, s["H"]]))
    adjusted = np.array([s[f"M666.{one}"] for one in "XYZ"])
    return np.asarray(home - adjusted if firmware == "marlin" else home + adjusted)


def probed(firmware: str, seed: int = 0, noise: float = 0.01, wider: float = 0.0) -> str:
    """A file of a printer that is as `TRUTH` says, and `wider` [mm], while its settings are those of `HEADS`."""
    settings, truth = MARLIN if firmware == "marlin" else DUET, TRUTH[firmware]
    truth = truth | {"R": truth["R"] + wider}
    turn, random = np.radians(30.0 * np.arange(12)), np.random.default_rng(seed)
    ring = np.round(np.column_stack([np.cos(turn), np.sin(turn)]), 6) + 0.0
    rows = list[str]()
    for x, y in np.vstack([np.zeros((1, 2)), 80.0 * ring, 45.0 * ring[::2]]):

        def missing(q: np.ndarray, x: float = x, y: float = y) -> np.ndarray:
            """The nozzle is really on the bed at q[:2], and the firmware says (x, y, q[2])."""
            down = endstops(firmware, settings) - carriages(settings, np.array([x, y, q[2]]))
            real = endstops(firmware, truth) - carriages(truth, np.array([q[0], q[1], 0.0]))
            return np.asarray(down - real)

        z = scipy.optimize.fsolve(missing, np.array([x, y, 0.0]))[2] + noise * random.standard_normal()
        rows.append(f"{x:.4f},{y:.4f},{z:.5f}")
    return HEADS[firmware] + "x,y,z\n" + "\n".join(rows) + "\n"


@pytest.mark.by_day("marlin")
@pytest.mark.parametrize("firmware", list(HEADS))
def test_settings_are_found_within_their_intervals(
    firmware: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "probed.csv"
    path.write_text(probed(firmware))
    assert main([str(path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["firmware"] == firmware
    assert said["rms_after"] < 0.02 < 0.2 < said["rms_before"]
    assert set(said["parameters"]) == set(said["interval95"])
    assert "M665.Z" in said["unidentified"]
    inside = list[bool]()
    for seed in range(20):
        path.write_text(probed(firmware, seed))
        found = calibrate_printer(read_mcode(path))
        intervals = {n: one for n, one in found.intervals().items() if n not in found.unidentified}
        inside += [a - 1e-9 <= TRUTH[firmware].get(n, 270.0) <= b + 1e-9 for n, (a, b) in intervals.items()]
    assert np.mean(inside) > 0.89


@pytest.mark.parametrize("firmware", list(HEADS))
def test_a_firmware_with_the_pasted_lines_goes_where_it_says(
    firmware: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "probed.csv", tmp_path / "new.g"
    path.write_text(probed(firmware, noise=0.0))
    assert main([str(path), "-o", str(out)]) == 0
    assert "to send or paste:" in capsys.readouterr().out
    first, second, *rest = out.read_text().splitlines()
    assert ("S160" if firmware == "marlin" else "B80") in first
    assert rest == (["M500"] if firmware == "marlin" else [])
    words = [(f"{line.split()[0]}.{word[0]}", word[1:]) for line in (first, second) for word in line.split()[1:]]
    rods = np.array([float(one) for one in dict(words)["M665.L"].split(":")]) * np.ones(3)
    new = {name.removeprefix("M665.") if name[-1] in "RH" else name: value for name, value in words}
    numbers = {name: float(value) for name, value in new.items() if name != "M665.L"} | {"L": 0.0}
    for one, rod in zip("ABC", rods, strict=True):
        numbers[f"M665.{one}"] = rod + (numbers.get(f"M665.{one}", 0.0) if firmware == "marlin" else 0.0)
    truth = TRUTH[firmware]
    for point in np.array([[0.0, 0.0, 0.0], [70.0, 0.0, 0.0], [-30.0, 60.0, 5.0], [-30.0, -60.0, 50.0]]):
        down = endstops(firmware, numbers) - carriages(numbers, point)
        assert down == pytest.approx(endstops(firmware, truth) - carriages(truth, point), abs=0.01)


@pytest.mark.slow
def test_a_wrong_height_does_not_hide_a_wrong_radius(tmp_path: Path) -> None:
    """Far from the answer, what a parameter would explain looks like noise."""
    path, inside = tmp_path / "probed.csv", 0
    for seed in range(5):
        lines = probed("marlin", seed, wider=9.0).splitlines()
        x, y, z = lines[14].split(",")
        lines[14] = f"{x},{y},{float(z) + 4.0}"
        path.write_text("\n".join(lines) + "\n")
        found = calibrate_printer(read_mcode(path))
        assert (found.outliers, found.reasons) == (("point11",), ())
        low, high = found.intervals()["R"]
        inside += low < TRUTH["marlin"]["R"] + 9.0 < high
    assert inside >= 4  # of 95 % intervals


def test_points_in_the_middle_do_not_say_that_the_bed_is_known(tmp_path: Path) -> None:
    """As inches that are called mm."""
    path, known = tmp_path / "probed.csv", []
    for reach in (3.0, 60.0):
        at = reach * np.array([[0, 0], [1, 0], [0.5, 0.8], [-0.5, 0.8], [-1, 0], [-0.5, -0.8], [0.5, -0.8], [0.4, 0.1]])
        noise = 0.002 * np.random.default_rng(0).standard_normal(len(at))
        rows = [f"{x:.3f},{y:.3f},{z:.4f}" for (x, y), z in zip(at, noise, strict=True)]
        path.write_text(HEADS["marlin"] + "x,y,z\n" + "\n".join(rows) + "\n")
        bed = calibrate_printer(read_mcode(path)).bed
        assert bed is not None
        assert np.hypot(*bed[0].T).max() > 45.0
        known.append(float(np.nanmax(bed[2])))
    assert known[0] > 10.0 * known[1]


def test_an_endstop_that_is_0_by_rule_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "probed.csv"
    path.write_text(probed("marlin", 0))
    main([str(path)])
    told = capsys.readouterr().out
    assert "± 0.0000" not in told
    assert sum("by the firmware's rule, was" in line for line in told.splitlines()) == 1


BAD = {
    "a word": ("R120", "R12O", "line 2, M665: 'R12O'"),
    "above 0": ("X-0.5", "X0.5", "line 3, M666.X: is 0.5"),
    "a short row": ("x,y,z\n", "x,y,z\n1,2\n", "line 5: '1,2'"),
    "no rod": ("L270 ", "", "M665.L: is missing"),
    "no firmware": ("S160 X0 Y0 Z0 A0.1 B0 C-0.1", "", "line 2: may be from Marlin or RepRapFirmware"),
    "no endstops": ("# M666", "# M667", "M666: is missing"),
    "no reach": ("x,y,z\n", "x,y,z\n500,0,0\n", "line 5: the rods do not reach"),
    "metres": ("\n50,0,0\n0,50,0", "\n0.02,0,0\n0,0.02,0", "line 5: has points within 0.02 mm"),
    "twice": ("0,50,0\n", "0,50,0\n50,0,0\n", "line 8: equals line 6 in all digits"),
    "no header": ("x,y,z\n", "", "has no line 'x,y,z'"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_files_say_where(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, said = BAD[case]
    text = (HEADS["marlin"] + "x,y,z\n0,0,0\n50,0,0\n0,50,0\n").replace("# FIRMWARE_NAME:Marlin 2.1", "#")
    assert old in text
    path = tmp_path / "probed.csv"
    path.write_text(text.replace(old, new))
    assert main([str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
