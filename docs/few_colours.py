# SPDX-License-Identifier: Apache-2.0
"""Pictures of robots in few colours, a third of the bytes: those of bodies in three lights, of frames, and some."""

from __future__ import annotations

import numpy as np
from PIL import Image
from scipy.spatial import cKDTree

from pkm_description.mechanism import Mechanism
from pkm_description.urdf.visuals import visuals_of

KEPT = ((255, 255, 255), (214, 39, 40), (31, 157, 44), (31, 79, 214), (34, 34, 34))  # the ground, axes, letters
LIGHTS = (0.7, 0.85, 1.0)


def in_few_colours(mechanism: Mechanism, pictures: list[Image.Image], others: int) -> list[Image.Image]:
    """Pictures with one palette: what stands still in them then has the same colours in each, and takes no bytes.

    Args:
        mechanism: what they show.
        pictures: in full colour.
        others: colours of the palette that are those most seen, besides the bodies' and the frames'.

    Returns:
        The pictures with the palette.
    """
    some = Image.fromarray(np.concatenate([np.asarray(one) for one in pictures[:: max(1, len(pictures) // 4)]]))
    frequent = np.reshape(some.quantize(others).getpalette(), (-1, 3))[:others]
    bodies = np.array([visual.colour[:3] for visual in visuals_of(mechanism)[0]])
    shaded = [255.0 * light * np.unique(bodies, axis=0) for light in LIGHTS]
    palette = np.concatenate([KEPT, *shaded, frequent]).round().astype(np.uint8)[:256]
    nearest = cKDTree(palette.astype(np.float64))
    reduced = []
    for one in pictures:
        indices = nearest.query(np.asarray(one, dtype=np.float64))[1]
        reduced.append(Image.fromarray(indices.astype(np.uint8)))
        reduced[-1].putpalette(palette.ravel().tolist())
    return reduced
