# SPDX-License-Identifier: Apache-2.0
"""Calls into compiled kernels without the cost of finding the right one by the types of the arguments each time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pkm_kinematics.codegen.call_code import ANOTHER_BRANCH
from pkm_kinematics.kernels.model_and_data import Data, Model


class Prepared:
    """A kernel compiled for the types of an example, which is not run.

    It trusts its caller: arguments must have these types, arrays as many axes, and be contiguous where those of the
    example are. Arrays that the kernel does not write may be read-only.

    Args:
        kernel: compiled or to be.
        example: of its arguments.
    """

    def __init__(self, kernel: Any, *example: Any) -> None:
        types = tuple(kernel.typeof_pyval(value) for value in example)
        kernel.compile(types)
        self.call: Callable[..., Any] = kernel.overloads[types].entry_point


class WithScratch(Prepared):
    """A kernel that takes a model, data and more, prepared: `call(model, ...)` gives it data that is used again.

    For kernels whose results do not depend on what calls before left in the data. Calls may run in several threads.

    Args:
        kernel: compiled or to be.
        make: new data.
        model: example of the model.
        others: examples of the arguments after the data.
    """

    def __init__(self, kernel: Any, make: Callable[[], Data], model: Model, *others: Any) -> None:
        super().__init__(kernel, model, make(), *others)
        self._make = make
        self._idle: list[Data] = []  # its pop and append are atomic

    def __call__(self, model: Model, *others: Any) -> Any:
        """Run the kernel."""
        try:
            data = self._idle.pop()
        except IndexError:
            data = self._make()
        found = self.call(model, data, *others)
        self._idle.append(data)
        return found


def bind(kernel: Any, fixed: tuple[Any, ...], example: tuple[Any, ...]) -> Callable[..., Any]:
    """The kernel with its first arguments fixed, compiled for the types of `fixed` and of the `example` of the others.

    The result trusts its caller: arguments must have the very types and sizes of the example.
    """
    kernel(*fixed, *example)  # compiles, or loads from the cache
    types = tuple(kernel.typeof_pyval(value) for value in (*fixed, *example))
    return partial(kernel.overloads[types].entry_point, *fixed)


def or_else(quick: Callable[..., Any], general: Callable[..., Any], code: object) -> Callable[..., Any]:
    """A call of `quick`, and of `general` where it answers ANOTHER_BRANCH, alone or with more; `code` is kept alive."""

    def call(*arguments: Any, _kept: object = code) -> Any:
        found = quick(*arguments)
        if found == ANOTHER_BRANCH or (found.__class__ is tuple and found[0] == ANOTHER_BRANCH):
            return general(*arguments)
        return found

    return call
