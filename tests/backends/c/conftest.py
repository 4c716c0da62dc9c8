# SPDX-License-Identifier: BSD-3-Clause
"""Compilers, robots and their scalar programs for the tests of C code."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import phistar as ps
from phistar.backends.c.interface import Interface, interface
from phistar.backends.c.tokens import c_precision
from phistar.backends.c.translation_unit import c_source, workspace_entries
from phistar.c_export import scalar_program
from phistar.compile import kernel
from phistar.model import Model
from phistar.model.joints import JOINT_KINDS
from phistar.model.random import random_model
from phistar.scalar.program import ScalarProgram

FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
GUARD = -12345.678


COMPILERS = [name for name in ("cc", "clang") if shutil.which(name)]


@pytest.fixture(params=COMPILERS or [None])
def compiler(request: pytest.FixtureRequest) -> str:
    """A C compiler of this machine."""
    if request.param is None:
        pytest.skip("there is no C compiler on this machine: neither cc nor clang")
    return str(request.param)


@cache
def robot(name: str) -> Model:
    """A robot by the name that the tests use."""
    kinds = [kind for kind in JOINT_KINDS if kind != "fixed"]
    if name == "every kind":
        models = (random_model(np.random.default_rng(seed), 14, armature=0.5) for seed in range(99))
        return next(m for m in models if {j.kind for j in m.joints.values()} >= {*kinds})
    if name == "floating":
        return random_model(np.random.default_rng(3), 5, floating_base=True, anchors=0.5)
    if name.startswith("chain"):
        return ps.robots.chain(int(name[5:])).model
    return ps.load(name).model


@pytest.fixture
def make() -> Callable[..., tuple[Model, ScalarProgram]]:
    """(robot, program, shape) -> the model and the scalar program."""

    @cache
    def made(name: str, program: str, shape: str) -> tuple[Model, ScalarProgram]:
        return robot(name), scalar_program(kernel(program), robot(name), shape)

    return made


@dataclass
class Library:
    """A compiled function, called with guarded arrays."""

    function: Any
    face: Interface
    dtype: Any

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Outputs (samples, size); fails if anything but the outputs is written."""
        samples = len(next(iter(inputs.values())))
        results = {name: np.zeros((samples, size)) for name, _, size in self.face.outputs}
        for i in range(samples):
            given = [np.array(inputs[name][i], self.dtype) for name, _, _ in self.face.inputs]
            before = [x.copy() for x in given]
            sizes = [size for _, _, size in self.face.outputs]
            sizes += [self.face.work_entries] if self.face.work_entries else []
            written = [np.full(size + 16, GUARD, self.dtype) for size in sizes]
            starts = [x[8:].ctypes.data for x in written]
            self.function(*(x.ctypes.data for x in given), *starts)
            pairs = zip(given, before, strict=True)
            assert all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)
            for x in written:
                outside = np.concatenate([x[:8], x[-8:]])
                assert np.array_equal(outside, np.full(16, GUARD, self.dtype))
            for (name, _, _), x in zip(self.face.outputs, written, strict=False):
                results[name][i] = x[8:-8]
        return results


@pytest.fixture
def build(compiler: str, tmp_path: Path) -> Callable[..., Library]:
    """Compile a program as a shared library and load it; ``test_package`` optimises."""

    numbers = count()

    def built(
        program: ScalarProgram, real: str = "double", name: str = "f", level: str = "-O0"
    ) -> Library:
        file = tmp_path / "f.c"
        file.write_text(c_source(program, name, real=real), encoding="utf-8")
        # A library that is loaded already is not read again.
        library = tmp_path / f"f{next(numbers)}.so"
        flags = (*FLAGS, level, "-fPIC", "-shared", "-o", str(library))
        done = subprocess.run(
            [compiler, *flags, str(file), "-lm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        face = interface(name, program, c_precision(real), workspace_entries(program))
        function = ctypes.CDLL(str(library))[name]
        function.restype = None
        arrays = len(face.arguments)
        function.argtypes = [ctypes.c_void_p] * arrays
        return Library(function, face, np.float32 if real == "float" else np.float64)

    return built
