# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the whole test suite: how hypothesis searches, where compiled code is kept.

Every scalar program that a test compiles is verified first. Outside of ``USERS_CODE`` LLVM does not
optimise and code works on one sample at a time, which takes a tenth of the time: the operations are
the same, and that machine code as users have it, on several samples side by side, gives the same
numbers is tested there, program by program and on reference robots.
Tests of bits elsewhere have the mark ``users_code``: how products and sums are fused is LLVM's.
PHISTAR_USERS_CODE=1 has all tests run what users run.

What was there before the first test is left alone by the collector of garbage: it is half a million
objects, mostly the tests themselves, and took one part in twenty of the time. BLAS has one thread:
its threads wait for each other by turning, and the processes of the suite take all processors
anyway. Products of dense operators as small as ours took up to 75 times as long.
"""

import gc
import os
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

# Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run import machine_kernel, tiers
from phistar.model import model_cache
from phistar.scalar.program import Looped, ScalarProgram
from phistar.scalar.verify import verify
from phistar.thresholds import POLICY

COMPILATION_SECONDS = 60.0
"""What a compilation that a test left behind may take before it is abandoned."""

COLOUR_SETTINGS = ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
"""What a machine may want of every terminal; tests of colours say it for themselves."""

GC_THRESHOLD = 20_000
"""New objects after which garbage is collected; Python's 700 take one part in forty of the time."""

MAX_VERIFIED_VISITS = 2000
"""Visits of links up to which loops are verified: it takes some 20 us each."""

USERS_CODE = (
    "backends/",
    "compile/",
    "derivatives/test_fast_paths.py",
    "golden/",
    "scalar/trace/test_branch_rows.py",
    "sim/test_bits.py",
    "test_batches_of_one.py",
    "test_dynamics.py",
    "with_dask/",
)
"""Where tests run machine code of the level that users have: folders and files about it."""

# The same examples every time, so that a red test means a changed program; no deadlines, because
# cores are shared.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make fuzz`: new examples every time.
settings.register_profile("fuzz", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile("ci")

_CACHE = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """One cache for this run, shared by its processes and gone with it.

    Loops alone, unless a test or the environment says otherwise: straight lines of hundreds of
    robots would take most of the time. They have tests of their own. No colours are forced.
    """
    os.environ.setdefault("PHISTAR_TIER", "rolled")
    for name in COLOUR_SETTINGS:
        os.environ.pop(name, None)
    if not hasattr(config, "workerinput"):
        config.stash[_CACHE] = folder = tempfile.TemporaryDirectory(prefix="phistar-test-")
        os.environ["PHISTAR_CACHE"] = folder.name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Clear up."""
    folder = config.stash.get(_CACHE, None)
    if folder is not None:
        folder.cleanup()


class _CodeLevel:
    """How far LLVM optimises: a level has thresholds, compiled code on disk and in memory."""

    def __init__(self, name: str, **thresholds: int) -> None:
        self.thresholds = thresholds
        self.cache = str(Path(os.environ["PHISTAR_CACHE"], name))
        self.stores = weakref.WeakValueDictionary[str, model_cache._SharedCache]()

    def choose(self) -> None:
        """Compile like this from now on."""
        vars(POLICY).update(self.thresholds)
        os.environ["PHISTAR_CACHE"] = self.cache
        model_cache._stores = self.stores


_LEVELS = pytest.StashKey[dict[bool, _CodeLevel]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Levels of code for the tests to come; no collection of garbage looks at what is there."""
    bytecode = Path(os.environ["PHISTAR_CACHE"], "bytecode")
    names = ("opt_level", "max_optimised_characters", "max_lanes")
    session.config.stash[_LEVELS] = {
        True: _CodeLevel("users", **{name: vars(POLICY)[name] for name in names}),
        False: _CodeLevel("quick", opt_level=0, max_optimised_characters=sys.maxsize, max_lanes=1),
    }
    if sys.dont_write_bytecode:
        # Python of the processes that tests start compiles phistar once, not each time.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(bytecode)
    gc.collect()
    gc.freeze()
    # Frozen objects do not count for how often the others are looked through.
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The level of this test, before its fixtures make robots."""
    place = item.path.relative_to(Path(__file__).parent).as_posix()
    users = (
        place.startswith(USERS_CODE)
        or item.get_closest_marker("users_code") is not None
        or bool(os.environ.get("PHISTAR_USERS_CODE"))
    )
    item.config.stash[_LEVELS][users].choose()


@pytest.fixture(scope="session", autouse=True)
def _verified_programs() -> Iterator[None]:
    """Verify each scalar program before code is made of it."""
    emit_module = machine_kernel.emit_module

    def verified(program: ScalarProgram, lanes: Lanes, alone: bool = False) -> tuple[str, int]:
        if _visits(program) <= MAX_VERIFIED_VISITS:
            verify(program)
        return emit_module(program, lanes, alone)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_kernel, "emit_module", verified)
        yield


@pytest.fixture(autouse=True)
def _no_compilation_outlives_its_test() -> Iterator[None]:
    """Wait for what compiles in the background when a test is over.

    It would work beside the next test: be counted there, keep the collector of garbage off, take
    memory, see its patches, and change which code runs in the middle of it.
    """
    yield
    queue = tiers.compile_queue
    for compilation in (*queue.running, *queue._waiting):
        compilation.job.urgent.set()
        queue.start(compilation)
        if compilation.thread.ident is None:
            continue  # nobody wants it any more, and it never began
        if not compilation.finished.wait(COMPILATION_SECONDS):
            compilation.job.abandon()
        compilation.thread.join(COMPILATION_SECONDS)


def _visits(program: ScalarProgram) -> int:
    """How often loops come to a link."""
    if not isinstance(program, Looped):
        return 0
    columns = 0 if program.column_loop is None else len(program.column_loop.link)
    return len(program.links) * (len(program.sweeps) + columns)
