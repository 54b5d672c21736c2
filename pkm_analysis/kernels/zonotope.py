# SPDX-License-Identifier: Apache-2.0
"""Faces of zonotopes: each is spanned by one generator less than there are dimensions.

Combinations come in the order of `itertools.combinations`, so that successive ones share their first generators, and
with them the orthonormal vectors made of these.
"""

from math import sqrt

from pkm_runtime.kernels.compiled import compiled

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
def _added(vector, flat, basis, held):
    """Whether a vector (f,) is independent of the first rows of an orthonormal basis; if so it becomes the next."""
    f = vector.shape[0]
    size = 0.0
    for c in range(f):
        size += vector[c] * vector[c]
    if not size > 0.0:
        return False
    size = sqrt(size)
    for c in range(f):
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
        size = 0.0
        for c in range(f):
            size += vector[c] * vector[c]
        size = sqrt(size)
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
