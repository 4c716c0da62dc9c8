# SPDX-License-Identifier: BSD-3-Clause
"""xacro document -> URDF document, by the xacro package, for trusted files.

xacro evaluates expressions of the file, reads environment variables and includes other files. An
untrusted file must not be expanded.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import ModuleType
from xml.dom import minidom

from phistar.errors import MissingExtraError, ModelError, Problem, UnsafeFileError
from phistar.loaders.robot_source import Source, check_size
from phistar.loaders.xml import parse_xml

# The xacro package keeps the state of an expansion in module variables.
_XACRO_LOCK = threading.Lock()


def expand_xacro(
    source: Source, *, arguments: Mapping[str, str] | None = None, trusted: bool = True
) -> Source:
    """The URDF document of a xacro document.

    Args:
        source: The document; files it includes are found relative to ``source.path``.
        arguments: Values of its ``<xacro:arg>``.
        trusted: If false, always an error.

    Returns:
        The expanded document. Its name says so, because line numbers are those of the expanded
        text.

    Raises:
        UnsafeFileError: Not trusted.
        MissingExtraError: The xacro package is not installed.
        ModelError: The document cannot be expanded; the reason is xacro's.
    """
    if not trusted:
        what = "xacro files run expressions and read other files; they are not expanded unasked."
        cure = "If you trust the file, load it with trust_xacro=True or --trust-xacro."
        raise UnsafeFileError([Problem("error", "xacro-untrusted", source.name, what, cure)])
    xacro = _xacro_package()
    parse_xml(source)
    with _XACRO_LOCK:
        data = _expand(xacro, source, dict(arguments or {}))
    name = f"{source.name} (expanded)"
    check_size(len(data), name)
    return Source(data, name, source.path)


def _xacro_package() -> ModuleType:
    try:
        import xacro
    except ImportError:
        raise MissingExtraError("xacro", "xacro", "Expanding a xacro file") from None
    package: ModuleType = xacro
    return package


def _expand(xacro: ModuleType, source: Source, arguments: dict[str, str]) -> bytes:
    xacro.init_stacks(str(source.path) if source.path else None)
    try:
        document = minidom.parseString(source.data)
        xacro.process_doc(document, mappings=arguments, verbosity=0)
    except Exception as error:
        # Expressions of the file are Python and can raise any exception.
        reason = f"{type(error).__name__}: {error}".replace("XacroException: ", "")
        what = f"xacro cannot expand the file: {reason}."
        cure = "Give its arguments by xacro_arguments={...}; packages must be known to ROS."
        raise ModelError([Problem("error", "xacro", source.name, what, cure)]) from error
    return bytes(document.toprettyxml(indent="  ", encoding="utf-8"))
