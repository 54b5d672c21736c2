# SPDX-License-Identifier: Apache-2.0
"""The largest box of nodes of a grid that are all inside."""

from pkm_runtime.kernels.compiled import compiled


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
