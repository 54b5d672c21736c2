# SPDX-License-Identifier: Apache-2.0
"""The command: a recorded motion in, a parameter file out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from pkm_description import load_mechanism
from pkm_description.command_options import Parser, add_output, add_robot, wrong
from pkm_description.load import xacro_arguments
from pkm_dynamics import Dynamics
from pkm_dynamics.identification.identify import CUTOFF, Identified, identify, write
from pkm_dynamics.identification.recorded import read
from pkm_runtime.errors import PkmError
from pkm_runtime.kernels.kernel_cache import making

UNLIKE = 1.5  # times the residual of least squares
LISTED = 8  # parameters in a sentence
FAR = 2.0  # times the mass of the description, or that much less


def parser() -> argparse.ArgumentParser:
    """The command line."""
    given = Parser(
        prog="pkm identify",
        description="Identify masses, inertias and friction of a robot from a recorded motion.",
        epilog="The recording is a CSV file with a header, in SI units: time, position_<joint> of every actuated joint "
        "(or the platform's measured_x, _y, _z, _qx, _qy, _qz, _qw), effort_<joint>.",
    )
    add_robot(given)
    given.add_argument("recorded", type=Path, metavar="RECORDING", help="the recorded motion (CSV)")
    add_output(given, required=True)
    given.add_argument(
        "--cutoff", type=float, default=CUTOFF, metavar="HZ", help="low-pass filter [Hz] (default: %(default)g)"
    )
    given.add_argument(
        "--validate", type=Path, metavar="RECORDING", help="another recording, predicted with the result"
    )
    given.add_argument("--no-friction", action="store_true", help="model without joint friction")
    given.add_argument(
        "--no-feasible", action="store_true", help="only least squares: needs no convex solver, writes no bodies"
    )
    return given


def report(found: Identified) -> str:
    """What the command prints."""
    estimate = found.estimate
    lines = [
        f"{found.dynamics.mechanism.name}: {len(found.base)} base parameters from {len(estimate.y)} equations, "
        f"condition number {estimate.condition:.3g}",
        estimate.text(),
    ]
    names = found.dynamics.kinematics.actuated_names
    noise = ", ".join(f"{name} {value:.3g}" for name, value in zip(names, estimate.noise, strict=True))
    lines.append(f"noise of the efforts: {noise}")
    if found.blurred:
        more = f" and {len(found.blurred) - LISTED} more" if len(found.blurred) > LISTED else ""
        lines.append(
            f"WARNING: noise of the positions bends {', '.join(found.blurred[:LISTED])}{more}, also beyond their "
            "intervals; record a faster motion, or with a lower --cutoff"
        )
    if found.feasible is not None:
        lines.append(
            f"feasible estimate: residual {found.feasible.residual:.4f} standard deviations, "
            f"least squares {found.feasible.least_squares_residual:.4f}"
        )
        if found.feasible.residual > UNLIKE * found.feasible.least_squares_residual:
            lines.append(
                "WARNING: no bodies explain the efforts nearly as well as least squares do: are columns exchanged, "
                "have efforts or positions another sign or unit, or is it another robot?"
            )
        parameters, values = found.dynamics.parameters, found.feasible.values
        masses = {link: (parameters.values[at], values[at]) for link, at in parameters.bodies.items()}
        rounding = 1e-6 * max(b for _, b in masses.values())
        far = [
            f"{link} {a:.4g} to {b:.4g} kg"
            for link, (a, b) in masses.items()
            if not a / FAR - rounding <= b <= FAR * a + rounding
        ]
        if far:
            lines.append(
                f"masses far from the description: {', '.join(far)}; if that cannot be, record a richer motion"
            )
    if found.validation is not None:
        worst, before = np.max(found.validation.relative), np.max(found.validation.described)
        lines.append(f"validation: relative error {100 * worst:.2f} %, of the description {100 * before:.2f} %")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    given = parser().parse_args(arguments)
    try:
        mechanism = load_mechanism(given.robot, xacro_arguments(given.xacro_args))
        with making(f"identifying {mechanism.name}"):
            dynamics = Dynamics(mechanism, friction=not given.no_friction)
            recorded = read(given.recorded, dynamics.kinematics)
            validate = read(given.validate, dynamics.kinematics) if given.validate else None
            found = identify(dynamics, recorded, given.cutoff, validate=validate, feasible=not given.no_feasible)
        write(found, Path(given.output))
    except (PkmError, OSError) as error:
        return wrong("identify", error)
    print(report(found))
    print(f"written: {given.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
