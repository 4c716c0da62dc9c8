# SPDX-License-Identifier: BSD-3-Clause
"""Every quantity of a robot by name, as a request: one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from phistar.algorithms.programs import (
    BUNDLES,
    MATRICES,
    PROGRAMS,
    REGROUPABLE_PROGRAMS,
    LazyTable,
)
from phistar.algorithms.rotor_programs import ROTOR_BUNDLES, ROTOR_MATRICES, ROTOR_PROGRAMS
from phistar.compile.requests import Bundle, MatrixOf, Request, Vectors
from phistar.compile.traced import TRACED
from phistar.errors import UnknownNameError


def _vectors(name: str, turning: bool = False) -> Vectors:
    outputs = (ROTOR_PROGRAMS if turning and name in ROTOR_PROGRAMS else PROGRAMS)[name]
    regroup = name in REGROUPABLE_PROGRAMS
    return Vectors(name, tuple(outputs.items()), regroup_inertia=regroup)


def _matrix(name: str, turning: bool = False) -> MatrixOf:
    operator = (ROTOR_MATRICES if turning and name in ROTOR_MATRICES else MATRICES)[name]
    return MatrixOf(name, operator, regroup_inertia=True)


def _bundle(name: str, turning: bool = False) -> Bundle:
    wanted = (ROTOR_BUNDLES if turning else BUNDLES)[name]
    return Bundle(name, _vectors(wanted.vectors, turning).vectors, wanted)


def _makers() -> dict[str, Callable[..., Request]]:
    found: dict[str, Callable[..., Request]] = {}
    # A matrix and a traced program may have the same name: what methods run comes last.
    for maker, names in ((_matrix, MATRICES), (_bundle, BUNDLES), (_vectors, PROGRAMS)):
        found |= {name: partial(maker, name) for name in names}
    for name, row in TRACED.items():
        found[name] = lambda turning=False, row=row: row
    return found


_MAKERS = _makers()

REQUESTS: Mapping[str, Request] = LazyTable(_MAKERS)
"""Every quantity by name. Robots whose rotors turn may have other forms, see ``request``."""

_ROTOR_REQUESTS: Mapping[str, Request] = LazyTable(
    {name: partial(maker, True) for name, maker in _MAKERS.items()}
)


def request(name: str, turning_rotors: bool = False) -> Request:
    """A row of ``REQUESTS``, in the form that a robot needs.

    Args:
        name: The quantity.
        turning_rotors: Whether the robot has rotors that turn with its links
            (``Model.turning_rotors``).

    Raises:
        UnknownNameError: There is none.
    """
    if name not in REQUESTS:
        raise UnknownNameError("program", name, REQUESTS)
    return (_ROTOR_REQUESTS if turning_rotors else REQUESTS)[name]
