# SPDX-License-Identifier: BSD-3-Clause
"""A quantity as compiled C that CasADi loads: no Python while it runs.

The C backend writes the programs, ``c_glue`` the functions along tangent steps around them. These
are compiled and loaded once, composed to the function and its derivatives as graphs of CasADi, of
which CasADi writes C in turn; both together are the library. It can be loaded anywhere by
``casadi.external``, in other languages as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from phistar.backends.c.tokens import identifier
from phistar.errors import ArgumentError
from phistar.interop.casadi.c_configurations import ConfigurationWriter, has_recipe
from phistar.interop.casadi.c_dynamics import DynamicsWriter
from phistar.interop.casadi.c_glue import GlueWriter, compressed
from phistar.interop.casadi.casadi_package import casadi
from phistar.interop.casadi.casadi_quantities import CasadiQuantity
from phistar.interop.casadi.derivatives import WEIGHTS, Composer, Functions, Layout
from phistar.whole_files import write_whole

if TYPE_CHECKING:
    from phistar.interop.casadi.casadi_package import Function

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=c99", "-O2", "-fPIC")


def external(
    quantity: CasadiQuantity, samples: int, directory: str | os.PathLike[str] | None = None
) -> Function:
    """The function of CasADi that a compiled library has.

    Args:
        quantity: Of a robot.
        samples: In one call.
        directory: Where files go; None: one that is removed when Python ends.

    Raises:
        ArgumentError: There is no compiler, or it fails.
    """
    compiler = _compiler()
    place = Path(tempfile.mkdtemp(dir=_scratch().name) if directory is None else directory)
    place.mkdir(parents=True, exist_ok=True)
    layout = Layout(quantity, samples)
    frame = getattr(quantity, "frame", "")
    name = identifier(f"{quantity.name}_{frame}" if frame else quantity.name, "quantity")
    core = f"phistar_{name}"
    kind: type[GlueWriter] = ConfigurationWriter if has_recipe(quantity) else DynamicsWriter
    writer = kind(quantity, samples, core, _sparsities(layout))
    files = {f"{program}.c": source for program, source in writer.sources.items()}
    files[f"{core}.c"] = writer.text()
    for file, text in files.items():
        write_whole(place / file, text)
    objects = [_compiled(compiler, place / file) for file in files]
    base = _linked(compiler, place / f"{core}.so", objects)
    composer = Composer(layout)
    parts = ("value", "first", "products", "second")
    composer.functions = Functions(*(_load(f"{core}_{part}", base) for part in parts))
    generated = _generated(composer, name, place)
    whole = _linked(compiler, place / f"{name}.so", [*objects, _compiled(compiler, generated)])
    return _load(name, whole)


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="phistar-casadi-")


def _compiler() -> str:
    for name in COMPILERS:
        if found := shutil.which(name):
            return found
    raise ArgumentError(
        f"engine 'c' needs a C compiler, and none of {', '.join(COMPILERS)} is on the path: "
        "install one, or use engine='callback'"
    )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ArgumentError(f"{' '.join(command[:1])} failed on {command[-1]}:\n{done.stderr}")


def _compiled(compiler: str, source: Path) -> Path:
    target = source.with_suffix(".o")
    _run([compiler, *FLAGS, "-c", "-o", str(target), str(source)])
    return target


def _linked(compiler: str, target: Path, objects: list[Path]) -> Path:
    _run([compiler, "-shared", "-o", str(target), *map(str, objects), "-lm"])
    return target


def _load(name: str, library: Path) -> Function:
    return casadi().external(name, str(library.resolve()))


def _sparsities(layout: Layout) -> dict[str, list[list[int]]]:
    quantity = layout.quantity
    first, second = quantity.first_patterns, quantity.second_patterns
    return {
        "inputs": [compressed(layout.argument(x)) for x in quantity.inputs],
        "weights": [compressed(layout.argument(WEIGHTS))],
        "value": [compressed(layout.result)],
        "first": [compressed(layout.blocks(pattern)) for pattern in first.values()],
        "products": [compressed(layout.argument("v")) for _ in quantity.inputs],
        "second": [compressed(layout.blocks(pattern)) for pattern in second.values()],
    }


def _generated(composer: Composer, name: str, place: Path) -> Path:
    """The C of CasADi for the function, its Jacobian, its adjoint and the adjoint's Jacobian."""
    ca, quantity = casadi(), composer.layout.quantity
    assert composer.functions is not None
    inner = composer.functions.value
    given = [ca.MX.sym(x, inner.sparsity_in(k)) for k, x in enumerate(quantity.inputs)]
    inputs, output = list(quantity.inputs), quantity.output
    result = ca.Function.call(inner, given)
    function = ca.Function(name, given, result, inputs, [output])
    jacobian = composer.jacobian(
        f"jac_{name}", [*inputs, f"out_{output}"], [f"jac_{output}_{x}" for x in inputs]
    )
    weighted = [*inputs, f"out_{output}", f"adj_{output}"]
    gradients = [f"adj_{x}" for x in inputs]
    adjoint = composer.adjoint(f"adj1_{name}", weighted, gradients)
    pairs = [f"jac_{x}_{y}" for x in gradients for y in weighted]
    second = composer.adjoint_jacobian(
        f"jac_adj1_{name}", [*weighted, *(f"out_{x}" for x in gradients)], pairs
    )
    written = ca.CodeGenerator(f"{name}_casadi.c", {"with_header": False})
    for each in (function, jacobian, adjoint, second):
        written.add(each)
    write_whole(place / f"{name}_casadi.c", written.dump())
    return place / f"{name}_casadi.c"
