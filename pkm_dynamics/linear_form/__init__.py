# SPDX-License-Identifier: Apache-2.0
"""The linear form of the dynamics of any parallel robot: `effort = Psi(pose, twist, acceleration) p`.

After Codourey and Burdet, "A body-oriented method for finding a linear form of the dynamic equation of fully parallel
robots", ICRA 1997. Parameters are in SI units. Per body: `<link>.m`, `.mx .my .mz` (mass times centre of mass) and
`.Ixx .Ixy .Ixz .Iyy .Iyz .Izz` (inertia about the origin of the link's frame), in the axes of that frame, the links
fixed to it included. Then per joint: `<joint>.armature` (rotor inertia felt at an actuated joint), `.viscous` and
`.coulomb` (friction). Massless links, such as a universal joint's cross, have no parameters; the platform always has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pkm_description.mechanism import Array, Inertial, Mechanism, frozen, symmetric_of
from pkm_dynamics.kernels.body_regressor import LinearForm, regressor_many
from pkm_dynamics.problem import Problem
from pkm_dynamics.robot_model import checked_payload
from pkm_kinematics import Kinematics
from pkm_kinematics.kernels import records
from pkm_kinematics.kernels.model_and_data import Choice, Model
from pkm_kinematics.model.tables import build_graph

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
UNITS = ("kg", *3 * ("kg m",), *6 * ("kg m^2",))


@dataclass(frozen=True, eq=False)
class ParameterSet:
    """Parameters of a robot: names, values of the description, and their places in the kernels' `LinearForm`.

    `bodies` maps the link names of bodies with inertial parameters to their first column.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Array
    layout: NDArray[np.int64]
    axes: Array
    bodies: dict[str, int]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def friction(self) -> NDArray[np.bool_]:
        """Mask of the friction coefficients."""
        return np.array([name.endswith((".viscous", ".coulomb")) for name in self.names])

    def inertial_of(self, values: Array, link: str) -> Inertial:
        """Mass, centre of mass and central inertia of a link from parameter values (n,)."""
        at = self.bodies[link]
        return Inertial.of_ten(values[at : at + 10])


def parameters_of(kinematics: Kinematics, *, friction: bool = True) -> ParameterSet:
    """All parameters of a robot, bodies in the order base to tip of each limb, the platform first."""
    mechanism, tables = kinematics.mechanism, kinematics.tables
    links, rotations = _carriers(mechanism, tables.names)
    names: list[str] = []
    units: list[str] = []
    values: list[float] = []
    layout = np.full((len(tables.bodies), 4), -1, dtype=np.int64)
    axes = np.tile(np.eye(3), (len(tables.bodies), 1, 1))
    bodies: dict[str, int] = {}

    def add(name: str, unit: str, value: float) -> int:
        names.append(name)
        units.append(unit)
        values.append(value)
        return len(names) - 1

    for i, row in enumerate(tables.bodies):
        if i == records.BASE or i not in links or (row["massless"] and i != records.PLATFORM):
            continue
        axes[i] = rotations[i]
        layout[i, 0] = bodies[links[i]] = len(names)
        ten = [float(row["mass"]), *(axes[i].T @ row["moment"])]
        ten += list((axes[i].T @ symmetric_of(row["inertia"]) @ axes[i])[np.triu_indices(3)])
        for suffix, unit, value in zip(INERTIAL, UNITS, ten, strict=True):
            add(f"{links[i]}.{suffix}", unit, float(value))
    for i, row in enumerate(tables.bodies):
        if i <= records.PLATFORM:
            continue
        slides, joint = bool(row["prismatic"]), tables.names[i]
        if row["actuator"] >= 0:
            layout[i, 1] = add(f"{joint}.armature", "kg" if slides else "kg m^2", float(row["armature"]))
        if friction:
            layout[i, 2] = add(f"{joint}.viscous", "N s/m" if slides else "N m s/rad", float(row["viscous"]))
            layout[i, 3] = add(f"{joint}.coulomb", "N" if slides else "N m", float(row["coulomb"]))
    return ParameterSet(tuple(names), tuple(units), frozen(values), layout, axes, bodies)


def payload_parameters(parameters: ParameterSet, platform: str, payload: Inertial) -> Array:
    """Additions (n,) to all parameters by a payload in the platform's frame."""
    added = np.zeros(len(parameters))
    at = parameters.bodies[platform]
    added[at : at + len(INERTIAL)] = checked_payload(payload).ten
    return added


def _carriers(mechanism: Mechanism, order: tuple[str, ...]) -> tuple[dict[int, str], dict[int, Array]]:
    """Link of each body, by the body's index in `order`, and the axes of the link's frame in the body's frame."""
    graph = build_graph(mechanism)
    index = {name: k for k, name in enumerate(order)}
    links = {records.PLATFORM: mechanism.platform_link}
    axes = {records.PLATFORM: np.eye(3)}
    chain = set(mechanism.virtual_chain)
    for joint in mechanism.joints:
        if joint.name in chain or joint.child == mechanism.platform_link or joint.type.dof == 0:
            continue
        body = index[graph.bodies[graph.link_body[joint.child]].name]
        links[body] = joint.child
        axes[body] = graph.link_frame[joint.child][:3, :3]
    return links, axes


def regressor(problem: Problem, parameters: ParameterSet) -> tuple[Array, NDArray[np.int64]]:
    """Psi (..., n_actuated, n_parameters), by minimum norm if redundant, NaN where not CONVERGED; status (...,)."""
    m, n, width = problem.robot.n_actuated, problem.robot.kinematics.mobility, len(parameters)
    out = np.full((len(problem), m, width), np.nan)

    def kernel(model: Model, choice: Choice, motions: Array, out: Array, status: NDArray[np.int64]) -> None:
        data = problem.robot.kinematics.engine.data()
        scratch = np.zeros((len(model.bodies), 6, n)), np.zeros((n, width)), np.zeros((m, n))
        form = LinearForm(parameters.layout, parameters.axes, *scratch)
        regressor_many(model, data, choice, form, motions, out, status)

    problem.solve(kernel, out)
    return problem.shaped(out), problem.shaped(problem.status)
