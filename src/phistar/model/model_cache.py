# SPDX-License-Identifier: BSD-3-Clause
"""What was worked out for a model: it belongs to the model, and is gone when the model is.

Nothing here keeps a model alive, and nothing waits for the collector of garbage: what is kept never
refers to the model that keeps it. Values that need the robot's data for themselves, like compiled
programs, are made for a *twin*: an equal model that nobody else has.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from phistar.arrays import Array
from phistar.model.model import Model

V = TypeVar("V")
P = ParamSpec("P")

_OWN = "_own_tables"
_ENTRIES: Hashable = "entries"
_STORE = "_store"
MAX_BODIES_SHARED = 3000
"""Bodies beyond which equal models share nothing: to know that they are equal takes too long."""
_NOTHING: object = object()


Entry = Callable[..., "Array | None"]
"""Straight to machine code: takes plain arrays (size,) or (batch, size), gives the output, or
several as a dict by name; None where anything is out of the ordinary. Wrenches on frames come after
the others as a dict and the name of the reference. ``out=`` says where to put
the output of a program that has one vector; if the result is None, anything may have been written
there."""


ON_FRAMES = "on frames"


def front_key(key: Hashable) -> Hashable:
    """The place of the entry with wrenches on frames that was used last.

    Who finds it there need not look at the names of the frames. A string keeps its hash.

    Args:
        key: That of the call without forces.
    """
    return f"{key} {ON_FRAMES}" if isinstance(key, str) else (key, ON_FRAMES)


def entries(model: Model) -> dict[Hashable, Entry | None]:
    """Entries to the compiled programs of a model, by request; always the same table.

    They come here when a request is first answered by machine code. None: there is none.
    """
    table: dict[Hashable, Entry | None] = vars(model).setdefault(_OWN, {}).setdefault(_ENTRIES, {})
    return table


def keep_entry_on_frames(
    table: dict[Hashable, Entry | None], key: Hashable, request: Hashable, entry: Entry
) -> None:
    """Put an entry that takes wrenches on frames into a table, and in front.

    Args:
        table: Of a model.
        key: That of the call without forces.
        request: The same with the frames, in the order of the user, and the reference.
        entry: It refuses other frames and references.
    """
    table[request] = table[front_key(key)] = entry


def try_other_frames(
    table: dict[Hashable, Entry | None], key: Hashable, given: tuple[object, ...], **out: object
) -> Any:
    """What the entry for other frames than those of the last call gives; it is in front then.

    Args:
        table: Of a model.
        key: That of the call without forces.
        given: Arguments of the entry, forces and reference last.
        out: As of the entry.
    """
    *_, forces, reference = given
    if type(forces) is not dict or type(reference) is not str:
        return None
    entry = table.get((key, *forces, reference))
    front = front_key(key)
    if entry is None or entry is table.get(front):
        return None
    table[front] = entry
    return entry(*given, **out)


def cached_on_model(function: Callable[[Model], V]) -> Callable[[Model], V]:
    """A function of a model that is worked out once for each; its value may not hold the model."""

    @wraps(function)
    def found(model: Model) -> V:
        own = model.__dict__.get(_OWN)
        if own is not None and function in own:
            value: V = own[function]
            return value
        value = function(model)
        return vars(model).setdefault(_OWN, {}).setdefault(function, value)  # type: ignore[no-any-return]

    return found


def cached_for_equal_models(
    most: int,
) -> Callable[[Callable[Concatenate[Model, P], V]], Callable[Concatenate[Model, P], V]]:
    """A function of a model and a key that is worked out once, for equal models together.

    Equal models share values as long as one of them lives. The function gets their twin.

    Args:
        most: Values that are kept for a robot; those that were not used for the longest time go.
    """

    def decorator(
        function: Callable[Concatenate[Model, P], V],
    ) -> Callable[Concatenate[Model, P], V]:
        @wraps(function)
        def found(model: Model, *key: P.args, **named: P.kwargs) -> V:
            assert not named, "keys are positional"
            store = _store(model)
            table = store.tables.setdefault(function, OrderedDict())
            value = table.get(key, _NOTHING)
            if value is _NOTHING:
                value = table.setdefault(key, function(store.twin, *key, **named))
                _evict(table, most)
            else:
                # Another thread may forget it meanwhile.
                with suppress(KeyError):
                    table.move_to_end(key)
            result: V = value
            return result

        return found  # type: ignore[return-value]

    return decorator


class _SharedCache:
    """What equal models share."""

    def __init__(self, model: Model) -> None:
        self.twin = replace(model)
        if "fingerprint" in vars(model):
            vars(self.twin)["fingerprint"] = model.fingerprint
        # A twin shares with nobody: what it holds must not hold what holds it.
        vars(self.twin)[_STORE] = None
        self.tables: dict[object, OrderedDict[object, Any]] = {}


_stores: weakref.WeakValueDictionary[str, _SharedCache] = weakref.WeakValueDictionary()


def _store(model: Model) -> _SharedCache:
    held = vars(model)
    store: _SharedCache | None = held.get(_STORE)
    if store is None:
        if _STORE in held or len(model.bodies) > MAX_BODIES_SHARED:
            store = _SharedCache(model)
        else:
            store = _stores.setdefault(model.fingerprint, _SharedCache(model))
        held[_STORE] = store
    return store


def _evict(table: OrderedDict[object, object], most: int) -> None:
    """Keep what was used last."""
    with suppress(KeyError):
        while len(table) > most:
            table.popitem(last=False)
