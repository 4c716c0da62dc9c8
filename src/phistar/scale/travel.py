# SPDX-License-Identifier: BSD-3-Clause
"""Objects that travel to other processes and are kept there.

What arrives a second time is the object that is there already, with all that it has compiled.
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable

KEPT = 16
"""Objects that a process keeps, with their robots and compiled code."""

Travelling = tuple[Callable[[str, bytes], object], tuple[str, bytes]]
"""What ``__reduce__`` gives."""

_kept: OrderedDict[str, object] = OrderedDict()
_lock = threading.Lock()


def travelling(digest: str, make: Callable[..., object], *arguments: object) -> Travelling:
    """What ``__reduce__`` gives for an object that is made of some arguments."""
    return _arrive, (digest, pickle.dumps((make, arguments)))


def _arrive(digest: str, pickled: bytes) -> object:
    """The object that a digest stands for: the one that is kept, or the one that was sent."""
    with _lock:
        if digest not in _kept:
            make, arguments = pickle.loads(pickled)
            _kept[digest] = make(*arguments)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        _kept.move_to_end(digest)
        return _kept[digest]
