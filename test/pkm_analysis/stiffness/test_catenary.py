# SPDX-License-Identifier: Apache-2.0
"""Lines that hang, against a published cable, the differential equation and difference quotients; robots on them."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import root

from pkm_analysis import Analysis, AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.stiffness.catenary import Line, hanging, shape
from pkm_analysis.stiffness.stiffness import Stiffness
from pkm_description import load_mechanism
from pkm_description.description_error import DescriptionError
from pkm_description.mechanism import Array, Cable
from pkm_description.rotations import skew

FOOT, POUND = 0.3048, 4.4482216


def of_length(span: float, rise: float, length: float, weight: float, EA: float, start: Array) -> Array:
    """Forces (2,) at the far end of a line of a length."""
    found = root(lambda u: np.subtract(shape(*u, length, weight, EA)[:2], (span, rise)), start, tol=1e-13)
    return np.asarray(found.x)


def test_a_published_cable_with_a_load_moves_as_printed() -> None:
    """1000 ft, 8000 lb at 400 ft (Michalos and Birnstiel 1962); moved by -0.859, -5.626 m (Jayaraman, Knudson 1981)."""
    weight, EA = 3.16 * POUND / FOOT, 19e6 * 0.85 * POUND
    parts, span = (412.8837 * FOOT, 613.0422 * FOOT), 1000 * FOOT

    def unbalanced(at: Array, load: float) -> Array:
        x, z = at
        left, right = (
            of_length(side, z, length, weight, EA, np.array([8e4, z * 1e3]))
            for side, length in zip((x, span - x), parts, strict=True)
        )
        return np.array([right[0] - left[0], -left[1] - right[1] - load])

    empty = root(unbalanced, [121.92, -29.0], args=(0.0,)).x
    loaded = root(unbalanced, [121.0, -35.0], args=(8000 * POUND,)).x
    assert -empty[1] == pytest.approx(29.276, abs=5e-4)
    assert loaded - empty == pytest.approx([-0.859, -5.626], abs=5e-4)


@pytest.mark.parametrize(
    ("span", "rise", "tension", "weight"),
    [
        (10, 0, 100, 1),
        (10, 7, 100, 1),
        (10, -7, 30, 4),
        (0, 5, 100, 2),
        (0, -5, 100, 2),
        (1e-6, 5, 100, 2),
        (9, 3, 50, 0),
    ],
)
def test_a_line_hangs_as_its_differential_equation_says(
    span: float, rise: float, tension: float, weight: float
) -> None:
    EA = 1e4
    found = hanging(span, rise, tension, weight, EA)
    near = found.vertical - weight * found.length

    def slope(s: float, _: Array) -> list[float]:
        V = near + weight * s
        T = np.hypot(found.horizontal, V)
        return [found.horizontal * (1 / T + 1 / EA), V * (1 / T + 1 / EA)]

    line = solve_ivp(slope, (0, found.length), [0, 0], rtol=1e-12, atol=1e-13, dense_output=True)
    assert line.y[:, -1] == pytest.approx([span, rise], abs=1e-10)
    x, z = line.sol(np.linspace(0, found.length, 4001))
    assert found.sag == pytest.approx(np.abs(x * rise - z * span).max() / np.hypot(span, rise), abs=1e-6 * found.length)
    assert found.tensions[1] == pytest.approx(np.hypot(found.horizontal, found.vertical))
    mean = np.array([found.horizontal, 0.5 * (near + found.vertical)]) @ (span, rise) / np.hypot(span, rise)
    assert mean == pytest.approx(tension)


@pytest.mark.parametrize("gravity", [np.array([0, 0, -9.81]), np.array([3.0, -4, 1]), np.zeros(3)])
def test_its_stiffness_is_the_difference_quotient_of_its_force(gravity: Array) -> None:
    line = Line(np.array([0.1, -0.2, 0.3]), np.array([1.5, 0.8, -0.9]), Cable(2e4, 0.3))
    found, stiffness = line.hung(25.0, gravity)
    pull = float(np.linalg.norm(gravity))
    up = (
        -gravity / pull if pull else np.cross(line.along, [1.0, 0, 0]) / np.linalg.norm(np.cross(line.along, [1, 0, 0]))
    )

    def force(displacement: Array) -> Array:
        chord = line.far + displacement - line.near
        beside = chord - up * (up @ chord)
        span = float(np.linalg.norm(beside))
        start = np.array([found.horizontal, found.vertical])
        H, V = of_length(span, float(up @ chord), found.length, 0.3 * pull, 2e4, start)
        return np.asarray(H * beside / span + V * up)

    h = 1e-5
    quotient = np.column_stack([(force(h * d) - force(-h * d)) / (2 * h) for d in np.eye(3)])
    assert stiffness == pytest.approx(quotient, rel=1e-6, abs=1e-6 * np.abs(quotient).max())


def test_a_line_with_little_mass_is_a_bar_under_tension() -> None:
    line = Line(np.zeros(3), np.array([1.0, 2.0, -2.0]), Cable(1e5, 1e-8))
    along = np.outer(line.along, line.along)
    found, stiffness = line.hung(40.0, np.array([0, 0, -9.81]))
    assert found.length == pytest.approx(3.0 / (1 + 40 / 1e5))
    assert stiffness == pytest.approx(1e5 / found.length * along + 40.0 / 3.0 * (np.eye(3) - along), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("tension", [0.0, -3.0, 0.01])
def test_a_line_that_is_not_pulled_at_is_refused(tension: float) -> None:
    with pytest.raises(AnalysisError, match="hang"):
        hanging(2.0, 1.0, tension, 3.0, 1e5)


def cables(mass: float | None = None) -> Analysis:
    text = load_mechanism("cable_8").urdf
    if mass is not None:
        text = re.sub(r'(<param name="cable_mass">)[^<]*', rf"\g<1>{mass}", text)
    return Analysis(load_mechanism(text))


def on_lines(found: Stiffness) -> Array:
    """Stiffness (6, 6) of a platform that hangs on lines, without what weighs elsewhere."""
    K, m = np.zeros((6, 6)), found.model

    def turned(force: Array, arm: Array) -> None:
        K[3:, 3:] -= 0.5 * (np.outer(force, arm) + np.outer(arm, force)) - force @ arm * np.eye(3)

    for name, line in m.lines.items():
        tension, arm = found.tensions[name], line.far - m.origin
        to_end = np.hstack([np.eye(3), -skew(arm)])
        K += to_end.T @ line.hung(tension, m.gravity)[1] @ to_end
        turned(-tension * line.along, arm)
    for one in m.masses:
        if one.node == m.platform:
            turned(one.mass * m.gravity, one.point - m.origin)
    return K


@pytest.mark.parametrize("mass", [None, 0.0])
@pytest.mark.parametrize("tension", [None, 100.0])
def test_a_platform_on_cables_has_the_stiffness_of_its_lines(mass: float | None, tension: float | None) -> None:
    at = {"x": 0.2, "z": 0.1, "yaw": 0.2}
    found = cables(mass).stiffness(at, payload=5.0, wrench=[10.0, 20, -30, 0, 0, 0], tension=tension)
    expected = on_lines(found)
    # pulleys and lines weigh 2 kg, whose weight the rigid links of the limbs carry
    assert found.loaded_stiffness == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())
    assert min(found.tensions.values()) == pytest.approx(tension or 20.0)
    bars = sum(
        line.cable.stiffness / line.length * np.outer(row, row)
        for line in found.model.lines.values()
        for row in [np.concatenate([line.along, np.cross(line.far - found.model.origin, line.along)])]
    )
    assert found.stiffness == pytest.approx(bars, abs=1e-9 * np.abs(bars).max())


def test_sag_makes_slack_cables_softer_and_tension_stiffens() -> None:
    slack, tight = (cables().stiffness(tension=tension) for tension in (20.0, 300.0))
    assert slack.loaded_stiffness[0, 0] < 0.8 * slack.stiffness[0, 0]
    assert tight.loaded_stiffness[0, 0] > 0.99 * tight.stiffness[0, 0]
    for name, one in slack.lines.items():
        parabola = one.weight * one.span * np.hypot(one.span, one.rise) / (8 * slack.tensions[name])
        assert one.sag == pytest.approx(parabola, rel=1e-3)


def test_cables_that_cannot_hold_a_load_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = cables().stiffness(wrench=[0, 0, -9000.0, 0, 0, 0])
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["loaded_stiffness"] is None
    assert told["hanging"] is None
    assert "none within their ranges" in str(found)
    with pytest.raises(AnalysisError, match="none within"):
        _ = found.loaded_stiffness
    with pytest.raises(AnalysisError, match="more than zero"):
        cables().stiffness(tension=-1.0)
    with pytest.raises(AnalysisError, match="cable1_leg does not pull so much"):
        cables().stiffness(tension=700.0)
    with pytest.raises(AnalysisError, match="no cables"):
        Analysis(load_mechanism("delta")).stiffness(tension=10.0)
    assert main(["cable_8", "stiffness", "--json", "--tension", "50"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["cables"]) == len(told["hanging"]) == 8
    assert min(one["tension"] for one in told["hanging"]) == pytest.approx(50.0)


def test_winches_without_the_stiffness_of_their_cables_are_told_to_be_bars() -> None:
    text = re.sub(r'<param name="cable_(stiffness|mass)">[^<]*</param>', "", load_mechanism("cable_8").urdf)
    found = Analysis(load_mechanism(text)).stiffness()
    assert 'as bars that bend and buckle; for cables write <param name="cable_stiffness">' in str(found)
    assert all("cable_stiffness" in one["source"] for one in found.to_dict()["beams"])
    assert "cable_stiffness" not in str(cables().stiffness())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("cable_stiffness", "1000000", "0"), "stiffness of its cable is missing"),
        (("cable_mass", "[^<]*", "-1"), "the mass is negative"),
        (("cable_stiffness", "1000000", "nan"), "not finite"),
    ],
)
def test_a_faulty_cable_is_refused_by_name(change: tuple[str, str, str], words: str) -> None:
    name, old, new = change
    text = re.sub(rf'(<param name="{name}">){old}', rf"\g<1>{new}", load_mechanism("cable_8").urdf, count=1)
    with pytest.raises(DescriptionError, match=words) as error:
        load_mechanism(text)
    assert "cable1_leg" in str(error.value)
