# SPDX-License-Identifier: Apache-2.0
"""Sweeps: the same numbers wherever they run, and what was stopped goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pkm_analysis import Analysis, AnalysisError, user_quantity
from pkm_description import load_mechanism
from pkm_description.mechanism import Array
from pkm_runtime import sweeps
from pkm_runtime.errors import UsageError
from pkm_runtime.sweeps import Journal, Sweeps, key_of

RANGES = {"x": (-0.4, 0.4), "y": (0.1, 0.6)}


@pytest.fixture
def keep_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "WORTH_KEEPING", 0.0)


def squares(chunk: Array) -> tuple[Array, Array]:
    return chunk**2, chunk[:1]


def chunks(n: int = 9) -> Iterator[Array]:
    return (np.arange(3.0) + k for k in range(n))


@pytest.mark.usefixtures("keep_all")
def test_what_was_stopped_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "run.journal"
    first = Sweeps(1, journal=file)
    running = first.map(squares, chunks(), question="squares")
    done = [next(running) for _ in range(4)]
    running.close()  # type: ignore[attr-defined]
    first.close()

    called = []

    def counted(chunk: Array) -> tuple[Array, Array]:
        called.append(chunk[0])
        return squares(chunk)

    again = Sweeps(1, journal=file)
    results = list(again.map(counted, chunks(), question="squares"))
    assert called == [4.0, 5.0, 6.0, 7.0, 8.0]
    for (a, b), (c, d) in zip(results, [*done, *map(squares, list(chunks())[4:])], strict=True):
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)
    called.clear()
    list(again.map(counted, chunks(), question="cubes"))  # another question
    assert len(called) == 9


@pytest.mark.usefixtures("keep_all")
def test_a_spoilt_entry_is_computed_again_and_a_spoilt_file_is_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a")
    journal.keep("k", np.arange(3))
    journal._file.execute("UPDATE chunks SET result = x'504b0304'")
    assert journal.find("k") is None
    (tmp_path / "b").write_text("this is none " * 100)
    with pytest.raises(UsageError, match="delete this one"):
        Journal(tmp_path / "b")
    with pytest.raises(UsageError, match="journal"):
        Journal(tmp_path / "b" / "c")


def test_keys_tell_chunks_apart() -> None:
    several = (
        np.zeros(3),
        np.zeros((3, 1)),
        np.zeros(3, dtype=np.float32),
        (np.zeros(2), np.zeros(1)),
        (1, 23),
        (12, 3),
        "1",
        1,
    )
    assert len({key_of("q", one) for one in several}) == len(several)
    assert key_of("q", (0, np.ones(2))) == key_of("q", (0, np.ones(2)))


def test_a_sweep_within_a_chunk_stays_in_its_thread() -> None:
    here = Sweeps(2)

    def outer(chunk: int) -> bool:
        mine = threading.get_ident()
        return all(here.map(lambda _: threading.get_ident() == mine, range(3)))

    assert all(here.map(outer, range(4)))


def test_how_far_it_is() -> None:
    here = Sweeps(1)
    assert here.in_words() == ""
    running = here.map(lambda k: k, range(4), "numbers", 4)
    next(running)
    assert here.in_words().startswith("numbers, 25% done, ")
    assert here.in_words().endswith(" left")
    list(running)
    assert here.in_words() == ""
    here.begin("border: ")
    assert here.in_words() == "border"
    assert [sweeps.duration(t) for t in (12.3, 600.0, 36000.0)] == ["12 s", "10 min", "10.0 h"]


@pytest.mark.parametrize("seed", [None, 3])
def test_statistics_are_those_of_all_poses_at_once(seed: int | None, tmp_path: Path) -> None:
    robot = load_mechanism("five_bar")
    requirements = ["isotropy > 0.2"]
    found = Analysis(robot, sweeps=Sweeps(1)).sweep(
        "type2", RANGES, requirements=requirements, poses=200_000, seed=seed
    )
    other = Analysis(robot, sweeps=Sweeps(3, journal=tmp_path / "j"))
    assert (
        other.sweep("type2", RANGES, requirements=requirements, poses=200_000, seed=seed).to_dict() == found.to_dict()
    )
    if seed is None:
        sides = np.array([0.8, 0.5])
        n = np.round(sides / np.sqrt(sides.prod() / 200_000)).astype(int)
        x, y = ((np.arange(k) + 0.5) / k for k in n)
        points = np.stack(np.meshgrid(-0.4 + 0.8 * x, 0.1 + 0.5 * y, indexing="ij"), axis=-1).reshape(-1, 2)
        conditions = other.conditions(["x", "y"], requirements=requirements)
        inside = conditions.over(conditions.domain.within(RANGES)).inside(points)
        values = other.quantity("type2").of(other.robot, conditions.domain.poses(points[inside])[0])
        assert (found.poses, found.inside) == (len(points), inside.sum())
        np.testing.assert_allclose(found.mean, values.mean(), rtol=1e-12)
        np.testing.assert_allclose(found.deviation, values.std(), rtol=1e-9)
        assert found.least[0] == values.min()
        np.testing.assert_allclose(found.most[1], points[inside][values.argmax()], rtol=0, atol=1e-15)
        assert found.counts.sum() + sum(found.beyond) == inside.sum()
        np.testing.assert_array_equal(found.counts, np.histogram(values, found.edges)[0])
    shares = found.share + sum(share for _, share in found.stopped_by)
    assert shares == pytest.approx(1.0, abs=1e-12)
    assert len(found.plot().axes) == 2


def test_sweeps_with_a_fault(tmp_path: Path) -> None:
    analysis = Analysis(load_mechanism("five_bar"), sweeps=Sweeps(journal=tmp_path / "j"))
    with pytest.raises(AnalysisError, match="at none of"):
        analysis.sweep("type2", {"x": (5.0, 6.0), "y": (5.0, 6.0)}, poses=100)
    with pytest.raises(AnalysisError, match="0 poses are none"):
        analysis.sweep("type2", RANGES, poses=0)
    own = user_quantity("height", "m", lambda poses: poses[:, 1])
    with pytest.raises(AnalysisError, match="give user_quantity a version"):
        analysis.sweep(own, RANGES, poses=100)
    kept = user_quantity("height", "m", lambda poses: poses[:, 1], version="1")
    assert analysis.sweep(kept, RANGES, poses=100).least[0] > 0.1
    with pytest.raises(UsageError, match="there is no answer that a Dask scheduler gives"):
        Sweeps(scheduler="nonsense")
