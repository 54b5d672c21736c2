# SPDX-License-Identifier: Apache-2.0
"""USD with UsdPhysics, as Isaac Sim, Newton and MuJoCo open it: read by OpenUSD's library, written as text without it.

Bodies lie side by side under one articulation. A loop is a joint with `physics:excludeFromArticulation`: a passive
hinge or ball. Rotors, friction and gears are said in PhysX's and Newton's words. Numbers of physics are single
precision in USD: those of full precision stand beside them as `pkm:...`, which other tools skip and our reader believes
as long as the others agree.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pkm_description.description_error import DescriptionError, refuse_near
from pkm_description.formats import USD_HEAD
from pkm_description.formats.bodies_and_joints import (
    FLOATS,
    REMARKED,
    TURNING,
    WORLD,
    Assembly,
    Body,
    Connection,
    made_of,
    position_as_drawn,
    weak_passive_joints,
)
from pkm_description.formats.spanning_tree import spanning, turned_round
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, Inertial, Limits, Mechanism, Mimic, frozen, symmetric_of
from pkm_description.rotations import inverse_transform, transform, transform_from_wxyz, wxyz_from_rotation
from pkm_description.tree_model import TreeModel
from pkm_description.urdf.elements import inertia_problem
from pkm_description.urdf.visuals import GREY, Visual
from pkm_description.urdf.xml_text import LFS, check_pointer, read_xml
from pkm_runtime.optional import optional_library

KINDS = {
    "PhysicsRevoluteJoint": "continuous",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "spherical",
    "PhysicsFixedJoint": "fixed",
}
SHAPES = {"Cube": ("box", ("size",)), "Sphere": ("sphere", ("radius",)), "Cylinder": ("cylinder", ("radius", "height"))}
AXES = dict(zip("XYZ", np.eye(3), strict=True))
BESIDE = {  # prims that have no place in ours, by the end of their type
    "cameras": "Camera",
    "lights": "Light",
    "materials": "Material",
    "meshes of": "Mesh",
    "capsules of": "Capsule",
    "cones of": "Cone",
    "planes of": "Plane",
}
LONGEST = 40_000_000  # bytes of text, which needs forty times as much memory
SMALLEST_UNIT = 1e-9  # m or kg
SINGLE = 1e-6  # relative: what single precision keeps of a number
WRITTEN_KINDS = {"revolute": "Revolute", "continuous": "Revolute", "prismatic": "Prismatic", "spherical": "Spherical"}
WRITTEN_SHAPES = {"box": "Cube", "sphere": "Sphere", "cylinder": "Cylinder"}


def read_usd(text: str, path: Path | None = None) -> Assembly:
    """Bodies and joints of USD text, or of the file `path` of any of USD's formats."""
    usd = optional_library("pxr.Usd", "usd-core", "USD files")
    label = f"file {path}" if path else "USD text"
    if path is not None:
        _check_size(path, label)
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
        if not version and (line := re.search(r":(\d+):\d+: ", str(error))):
            problem += f", line {line[1]} is wrong"
        remedy = "write the file again" + (
            ", in an older version" if version else ": it is empty, truncated, or not USD"
        )
        raise DescriptionError(label, problem, remedy) from error
    return _Reader(stage, label).assembly


def _check_size(path: Path, label: str) -> None:
    """Refuse pointers of Git LFS, and text that would fill the memory; binary files are read where needed."""
    try:
        with path.open("rb") as file:
            head = file.read(len(LFS)).decode("latin-1")
        long = head.startswith(USD_HEAD) and path.stat().st_size > LONGEST
    except OSError as error:
        raise DescriptionError(label, f"it cannot be read: {error.strerror}", "give a file that can be") from error
    check_pointer(head, path)
    if long:
        problem = f"text of {path.stat().st_size} bytes, more than {LONGEST}"
        raise DescriptionError(label, problem, "leave meshes out, or write it as .usdc (usdcat FILE -o FILE.usdc)")


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
        self.assembly.notes += [f"not read: {error}" for error in stage.GetCompositionErrors()]
        remark = stage.GetRootLayer().customLayerData.get("pkm", "")
        if remark:
            self.assembly.remark = read_xml(remark, "the remark `pkm` of the layer")
        self.assembly.gravity = 0.0 - 9.81 * AXES[str(geom.GetStageUpAxis(stage))]
        self.transforms = geom.XformCache()
        self.bodies: dict[str, str] = {}  # names by path
        for prim in prims:
            if prim.HasAPI(physics.RigidBodyAPI):
                self._body(prim)
            elif prim.GetTypeName() == "PhysicsScene":
                self._gravity(prim)
        self._beside(prims, physics)
        self.joints: dict[str, str] = {}
        found = [
            prim for prim in prims if str(prim.GetTypeName()).startswith("Physics") and "Joint" in prim.GetTypeName()
        ]
        others = {str(prim.GetTypeName()): str(prim.GetPath()) for prim in prims if prim not in found}
        for kind, place in others.items():
            refuse_near(kind, KINDS, place, "type")
        if odd := sorted(kind for kind in others if "Joint" in kind):
            self.assembly.notes.append(f"not read: prims of type {', '.join(odd)}")
        self.gains: list[str] = []  # of drives, which are not read
        for prim in found:
            self._joint(prim)
        self.assembly.notes += [f"not read: gains of the drives {', '.join(self.gains)}"] if self.gains else []
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

    def _beside(self, prims: Sequence[Any], physics: Any) -> None:
        # told by its body where it is on one, else by its own name
        groups = {what: [p for p in prims if str(p.GetTypeName()).endswith(end)] for what, end in BESIDE.items()}
        groups["contacts of"] = [prim for prim in prims if prim.HasAPI(physics.CollisionAPI)]
        tendons = [prim for prim in prims if any("Tendon" in one for one in prim.GetAppliedSchemas())]
        groups["tendons of PhysX,"] = tendons
        for what, some in groups.items():
            names = dict.fromkeys(self.bodies.get(self._owner(prim), str(prim.GetName())) for prim in some)
            self.assembly.notes += [f"not read: {what} {', '.join(names)}"] if names else []

    def _owner(self, prim: Any) -> str:
        while prim and str(prim.GetPath()) not in self.bodies:
            prim = prim.GetParent()
        return str(prim.GetPath()) if prim else ""

    def _gravity(self, prim: Any) -> None:
        exact = prim.GetAttribute("pkm:gravity").Get()
        if exact is not None:
            self.assembly.gravity = np.array(exact)
            return
        size, way = (prim.GetAttribute(f"physics:gravity{part}").Get() for part in ("Magnitude", "Direction"))
        way = np.array((0.0, 0.0, 0.0) if way is None else way, dtype=np.float64)
        if way.any():
            self.assembly.gravity = way / np.linalg.norm(way) * 9.81
        if size is not None and math.isfinite(size) and size >= 0.0:  # else the earth's
            self.assembly.gravity *= size * self.metre / 9.81

    def _pose(self, prim: Any) -> tuple[Array, Array]:
        """Pose (4, 4) in metres of a prim in the world, and its scale (3,)."""
        matrix = np.array(self.transforms.GetLocalToWorldTransform(prim)).T
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        return transform(matrix[:3, 3] * self.metre, matrix[:3, :3] / scale), scale * self.metre

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
        local = transform(np.zeros(3), _quaternion(prim.GetAttribute(f"physics:localRot{number}").Get()))
        target = self.stage.GetPrimAtPath(targets[0]) if targets else None
        if targets and not target:
            problem = f"there is no prim {targets[0]}, its physics:body{number}"
            raise DescriptionError(
                str(prim.GetPath()), problem, "name a body, or remove the relationship for the world"
            )
        if target is None:
            local[:3, 3] = place * self.metre
            return WORLD, local
        pose, scale = self._pose(target)
        local[:3, 3] = place * scale
        owner = self._owner(target)
        if not owner:
            return WORLD, pose @ local
        name = self.bodies[owner]
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
        joint.drawn = position_as_drawn(self.assembly.bodies, joint)
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
            self.gains.append(joint.name)
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
    if value is None or not any((value.real, *value.imaginary)):
        return np.eye(3)
    return transform_from_wxyz(np.zeros(3), np.array([value.real, *value.imaginary]))[:3, :3]


def _same(single: Any, exact: Any) -> bool:
    return bool(np.allclose(np.array(single), np.array(exact), rtol=SINGLE, atol=SINGLE))


def to_usd(mechanism: Mechanism | TreeModel, split: Sequence[str] = ()) -> tuple[str, list[str]]:
    """USD text of a robot at home, and notes; universal joints and kinds in `split` become hinges in a row."""
    assembly = made_of(mechanism, ("universal", *split))
    tree, cut = spanning(assembly, mechanism.base_link, own=False)
    turned = {joint.name for joint, turned in tree.values() if turned}  # others ask for the base's side first
    assembly.joints = [turned_round(joint) if joint.name in turned else joint for joint in assembly.joints]
    notes = [f"loops are cut at {', '.join(f'{joint.name} ({joint.kind})' for joint in cut)}"] * bool(cut)
    notes += assembly.notes
    damped = [joint.name for joint in assembly.joints if joint.damping]
    if damped:
        notes.append(f"only as attributes of Newton: damping of {', '.join(damped)}")
    kinds = [name for name, interface in assembly.drives.items() if interface != "effort"]
    if kinds:
        notes.append(f"{REMARKED}: that these drives are not of efforts, {', '.join(kinds)}")
    weak = weak_passive_joints(mechanism)
    if weak:
        notes.append(f"only as attributes of ours, which other tools skip: limits of effort of {', '.join(weak)}")
    notes += [
        f"left out: mesh {file} of {body.name}" for body in assembly.bodies.values() for _, file, _ in body.meshes
    ]
    return _Writer(assembly, {joint.name for joint in cut}, mechanism.base_link).text(), notes


def write_usd(text: str, file: str) -> None:
    """Write USD text into a file of the kind that its suffix says; other kinds than .usda need `usd-core`."""
    path = Path(file)
    if path.suffix == ".usda":
        path.write_text(text, encoding="utf-8")
        return
    purpose = f"{path.suffix} files"
    layer = optional_library("pxr.Sdf", "usd-core", purpose).Layer.CreateAnonymous(".usda")
    layer.ImportFromString(text)
    if path.suffix != ".usdz":
        layer.Export(file)
        return
    with TemporaryDirectory() as folder:
        inside = str(Path(folder, f"{path.stem}.usdc"))
        layer.Export(inside)
        optional_library("pxr.UsdUtils", "usd-core", purpose).CreateNewUsdzPackage(inside, file)


class _Writer:
    def __init__(self, assembly: Assembly, cut: set[str], base: str) -> None:
        self.assembly = assembly
        self.cut = cut
        self.base = base
        self.lines: list[str] = []
        self.depth = 0
        names: set[str] = set()
        self.root, self.scope = _identifier(assembly.name, names), _identifier("joints", names)
        self.paths = {name: f"/{self.root}/{_identifier(name, names)}" for name in assembly.bodies}
        own: set[str] = set()
        self.joints = {joint.name: _identifier(joint.name, own) for joint in assembly.joints}
        self.mount = _identifier("to_world", own)

    def text(self) -> str:
        self._line("#usda 1.0")
        remark = ET.tostring(self.assembly.remark, encoding="unicode")  # type: ignore[arg-type]
        self._line(
            "(", f"    customLayerData = {{ string pkm = {_quoted(remark)} }}", f'    defaultPrim = "{self.root}"'
        )
        self._line("    kilogramsPerUnit = 1", "    metersPerUnit = 1", '    upAxis = "Z"', ")", "")
        gravity = self.assembly.gravity
        size = float(np.linalg.norm(gravity))
        with self._prim("PhysicsScene", "PhysicsScene"):
            self._line(f"vector3f physics:gravityDirection = {_tuple(gravity / size if size else (0, 0, -1))}")
            self._line(f"float physics:gravityMagnitude = {size!r}", f"double3 pkm:gravity = {_tuple(gravity)}")
        with self._prim("Xform", self.root, ["PhysicsArticulationRootAPI"]):
            for body in self.assembly.bodies.values():
                if body.name != WORLD:
                    self._body(body)
            with self._prim("Scope", self.scope):
                if self.base != WORLD:
                    with self._prim("PhysicsFixedJoint", self.mount):
                        self._line(f"rel physics:body1 = <{self.paths[self.base]}>")
                for joint in self.assembly.joints:
                    if joint.kind != FLOATS:
                        self._joint(joint)
        return "\n".join(self.lines) + "\n"

    def _line(self, *lines: str) -> None:
        self.lines += [f"{'    ' * self.depth}{line}" if line else "" for line in lines]

    @contextmanager
    def _prim(self, kind: str, name: str, schemas: Iterable[str] = ()) -> Iterator[None]:
        words = ", ".join(f'"{one}"' for one in schemas)
        self._line(f'def {kind} "{name}"' + (f" (prepend apiSchemas = [{words}])" if words else ""), "{")
        self.depth += 1
        yield
        self.depth -= 1
        self._line("}")

    def _place(self, frame: Array, size: Array | None = None) -> None:
        self._line(f"quatd xformOp:orient = {_tuple(wxyz_from_rotation(frame[:3, :3]))}")
        self._line(f"double3 xformOp:translate = {_tuple(frame[:3, 3])}")
        if size is not None:
            self._line(f"double3 xformOp:scale = {_tuple(size)}")
        scaled = ', "xformOp:scale"' if size is not None else ""
        self._line(f'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"{scaled}]')

    def _body(self, body: Body) -> None:
        path = self.paths[body.name].rpartition("/")[2]
        with self._prim("Xform", path, ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]):
            self._renamed(path, body.name)
            self._place(body.pose)
            inertial = body.inertial
            if not inertial.massless:
                moments, axes = np.linalg.eigh(inertial.inertia)
                axes = axes * np.linalg.det(axes)
                self._line(f"float physics:mass = {float(inertial.mass)!r}")
                self._line(f"point3f physics:centerOfMass = {_tuple(inertial.com)}")
                self._line(f"float3 physics:diagonalInertia = {_tuple(np.maximum(moments, 0.0))}")
                self._line(f"quatf physics:principalAxes = {_tuple(wxyz_from_rotation(axes))}")
                six = inertial.inertia[np.triu_indices(3)]
                self._line(f"double[] pkm:inertia = {_list([inertial.mass, *inertial.com, *six])}")
            for n, visual in enumerate(body.visuals):
                size = visual.size
                with self._prim(WRITTEN_SHAPES[visual.shape], f"visual{n}"):
                    self._line(f"color3f[] primvars:displayColor = [{_tuple(visual.colour[:3])}]")
                    self._place(visual.frame, size if visual.shape == "box" else None)
                    if visual.shape == "box":
                        self._line("double size = 1")
                    else:
                        self._line(f"double radius = {float(size[0])!r}")
                    if visual.shape == "cylinder":
                        self._line(f"double height = {float(size[1])!r}", 'uniform token axis = "Z"')

    def _renamed(self, path: str, name: str) -> None:
        if path != name:
            self._line(f"custom string pkm:name = {_quoted(name)}")

    def _joint(self, joint: Connection) -> None:
        path = self.joints[joint.name]
        angular = joint.kind in TURNING
        drive = "angular" if angular else "linear"
        schemas = [f"PhysicsDriveAPI:{drive}", f"PhysicsJointStateAPI:{drive}", "PhysxJointAPI", "NewtonJointAPI"]
        pushed = joint.driven or joint.spring_stiffness
        several = joint.kind in ("fixed", "spherical")
        schemas = [] if several else schemas[0 if pushed else 1 :] + ["NewtonMimicAPI"] * (joint.mimic is not None)
        with self._prim(f"Physics{WRITTEN_KINDS.get(joint.kind, 'Fixed')}Joint", path, schemas):
            self._renamed(path, joint.name)
            turned = transform(np.zeros(3), np.eye(3) if several else frame_along(joint.axis))
            for n, (body, frame) in enumerate(((joint.parent, joint.first), (joint.child, joint.second))):
                if body != WORLD:
                    self._line(f"rel physics:body{n} = <{self.paths[body]}>")
                frame = frame @ turned
                self._line(f"point3f physics:localPos{n} = {_tuple(frame[:3, 3])}")
                self._line(f"quatf physics:localRot{n} = {_tuple(wxyz_from_rotation(frame[:3, :3]))}")
            if joint.name in self.cut:
                self._line("uniform bool physics:excludeFromArticulation = 1")
            exact = [*joint.first[:3].ravel(), *joint.second[:3].ravel(), *joint.axis]
            self._line(f"double[] pkm:frames = {_list(exact)}")
            if not several:
                self._freedom(joint, drive, 180.0 / math.pi if angular else 1.0, bool(pushed))

    def _freedom(self, joint: Connection, drive: str, unit: float, pushed: bool) -> None:
        """Limits, drive and resistance of a joint of one degree of freedom; angles of USD are in degrees."""
        limits = joint.limits
        self._line('uniform token physics:axis = "Z"')
        for key, value in (("lower", limits.lower), ("upper", limits.upper)):
            self._line(f"float physics:{key}Limit = {_text(unit * value)}")
        for key in (f"state:{drive}:physics", f"newton:{drive}"):  # where a simulation begins
            self._line(f"float {key}:position = {_text(unit * joint.drawn)}")
        if pushed:
            head = f"drive:{drive}:physics"
            self._line(f'uniform token {head}:type = "force"', f"float {head}:maxForce = {_text(limits.effort)}")
            self._line(f"float {head}:stiffness = {_text(joint.spring_stiffness / unit)}")
            self._line(f"float {head}:damping = 0")
            self._line(f"float {head}:targetPosition = {_text(unit * joint.spring_reference)}")
        self._line(f"float physxJoint:armature = {_text(joint.armature)}")
        self._line(f"float physxJoint:jointFriction = {_text(joint.friction)}")
        self._line(f"float newton:damping = {_text(joint.damping / unit)}")
        self._line(f"float newton:armature = {_text(joint.armature)}")
        self._line(f"float newton:friction = {_text(joint.friction)}")
        if math.isfinite(limits.velocity):
            self._line(f"float physxJoint:maxJointVelocity = {_text(unit * limits.velocity)}")
        exact = [
            limits.lower, limits.upper, limits.velocity, limits.effort, joint.damping, joint.friction,
            joint.armature, joint.spring_stiffness, joint.spring_reference, joint.drawn,
        ]  # fmt: skip
        self._line(f"double[] pkm:numbers = {_list(exact)}")
        if joint.mimic:
            leader = f"/{self.root}/{self.scope}/{self.joints[joint.mimic.joint]}"
            self._line(f"rel newton:mimicJoint = <{leader}>")
            self._line(f"float newton:mimicCoef0 = {_text(unit * joint.mimic.offset)}")
            self._line(f"float newton:mimicCoef1 = {_text(joint.mimic.multiplier)}")
            self._line(f"double2 pkm:mimic = {_tuple((joint.mimic.multiplier, joint.mimic.offset))}")


def _identifier(name: str, taken: set[str]) -> str:
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not found or found[0].isdigit():
        found = f"_{found}"
    while found in taken:
        found += "_"
    taken.add(found)
    return found


def _text(value: float) -> str:
    return repr(float(value) + 0.0)


def _tuple(values: Iterable[float]) -> str:
    return f"({', '.join(_text(value) for value in values)})"


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(_text(value) for value in values)}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
