# SPDX-License-Identifier: Apache-2.0
"""Lower bounds of distances, from capsules around shapes and balls around bodies.

Arrays: `rotations` (n, b, 3, 3) and `places` (n, b, 3) of bodies; `capsules` (s, 7) ends and radius of each shape's in
its body; `balls` (b, 4) centre and radius of each body's; `spans` (b, 2) the shapes of a body; `pairs` (m, 3) two
bodies and the column of `out` where their shape pairs begin.
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
