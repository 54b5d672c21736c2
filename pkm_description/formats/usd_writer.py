# SPDX-License-Identifier: Apache-2.0
"""Write a robot as USD text with UsdPhysics, as Isaac Sim, Newton and MuJoCo open it; no library is needed.

Bodies lie side by side under one articulation. A loop is a joint with `physics:excludeFromArticulation`: a passive
hinge or ball. Rotors, friction and gears are said in PhysX's and Newton's words. Numbers of physics are single
precision in USD: those of full precision stand beside them as `pkm:...`, which other tools skip and our reader believes
as long as the others agree.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pkm_description.formats.bodies_and_joints import FLOATS, TURNING, WORLD, Assembly, Body, Connection, made_of
from pkm_description.formats.spanning_tree import spanning
from pkm_description.joint_geometry import frame_along
from pkm_description.mechanism import Array, Mechanism
from pkm_description.mjcf.mujoco_model import quaternion
from pkm_description.rotations import transform
from pkm_description.tree_model import TreeModel
from pkm_runtime.optional import optional_library

KINDS = {"revolute": "Revolute", "continuous": "Revolute", "prismatic": "Prismatic", "spherical": "Spherical"}
SHAPES = {"box": "Cube", "sphere": "Sphere", "cylinder": "Cylinder"}


def to_usd(mechanism: Mechanism | TreeModel, split: Sequence[str] = ()) -> tuple[str, list[str]]:
    """USD text of a robot at home, and a sentence for everything it does not say.

    Universal joints, which USD has not, and joints of the kinds in `split` become hinges one after the other.
    """
    assembly = made_of(mechanism, ("universal", *split))
    cut = spanning(assembly, mechanism.base_link, own=False)[1]
    notes = [f"loops are cut at {', '.join(f'{joint.name} ({joint.kind})' for joint in cut)}"] * bool(cut)
    notes += assembly.notes
    damped = [joint.name for joint in assembly.joints if joint.damping]
    if damped:
        notes.append(f"only as attributes of Newton: damping of {', '.join(damped)}")
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

    def _prim(self, kind: str, name: str, schemas: Iterable[str] = ()) -> _Block:
        """A prim, whose contents are written within the block."""
        words = ", ".join(f'"{one}"' for one in schemas)
        self._line(f'def {kind} "{name}"' + (f" (prepend apiSchemas = [{words}])" if words else ""), "{")
        return _Block(self)

    def _place(self, frame: Array, size: Array | None = None) -> None:
        self._line(f"quatd xformOp:orient = {_tuple(quaternion(frame[:3, :3]))}")
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
                self._line(f"quatf physics:principalAxes = {_tuple(quaternion(axes))}")
                six = inertial.inertia[np.triu_indices(3)]
                self._line(f"double[] pkm:inertia = {_list([inertial.mass, *inertial.com, *six])}")
            for n, visual in enumerate(body.visuals):
                size = visual.size
                with self._prim(SHAPES[visual.shape], f"visual{n}"):
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
        schemas = [f"PhysicsDriveAPI:{drive}", "PhysxJointAPI", "NewtonJointAPI"]
        pushed = joint.driven or joint.spring_stiffness
        several = joint.kind in ("fixed", "spherical")
        schemas = [] if several else schemas[0 if pushed else 1 :] + ["NewtonMimicAPI"] * (joint.mimic is not None)
        with self._prim(f"Physics{KINDS.get(joint.kind, 'Fixed')}Joint", path, schemas):
            self._renamed(path, joint.name)
            turned = transform(np.zeros(3), np.eye(3) if several else frame_along(joint.axis))
            for n, (body, frame) in enumerate(((joint.parent, joint.first), (joint.child, joint.second))):
                if body != WORLD:
                    self._line(f"rel physics:body{n} = <{self.paths[body]}>")
                frame = frame @ turned
                self._line(f"point3f physics:localPos{n} = {_tuple(frame[:3, 3])}")
                self._line(f"quatf physics:localRot{n} = {_tuple(quaternion(frame[:3, :3]))}")
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
            self._line(f"float physics:{key}Limit = {_number(unit * value)}")
        if pushed:
            head = f"drive:{drive}:physics"
            self._line(f'uniform token {head}:type = "force"', f"float {head}:maxForce = {_number(limits.effort)}")
            self._line(f"float {head}:stiffness = {_number(joint.spring_stiffness / unit)}")
            self._line(f"float {head}:damping = 0")
            self._line(f"float {head}:targetPosition = {_number(unit * joint.spring_reference)}")
        self._line(f"float physxJoint:armature = {_number(joint.armature)}")
        self._line(f"float physxJoint:jointFriction = {_number(joint.friction)}")
        self._line(f"float newton:damping = {_number(joint.damping / unit)}")
        self._line(f"float newton:armature = {_number(joint.armature)}")
        self._line(f"float newton:friction = {_number(joint.friction)}")
        if math.isfinite(limits.velocity):
            self._line(f"float physxJoint:maxJointVelocity = {_number(unit * limits.velocity)}")
        exact = [
            limits.lower, limits.upper, limits.velocity, limits.effort, joint.damping, joint.friction,
            joint.armature, joint.spring_stiffness, joint.spring_reference, joint.drawn,
        ]  # fmt: skip
        self._line(f"double[] pkm:numbers = {_list(exact)}")
        if joint.mimic:
            leader = f"/{self.root}/{self.scope}/{self.joints[joint.mimic.joint]}"
            self._line(f"rel newton:mimicJoint = <{leader}>")
            self._line(f"float newton:mimicCoef0 = {_number(unit * joint.mimic.offset)}")
            self._line(f"float newton:mimicCoef1 = {_number(joint.mimic.multiplier)}")
            self._line(f"double2 pkm:mimic = {_tuple((joint.mimic.multiplier, joint.mimic.offset))}")


class _Block:
    """The braces of a prim."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer

    def __enter__(self) -> None:
        self.writer.depth += 1

    def __exit__(self, *_: object) -> None:
        self.writer.depth -= 1
        self.writer._line("}")


def _identifier(name: str, taken: set[str]) -> str:
    """An identifier of USD that is not taken, which it then is."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not found or found[0].isdigit():
        found = f"_{found}"
    while found in taken:
        found += "_"
    taken.add(found)
    return found


def _number(value: float) -> str:
    return repr(float(value) + 0.0)


def _tuple(values: Iterable[float]) -> str:
    return f"({', '.join(_number(value) for value in values)})"


def _list(values: Iterable[float]) -> str:
    return f"[{', '.join(_number(value) for value in values)}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
