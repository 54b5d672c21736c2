# SPDX-License-Identifier: Apache-2.0
"""Printers whose truth is known: found within the intervals; what cannot be is held, named or refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pkm_calibration.calibrate_command import main
from pkm_calibration.printer_calibration import Calibrated, calibrate_printer
from pkm_calibration.printer_files import read_klipper
from pkm_calibration.printer_models import STEP, nozzle
from test.pkm_calibration.simulated_printers import LINEAR, ROTARY, model_of, simulated

OUTER = {f"distance{k}": -65.0 for k in range(6, 12)}


def calibrated(folder: Path, **how: object) -> tuple[Calibrated, np.ndarray]:
    printer = simulated(**how)  # type: ignore[arg-type]
    return calibrate_printer(read_klipper(printer.write(folder))), printer.truth


@pytest.mark.parametrize(("kinematics", "x"), [("delta", LINEAR), ("rotary_delta", ROTARY)])
def test_models_go_there_and_back(kinematics: str, x: np.ndarray) -> None:
    model, random = model_of(kinematics), np.random.default_rng(0)
    x = x + np.r_[random.normal(0.0, 0.5, len(x) - 1), 0.001]
    points = np.column_stack([random.uniform(-60.0, 60.0, (20, 2)), random.uniform(0.0, 50.0, 20)])
    counts = model.counts(x, points)
    assert nozzle(model, x, counts) == pytest.approx(points, abs=1e-9)


def test_heights_of_klippers_own_test_are_flat_with_its_settings() -> None:
    """Figures of Klipper's regression test, which are facts: all heights are 0 with these settings."""
    x = np.array([174.750004, 297.04997, 297.050132, 297.0499, 210.000032, 329.999997, 90.0, 333.000032, 332.999811])
    x = np.r_[x, 333.000181, 0.0]
    counts = np.array(
        [[2970499.999] * 3, [3163266.999, 3163266.999, 2727853.999], [2749008.999, 3138330.999, 3138330.999]]
    )
    model = type(model_of("delta"))(np.full(3, 0.32 / 3200.0))
    assert nozzle(model, x, counts)[:, 2] == pytest.approx(0.0, abs=2e-3)


def test_each_rod_has_its_length(tmp_path: Path) -> None:
    found, truth = calibrated(tmp_path)
    assert found.reasons == ()
    assert found.unidentified == ("stepper_c.angle", "rotation_distance")
    assert np.all(np.abs(found.values - truth) <= 1.5 * found.half + 1e-9)
    assert found.rms[1] < 0.03 < found.rms[0]


def test_heights_alone_hold_the_rods(tmp_path: Path) -> None:
    found, truth = calibrated(tmp_path, distances=False, rods=0.0)
    assert set(found.unidentified) == {
        "stepper_c.angle",
        "rotation_distance",
        *(f"stepper_{one}.arm_length" for one in "abc"),
    }
    assert np.abs(found.values - truth).max() < 0.5
    assert found.intervals()["printer.delta_radius"][0] < found.intervals(exact=True)["printer.delta_radius"][0]


def test_a_rotary_delta_with_all_measurements_is_solved(tmp_path: Path) -> None:
    found, truth = calibrated(tmp_path, kinematics="rotary_delta", manual=True)
    assert found.reasons == ()
    assert np.all(np.abs(found.values - truth)[:-1] <= 1.5 * found.half[:-1] + 1e-9)
    assert found.rms[1] < 0.05


def test_a_wrong_gear_is_told_as_what_it_is(tmp_path: Path) -> None:
    printer = simulated("rotary_delta", seed=2, manual=True, rods=0.1)  # of others, rods and radii take it up
    path = printer.write(tmp_path)
    path.write_text(path.read_text().replace("107.000:16", "110.000:16"))
    found = calibrate_printer(read_klipper(path))
    assert any("gear_ratio" in text for text in (*found.reasons, *found.notes))


@pytest.mark.parametrize(
    ("gear", "says"),
    [
        ("110.2:16", "steps 2."),  # in place of the height in the middle, an outlier
        ("115:16", "steps 7."),  # in place of widths of pillars
        ("13.375:16", "steps 87.50 % shorter"),  # as where microsteps are missing
    ],
)
def test_what_a_wrong_gear_contradicts_is_told_as_that(gear: str, says: str, tmp_path: Path) -> None:
    path = simulated("rotary_delta", seed=2, manual=True, rods=0.0).write(tmp_path)
    path.write_text(path.read_text().replace("107.000:16", gear))
    reasons = calibrate_printer(read_klipper(path)).reasons
    assert any(says in reason and "gear_ratio" in reason for reason in reasons), reasons
    assert not any("PILLAR" in reason for reason in reasons)


def test_exact_steps_are_not_blamed_for_unequal_rods(tmp_path: Path) -> None:
    found, _ = calibrated(tmp_path, kinematics="rotary_delta", seed=1032, rods=2.0, manual=True)
    assert not any("steps" in text for text in (*found.notes, *found.reasons))


@pytest.mark.slow
def test_a_gear_is_wrong_by_more_than_looks_like_errors_of_printers(tmp_path: Path) -> None:
    path = simulated("rotary_delta", seed=2).write(tmp_path)
    (note,) = (one for one in calibrate_printer(read_klipper(path)).notes if "an error of gear_ratio" in one)
    found = re.search("less than (.*) %", note)
    assert found is not None
    share = float(found[1])
    assert 0.5 < share < 3.0
    path.write_text(path.read_text().replace("107.000:16", f"{107.0 * (1.0 + 0.02 * share)}:16"))
    answer = calibrate_printer(read_klipper(path))
    assert any("would explain the measurements: check gear_ratio" in one for one in (*answer.notes, *answer.reasons))


def test_a_file_of_a_windows_editor_is_read(tmp_path: Path) -> None:
    path = simulated(seed=2).write(tmp_path)
    plain = calibrate_printer(read_klipper(path)).values.tolist()
    path.write_text(path.read_text(), encoding="utf-8-sig", newline="\r\n")
    assert calibrate_printer(read_klipper(path)).values.tolist() == plain


@pytest.mark.by_day("delta")
@pytest.mark.parametrize("kinematics", ["delta", "rotary_delta"])
def test_a_gear_wrong_by_half_a_percent_and_exchanged_towers_look_like_other_parameters(
    kinematics: str, tmp_path: Path
) -> None:
    """Rods take up the gear; of two towers exchanged throughout, each gets the other's errors. One row is left out."""
    printer = simulated(kinematics, seed=2, manual=kinematics != "delta")
    path = printer.write(tmp_path)
    whole = calibrate_printer(read_klipper(path))
    text = path.read_text()
    path.write_text(text.replace("distance: 32", "distance: 32.16").replace("107.000:16", "107.535:16"))
    geared = calibrate_printer(read_klipper(path))
    assert geared.reasons == ()
    assert geared.rms[1] < 1.2 * whole.rms[1] + 0.01
    setting = "rotation_distance" if kinematics == "delta" else "gear_ratio"
    assert setting in geared.unidentified
    assert any(f"an error of {setting} of less than" in note for note in geared.notes)
    places = {key: value.split(",") for key, value in printer.saved.items() if "_pos" in key}
    printer.saved |= {key: f"{b},{a},{c}" for key, (a, b, c) in places.items()}
    turned = calibrate_printer(read_klipper(printer.write(tmp_path)))
    assert turned.rms[1] == pytest.approx(whole.rms[1], rel=1e-3)
    one, other = (found.parameters["stepper_a.position_endstop"] for found in (whole, turned))
    assert other == pytest.approx(whole.parameters["stepper_b.position_endstop"], abs=0.01) != one
    printer.saved |= {key: ",".join(value) for key, value in places.items() if key != "height2_pos"}
    assert calibrate_printer(read_klipper(printer.write(tmp_path))).outliers == ("height2",)


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (np.column_stack([np.linspace(-90.0, 90.0, 13), np.zeros(13)]), "lie on a line"),
        (np.column_stack([np.zeros(13), np.linspace(-90.0, 90.0, 13)]), "lie on a line"),
        (np.random.default_rng(1).uniform(40.0, 60.0, (13, 2)), "cover x 4"),
        (np.random.default_rng(1).uniform((-80.0, 0.0), (80.0, 40.0), (13, 2)), ""),
        (np.random.default_rng(1).uniform((-80.0, -20.0), (80.0, 20.0), (13, 2)), ""),
    ],
    ids=["along x", "along y", "a corner", "half", "a band"],
)
def test_points_that_leave_the_bed_unknown_are_refused(points: np.ndarray, reason: str, tmp_path: Path) -> None:
    printer, random = simulated(distances=False), np.random.default_rng(2)
    for key in [key for key in printer.saved if "height" in key]:
        del printer.saved[key]
    at = printer.model.counts(printer.truth, np.column_stack([points, 0.02 * random.standard_normal(len(points))]))
    printer.saved |= {f"height{k}": "0.0" for k in range(len(at))}
    printer.saved |= {f"height{k}_pos": ",".join(map(str, row)) for k, row in enumerate(at)}
    found = calibrate_printer(read_klipper(printer.write(tmp_path)))
    if reason:
        assert any(reason in text for text in found.reasons)
    else:
        assert found.reasons == ()


def test_heights_at_one_place_leave_the_endstops_unknown(tmp_path: Path) -> None:
    """They tell the mean of the endstops, to microns, and no single one."""
    printer = simulated(distances=False)
    for k in range(7):
        printer.saved[f"height{k}"] = repr(0.001 * k)
        printer.saved[f"height{k}_pos"] = printer.saved["height0_pos"]
    found = calibrate_printer(read_klipper(printer.write(tmp_path)))
    assert any("cover x 0 to 0" in reason for reason in found.reasons)
    low, high = found.intervals()["stepper_a.position_endstop"]
    assert high - low > 2.0
    assert any("position_endstop change by one amount" in note for note in found.notes)


def test_steps_that_put_the_bed_a_metre_away_are_refused(tmp_path: Path) -> None:
    printer = simulated()
    for key in [key for key in printer.saved if "_pos" in key]:
        printer.saved[key] = ",".join(str(float(one) + 1e5) for one in printer.saved[key].split(","))
    found = calibrate_printer(read_klipper(printer.write(tmp_path)))
    assert "stepper_a.position_endstop comes out as 12" in found.reasons[0]


@pytest.mark.parametrize("kinematics", ["delta", "rotary_delta"])
def test_towers_exchanged_in_heights_alone_are_refused_by_name(kinematics: str, tmp_path: Path) -> None:
    printer = simulated(kinematics, seed=2)
    for key, value in printer.saved.items():
        if key.startswith("height") and "_pos" in key:
            a, b, c = value.split(",")
            printer.saved[key] = f"{b},{a},{c}"
    reasons = calibrate_printer(read_klipper(printer.write(tmp_path))).reasons
    assert "step positions in the order stepper_b, stepper_a, stepper_c" in reasons[0]


def test_distances_that_are_all_too_long_blame_no_reading(tmp_path: Path) -> None:
    printer = simulated(seed=3)  # one height would be an outlier
    for key in [f"distance{k}" for k in range(12)]:
        printer.saved[key] = repr(1.02 * float(printer.saved[key]))
    found = calibrate_printer(read_klipper(printer.write(tmp_path)))
    assert "distances 2.0" in found.reasons[0]
    assert "% shorter than typed would explain" in found.reasons[0]


def test_a_wrong_height_that_shorter_distances_explain_is_named_as_well(tmp_path: Path) -> None:
    result, _ = calibrated(tmp_path, wrong={"height0": 1.0})
    assert result.outliers == ("height0",)
    assert "shorter than typed" in result.reasons[0]
    assert "without that, height0 would be wrong" in result.reasons[0]


def test_an_outlier_is_named(tmp_path: Path) -> None:
    found, truth = calibrated(tmp_path, wrong={"distance3": 1.0})
    assert found.outliers == ("distance3",)
    assert np.all(np.abs(found.values - truth) <= 1.5 * found.half + 1e-9)


def test_heights_of_which_most_are_outliers_are_refused(tmp_path: Path) -> None:
    printer = simulated(seed=5)
    for key in [f"height{k}" for k in range(7)]:
        printer.saved[key] = repr(1e3 * float(printer.saved[key]))  # um for mm
    found = calibrate_printer(read_klipper(printer.write(tmp_path)))
    assert any("of 7 heights do not agree" in reason for reason in found.reasons)


def test_widths_typed_as_distances_are_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(simulated(wrong=OUTER).write(tmp_path)), "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "refused"
    assert said["interval95"] == {key: [None, None] for key in said["parameters"]}
    assert "OUTER_PILLAR_WIDTHS" in said["reasons"][0]
    assert "distance6" in said["reasons"][0]
    assert "widths of about 9.0 mm would be consistent" in said["reasons"][0]


@pytest.mark.parametrize("wrong", [{}, OUTER])
def test_rods_left_by_a_failed_calibration_are_refused(wrong: dict[str, float], tmp_path: Path) -> None:
    path = simulated(wrong=wrong).write(tmp_path)
    text = path.read_text()
    for rod in ("225.378791", "391.018219", "214.487758"):
        text = text.replace("arm_length: 270.000000", f"arm_length: {rod}", 1)
    path.write_text(text)
    found = calibrate_printer(read_klipper(path))
    assert any("225.38, 391.02, 214.49" in reason for reason in found.reasons)
    assert any("OUTER_PILLAR_WIDTHS" in reason for reason in found.reasons) == bool(wrong)
    assert not any("CENTER" in reason for reason in found.reasons)  # which these rods alone contradict


def test_the_command_writes_settings_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printer, out, page = simulated().write(tmp_path), tmp_path / "new.cfg", tmp_path / "page.html"
    assert main([str(printer), "-o", str(out), "--report", str(page)]) == 0
    assert "95 % intervals" in capsys.readouterr().out
    assert "[stepper_b]\nposition_endstop: " in out.read_text()
    assert "data:image/png" in page.read_text()
    assert main([str(printer), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "accepted"
    assert set(said["parameters"]) == set(said["interval95"])
    assert STEP not in said["parameters"]


BAD = {
    "no delta": ("kinematics: delta", "kinematics: corexy", "corexy"),
    "a hole": ("#*# height2 =", "#*# heightx =", "height2"),
    "cut off": ("#*# height6_pos", "#*# heigh", "height6_pos"),
    "a word": ("#*# height1 = ", "#*# height1 = x", "height1"),
    "two numbers": ("#*# height1_pos = ", "#*# height1_pos = 1,", "3 numbers"),
    "no settings": ("delta_radius: ", "radius: ", "delta_radius"),
    "not finite": ("#*# height1 = ", "#*# height1 = nan #", "height1"),
    "short rods": ("arm_length: 270", "arm_length: 27", "arm_length"),
    "metres": ("arm_length: 270.000000", "arm_length: 0.27", "looks like metres"),
    "twice": ("#*# height1 = ", "#*# height1 = 1\n#*# height1 = ", "on line"),
    "binary": ("#*# height1 = ", "\x01#*# height1 = ", "not a text file"),
    "no step": ("microsteps: 16", "", "microsteps"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_files_say_what_is_wrong(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = simulated().write(tmp_path)
    old, new, said = BAD[case]
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert main([str(path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert "printer.cfg" in error


def test_too_few_and_repeated_measurements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printer = simulated()
    whole = dict(printer.saved)
    printer.saved = {key: value for key, value in whole.items() if key.startswith(("height0", "height1"))}
    assert main([str(printer.write(tmp_path))]) == 2
    assert "2 probed heights" in capsys.readouterr().err
    printer.saved = {**whole, "height6": whole["height5"], "height6_pos": whole["height5_pos"]}
    assert main([str(printer.write(tmp_path))]) == 2
    assert "height6 equals height5" in capsys.readouterr().err


def test_garbage_never_gives_a_traceback(tmp_path: Path) -> None:
    random, path = np.random.default_rng(0), tmp_path / "printer.cfg"
    whole = simulated().config().encode()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(random.integers(1, 30)):
            data[random.integers(len(data))] = (
                random.integers(256) if random.random() < 0.1 else random.integers(32, 127)
            )
        path.write_bytes(bytes(data[: random.integers(len(data))] if random.random() < 0.3 else data))
        assert main([str(path), "--json", str(tmp_path / "out.json")]) in (0, 2, 3)


@pytest.mark.slow
def test_good_measurements_are_no_outliers(tmp_path: Path) -> None:
    """Where distances are as good as heights, of which hardly one is to spare: any outlier is found by chance."""
    assert (
        sum(bool(calibrated(tmp_path, seed=seed, noise=(0.02, 0.02))[0].outliers) for seed in range(40025, 40030)) == 0
    )


@pytest.mark.parametrize("seed", [20055, 20056])
def test_clean_measurements_of_a_rotary_delta_are_accepted(seed: int, tmp_path: Path) -> None:
    """Of the first, unequal rods held equal made distances far noisier than heights, which was taken for outliers."""
    found, _ = calibrated(tmp_path, kinematics="rotary_delta", seed=seed)
    assert found.reasons == ()
    assert not found.outliers


def covered(folder: Path, runs: int, **how: object) -> float:
    inside = list[bool]()
    for seed in range(runs):
        found, truth = calibrated(folder, seed=seed, **how)
        told = [name not in (*found.unidentified, STEP) for name in found.printer.model.names]
        inside += (np.abs(found.values - truth) <= found.half)[told].tolist()
    return float(np.mean(inside))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(0.01, 0.03), (0.02, 0.02), (0.005, 0.05)])
def test_intervals_of_a_thousand_printers_cover(tmp_path: Path, noise: tuple[float, float]) -> None:
    least = {(0.01, 0.03): 0.94, (0.02, 0.02): 0.93}.get(noise, 0.92)  # a ratio far from the usual one is expected less
    assert least < covered(tmp_path, 1000, noise=noise) < 0.97
