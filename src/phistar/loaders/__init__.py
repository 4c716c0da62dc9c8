# SPDX-License-Identifier: BSD-3-Clause
"""Robot descriptions -> models: chooses the reader of a file; returns model and report."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from numpy.typing import ArrayLike

from phistar.errors import ArgumentError, ModelError, Problem
from phistar.gc_pause import gc_paused
from phistar.loaders.load_report import Entry, LoadReport
from phistar.loaders.robot_source import Source, read_source
from phistar.model.builder import MimicMode
from phistar.model.model import Model
from phistar.model.singular import singular_problems

__all__ = ["Entry", "LoadReport", "Source", "load_model", "read_source"]

_PROLOGUE = re.compile(rb"\s*(?:<\?.*?\?>|<!--.*?-->)", re.DOTALL)
_START_TAG = re.compile(rb"\s*<([^\s<>/!?]+)")


@gc_paused
def load_model(
    description: str | os.PathLike[str] | bytes | Source,
    *,
    floating_base: bool = False,
    mimic: MimicMode = "reduce",
    gravity: ArrayLike | None = None,
    trust_xacro: bool = False,
    xacro_arguments: Mapping[str, str] | None = None,
    roots: Sequence[str | os.PathLike[str]] = (),
    report: LoadReport | None = None,
) -> tuple[Model, LoadReport]:
    """Read a robot description.

    Args:
        description: Path of a URDF, MJCF or xacro file, or the bytes of a URDF or MJCF document.
        floating_base: Put a free joint named ``root_joint`` under the root link.
        mimic: ``"reduce"`` or ``"independent"`` (URDF).
        gravity: (3,) [m/s^2]; default: the file's, else (0, 0, -9.81).
        trust_xacro: Expand xacro files, which may read other files and environment variables.
        xacro_arguments: Values of the xacro file's arguments.
        roots: Folders outside the file's own from which MJCF may include files.
        report: Filled even when an error is raised.

    Returns:
        The model and the load report.

    Raises:
        ModelError: With every problem found.
        RobotFileError: The file cannot be read.
    """
    source = _as_source(description)
    report = LoadReport(source.name, "unknown") if report is None else report
    report.folder = source.path.absolute().parent if source.path else None
    if xacro_arguments is not None or (source.path and source.path.suffix == ".xacro"):
        from phistar.loaders.xacro import expand_xacro

        source = expand_xacro(source, arguments=xacro_arguments or {}, trusted=trust_xacro)
    root = root_tag(source)
    if root == "mujoco":
        from phistar.loaders.mjcf.mjcf_reader import read_mjcf

        _check_mimic(mimic)
        model, report = read_mjcf(
            source, floating_base=floating_base, gravity=gravity, roots=roots, report=report
        )
    elif root in ("robot", None):
        # Without a start tag it is not XML: the URDF reader reports that with file and line.
        from phistar.loaders.urdf.urdf_reader import read_urdf

        model, report = read_urdf(
            source, floating_base=floating_base, mimic=mimic, gravity=gravity, report=report
        )
    else:
        what = f"the root element is <{root}>, expected <robot> (URDF) or <mujoco> (MJCF)."
        problem = Problem("error", "wrong-root", source.name, what, "Is this the right file?")
        report.problems.append(problem)
        raise ModelError([problem])
    singular = singular_problems(model)
    report.problems += singular
    model = replace(model, problems=(*model.problems, *singular))
    report.describes(model)
    return model, report


def _check_mimic(mimic: str) -> None:
    if mimic not in ("reduce", "independent"):
        raise ArgumentError(f"mimic must be 'reduce' or 'independent', got {mimic!r}")


def _as_source(description: str | os.PathLike[str] | bytes | Source) -> Source:
    if isinstance(description, Source):
        return description
    if isinstance(description, (bytes, bytearray, memoryview)):
        return Source(bytes(description), "<bytes>")
    if isinstance(description, (str, os.PathLike)):
        return read_source(Path(description))
    raise ArgumentError(
        f"a robot description is a path, a bundled name or bytes, not {type(description).__name__}"
    )


def root_tag(source: Source) -> str | None:
    """Name of a document's first element, found without parsing it; None if there is none.

    A DOCTYPE hides it; the reader rejects such a document.
    """
    data = source.data.removeprefix(b"\xef\xbb\xbf")
    position = 0
    while match := _PROLOGUE.match(data, position):
        position = match.end()
    tag = _START_TAG.match(data, position)
    return tag.group(1).decode("utf-8", "replace") if tag else None
