# SPDX-License-Identifier: Apache-2.0
"""Evaluates a robot's program on many boxes.

`pose`: (terms, constants, values, inputs (coordinates), results (12)) of the program from task coordinates to the
platform's origin and rotation. `robot`: (terms, constants, values, inputs (12), results, conditions, blocks, unknowns,
equations) of the program from there. `domain`: (origin, directions, twists), coordinates being origin + directions
times parameters, and rates along unit speeds of twists (6, m). `scratch`: (jets of pose, of robot, by unknowns, reach
(k,), matrices, vectors, radii).
"""

from pkm_analysis.proof.kernels.implicit import determine
from pkm_analysis.proof.kernels.intervals import negative, plus, times
from pkm_analysis.proof.kernels.jets import (
    CENTRE,
    NOTHING,
    SLOPE,
    VALUE,
    bend_at,
    centre_rate_at,
    certain,
    rate_at,
    read,
    run,
    unknown_zero,
    width_of,
    write,
)
from pkm_runtime.kernels.compiled import compiled

# Columns of a block of unknowns: terms from, to, its first unknown among `unknowns`, and how many.
FIRST, STOP, AT, COUNT = range(4)


@compiled
def place_parameters(J, inputs, origin, directions, box, k):
    """Write jets of coordinates, origin + directions (n, k) times parameters in `box`, without rates."""
    for j in range(inputs.shape[0]):
        i = inputs[j]
        if i < 0:
            continue
        value = centre = (origin[j], origin[j])
        for u in range(k):
            d = directions[j, u]
            if d != 0.0:
                middle = 0.5 * box[u, 0] + 0.5 * box[u, 1]
                value = plus(value, times((d, d), (box[u, 0], box[u, 1])))
                centre = plus(centre, times((d, d), (middle, middle)))
            write(J, i, SLOPE + 2 * u, (d, d))
        write(J, i, VALUE, value)
        write(J, i, CENTRE, centre)


@compiled
def place_pose(A, results, J, inputs, twists, k, m):
    """Write jets of the platform's origin and rotation, with rates along unit speeds of `twists` (6, m).

    Linear parts move the origin, angular parts rotate about it, in base axes. `A` holds jets without rates; its terms
    `results` (12,) are the origin and, row by row, the rotation, as are `inputs` (12,) in `J`.
    """
    first, there, bends = rate_at(k, m), centre_rate_at(k, m), bend_at(k, m)
    for j in range(12):
        i = inputs[j]
        if i < 0:
            continue
        for at in range(0, SLOPE + 2 * k):
            J[i, at] = A[results[j], at]
        for t in range(m):
            if j < 3:
                v = (twists[j, t], twists[j, t])
                write(J, i, first + 2 * t, v)
                write(J, i, there + 2 * t, v)
                for u in range(k):
                    write(J, i, bends + 2 * (u * m + t), NOTHING)
            else:
                r, c = (j - 3) // 3, (j - 3) % 3
                p, q = (r + 1) % 3, (r + 2) % 3
                # row r of w x column c: w_p R_qc - w_q R_pc
                wp = (twists[3 + p, t], twists[3 + p, t])
                wq = negative((twists[3 + q, t], twists[3 + q, t]))
                Rq, Rp = results[3 + 3 * q + c], results[3 + 3 * p + c]
                write(J, i, first + 2 * t, plus(times(wp, read(A, Rq, VALUE)), times(wq, read(A, Rp, VALUE))))
                write(J, i, there + 2 * t, plus(times(wp, read(A, Rq, CENTRE)), times(wq, read(A, Rp, CENTRE))))
                for u in range(k):
                    at = SLOPE + 2 * u
                    bend = plus(times(wp, read(A, Rq, at)), times(wq, read(A, Rp, at)))
                    write(J, i, bends + 2 * (u * m + t), bend)


@compiled
def place_constants(J, constants, values, k, m):
    """Write the jets of constants: their terms and values."""
    for c in range(constants.shape[0]):
        i = constants[c]
        for at in range(width_of(k, m)):
            J[i, at] = 0.0
        write(J, i, VALUE, (values[c], values[c]))
        write(J, i, CENTRE, (values[c], values[c]))


@compiled
def set_reach(box, reach):
    """Write `reach` for a box, from the centre that `place_parameters` uses."""
    for u in range(box.shape[0]):
        middle = 0.5 * box[u, 0] + 0.5 * box[u, 1]
        off = max(box[u, 1] - middle, middle - box[u, 0])
        reach[u] = off + (abs(off) + abs(middle)) * 2.0**-52


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
