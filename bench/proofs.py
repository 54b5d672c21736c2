# SPDX-License-Identifier: Apache-2.0
"""What proofs cost: boxes and processor time of the questions in docs/proof.md, as its table.

python -m bench.proofs
"""

from __future__ import annotations

import time

from pkm_analysis import Analysis
from pkm_description import load_mechanism

CUBE = dict.fromkeys("xyz", (-0.1267949192, 0.0732050808))  # of the design
BOX = {"x": (-0.2, 0.2), "y": (-0.2, 0.2), "z": (-1.0, -0.8)}
DASGUPTA = [[0.4, 1.4, 1.2, 0.0, 0.2, 0.1], [0.8, 1.8, 1.8, 0.0, 0.4, 0.3]]
NEAR = {"x": (0.19, 0.21), "y": (0.09, 0.11), "z": (0.79, 0.81)}
TURNED = {"x": (0.198, 0.202), "y": (0.098, 0.102), "z": (0.798, 0.802)}
TURNED |= dict.fromkeys(("yaw", "pitch", "roll"), (-2e-3, 2e-3))
SLIDE = [[0.15, 0.1, 0.8, 0.0, 0.0, 0.0], [0.25, 0.1, 0.8, 0.0, 0.0, 0.0]]
QUESTIONS = (  # what is asked in words, the robot, the stiffness of its drives, requirements, a box or a path
    ("Orthoglide, cube of 200 mm: all ψ within ½ − 10⁻⁶ and 2 + 10⁻⁶",
     "orthoglide", None, ["psi > 0.499999", "psi < 2.000001"], CUBE),
    ("the same with ½ + 10⁻³", "orthoglide", None, ["psi > 0.501"], CUBE),
    ("the same cube: inside", "orthoglide", None, ["inside"], CUBE),
    ("the same cube: no singularity", "orthoglide", None, ["no singularity"], CUBE),
    ("Delta, 0.4 × 0.4 × 0.2 m: inside", "delta", None, ["inside"], BOX),
    ("the same box: no singularity", "delta", None, ["no singularity"], BOX),
    ("the same box: margin > 0.2", "delta", None, ["margin > 0.2"], BOX),
    ("six legs on Dasgupta's path: no singularity", "gough_stewart", None, ["no singularity"], DASGUPTA),
    ("seven legs on it: no singularity", "gough_stewart_7", None, ["no singularity"], DASGUPTA),
    ("Delta, cube of 40 mm: stiffness:z > 1.8 N/um", "delta", 2e5, ["stiffness:z > 1.8 N/um"],
     {"x": (-0.02, 0.02), "y": (-0.02, 0.02), "z": (-0.92, -0.88)}),
    ("the same cube: sag < 60 um", "delta", 2e5, ["sag < 60 um"],
     {"x": (-0.02, 0.02), "y": (-0.02, 0.02), "z": (-0.92, -0.88)}),
    ("Gough-Stewart at home (0.64 N/um), cube of 20 mm: stiffness > 0.5 N/um",
     "gough_stewart", 5e7, ["stiffness > 0.5 N/um"], NEAR),
    ("the same, 4 mm and 4 mrad in all six coordinates: stiffness > 0.55 N/um",
     "gough_stewart", 5e7, ["stiffness > 0.55 N/um"], TURNED),
    ("the same along 100 mm of x: stiffness:z > 4 N/um", "gough_stewart", 5e7, ["stiffness:z > 4 N/um"], SLIDE),
)  # fmt: skip


def main() -> None:
    """Ask each question twice, and print the second time: the first one may load kernels."""
    print("| question | verdict | boxes | processor time [s] |\n|---|---|---|---|")
    for text, name, drives, that, where in QUESTIONS:
        analysis = Analysis(load_mechanism(name), stiffness=drives)
        for _ in range(2):
            began = time.process_time()
            proof = analysis.prove(that, where) if isinstance(where, dict) else analysis.prove_path(that, where)
            taken = time.process_time() - began
        print(f"| {text} | {proof.verdict} | {proof.boxes} | {taken:.2g} |", flush=True)


if __name__ == "__main__":
    main()
