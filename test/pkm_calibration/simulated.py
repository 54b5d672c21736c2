# SPDX-License-Identifier: Apache-2.0
"""Machines that differ from their drawing, measured with noise."""

from __future__ import annotations

import numpy as np

from pkm_calibration.measurements import Measurements
from pkm_description import load_mechanism
from pkm_description.mechanism import Mechanism
from pkm_description.rotations import rotation_from_vector, rpy_from_rotation
from pkm_kinematics.geometric_parameters import GeometricParameters
from pkm_kinematics.graph_model import GraphModel

NOISE, TURNED = 2e-5, 1e-4  # m, rad
WRONG = 1e-3  # m, and twice as much in rad: of the machines


def measured(
    name: str, n: int = 100, seed: int = 0, attitude: bool = True, known: bool = True
) -> tuple[Mechanism, dict[str, float], Measurements]:
    """A robot, by how much its parameters are off, and measurements of its platform with known standard deviations."""
    mechanism = load_mechanism(name)
    parameters = GeometricParameters(mechanism)
    random = np.random.default_rng(seed)
    truth = {
        one.name: (WRONG if one.unit == "m" else 2.0 * WRONG) * random.standard_normal()
        for one in parameters.identifiable()
    }
    model = GraphModel(mechanism, parameters.closing(parameters.displacements(truth)))
    drives = model.columns_of(mechanism.actuated_joints)
    redundant = len(drives) > mechanism.mobility.platform
    states, gap = model.closed(parameters.model.random_states(n, seed=seed), () if redundant else drives)
    states = states.rows(np.flatnonzero(gap < 1e-9))
    n = len(states)
    readings = states.q[:, drives] + (NOISE * random.standard_normal((n, len(drives))) if redundant else 0.0)
    position = states.platform[:, :3, 3] + NOISE * random.standard_normal((n, 3))
    turned = rotation_from_vector(TURNED * random.standard_normal((n, 3))) @ states.platform[:, :3, :3]
    sigma = dict.fromkeys((*"xyz", *mechanism.actuated_joints), NOISE)
    sigma |= dict.fromkeys(("yaw", "pitch", "roll"), TURNED)
    return (
        mechanism,
        truth,
        Measurements(
            readings, {}, position, turned if attitude else np.full((n, 3, 3), np.nan), np.full(n, np.nan),
            np.zeros((n, 3)), np.zeros((n, 3)), sigma, known, "simulated", np.arange(n) + 2,
        ),
    )  # fmt: skip


def as_csv(mechanism: Mechanism, measurements: Measurements) -> str:
    """The file that somebody would have written: in degrees and millimetres."""
    heads = [
        f"{name} [deg]" if mechanism.joint_named[name].unit == "rad" else f"{name} [mm]"
        for name in mechanism.actuated_joints
    ]
    factors = [
        180.0 / np.pi if mechanism.joint_named[name].unit == "rad" else 1e3 for name in mechanism.actuated_joints
    ]
    heads += ["x [mm]", "y [mm]", "z [mm]", "yaw", "pitch", "roll"]
    lines = [f"# sigma {axis}: {NOISE}" for axis in "xyz"] + [
        f"# sigma {axis}: {TURNED}" for axis in ("yaw", "pitch", "roll")
    ]
    lines.append(",".join(heads))
    for q, at, turn in zip(measurements.drives, measurements.position, measurements.attitude, strict=True):
        cells = [f"{value:.10g}" for value in (*(q * factors), *(1e3 * at))]
        cells += [f"{value:.10g}" for value in rpy_from_rotation(turn)[::-1]] if np.isfinite(turn).all() else [""] * 3
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"
