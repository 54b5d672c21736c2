# SPDX-License-Identifier: Apache-2.0
"""How every kernel of the suite is compiled.

`contract` lets the compiler fuse multiply and add; nothing else of fast-math is allowed, because NaN and infinity
must keep their meaning. `compiled` kernels run without numba's reference counting: they cannot allocate (numba refuses
to compile one that does), and calls between them cost no atomic operations, which makes them about twice as fast.
The few that need memory of their own are `allocating`.
"""

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "error_model": "numpy", "fastmath": {"contract"}, "nogil": True}
_NO_REFERENCE_COUNTING: dict[str, Any] = {**_OPTIONS, "_nrt": False}

allocating: Any = njit(**_OPTIONS)
compiled: Any = njit(**_NO_REFERENCE_COUNTING)
