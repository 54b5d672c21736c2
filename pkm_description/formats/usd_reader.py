# SPDX-License-Identifier: Apache-2.0
"""Read USD with UsdPhysics into bodies and joints, by OpenUSD's own library (`pip install usd-core`)."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError
from pkm_description.formats.bodies_and_joints import WORLD, Assembly, Body, Connection, position_as_drawn
from pkm_description.mechanism import Array, Inertial, Limits, Mimic, frozen, symmetric_of
from pkm_description.mjcf.mujoco_model import frame_of
from pkm_description.rotations import inverse_transform
from pkm_description.urdf.inertia import inertia_problem
from pkm_description.urdf.visuals import GREY, Visual
from pkm_description.urdf.xml_text import read_xml
from pkm_runtime.optional import optional_library

KINDS = {
    "PhysicsRevoluteJoint": "continuous",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsFixedJoint": "fixed",
}
SHAPES = {"Cube": ("box", ("size",)), "Sphere": ("sphere", ("radius",)), "Cylinder": ("cylinder", ("radius", "height"))}
AXES = dict(zip("XYZ", np.eye(3), strict=True))
SMALLEST_UNIT = 1e-9  # m or kg
SINGLE = 1e-6  # relative: what single precision keeps of a number


def read_usd(text: str, path: Path | None = None) -> Assembly:
    """Bodies and joints of USD text, or of the file `path` of any of USD's formats."""
    usd = optional_library("pxr.Usd", "usd-core", "USD files")
    label = f"file {path}" if path else "USD text"
    sdf = optional_library("pxr.Sdf", "usd-core", "USD files")
    try:
        if path is None:
            layer = sdf.Layer.CreateAnonymous(".usda")
            layer.ImportFromString(text)
            stage = usd.Stage.Open(layer)
        else:
            stage = usd.Stage.Open(str(path))
    except Exception as error:  # Tf.ErrorException, of a library that may be missing
        reads = ".".join(str(number) for number in usd.GetVersion()[1:])
        version = re.search(r"layer version '[^']*'", str(error))
        problem = f"USD {reads} does not read {version[0]}" if version else f"USD {reads} cannot open it"
        remedy = "write the file again" + (
            ", in an older version" if version else ": it is empty, truncated, or not USD"
        )
        raise DescriptionError(label, problem, remedy) from error
    return _Reader(stage, label).assembly


class _Reader:
    def __init__(self, stage: Any, label: str) -> None:
        geom = optional_library("pxr.UsdGeom", "usd-core", "USD files")
        physics = optional_library("pxr.UsdPhysics", "usd-core", "USD files")
        self.stage, self.label = stage, label
        self.metre, self.kilogram = geom.GetStageMetersPerUnit(stage), physics.GetStageKilogramsPerUnit(stage)
        for key, unit in (("metersPerUnit", self.metre), ("kilogramsPerUnit", self.kilogram)):
            if not SMALLEST_UNIT <= unit <= 1.0 / SMALLEST_UNIT:
                raise DescriptionError(label, f"{key} is {unit:g}", "write a positive number, for example 1 or 0.001")
        prims = list(stage.Traverse(optional_library("pxr.Usd", "usd-core", "USD files").TraverseInstanceProxies()))
        default = stage.GetDefaultPrim()
        self.assembly = Assembly(default.GetName() if default else "robot")
        remark = stage.GetRootLayer().customLayerData.get("pkm", "")
        if remark:
            self.assembly.remark = read_xml(remark, "the remark `pkm` of the layer")
        self.transforms = geom.XformCache()
        self.bodies: dict[str, str] = {}  # names by path
        for prim in prims:
            if prim.HasAPI(physics.RigidBodyAPI):
                self._body(prim)
            elif prim.GetTypeName() == "PhysicsScene":
                self._gravity(prim)
        self.joints: dict[str, str] = {}
        found = [
            prim for prim in prims if str(prim.GetTypeName()).startswith("Physics") and "Joint" in prim.GetTypeName()
        ]
        for prim in found:
            self._joint(prim)
        if any(prim.GetAttribute("newton:jointsAddMobility").Get() for prim in prims):
            self._stack()
        for prim in found:
            self._mimic(prim)
        for prim in prims:  # MuJoCo's own words, as its converter writes them
            target = prim.GetRelationship("mjc:target").GetTargets() if prim.GetTypeName() == "MjcActuator" else ()
            if target and str(target[0]) in self.joints:
                affine = prim.GetAttribute("mjc:biasType").Get() == "affine"
                self.assembly.drive(
                    self.joints[str(target[0])], str(prim.GetPath()), "position" if affine else "effort"
                )

    def _gravity(self, prim: Any) -> None:
        exact = prim.GetAttribute("pkm:gravity").Get()
        if exact is not None:
            self.assembly.gravity = np.array(exact)
            return
        size, way = (
            prim.GetAttribute("physics:gravityMagnitude").Get(),
            prim.GetAttribute("physics:gravityDirection").Get(),
        )
        way = np.array((0.0, 0.0, 0.0) if way is None else way, dtype=np.float64)
        if size is not None and math.isfinite(size) and size >= 0.0 and way.any():
            self.assembly.gravity = way / np.linalg.norm(way) * size * self.metre

    def _pose(self, prim: Any) -> tuple[Array, Array]:
        """Pose (4, 4) in metres of a prim in the world, and its scale (3,)."""
        matrix = np.array(self.transforms.GetLocalToWorldTransform(prim)).T
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        pose = np.eye(4)
        pose[:3, :3] = matrix[:3, :3] / scale
        pose[:3, 3] = matrix[:3, 3] * self.metre
        return pose, scale * self.metre

    def _named(self, prim: Any, taken: Any) -> str:
        name = str(prim.GetAttribute("pkm:name").Get() or prim.GetName())
        return name if name not in taken else str(prim.GetPath()).strip("/")

    def _body(self, prim: Any) -> None:
        name = self._named(prim, self.assembly.bodies)
        self.bodies[str(prim.GetPath())] = name
        pose, scale = self._pose(prim)

        def get(key: str, default: Any) -> Array:
            value = prim.GetAttribute(f"physics:{key}").Get()
            return np.array(default if value is None else value, dtype=np.float64)

        mass, com = float(get("mass", 0.0)) * self.kilogram, get("centerOfMass", (0.0, 0.0, 0.0)) * scale
        com = com if np.isfinite(com).all() else np.zeros(3)
        exact = prim.GetAttribute("pkm:inertia").Get()
        if exact is not None and _same([mass, *com], exact[:4]):
            inertial = Inertial(float(exact[0]), frozen(exact[1:4]), frozen(symmetric_of(np.array(exact[4:]))))
        else:
            turn = _quaternion(prim.GetAttribute("physics:principalAxes").Get())
            moments = get("diagonalInertia", (0.0, 0.0, 0.0)) * self.kilogram * self.metre**2
            inertial = Inertial(mass, frozen(com), frozen(turn @ np.diag(moments) @ turn.T))
        problem = inertia_problem(inertial)
        if problem:
            raise DescriptionError(str(prim.GetPath()), problem, "correct mass or inertia")
        if not mass:
            self.assembly.notes.append(f"no mass is stated: {name}")
        self.assembly.bodies[name] = Body(name, pose, inertial, self._visuals(prim, name, pose))

    def _visuals(self, prim: Any, name: str, pose: Array) -> list[Visual]:
        found = []
        for child in prim.GetChildren():
            kind = str(child.GetTypeName())
            if kind not in SHAPES:
                continue
            place, scale = self._pose(child)
            shape, keys = SHAPES[kind]
            sizes = np.array([float(child.GetAttribute(key).Get()) for key in keys])
            size = sizes * scale if shape == "box" else sizes * scale[[0, 2][: len(keys)]]
            colour = child.GetAttribute("primvars:displayColor").Get() or [GREY]
            red, green, blue = (float(one) for one in tuple(colour[0])[:3])
            found.append(Visual(name, inverse_transform(pose) @ place, shape, size, (red, green, blue, 1.0)))
        return found

    def _end(self, prim: Any, number: int) -> tuple[str, Array]:
        """The body of an end of a joint, and the joint's frame in it."""
        targets = prim.GetRelationship(f"physics:body{number}").GetTargets()
        place = np.array(prim.GetAttribute(f"physics:localPos{number}").Get() or (0.0, 0.0, 0.0), dtype=np.float64)
        local = np.eye(4)
        local[:3, :3] = _quaternion(prim.GetAttribute(f"physics:localRot{number}").Get())
        target = self.stage.GetPrimAtPath(targets[0]) if targets else None
        if target is None or not target:
            local[:3, 3] = place * self.metre
            return WORLD, local
        pose, scale = self._pose(target)
        local[:3, 3] = place * scale
        owner = target
        while owner and str(owner.GetPath()) not in self.bodies:
            owner = owner.GetParent()
        if not owner:
            return WORLD, pose @ local
        name = self.bodies[str(owner.GetPath())]
        return name, inverse_transform(self.assembly.bodies[name].pose) @ pose @ local

    def _joint(self, prim: Any) -> None:
        kind, name = str(prim.GetTypeName()), self._named(prim, self.joints.values())
        label = str(prim.GetPath())
        if prim.GetAttribute("physics:jointEnabled").Get() is False:
            self.assembly.notes.append(f"not read: {name}, which is not enabled")
            return
        if kind not in KINDS:
            raise DescriptionError(label, f"a {kind} is not supported", f"use one of {', '.join(KINDS)}")
        (parent, first), (child, second) = self._end(prim, 0), self._end(prim, 1)
        axis = AXES[str(prim.GetAttribute("physics:axis").Get() or "X")]
        joint = Connection(name, KINDS[kind], parent, child, first, second, axis)
        joint.closes = bool(prim.GetAttribute("physics:excludeFromArticulation").Get())
        exact = prim.GetAttribute("pkm:frames").Get()
        if exact is not None:
            self._exact_frames(joint, np.array(exact))
        bodies = {**self.assembly.bodies, WORLD: Body(WORLD, np.eye(4))}
        joint.drawn = position_as_drawn(bodies, joint)
        if joint.kind in ("continuous", "prismatic"):
            self._freedom(prim, joint)
        self.joints[label] = name
        self.assembly.joints.append(joint)

    def _stack(self) -> None:
        """Joints between the same two bodies move one after the other, where Newton's word says so."""
        last: dict[tuple[str, str], Connection] = {}
        for joint in self.assembly.joints:
            pair = (joint.parent, joint.child)
            before = None if joint.closes else last.get(pair)
            if before is not None:
                stub = Body(f"{joint.child}/{before.name}", self.assembly.bodies[joint.child].pose)
                self.assembly.bodies[stub.name] = stub
                before.child = joint.parent = stub.name
                joint.first = joint.second  # both bodies as drawn
            if not joint.closes:
                last[pair] = joint

    def _exact_frames(self, joint: Connection, exact: Array) -> None:
        """Take frames and axis of full precision where they say the same."""
        first, second = np.eye(4), np.eye(4)
        first[:3], second[:3], axis = exact[:12].reshape(3, 4), exact[12:24].reshape(3, 4), exact[24:]
        places = _same([*joint.first[:3, 3], *joint.second[:3, 3]], [*first[:3, 3], *second[:3, 3]])
        ways = [
            joint.first[:3, :3] @ joint.axis - first[:3, :3] @ axis,
            joint.second[:3, :3] @ joint.axis - second[:3, :3] @ axis,
        ]
        if places and (joint.kind in ("fixed", "spherical") or np.abs(ways).max() < SINGLE):
            joint.first, joint.second, joint.axis = first, second, axis

    def _freedom(self, prim: Any, joint: Connection) -> None:
        drive = "linear" if joint.kind == "prismatic" else "angular"
        unit = self.metre if joint.kind == "prismatic" else math.pi / 180.0

        def get(key: str, default: float) -> float:
            value = prim.GetAttribute(key).Get()
            return default if value is None else float(value)

        def of_drive(key: str) -> float:
            return get(f"drive:{drive}:physics:{key}", 0.0)

        mass = self.kilogram * (1.0 if drive == "linear" else self.metre**2)  # or moment of inertia
        force = self.kilogram * self.metre ** (1 if drive == "linear" else 2)
        lower, upper = (unit * get(f"physics:{end}Limit", way * math.inf) for end, way in (("lower", -1), ("upper", 1)))
        speed = unit * get("physxJoint:maxJointVelocity", math.inf)
        stiffness, damping = (of_drive(key) * force / unit for key in ("stiffness", "damping"))
        effort = (of_drive("maxForce") or math.inf) * force
        joint.friction = get("physxJoint:jointFriction", get("newton:friction", 0.0)) * force
        joint.armature = get("physxJoint:armature", get("newton:armature", 0.0)) * mass
        joint.damping = get("newton:damping", 0.0) * force / unit
        exact = prim.GetAttribute("pkm:numbers").Get()
        stated = [lower, upper, joint.friction, joint.armature]
        if exact is not None and _same(stated, [exact[n] for n in (0, 1, 5, 6)]):
            lower, upper, speed, effort, joint.damping, joint.friction, joint.armature = (float(v) for v in exact[:7])
            joint.spring_stiffness, joint.spring_reference, joint.drawn = (float(v) for v in exact[7:])
        elif stiffness or damping:  # a drive that holds a position or a speed
            self.assembly.drives[joint.name] = "position" if stiffness else "velocity"
            joint.driven = True
        limited = lower <= upper and math.isfinite(lower) and math.isfinite(upper)
        if joint.kind == "continuous" and limited:
            joint.kind = "revolute"
        joint.limits = Limits(lower if limited else -math.inf, upper if limited else math.inf, speed, effort)

    def _mimic(self, prim: Any) -> None:
        targets = prim.GetRelationship("newton:mimicJoint").GetTargets()
        if not targets or str(targets[0]) not in self.joints or str(prim.GetPath()) not in self.joints:
            return
        joint = next(one for one in self.assembly.joints if one.name == self.joints[str(prim.GetPath())])
        ratio, offset = (float(prim.GetAttribute(f"newton:mimicCoef{n}").Get() or 0.0) for n in (1, 0))
        offset *= self.metre if joint.kind == "prismatic" else math.pi / 180.0
        exact = prim.GetAttribute("pkm:mimic").Get()
        if exact is not None and _same([ratio, offset], exact):
            ratio, offset = (float(v) for v in exact)
        joint.mimic = Mimic(self.joints[str(targets[0])], ratio, offset)


def _quaternion(value: Any) -> Array:
    """Rotation (3, 3) of a quaternion of USD; none is that of a missing one."""
    if value is None or not any((value.real, *value.imaginary)):
        return np.eye(3)
    return frame_of(np.zeros(3), np.array([value.real, *value.imaginary]))[:3, :3]


def _same(single: Any, exact: Any) -> bool:
    """Whether numbers of single precision are those of full precision."""
    return bool(np.allclose(np.array(single), np.array(exact), rtol=SINGLE, atol=SINGLE))
