# SPDX-License-Identifier: Apache-2.0
"""Reads MJCF by MuJoCo's own compiler, for files that need it (defaults, includes, inertia from geoms)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.formats.mjcf_model import (
    BALL_RANGE,
    BESIDE,
    CONTACTS,
    DISABLED,
    FLAGS,
    GAINS,
    GRAVCOMP,
    MEDIUM,
    MESHES,
    MOCAP,
    NO_LIMIT,
    REMARK,
    SHAPES,
    SOFTNESS,
    STOCK,
    WORLD,
    MjcfActuator,
    MjcfBody,
    MjcfClosure,
    MjcfGear,
    MjcfJoint,
    MjcfModel,
    check_spring,
    force_of,
    joint_stiffness,
    linear,
    servo,
    visual_of,
)
from pkm_description.mechanism import Array, Coupling, Spring
from pkm_description.rotations import transform, transform_from_wxyz
from pkm_description.urdf.xml_text import read_xml

KINDS = ("free", "ball", "slide", "hinge")
GEOMS = {2: "sphere", 3: "capsule", 5: "cylinder", 6: "box"}
ACTING = ("stiffness", "damping", "frictionloss")  # what a tendon pulls with
CONNECT, WELD, JOINT, TENDON = 0, 1, 2, 3  # of equalities; actuators number tendons alike


def read_compiled(text: str, path: Path | None, why: str) -> MjcfModel:
    """The model as MuJoCo compiles it, files included from beside `path`; `why` says what `mujoco` is needed for."""
    if find_spec("mujoco") is None:
        remedy = "pip install mujoco, or state inertias and attributes in full"
        raise DescriptionError("<mujoco>", f"only MuJoCo resolves {why}", remedy)
    try:
        m, meshed, beside = _compiled(text, path)
    except ValueError as error:
        problem = f"MuJoCo refuses it: {' '.join(str(error).split())}"
        raise DescriptionError("<mujoco>", problem, "correct the MJCF, or add the file") from error
    model = MjcfModel(m.names[: m.names.index(b"\0")].decode() or "robot", np.array(m.opt.gravity))
    model.tell(MESHES, meshed)
    names = [WORLD] + [m.body(i).name or f"body{i}" for i in range(1, m.nbody)]
    joints = _joint_names(m, names)
    model.tell(GRAVCOMP, [name for i, name in enumerate(names) if m.body_gravcomp[i]])
    balls = (j for j in range(m.njnt) if KINDS[m.jnt_type[j]] == "ball")
    model.tell(BALL_RANGE, [joints[j] for j in balls if m.jnt_limited[j]])
    stopped = " ".join(str(k) for k in range(31) if m.opt.disableactuator >> k & 1)
    model.tell_disabled([flag for flag in FLAGS if _disables(m, flag.upper())], stopped)
    if _disables(m, "GRAVITY"):
        model.gravity = np.zeros(3)
    shown = [i for i in range(m.nbody) if m.body_mocapid[i] < 0 or (m.body_parentid == i).any()]
    model.tell(MOCAP, [names[i] for i in range(m.nbody) if i not in shown])
    model.bodies += [_body(m, i, names, joints) for i in shown[1:]]
    disabled = _disables(m, "EQUALITY", "CONSTRAINT")
    model.tell(DISABLED, [m.eq(i).name or f"equality{i + 1}" for i in range(m.neq) if disabled])
    for i in range(m.neq if not disabled else 0):
        _equality(m, i, names, joints, model, shown)
    used = {int(m.actuator_trnid[i][0]) for i in range(m.nu) if m.actuator_trntype[i] == TENDON}
    for i in range(m.ntendon):
        _tendon(m, i, names, model, i in used)
    for i in range(m.nu):
        _actuator(m, i, joints, model)
    if m.nkey:
        chosen = next((k for k in range(m.nkey) if m.key(k).name == "home"), 0)
        model.home = [float(v) for v in m.key_qpos[chosen]]
        beside["other keyframes"] = [m.key(k).name for k in range(m.nkey) if k != chosen]
    _tell_beside(m, names, joints, model, beside, shown)
    return model


def _tell_beside(
    m: Any, names: list[str], joints: list[str], model: MjcfModel, beside: dict[str, list[str]], shown: list[int]
) -> None:
    import mujoco

    mesh, kinds = mujoco.mjtGeom.mjGEOM_MESH, list(enumerate(m.geom_type))
    odd = [m.geom_bodyid[g] for g, kind in kinds if kind != mesh and (kind not in GEOMS or not m.geom_bodyid[g])]
    model.tell(SHAPES, [names[i] for i in dict.fromkeys(odd) if i in shown])
    touching = dict.fromkeys(m.geom_bodyid[(m.geom_contype | m.geom_conaffinity) > 0])
    model.tell(CONTACTS, [names[i] for i in touching if i in shown[1:]])
    servos = [i for i in range(m.nu) if _law(m, i)[0] != "effort"]
    of_joint = {i: joints[m.actuator_trnid[i][0]] for i in servos if m.actuator_trntype[i] in (0, 1)}
    model.tell(GAINS, [m.actuator(i).name or of_joint.get(i, f"actuator{i + 1}") for i in servos])
    equalities = [m.eq(i).name or f"equality{i + 1}" for i in range(m.neq)]
    soft = [*_soft(m, "eq", equalities), *_soft(m, "jnt", joints)]
    soft += _soft(m, "dof", [joints[j] for j in m.dof_jntid])
    model.tell(SOFTNESS, list(dict.fromkeys(soft)))
    sites = [i for k in (0, 1) for i in (m.eq_obj1id, m.eq_obj2id)[k][m.eq_objtype == mujoco.mjtObj.mjOBJ_SITE]]
    sites += list(m.wrap_objid[m.wrap_type == mujoco.mjtWrap.mjWRAP_SITE])
    medium = [key for key in MEDIUM if np.any(getattr(m.opt, key))]
    model.tell_beside(beside, {m.site(int(i)).name for i in sites} | {REMARK}, medium)


def _soft(m: Any, prefix: str, names: list[str]) -> list[str]:
    # which of these constraints have other numbers than MuJoCo's stock ones
    arrays = [(getattr(m, f"{prefix}_{key}", None), stock) for key, stock in STOCK.items()]
    return [
        name
        for i, name in enumerate(names)
        if any(values is not None and not np.allclose(values[i], stock) for values, stock in arrays)
    ]


def _compiled(text: str, path: Path | None) -> tuple[Any, list[str], dict[str, list[str]]]:
    """MuJoCo's model, without meshes (maybe missing) where inertias are stated, bodies with meshes, what is beside."""
    import mujoco

    root = read_xml(text, "<mujoco>")
    if root.find("extension") is not None and root.find(".//include") is None:  # plugins that are not at hand
        for parent in list(root.iter()):
            for child in [*parent.findall("plugin"), *parent.findall("extension")]:
                parent.remove(child)
        for geom in root.iter("geom"):
            if geom.get("type") == "sdf":
                geom.set("type", "mesh")
        spec = mujoco.MjSpec.from_string(ET.tostring(root, encoding="unicode"))
    else:
        spec = mujoco.MjSpec.from_file(str(path)) if path else mujoco.MjSpec.from_string(text)
    mesh = mujoco.mjtGeom.mjGEOM_MESH
    meshed = [body.name for body in spec.bodies if any(geom.type == mesh for geom in body.geoms)]
    beside = {
        what: [one.name for part in parts for one in getattr(spec, part, ())] for what, (_, _, parts) in BESIDE.items()
    }
    still = {"world"}  # bodies that never move, and whose mass does not matter
    scaled = getattr(spec.compiler, "settotalmass", 0.0) > 0.0  # of bodies that never move, too
    for body in spec.bodies if spec.compiler.inertiafromgeom != 1 else ():
        if not scaled and body.parent is not None and body.parent.name in still and not body.joints and body.name:
            still.add(body.name)
        for geom in list(body.geoms):
            if geom.type == mesh and (body.explicitinertial or body.name in still):
                spec.delete(geom)
            else:
                geom.material = ""
    kept = {geom.meshname for geom in spec.geoms}
    for thing in (*spec.textures, *spec.materials, *(mesh for mesh in spec.meshes if mesh.name not in kept)):
        spec.delete(thing)
    for thing in (*spec.pairs, *spec.excludes):  # of a scene, perhaps, that is not there; kinematics has no contacts
        spec.delete(thing)
    return spec.compile(), meshed, beside


def _disables(m: Any, *flags: str) -> bool:
    import mujoco

    return any(m.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}", 0)) for flag in flags)


def _polynomial(m: Any, name: str, i: int) -> list[str]:
    """A coefficient and, where MuJoCo has them, those of higher powers."""
    powers = getattr(m, f"{name}poly", None)
    values = [*np.ravel(getattr(m, name)[i]), *(() if powers is None else np.ravel(powers[i]))]
    return [repr(float(value)) for value in values]


def _joint_names(m: Any, bodies: list[str]) -> list[str]:
    found = []
    for j in range(m.njnt):
        number = j - int(m.body_jntadr[m.jnt_bodyid[j]])
        found.append(m.joint(j).name or f"{bodies[m.jnt_bodyid[j]]}_joint" + (str(number + 1) if number else ""))
    return found


def _body(m: Any, i: int, names: list[str], joints: list[str]) -> MjcfBody:
    body = MjcfBody(names[i], names[m.body_parentid[i]], transform_from_wxyz(m.body_pos[i], m.body_quat[i]))
    principal = transform_from_wxyz(m.body_ipos[i], m.body_iquat[i])
    body.mass, body.com = float(m.body_mass[i]), principal[:3, 3]
    body.inertia = principal[:3, :3] @ np.diag(m.body_inertia[i]) @ principal[:3, :3].T
    for j in range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i]):
        dof, kind = m.jnt_dofadr[j], KINDS[m.jnt_type[j]]
        label, single = f'<joint name="{joints[j]}">', kind in ("hinge", "slide")
        stiffness = joint_stiffness(_polynomial(m, "jnt_stiffness", j), kind, label)
        body.joints.append(
            MjcfJoint(
                name=joints[j],
                kind=kind,
                pos=np.array(m.jnt_pos[j]),
                axis=np.array(m.jnt_axis[j]),
                limits=(float(m.jnt_range[j][0]), float(m.jnt_range[j][1])) if m.jnt_limited[j] and single else None,
                effort=(float(m.jnt_actfrcrange[j][0]), float(m.jnt_actfrcrange[j][1]))
                if m.jnt_actfrclimited[j]
                else NO_LIMIT,
                damping=linear(_polynomial(m, "dof_damping", dof), "damping", label),
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
            rgba = [float(f"{v:.3g}") for v in m.geom_rgba[g]]
            size = [float(v) for v in m.geom_size[g]]
            frame = transform_from_wxyz(m.geom_pos[g], m.geom_quat[g])
            body.visuals.append(visual_of(body.name, kind, size, frame, rgba))
    return body


def _equality(m: Any, i: int, names: list[str], joints: list[str], model: MjcfModel, shown: list[int]) -> None:
    import mujoco

    name = m.eq(i).name or f"equality{i + 1}"
    kind, data = int(m.eq_type[i]), m.eq_data[i]
    one, two = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
    if not m.eq_active0[i]:
        model.notes.append(f"not read: the equality {name}, which is not active")
        return
    if kind in (JOINT, TENDON):
        label = f'<equality name="{name}">'
        of_joints = _coefficients_of(m, one, kind, label)
        if two >= 0 and data[2:5].any():
            others = _coefficients_of(m, two, kind, label)
            first, second = ({joints[j]: c for j, c in some.items()} for some in (of_joints, others))
            _curve(first, second, data, model, name)
            return
        for joint, factor in (_coefficients_of(m, two, kind, label) if two >= 0 else {}).items():
            of_joints[joint] = of_joints.get(joint, 0.0) - float(data[1]) * factor
        _couple([(joints[j], c) for j, c in of_joints.items() if c], float(data[0]), model, name)
        return
    if kind not in (CONNECT, WELD):
        raise DescriptionError(
            f'<equality name="{name}">', "this constraint is not supported", "close loops with connect or weld"
        )
    if m.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        frames = [transform_from_wxyz(m.site_pos[s], m.site_quat[s]) for s in (one, two)]
        one, two = int(m.site_bodyid[one]), int(m.site_bodyid[two])
    elif kind == CONNECT:
        frames = [transform(np.array(data[:3]), np.eye(3)), transform(np.array(data[3:6]), np.eye(3))]
    else:
        frames = [transform_from_wxyz(data[3:6], data[6:10]), np.eye(4)]
    if {one, two} - set(shown):
        mocap = names[one if one not in shown else two]
        model.tell("the equality of a mocap body,", [f"{name} (of {mocap})"])
        return
    what = "weld" if kind == WELD else "connect"
    model.closures.append(MjcfClosure(name, what, names[one], names[two], frames[0], frames[1]))


def _coefficients_of(m: Any, which: int, kind: int, label: str) -> dict[int, float]:
    """Joints by number with their factors: of a joint, or of a fixed tendon."""
    import mujoco

    if kind == JOINT:
        return {which: 1.0}
    parts = range(m.tendon_adr[which], m.tendon_adr[which] + m.tendon_num[which])
    if any(m.wrap_type[k] != mujoco.mjtWrap.mjWRAP_JOINT for k in parts):
        raise DescriptionError(label, "its tendon is not a sum of joints", "write a <fixed> tendon")
    return {int(m.wrap_objid[k]): float(m.wrap_prm[k]) for k in parts}


def _curve(first: dict[str, float], others: dict[str, float], data: Array, model: MjcfModel, name: str) -> None:
    """A sum of joints that follows another joint by a polynomial, between departures from the drawing."""
    if len(others) != 1 or set(first) & set(others):
        problem, remedy = "a polynomial of no single joint", "write a polycoef of two numbers, or the linkage itself"
        raise DescriptionError(f'<equality name="{name}">', problem, remedy)
    ((leader, factor),) = others.items()
    curve = tuple(-float(data[power]) * factor**power for power in range(1, 5))
    terms = (*((joint, (c,)) for joint, c in first.items()), (leader, curve))
    model.couplings.append(Coupling(name, terms, -float(data[0])))


def _couple(terms: list[tuple[str, float]], offset: float, model: MjcfModel, name: str) -> None:
    """What sum(factor * departure from the drawing) = offset means: a gear, a coupling, or a joint that is still."""
    if len(terms) == 1:
        model.locked.append((terms[0][0], offset / terms[0][1]))
    elif len(terms) == 2:
        (follower, own), (leader, other) = terms
        model.gears.append(MjcfGear(follower, leader, offset / own, -other / own))
    else:
        model.couplings.append(Coupling(name, tuple((joint, (c,)) for joint, c in terms), -offset))


def _tendon(m: Any, i: int, names: list[str], model: MjcfModel, used: bool) -> None:
    import mujoco

    name = m.tendon(i).name or f"tendon{i + 1}"
    label = f'<tendon name="{name}">'
    parts = range(m.tendon_adr[i], m.tendon_adr[i] + m.tendon_num[i])
    of_joints = all(m.wrap_type[k] == mujoco.mjtWrap.mjWRAP_JOINT for k in parts)
    acts = any(np.any(getattr(m, f"tendon_{key}")[i]) for key in (*ACTING, "limited"))
    if not acts and (of_joints or not used):
        return  # a sum or a length that is only measured, or what equalities and actuators name
    if not any(np.any(getattr(m, f"tendon_{key}")[i]) for key in ACTING):
        what = "a sum of joints that may move" if of_joints else "a cord whose length may change"
        model.notes.append(f"not read: the range of the tendon {name}, {what} within it")
        return
    if len(parts) != 2 or any(m.wrap_type[k] != mujoco.mjtWrap.mjWRAP_SITE for k in parts):
        raise DescriptionError(label, "it is not a spring between two sites", "write a <spatial> of two existing sites")
    stiffness = linear(_polynomial(m, "tendon_stiffness", i), "stiffness", label)
    more = {key: " ".join(_polynomial(m, f"tendon_{key}", i)) for key in ("damping", "frictionloss")}
    check_spring(more, [repr(float(length)) for length in m.tendon_lengthspring[i]], label)
    first, second = (int(m.wrap_objid[k]) for k in parts)
    ends = [(names[m.site_bodyid[site]], np.array(m.site_pos[site])) for site in (first, second)]
    rest = float(m.tendon_lengthspring[i][0])
    model.springs.append(Spring(name, stiffness, *ends[0], *ends[1], rest))


def _actuator(m: Any, i: int, joints: list[str], model: MjcfModel) -> None:
    label = f'<actuator name="{m.actuator(i).name}">'
    kind, which = int(m.actuator_trntype[i]), int(m.actuator_trnid[i][0])
    if kind not in (0, 1, TENDON):
        raise DescriptionError(label, "only motors of joints are supported", "use <motor joint=...>")
    if _brakes(m, i):
        model.tell("the damper", [m.actuator(i).name or joints[which]])
        return
    factors = {joints[j]: c for j, c in _coefficients_of(m, which, TENDON if kind == TENDON else JOINT, label).items()}
    leaders = {gear.follower: gear for gear in model.gears}
    gear, drives = float(m.actuator_gear[i][0]), dict[str, float]()
    levers: dict[str, tuple[float, float]] = {}
    for own, factor in factors.items():
        name, rate = own, 1.0
        while name in leaders and len(factors) > 1:
            rate, name = rate * leaders[name].ratio, leaders[name].leader
        levers[own] = gear * factor, rate
        drives[name] = drives.get(name, 0.0) + factor * rate
    joint, *others = [name for name, lever in drives.items() if lever] or list(drives)[:1]
    if others:
        raise DescriptionError(label, f"it drives both {others[0]} and {joint}", "couple them, or drive each joint")
    interface, doubt, by_control = _law(m, i)
    force = force_of([by_control, m.actuator_forcerange[i] if m.actuator_forcelimited[i] else None])
    drive = MjcfActuator(joint, interface, force, levers, doubt)
    if kind == TENDON:
        span = m.tendon_actfrcrange[which] if m.tendon_actfrclimited[which] else NO_LIMIT
        drive.tendon = which, (float(span[0]), float(span[1]))
    model.actuators.append(drive)


def _brakes(m: Any, i: int) -> bool:
    """Whether the control of an actuator is that of a damper."""
    import mujoco

    gain, free = m.actuator_gainprm[i], m.actuator_biastype[i] == mujoco.mjtBias.mjBIAS_NONE
    return bool(m.actuator_gaintype[i] == mujoco.mjtGain.mjGAIN_AFFINE and free and not gain[:2].any())


def _law(m: Any, i: int) -> tuple[str, str, tuple[float, float] | None]:
    """The interface of an actuator, why its control does not bound its force, and the bounds where it does."""
    import mujoco

    gains, biases, dynamics = mujoco.mjtGain, mujoco.mjtBias, mujoco.mjtDyn
    gain, bias = m.actuator_gainprm[i], m.actuator_biasprm[i] * (m.actuator_biastype[i] == biases.mjBIAS_AFFINE)
    if bias[1:3].any():
        interface = "position" if bias[1] else "velocity"
        return interface, servo(interface), None
    if m.actuator_gaintype[i] != gains.mjGAIN_FIXED:
        muscle = m.actuator_gaintype[i] == gains.mjGAIN_MUSCLE
        return "effort", "a muscle" if muscle else "its force depends on its motion", None
    followed = [int(one) for one in (dynamics.mjDYN_NONE, dynamics.mjDYN_FILTER, dynamics.mjDYN_FILTEREXACT)]
    what = "ctrl" if int(m.actuator_dyntype[i]) in followed else "act"
    if not getattr(m, f"actuator_{what}limited")[i]:
        return "effort", "" if what == "ctrl" else "its force follows its control in time", None
    low, high = sorted(float(v) for v in gain[0] * getattr(m, f"actuator_{what}range")[i] + bias[0])
    return "effort", "", (low, high)
