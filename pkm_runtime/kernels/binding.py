# SPDX-License-Identifier: Apache-2.0
"""Calls into compiled kernels without numba's dispatch by argument types on each call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pkm_runtime.codegen.call_code import ANOTHER_BRANCH


class Prepared:
    """A kernel compiled for the types of an example, which is not run.

    It trusts its caller: types, axes and contiguity are those of the example. Arrays only read may be read-only.
    """

    def __init__(self, kernel: Any, *example: Any) -> None:
        types = tuple(kernel.typeof_pyval(value) for value in example)
        kernel.compile(types)
        self.call: Callable[..., Any] = kernel.overloads[types].entry_point


class WithScratch(Prepared):
    """A prepared, thread-safe kernel of a model, data and more: `call(model, ...)` gives it data that is reused.

    For kernels whose results do not depend on what earlier calls left in the data. `make` gives new data.
    """

    def __init__(self, kernel: Any, make: Callable[[], Any], model: Any, *others: Any) -> None:
        super().__init__(kernel, model, make(), *others)
        self._make = make
        self._idle: list[Any] = []  # its pop and append are atomic

    def __call__(self, model: Any, *others: Any) -> Any:
        """Run the kernel."""
        try:
            data = self._idle.pop()
        except IndexError:
            data = self._make()
        found = self.call(model, data, *others)
        self._idle.append(data)
        return found


def bind(kernel: Any, fixed: tuple[Any, ...], example: tuple[Any, ...]) -> Callable[..., Any]:
    """The kernel with its first arguments `fixed`, for the very types and sizes of `example`, not checked."""
    kernel(*fixed, *example)  # compiles, or loads from the cache
    types = tuple(kernel.typeof_pyval(value) for value in (*fixed, *example))
    return partial(kernel.overloads[types].entry_point, *fixed)


def with_fallback(quick: Callable[..., Any], general: Callable[..., Any], code: object) -> Callable[..., Any]:
    """A call of `quick`, and of `general` if that answers ANOTHER_BRANCH, alone or with more; `code` is kept alive."""

    def call(*arguments: Any, _kept: object = code) -> Any:
        found = quick(*arguments)
        if found == ANOTHER_BRANCH or (found.__class__ is tuple and found[0] == ANOTHER_BRANCH):
            return general(*arguments)
        return found

    return call
