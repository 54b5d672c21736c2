# SPDX-License-Identifier: Apache-2.0
"""The Orthoglide by its legs being parallel, as Pashkevich, Chablat and Wenger calibrate it (2009, arXiv 0909.3786).

Where the platform travels along one axis, the leg of that axis stays parallel to it. Dial gauges at its end read by how
much it does not: the platform's other two coordinates. Offsets of the drives and lengths of the legs follow from that.
The machine is the paper's own: a sphere about each slider, solved apart from the graph.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

from pkm_calibration import calibrate_command
from pkm_calibration.calibration import calibrate
from pkm_calibration.measurements import parse_measurements
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_runtime.errors import PkmError

ROD, REACH, NOISE = 0.310583, 0.08, 1e-5  # m: a gauge reads hundredths of a millimetre
ONLY = ("*: zero of slider", "*: length of rod_a")
NAMES = [f"limb_{axis}: {what}" for what in ("zero of slider", "length of rod_a") for axis in "xyz"]
PLACES = np.vstack((np.zeros(3), *(sign * REACH * one for one in np.eye(3) for sign in (1.0, -1.0))))


def drives_at(place: Array) -> Array:
    """Of the drawing: each slider a leg's length away, along its axis."""
    return np.array([place[k] + np.sqrt(ROD**2 - place @ place + place[k] ** 2) for k in range(3)])


def platform_at(drives: Array, errors: Array) -> Array:
    """Of a machine whose drives are off by errors[:3], and its legs by errors[3:]."""

    def miss(p: Array) -> Array:
        return (
            np.array([(drives[k] + errors[k] - p[k]) ** 2 + p @ p - p[k] ** 2 for k in range(3)])
            - (ROD + errors[3:]) ** 2
        )

    return np.asarray(optimize.root(miss, np.zeros(3), tol=1e-14).x)


def readings(errors: Array, random: np.random.Generator | None = None) -> str:
    """The gauges' readings as a file: across the axis along which the platform has travelled; at the centre, of all."""
    lines = [f"# sigma {axis} [mm]: {1e3 * NOISE}" for axis in "xyz"]
    lines.append("limb_x_slider,limb_y_slider,limb_z_slider,x,y,z")
    for place in PLACES:
        drives = drives_at(place)
        read = platform_at(drives, errors) + (NOISE * random.standard_normal(3) if random else 0.0)
        cells = [repr(float(value)) if place[k] == 0.0 else "" for k, value in enumerate(read)]
        lines.append(",".join([*(repr(float(value)) for value in drives), *cells]))
    return "\n".join(lines) + "\n"


def expected() -> Array:
    """Standard deviations (6,) of offsets and lengths: by the paper's model, from differences."""
    rows = []
    for place in PLACES:
        drives = drives_at(place)
        steps = [(platform_at(drives, h) - platform_at(drives, -h)) / 2e-6 for h in 1e-6 * np.eye(6)]
        rows.append(np.array(steps).T[place == 0.0])
    J = np.concatenate(rows)
    return np.asarray(NOISE * np.sqrt(np.diag(np.linalg.inv(J.T @ J))))


@pytest.mark.parametrize("runs", [2, pytest.param(24, marks=pytest.mark.slow)])
def test_offsets_and_lengths_are_found_as_well_as_the_model_allows(runs: int) -> None:
    mechanism, random, spread = load_mechanism("orthoglide"), np.random.default_rng(0), expected()
    off, before, after = [], [], []
    for _ in range(runs):
        truth = 1e-3 * random.standard_normal(6)
        found = calibrate(mechanism, parse_measurements(readings(truth, random), mechanism), kept=0.0, only=ONLY)
        assert [one.name for one in found.parameters] == NAMES
        assert not found.refused
        assert not found.estimate.unseen
        off.append((found.estimate.values - truth) / spread)
        for place in REACH * random.uniform(-1.0, 1.0, (10, 3)):  # elsewhere: by the same equations
            there = platform_at(drives_at(place), truth)
            before.append(there - place)
            after.append(there - platform_at(drives_at(place), found.estimate.values))
    size = np.sqrt(np.mean(np.square(off)))
    assert abs(size - 1.0) < 3.0 / np.sqrt(12.0 * runs)  # three standard deviations, of 6 numbers a run
    assert np.sqrt(np.mean(np.square(before))) > 1e-3
    assert np.sqrt(np.mean(np.square(after))) < 2.0 * NOISE


@pytest.mark.slow
def test_the_command_takes_the_parameters_that_may_be_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gauges.csv"
    truth = 1e-3 * np.array([1.0, -0.5, 0.3, 0.2, 0.4, -0.6])
    file.write_text(readings(truth))
    assert calibrate_command.main(["orthoglide", str(file), "--keep", "0", "--only", *ONLY, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose([answer["parameters"][name] for name in NAMES], truth, atol=1e-7)
    assert calibrate_command.main(["orthoglide", str(file), "--only", "limb_x: zero of slide"]) == 2
    assert "did you mean 'limb_x: zero of slider'" in capsys.readouterr().err


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    mechanism = load_mechanism("orthoglide")
    with pytest.raises(PkmError, match="no geometric parameter like 'nothing'"):
        calibrate(mechanism, parse_measurements(readings(np.zeros(6)), mechanism), only=["nothing"])
