# SPDX-License-Identifier: BSD-3-Clause
"""Every quantity of a robot by name, as a request: one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from phistar.algorithms.programs import BUNDLES, MATRICES, PROGRAMS, REGROUPABLE_PROGRAMS, LazyTable
from phistar.algorithms.rotor_programs import ROTOR_BUNDLES, ROTOR_MATRICES, ROTOR_PROGRAMS
from phistar.compile.requests import Bundle, MatrixOf, Request, Vectors
from phistar.compile.traced import TRACED
from phistar.errors import UnknownNameError


def vectors_row(name: str, turning: bool = False) -> Vectors:
    """The request for a program of the catalogue."""
    outputs = (ROTOR_PROGRAMS if turning and name in ROTOR_PROGRAMS else PROGRAMS)[name]
    regroup = name in REGROUPABLE_PROGRAMS
    return Vectors(name, tuple(outputs.items()), regroup_inertia=regroup)


def matrix_row(name: str, turning: bool = False) -> MatrixOf:
    """The request for a matrix of the catalogue."""
    operator = (ROTOR_MATRICES if turning and name in ROTOR_MATRICES else MATRICES)[name]
    return MatrixOf(name, operator, regroup_inertia=True)


def _bundle(name: str, turning: bool = False) -> Bundle:
    wanted = (ROTOR_BUNDLES if turning else BUNDLES)[name]
    return Bundle(name, vectors_row(wanted.vectors, turning).vectors, wanted)


_MAKERS: Mapping[str, Callable[..., Request]] = {
    **{name: partial(matrix_row, name) for name in MATRICES},
    **{name: partial(_bundle, name) for name in BUNDLES},
    **{name: partial(vectors_row, name) for name in PROGRAMS},
}


class _Requests(Mapping[str, Request]):
    """Rows that are made on first access; traced ones may still be added.

    A program or matrix and a traced quantity may have one name: the traced one is in the robot's
    own coordinates, and is what the method runs.
    """

    def __init__(self, turning_rotors: bool) -> None:
        self._made = LazyTable(
            {name: partial(maker, turning_rotors) for name, maker in _MAKERS.items()}
        )

    def __getitem__(self, name: str) -> Request:
        return TRACED[name] if name in TRACED else self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._made), **dict.fromkeys(TRACED)})

    def __len__(self) -> int:
        return len({*self._made, *TRACED})


REQUESTS: Mapping[str, Request] = _Requests(turning_rotors=False)
"""Every quantity by name. Robots whose rotors turn may have other forms, see ``request``."""
_ROTOR_REQUESTS: Mapping[str, Request] = _Requests(turning_rotors=True)


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
