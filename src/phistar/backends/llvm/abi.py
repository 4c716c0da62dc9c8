# SPDX-License-Identifier: BSD-3-Clause
"""Where CPython and NumPy keep what inside an array object.

Reading these fields costs a few nanoseconds where the attributes of Python cost microseconds. The
places are those of the public C structs ``PyObject``, ``PyArrayObject`` and ``PyArray_Descr``, the
same from NumPy 1 to 2 on 64-bit machines. Nothing relies on them before ``is_supported`` has
compared them with what the attributes say, for arrays of many kinds.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np

from phistar.arrays import Array, DType

TYPE_OFFSET = 8
DATA_OFFSET = 16
NDIM_OFFSET = 24
SHAPE_OFFSET = 32
DTYPE_OFFSET = 56
FLAGS_OFFSET = 64
NDARRAY_BYTES = 72
"""Bytes from the start of an array object: type, data, number of axes, dimensions, dtype, flags."""

DTYPE_KIND_OFFSET = 24
"""Bytes from the start of a dtype: four characters (kind, type, byte order, one of no interest),
then a 4-byte number of the type."""

DTYPE_BYTES = 32

CONTIGUOUS_FLAG, ALIGNED_FLAG, WRITEABLE_FLAG = 0x1, 0x100, 0x400
"""Flags of an array."""


def dtype_word(dtype: DType) -> int:
    """The eight bytes at ``DTYPE_KIND_OFFSET`` of a dtype in native byte order, the fourth one
    zero."""
    head = f"{dtype.kind}{dtype.char}=\0".encode()
    return int.from_bytes(head + dtype.num.to_bytes(4, sys.byteorder), sys.byteorder)


DTYPE_MASK = int.from_bytes(b"\xff\xff\xff\0\xff\xff\xff\xff", sys.byteorder)
"""Leaves the fourth byte out."""


def has_gil() -> bool:
    """Whether the interpreter's lock guards objects; it does not in a free-threaded build.

    The one place that decides it. Without the lock nothing here holds: objects look otherwise,
    counts of references are in parts, and arrays may change while machine code looks at them. So
    there are no built-in functions there, and no memory is used again.
    """
    flags = getattr(sys, "abiflags", None)
    if flags is not None:
        return "t" not in flags
    import sysconfig  # slow to import, and needed on Windows only

    return not sysconfig.get_config_var("Py_GIL_DISABLED")


@cache
def is_supported() -> bool:
    """Whether arrays of this NumPy, in this Python, look as written above."""
    if not has_gil():
        return False
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if object.__basicsize__ != 16 or np.ndarray.__basicsize__ < NDARRAY_BYTES:
        return False
    if np.dtype.__basicsize__ < DTYPE_BYTES:
        return False
    return all(_matches_abi(array) for array in _probe_arrays())


NEW_ARRAY_PLACE = 93
"""Number of ``PyArray_New`` in the table of NumPy's C interface, the same since NumPy 1.0."""


@cache
def new_array_address() -> int | None:
    """Where NumPy's ``PyArray_New`` is, once it has made an array that is as was asked for.

    The table is what extension modules find when they import NumPy.
    """
    if not is_supported():
        return None
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    table = get(_multiarray_umath._ARRAY_API, None)
    found = ctypes.c_void_p.from_address(table + 8 * NEW_ARRAY_PLACE).value
    if not found:
        return None
    make = _NEW_ARRAY(found)
    shape = (ctypes.c_ssize_t * 2)(2, 3)
    for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
        made = make(np.ndarray, 2, shape, dtype.num, None, None, 0, 0, None)
        plain = type(made) is np.ndarray and made.flags.c_contiguous and made.flags.owndata
        if not plain or (made.shape, made.dtype) != ((2, 3), dtype):
            return None
    return found


SHAPE_WORDS = 4
"""Words in which machine code that makes results is told the shape of each: how many axes, then
their lengths, three at most."""

_NEW_ARRAY = ctypes.PYFUNCTYPE(
    ctypes.py_object,
    ctypes.py_object,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_void_p,
)
"""``PyArray_New``: class, axes, shape, number of the dtype, and what is left out for new memory."""


def data_address(array: Array) -> int:
    """Of an array's first entry."""
    if is_supported():
        return ctypes.c_size_t.from_address(id(array) + DATA_OFFSET).value
    return int(array.ctypes.data)


def _probe_arrays() -> list[Array]:
    plain = np.arange(12.0).reshape(3, 4)
    fixed = plain.copy()
    fixed.flags.writeable = False
    kinds = [plain.astype(kind) for kind in ("f4", "i8", "c16", ">f8", "<f8")]
    shapes = [plain[0], plain[:, 1], plain[::-1], plain.T, np.empty((0, 3)), np.array(1.0)]
    odd = np.frombuffer(bytes(41), "f8", 5, 1)
    return [plain, fixed, *kinds, *shapes, odd, plain[None, :1]]


def _matches_abi(array: Array) -> bool:
    start = id(array)

    def word(place: int) -> int:
        return ctypes.c_size_t.from_address(start + place).value

    def half(place: int) -> int:
        return ctypes.c_int32.from_address(start + place).value

    flags = half(FLAGS_OFFSET)
    told = {
        CONTIGUOUS_FLAG: array.flags.c_contiguous,
        ALIGNED_FLAG: array.flags.aligned,
        WRITEABLE_FLAG: array.flags.writeable,
    }
    if (
        word(TYPE_OFFSET) != id(np.ndarray)
        or word(DATA_OFFSET) != array.ctypes.data
        or half(NDIM_OFFSET) != array.ndim
        or word(DTYPE_OFFSET) != id(array.dtype)
        or any(bool(flags & bit) != said for bit, said in told.items())
    ):
        return False
    if array.ndim:
        sizes = (ctypes.c_ssize_t * array.ndim).from_address(word(SHAPE_OFFSET))
        if tuple(sizes) != array.shape:
            return False
    native = array.dtype.isnative
    kind = ctypes.c_uint64.from_address(word(DTYPE_OFFSET) + DTYPE_KIND_OFFSET).value & DTYPE_MASK
    return (kind == dtype_word(array.dtype)) == native
