# SPDX-License-Identifier: BSD-3-Clause
"""MJCF -> model, compiled by MuJoCo itself so that masses, orders and poses are exactly its own.

The document is read and checked by ``files`` and ``guard`` before MuJoCo sees it, and
what MuJoCo makes of it is turned into our conventions by ``convert``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike

from phistar.errors import MissingExtraError, ModelError, StructureWarning
from phistar.loaders.mjcf.account import account
from phistar.loaders.mjcf.compiled import Compiled
from phistar.loaders.mjcf.convert import convert
from phistar.loaders.mjcf.files import Bundle, gather
from phistar.loaders.mjcf.guard import check
from phistar.loaders.mjcf.meshes import replace_meshes
from phistar.loaders.mjcf.messages import Lines, problem_of
from phistar.loaders.report import LoadReport
from phistar.loaders.source import Source
from phistar.model.model import Model


def read_mjcf(
    source: Source,
    *,
    floating_base: bool = False,
    gravity: ArrayLike | None = None,
    roots: Sequence[str | os.PathLike[str]] = (),
    report: LoadReport | None = None,
) -> tuple[Model, LoadReport]:
    """Read an MJCF document.

    Links and joints come in MuJoCo's order; the world is the link ``"world"``. Hinges and slides
    have MuJoCo's own coordinates (``ref`` included), quaternions are turned to xyzw.

    Args:
        source: The document.
        floating_base: Replace the weld of the only body in the world by a free joint named
            ``root_joint``.
        gravity: (3,) [m/s^2]; default: the file's.
        roots: Folders that may be read besides the one the document is in.
        report: Filled even when an error is raised.

    Returns:
        The model and the report of what became of everything in the file.

    Raises:
        ModelError: With every problem found.
        UnsafeFileError: The document asks for something a reader must not do.
        MissingExtraError: MuJoCo is not installed.
    """
    report = LoadReport(source.name, "mjcf") if report is None else report
    report.format = "mjcf"
    mujoco = _import_mujoco()
    try:
        bundle = gather(source, [Path(folder) for folder in roots])
        for root in bundle.documents:
            report.read.update(element.tag for element in root.walk())
        check(bundle, report)
        report.raise_errors()
        compiled = _compile(mujoco, bundle, source, report, floating_base)
        account(bundle, compiled, report)
        model = convert(compiled, report, floating_base=floating_base, gravity=gravity)
    except ModelError as error:
        report.problems += [p for p in error.problems if p not in report.problems]
        raise
    report.problems += [p for p in model.problems if p not in report.problems]
    return model, report


def _import_mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("mujoco", "mjcf", "reading MJCF files") from None
    module: ModuleType = mujoco
    return module


def _compile(
    mujoco: ModuleType, bundle: Bundle, source: Source, report: LoadReport, floating_base: bool
) -> Compiled:
    text, models, elements = bundle.texts()
    lines = Lines(elements, source.name)
    with _quiet(mujoco) as said:
        try:
            spec = mujoco.MjSpec.from_string(text, include=models)
            meshes = replace_meshes(spec, mujoco, bundle, report, all_move=floating_base)
            report.raise_errors()
            model = spec.compile()
        except ModelError:
            raise
        except (
            ValueError,
            RuntimeError,
            MemoryError,
            mujoco.FatalError,
            mujoco.UnexpectedError,
        ) as error:
            raise ModelError([problem_of(str(error), lines)]) from None
    for message in said:
        where, what = lines.where(message), f"MuJoCo warns: {message.splitlines()[0]}"
        report.add_problem("warning", "mujoco", where, what, "", StructureWarning)
    return Compiled(
        model=model,
        name=bundle.main.get("model") or Path(source.name).stem,
        file=source.name,
        bodies=_places(spec.bodies, lines),
        joints=_places(spec.joints, lines),
        equalities=_places(spec.equalities, lines),
        meshes={mesh.geom.id: mesh for mesh in meshes},
        explicit=frozenset(body.id for body in spec.bodies if body.explicitinertial),
    )


def _places(elements: Iterable[Any], lines: Lines) -> dict[int, str]:
    """``file:line`` of MuJoCo's elements, by their id."""
    return {element.id: lines.where(element.info) for element in elements}


@contextmanager
def _quiet(mujoco: ModuleType) -> Iterator[list[str]]:
    """MuJoCo writes neither to the terminal nor to a log file; yields the warnings it gives."""
    said: list[str] = []
    config = mujoco.MjLogConfig.get() if hasattr(mujoco, "MjLogConfig") else None
    if config is not None:
        before = config.logto_console, config.logto_file
        config.logto_console = config.logto_file = False
        mujoco.MjLogConfig.set(config)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
    finally:
        said += [str(each.message) for each in caught]
        if config is not None:
            config.logto_console, config.logto_file = before
            mujoco.MjLogConfig.set(config)
