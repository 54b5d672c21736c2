# SPDX-License-Identifier: Apache-2.0
"""What becomes of one file: loaded, checked, solved, written in every format and read again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pkm_analysis.zoo.round_trip import FORMATS, there_and_back
from pkm_description.load import load_mechanism, load_model
from pkm_description.tree_model import TreeModel
from pkm_dynamics.transmission.transmission import Transmission
from pkm_kinematics.kinematics import Kinematics
from pkm_runtime.errors import PkmError

SWING = 0.02  # rad and m, of each joint about home, while the call is timed
STEPS = 200  # along it
REPEATS = 20  # of which the median counts


@dataclass
class Finding:
    """Of one file: `gap` [m] is the largest of all loops at home, `microseconds` those of a lean call from joints to
    motors, `modes` the working modes of a robot with one platform, `there_and_back` the largest difference of joints,
    inertia and weight (see `round_trip.Difference`). None: the file has no such thing, `notes` say why.
    """

    name: str
    repository: str
    commit: str
    path: str
    loads: bool = False
    freedoms: int | None = None
    loops: int | None = None
    clusters: int | None = None
    gap: float | None = None
    modes: int | None = None
    microseconds: float | None = None
    seconds: float | None = None
    there_and_back: dict[str, float | None] = field(default_factory=dict)  # by format; None: it cannot say it
    refused: str = ""
    notes: str = ""


def examine(found: Finding, file: Path, told: dict[str, str]) -> None:
    """Fill in what becomes of a file. A refusal is noted, whichever step it comes from."""
    begin = time.perf_counter()
    try:
        tree = load_model(file, told)
    except (PkmError, OSError) as error:
        found.refused = str(error)
        return
    found.seconds = time.perf_counter() - begin
    found.loads = True
    found.loops, found.clusters = len(tree.loops), len(tree.clusters)
    found.freedoms, found.gap = freedoms_of(tree), gap_of(tree)
    notes = []
    try:
        found.microseconds = lean_call(Transmission(tree))
    except PkmError as error:
        notes.append(f"no lean call: {error}")
    try:
        found.modes = Kinematics(load_mechanism(file, told)).n_modes
    except PkmError as error:
        notes.append(f"no robot with one platform: {error}")
    for kind in FORMATS:
        try:
            found.there_and_back[kind] = max(there_and_back(tree, kind))
        except PkmError as error:
            found.there_and_back[kind] = None
            notes.append(f"not written as {kind}: {error}")
    found.notes = "; ".join(notes)


def freedoms_of(tree: TreeModel) -> int:
    """Degrees of freedom: serial joints, and what loops leave, rods that only spin included."""
    free = sum(len(one.independent) + len(one.idle) for one in tree.clusters)
    return free + len(tree.joint_named) - sum(len(one.joints) for one in tree.clusters)


def gap_of(tree: TreeModel) -> float:
    """How far the ends of any loop are apart at home [m]; turns count at the length of the linkage."""
    worst = 0.0
    for members, loops in tree.tied_to(tree.joint_named):
        if loops:
            model = tree.closures(members, loops)
            worst = max(worst, float(np.abs(model.closure(tree.home_of(model))[0]).max()) * model.length)
    return worst


def lean_call(t: Transmission) -> float:
    """Microseconds from positions and efforts of joints to those of motors, along a motion of small steps."""
    call, n, m = t.lean(), len(t.joints), len(t.actuators)
    phase = np.arange(float(n))
    ways = [t.home + SWING * (np.sin(phase + 2 * np.pi * k / STEPS) - np.sin(phase)) for k in range(STEPS)]
    effort, position, out = np.ones(n), np.zeros(m), np.zeros(m)
    took = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for q in ways:
            call(q, effort, position, out)
        took.append(time.perf_counter() - begin)
    return float(np.median(took)) / STEPS * 1e6
