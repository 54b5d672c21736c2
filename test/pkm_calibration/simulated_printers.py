# SPDX-License-Identifier: Apache-2.0
"""Printers that differ from their settings, and the printer.cfg that Klipper would have saved of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pkm_calibration.printer_models import STEPPERS, LinearDelta, Model, RotaryDelta, nozzle
from pkm_description.mechanism import Array

LINEAR = np.array([120.0, *[250.0] * 3, 210.0, 330.0, 90.0, *[270.0] * 3, 0.0])
ROTARY = np.array([33.9, 412.9, *[252.0] * 3, 30.0, 150.0, 270.0, *[170.0] * 3, *[320.0] * 3, 0.0])
STEPS = {"delta": 32.0 / (200 * 16), "rotary_delta": 2.0 * np.pi / (200 * 16 * 107.0 / 16.0 * 60.0 / 16.0)}
GEARS = {
    "delta": "rotation_distance: 32\nmicrosteps: 16\nfull_steps_per_rotation: 200",
    "rotary_delta": "microsteps: 16\ngear_ratio: 107.000:16, 60:16",
}


def model_of(kinematics: str) -> Model:
    steps = np.full(3, STEPS[kinematics])
    return LinearDelta(steps) if kinematics == "delta" else RotaryDelta(steps)


@dataclass
class Simulated:
    """A printer, its settings and its measurements by the names that Klipper gives them."""

    model: Model
    settings: Array
    truth: Array
    saved: dict[str, str]

    def config(self) -> str:
        values = dict(zip(self.model.names, self.settings, strict=True))
        lines = ["[printer]", f"kinematics: {self.model.kinematics}", "max_velocity: 300"]
        parts = {one: [f"[{one}]", GEARS[self.model.kinematics]] for one in STEPPERS}
        parts["printer"] = lines
        for name, value in values.items():
            if "." in name:
                parts[name.split(".")[0]].append(f"{name.split('.')[1]}: {value:.6f}")
        text = "\n\n".join("\n".join(part) for part in parts.values())
        block = "\n".join(f"#*# {key} = {value}" for key, value in self.saved.items())
        return (
            f"{text}\n\n[delta_calibrate]\nradius: 60\n\n"
            "#*# <---------------------- SAVE_CONFIG ---------------------->\n"
            "#*# DO NOT EDIT THIS BLOCK OR BELOW. The contents are auto-generated.\n#*#\n"
            f"#*# [delta_calibrate]\n{block}\n"
        )

    def write(self, folder: Path) -> Path:
        path = folder / "printer.cfg"
        path.write_text(self.config(), encoding="utf-8")
        return path


def simulated(
    kinematics: str = "delta",
    seed: int = 0,
    noise: tuple[float, float] = (0.01, 0.03),
    distances: bool = True,
    rods: float = 0.7,
    wrong: Mapping[str, float] | None = None,
    manual: bool = False,
) -> Simulated:
    """A printer off by about 1 mm and 0.4 degrees, its rods by `rods`; `wrong` mm are added to measurements by name."""
    random, model = np.random.default_rng(seed), model_of(kinematics)
    settings = LINEAR if kinematics == "delta" else ROTARY
    off = random.standard_normal(len(settings)) * 0.8
    for k, name in enumerate(model.names):
        if name.endswith("angle"):
            off[k] = 0.0 if "_c" in name else 0.5 * off[k]
        if "arm_length" in name:
            off[k] *= rods
    off[-1] = 0.0
    truth = settings + off
    wrong, saved = dict(wrong or {}), dict[str, str]()
    turn = np.radians(90.0 + 60.0 * np.arange(6))
    reach = 60.0 * np.array([0.95, 0.90, 0.85, 0.70, 0.75, 0.80])
    places = np.vstack([np.zeros(3), np.column_stack([reach * np.cos(turn), reach * np.sin(turn), np.zeros(6)])])
    for k, place in enumerate(places):
        at = np.round(model.counts(settings, place[None]))[0]
        at = np.round(model.counts(truth, np.array([[*nozzle(model, truth, at[None])[0, :2], 0.0]])))[0]
        z = nozzle(model, truth, at[None])[0, 2] + noise[0] * random.standard_normal()
        saved[f"height{k}"] = repr(float(z + wrong.get(f"height{k}", 0.0)))
        saved[f"height{k}_pos"] = _triple(at)
    if manual:
        at = np.zeros(3)
        saved["manual_height0"] = repr(float(nozzle(model, truth, at[None])[0, 2]))
        saved["manual_height0_pos"] = _triple(at)
    if distances:
        around = np.radians([210.0, 270.0, 330.0, 30.0, 90.0, 150.0])
        rim = np.column_stack([np.cos(around), np.sin(around), np.zeros(6)])
        after = np.roll(rim, -2, axis=0)
        pairs = [(4.5 * rim, 69.5 * rim), (65.0 * rim + 4.5 * after, 65.0 * rim + 69.5 * after)]
        ends = np.concatenate([np.stack(pair, axis=1) for pair in pairs])
        for k, (one, other) in enumerate(ends):
            at = model.counts(settings, np.stack([one, other])).round(3)
            p = nozzle(model, truth, at)
            d = np.linalg.norm(p[0] - p[1]) + noise[1] * random.standard_normal()
            saved[f"distance{k}"] = repr(float(d + wrong.get(f"distance{k}", 0.0)))
            saved[f"distance{k}_pos1"], saved[f"distance{k}_pos2"] = _triple(at[0]), _triple(at[1])
    return Simulated(model, settings, truth, saved)


def _triple(steps: Array) -> str:
    return ",".join(f"{one:.3f}" for one in steps)
