# SPDX-License-Identifier: Apache-2.0
"""An elastic structure in numbers, for JSON: all that another frame program needs; docs/stiffness.md has the keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkm_analysis.stiffness.elastic_model import FREE, ElasticModel, JointBetween, SpringBetween


def structure_numbers(m: ElasticModel) -> dict[str, Any]:
    """Nodes, beams, joints, drives, cables, springs, masses and gravity of a structure at one pose."""
    driven = [(j, j.driven) for j in m.joints if j.driven is not None]
    return {
        "nodes": [{"link": n.link, "at": n.point.tolist()} for n in m.nodes],
        "beams": [
            {
                "link": b.piece.link,
                "nodes": list(b.joins),
                "from": b.piece.start.tolist(),
                "to": b.piece.end.tolist(),
                **{name: float(getattr(b.piece.section, name)) for name in ("E", "G", "A", "Iy", "Iz", "J")},
                "y": b.piece.y.tolist(),
                "source": b.piece.source,
            }
            for b in m.beams
        ],
        "joints": [_joint(j) for j in m.joints],
        "drives": [
            {
                "joint": j.name,
                "at": j.point.tolist(),
                "axis": j.twist(k).tolist(),
                "stiffness": finite(j.stiffness[k]),
            }
            for j, k in driven
        ],
        "cables": [
            {
                "joint": name,
                "from": line.near.tolist(),
                "to": line.far.tolist(),
                "length": float(line.length),
                "EA": line.cable.stiffness,
                "mass": line.cable.mass,
            }
            for name, line in m.lines.items()
        ],
        "springs": [_spring(one) for one in m.springs],
        "rigid_links": dict(m.rigid),
        "masses": [
            {
                "link": one.link,
                "node": one.node,
                "mass": one.mass,
                "at": one.point.tolist(),
                "inertia": one.inertia.tolist(),
            }
            for one in m.masses
        ],
        "gravity": m.gravity.tolist(),
    }


def finite(value: float) -> float | None:
    """None where it is infinite, which JSON cannot say."""
    return float(value) if np.isfinite(value) else None


def _joint(joint: JointBetween) -> dict[str, Any]:
    held = [k for k, s in enumerate(joint.stiffness) if s != FREE and k != joint.driven]
    found = {
        "name": joint.name,
        "type": joint.type,
        "links": list(joint.links),
        "nodes": list(joint.joins),
        "at": joint.point.tolist(),
        "free": [joint.twist(k).tolist() for k, s in enumerate(joint.stiffness) if s == FREE],
        "stiffness": [{"axis": joint.twist(k).tolist(), "value": finite(joint.stiffness[k])} for k in held],
    }
    return found | ({"mimic": joint.leader, "multiplier": joint.multiplier} if joint.leader else {})


def _spring(spring: SpringBetween) -> dict[str, Any]:
    found = {
        "name": spring.name,
        "links": list(spring.links),
        "nodes": list(spring.joins),
        "at": spring.point.tolist(),
        "axis": spring.axis.tolist(),
        "stiffness": spring.stiffness,
        "force": float(spring.force),
    }
    return found if spring.length is None else found | {"length": float(spring.length)}
