# SPDX-License-Identifier: Apache-2.0
"""What is warmed for analyses is what they call: they compile nothing of it a second time."""

from __future__ import annotations

import pytest

from pkm_analysis import Analysis
from pkm_analysis.kernels.geometry import largest_full_box
from pkm_analysis.kernels.pose_quantities import pose_quantities_many
from pkm_analysis.proof.kernels.enclose import enclose
from pkm_bringup.warm_kernels import main
from pkm_description import load_mechanism


@pytest.mark.slow  # it compiles for minutes where nothing is kept yet
def test_analyses_find_their_kernels_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["five_bar", "--for", "analysis"]) == 0
    assert "kernels ready after" in capsys.readouterr().out
    kernels = (largest_full_box, pose_quantities_many, enclose)
    before = [kernel.signatures[:] for kernel in kernels]
    assert all(before)
    robot = load_mechanism("five_bar")
    analysis = Analysis(robot)
    analysis.workspace(resolution=40).largest_box()
    proof = analysis.prove("inside", {"x": (-0.01, 0.01), "y": (0.3, 0.31)})
    assert proof.boxes > 0
    assert [kernel.signatures for kernel in kernels] == before
