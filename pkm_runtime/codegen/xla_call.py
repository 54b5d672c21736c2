# SPDX-License-Identifier: Apache-2.0
"""Recordings as functions of JAX, which it vectorises, compiles into its programs, and differentiates to any order.

On processors, XLA calls our machine code: what it makes itself of thousands of operations on single numbers computes
most of them many times. Derivatives are recordings too (`derivatives.py`), compiled when they are first asked for.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pkm_runtime.codegen.derivatives import pulled, pushed
from pkm_runtime.codegen.machine_code import LANES, VectorCode
from pkm_runtime.codegen.tape import Recording
from pkm_runtime.errors import PkmError
from pkm_runtime.optional import optional_library

# A handler of XLA's foreign function interface (xla/ffi/api/c_api.h of jaxlib): where it is asked, it tells its version
# (0.MINOR, that header's; within 0, structures only grow); else it calls the code on the one argument (k, n) and the
# one result. Numbers are offsets in the structures there.
HANDLER = """
define ptr @handler(ptr %frame) nounwind {
%at_extension = getelementptr i8, ptr %frame, i64 8
%extension = load ptr, ptr %at_extension
%plain = icmp eq ptr %extension, null
br i1 %plain, label %run, label %tell
tell:
%at_metadata = getelementptr i8, ptr %extension, i64 24
%metadata = load ptr, ptr %at_metadata
%to_major = getelementptr i8, ptr %metadata, i64 24
store i32 0, ptr %to_major
%to_minor = getelementptr i8, ptr %metadata, i64 28
store i32 MINOR, ptr %to_minor
ret ptr null
run:
%at_arguments = getelementptr i8, ptr %frame, i64 72
%arguments = load ptr, ptr %at_arguments
%argument = load ptr, ptr %arguments
%at_in = getelementptr i8, ptr %argument, i64 24
%in = load ptr, ptr %at_in
%at_shape = getelementptr i8, ptr %argument, i64 40
%shape = load ptr, ptr %at_shape
%at_n = getelementptr i64, ptr %shape, i64 1
%n = load i64, ptr %at_n
%at_results = getelementptr i8, ptr %frame, i64 112
%results = load ptr, ptr %at_results
%result = load ptr, ptr %results
%at_out = getelementptr i8, ptr %result, i64 24
%out = load ptr, ptr %at_out
call void @columns(ptr %in, ptr %out, i64 %n, i64 %n, i64 %n)
ret ptr null
}
"""


class XlaCall:
    """A recording of one array of n numbers as a function of JAX: arrays (..., n) to results (..., m), in double.

    Results are NaN where a comparison does not come out as recorded. Derivatives are linear in a direction, which comes
    as a second array (..., `linear`).
    """

    def __init__(self, recording: Recording, n: int, linear: int = 0, of: XlaCall | None = None) -> None:
        self.recording, self.n, self.linear, self.of = recording, n, linear, of
        self.m = len(recording.results)

    def __call__(self, *x: Any) -> Any:
        """Results (..., m) for inputs (..., n), and a direction."""
        return _libraries().primitive.bind(*x, call=self)

    @cached_property
    def pushed(self) -> XlaCall:
        """Derivatives of the results in a direction (n + linear,) of the inputs."""
        n = self.n + self.linear
        return XlaCall(pushed(self.recording, n), n, n, self)

    @cached_property
    def pulled(self) -> XlaCall:
        """Derivatives by the inputs (n + linear,) of the sum of the results, each with its weight (m,)."""
        n = self.n + self.linear
        return XlaCall(pulled(self.recording, n), n, self.m, self)

    @property
    def transposed(self) -> XlaCall:
        """As a linear map of the direction, from results to directions."""
        assert self.of is not None
        return self.of.pulled if self is self.of.pushed else self.of.pushed

    @cached_property
    def target(self) -> tuple[str, tuple[int, ...]]:
        """Its name in XLA, and which of the inputs it reads."""
        handler = HANDLER.replace("MINOR", _libraries().minor)
        code, name = VectorCode(self.recording, handler), f"pkm_control_{len(_LIVE)}"
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        _libraries().jax.ffi.register_ffi_target(name, new(code.address("handler"), None, None), platform="cpu")
        _LIVE.append(code)
        return name, code.inputs


_LIVE: list[VectorCode] = []  # XLA forgets no name, and its programs may outlive whoever asked for them


@cache
def _libraries() -> SimpleNamespace:
    names = ("jax", "jax.numpy", "jax.extend.core", "jax.interpreters.ad", "jax.interpreters.batching")
    jax, jnp, core, ad, batching, mlir = (
        optional_library(name, "jax", "functions of JAX") for name in (*names, "jax.interpreters.mlir")
    )
    primitive = core.Primitive("recorded_call")
    header = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text(encoding="utf-8")
    major, minor = (re.search(rf"define XLA_FFI_API_{which} (\d+)", header) for which in ("MAJOR", "MINOR"))
    if major is None or minor is None or major[1] != "0":
        raise PkmError(f"jaxlib {jax.lib.__version__}: its foreign function interface is not of version 0")
    found = SimpleNamespace(jax=jax, jnp=jnp, ad=ad, primitive=primitive, minor=minor[1])
    primitive.def_impl(lambda *x, call: _jitted(call)(*x))
    primitive.def_abstract_eval(_shape)
    batching.primitive_batchers[primitive] = _over_batches
    ad.primitive_jvps[primitive] = _derivative
    ad.primitive_transposes[primitive] = _transposed
    mlir.register_lowering(primitive, mlir.lower_fun(_columns, multiple_results=False), platform="cpu")
    return found


@cache
def _jitted(call: XlaCall) -> Any:
    return _libraries().jax.jit(partial(_columns, call=call))


def _shape(*x: Any, call: XlaCall) -> Any:
    return x[0].update(shape=(*x[0].shape[:-1], call.m))


def _columns(*x: Any, call: XlaCall) -> Any:
    """The call of the machine code, which takes its inputs as columns."""
    if any(one.dtype != np.float64 for one in x):  # as where JAX was set to single precision since
        raise PkmError(f"recorded functions take numbers in double, not {x[0].dtype}")
    jax, jnp = _libraries().jax, _libraries().jnp
    name, inputs = call.target
    rows = jnp.concatenate(x, axis=-1)
    shape = rows.shape[:-1]
    columns = rows.reshape(-1, rows.shape[-1]).T[np.array(inputs, dtype=int)]
    n = columns.shape[1]
    more = -n % LANES
    columns = jnp.pad(columns, ((0, 0), (0, more)), mode="edge") if more and n else columns
    result = jax.ShapeDtypeStruct((call.m + 1, n + more), columns.dtype)
    out = jax.ffi.ffi_call(name, result)(columns)
    answer = jnp.where(out[-1:] > 0.0, out[:-1], jnp.nan)[:, :n]
    return answer.T.reshape(*shape, call.m)


def _over_batches(x: Sequence[Any], axes: Sequence[Any], call: XlaCall) -> tuple[Any, int]:
    jnp = _libraries().jnp
    size = next(one.shape[axis] for one, axis in zip(x, axes, strict=True) if axis is not None)
    moved = [
        jnp.broadcast_to(one, (size, *one.shape)) if axis is None else jnp.moveaxis(one, axis, 0)
        for one, axis in zip(x, axes, strict=True)
    ]
    return call(*moved), 0


def _derivative(x: Sequence[Any], rates: Sequence[Any], call: XlaCall) -> tuple[Any, Any]:
    jnp, ad = _libraries().jnp, _libraries().ad
    whole = jnp.concatenate([ad.instantiate_zeros(one) for one in rates], axis=-1)
    return call(*x), call.pushed(jnp.concatenate(x, axis=-1), whole)


def _transposed(weight: Any, x: Any, direction: Any, call: XlaCall) -> tuple[None, Any]:
    if type(weight) is _libraries().ad.Zero:
        return None, _libraries().ad.Zero(direction.aval)
    return None, call.transposed(x, weight)
