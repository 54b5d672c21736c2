# SPDX-License-Identifier: Apache-2.0
"""Arrays with leading axes: brought to rows before a solve, and solved on all cores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from pkm_description.errors import PkmError
from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import writeable

BATCH = 512  # rows below which threads cost more than they bring
CORES = os.cpu_count() or 1


class ShapeError(PkmError, ValueError):
    """An array of the wrong shape, or what is no array of numbers at all."""


def numbers(values: ArrayLike, expected: str, what: str, hint: str = "") -> Array:
    """Values as an array that kernels take (`writeable`), whatever its shape; a single number as (1,).

    Args:
        values: what a caller gave.
        expected: what it should have been, in words.
        what: the name of the argument.
        hint: more to say to a caller who gave a word.

    Returns:
        The array.

    Raises:
        ShapeError: they are no numbers, or not in rows of one length.
    """
    if isinstance(values, str):
        raise ShapeError(f"{what}: expected {expected}, got the text {values[:60]!r}{hint}")
    if values is None:  # which numpy takes for one NaN
        raise ShapeError(f"{what}: expected {expected}, got None")
    try:
        return writeable(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{what}: expected {expected}, got an object of type {type(values).__name__}: {error!s:.200}"
        ) from error


def wrong_shape(values: ArrayLike, expected: str, what: str) -> ShapeError:
    """The error for numbers in a shape that they should not have.

    Args:
        values: what a caller gave.
        expected: what it should have been, in words.
        what: the name of the argument.

    Returns:
        The error, to be raised.
    """
    array = np.asarray(values)
    shape = array.shape
    came = f"an array of shape {shape}" if shape else f"the single number {array.item():g}"
    return ShapeError(f"{what}: expected {expected}, got {came}")


def as_rows(values: ArrayLike, width: int, what: str) -> tuple[Array, tuple[int, ...]]:
    """Values as rows.

    Args:
        values: (..., width).
        width: of a row.
        what: name of the values, for the message.

    Returns:
        A contiguous array (n, width), and the leading axes.

    Raises:
        ShapeError: another shape.
    """
    expected = _in_rows(width)
    array = numbers(values, expected, what)
    shape = array.shape
    if shape[-1] != width:
        raise wrong_shape(values, expected, what)
    return array.reshape(-1, width), shape[:-1]


@cache
def _in_rows(width: int) -> str:
    return f"an array of shape (..., {width})"


def nans(*shape: int) -> Array:
    """An array of NaN, in a third of the time that `numpy.full` takes for a small one."""
    array = np.empty(shape)
    array.fill(np.nan)
    return array


def rows_for(values: ArrayLike, width: int, n: int, what: str) -> Array:
    """Values as rows to go with others.

    Args:
        values: (..., width), one row or n.
        width: of a row.
        n: number of the others.
        what: name of the values, for the message.

    Returns:
        (1, width) or (n, width).

    Raises:
        ShapeError: another shape.
    """
    rows, _ = as_rows(values, width, what)
    if len(rows) not in (1, n):
        raise ShapeError(f"{what}: expected 1 or {n} rows of {width}, got {len(rows)}")
    return rows


def over_cores(part: Callable[[slice], None], n: int) -> None:
    """Call `part(slice)` for slices that cover range(n), in threads where n is large; kernels release the GIL."""
    cores = 1 if n < BATCH else CORES
    if cores == 1:
        part(slice(0, n))
        return
    edges = np.linspace(0, n, cores + 1).astype(int)
    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(part, slice(a, b)) for a, b in itertools.pairwise(edges)]:
            done.result()
