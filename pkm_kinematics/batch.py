# SPDX-License-Identifier: Apache-2.0
"""Arrays with leading axes: brought to rows before a solve, and solved on all cores."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pkm_description.mechanism import Array
from pkm_kinematics.kernels.model_and_data import writeable
from pkm_runtime.errors import PkmError

FEW = 64  # numbers that Python looks at sooner than NumPy
BATCH = 512  # rows below which threads cost more than they bring
CORES = os.cpu_count() or 1
_NUMBERS = np.dtype(np.float64)  # there is only one such object


Rows = TypeVar("Rows", bound=NamedTuple)


class ShapeError(PkmError, ValueError):
    """An array of the wrong shape, or not an array of numbers at all."""


def numbers(values: ArrayLike, expected: str, what: str, hint: str = "") -> Array:
    """Argument `what` as an array that kernels take, one number as (1,); `expected` and `hint` are words for errors.

    Raises `ShapeError` for anything but real numbers in rows of one length.
    """
    if isinstance(values, str):
        raise ShapeError(f"{what}: expected {expected}, got the text {values[:60]!r}{hint}")
    if values is None:  # which numpy takes for one NaN
        raise ShapeError(f"{what}: expected {expected}, got None")
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise ShapeError("its numbers are complex; give real numbers")
        return writeable(np.asarray(array, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"{what}: expected {expected}, got an object of type {type(values).__name__}: {error!s:.200}"
        ) from error


def wrong_shape(values: ArrayLike, expected: str, what: str) -> ShapeError:
    """The error for argument `what` of a wrong shape; `expected` is what it should have been, in words."""
    array = np.asarray(values)
    shape = array.shape
    came = f"an array of shape {shape}" if shape else f"the single number {array.item():g}"
    return ShapeError(f"{what}: expected {expected}, got {came}")


def as_rows(values: ArrayLike, width: int, what: str) -> tuple[Array, tuple[int, ...]]:
    """Argument `what`, (..., width), as a contiguous array (n, width), and its leading axes. Raises `ShapeError`."""
    array = values if ready(values) else numbers(values, _in_rows(width), what)
    shape = array.shape
    if shape[-1] != width:
        raise wrong_shape(values, _in_rows(width), what)
    return in_rows(array), shape[:-1]


def gpu_rows(cupy: Any, values: Any, shape: tuple[int, ...], what: str) -> Any:
    """Argument `what`, (n, ...), as doubles on a GPU: others' arrays (DLPack) where they are. Raises `ShapeError`."""
    expected = f"{what}: expected (n, {', '.join(map(str, shape))})"
    try:
        shared = hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray)
        there = cupy.from_dlpack(values) if shared else cupy.asarray(values)
        if there.dtype.kind not in "biuf":
            raise TypeError(f"its elements are of type {there.dtype}; give real numbers")
        found = cupy.ascontiguousarray(cupy.asarray(there, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{expected}, got an object of type {type(values).__name__}: {error!s:.200}") from error
    if found.ndim < 2 or found.shape[1:] != shape:
        raise ShapeError(f"{expected}, got {found.shape}")
    return found


def ready(values: object) -> TypeGuard[Array]:
    """True for what `numbers` would return unchanged, as most callers' arrays are."""
    return values.__class__ is np.ndarray and values.dtype is _NUMBERS and values.flags.carray and values.ndim > 0


def is_vector(values: object, size: int) -> TypeGuard[Array]:
    """True for a single row (size,) that is `ready`."""
    return ready(values) and values.shape == (size,)


def is_vector_or_none(values: ArrayLike | None) -> TypeGuard[Array | None]:
    """True for a single row of rates (6,) that is `ready`, and for None."""
    return values is None or is_vector(values, 6)


def integer(number: int) -> Any:
    """A NumPy integer; NumPy itself takes a microsecond to make one."""
    return _INTEGERS[number] if 0 <= number < len(_INTEGERS) else np.int64(number)


_INTEGERS = tuple(map(np.int64, range(128)))


def in_rows(array: Array) -> Array:
    """An array (..., k) as rows (n, k)."""
    return array[None] if array.ndim == 1 else array.reshape(-1, array.shape[-1])


def shaped(rows: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Rows (n, ...) with the leading axes of a call (..., ...); for a single row of numbers, a NumPy scalar."""
    return rows.reshape((*shape, *rows.shape[1:])) if shape else rows[0]


def all_finite(array: Array) -> bool:
    """Whether all elements are finite; of few, in a fifth of NumPy's time."""
    if array.size < FEW and array.dtype is _NUMBERS and isfinite(sum(array.ravel().tolist())):
        return True  # and where a sum overflows, NumPy tells
    return bool(np.isfinite(array).all())


@cache
def _in_rows(width: int) -> str:
    return f"an array of shape (..., {width})"


def nans(*shape: int) -> Array:
    """An array of NaN, in a fraction of the time that `numpy.full` takes for a small one."""
    if shape[0] == 1:
        return _one_of_nan(shape).copy()
    array = np.empty(shape)
    array.fill(np.nan)
    return array


@cache
def _one_of_nan(shape: tuple[int, ...]) -> Array:
    return np.full(shape, np.nan)


def copied(arrays: Rows) -> Rows:
    """Copies of all arrays of a named tuple; for a single row, faster than arrays made one by one."""
    return arrays._make([array.copy() for array in arrays])


def rows_for(values: ArrayLike, width: int, n: int, what: str) -> Array:
    """One row or n of values (..., width) of argument `what`, as (1, width) or (n, width). Raises `ShapeError`."""
    rows = values[None] if ready(values) and values.shape == (width,) else as_rows(values, width, what)[0]
    if len(rows) not in (1, n):
        expected = f"1 row of {width}, as there is one pose" if n == 1 else f"1 or {n} rows of {width}"
        raise ShapeError(f"{what}: expected {expected}, got {len(rows)}")
    return rows


def over_cores(part: Callable[[slice], None], n: int) -> None:
    """Call `part(slice)` for slices that cover range(n), in threads where n is large; kernels release the GIL."""
    cores = 1 if n < BATCH else CORES
    if cores == 1:
        part(slice(0, n))
        return
    edges = np.linspace(0, n, cores + 1).astype(int)
    for done in [_threads().submit(part, slice(a, b)) for a, b in itertools.pairwise(edges)]:
        done.result()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CORES, "rows")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a child has none of its parent's threads
