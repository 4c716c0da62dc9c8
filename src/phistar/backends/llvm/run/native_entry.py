# SPDX-License-Identifier: BSD-3-Clause
"""The native entry of loaded code as a function of Python, see ``emit.entry_function``."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Literal

from phistar.arrays import Array
from phistar.backends.llvm import abi
from phistar.backends.llvm.emit.entry_function import (
    ENTRY_SYMBOL,
    RESULTS_SYMBOL,
    native_entry_text,
    native_results_text,
)
from phistar.backends.llvm.run.jit import LoadedCode

__all__ = (
    "ENTRY_SYMBOL",
    "RESULTS_SYMBOL",
    "NativeEntry",
    "NativeResults",
    "load_native_entry",
    "load_native_results",
    "native_entry_text",
    "native_results_text",
)

NativeEntry = Callable[..., bool]
NativeResults = Callable[..., "tuple[Array, ...] | Literal[False]"]

_METH_FASTCALL = 0x0080


def load_native_entry(code: LoadedCode) -> NativeEntry | None:
    """The built-in function of loaded code, which it keeps alive.

    Returns:
        None where it cannot be used: the code has none, array objects look unfamiliar, or nothing
        locks them (see ``abi.has_gil``).
    """
    return _load(code, ENTRY_SYMBOL) if abi.is_supported() else None


def load_native_results(code: LoadedCode) -> NativeResults | None:
    """The same for the function that makes its results, which needs NumPy's C interface."""
    return _load(code, RESULTS_SYMBOL) if abi.new_array_address() is not None else None


def _load(code: LoadedCode, symbol: str) -> Callable[..., Any] | None:
    place = code.symbols.get(symbol)
    if place is None:
        return None
    method = _PyMethodDef(symbol.encode(), place, _METH_FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = (ctypes.POINTER(_PyMethodDef), ctypes.py_object, ctypes.c_void_p)
    make.restype = ctypes.py_object
    function: Callable[..., Any] = make(ctypes.byref(method), (code, method), None)
    return function


class _PyMethodDef(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )
