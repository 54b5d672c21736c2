# SPDX-License-Identifier: Apache-2.0
"""A robot in a few lines: what moves it, what a pose is made of, how it is solved."""

from __future__ import annotations

from pkm_description.mechanism import Limb
from pkm_kinematics.kernels.records import CLOSED_FORM
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_runtime.describable import alike, counted, listed


def introduction(engine: Engine, modes: WorkingModes) -> list[str]:
    """Lines of text; starts no search."""
    mechanism = engine.mechanism
    actuated = {name: mechanism.joint_named[name].in_words() for name in engine.actuated_names}
    solved = {limb.name: solved_by(engine, limb) for limb in mechanism.limbs}
    if mechanism.articulated_platform is not None:
        solved["articulated platform"] = solved_by(engine, mechanism.articulated_platform)
    forms = int((engine.tables.blocks["solver"] == CLOSED_FORM).sum())
    count = modes.known_count
    return [
        "actuated joints",
        *(f"  {line}" for line in alike(actuated)),
        f"task coordinates: {mechanism.coordinates_in_words()}",
        f"solved ({counted(forms, 'closed form')} in all)",
        *(f"  {line}" for line in alike(solved)),
        f"working modes: {count if count is not None else 'n_modes searches for them'}",
        f"all joints, {len(engine.joint_names)}: {listed(engine.joint_names)}",
    ]


def solved_by(engine: Engine, limb: Limb) -> str:
    """How a limb's positions are found, in words."""
    tables = engine.tables
    kinds = set()
    for block in tables.blocks:
        joints = tables.names[block["start"] : block["start"] + block["count"]]
        if any(name.split("/")[0] in limb.joints for name in joints):
            kinds.add("in closed form" if block["solver"] == CLOSED_FORM else "by iteration")
    return " and ".join(sorted(kinds, reverse=True)) or "nothing to solve"
