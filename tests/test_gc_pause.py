# SPDX-License-Identifier: BSD-3-Clause
"""The collector of garbage rests while programs are traced, and works again afterwards."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator

import pytest

from phistar import gc_pause
from phistar.gc_pause import gc_paused


@pytest.fixture(autouse=True)
def _nothing_frozen() -> Iterator[None]:
    """As in a user's process: what the suite keeps from the collector is its own again, for now."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_it_rests_inside() -> None:
    """Also inside of itself, and after an error."""
    assert gc.isenabled()
    with gc_paused:
        with gc_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), gc_paused:
        raise ZeroDivisionError
    assert gc.isenabled()


def test_who_switched_it_off_keeps_it_off() -> None:
    """What was off before is off after."""
    gc.disable()
    try:
        with gc_paused:
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_thread_ends_the_pause() -> None:
    """Others may still be inside when the first leaves."""
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with gc_paused:
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=stay)
    with gc_paused:
        thread.start()
        assert entered.wait(60)
    assert not gc.isenabled()
    leave.set()
    thread.join(60)
    assert gc.isenabled()


class _Node:
    def __init__(self) -> None:
        self.own = self


def _made_in_a_pause(count: int) -> tuple[list[_Node], list[int]]:
    """Objects of a pause, and the collections right after it: how many young ones each met."""
    met: list[int] = []

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            met.append(len(gc.get_objects(0)))

    gc.collect()
    with gc_paused:
        made = [_Node() for _ in range(count)]
        gc.callbacks.append(watch)
    after = [[] for _ in range(2000)]
    gc.callbacks.remove(watch)
    assert len(after) == 2000
    return made, met


def test_many_new_objects_are_old_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """No collection looks through them then, but a full one finds them when they are garbage."""
    monkeypatch.setattr(gc_pause, "MANY_OBJECTS", 50_000)
    few, met = _made_in_a_pause(20_000)
    assert max(met) > 20_000
    many, met = _made_in_a_pause(60_000)
    assert max(met, default=0) < 10_000
    last = weakref.ref(many[-1])
    assert last() is not None
    del many, few
    gc.collect()
    assert last() is None


def test_what_a_user_froze_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is moved then."""
    monkeypatch.setattr(gc_pause, "MANY_OBJECTS", 1000)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        _made_in_a_pause(2000)
        assert gc.get_freeze_count() >= frozen - 1000
    finally:
        gc.unfreeze()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_collects() -> None:
    """A process that forks meanwhile has a child whose collector works."""
    with gc_paused:
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


IMPORT = """
import gc, sys, numpy
{before}
met = []
def watch(*_):
    met.append("phistar.errors" in sys.modules and not hasattr(sys.modules["phistar"], "load"))
gc.callbacks.append(watch)
import phistar
old = sum(len(gc.get_objects(generation)) for generation in (0, 1)) < 1000
print(sum(met), old, gc.isenabled(), gc.get_freeze_count() > 1000)
"""


@pytest.mark.parametrize(
    ("before", "seen"),
    [
        ("", "0 True True False"),
        ("gc.disable()", "0 False False False"),
        ("gc.freeze()", "0 False True True"),
    ],
)
def test_the_import_is_not_traversed(before: str, seen: str) -> None:
    """Its objects are old at once, unless the user wants no collections or froze his own."""
    order = [sys.executable, "-c", IMPORT.format(before=before)]
    done = subprocess.run(order, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == seen
