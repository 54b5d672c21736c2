# SPDX-License-Identifier: Apache-2.0
"""How kernels are called: with many arrays as one address, with arguments known before, and with machine code.

A tuple of twelve arrays costs a kernel 110 ns when Python calls it, and more than eighty words whenever kernels call
each other. One address, that of a table of their addresses, costs 5 ns and a word (`ByAddress`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, ClassVar, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.datamodel import register_default
from numba.core.datamodel.models import PrimitiveModel
from numba.core.typing.templates import AttributeTemplate
from numba.extending import NativeValue, infer_getattr, intrinsic, lower_getattr_generic, typeof_impl, unbox
from numba.np.numpy_support import from_dtype
from numpy.typing import DTypeLike, NDArray

Same = TypeVar("Same", bound="ByAddress")
WORD = 8  # bytes of an address or a length
ANOTHER_BRANCH = -1  # what the code returns where a comparison comes out otherwise than it was recorded
BYTES = 64  # where memory must begin, else JAX copies it


class ArraysType(types.Type):
    """What numba knows of a class of `ByAddress`: the types of its arrays, by name, in order."""

    def __init__(
        self, name: str, dtypes: dict[str, np.dtype[Any]], fields: tuple[tuple[str, types.Array], ...]
    ) -> None:
        self.dtypes = dtypes
        self.fields = fields
        super().__init__(name)

    @property
    def key(self) -> Any:
        """Types of the same name and the same arrays are equal."""
        return self.name, self.fields


class ByAddress(int):
    """Arrays by name, as the number that a kernel is handed in their place: the address of a table of their addresses.

    Subclasses state `kind`; `replace` makes a changed copy. `arrays` come in the order of the fields, of their element
    types and numbers of axes, in C order, as read-only views where kernels only read them; else `TypeError`.
    """

    kind: ClassVar[ArraysType]
    _numba_type_: ClassVar[ArraysType]

    def __init_subclass__(cls) -> None:
        """Show numba the type where it looks before it asks Python, which takes 5 us for each argument of each call."""
        cls._numba_type_ = cls.kind

    def __new__(cls: type[Same], *arrays: NDArray[Any]) -> Same:
        """Make one; see the class."""
        kind_of = cls.kind.dtypes
        table: list[int] = []
        kept = {}
        for (name, kind), array in zip(cls.kind.fields, arrays, strict=True):
            if not kind.mutable:
                array = read_only(array)
            flags = array.flags
            alike = array.dtype is kind_of[name] or array.dtype == kind_of[name]  # to compare records takes 10 us
            fits = alike and array.ndim == kind.ndim
            if not (fits and flags.c_contiguous and flags.writeable == kind.mutable):
                raise TypeError(f"{cls.__name__}.{name}: not the array that kernels were compiled for")
            kept[name] = array
            table += array.ctypes.data, *array.shape
        where = np.array(table, dtype=np.int64)
        self = super().__new__(cls, where.ctypes.data)
        self.__dict__.update(kept, _where=where)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: kernels would not see the change."""
        raise AttributeError(f"{type(self).__name__}.{name} is constant: see replace")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, in this process or another, are made from the arrays: they have another address."""
        return type(self), tuple(self.arrays().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {name: self.__dict__[name] for name, _ in self.kind.fields}

    def replace(self: Same, **changed: NDArray[Any]) -> Same:
        """A copy with other arrays of these names."""
        return type(self)(*(self.arrays() | changed).values())


def read_only(table: NDArray[Any]) -> NDArray[Any]:
    """An array as kernels take those that they only read: a read-only view, in C order."""
    view = np.ascontiguousarray(table).view()
    view.setflags(write=False)
    return view


def arrays_type(name: str, constant: bool, **fields: tuple[DTypeLike, int]) -> ArraysType:
    """The type of a class of arrays: element type and number of axes of each; `constant` if kernels only read them."""
    dtypes = {field: np.dtype(of) for field, (of, _) in fields.items()}
    kinds = ((field, types.Array(from_dtype(dtypes[field]), n, "C", constant)) for field, (_, n) in fields.items())
    return ArraysType(name, dtypes, tuple(kinds))


@typeof_impl.register(ByAddress)
def _type_of(value: ByAddress, _: Any) -> ArraysType:
    return value.kind


@register_default(ArraysType)
class _Pointer(PrimitiveModel):
    def __init__(self, manager: Any, kind: ArraysType) -> None:
        super().__init__(manager, kind, ir.IntType(8 * WORD).as_pointer())


@unbox(ArraysType)
def _unbox(kind: ArraysType, value: Any, c: Any) -> NativeValue:
    address = c.pyapi.long_as_voidptr(value)
    return NativeValue(c.builder.bitcast(address, c.context.get_value_type(kind)))


@infer_getattr
class _Fields(AttributeTemplate):
    key = ArraysType

    def generic_resolve(self, kind: ArraysType, name: str) -> types.Array | None:  # type: ignore[override]
        return dict(kind.fields).get(name)


@lower_getattr_generic(ArraysType)
def _array_at(context: Any, builder: Any, kind: ArraysType, address: Any, name: str) -> Any:
    """Code that makes the array called `name` from its entry in the table."""
    at = 0
    for field, array in kind.fields:
        if field == name:
            break
        at += 1 + array.ndim

    def word(k: int) -> Any:
        read = builder.load(builder.gep(address, [ir.Constant(ir.IntType(32), k)]))
        read.set_metadata("invariant.load", builder.module.add_metadata([]))  # nothing that kernels write moves arrays
        return read

    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(array.dtype)))
    shape = [word(at + 1 + k) for k in range(array.ndim)]
    strides = [itemsize]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = context.make_array(array)(context, builder)
    data = builder.inttoptr(word(at), made.data.type)
    context.populate_array(made, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return made._getvalue()


@intrinsic
def call_code(typing: Any, address: Any, *arrays: Any) -> Any:
    """In a kernel: call machine code at an address with contiguous float64 arrays, results last; its return value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType().as_pointer()
        kinds = signature.args[1]
        pointers = [
            context.make_array(kind)(context, builder, builder.extract_value(arguments[1], k)).data
            for k, kind in enumerate(kinds)
        ]
        function = ir.FunctionType(ir.IntType(64), [double] * len(pointers))
        return builder.call(builder.inttoptr(arguments[0], function.as_pointer()), pointers)

    return types.int64(types.int64, types.StarArgTuple.from_types(arrays)), generate


class Prepared:  # arrays that it only reads may be read-only
    """A kernel compiled for the types, axes and contiguity of an example, which callers must keep to; not run by it."""

    def __init__(self, kernel: Any, *example: Any) -> None:
        types = tuple(kernel.typeof_pyval(value) for value in example)
        kernel.compile(types)
        self.call: Callable[..., Any] = kernel.overloads[types].entry_point


class WithScratch(Prepared):
    """A prepared, thread-safe kernel that gets data from `make`, reused: results must not depend on it."""

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
