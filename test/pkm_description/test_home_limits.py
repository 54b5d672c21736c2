# SPDX-License-Identifier: Apache-2.0
"""How far outside a range home may be is a matter of the robot's size, not of metres."""

from __future__ import annotations

import numpy as np
import pytest

from pkm_description.description_error import DescriptionError
from pkm_description.loops.closure import ClosureModel
from pkm_description.loops.home import WITHIN_LIMITS, HomeRequest, find_home
from pkm_description.mechanism import Inertial, Joint, JointType, Limits, Link, frozen


def home_of_a_slide(size: float, beyond: float) -> float:
    """Where a slide stands at home, whose range ends before that by a share of its size."""
    origin = np.eye(4)
    origin[2, 3] = size
    limits = Limits(0.0, (0.5 - beyond) * size)
    axis = frozen(np.array((1.0, 0.0, 0.0)))
    slide = Joint("slide", JointType.PRISMATIC, "base", "body", frozen(origin), axis, limits=limits)
    model = ClosureModel([Link(name, Inertial()) for name in ("base", "body")], [slide], [], "base")
    pose = origin.copy()
    pose[0, 3] = 0.5 * size
    return float(find_home(model, HomeRequest(pose, {}, "body", ("slide",), ("slide",), ()))[0])


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_what_is_outside_a_range_is_so_at_every_scale(size: float) -> None:
    assert home_of_a_slide(size, 0.1 * WITHIN_LIMITS) == pytest.approx(0.5 * size)
    with pytest.raises(DescriptionError, match="make home unreachable"):
        home_of_a_slide(size, 10.0 * WITHIN_LIMITS)
