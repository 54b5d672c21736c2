# SPDX-License-Identifier: Apache-2.0
"""`pkm zoo`: a file from a commit of a repository, or from a clone, and what is said of it. No network."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pkm_analysis.analysis_errors import AnalysisError
from pkm_analysis.zoo import Finding, Specimen, examine, fetched, freedoms_of, gap_of, main, specimens
from pkm_description.load import load_model

BIPED = Path(__file__).parents[1] / "pkm_description" / "biped.xml"
PLANAR = Path(__file__).parents[2] / "docs" / "examples" / "biglide.urdf.xacro"


def test_says_what_a_biped_is() -> None:
    found = Finding("biped", "some/one", "0" * 40, "biped.xml")
    examine(found, BIPED, {})
    assert (found.loads, found.loops, found.clusters) == (True, 6, 4)
    there = {kind: value for kind, value in found.there_and_back.items() if value is not None}
    assert max(there.values()) < 1e-10
    assert there.keys() >= {"urdf+", "mjcf", "sdf", "urdf+constraint", "yaml"}  # usd needs its library
    assert found.gap is not None
    assert found.gap < 1e-12
    # six of the torso, two hips, two knees with one, two ankles with two each, and four rods that spin
    assert found.freedoms == 18
    assert found.modes is None
    assert "platform" in found.notes


def test_a_robot_with_one_platform_has_modes() -> None:
    found = Finding("biglide", "some/one", "0" * 40, "biglide.urdf.xacro")
    examine(found, PLANAR, {})
    assert found.modes == 4, found.notes


def test_a_gap_is_seen() -> None:
    biped = load_model(BIPED)
    assert freedoms_of(biped) == 18
    biped.home["left_knee"] += 1e-6
    assert 1e-9 < gap_of(biped) < 1e-5


def test_fetches_the_commit_that_is_named(tmp_path: Path) -> None:
    upstream, path = tmp_path / "hub" / "some" / "one", "robots/biped.xml"
    (upstream / "robots").mkdir(parents=True)
    (upstream / "large.bin").write_text("not fetched")
    commits = []

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        command = ["git", *identity, *arguments]
        return subprocess.run(command, cwd=upstream, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git("config", "uploadpack.allowFilter", "true")
    for text in (BIPED.read_text(), "<mujoco/>"):
        (upstream / path).write_text(text)
        git("add", "."), git("commit", "--quiet", "-m", "one")
        commits.append(git("rev-parse", "HEAD"))
    for commit, text in zip(commits, (BIPED.read_text(), "<mujoco/>"), strict=True):
        one = Specimen("biped", "some/one", commit, path, "")
        for _ in range(2):  # the second finds it there
            assert fetched(one, tmp_path / "cache", f"file://{tmp_path}/hub").read_text() == text
    assert not (tmp_path / "cache" / "some" / "one" / "large.bin").exists()
    with pytest.raises(AnalysisError, match="git fetch"):
        fetched(Specimen("biped", "some/one", "0" * 40, path, ""), tmp_path / "cache", f"file://{tmp_path}/hub")


@pytest.mark.slow
def test_reads_clones_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, clone = tmp_path / "table.csv", tmp_path / "some" / "one"
    clone.mkdir(parents=True)
    (clone / "biped.xml").write_text(BIPED.read_text())
    (clone / "wrong.xml").write_text("<mujoco><worldbody><body><joint type='screw'/></body></worldbody></mujoco>")
    rows = [f"{name},some/one,{'0' * 40},{name}.xml," for name in ("biped", "wrong", "missing")]
    table.write_text("\n".join(["name,repository,commit,path,arguments", *rows]) + "\n")
    files = ["--json", str(tmp_path / "zoo.json"), "--report", str(tmp_path / "zoo.md")]
    given = ["--from", str(tmp_path), "--table", str(table), *files]
    assert main(["biped", "wrong", *given]) == 0
    assert main(given) == 1  # one is not there
    assert "biped: 18 degrees of freedom" in capsys.readouterr().out
    biped, wrong, missing = json.loads((tmp_path / "zoo.json").read_text())
    assert biped["loads"]
    assert not wrong["loads"]
    assert not missing["loads"]
    assert "wrong.xml" in wrong["refused"]
    assert "not there" in missing["refused"]
    assert "| `wrong` | " in (tmp_path / "zoo.md").read_text()
    assert main(["beaver", *given]) == 2
    assert "beaver" in capsys.readouterr().err


def test_the_table_is_whole() -> None:
    found = specimens([])
    assert len({one.name for one in found}) == len(found) >= 20
    for one in found:
        assert len(one.commit) == 40
        assert int(one.commit, 16)
        assert one.repository.count("/") == 1
        assert all(one.told().values())
