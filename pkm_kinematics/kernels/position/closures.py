# SPDX-License-Identifier: Apache-2.0
"""The loop closures as scalar equations, their Jacobian block by block, and its pseudo-inverse.

Each equation is a wrench (force, moment) at a point of the successor on which the cut joint can do no work:
`force . (v_s - v_p) + moment . (w_s - w_p) = 0`, both velocities taken at that point. The elementary constraints are
the distance and orientation constraints of cut-joint formulations (Müller, section 3.3; equations 16 to 42). Matrices
are flat, row by row, from an offset on; a reciprocal condition is that of `regularity`, 0 where there is no inverse.
"""

from math import sqrt

from numba import njit

from pkm_kinematics.kernels.records import CYLINDRICAL, FIXED, PLANAR, PRISMATIC, REVOLUTE, SPHERICAL, UNIVERSAL
from pkm_kinematics.kernels.vectors import add, axis_z, cross, dot, get, put, rotate, scale, sub
from pkm_runtime.kernels.compiled import compiled, nan_max

# A column whose part outside the span of the others is below this fraction of the longest depends on them: rounding is
# 1e-15, and a joint this near to dependence would need a thousand million times the rates of the others.
DEPENDENT = 1e-9

# A closure counts as closed below this gap, as a part of the robot's size: far above rounding (1e-15), far below any
# machine's accuracy.
CLOSED = 1e-10

# Equations of each kind of closure that hold a distance; they come first, and those that hold a direction after them.
LENGTHS = (3, 3, 3, 2, 2, 1, 3)

# Of these, those whose directions are the base axes.
ALIKE = (3, 3, 3, 0, 0, 0, 3)

# Equations of a graph's loops: ends meet, an axis is across another, frames are parallel.
POSITION, ALONG, WHOLE = 0, 1, 2


@compiled
def column(R, F, k):
    """Column k of R F, for (3, 3) arrays."""
    return rotate(R, (F[0, k], F[1, k], F[2, k]))


@compiled
def closure_points(closures, state, k):
    """Points of closure `k` on the predecessor and on the successor, base axes."""
    closure = closures[k]
    p = state[closure.predecessor]
    s = state[closure.successor]
    on_predecessor = add(get(p.p), rotate(p.R, get(closure.predecessor_point)))
    on_successor = add(get(s.p), rotate(s.R, get(closure.successor_point)))
    return on_predecessor, on_successor


@compiled
def orient(row, a, b):
    """The equation a . b = 0 between a direction of the predecessor and one of the successor."""
    put(row.force, (0.0, 0.0, 0.0))
    put(row.moment, cross(b, a))
    row.gap = dot(a, b)


@compiled
def turn_over(row):
    """Open an equation a . b = 0 that holds with a or b opposed, which it cannot tell: solvers turn away from there."""
    row.gap = -1.0 if row.gap > 0.0 else 1.0


@compiled
def hold(row, direction, gap):
    """The equation that no distance opens along a direction of the predecessor."""
    put(row.force, direction)
    put(row.moment, (0.0, 0.0, 0.0))
    row.gap = dot(direction, gap)


@compiled
def start_rows(closures, rows):
    """Write what the equations of spherical closures hold at every pose. Once per workspace."""
    for k in range(closures.shape[0]):
        if closures[k].kind == SPHERICAL:
            for r in range(3):
                rows[closures[k].rows_at + r].force[r] = 1.0


@compiled
def write_rows(closures, state, rows, k):
    """Write the equations of closure `k` at the present positions into the table of rows."""
    closure = closures[k]
    at = closure.rows_at
    kind = closure.kind
    on_p, on_s = closure_points(closures, state, k)
    gap = sub(on_s, on_p)
    put(rows[at].point, on_s)
    if kind == SPHERICAL:  # its directions are the base axes at every pose: `start_rows` wrote them
        rows[at].gap = gap[0]
        rows[at + 1].gap = gap[1]
        rows[at + 2].gap = gap[2]
        return
    if kind in (UNIVERSAL, REVOLUTE, FIXED):
        hold(rows[at], (1.0, 0.0, 0.0), gap)
        hold(rows[at + 1], (0.0, 1.0, 0.0), gap)
        hold(rows[at + 2], (0.0, 0.0, 1.0), gap)
        at += 3
    Rp = state[closure.predecessor].R
    Rs = state[closure.successor].R
    Fp = closure.predecessor_rotation
    Fs = closure.successor_rotation
    x = column(Rp, Fp, 0)
    y = column(Rp, Fp, 1)
    z = column(Rp, Fp, 2)
    z_s = column(Rs, Fs, 2)
    if kind == UNIVERSAL:
        orient(rows[at], z, z_s)
        return
    if kind in (CYLINDRICAL, PRISMATIC):
        hold(rows[at], x, gap)
        hold(rows[at + 1], y, gap)
        at += 2
    elif kind == PLANAR:
        hold(rows[at], z, gap)
        at += 1
    aligned = dot(z, z_s) > 0.0
    if kind in (PRISMATIC, FIXED):
        x_s = column(Rs, Fs, 0)
        y_s = column(Rs, Fs, 1)
        aligned = aligned and dot(x, x_s) > 0.0 and dot(y, y_s) > 0.0
        orient(rows[at], x, y_s)
        orient(rows[at + 1], y, z_s)
        orient(rows[at + 2], z, x_s)
        if not aligned:
            turn_over(rows[at + 2])
    else:
        orient(rows[at], x, z_s)
        orient(rows[at + 1], y, z_s)
    if not aligned:
        turn_over(rows[at])
        turn_over(rows[at + 1])


@compiled
def block_residual(closures, block, rows):
    """Largest position error over the equations of a block [m]; of directions, an arc at the size of the robot."""
    worst = 0.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        lengths = LENGTHS[closure.kind]
        for r in range(closure.rows):
            gap = abs(rows[closure.rows_at + r].gap)
            worst = nan_max(worst, gap if r < lengths else block.size * gap)
    return worst


@compiled
def closed(block, residual):
    """Whether a block's loops count as closed: the one place where that is decided. False for NaN."""
    return residual < CLOSED * block.size


@compiled
def turned_over(closures, block, state):
    """True where a closure of a block has an axis the wrong way round, which the equations, all square, do not tell."""
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        if closure.kind in (SPHERICAL, UNIVERSAL):
            continue
        Rp = state[closure.predecessor].R
        Rs = state[closure.successor].R
        for c in range(3):
            whole = closure.kind in (PRISMATIC, FIXED)  # all three directions coincide, not the axis alone
            if c < 2 and not whole:
                continue
            p = column(Rp, closure.predecessor_rotation, c)
            if dot(p, column(Rs, closure.successor_rotation, c)) < 0.5:
                return True
    return False


@compiled
def joint_velocity(body, me, point):
    """Velocity of a point that a joint carries, per rate of the joint."""
    axis = (me.R[0, 2], me.R[1, 2], me.R[2, 2])
    if body.prismatic == 1:
        return axis
    return cross(axis, sub(point, get(me.p)))


@compiled
def joint_row(body, me, row, point):
    """Rate of an equation of a closure at `point` per rate of a joint that carries the successor."""
    rate = dot(get(row.force), joint_velocity(body, me, point))
    if body.prismatic == 0:
        rate += me.R[0, 2] * row.moment[0] + me.R[1, 2] * row.moment[1] + me.R[2, 2] * row.moment[2]
    return rate


@compiled
def block_jacobian(model, data, block, J, start_at):
    """Fill J[start_at:] with the flat (block.rows, block.count) rates of the block's equations per joint rate."""
    bodies, closures, state, rows = model.bodies, model.closures, data.state, data.rows
    start = block.start
    n = block.count
    for e in range(block.rows * n):
        J[start_at + e] = 0.0
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        first = closure.rows_at - block.rows_at
        point = get(rows[closure.rows_at].point)
        alike, lengths, last = ALIKE[closure.kind], LENGTHS[closure.kind], closure.rows
        for side in range(2):
            sign = 1.0 - 2.0 * side
            j = closure.successor if side == 0 else closure.predecessor
            while j >= start:
                if bodies[j].held == 1:
                    j = bodies[j].parent
                    continue
                at = start_at + first * n + j - start
                v = scale(sign, joint_velocity(bodies[j], state[j], point))
                if alike == 3:
                    J[at] += v[0]
                    J[at + n] += v[1]
                    J[at + 2 * n] += v[2]
                for r in range(alike, lengths):
                    J[at + r * n] += dot(get(rows[closure.rows_at + r].force), v)
                if bodies[j].prismatic == 0:
                    w = scale(sign, axis_z(state[j].R))
                    for r in range(lengths, last):
                        J[at + r * n] += dot(w, get(rows[closure.rows_at + r].moment))
                j = bodies[j].parent


@compiled
def inverse_of_three(J, at, out, to):
    """Inverse of the flat (3, 3) matrix J[at:] into out[to:], if any; returns its reciprocal condition."""
    a = (J[at], J[at + 3], J[at + 6])
    b = (J[at + 1], J[at + 4], J[at + 7])
    c = (J[at + 2], J[at + 5], J[at + 8])
    bc = cross(b, c)
    det = dot(a, bc)
    if det == 0.0:
        return 0.0
    d = 1.0 / det
    ca = cross(c, a)
    ab = cross(a, b)
    for k in range(3):
        out[to + k] = d * bc[k]
        out[to + 3 + k] = d * ca[k]
        out[to + 6 + k] = d * ab[k]
    # columns a, b, c of unit length, and rows of the inverse as much longer
    longer = dot(bc, bc) * dot(a, a) + dot(ca, ca) * dot(b, b) + dot(ab, ab) * dot(c, c)
    return abs(det) * sqrt(3.0 / longer)


@compiled
def inverse_of_three_by_two(J, at, out, to):
    """Pseudo-inverse of the flat (3, 2) matrix J[at:] into out[to:], if any; returns the sine between columns."""
    a = (J[at], J[at + 2], J[at + 4])
    b = (J[at + 1], J[at + 3], J[at + 5])
    aa = dot(a, a)
    ab = dot(a, b)
    bb = dot(b, b)
    det = aa * bb - ab * ab
    if not det > 0.0:
        return 0.0
    d = 1.0 / det
    for k in range(3):
        out[to + k] = d * (bb * a[k] - ab * b[k])
        out[to + 3 + k] = d * (aa * b[k] - ab * a[k])
    return sqrt(det / (aa * bb))


@compiled
def orthonormalise(J, m, n, R):
    """Factorise a flat (m, n) matrix by classical Gram-Schmidt done twice: J gets its orthonormal factor, R the rest.

    R (n * n,) has zeros on its diagonal for columns in the span of earlier ones, which are dropped; returns how many.
    """
    dropped = 0
    longest = 0.0
    for j in range(n):
        length = 0.0
        for r in range(m):
            length += J[r * n + j] ** 2
        longest = max(longest, sqrt(length))
    for j in range(n):
        at = j * n  # below the diagonal of the triangle there is room for the projections on the columns before
        for k in range(j + 1):
            R[k * n + j] = 0.0
        for _ in range(2):
            for k in range(j):
                along = 0.0
                for r in range(m):
                    along += J[r * n + k] * J[r * n + j]
                R[at + k] = along
            for r in range(m):
                value = 0.0
                for k in range(j):
                    value += J[r * n + k] * R[at + k]
                J[r * n + j] -= value
            for k in range(j):
                R[k * n + j] += R[at + k]
        rest = 0.0
        for r in range(m):
            rest += J[r * n + j] ** 2
        rest = sqrt(rest)
        if rest <= DEPENDENT * longest:
            dropped += 1
            for r in range(m):
                J[r * n + j] = 0.0
            continue
        R[j * n + j] = rest
        for r in range(m):
            J[r * n + j] /= rest
    return dropped


@compiled
def inverse_of_tall(J, m, n, out, scratch):
    """A generalised inverse (n, m) of a flat (m, n) matrix, which is overwritten; joints of dropped columns rest.

    Returns the reciprocal condition of the columns left, and the number of dropped ones; `scratch` is for n * n values.
    """
    dropped = orthonormalise(J, m, n, scratch)
    inverted = 0.0
    for j in range(n - 1, -1, -1):
        size = scratch[j * n + j]
        if size == 0.0:
            for r in range(m):
                out[j * m + r] = 0.0
            continue
        for r in range(m):
            out[j * m + r] = J[r * n + j]
        for k in range(j + 1, n):
            value = scratch[j * n + k]
            for r in range(m):
                out[j * m + r] -= value * out[k * m + r]
        row = 0.0
        for r in range(m):
            out[j * m + r] /= size
            row += out[j * m + r] ** 2
        length = 0.0  # of the column
        for k in range(j + 1):
            length += scratch[k * n + j] ** 2
        inverted += row * length
    return (sqrt((n - dropped) / inverted) if dropped < n else 1.0), dropped


@compiled
def weigh_directions(closures, block, values, start_at, per_row, per_joint):
    """Multiply `values[start_at:]` by the robot's size where an equation holds a direction, so that all are lengths."""
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        first = start_at + (closure.rows_at - block.rows_at) * per_row
        for r in range(LENGTHS[closure.kind], closure.rows):
            for j in range(block.count):
                values[first + r * per_row + j * per_joint] *= block.size


@compiled
def invert_block(model, data, block):
    """Write the pseudo-inverse of a block's Jacobian, dependent joints at rest; returns its reciprocal condition."""
    work = data.work
    m = block.rows
    n = block.count
    at = block.scratch_at
    to = block.inverse_at
    block_jacobian(model, data, block, work, at)
    weigh_directions(model.closures, block, work, at, n, 1)
    condition = 0.0
    if m == 3 and n == 3:
        condition = inverse_of_three(work, at, work, to)
    elif m == 3 and n == 2:
        condition = inverse_of_three_by_two(work, at, work, to)
    if condition == 0.0:
        condition = inverse_by_rows(work, at, m, n, to, block.idle)
    weigh_directions(model.closures, block, work, to, 1, m)
    return condition


@compiled
def close_step(model, data, block, anew):
    """Write to qdd of a block's joints the step of Newton's method that closes its loops, dependent joints at rest.

    With derivatives `anew`, or those of the call before; the block's inverse is overwritten.
    """
    closures, state, rows, work = model.closures, data.state, data.rows, data.work
    m, n, to, first = block.rows, block.count, block.inverse_at, block.start
    if m == 3 and 2 <= n <= 3:
        if anew:
            invert_block(model, data, block)
        for j in range(n):
            step = 0.0
            for r in range(m):
                step -= work[to + j * m + r] * rows[block.rows_at + r].gap
            state[first + j].qdd = step
        return
    J = work[block.scratch_at : block.scratch_at + m * n]
    R = work[block.scratch_at + m * n : block.scratch_at + m * n + n * n]
    right = work[to : to + m * n]  # one more column
    if anew:
        block_jacobian(model, data, block, J, 0)
        weigh_directions(closures, block, J, 0, n, 1)
        if m == 5 and n == 4:
            factorise_inline(J, 5, 4, R)
        elif m == 4 and n == 3:
            factorise_inline(J, 4, 3, R)
        else:
            factorise(J, m, n, R)
    for k in range(block.closure_start, block.closure_start + block.closure_count):
        closure = closures[k]
        at, lengths = closure.rows_at - block.rows_at, LENGTHS[closure.kind]
        for r in range(closure.rows):
            gap = rows[closure.rows_at + r].gap
            right[at + r] = gap if r < lengths else block.size * gap
    for j in range(n):
        along = 0.0
        for r in range(m):
            along += J[r * n + j] * right[r]
        for r in range(m):
            right[r] -= along * J[r * n + j]
        state[first + j].qdd = -along
    for j in range(n - 1, -1, -1):
        value = state[first + j].qdd
        for k in range(j + 1, n):
            value -= R[j * n + k] * state[first + k].qdd
        state[first + j].qdd = value * R[j * n + j]


@compiled
def factorise(J, m, n, R):
    """Factorise a flat (m, n) matrix by modified Gram-Schmidt: J gets its orthonormal factor, R (n * n,) the rest.

    The diagonal of R is inverted; dependent columns get zeros, in J too.
    """
    longest = 0.0
    for j in range(n):
        length = 0.0
        for r in range(m):
            length += J[r * n + j] ** 2
        longest = max(longest, length)
    least = DEPENDENT * sqrt(longest)
    for j in range(n):
        rest = 0.0
        for r in range(m):
            rest += J[r * n + j] ** 2
        rest = sqrt(rest)
        inverse = 1.0 / rest if rest > least else 0.0
        R[j * n + j] = inverse
        for r in range(m):
            J[r * n + j] *= inverse
        for k in range(j + 1, n):
            along = 0.0
            for r in range(m):
                along += J[r * n + j] * J[r * n + k]
            for r in range(m):
                J[r * n + k] -= along * J[r * n + j]
            R[j * n + k] = along


factorise_inline = njit(inline="always")(factorise.py_func)  # of a size known where it is called


@compiled
def inverse_by_rows(work, at, m, n, to, idle):
    """Generalised inverse of the flat (m, n) matrix work[at:] into work[to:]; its condition, 0 if not `idle`."""
    J = work[at : at + m * n]
    condition, dropped = inverse_of_tall(J, m, n, work[to : to + m * n], work[at + m * n : at + m * n + n * n])
    return condition if dropped == idle else 0.0


@compiled
def graph_gaps(loops, second_axes, kinds, directions, frames, length, bodies, work, gaps, gradients):
    """Fill gaps (n, m) and gradients (n, m, 6) of a graph; `work` (3, 3, 4) is memory for frames and vectors."""
    for i in range(gaps.shape[0]):
        for k in range(loops.shape[0]):
            for end in range(2):
                link, place = loops[k, end], loops[k, 2 + end]
                for r in range(3):
                    for c in range(4):
                        work[end, r, c] = bodies[link, i, r, 3] if c == 3 else 0.0
                        for j in range(3):
                            work[end, r, c] += bodies[link, i, r, j] * frames[place, j, c]
            for row in range(loops[k, 4], loops[k, 5]):
                kind, gap = kinds[row], 0.0
                for r in range(3):  # the direction, and what has a component along it, both in the base frame
                    across, arm = 0.0, work[1, r, 3] / length if kind == POSITION else 0.0
                    for c in range(3):
                        across += work[0, r, c] * directions[row, c]
                        if kind == ALONG:
                            arm += work[1, r, c] * second_axes[k, c]
                    work[2, r, 0], work[2, r, 1] = across, arm
                    gap += across * (arm - work[0, r, 3] / length if kind == POSITION else arm)
                    gradients[i, row, r] = across / length if kind == POSITION else 0.0
                if kind == WHOLE:
                    gap = _turned(work, gradients, i, row)
                else:
                    _write_turn(work, gradients, i, row)
                gaps[i, row] = gap


@compiled
def _write_turn(work, gradients, i, row):
    # second vector times the first
    for r in range(3):
        a, b = (r + 1) % 3, (r + 2) % 3
        gradients[i, row, 3 + r] = work[2, a, 1] * work[2, b, 0] - work[2, b, 1] * work[2, a, 0]


@compiled
def _turned(work, gradients, i, row):
    """Sine of the turn between both frames along the direction, whose derivative is written."""
    sine, trace = 0.0, 0.0
    for r in range(3):
        gradients[i, row, 3 + r] = 0.0
    for c in range(3):
        along = 0.0
        for r in range(3):
            a, b = (r + 1) % 3, (r + 2) % 3
            trace += work[0, r, c] * work[1, r, c]
            along += work[2, r, 0] * work[1, r, c]
            sine += 0.5 * work[2, r, 0] * (work[0, a, c] * work[1, b, c] - work[0, b, c] * work[1, a, c])
        for r in range(3):
            gradients[i, row, 3 + r] -= 0.5 * along * work[0, r, c]
    for r in range(3):
        gradients[i, row, 3 + r] += 0.5 * trace * work[2, r, 0]
    return sine


@compiled
def graph_jacobian(loops, signs, columns, twists, platform, gradients, J):
    """Fill derivatives J (n, m, size + 6) of the gaps by steps, by `signs` (k, n_steps + 1) of the twists."""
    size, last = J.shape[2] - 6, columns.shape[0]
    for i in range(J.shape[0]):
        for k in range(loops.shape[0]):
            for row in range(loops[k, 4], loops[k, 5]):
                for s in range(last):
                    if signs[k, s] != 0.0:
                        for r in range(6):
                            J[i, row, columns[s]] += signs[k, s] * gradients[i, row, r] * twists[i, r, s]
                if signs[k, last] != 0.0:
                    for r in range(3):
                        a, b = (r + 1) % 3, (r + 2) % 3
                        turn = gradients[i, row, a] * platform[i, b, 3] - gradients[i, row, b] * platform[i, a, 3]
                        J[i, row, size + r] = signs[k, last] * gradients[i, row, r]
                        J[i, row, size + 3 + r] = signs[k, last] * (turn + gradients[i, row, 3 + r])
