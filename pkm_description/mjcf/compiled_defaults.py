# SPDX-License-Identifier: Apache-2.0
"""Reads MJCF by MuJoCo's own compiler, for files that need it (defaults, includes, inertia from geoms)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.mjcf.mujoco_model import (
    WORLD,
    MjcfActuator,
    MjcfBody,
    MjcfClosure,
    MjcfGear,
    MjcfGeom,
    MjcfJoint,
    MjcfModel,
    MjcfSpring,
    frame_of,
)
from pkm_description.mjcf.reader import check_spring, joint_stiffness
from pkm_description.rotations import transform

KINDS = ("free", "ball", "slide", "hinge")
GEOMS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}
CONNECT, WELD, JOINT = 0, 1, 2


def read_compiled(text: str, path: Path | None, why: str) -> MjcfModel:
    """The model as MuJoCo compiles it, in the records of `reader.read`; `why` explains the need for `mujoco`.

    Files are included from the folder of `path`. Raises `DescriptionError` where the package is missing, MuJoCo refuses
    the text, or an element has no counterpart.
    """
    try:
        import mujoco
    except ImportError as error:
        raise DescriptionError(
            "<mujoco>", f"only MuJoCo resolves {why}", "pip install mujoco, or state inertias and attributes in full"
        ) from error
    try:
        m = mujoco.MjModel.from_xml_path(str(path)) if path else mujoco.MjModel.from_xml_string(text)
    except ValueError as error:
        raise DescriptionError("<mujoco>", f"MuJoCo refuses it: {error}", "correct the MJCF") from error
    model = MjcfModel(m.names[: m.names.index(b"\0")].decode() or "robot", np.array(m.opt.gravity))
    names = [WORLD] + [m.body(i).name or f"body{i}" for i in range(1, m.nbody)]
    joints = _joint_names(m, names)
    for i in range(1, m.nbody):
        model.bodies.append(_body(m, i, names, joints))
    for i in range(m.neq):
        _equality(m, i, names, joints, model)
    for i in range(m.ntendon):
        _tendon(m, i, names, model)
    for i in range(m.nu):
        _actuator(m, i, joints, model)
    if m.nkey:
        chosen = next((k for k in range(m.nkey) if m.key(k).name == "home"), 0)
        model.home = [float(v) for v in m.key_qpos[chosen]]
    return model


def _joint_names(m: Any, bodies: list[str]) -> list[str]:
    found = []
    for j in range(m.njnt):
        number = j - int(m.body_jntadr[m.jnt_bodyid[j]])
        found.append(m.joint(j).name or f"{bodies[m.jnt_bodyid[j]]}_joint" + (str(number + 1) if number else ""))
    return found


def _body(m: Any, i: int, names: list[str], joints: list[str]) -> MjcfBody:
    body = MjcfBody(names[i], names[m.body_parentid[i]], frame_of(m.body_pos[i], m.body_quat[i]))
    principal = frame_of(m.body_ipos[i], m.body_iquat[i])
    body.mass, body.com = float(m.body_mass[i]), principal[:3, 3]
    body.inertia = principal[:3, :3] @ np.diag(m.body_inertia[i]) @ principal[:3, :3].T
    for j in range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i]):
        dof, kind = m.jnt_dofadr[j], KINDS[m.jnt_type[j]]
        values = [repr(float(value)) for value in np.ravel(m.jnt_stiffness[j])]
        stiffness = joint_stiffness(values, kind, f'<joint name="{joints[j]}">')
        single = kind in ("hinge", "slide")
        body.joints.append(
            MjcfJoint(
                name=joints[j],
                kind=kind,
                pos=np.array(m.jnt_pos[j]),
                axis=np.array(m.jnt_axis[j]),
                limits=(float(m.jnt_range[j][0]), float(m.jnt_range[j][1])) if m.jnt_limited[j] and single else None,
                damping=float(np.ravel(m.dof_damping[dof])[0]),
                friction=float(m.dof_frictionloss[dof]),
                armature=float(m.dof_armature[dof]),
                reference=float(m.qpos0[m.jnt_qposadr[j]]) if single else 0.0,
                stiffness=stiffness,
                rest=float(m.qpos_spring[m.jnt_qposadr[j]]) if single else 0.0,
            )
        )
    for g in range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i]):
        kind = GEOMS.get(int(m.geom_type[g]), "")
        if kind:
            rgba = " ".join(f"{v:.3g}" for v in m.geom_rgba[g])
            size = [float(v) for v in m.geom_size[g]]
            body.geoms.append(MjcfGeom(kind, size, frame_of(m.geom_pos[g], m.geom_quat[g]), rgba))
    return body


def _equality(m: Any, i: int, names: list[str], joints: list[str], model: MjcfModel) -> None:
    import mujoco

    name = m.eq(i).name or f"equality{i + 1}"
    kind, data = int(m.eq_type[i]), m.eq_data[i]
    one, two = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    if not m.eq_active0[i]:
        return
    if kind == JOINT and two >= 0 and not data[2:5].any():
        model.gears.append(MjcfGear(joints[one], joints[two], float(data[0]), float(data[1])))
        return
    if kind not in (CONNECT, WELD):
        raise DescriptionError(
            f'<equality name="{name}">', "such a constraint is not supported", "close loops with connect or weld"
        )
    if m.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        frames = [frame_of(m.site_pos[s], m.site_quat[s]) for s in (one, two)]
        one, two = int(m.site_bodyid[one]), int(m.site_bodyid[two])
    elif kind == CONNECT:
        frames = [transform(np.array(data[:3]), np.eye(3)), transform(np.array(data[3:6]), np.eye(3))]
    else:
        frames = [frame_of(data[3:6], data[6:10]), np.eye(4)]
    what = "weld" if kind == WELD else "connect"
    model.closures.append(MjcfClosure(name, what, names[one], names[two], frames[0], frames[1]))


def _tendon(m: Any, i: int, names: list[str], model: MjcfModel) -> None:
    import mujoco

    name = m.tendon(i).name or f"tendon{i + 1}"
    label = f'<spatial name="{name}">'
    parts = range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
    if len(parts) != 2 or any(m.wrap_type[k] != mujoco.mjtWrap.mjWRAP_SITE for k in parts):
        raise DescriptionError(label, "it is no spring between two sites", "write a <spatial> of two existing sites")
    stiffness = [float(value) for value in np.ravel(m.tendon_stiffness[i])]
    more = {key: " ".join(map(str, np.ravel(getattr(m, f"tendon_{key}")[i]))) for key in ("damping", "frictionloss")}
    check_spring(more, [repr(float(length)) for length in m.tendon_lengthspring[i]], label)
    if any(stiffness[1:]):
        raise DescriptionError(label, "its stiffness depends on its stretch", "write one number, stiffness")
    first, second = (int(m.wrap_objid[k]) for k in parts)
    ends = [(names[m.site_bodyid[site]], np.array(m.site_pos[site])) for site in (first, second)]
    rest = float(m.tendon_lengthspring[i][0])
    model.springs.append(MjcfSpring(name, *ends[0], *ends[1], stiffness[0], rest))


def _actuator(m: Any, i: int, joints: list[str], model: MjcfModel) -> None:
    if int(m.actuator_trntype[i]) != 0:
        label = f'<actuator name="{m.actuator(i).name}">'
        raise DescriptionError(label, "only motors of joints are supported", "use <motor joint=...>")
    gain, bias = m.actuator_gainprm[i], m.actuator_biasprm[i]
    interface = "effort" if not bias[:3].any() else "position" if bias[1] == -gain[0] else "velocity"
    limit = np.inf
    if m.actuator_forcelimited[i]:
        limit = float(np.abs(m.actuator_forcerange[i]).max())
    elif m.actuator_ctrllimited[i] and interface == "effort":
        limit = float(np.abs(m.actuator_ctrlrange[i]).max())
    gear = abs(float(m.actuator_gear[i][0]))
    model.actuators.append(MjcfActuator(joints[int(m.actuator_trnid[i][0])], interface, limit * gear))
