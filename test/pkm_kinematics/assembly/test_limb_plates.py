# SPDX-License-Identifier: Apache-2.0
"""All assembly modes of platforms on plates, folded plates included, against searches that know nothing of plates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from pkm_kinematics import Status
from pkm_kinematics.assembly.geometry.schoenflies import Plate, Rod, turned
from pkm_kinematics.assembly.whole_search import Search

UP = np.array([0.0, 0.0, 1.0])
ON_PLATES = ["h4", "quattro"]


def a_plate(rng: np.random.Generator, level: bool) -> tuple[Plate, np.ndarray]:
    """A plate with two pairs of rods that reach a folded place, and that place: position and yaw."""
    yaw, fold = rng.uniform(-3.0, 3.0), rng.uniform(0.3, 2.5)
    place = rng.normal(size=3)
    pairs = []
    for k in range(2):
        e, middle = rng.normal(size=3) * [1.0, 1.0, 0.0], rng.normal(size=3) * [1.0, 1.0, 0.0]
        # the middle line in the plane of the axis and the direction of e turned by half the fold
        X = turned(UP, fold / 2, e) * rng.normal() + UP * (1.5 if level or k == 0 else rng.uniform(1.0, 2.0))
        base = place + turned(UP, yaw + fold, middle) - X
        length = float(np.sqrt(X @ X + 4.0 * np.sin(fold / 2) ** 2 * (e @ e)))
        own = turned(UP, -yaw, e)
        pairs.append((Rod(base + e, middle + own, length), Rod(base - e, middle - own, length)))
    plate = Plate(UP, yaw, pairs, np.zeros(3), np.zeros(3), np.zeros(3))
    return plate, np.array([*place, yaw + fold])


@pytest.mark.by_day(False)
@pytest.mark.parametrize("level", [True, False])
def test_folded_places_of_a_plate(level):
    """Those found by algebra are those that least squares finds from many starts, and hold the rods."""
    rng = np.random.default_rng(11)
    for _ in range(2):
        plate, known = a_plate(rng, level)
        found = np.array(plate.folded())
        assert np.linalg.norm(found - known[:3], axis=1).min() < 1e-7
        rods = [rod for pair in plate.pairs for rod in pair]

        arms, centres, lengths = (np.array([getattr(r, name) for r in rods]) for name in ("arm", "centre", "length"))

        def errors(x, arms=arms, centres=centres, lengths=lengths):
            c, s = np.cos(x[3]), np.sin(x[3])
            about_up = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
            return np.linalg.norm(x[:3] + arms @ about_up - centres, axis=1) - lengths

        seen = set()
        for _ in range(30):
            start = np.append(known[:3] + 3.0 * rng.normal(size=3), rng.uniform(-np.pi, np.pi))
            end = least_squares(errors, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
            if end.cost > 1e-24 or abs(np.angle(np.exp(1j * (end.x[3] - plate.yaw)))) < 1e-3:
                continue
            nearest = int(np.argmin(np.linalg.norm(found - end.x[:3], axis=1)))
            assert np.linalg.norm(found[nearest] - end.x[:3]) < 1e-5
            seen.add(nearest)
        assert seen
        for place in found:  # and each of them is true, at some yaw
            yaws = np.linspace(-np.pi, np.pi, 24)
            best = min(least_squares(lambda y, p=place: errors([*p, y[0]]), [yaw]).cost for yaw in yaws)
            assert best < 1e-14


@pytest.mark.by_day("quattro")
@pytest.mark.parametrize("name", ON_PLATES)
def test_rods_hold_in_every_working_mode(name, of_gallery):
    k = of_gallery[name].kinematics
    assert k.assembly_method == "plates"
    rng = np.random.default_rng(1)
    q = k.home_joints[k.engine.actuated_column]
    poses = k.forward(q + 0.15 * rng.uniform(-1.0, 1.0, (12, 4)), seed=k.home_joints)
    assert poses.ok.sum() >= 3
    for pose in poses.pose[poses.ok][:3]:
        reached = [one.actuated for one in k.inverse_all(pose) if np.isfinite(one.joints).all()]
        assert len(reached) >= 8
        for actuated in reached:
            assert k.assembly.unfolded(actuated, pose[None])[0]


@pytest.mark.parametrize("name", [pytest.param("h4", marks=pytest.mark.slow), "quattro"])
def test_the_list_holds_what_a_search_finds(name, of_gallery):
    """Home, where plates can be folded, and elsewhere, where they cannot."""
    k = of_gallery[name].kinematics
    home = k.home_joints[k.engine.actuated_column]
    rng = np.random.default_rng(5)
    for far in (0.0, 0.3):
        q = home + far * rng.uniform(-1.0, 1.0, 4)
        modes, searched = k.forward_all(q), Search(k.engine).solve(q)
        assert modes.certified, modes.caution
        listed = np.array([one.pose for one in modes]).reshape(-1, 7)
        for pose in searched.poses:
            away = np.linalg.norm(listed[:, :3] - pose[:3], axis=1) + 1.0 - np.abs(listed[:, 3:] @ pose[3:])
            assert away.min() < 1e-7
        for one in modes:
            assert one.status in (Status.CONVERGED, Status.JOINT_LIMIT)
            assert np.abs(np.angle(np.exp(1j * (one.joints[k.engine.actuated_column] - q)))).max() < 1e-8
        signs = [one.label[0] for one in modes]
        assert signs.count("+") == signs.count("-")
        assert far > 0.2 or "+" in signs
        assert ("?" in signs) == (far == 0.0)
    assert k.forward_all(home)[0].label == "+1"
    assert np.abs(k.forward_all(home)[0].pose - k.home).max() < 1e-9
