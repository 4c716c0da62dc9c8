# SPDX-License-Identifier: BSD-3-Clause
"""The native entry of loaded code as a function of Python, see ``emit.entry_function``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.entry_function import (
    ENTRY_SYMBOL,
    native_entry_text,
)
from phistar.backends.llvm.run.jit import LoadedCode

__all__ = (
    "ENTRY_SYMBOL",
    "NativeEntry",
    "load_native_entry",
    "native_entry_text",
)

NativeEntry = Callable[..., bool]

_METH_FASTCALL = 0x0080


def load_native_entry(code: LoadedCode) -> NativeEntry | None:
    """The built-in function of loaded code, which it keeps alive.

    Returns:
        None where it cannot be used: the code has none, array objects look unfamiliar, or nothing
        locks them (see ``abi.has_gil``).
    """
    place = code.symbols.get(ENTRY_SYMBOL)
    if place is None or not abi.is_supported():
        return None
    method = _PyMethodDef(ENTRY_SYMBOL.encode(), place, _METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = (ctypes.POINTER(_PyMethodDef), ctypes.py_object, ctypes.c_void_p)
    make.restype = ctypes.py_object
    function: NativeEntry = make(ctypes.byref(method), (code, method), None)
    return function


class _PyMethodDef(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )
