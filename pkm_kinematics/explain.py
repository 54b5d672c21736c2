# SPDX-License-Identifier: Apache-2.0
"""For a person: statuses in words, with the joint or the gap that explains them, and a robot in a few lines."""

from __future__ import annotations

from numpy import inf, isfinite

from pkm_description.mechanism import Array, Limb
from pkm_kinematics.kernels.records import CLOSED_FORM, GIVEN
from pkm_kinematics.solve.engine import Engine
from pkm_kinematics.solve.working_modes import WorkingModes
from pkm_kinematics.status import Status
from pkm_runtime.describable import alike, counted, listed

CLOSED = 1e-9  # of the robot's size: a configuration that was found, and is not known to be of the mode
BAD_POSE = "the pose is not finite, or its quaternion is not of unit length"
BAD_SEED = ", or the seed is not finite or too large to close loops with"


def explain_inverse(engine: Engine, status: int, joints: Array, residual: float, *, seeded: bool = False) -> str:
    """Why an inverse solve, `seeded` or not, ended with `status`; `joints` (n_joints,), `residual` [m]."""
    if status == Status.JOINT_LIMIT:
        return "; ".join(engine.ranges.violations(joints)) or Status(status).meaning
    if status == Status.INVALID_INPUT and residual > 0.0:
        off = f"{residual:.3g} m or rad" if isfinite(residual) else "very far"
        return f"the pose is {off} outside the platform's motion space"
    if status == Status.INVALID_INPUT:
        return BAD_POSE + BAD_SEED * seeded
    if status == Status.UNREACHABLE and residual == inf:
        return f"{Status(status).meaning} and keeps the ratio of its mimic joints"
    gap = f"a loop stays open by {residual:.3g} m" if isfinite(residual) else "too far away to compute the gap"
    if status == Status.NOT_CONNECTED:
        way = "near the seed" if seeded else "on the straight path from home" if engine.continues else "from home"
        words = f"iterated limbs do not follow the platform {way}"
        if residual < CLOSED * engine.size:
            return f"{words}; the pose has a configuration: give a seed for another path"
        return f"{words} ({gap}); inverse_all searches for other configurations, and a seed selects another path"
    if status in (Status.UNREACHABLE, Status.DIVERGED):
        return f"{Status(status).meaning} ({gap})"
    return Status(status).meaning


def explain_motion(engine: Engine, status: int, joints: Array, residual: float, *, seeded: bool = False) -> str:
    """Why a motion has the status it has; arguments as in `explain_inverse`."""
    if status == Status.INVALID_INPUT:
        what = (
            "the pose, the twist or the acceleration is not finite, outside the platform's motion space, or so large "
            "that numbers overflow"
        )
        return what + BAD_SEED * seeded
    return explain_inverse(engine, status, joints, residual)


def explain_forward(engine: Engine, status: int, joints: Array, residual: float) -> str:
    """Why a forward solve ended with `status`; `residual` is the largest error of an actuated joint."""
    if status == Status.JOINT_LIMIT:
        return "; ".join(engine.ranges.violations(joints)) or Status(status).meaning
    if status == Status.INVALID_INPUT:
        return (
            "a joint position, requested or of the seed, is not finite or too large to close loops, or the start "
            "pose is not usable"
        )
    if status == Status.UNREACHABLE:
        return "the limbs do not reach the start pose or a pose near it"
    if status == Status.SINGULAR and not isfinite(joints).all():
        return (
            "on the straight path of the actuators from the start pose, the limbs lose control of the platform "
            f"(type 2 singularity), with {residual:.3g} rad or m left: give a pose nearer to the solution"
        )
    return Status(status).meaning


def explain_nearest(engine: Engine, status: int, joints: Array, residual: float) -> str:
    """Why the search for the nearest configuration ended with `status`; arguments as in `explain_forward`."""
    return BAD_POSE + BAD_SEED if status == Status.INVALID_INPUT else explain_forward(engine, status, joints, residual)


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
        if block["solver"] != GIVEN and any(name.split("/")[0] in limb.joints for name in joints):
            kinds.add("in closed form" if block["solver"] == CLOSED_FORM else "by iteration")
    return " and ".join(sorted(kinds, reverse=True)) or "nothing to solve"
