# SPDX-License-Identifier: Apache-2.0
"""How every kernel of the suite is compiled.

`contract` lets the compiler fuse multiply and add; nothing else of fast-math is allowed, because NaN and infinity
must keep their meaning. `compiled` kernels run without numba's reference counting: they cannot allocate (numba refuses
to compile one that does), and calls between them cost no atomic operations, which makes them about twice as fast.
The few that need memory of their own are `allocating`. `plain` ones round every operation, and raise where they
divide by zero.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

from pkm_runtime.kernels.kernel_cache import KernelCache

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True, "no_cfunc_wrapper": True}


def _kept(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: njit with these options, and a cache of the compiled kernel where `KernelCache` says."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = njit(**options)(function)
        if hasattr(kernel, "_cache"):  # not where NUMBA_DISABLE_JIT leaves it a function
            kernel._cache = KernelCache(function)
        return kernel

    return decorate


allocating: Any = _kept(**_OPTIONS)
compiled: Any = _kept(**_OPTIONS, _nrt=False)
plain: Any = _kept()


@compiled
def select_gt(a, b, if_larger, otherwise):
    """`if_larger` where a > b, else `otherwise`: a choice without a branch, also where kernels are recorded."""
    return if_larger if a > b else otherwise


@compiled
def is_zero(x):
    """Whether a number is 0, as a short cut past what gives the same; recordings, which take none, are told False."""
    return x == 0.0


@compiled
def nan_max(a, b):
    """The larger of two errors; NaN propagates."""
    return a if a != a or b <= a else b
