# SPDX-License-Identifier: BSD-3-Clause
"""C files of some programs for one robot: a header, sources, a self-test, a Makefile, a README.

The first line of every file holds a checksum of the rest. That is how a later export knows which
files it may replace: those that an export wrote and nobody has changed since.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from phistar.arrays import Array
from phistar.backends.c.interface import (
    Interface,
    Origin,
    RobotInfo,
    function_comment,
    generator_version,
    interface,
    joint_layout,
    link_order,
    quaternion_note,
)
from phistar.backends.c.selftest import ExpectedResults, expected_results, selftest
from phistar.backends.c.tokens import (
    CPrecision,
    IdentifierScope,
    c_precision,
    comment,
    comment_safe,
    identifier,
)
from phistar.backends.c.translation_unit import (
    function_definition,
    has_link_vectors,
    workspace_entries,
    workspace_macro,
)
from phistar.errors import ArgumentError
from phistar.scalar.program import ScalarProgram
from phistar.whole_files import write_whole

_CHECKSUM_LINE = re.compile(rb"\A[^\n]*written by phistar \S+, checksum ([0-9a-f]{16})[^\n]*\n")
"""The first line of an exported file."""


@dataclass(frozen=True)
class ExportedProgram:
    """A program to export.

    Attributes:
        name: For the function's name, behind the robot's.
        program: The program.
        inputs: (samples, size) by name, for the self-test.
        formula, reference, notes, meanings: For the comment above the function; see ``Origin``.
    """

    name: str
    program: ScalarProgram
    inputs: Mapping[str, Array]
    formula: str = ""
    reference: str = ""
    notes: Sequence[str] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)

    def origin(self, robot: RobotInfo) -> Origin:
        """What the comment above the function says."""
        return Origin(self.name, self.formula, self.reference, self.notes, robot, self.meanings)


def write_package(
    programs: Sequence[ExportedProgram],
    robot: RobotInfo,
    directory: str | os.PathLike[str],
    *,
    real: str = "double",
    force: bool = False,
) -> list[Path]:
    """Write the C files of some programs for one robot.

    Args:
        programs: What to export; at least one.
        robot: Whose programs they are.
        directory: Where to; made if it is not there.
        real: ``"double"`` or ``"float"``; single precision adds ``_f32`` to all names.
        force: Replace files that no export wrote, or that were changed since.

    Returns:
        The files, header first.

    Raises:
        ArgumentError: There is nothing to export, the precision is unknown, a constant does not fit
            into it, or a file is in the way. Then nothing has been written.
    """
    if not programs:
        raise ArgumentError("nothing to export: name at least one program")
    files = package_files(programs, robot, real)
    place = Path(directory)
    if not force:
        for name in files:
            _refuse_foreign_file(place / name)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_whole(place / name, text)
    return [place / name for name in files]


def package_files(
    programs: Sequence[ExportedProgram], robot: RobotInfo, real: str = "double"
) -> dict[str, str]:
    """What ``write_package`` writes, by file name."""
    package = _PackageWriter(programs, robot, c_precision(real))
    files = {
        f"{package.stem}.h": _c_file(package.header()),
        **{f"{f.name}.c": _c_file(package.source(k)) for k, f in enumerate(package.interfaces)},
        "selftest.c": _c_file(selftest(f"{package.stem}.h", list(package.checks()))),
    }
    files["Makefile"] = _with_checksum("# {}\n", package.makefile())
    files["README.md"] = _with_checksum("<!-- {} -->\n", package.readme())
    return files


class _PackageWriter:
    def __init__(
        self, programs: Sequence[ExportedProgram], robot: RobotInfo, real: CPrecision
    ) -> None:
        self.programs = programs
        self.robot = robot
        self.real = real
        self.stem = identifier(robot.name, "robot") + ("_f32" if real.bytes == 4 else "")
        self.sizes = {f"{self.stem}_N{x}".upper(): n for x, n in (("q", robot.nq), ("v", robot.nv))}
        names = IdentifierScope([self.guard, *self.sizes])
        self.interfaces: list[Interface] = []
        for each in programs:
            name = names.unique_name(f"{self.stem}_{identifier(each.name, 'program')}")
            work = workspace_entries(each.program)
            self.interfaces.append(interface(name, each.program, real, work, robot, self.stem))

    @property
    def guard(self) -> str:
        return f"{self.stem.upper()}_H"

    def origin(self, k: int) -> Origin:
        return self.programs[k].origin(self.robot)

    def checks(self) -> Iterable[tuple[Interface, ExpectedResults]]:
        for face, each in zip(self.interfaces, self.programs, strict=True):
            yield face, expected_results(each.program, each.inputs, self.real)

    def header(self) -> str:
        title = f'Functions of the robot "{comment_safe(self.robot.name)}" in C99.'
        lines = [title, "", *joint_layout(self.robot)]
        if any(has_link_vectors(face, self.origin(k)) for k, face in enumerate(self.interfaces)):
            lines += ["", *link_order(self.robot)]
        declared = []
        for k, face in enumerate(self.interfaces):
            operations = sum(self.programs[k].program.count().values())
            declared += [
                comment(function_comment(face, self.origin(k), operations)),
                *workspace_macro(face),
            ]
            declared.append(f"{face.prototype()};\n")
        return "\n".join(
            [
                comment(lines),
                f"#ifndef {self.guard}\n#define {self.guard}\n",
                *(f"#define {name} {size}" for name, size in self.sizes.items()),
                '\n#ifdef __cplusplus\nextern "C" {\n#endif\n',
                *declared,
                "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
            ]
        )

    def source(self, k: int) -> str:
        face, program = self.interfaces[k], self.programs[k].program
        lines = function_comment(face, self.origin(k), sum(program.count().values()))
        includes = f'#include "{self.stem}.h"\n\n#include <math.h>'
        return "\n\n".join([comment(lines), includes, function_definition(program, face)]) + "\n"

    def _quaternion_note(self) -> str:
        has = any(face.has_quaternions for face in self.interfaces)
        return f" {quaternion_note(self.real)}" if has else ""

    def makefile(self) -> str:
        objects = " ".join(f"{face.name}.o" for face in self.interfaces)
        stem = self.stem
        return _MAKEFILE_TEMPLATE.format(stem=stem, objects=objects)

    def readme(self) -> str:
        rows = []
        for k, face in enumerate(self.interfaces):
            each = self.programs[k]
            rows.append(f"### {face.name}\n\n```c\n{face.prototype()};\n```\n")
            if each.formula:
                formula = "\n".join(
                    f"    {comment_safe(line)}" for line in each.formula.splitlines()
                )
                rows.append(f"{formula}\n")
            for name, c, _ in (*face.inputs, *face.outputs):
                if name in each.meanings:
                    rows.append(f"`{c}`: {comment_safe(each.meanings[name])}.\n")
            rows += [f"{comment_safe(note)}\n" for note in each.notes]
            if each.reference:
                rows.append(f"Reference: {comment_safe(each.reference)}.\n")
        name = comment_safe(self.robot.name)
        return _README_TEMPLATE.format(
            name=name,
            stem=self.stem,
            by=generator_version(),
            functions="\n".join(rows),
            quaternions=self._quaternion_note(),
        )


_MAKEFILE_TEMPLATE = """\
# make          compile the functions
# make test     compile and run the self-test
# make shared   a shared library
CFLAGS = -std=c99 -O2 -Wall -Wextra -pedantic
OBJECTS = {objects}

all: $(OBJECTS)

$(OBJECTS): {stem}.h

selftest: selftest.c $(OBJECTS)
\t$(CC) $(CFLAGS) -o $@ selftest.c $(OBJECTS) -lm

test: selftest
\t./selftest

shared: lib{stem}.so

lib{stem}.so: $(OBJECTS:.o=.c) {stem}.h
\t$(CC) $(CFLAGS) -fPIC -shared -o $@ $(OBJECTS:.o=.c) -lm

clean:
\trm -f $(OBJECTS) selftest lib{stem}.so

.PHONY: all test shared clean
"""

_README_TEMPLATE = """\
# C code for the robot "{name}"

Written by {by}. The files need a C99 compiler and sin, cos and sqrt of math.h,
nothing else. The functions allocate nothing, keep no state and may run in several threads at once.

`{stem}.h` tells the order and the units of all arrays; matrices are arrays of their rows, one after
the other.{quaternions} `make test` compiles everything and compares
with numbers that are embedded in `selftest.c`. To use the functions, copy `{stem}.h` and the `.c`
files named after them into your project.

`-std=c99` keeps some compilers from fusing products and sums. Where the processor can do that,
`make CFLAGS="-std=c99 -O2 -march=native -ffp-contract=fast"` gives faster code whose last digits
differ.

{functions}"""


def _with_checksum(line: str, text: str) -> str:
    """A text below the line that says who wrote it."""
    return (
        line.format(f"written by {generator_version()}, checksum {_checksum(text.encode())}") + text
    )


def _c_file(text: str) -> str:
    return _with_checksum("/* {} */\n", text)


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _refuse_foreign_file(path: Path) -> None:
    """Refuse to replace what no export wrote, or what was changed since."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_file():
        raise ArgumentError(f"'{path}' is not a plain file; take it away or choose another place")
    data = path.read_bytes()
    found = _CHECKSUM_LINE.match(data)
    if found is None:
        raise ArgumentError(
            f"'{path}' exists and is not of an export; force (--force) overwrites it"
        )
    if found.group(1).decode() != _checksum(data[found.end() :]):
        raise ArgumentError(f"'{path}' was changed since its export; force (--force) overwrites it")
