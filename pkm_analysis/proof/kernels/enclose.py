# SPDX-License-Identifier: Apache-2.0
"""Evaluates a robot's program on many boxes, the joints of limbs without a closed form included.

Such joints are unknowns y of equations F(x, y) = 0. By Krawczyk's test, with the parameters x of the box: where

    y_c - C F(X, y_c) + (1 - C F_y(X, Y)) (Y - y_c)  lies inside  Y,

every x in X has exactly one y in Y with F(x, y) = 0 (C is any matrix; the inverse of F_y at the centre serves best).
Derivatives of y(x) then solve F_y y' = -F_x, and those of the second order the same equations with another right side.

Arrays: interval matrix A (n, n, 2), its approximate inverse C (n, n), defect E = 1 - C A (n, n, 2); jets J, and G
(n_terms, SLOPE + 2 MOST) by the unknowns; `unknowns`, `equations` (n,) terms, the latter zero; `guess` (n,) the
unknowns at the centre, nearly; `radius` (n,); `step` (n, 2) intervals C F(X, y_c).
"""

from math import inf

from pkm_analysis.proof.kernels.intervals import (
    CENTRE,
    EVERYTHING,
    NOTHING,
    SLOPE,
    VALUE,
    bend_at,
    both,
    centre_rate_at,
    certain,
    magnitude,
    minus,
    negative,
    plus,
    rate_at,
    read,
    run,
    times,
    unknown,
    unknown_zero,
    up,
    width_of,
    write,
    write_values,
)
from pkm_runtime.kernels.compiled import compiled

TRIES = 10
WIDEN = 1.125  # factor by which a box of unknowns is enlarged where the test needs more room
SMALLEST = 1e-14  # initial half side of a box of unknowns, relative to 1 + |unknown|
MOST = 8  # unknowns of a block: the size of its matrices
# Columns of a block of unknowns: terms from, to, its first unknown among `unknowns`, and how many.
FIRST, STOP, AT, COUNT = range(4)


@compiled
def invert(A, n, C, B):
    """An approximate inverse C of the middle of A; False where there is none. `B` (n, n) is scratch."""
    for r in range(n):
        for c in range(n):
            B[r, c] = 0.5 * (A[r, c, 0] + A[r, c, 1])
            if not abs(B[r, c]) < inf:
                return False
            C[r, c] = 1.0 if r == c else 0.0
    for k in range(n):
        pivot = k
        for r in range(k + 1, n):
            if abs(B[r, k]) > abs(B[pivot, k]):
                pivot = r
        if not abs(B[pivot, k]) > 1e-300:
            return False
        for c in range(n):
            B[k, c], B[pivot, c] = B[pivot, c], B[k, c]
            C[k, c], C[pivot, c] = C[pivot, c], C[k, c]
        size = 1.0 / B[k, k]
        for c in range(n):
            B[k, c] *= size
            C[k, c] *= size
        for r in range(n):
            if r != k:
                factor = B[r, k]
                for c in range(n):
                    B[r, c] -= factor * B[k, c]
                    C[r, c] -= factor * C[k, c]
    return True


@compiled
def defect(A, C, n, E):
    """E = 1 - C A as intervals."""
    for r in range(n):
        for c in range(n):
            total = (1.0, 1.0) if r == c else NOTHING
            for j in range(n):
                total = minus(total, times((C[r, j], C[r, j]), (A[j, c, 0], A[j, c, 1])))
            E[r, c, 0] = total[0]
            E[r, c, 1] = total[1]


@compiled
def solve(E, C, n, b, x, y):
    """All solutions of A x = b for intervals b, within x (n, 2); False where A may be singular. y (n, 2) is scratch."""
    norm = largest = 0.0
    for r in range(n):
        total = NOTHING
        row = 0.0
        for j in range(n):
            total = plus(total, times((C[r, j], C[r, j]), (b[j, 0], b[j, 1])))
            row = up(row + magnitude((E[r, j, 0], E[r, j, 1])))
        write(y, r, 0, total)
        norm = max(norm, row)
        largest = max(largest, magnitude(total))
    if not (norm < 0.999 and largest < inf):
        return False
    rest = up(up(norm * largest) / (0.999 * (1.0 - norm)))
    for r in range(n):
        write(x, r, 0, plus((y[r, 0], y[r, 1]), (-rest, rest)))
    for _ in range(2):  # x = C b + E x
        for r in range(n):
            total = (y[r, 0], y[r, 1])
            for j in range(n):
                total = plus(total, times((E[r, j, 0], E[r, j, 1]), (x[j, 0], x[j, 1])))
            total = both((x[r, 0], x[r, 1]), total)
            write(x, r, 0, total)
    return True


@compiled
def take_over(J, G, start, from_value, n):
    """Copy terms before `start` into G, constant in the unknowns, from the value or the centre."""
    at = VALUE if from_value else CENTRE
    for i in range(start):
        for c in range(2):
            G[i, VALUE + c] = G[i, CENTRE + c] = J[i, at + c]
        for c in range(SLOPE, SLOPE + 2 * n):
            G[i, c] = 0.0


@compiled
def by_unknowns(terms, G, start, stop, unknowns, equations, guess, radius, A):
    """Write A: derivatives of the equations by the unknowns, these within `radius` of `guess`."""
    n = unknowns.shape[0]
    for j in range(n):
        i = unknowns[j]
        for c in range(SLOPE, SLOPE + 2 * n):
            G[i, c] = 0.0
        write_values(G, i, plus((guess[j], guess[j]), (-radius[j], radius[j])), (guess[j], guess[j]))
        write(G, i, SLOPE + 2 * j, (1.0, 1.0))
    none = unknown_zero(n)
    run(terms, G, start, stop, n, none, radius, none == 0)
    for r in range(n):
        for c in range(n):
            d = read(G, equations[r], SLOPE + 2 * c)
            A[r, c, 0] = d[0]
            A[r, c, 1] = d[1]


@compiled
def contract(E, step, n, radius):
    """Krawczyk's test: True where `radius` is large enough; it is reduced to what is needed, or else widened."""
    inside = True
    for r in range(n):
        need = magnitude((step[r, 0], step[r, 1]))
        for j in range(n):
            need = up(need + up(magnitude((E[r, j, 0], E[r, j, 1])) * radius[j]))
        step[r, 0] = -need
        step[r, 1] = need
        inside = inside and need < radius[r]
    for r in range(n):
        need = step[r, 1]
        if inside:
            radius[r] = need
        else:
            radius[r] = max(radius[r], need * WIDEN)
    return inside


@compiled
def step_of(J, equations, C, n, at_centre, k, reach, step):
    """Write `step` for the unknowns at their guess: at the centre, or over the box by mean values."""
    for r in range(n):
        total = NOTHING
        for j in range(n):
            total = plus(total, times((C[r, j], C[r, j]), read(J, equations[j], CENTRE)))
        if not at_centre:
            radius = 0.0
            for u in range(k):
                slope = NOTHING
                for j in range(n):
                    slope = plus(slope, times((C[r, j], C[r, j]), read(J, equations[j], SLOPE + 2 * u)))
                if reach[u] > 0.0:
                    radius = up(radius + up(magnitude(slope) * reach[u]))
            total = plus(total, (-radius, radius))
        write(step, r, 0, total)


@compiled
def settle(system, J, G, at_centre, k, reach, scratch):
    """Krawczyk's test again and again: True where the radius became large enough.

    `system` are the terms, first and last, unknowns, equations, guess and radius; `scratch` are A, C, E and `step`.
    """
    terms, start, stop, unknowns, equations, guess, radius = system
    A, C, E, step = scratch
    n = unknowns.shape[0]
    for _ in range(TRIES):
        by_unknowns(terms, G, start, stop, unknowns, equations, guess, radius, A)
        defect(A, C, n, E)
        step_of(J, equations, C, n, at_centre, k, reach, step)
        if contract(E, step, n, radius):
            return True
    return False


@compiled
def rest_of(J, unknowns, k, m):
    """Reset the derivatives of the unknowns."""
    for j in range(unknowns.shape[0]):
        for c in range(SLOPE, bend_at(k, m) + 2 * k * m):
            J[unknowns[j], c] = 0.0


@compiled
def derive(J, unknowns, equations, at, E, C, b, x, y):
    """Write one derivative of the unknowns, in column `at` of their jets, from that of the equations there."""
    n = unknowns.shape[0]
    for j in range(n):
        write(b, j, 0, negative(read(J, equations[j], at)))
    if not solve(E, C, n, b, x, y):
        return False
    for j in range(n):
        write(J, unknowns[j], at, (x[j, 0], x[j, 1]))
    return True


@compiled
def place(J, unknowns, guess, radius, k, m):
    """Put the unknowns at their guess, with the least radius; False where a guess is not finite."""
    rest_of(J, unknowns, k, m)
    known = True
    for j in range(unknowns.shape[0]):
        known = known and abs(guess[j]) < inf
        radius[j] = SMALLEST * (1.0 + abs(guess[j]))
        write_values(J, unknowns[j], (guess[j], guess[j]), (guess[j], guess[j]))
    return known


@compiled
def determine(terms, J, G, between, unknowns, equations, guess, sizes, reach, scratch):
    """Jets of the unknowns over the box; True where one solution near the guess is proved for every pose.

    `between` is the first term that depends on the unknowns, and the term after the last equation; `sizes` are k and m;
    `scratch` has shapes (4, MOST, MOST, 2), (4, MOST, 2) and (2, MOST).
    """
    (start, stop), (k, m), (matrices, vectors, radii) = between, sizes, scratch
    n, none = unknowns.shape[0], unknown_zero(k)
    A, E, EC = matrices[0], matrices[1], matrices[2]
    C, B = matrices[3, :, :, 0], matrices[3, :, :, 1]
    step, b, x, y = vectors[0], vectors[1], vectors[2], vectors[3]
    radius, at_centre = radii[0], radii[1]  # contiguous, as `reach` is
    system = terms, start, stop, unknowns, equations, guess, radius
    known = place(J, unknowns, guess, radius, k, m)
    if known:
        run(terms, J, start, stop, k, m, reach, none == 0)
        # at the centre
        take_over(J, G, start, False, n)
        by_unknowns(terms, G, start, stop, unknowns, equations, guess, radius, A)
        known = invert(A, n, C, B)
    found = False
    if known:
        found = settle(system, J, G, none == 0, k, reach, (A, C, EC, step))
        for j in range(n):
            at_centre[j] = radius[j]
    if found:  # over the box
        take_over(J, G, start, True, n)
        step_of(J, equations, C, n, False, k, reach, step)
        for j in range(n):
            radius[j] = max(magnitude((step[j, 0], step[j, 1])) * WIDEN, at_centre[j])
        found = settle(system, J, G, none != 0, k, reach, (A, C, E, step))
    if found:
        by_unknowns(terms, G, start, stop, unknowns, equations, guess, radius, A)  # where they are now known to be
        defect(A, C, n, E)
        for j in range(n):
            write(J, unknowns[j], VALUE, plus((guess[j], guess[j]), (-radius[j], radius[j])))
            write(J, unknowns[j], CENTRE, plus((guess[j], guess[j]), (-at_centre[j], at_centre[j])))
        rest_of(J, unknowns, k, m)
        run(terms, J, start, stop, k, m, reach, none != 0)
        there, bends = centre_rate_at(k, m), bend_at(k, m)
        for at in range(SLOPE, there, 2):
            found = found and derive(J, unknowns, equations, at, E, C, b, x, y)
        for at in range(there, bends, 2):
            found = found and derive(J, unknowns, equations, at, EC, C, b, x, y)
        if found and m > 0:
            run(terms, J, start, stop, k, m, reach, none != 0)
            for at in range(bends, bends + 2 * k * m, 2):
                found = found and derive(J, unknowns, equations, at, E, C, b, x, y)
    if not found:
        for j in range(n):
            write_values(J, unknowns[j], EVERYTHING, EVERYTHING)
            unknown(J, unknowns[j], k, m)
    run(terms, J, start, stop, k, m, reach, none == 0)
    return found


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
        write_values(J, i, value, centre)


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
        write_values(J, i, (values[c], values[c]), (values[c], values[c]))


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

    `pose` is the program from task coordinates to the platform's origin and rotation, `robot` that from there, `domain`
    origin, directions and twists (6, m): coordinates are origin + directions times parameters. `guesses` (n,
    n_unknowns) are the unknowns at the boxes' centres; `decided` (n,) tells where every comparison comes out as
    recorded and all unknowns are determined.
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
