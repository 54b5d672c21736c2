# SPDX-License-Identifier: Apache-2.0
"""The largest boxes and cylinders: inside, and as large as they are known to be."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError
from pkm_description import load_mechanism


def test_of_a_ring_part_that_is_known() -> None:
    # the lens of two circles of radius 1.5 whose centres are 0.6 apart, above the base joints
    found = Analysis(load_mechanism("two_rpr")).workspace(
        {"x": (-1.3, 1.9), "y": (0.2, 1.5)}, platform_limits=False, tolerance=1e-3
    )
    box = found.largest_box()
    widths = np.linspace(0.0, 1.2, 200001)  # half a box's width, from the middle of the lens
    heights = np.sqrt(np.maximum(1.5**2 - (0.3 + widths) ** 2, 0.0)) - 0.2
    assert box.size == pytest.approx(float((2.0 * widths * heights).max()), rel=0.02)
    circle = found.largest_cylinder()
    radius = max(min(y - 0.2, 1.5 - np.hypot(0.3, y)) for y in np.linspace(0.2, 1.4, 20001))
    assert circle.radius == pytest.approx(radius, rel=0.03)
    for one in (box, circle):
        panel = one.plot().axes[0]
        np.testing.assert_allclose(panel.patches[0].get_extents().transformed(panel.transData.inverted()), one.bounds)
        assert one.unit == "m^2"


@pytest.mark.slow
def test_of_a_delta() -> None:
    found = Analysis(load_mechanism("delta")).workspace(tolerance=5e-3, resolution=30)
    rng = np.random.default_rng(9)
    box = found.largest_box()
    assert found.contains(rng.uniform(box.lower, box.upper, (200_000, 3))).mean() > 0.99999
    grid = np.stack(np.meshgrid(*3 * [np.linspace(0.0, 1.0, 9)], indexing="ij"), axis=-1).reshape(-1, 3)
    for _ in range(400):  # no box near by that is larger is inside
        low = box.lower + 0.1 * (box.upper - box.lower) * rng.normal(size=3)
        high = box.upper + 0.1 * (box.upper - box.lower) * rng.normal(size=3)
        if np.prod(np.maximum(high - low, 0.0)) > 1.03 * box.size:
            assert not found.contains(low + grid * (high - low)).all()
    cylinder = found.largest_cylinder()
    angle, share = rng.uniform(0.0, 2.0 * np.pi, 200_000), np.sqrt(rng.uniform(0.0, 1.0, 200_000))
    round_ = cylinder.centre + (cylinder.radius * share)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    points = np.column_stack([round_, rng.uniform(cylinder.bottom, cylinder.top, 200_000)])
    assert found.contains(points).mean() > 0.99999
    assert np.hypot(*cylinder.centre) < 0.1  # of a robot of three equal limbs
    assert cylinder.size > box.size


def test_of_what_has_none() -> None:
    line = Analysis(load_mechanism("delta")).workspace(vary="z")
    with pytest.raises(AnalysisError, match="two or three coordinates"):
        line.largest_box()
