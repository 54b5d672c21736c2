# SPDX-License-Identifier: Apache-2.0
"""Springs and counterweights that may balance a robot: where they are, and what may be chosen of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pkm_description.joint_geometry import freedoms
from pkm_description.mechanism import Array, Mechanism, Spring, frozen
from pkm_runtime.yaml_section import Section, read_yaml

STIFF = 1.0  # N/m, N m/rad: of the springs that are to be sized, until they are


@dataclass(frozen=True, eq=False)
class StraightSpring:
    """A spring between two links whose stiffness is to be found.

    `rest` are the least and the largest rest length [m]; each end may move by up to `move` [m] along each axis of its
    link.
    """

    spring: Spring
    rest: tuple[float, float]
    move: float = 0.0

    @property
    def name(self) -> str:
        """Its name."""
        return self.spring.name


@dataclass(frozen=True)
class JointSpring:
    """A spring of a joint whose stiffness is to be found; it rests between two positions [rad or m]."""

    joint: str
    rest: tuple[float, float]

    @property
    def name(self) -> str:
        """Its joint's name."""
        return self.joint


@dataclass(frozen=True, eq=False)
class Counterweight:
    """A mass on a link whose size is to be found, at a point (3,) of the link that may move as a spring's end."""

    name: str
    link: str
    point: Array
    move: float = 0.0


Candidate = StraightSpring | JointSpring | Counterweight


def described(mechanism: Mechanism, rest: tuple[float, float] | None, move: float) -> list[Candidate]:
    """The springs of a description, to be sized anew; with other rest lengths [m] where `rest` is given."""
    found: list[Candidate] = [
        StraightSpring(spring, rest or (spring.rest_length, spring.rest_length), move) for spring in mechanism.springs
    ]
    joints = (joint for joint in mechanism.joints if joint.spring_stiffness > 0.0)
    return found + [JointSpring(joint.name, (joint.spring_reference, joint.spring_reference)) for joint in joints]


def read_candidates(path: str | Path, mechanism: Mechanism, rest: tuple[float, float], move: float) -> list[Candidate]:
    """The springs and counterweights of a YAML file, lengths in m; `rest` and `move` are of those that say nothing.

    Raises `ConfigurationError` for what cannot be read, or names what the robot lacks.
    """
    source, values = read_yaml(Path(path))
    file = Section(source, "", values)
    found: list[Candidate] = []
    springs, weights = file.mapping("springs"), file.mapping("counterweights")
    for name in springs:
        one = Section(source, f"springs.{name}", springs[name])
        found.append(
            _joint_spring(one, mechanism) if one.has("joint") else _spring(str(name), one, mechanism, rest, move)
        )
        one.finish()
    for name in weights:
        one = Section(source, f"counterweights.{name}", weights[name])
        point = frozen(one.numbers("xyz", (3,)))
        found.append(Counterweight(str(name), _body(one, "link", mechanism), point, _length(one, "move", move)))
        one.finish()
    if not found:
        raise file.wrong("", "it has neither springs nor counterweights", "see docs/balance.md for an example")
    file.finish()
    return found


def _spring(name: str, one: Section, mechanism: Mechanism, rest: tuple[float, float], move: float) -> StraightSpring:
    ends = [(_body(one, key, mechanism), frozen(one.numbers(f"{key}_xyz", (3,)))) for key in ("from", "to")]
    if ends[0][0] == ends[1][0]:
        raise one.wrong("to", f"both ends are on '{ends[0][0]}'", "name two different links")
    lengths = one.numbers("rest_length", (1, 2), rest)
    if not 0.0 <= lengths[0] <= lengths[-1]:
        raise one.wrong("rest_length", "these are not lengths, the least first", "give one, or [least, largest], in m")
    spring = Spring(name, STIFF, *ends[0], *ends[1])
    return StraightSpring(spring, (lengths[0], lengths[-1]), _length(one, "move", move))


def _joint_spring(one: Section, mechanism: Mechanism) -> JointSpring:
    able = [j.name for j in mechanism.joints if len(freedoms(j)) == 1 and j.name not in mechanism.virtual_chain]
    joint = one.text("joint", choices=able)
    rest = one.numbers("reference", (1, 2), (-np.pi, np.pi))
    if rest[0] > rest[-1]:
        raise one.wrong("reference", "the least comes first", "give one position, or [least, largest], in rad or m")
    return JointSpring(joint, (rest[0], rest[-1]))


def _body(one: Section, key: str, mechanism: Mechanism) -> str:
    between = {mechanism.joint_named[name].child for name in mechanism.virtual_chain} - {mechanism.platform_link}
    return one.text(key, choices=[link.name for link in mechanism.links if link.name not in between])


def _length(one: Section, key: str, default: float) -> float:
    return one.number(key, default, (0.0, 100.0))
