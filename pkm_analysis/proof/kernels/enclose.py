# SPDX-License-Identifier: Apache-2.0
"""Evaluates a robot's program on many boxes.

`pose`: (terms, constants, values, inputs (coordinates), results (12)) of the program from task coordinates to the
platform's origin and rotation. `robot`: (terms, constants, values, inputs (12), results, conditions, blocks, unknowns,
equations) of the program from there. `domain`: (origin, directions, twists), coordinates being origin + directions
times parameters, and rates along unit speeds of twists (6, m). `scratch`: (jets of pose, of robot, by unknowns, reach
(k,), matrices, vectors, radii).
"""

from pkm_analysis.proof.kernels.implicit import determine
from pkm_analysis.proof.kernels.jets import width_of
from pkm_analysis.proof.kernels.program import (
    certain,
    place_constants,
    place_parameters,
    place_pose,
    run,
    set_reach,
    unknown_zero,
)
from pkm_runtime.kernels.compiled import compiled

# Columns of a block of unknowns: terms from, to, its first unknown among `unknowns`, and how many.
FIRST, STOP, AT, COUNT = range(4)


@compiled
def enclose(pose, robot, domain, boxes, guesses, scratch, out, decided):
    """Write jets out (n, n_results, width) of a program's results over boxes (n, k, 2) of parameters.

    `guesses` (n, n_unknowns) are the unknowns at the boxes' centres; `decided` (n,) tells where every comparison comes
    out as recorded and all unknowns are determined.
    """
    pose_terms, pose_constants, pose_values, coordinates, placed = pose
    terms, constants, values, inputs, results, conditions, blocks, unknowns, equations = robot
    origin, directions, twists = domain
    A, J, G, reach, matrices, vectors, radii = scratch
    k, m = directions.shape[1], twists.shape[1]
    width = width_of(k, m)
    none = unknown_zero(m)
    place_constants(A, pose_constants, pose_values, k, none)
    place_constants(J, constants, values, k, m)
    for n in range(boxes.shape[0]):
        box = boxes[n]
        set_reach(box, reach)
        place_parameters(A, coordinates, origin, directions, box, k)
        run(pose_terms, A, none, pose_terms.shape[0], k, none, reach, none == 0)
        place_pose(A, placed, J, inputs, twists, k, m)
        start = none
        ok = True
        for b in range(blocks.shape[0]):
            run(terms, J, start, blocks[b, FIRST], k, m, reach, none == 0)
            at, count = blocks[b, AT], blocks[b, COUNT]
            between = blocks[b, FIRST], blocks[b, STOP]
            mine, zero, guess = unknowns[at : at + count], equations[at : at + count], guesses[n, at : at + count]
            known = determine(terms, J, G, between, mine, zero, guess, (k, m), reach, (matrices, vectors, radii))
            ok = ok and known
            start = blocks[b, STOP]
        run(terms, J, start, terms.shape[0], k, m, reach, none == 0)
        decided[n] = ok and certain(conditions, J)
        for r in range(results.shape[0]):
            for c in range(width):
                out[n, r, c] = J[results[r], c]
