# SPDX-License-Identifier: BSD-3-Clause
"""XLA's C header, read: where the fields of its structs are, and which version it says.

Handlers are written in LLVM text, which knows no headers. Places of fields are therefore worked out
from the text of ``xla/ffi/api/c_api.h`` that comes with JAX, by the rules of 64-bit C.
"""

from __future__ import annotations

import re
from pathlib import Path

from phistar.errors import PhistarError

_HEADER = Path("xla") / "ffi" / "api" / "c_api.h"
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{(.*?)\n\}", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MACRO_FIELD = re.compile(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)\s*;")
_FUNCTION_FIELD = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\([^)]*\)")
_ENUM = re.compile(r"typedef\s+enum\s*\{[^}]*\}\s*(\w+)\s*;", re.DOTALL)
_SIZES = {"size_t": 8, "int64_t": 8, "uint64_t": 8, "int": 4, "int32_t": 4, "uint32_t": 4}


class HeaderError(PhistarError):
    """The header of XLA says something that is not understood."""


class XlaHeader:
    """What the header says.

    Attributes:
        version: Major and minor number of the interface.
    """

    def __init__(self, text: str) -> None:
        plain = _COMMENT.sub("", text)
        plain = _MACRO_FIELD.sub(r"void* \1;", plain)
        self._structs = {name: body for name, body in _STRUCT.findall(plain)}
        self._sizes = dict(_SIZES) | dict.fromkeys(_ENUM.findall(plain), 4)
        self._sizes["XLA_FFI_Handler_Traits"] = 4
        self._layouts: dict[str, tuple[dict[str, int], int]] = {}
        numbers = [re.search(rf"#define XLA_FFI_API_{x}\s+(\d+)", text) for x in ("MAJOR", "MINOR")]
        if None in numbers:
            raise HeaderError("the header of XLA's foreign functions names no version")
        self.version = (int(numbers[0][1]), int(numbers[1][1]))  # type: ignore[index]

    @classmethod
    def of(cls, folder: str) -> XlaHeader:
        """That of an installed JAX, whose headers are in ``jax.ffi.include_dir()``."""
        try:
            return cls((Path(folder) / _HEADER).read_text(encoding="utf-8"))
        except OSError as error:
            raise HeaderError(f"the header of XLA cannot be read: {error}") from None

    def offset(self, path: str) -> int:
        """Bytes from the start of a struct to a field: ``"XLA_FFI_CallFrame.args.size"``."""
        struct, *fields = path.split(".")
        place = 0
        for field in fields:
            offsets, _ = self._layout(struct)
            if field not in offsets:
                raise HeaderError(f"XLA's struct {struct} has no field {field}")
            place += offsets[field]
            struct = self._field_types(struct).get(field, "")
        return place

    def size(self, struct: str) -> int:
        """Bytes of a struct."""
        return self._layout(struct)[1]

    def _layout(self, struct: str) -> tuple[dict[str, int], int]:
        if struct not in self._layouts:
            place, alignment, offsets = 0, 1, {}
            for field, kind in self._field_types(struct).items():
                size, own = self._field_size(kind)
                place += -place % own
                offsets[field] = place
                place += size
                alignment = max(alignment, own)
            self._layouts[struct] = offsets, place + -place % alignment
        return self._layouts[struct]

    def _field_types(self, struct: str) -> dict[str, str]:
        """Type of each field, ``*`` for pointers."""
        if struct not in self._structs:
            raise HeaderError(f"XLA's header has no struct {struct}")
        found = {}
        for line in self._structs[struct].split(";"):
            words = " ".join(line.split())
            if not words:
                continue
            pointer = _FUNCTION_FIELD.search(words)
            if pointer is not None:
                found[pointer[1]] = "*"
                continue
            kind, _, name = words.replace("*", "* ").rpartition(" ")
            kind = kind.strip()
            found[name] = "*" if kind.endswith("*") else kind.removeprefix("struct ")
        return found

    def _field_size(self, kind: str) -> tuple[int, int]:
        """Size and alignment."""
        if kind == "*":
            return 8, 8
        if kind in self._sizes:
            return self._sizes[kind], self._sizes[kind]
        size = self.size(kind)
        return size, 8 if size >= 8 else 4
