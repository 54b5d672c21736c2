# SPDX-License-Identifier: Apache-2.0
"""Robots of the literature by the points and axes of their legs at home: none of them is in the gallery.

All link frames are parallel to the base at home, where every joint stands at zero, so that every loop is closed
there by construction. Numbers are arbitrary and in general position; bodies have full inertias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from pkm_description.mechanism import Array

X, Y, Z = np.eye(3)
LIMIT = '<limit lower="{}" upper="6" effort="1000" velocity="100"/>'
Joint = tuple[str, Array, tuple[Array, ...]]  # R, P, U, C or S; where; its axes


def unit(v: Array) -> Array:
    return np.asarray(v) / np.linalg.norm(v)


def ring(n: int, radius: float, z: float = 0.0, turn: float = 0.0) -> list[Array]:
    """n points on a circle."""
    angles = turn + 2.0 * np.pi * np.arange(n) / n
    return [np.array([radius * np.cos(a), radius * np.sin(a), z]) for a in angles]


def across(point: Array) -> Array:
    """Horizontal direction square to that of a point."""
    return unit(np.array([-point[1], point[0], 0.0]))


class Legs:
    """A description that grows leg by leg; `freedoms`: the joints of the platform's branch, xyz, and abc to turn."""

    def __init__(self, freedoms: str, home: Sequence[float]) -> None:
        self.home = np.array(home, dtype=np.float64)
        self.parts = ['<link name="base"/>', _body("platform", 2.0, np.zeros(3), 0.1)]
        self.driven: list[str] = []
        self.count = 0
        parent = "base"
        for k, freedom in enumerate(freedoms):
            child = "platform" if k == len(freedoms) - 1 else f"at_{freedom}"
            self.parts += [] if child == "platform" else [f'<link name="{child}"/>']
            axis, kind = np.eye(3)["xyzabc".index(freedom) % 3], "prismatic" if freedom in "xyz" else "revolute"
            self.parts.append(_joint(freedom, kind, parent, child, np.zeros(3), axis))
            parent = child

    def add(self, joints: Sequence[Joint], closure: str, end: Array, *axes: Array, driven: int | None = None) -> None:
        """A leg of joints from the base and a closure at `end`; `driven` counts joints, of a C its slide."""
        self.count += 1
        single = [part for k, joint in enumerate(joints) for part in _single(joint, k)]
        points = [point for _, point, _, _ in single] + [end]
        parent, at = "base", np.zeros(3)
        for k, (kind, point, axis, joint) in enumerate(single):
            name, child, along = f"leg{self.count}_{k + 1}", f"leg{self.count}_link{k + 1}", points[k + 1] - point
            massive = np.linalg.norm(along) > 1e-9 or k == len(single) - 1
            self.parts.append(
                _body(child, 0.5, along / 2, 0.02 + 0.2 * float(np.linalg.norm(along)))
                if massive
                else f'<link name="{child}"/>'
            )
            self.parts.append(_joint(name, kind, parent, child, point - at, axis))
            if joint == driven and (k == 0 or single[k - 1][3] != driven):
                self.driven.append(name)
            parent, at = child, point
        named = "".join(f'<{tag} xyz="{_text(a)}"/>' for tag, a in zip(("axis", "axis2"), axes, strict=False))
        self.parts.append(
            f'<loop name="leg{self.count}_end" type="{closure}">'
            f'<predecessor link="{parent}"><origin xyz="{_text(end - at)}"/></predecessor>'
            f'<successor link="platform"><origin xyz="{_text(end - self.home)}"/></successor>{named}</loop>'
        )

    @property
    def text(self) -> str:
        driven = "".join(f'<joint name="{name}"><command_interface name="effort"/></joint>' for name in self.driven)
        return (
            f'<robot name="legs">{"".join(self.parts)}<pkm base_link="base" platform_link="platform">'
            f'<home xyz="{_text(self.home)}"/></pkm>'
            f'<ros2_control name="s" type="system">{driven}</ros2_control></robot>'
        )


def _single(joint: Joint, number: int) -> list[tuple[str, Array, Array, int]]:
    kind, point, axes = joint
    if kind == "C":
        return [("prismatic", point, axes[0], number), ("revolute", point, axes[0], number)]
    return [
        ("prismatic" if kind == "P" else "revolute", point, a, number) for a in ((X, Y, Z) if kind == "S" else axes)
    ]


def _body(name: str, mass: float, com: Array, radius: float) -> str:
    i = mass * radius**2
    return (
        f'<link name="{name}"><inertial><origin xyz="{_text(com)}"/><mass value="{mass}"/>'
        f'<inertia ixx="{1.1 * i}" iyy="{i}" izz="{0.9 * i}" ixy="{0.1 * i}" ixz="0" iyz="{-0.05 * i}"/>'
        "</inertial></link>"
    )


def _joint(name: str, kind: str, parent: str, child: str, at: Array, axis: Array) -> str:
    # a leg that slides through its own foot would be another mode
    limit = LIMIT.format(-0.3 if kind == "prismatic" and name.startswith("leg") else -6)
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(at)}"/><axis xyz="{_text(unit(axis))}"/>{limit}</joint>'
    )


def _text(v: Array) -> str:
    return " ".join(f"{x:.17g}" for x in v)


def translational_upu() -> Legs:
    """3-UPU whose outer and inner axes are parallel at both ends (Tsai 1996): three translations."""
    robot = Legs("xyz", [0.0, 0.0, 0.8])
    for b, p in zip(ring(3, 0.5), ring(3, 0.2), strict=True):
        end, t = p + robot.home, across(b)
        leg = unit(end - b)
        w = np.cross(t, leg)
        robot.add([("U", b, (t, w)), ("P", (b + end) / 2, (leg,))], "universal", end, w, t, driven=1)
    return robot


def _elbows(base: float, platform: float, drive: str, freedoms: str) -> Legs:
    """Legs of an actuated joint, a link between two universal joints of parallel axes."""
    robot = Legs(freedoms, [0.0, 0.0, 0.3 if drive == "P" else 0.8])
    for b, p in zip(ring(3, base), ring(3, platform), strict=True):
        end, t = p + robot.home, across(b)
        elbow = b if drive == "P" else b + 0.35 * unit(b) + 0.15 * Z
        w = np.cross(t, unit(end - elbow))
        first: Joint = ("P", b, (Z,)) if drive == "P" else ("R", b, (t,))
        robot.add([first, ("U", elbow, (t, w))], "universal", end, w, t, driven=0)
    return robot


def _tripod(drive: str) -> Legs:
    """3-RPS (Hunt 1983) or 3-PRS on upright rails: one translation, two rotations."""
    robot = Legs("xyzcba", [0.0, 0.0, 0.8 if drive == "leg" else 0.3])
    for b, p in zip(ring(3, 0.5), ring(3, 0.3), strict=True):
        end, t = p + robot.home, across(b)
        if drive == "leg":
            robot.add([("R", b, (t,)), ("P", (b + end) / 2, (unit(end - b),))], "spherical", end, driven=1)
        else:
            robot.add([("P", b, (Z,)), ("R", b, (t,))], "spherical", end, driven=0)
    return robot


def _hexapod(drive: str) -> Legs:
    """6-PUS on upright rails, 6-RSS whose rods spin between their balls, 3-3 octahedral 6-UPS."""
    robot = Legs("xyzcba", [0.0, 0.0, 0.1 if drive == "PUS" else 0.8])
    feet = [b for b in ring(3, 0.5) for _ in range(2)] if drive == "UPS" else ring(6, 0.5, 0.6 * (drive == "PUS"), 0.1)
    seats = ring(3, 0.3, 0.0, np.pi / 3)
    for k, b in enumerate(feet):
        p = seats[(k + 1) // 2 % 3 - 1] if drive == "UPS" else ring(6, 0.25, 0.0, 0.1 + 0.25 * (-1) ** k)[k]
        end = p + robot.home
        leg = unit(end - b)
        t = unit(np.cross(leg, [0.1, 0.9, 0.3]))
        if drive == "UPS":
            robot.add([("U", b, (t, np.cross(leg, t))), ("P", (b + end) / 2, (leg,))], "spherical", end, driven=1)
        elif drive == "PUS":
            robot.add([("P", b, (Z,)), ("U", b, (t, np.cross(t, leg)))], "spherical", end, driven=0)
        else:
            axis = np.cos(0.3) * across(b) + np.sin(0.3) * (-1) ** k * Z
            robot.add([("R", b, (axis,)), ("S", b + 0.18 * unit(b) + 0.2 * Z, ())], "spherical", end, driven=0)
    return robot


def offset_hexaglide(offset: float) -> Legs:
    """6-PUS on upright rails whose universal joints have axes that pass each other at a distance [m]."""
    robot = Legs("xyzcba", [0.0, 0.0, 0.1])
    for k, b in enumerate(ring(6, 0.5, 0.6, 0.1)):
        end = ring(6, 0.25, 0.0, 0.1 + 0.25 * (-1) ** k)[k] + robot.home
        leg = unit(end - b)
        t = unit(np.cross(leg, [0.1, 0.9, 0.3]))
        joints: list[Joint] = [("P", b, (Z,)), ("R", b, (t,)), ("R", b + offset * leg, (np.cross(t, leg),))]
        robot.add(joints, "spherical", end, driven=0)
    return robot


def exechon() -> Legs:
    """2-UPR + SPR, the architecture of the Exechon heads (Neumann 2006): one translation, two rotations."""
    robot = Legs("xyzcba", [0.0, 0.0, 0.8])
    for side in (1.0, -1.0):
        b, end = 0.5 * side * X, 0.2 * side * X + robot.home
        robot.add([("U", b, (X, Y)), ("P", (b + end) / 2, (unit(end - b),))], "revolute", end, Y, driven=1)
    b, end = 0.5 * Y, 0.2 * Y + robot.home
    robot.add([("S", b, ()), ("P", (b + end) / 2, (unit(end - b),))], "revolute", end, X, driven=1)
    return robot


def four_puu() -> Legs:
    """4-PUU whose outer axes are upright, on rails that point every way: three translations, and a rotation about z."""
    robot = Legs("xyzc", [0.0, 0.0, 0.2])
    for k, (b, p) in enumerate(zip(ring(4, 0.6, 0.7), ring(4, 0.2, 0.0, 0.4), strict=True)):
        end = p + robot.home + 0.05 * (k % 2) * Z
        w = unit(np.cross(Z, end - b))
        rail = np.array([np.cos(k), np.sin(k), 0.3 * k])
        robot.add([("P", b, (rail,)), ("U", b, (Z, w))], "universal", end, w, Z, driven=0)
    return robot


def guided_pentapod() -> Legs:
    """Five UPS legs about a passive UPU that keeps the platform from turning: three translations, two rotations."""
    robot = Legs("xyzcba", [0.0, 0.0, 0.8])
    for k, b in enumerate(ring(6, 0.5, 0.0, 0.1)[:5]):
        end = ring(6, 0.25, 0.0, 0.1 + 0.35 * (-1) ** k)[k] + robot.home
        leg = unit(end - b)
        t = unit(np.cross(leg, [0.1, 0.9, 0.3]))
        robot.add([("U", b, (t, np.cross(leg, t))), ("P", (b + end) / 2, (leg,))], "spherical", end, driven=1)
    robot.add([("U", 0.0 * Z, (X, Y)), ("P", 0.3 * Z, (Z,))], "universal", robot.home, X, Y)
    return robot


def spherical_five_bar() -> Legs:
    """Five revolute joints about one point (Gosselin and Caron 1999): two rotations."""
    directions = [(0.0, 0.0), (0.3, 0.8), (0.9, 1.0), (1.4, 0.7), (1.6, 0.05)]
    a = [np.array([np.cos(e) * np.cos(z), np.cos(e) * np.sin(z), np.sin(e)]) for z, e in directions]
    robot = Legs("cba", [0.0, 0.0, 0.0])
    robot.add([("R", 0.3 * a[0], (a[0],)), ("R", 0.3 * a[1], (a[1],))], "revolute", 0.3 * a[2], a[2], driven=0)
    robot.add([("R", 0.3 * a[4], (a[4],))], "revolute", 0.3 * a[3], a[3], driven=0)
    return robot


def omni_wrist(reach: float = 0.1, bend: float = np.pi / 4) -> Legs:
    """Four legs of four hinges, which let two equal balls roll on each other, as of the Omni-Wrist III: two rotations.

    Of each leg the two axes of one half meet in the centre of the base, those of the other in that of the platform, at
    an angle `bend`; the two in the middle at the same angle, at a distance `reach` from both centres. The first joints
    of two legs side by side are driven. Four equations are redundant.
    """
    height = 2.0 * reach * np.sin(bend / 2.0)
    robot = Legs("xyzcba", [0.0, 0.0, height])
    for k, foot in enumerate(ring(4, 1.0)):
        up = 0.5 * height / reach
        aside = np.sqrt(np.sin(bend) ** 2 - up**2)
        middle = reach * (np.cos(bend) * foot + up * Z - aside * across(foot))
        joints: list[Joint] = [
            ("R", 0.0 * Z, (foot,)),
            ("R", middle / 2.0, (unit(middle),)),
            ("R", middle, (unit(middle - robot.home),)),
        ]
        robot.add(joints, "revolute", robot.home, foot, driven=0 if k < 2 else None)
    return robot


def sarrus() -> Legs:
    """Two legs of three parallel revolute joints in crossed planes (Sarrus 1853): one translation, overconstrained."""
    robot = Legs("z", [0.0, 0.0, 0.4])
    for k, side in enumerate((X, Y)):
        t = np.cross(Z, side)
        elbow, end = 0.5 * side + 0.2 * Z, 0.3 * side + robot.home
        robot.add([("R", 0.3 * side, (t,)), ("R", elbow, (t,))], "revolute", end, t, driven=0 if k == 0 else None)
    return robot


def three_crr() -> Legs:
    """3-CRR with orthogonal axes (Kong and Gosselin 2002): three translations, each equal to one slide."""
    robot = Legs("xyz", [0.1, 0.1, 0.1])
    for k in range(3):
        s, foot = np.roll(X, k), np.roll([-0.5, 0.3, 0.2], k)
        end = robot.home + 0.05 * np.roll([-1.0, 0.0, 0.3], k)
        b = foot + s * ((end - foot) @ s)
        elbow = (b + end) / 2 + 0.25 * np.cross(s, unit(end - b))
        robot.add([("C", b, (s,)), ("R", elbow, (s,))], "revolute", end, s, driven=0)
    return robot


def rssr() -> Legs:
    """A spatial four-bar, crank and rocker, whose rod spins between its balls: one rotation."""
    robot = Legs("c", [0.0, 0.0, 0.0])
    crank: Joint = ("R", np.array([0.6, 0.0, 0.0]), (np.array([0.0, 1.0, 0.2]),))
    robot.add([crank, ("S", np.array([0.6, 0.0, 0.2]), ())], "spherical", np.array([0.0, 0.4, 0.1]), driven=0)
    return robot


def _planar(leg: str) -> Legs:
    """Three legs in a plane, the first joint of each driven (of RPR the first R): x, y and the angle."""
    robot = Legs("xyc", [0.1, 0.4, 0.0])
    feet = [np.array(p) for p in ([-0.5, -0.2, 0.0], [0.5, -0.25, 0.0], [0.1, 0.9, 0.0])]
    seats = [np.array(p) for p in ([-0.1, -0.05, 0.0], [0.12, -0.06, 0.0], [0.01, 0.13, 0.0])]

    def way(angle: float) -> Array:
        return np.array([np.cos(angle), np.sin(angle), 0.0])

    for k, (b, p) in enumerate(zip(feet, seats, strict=True)):
        end = p + robot.home
        legs: dict[str, tuple[list[Joint], str, Array]] = {
            "RPR": ([("R", b, (Z,)), ("P", (b + end) / 2, (unit(end - b),))], "revolute", Z),
            "PPR": ([("P", b, (way(0.3 + 2.1 * k),)), ("P", end, (way(2.0 + 1.3 * k),))], "revolute", Z),
            "PRR": ([("P", b, (way(2.1 * k),)), ("R", b, (Z,))], "revolute", Z),
            "RRP": ([("R", b, (Z,)), ("R", b + 0.3 * way(1.0 + k), (Z,))], "prismatic", way(0.4 + 2.0 * k)),
            "PRP": ([("P", b, (way(2.1 * k),)), ("R", b, (Z,))], "prismatic", way(0.4 + 2.0 * k)),
        }
        joints, closure, axis = legs[leg]
        robot.add(joints, closure, end, axis, driven=0)
    return robot


ROBOTS: dict[str, tuple[Callable[[], Legs], str]] = {  # name: how it is made, and its degrees of freedom
    "3-UPU": (translational_upu, "3T"),
    "3-RUU": (lambda: _elbows(0.4, 0.15, "R", "xyz"), "3T"),
    "3-PUU": (lambda: _elbows(0.5, 0.15, "P", "xyz"), "3T"),
    "3-CRR": (three_crr, "3T"),
    "3-RPS": (lambda: _tripod("leg"), "1T2R"),
    "3-PRS": (lambda: _tripod("rail"), "1T2R"),
    "2-UPR + SPR": (exechon, "1T2R"),
    "4-PUU": (four_puu, "3T1R"),
    "5-UPS + UPU": (guided_pentapod, "3T2R"),
    "6-PUS": (lambda: _hexapod("PUS"), "3T3R"),
    "6-RSS": (lambda: _hexapod("RSS"), "3T3R"),
    "3-3 octahedral": (lambda: _hexapod("UPS"), "3T3R"),
    "spherical 5R": (spherical_five_bar, "2R"),
    "Sarrus": (sarrus, "1T"),
    "RSSR": (rssr, "1R"),
    **{f"3-{leg}": ((lambda leg=leg: _planar(leg)), "2T1R") for leg in ("RPR", "PPR", "PRR", "RRP", "PRP")},
}
