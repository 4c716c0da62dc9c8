# SPDX-License-Identifier: BSD-3-Clause
"""The collector of garbage rests while programs are traced, and works again afterwards."""

import gc
import os
import threading

import pytest

from phistar.gc_pause import gc_paused


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
