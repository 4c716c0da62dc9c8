# SPDX-License-Identifier: BSD-3-Clause
"""What a robot's numbers decide, as short names: they must be the same on every machine.

Prints JSON: for each robot the key of its kernels without the processor's part, the generated LLVM
text and the operation counts of some programs. Run: ``python -m tools.fingerprints [FILE ...]``;
bundled robots and generated ones always come first.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import phistar
from phistar.algebra.symbols import mass_matrix
from phistar.backends import OPTIONAL_INPUTS, VectorProgram
from phistar.backends.llvm.emit.ir_builder import Lanes
from phistar.backends.llvm.run.key import program_key
from phistar.backends.llvm.run.machine_kernel import llvm_text
from phistar.compile import kernel
from phistar.model.model import Model
from phistar.model.random import random_model
from phistar.scalar.lower import LoweringOptions, to_looped, to_unrolled
from phistar.scalar.lower_matrix import to_looped_matrix, to_unrolled_matrix
from phistar.scalar.program import ScalarProgram, count_arithmetic
from phistar.sweeps.matrix_requests import Full, matrix_forms

ABSENT = frozenset({"f_ext", "gravity"})
LANES = Lanes(4)
SMALL = 6
"""Links up to which derivatives, straight lines and matrices are looked at, too."""

FROM_SHARED = (
    "arm/mujoco_menagerie__franka_fr3_v2__fr3v2.xml",
    "arm/mujoco_menagerie__robotstudio_so101__so101.xml",
    "arm/urdf_files_dataset__urdf_filb05a9aro_generated__kinova_robotics__kinova_description"
    "__urdf__j2s6s200_standalone.urdf",
    "arm/urdf_files_dataset__urdf_files__ros-industrial__xacro_generated__staubli"
    "__staubli_tx90_support__urdf__tx90xl.urdf",
    "hand/dex_urdf__robots__assembly__rm75_inspire__rm75_inspire_left_hand.urdf",
    "hand/unitree_ros__robots__g1_description__inspire_hand__DFQ_left_hand.urdf",
    "humanoid/unitree_ros__robots__g1_description__g1_comp.urdf",
    "humanoid/unitree_ros__robots__h1_description__urdf__h1.urdf",
    "quadruped/bullet3__data__quadruped__minitaur_derpy.urdf",
    "quadruped/unitree_ros__robots__go2_description__urdf__go2_description.urdf",
)
"""Robots whose constants did depend on BLAS when they were products by ``@``, and some others."""


def programs(model: Model) -> Iterator[ScalarProgram]:
    """Loops of the equations of motion; of a small robot also what takes longer."""
    small = len(model.bodies) <= SMALL
    names = ["inverse_dynamics", "forward_dynamics"] + ["inverse_dynamics_jvp"] * small
    for name in names:
        schedule, options = kernel(name).schedule, LoweringOptions(regroup=True)
        yield to_looped(schedule, model, ABSENT, options=options)
        if small:
            yield to_unrolled(schedule, model, ABSENT, options=options)
    if small:
        arguments = (matrix_forms(mass_matrix, Full()), model, (), ABSENT, LoweringOptions())
        yield to_looped_matrix(*arguments)
        yield to_unrolled_matrix(*arguments)


def of(model: Model) -> list[str]:
    """Key, texts and counts."""
    program = VectorProgram(kernel("inverse_dynamics").schedule, model)
    key = program_key(program, frozenset(OPTIONAL_INPUTS))
    found = [key]
    for program in programs(model):
        text = hashlib.sha256(llvm_text(program, LANES).encode()).hexdigest()
        found.append(f"{text} {count_arithmetic(program.count())}")
    return found


def models(files: Sequence[Path]) -> Iterator[tuple[str, Model]]:
    """Bundled robots, generated ones, and those of files."""
    for name in phistar.robots.names():
        yield name, phistar.load(name).model
    yield "chain", phistar.robots.chain(6).model
    yield "tree", phistar.robots.tree(2, 2).model
    for seed in range(3):
        yield f"random {seed}", random_model(np.random.default_rng(seed), 6)
    for file in files:
        yield file.name, phistar.load(file).model


def main(files: Sequence[str]) -> None:
    """Print the names."""
    warnings.simplefilter("ignore")
    found = {name: of(model) for name, model in models([Path(file) for file in files])}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
