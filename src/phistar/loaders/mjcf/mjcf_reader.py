# SPDX-License-Identifier: BSD-3-Clause
"""MJCF -> model, compiled by MuJoCo itself so that masses, orders and poses are exactly its own.

The document is read and checked by ``files`` and ``guard`` before MuJoCo reads it; the compiled
model is converted by ``model_conversion``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from numpy.typing import ArrayLike

from phistar.errors import MissingExtraError, ModelError, StructureWarning
from phistar.loaders.load_report import LoadReport
from phistar.loaders.mjcf.guard import check_limits
from phistar.loaders.mjcf.meshes import replace_meshes
from phistar.loaders.mjcf.mjcf_files import ModelFiles, read_files
from phistar.loaders.mjcf.model_conversion import convert
from phistar.loaders.mjcf.mujoco_errors import LineIndex, problem_of
from phistar.loaders.mjcf.mujoco_model import MujocoModel
from phistar.loaders.mjcf.mujoco_types import MjsElement
from phistar.loaders.mjcf.usage_report import report_usage
from phistar.loaders.robot_source import Source
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
    have MuJoCo's own coordinates (``ref`` included), quaternions are xyzw.

    Args:
        source: The document.
        floating_base: Replace the weld of the only body in the world by a free joint named
            ``root_joint``.
        gravity: (3,) [m/s^2]; default: the file's.
        roots: Folders that may be read besides the one the document is in.
        report: Filled even when an error is raised.

    Returns:
        The model and the load report.

    Raises:
        ModelError: With every problem found.
        UnsafeFileError: The document requires something unsafe.
        MissingExtraError: MuJoCo is not installed.
    """
    report = LoadReport(source.name, "mjcf") if report is None else report
    report.format = "mjcf"
    mujoco = _import_mujoco()
    try:
        files = read_files(source, [Path(folder) for folder in roots], report)
        for root in files.documents:
            report.read.update(element.tag for element in root.walk())
        check_limits(files, report)
        report.raise_errors()
        compiled = _compile(mujoco, files, source, report, floating_base)
        report_usage(files, compiled, report)
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
    mujoco: ModuleType, files: ModelFiles, source: Source, report: LoadReport, floating_base: bool
) -> MujocoModel:
    text, models, elements = files.texts()
    lines = LineIndex(elements, source.name)
    with _quiet(mujoco) as messages:
        try:
            spec = mujoco.MjSpec.from_string(text, include=models)
            meshes = replace_meshes(spec, mujoco, files, report, all_move=floating_base)
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
    for message in messages:
        where, what = lines.where(message), f"MuJoCo warns: {message.splitlines()[0]}"
        report.add_problem("warning", "mujoco", where, what, "", StructureWarning)
    return MujocoModel(
        model=model,
        name=files.main.get("model") or Path(source.name).stem,
        file=source.name,
        bodies=_locations(spec.bodies, lines),
        joints=_locations(spec.joints, lines),
        equalities=_locations(spec.equalities, lines),
        meshes={mesh.geom.id: mesh for mesh in meshes},
        explicit=frozenset(body.id for body in spec.bodies if body.explicitinertial),
    )


def _locations(elements: Iterable[MjsElement], lines: LineIndex) -> dict[int, str]:
    """``file:line`` of MuJoCo's elements, by their id."""
    return {element.id: lines.where(element.info) for element in elements}


@contextmanager
def _quiet(mujoco: ModuleType) -> Iterator[list[str]]:
    """Keep MuJoCo from writing to the terminal and to a log file; yields its warnings."""
    messages: list[str] = []
    config = mujoco.MjLogConfig.get() if hasattr(mujoco, "MjLogConfig") else None
    if config is not None:
        previous = config.logto_console, config.logto_file
        config.logto_console = config.logto_file = False
        mujoco.MjLogConfig.set(config)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield messages
    finally:
        messages += [str(each.message) for each in caught]
        if config is not None:
            config.logto_console, config.logto_file = previous
            mujoco.MjLogConfig.set(config)
