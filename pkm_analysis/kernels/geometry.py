# SPDX-License-Identifier: Apache-2.0
"""Full boxes of nodes, faces of zonotopes, and lower bounds of the distances of bodies.

Arrays of `capsule_bounds`: `rotations` (n, b, 3, 3) and `places` (n, b, 3) of bodies; `capsules` (s, 7) ends and radius
of each shape's in its body; `balls` (b, 4) centre and radius of each body's; `spans` (b, 2) the shapes of a body;
`pairs` (m, 3) two bodies and the column of `out` where their shape pairs begin.

Each face of a zonotope is spanned by one generator less than there are dimensions. Combinations come in the order of
`itertools.combinations`: successive ones share their first generators, and the orthonormal vectors made of these.
"""

from math import sqrt

from pkm_runtime.kernels.compiled import compiled


@compiled
def segment_distance(a, b, c, d):
    """Distance of segments a-b and c-d, (3,) each: nearest points of the lines, clamped to both."""
    uu = uv = vv = uw = vw = 0.0
    for k in range(3):
        u, v, w = b[k] - a[k], d[k] - c[k], a[k] - c[k]
        uu += u * u
        uv += u * v
        vv += v * v
        uw += u * w
        vw += v * w
    s = t = 0.0
    if uu > 0.0 and vv > 0.0:
        det = uu * vv - uv * uv
        if det > 1e-12 * uu * vv:
            s = min(max((uv * vw - vv * uw) / det, 0.0), 1.0)
        t = (uv * s + vw) / vv
        if t < 0.0:
            t = 0.0
            s = min(max(-uw / uu, 0.0), 1.0)
        elif t > 1.0:
            t = 1.0
            s = min(max((uv - uw) / uu, 0.0), 1.0)
    elif uu > 0.0:
        s = min(max(-uw / uu, 0.0), 1.0)
    elif vv > 0.0:
        t = min(max(vw / vv, 0.0), 1.0)
    total = 0.0
    for k in range(3):
        gap = a[k] + s * (b[k] - a[k]) - c[k] - t * (d[k] - c[k])
        total += gap * gap
    return sqrt(total)


@compiled
def capsule_bounds(rotations, places, capsules, balls, spans, pairs, cut, ends, middles, out):
    """Write lower bounds (n, shape pairs) of the distances of shapes into `out`, body pair by body pair.

    Body pairs whose balls are further apart than `cut` (n,) get the balls' distance for all their shapes. `ends` (s, 6)
    and `middles` (b, 3) are scratch.
    """
    for n in range(rotations.shape[0]):
        for b in range(spans.shape[0]):
            for r in range(3):
                at = places[n, b, r]
                turn = rotations[n, b, r]
                middles[b, r] = at + turn[0] * balls[b, 0] + turn[1] * balls[b, 1] + turn[2] * balls[b, 2]
                for s in range(spans[b, 0], spans[b, 1]):
                    one = capsules[s]
                    ends[s, r] = at + turn[0] * one[0] + turn[1] * one[1] + turn[2] * one[2]
                    ends[s, 3 + r] = at + turn[0] * one[3] + turn[1] * one[4] + turn[2] * one[5]
        for m in range(pairs.shape[0]):
            i, j, at_pair = pairs[m, 0], pairs[m, 1], pairs[m, 2]
            away = 0.0
            for r in range(3):
                away += (middles[i, r] - middles[j, r]) ** 2
            far = sqrt(away) - balls[i, 3] - balls[j, 3]
            for s in range(spans[i, 0], spans[i, 1]):
                for t in range(spans[j, 0], spans[j, 1]):
                    if far > cut[n]:
                        out[n, at_pair] = far
                    else:
                        gap = segment_distance(ends[s, :3], ends[s, 3:], ends[t, :3], ends[t, 3:])
                        out[n, at_pair] = gap - capsules[s, 6] - capsules[t, 6]
                    at_pair += 1


@compiled
def largest_full_box(outside, sizes, best):
    """Write to `best` (6,) the first and last node of the largest box, axis by axis; -1 where there is none.

    A box has more than one node along each axis that has more than one. `outside` (nx + 1, ny + 1, nz + 1) holds
    cumulative sums of nodes outside, `sizes` (3, n) the node coordinates along each axis.
    """
    nx, ny, nz = outside.shape[0] - 1, outside.shape[1] - 1, outside.shape[2] - 1
    largest = -1.0
    for k in range(6):
        best[k] = -1
    for z in range(nz):
        for zz in range(z, nz):
            depth = sizes[2, zz] - sizes[2, z] if nz > 1 else 1.0
            for y in range(ny):
                for yy in range(y, ny):
                    area = depth * (sizes[1, yy] - sizes[1, y] if ny > 1 else 1.0)
                    if area * (sizes[0, nx - 1] - sizes[0, 0]) <= largest:
                        continue
                    start = 0
                    before = 0
                    for x in range(nx):
                        count = (
                            outside[x + 1, yy + 1, zz + 1]
                            - outside[x + 1, y, zz + 1]
                            - outside[x + 1, yy + 1, z]
                            + outside[x + 1, y, z]
                        )
                        if count != before:  # a node outside in this row: the next box begins after it
                            before = count
                            start = x + 1
                            continue
                        volume = area * (sizes[0, x] - sizes[0, start])
                        if volume > largest and volume > 0.0:
                            largest = volume
                            best[0], best[1], best[2] = start, x, y
                            best[3], best[4], best[5] = yy, z, zz


_MUCH = 0.7  # of a vector: rounding is negligible if that much is left


@compiled
def faces_of(generators, combinations, flat, rows, basis, normal):
    """Fill rows (n, k, f) with normals of pairs of faces of zonotopes, |rows @ w| <= 1 inside.

    `generators` (n, m, f), `combinations` (k, f - 1) of them; `basis` (f - 1, f) and `normal` (f,) are scratch. Rows
    stay zero where generators are dependent, up to a part `flat` of their length.
    """
    n, m, f = generators.shape
    for number in range(n):
        G = generators[number]
        total = 0.0
        for i in range(m):
            for c in range(f):
                total += abs(G[i, c])
        held = 0  # of the combination, how many generators are in the basis
        for k in range(combinations.shape[0]):
            same = 0
            while k > 0 and same < held and combinations[k, same] == combinations[k - 1, same]:
                same += 1
            held = same
            while held < f - 1 and _added(G[combinations[k, held]], flat, basis, held):
                held += 1
            for c in range(f):
                rows[number, k, c] = 0.0
            if held < f - 1:
                continue
            _across(basis, normal)
            far = 0.0
            for i in range(m):
                along = 0.0
                for c in range(f):
                    along += G[i, c] * normal[c]
                far += abs(along)
            far = max(far, flat * total, 1e-300)  # of a zonotope without an inside
            for c in range(f):
                rows[number, k, c] = normal[c] / far


@compiled
def _length(vector):
    total = 0.0
    for c in range(vector.shape[0]):
        total += vector[c] * vector[c]
    return sqrt(total)


@compiled
def _added(vector, flat, basis, held):
    """Whether a vector (f,) is independent of the first rows of an orthonormal basis; if so it becomes the next."""
    size = _length(vector)
    if not size > 0.0:
        return False
    for c in range(vector.shape[0]):
        basis[held, c] = vector[c] / size
    return _orthogonal(basis, held, basis[held]) > flat


@compiled
def _orthogonal(basis, held, vector):
    """Remove the basis' first rows from a unit vector and normalise it; return the length that was left."""
    f = vector.shape[0]
    left = 1.0
    for _ in range(2):  # twice is enough
        for r in range(held):
            along = 0.0
            for c in range(f):
                along += basis[r, c] * vector[c]
            for c in range(f):
                vector[c] -= along * basis[r, c]
        size = _length(vector)
        left *= size
        if not size > 0.0:
            return 0.0
        for c in range(f):
            vector[c] /= size
        if size > _MUCH:
            break
    return left


@compiled
def _across(basis, normal):
    """Fill normal (f,) with the unit vector orthogonal to all rows of an orthonormal basis (f - 1, f)."""
    f = normal.shape[0]
    best, chosen = -1.0, 0
    for c in range(f):  # the axis of which the rows hold least
        left = 1.0
        for r in range(f - 1):
            left -= basis[r, c] * basis[r, c]
        if left > best:
            best, chosen = left, c
    for c in range(f):
        normal[c] = 0.0
    normal[chosen] = 1.0
    _orthogonal(basis, f - 1, normal)
