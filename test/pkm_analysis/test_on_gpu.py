# SPDX-License-Identifier: Apache-2.0
"""Maps and workspaces with a GPU's code, compiled for the processor: the answers of processors' code."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from pkm_analysis import Analysis
from pkm_analysis.analysed_robot import PoseEvaluator
from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.command_line.analyse import main
from pkm_analysis.kernels.pose_quantities import LIMIT_AT, REACH_AT, REGULARITY_AT, WIDTH
from pkm_description import load_mechanism
from pkm_kinematics import Kinematics
from test.pkm_dynamics.outlets.processor import needs_compiler, processor

from .test_evaluator import poses_around_home

WORKSPACE = ["--range", "x=-0.3:0.3", "--range", "y=-0.3:0.3", "--range", "z=-1:-0.8", "--resolution", "16"]
MAP = ["--range", "x=-0.3:0.3", "--range", "y=-0.3:0.3", "--resolution", "40"]


@pytest.mark.by_day("delta")
@needs_compiler
@pytest.mark.parametrize("name", ["delta", "five_bar", "gough_stewart_7", "orthoglide"])
@pytest.mark.parametrize("mode", [None, 1])
def test_numbers_are_those_of_processors(name: str, mode: int | None) -> None:
    kinematics = Kinematics(load_mechanism(name))
    if mode is not None and kinematics.n_modes == 1:
        mode = 0
    poses = poses_around_home(kinematics, 500)
    columns = [int(c) + WIDTH for c in kinematics.engine.body_column[2:]]
    worst = (REACH_AT, LIMIT_AT, REGULARITY_AT)  # of equally near ones rounding chooses
    asked = tuple(k for k in (*range(WIDTH), *columns) if k not in worst)
    wanted = PoseEvaluator(kinematics, mode).numbers(poses, asked)
    found = PoseEvaluator(kinematics, mode, processor()).numbers(poses, asked)
    reached = wanted[0] >= 0.0
    assert reached.sum() > 0
    np.testing.assert_array_equal(found[0] >= 0.0, reached)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[:, reached], wanted[:, reached], rtol=1e-12, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize(
    "words",
    [
        ["workspace", *WORKSPACE],
        pytest.param(["map", *MAP], marks=pytest.mark.slow),
        ["map", *MAP, "--quantity", "margin", "--mode", "0"],
    ],
)
def test_the_command_answers_alike(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cupy = processor()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    answers = []
    for more in ([], ["--gpu"]):
        assert not cupy.given
        assert main(["delta", *words, "--json", *more]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert cupy.given
    _alike(*answers)


def _alike(one: object, other: object) -> None:
    """The same words, and numbers to 1e-12."""
    if isinstance(one, dict) and isinstance(other, dict):
        assert one.keys() == other.keys()
        for key in one:
            _alike(one[key], other[key])
    elif isinstance(one, list) and isinstance(other, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            _alike(a, b)
    elif isinstance(one, float):
        assert other == pytest.approx(one, rel=1e-12, abs=1e-12)
    else:
        assert one == other


def test_what_cannot_be_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert main(["delta", "map", "--gpu"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "pip install cupy-cuda12x" in line
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(is_available=lambda: False))
    assert main(["delta", "workspace", "--gpu"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "CuPy finds no GPU" in line
    with pytest.raises(SystemExit):
        main(["delta", "map", "--gpu", "--scheduler", "tcp://localhost:8786"])
    assert "--gpu and --scheduler exclude each other" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "cupy", None)  # said before anybody installs it
    for name in ("quattro", "tricept"):
        with pytest.raises(AnalysisError, match=f"{name} on a GPU"):
            Analysis(load_mechanism(name), gpu=True)
