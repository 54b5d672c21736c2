# SPDX-License-Identifier: Apache-2.0
"""Arrays whose memory other libraries share: torch any by DLPack, JAX those in C order that begin at 64 bytes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

BYTES = 64  # where memory must begin, else JAX copies it


def empty_shareable(shape: tuple[int, ...]) -> NDArray[Any]:
    """An array of doubles without values."""
    n, whole = prod(shape), BYTES // 8
    room = np.empty(n + whole)
    first = -(room.ctypes.data // 8) % whole
    return room[first : first + n].reshape(shape)


def shareable(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, copied where they are not such."""
    if values.flags.c_contiguous and values.ctypes.data % BYTES == 0:
        return values
    found = empty_shareable(values.shape)
    found[...] = values
    return found
